"""Checkpoints of a training: whole or not there, in safetensors and JSON alone, and checked before they are used.

A checkpoint is a folder ``checkpoint-<step>``. ``whole.json`` is written last: size and SHA-256 of every other file.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file
from torch import Tensor

from socialgraph.data.files import atomic_write, sha256, sync
from socialgraph.errors import CheckpointError, OptionError, OutputError, first_line
from socialgraph.ranking.identity import differences

#: what a checkpoint always has: the model, optimizer and random numbers, progress and log, what was trained
WEIGHTS, TRAINING, PROGRESS, SETTINGS = "model.safetensors", "training", "trainer_state.json", "settings.json"
_WHOLE = "whole.json"
_NEEDED = (WEIGHTS, f"{TRAINING}.safetensors", f"{TRAINING}.json", PROGRESS, SETTINGS)
_PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt")


@contextmanager
def new_checkpoint(folder: Path) -> Iterator[Path]:
    """Give a hidden folder to write a checkpoint in; it becomes ``folder`` in one step, once it is on the disk.

    If the block raises, the hidden folder is removed and nothing else has changed.

    Raises:
        OutputError: it cannot be written. Earlier checkpoints are as they were.
    """
    part = _part(folder)
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        yield part
        _seal(part)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(part, folder)
        sync(folder.parent)
    except OutputError:
        raise
    except (OSError, SafetensorError) as error:
        raise OutputError(
            f"{folder}: cannot be written ({error}); earlier checkpoints are whole; free the disk and resume"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)  # it is gone where all went well


def save_state(folder: Path, name: str, state: Any) -> None:
    """Write nested dicts, lists and tuples of tensors, numbers, strings and None: ``name.safetensors``, ``name.json``.

    Raises:
        OptionError: something else is in there.
    """
    tensors: dict[str, Tensor] = {}
    nested = _to_json(state, name, tensors)
    seen = set()
    for key, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        tensors[key] = tensor.clone() if place in seen else tensor  # the format lets no two tensors share memory
        seen.add(place)
    save_file(tensors, folder / f"{name}.safetensors")
    with atomic_write(folder / f"{name}.json") as file:
        json.dump(nested, file)


def load_state(folder: Path, name: str) -> Any:
    """Return what :func:`save_state` wrote, on the CPU.

    Raises:
        CheckpointError: the files do not hold such a state.
    """
    try:
        # cloned, because sums over memory that starts at an odd place round in another order
        tensors = {key: tensor.clone() for key, tensor in load_file(folder / f"{name}.safetensors").items()}
        return _from_json(json.loads((folder / f"{name}.json").read_text()), tensors)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise CheckpointError(f"{folder / name}.json: not the state of a training ({first_line(error)})") from error


def load_weights(model: torch.nn.Module, folder: Path) -> None:
    """Load a checkpoint's weights into a model, every key and shape.

    Raises:
        CheckpointError: they are another model's.
    """
    try:
        load_model(model, folder / WEIGHTS)
    except (OSError, RuntimeError, SafetensorError) as error:
        lines = str(error).splitlines()
        what = lines[1].strip() if len(lines) > 1 else first_line(error)
        raise CheckpointError(f"{folder / WEIGHTS}: does not fit {type(model).__name__} ({what})") from error


def random_state() -> dict[str, Any]:
    """Return the state of the random numbers of Python, NumPy and PyTorch, and of every GPU in use."""
    name, numbers, *rest = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": (name, np.asarray(numbers).tolist(), *rest),
        "cpu": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],  # type: ignore[no-untyped-call]
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Go on with random numbers where :func:`random_state` was called."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["cpu"])
    for device, numbers in zip(range(torch.cuda.device_count()), state["cuda"], strict=False):
        torch.cuda.set_rng_state(numbers, device)


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, whole or not, the oldest first."""
    folders = [path for path in folder.glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d+", path.name)]
    return sorted(folders, key=step)


def step(checkpoint: Path) -> int:
    """Return how many steps had been trained."""
    return int(checkpoint.name.rpartition("-")[2])


def check_whole(checkpoint: Path) -> None:
    """Read every file of a checkpoint, and compare it with what was written.

    Raises:
        CheckpointError: there is no such folder, a file is missing or another, or it holds a pickle.
    """
    if not checkpoint.is_dir():
        raise CheckpointError(f"{checkpoint}: no such checkpoint")
    if pickle := _pickle(checkpoint):
        raise CheckpointError(f"{pickle}: pickles are not loaded; train anew, or start from the model's weights alone")
    try:
        whole = json.loads((checkpoint / _WHOLE).read_text())
        written = {str(name): (int(size), str(digest)) for name, (size, digest) in whole.items()}
    except FileNotFoundError:
        raise CheckpointError(f"{checkpoint / _WHOLE}: missing; the checkpoint was not written to its end") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{checkpoint / _WHOLE}: damaged ({first_line(error)})") from None
    for name in (*_NEEDED, *written):
        path = checkpoint / name
        if name not in written or Path(name).name != name or not path.is_file():
            raise CheckpointError(f"{path}: missing")
        size, digest = written[name]
        if path.stat().st_size != size:
            raise CheckpointError(f"{path}: damaged ({path.stat().st_size} bytes, {size} were written)")
        if sha256(path) != digest:
            raise CheckpointError(f"{path}: damaged (its bytes are not those that were written)")


def last_whole(folder: Path) -> Path | None:
    """Return the newest whole checkpoint in a folder; remove what is newer and broken, with one warning.

    Raises:
        CheckpointError: the newest checkpoint holds a pickle. It is left as it is.
    """
    broken: dict[Path, str] = {}
    whole = None
    for checkpoint in reversed(checkpoints(folder)):
        try:
            check_whole(checkpoint)
        except CheckpointError as error:
            if _pickle(checkpoint):
                raise
            broken[checkpoint] = str(error)
        else:
            whole = checkpoint
            break
    if broken:
        instead = f"{whole.name} is used instead" if whole else "training starts from the beginning"
        warnings.warn(f"removed what was not whole: {'; '.join(broken.values())}; {instead}", stacklevel=2)
    for path in (*broken, *folder.glob(_part(folder / "checkpoint-*").name)):
        shutil.rmtree(path)
    return whole


def keep(checkpoint: Path, limit: int | None, best: str | None = None) -> None:
    """Remove all but the last ``limit`` checkpoints up to this one, and all after it, which are being made again.

    The one that is called ``best`` stays too.
    """
    saved = checkpoints(checkpoint.parent)
    until = [path for path in saved if step(path) <= step(checkpoint)]
    for path in saved:
        if path not in (until[-limit:] if limit else until) and path.name != best:
            shutil.rmtree(path, ignore_errors=True)


def save_settings(checkpoint: Path, settings: Mapping[str, Any]) -> None:
    """Write what :func:`check_same` compares."""
    with atomic_write(checkpoint / SETTINGS) as file:
        json.dump(settings, file, indent=1)


def check_same(checkpoint: Path, settings: Mapping[str, Any]) -> None:
    """Compare the settings that a checkpoint was trained with to these.

    Raises:
        CheckpointError: they differ; the message says in what.
    """
    try:
        before = json.loads((checkpoint / SETTINGS).read_text())
        if not isinstance(before, dict):
            raise TypeError("no table of settings")
        changes = differences(before, settings)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{checkpoint / SETTINGS}: damaged ({first_line(error)})") from None
    if changes:
        raise CheckpointError(
            f"{checkpoint}: of another training: {'; '.join(changes)}; "
            "resume with what it began with, or begin in another folder"
        )


def _part(checkpoint: Path) -> Path:
    return checkpoint.with_name(f".{checkpoint.name}.part")


def _pickle(checkpoint: Path) -> Path | None:
    return next((path for path in sorted(checkpoint.iterdir()) if path.suffix in _PICKLES), None)


def _seal(folder: Path) -> None:
    whole = {}
    for path in sorted(folder.iterdir()):
        sync(path)
        whole[path.name] = (path.stat().st_size, sha256(path))
    with atomic_write(folder / _WHOLE) as file:
        json.dump(whole, file, indent=1)


def _to_json(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Return what JSON can hold; tensors go to ``tensors`` and leave their name."""
    if isinstance(value, Tensor):
        tensors[name] = value.detach().cpu().contiguous()
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"dict": [[key, _to_json(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [_to_json(item, f"{name}.{place}", tensors) for place, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"{name}: a checkpoint cannot hold a {type(value).__name__}")


def _from_json(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Undo :func:`_to_json`."""
    if isinstance(value, list):
        return [_from_json(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "tensor":
        return tensors[held]
    if kind == "dict":
        return {key: _from_json(item, tensors) for key, item in held}
    if kind == "tuple":
        return tuple(_from_json(item, tensors) for item in held)
    raise ValueError(f"unknown kind {kind!r}")
