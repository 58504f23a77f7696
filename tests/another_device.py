"""A second device in the memory of the CPU: what a GPU refuses, a tensor left on the CPU, it refuses too.

Its tensors hold a tensor of the CPU, which computes. Importing this file gives PyTorch the device for good, so only
programs of their own do. It is no GPU: kernels, precision, streams and what asks for ``is_cuda`` are not tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten
#: operations that read or write both devices
COPIES = (aten._to_copy.default, aten.copy_.default)
#: operations whose indices may lie on the CPU, on a GPU too
INDEXED = (aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default)


class Backend(backend_registration._DummyBackendModule):
    """What PyTorch asks of a device beyond its operations."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


backend_registration._setup_privateuseone_for_python_backend("another", Backend())
DEVICE = torch.device("another:0")


class There(Tensor):
    """A tensor on the device; ``here`` is where its numbers really are."""

    here: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, here: Tensor) -> There:
        layout = {"strides": here.stride(), "storage_offset": here.storage_offset(), "dtype": here.dtype}
        tensor = Tensor._make_wrapper_subclass(cls, here.size(), **layout, device=DEVICE)
        tensor.here = here
        return tensor

    @classmethod
    def __torch_dispatch__(cls, operation: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return compute(operation, args, kwargs or {})

    def tolist(self) -> Any:
        return self.here.tolist()  # PyTorch has none for a class of tensors

    def __repr__(self) -> str:
        return f"There({self.here!r})"


def compute(operation: Callable, args: tuple, kwargs: dict) -> Any:
    """Compute an operation on the CPU.

    Raises:
        RuntimeError: tensors of both devices; a single number may be on the CPU, as for a GPU.
    """
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    there = {id(x.here): x for x in tensors if isinstance(x, There)}
    for x in tensors:
        if not isinstance(x, There) and x.dim() > 0 and operation not in (*COPIES, *INDEXED):
            raise RuntimeError(f"{operation}: a tensor of shape {tuple(x.shape)} is on the CPU, others are not")
    if operation is aten.copy_.default:
        goes_there = isinstance(args[0], There)
    else:
        device = kwargs.get("device")
        goes_there = bool(there) if device is None else device.type == DEVICE.type

    def here(x: Any) -> Any:
        if isinstance(x, torch.device) and x.type == DEVICE.type:
            return torch.device("cpu")
        return x.here if isinstance(x, There) else x

    def back(x: Any) -> Any:
        if not isinstance(x, Tensor) or not goes_there:
            return x
        return there[id(x)] if id(x) in there else There(x)

    return tree_map(back, operation(*tree_map(here, args), **tree_map(here, kwargs)))


class Made(TorchFunctionMode):
    """``torch.tensor`` and ``torch.as_tensor`` skip the road that others take to a device: they make, then move."""

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = dict(kwargs or {})
        if function in (torch.tensor, torch.as_tensor) and str(kwargs.get("device")).startswith(DEVICE.type):
            device = kwargs.pop("device")
            return function(*args, **kwargs).to(device)
        return function(*args, **kwargs)


MADE = Made()
MADE.__enter__()
# a view of a tensor of a class of its own cannot be one of inference mode
torch.inference_mode = lambda mode=True: torch.no_grad(mode) if callable(mode) else torch.no_grad()
FALLBACK = torch.library.Library("_", "IMPL")  # what makes tensors there: no tensor among its arguments calls the class
FALLBACK.fallback(lambda operation, *args, **kwargs: compute(operation, args, kwargs), dispatch_key="PrivateUse1")
