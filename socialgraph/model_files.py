"""What may be read of a model's folder: JSON and safetensors, checked before memory is taken. No pickle, no code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from socialgraph.errors import CheckpointError, first_line

#: numbers of a BERT's config.json: counts (1 or more), shares (from 0 to below 1) and positive numbers
COUNTS = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
          "max_position_embeddings", "type_vocab_size")  # fmt: skip
SHARES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
POSITIVE = ("layer_norm_eps", "initializer_range")
#: bytes of the largest config.json or index that is read
_MAX_JSON = 1 << 24


def no_safetensors(folder: Path) -> str:
    """Return what to do about a folder without weights that may be read."""
    pickles = [one.name for kind in ("bin", "pt", "pth", "pkl", "ckpt") for one in sorted(folder.glob(f"*.{kind}"))]
    if not pickles:
        return f"{folder}: no model.safetensors"
    return (
        f"{folder}: no model.safetensors, and {pickles[0]} is a pickle, which may run any code and is not loaded; "
        "if you trust it, convert it with transformers: AutoModel.from_pretrained(folder).save_pretrained(new_folder)"
    )


def read_json(file: Path) -> dict[str, Any]:
    """Return the object of a JSON file.

    Raises:
        CheckpointError: it is missing, no plain file, too large, or holds something else.
    """
    value = _read_json(file)
    if not isinstance(value, dict):
        raise CheckpointError(f"{file}: expected a JSON object, got {type(value).__name__}")
    return value


def read_json_list(file: Path) -> list[dict[str, Any]]:
    """Return the list of objects of a JSON file.

    Raises:
        CheckpointError: it is missing, no plain file, too large, or holds something else.
    """
    value = _read_json(file)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise CheckpointError(f"{file}: expected a JSON list of objects")
    return value


def _read_json(file: Path) -> Any:
    try:
        if not file.is_file():
            raise CheckpointError(f"{file.parent}: no readable {file.name}")
        if file.stat().st_size > _MAX_JSON:
            raise CheckpointError(f"{file}: larger than {_MAX_JSON >> 20} MiB, so it is no {file.name}")
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{file}: no readable JSON ({first_line(error)})") from error


def header(file: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight in a safetensors file, without reading the weights.

    Raises:
        CheckpointError: it is no whole safetensors file, or a weight is no floating-point number.
    """
    from safetensors import safe_open

    if not file.is_file():
        raise CheckpointError(f"{file.parent}: no {file.name}")
    shapes = {}
    try:
        with safe_open(file, framework="pt") as opened:
            for key in opened.keys():  # noqa: SIM118
                weight = opened.get_slice(key)
                kind = weight.get_dtype()
                if kind not in ("F64", "F32", "F16", "BF16") and not key.endswith("position_ids"):
                    raise CheckpointError(f"{file}: the weight {key!r} has the type {kind}, expected F32, F16 or BF16")
                shapes[key] = tuple(weight.get_shape())
    except CheckpointError:
        raise
    except Exception as error:  # SafetensorError is an Exception and no more
        raise CheckpointError(f"{file}: no whole safetensors file ({first_line(error)})") from error
    return shapes


def check_number(where: str, key: str, value: object) -> None:
    """Refuse a number of a BERT's configuration that is none, or is out of its range; other keys pass.

    Raises:
        CheckpointError: names ``where`` and the key.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if key in COUNTS and not (isinstance(value, int) and is_number and 1 <= value < 1 << 40):
        expected = "a whole number from 1"
    elif key == "pad_token_id" and not (isinstance(value, int) and is_number):
        expected = "a whole number"
    elif key in SHARES and not (is_number and 0 <= value < 1):  # type: ignore[operator]
        expected = "a number from 0 to below 1"
    elif key in POSITIVE and not (is_number and value > 0):  # type: ignore[operator]
        expected = "a positive number"
    else:
        return
    raise CheckpointError(f"{where}: {key!r} must be {expected}, got {str(value)[:40]!r}")


def check_shapes(where: str, wanted: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse weights that lack one, or have one of another shape, before memory is taken for them.

    Args:
        where: what is loaded.
        wanted: tensors by name, on the device "meta".
        shapes: shapes by name, see :func:`header`.

    Raises:
        CheckpointError: names the first.
    """
    missing = sorted(wanted.keys() - shapes.keys())
    if missing:
        raise CheckpointError(f"{where}: {len(missing)} weights are missing, the first is {missing[0]!r}")
    for key, value in wanted.items():
        if shapes[key] != tuple(value.shape):
            raise CheckpointError(
                f"{where}: {key} has the shape {shapes[key]}, config.json asks for {tuple(value.shape)}"
            )


def check_finite(where: str, model: torch.nn.Module) -> None:
    """Refuse a model with a weight that is infinite or NaN: each of its scores would be.

    Raises:
        CheckpointError: names the weight.
    """
    for key, value in model.state_dict().items():
        if value.is_floating_point() and not value.isfinite().all():
            raise CheckpointError(f"{where}: the weight {key!r} holds a number that is not finite")
