"""What training changed in a BERT, small enough to ship: every linear layer's change as a product of two thin matrices.

For a weight W of a linear layer that became W', the change is cut to rank r by its singular values,

    W' - W  ~  B A,    A [r, in], B [out, r],

which is the closest matrix of that rank (Eckart and Young, 1936). Biases, layer norms and other small weights are kept
whole. All is stored as float16.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from socialgraph.errors import CheckpointError

#: a change with fewer numbers is kept whole
SMALL = 8192


@torch.no_grad()
def cut(before: Mapping[str, Tensor], after: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """Return what :func:`add` needs to come from one checkpoint to, nearly, the other.

    Weights that are equal are left out.

    Args:
        before: weights by name.
        after: the same names and shapes.
        rank: of the change of each large matrix, 1 or more.
    """
    change: dict[str, Tensor] = {}
    for name, value in after.items():
        delta = value.double() - before[name].double()
        if not delta.any():
            continue
        if delta.dim() != 2 or delta.numel() < SMALL:
            change[f"{name}.change"] = delta.half()
            continue
        u, s, v = torch.linalg.svd(delta, full_matrices=False)
        root = s[:rank].sqrt()  # shared, so that neither factor leaves float16's range
        change[f"{name}.out"] = (u[:, :rank] * root).half().contiguous()
        change[f"{name}.in"] = (root[:, None] * v[:rank]).half().contiguous()
    return change


@torch.no_grad()
def add(weights: Mapping[str, Tensor], change: Mapping[str, Tensor]) -> None:
    """Add a change to weights, in place.

    Raises:
        CheckpointError: the change is of a weight that is not there, or has another shape.
    """
    for key, value in change.items():
        name, part = key.rsplit(".", 1)
        if part == "in":
            continue
        if name not in weights:
            raise CheckpointError(f"the change is of {name!r}, which the BERT does not have")
        delta = value.float() if part == "change" else value.float() @ change[f"{name}.in"].float()
        if delta.shape != weights[name].shape:
            raise CheckpointError(f"the change of {name!r} has the shape {tuple(delta.shape)}, "
                                  f"the BERT's weight {tuple(weights[name].shape)}")  # fmt: skip
        weights[name].add_(delta)
