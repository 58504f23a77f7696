"""Folders of models in which one thing is odd."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from bad_input import INF, NAN
from safetensors.torch import load_file, save_file


def folders(good: Path, counts: dict[str, str]) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Yield names and what to do to a copy of a good folder of a model: its config.json, its weights, its files.

    Args:
        good: the folder.
        counts: names of numbers in its config.json, and what each is.
    """
    weights = load_file(good / "model.safetensors")
    first, last = min(weights), max(weights)

    def config(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
        def do(folder: Path) -> None:
            values = json.loads((folder / "config.json").read_text())
            change(values)
            (folder / "config.json").write_text(json.dumps(values))

        return do

    def tensors(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
        def do(folder: Path) -> None:
            values = copy.copy(weights)
            change(values)
            save_file(values, folder / "model.safetensors", metadata={"format": "pt"})

        return do

    def raw(name: str, content: bytes | Callable[[bytes], bytes]) -> Callable[[Path], None]:
        def do(folder: Path) -> None:
            file = folder / name
            file.write_bytes(content(file.read_bytes()) if callable(content) else content)

        return do

    yield "nothing is odd", lambda folder: None
    odd = (-1, 0, 3, 10**9, 2**31 - 1, 10**15, 10**30, 1e308, NAN, INF, "32", None, [32], {"a": 1}, True, 0.5)
    for key, kind in counts.items():
        for value in odd:
            yield f"config.json: {kind} {value!r}"[:60], config(lambda c, k=key, v=value: c.__setitem__(k, v))
        yield f"config.json: no {kind}", config(lambda c, k=key: c.pop(k, None))
    for name, text in {"empty": b"", "a list": b"[]", "null": b"null", "garbage": b"\xff\xfe\x00",
                       "cut": b'{"hidden_size": ', "10^5 deep": b"[" * 100_000, "an empty object": b"{}",
                       "20 MB": b'{"a": "' + b"x" * 20_000_000 + b'"}',
                       "a pickle": b"\x80\x04."}.items():  # fmt: skip
        yield f"config.json: {name}", raw("config.json", text)
    yield "config.json is a folder", lambda f: ((f / "config.json").unlink(), (f / "config.json").mkdir())
    yield "no config.json", lambda f: (f / "config.json").unlink()
    yield "no model.safetensors", lambda f: (f / "model.safetensors").unlink()
    yield (
        "model.safetensors is a folder",
        lambda f: ((f / "model.safetensors").unlink(), (f / "model.safetensors").mkdir()),
    )
    yield "an empty folder", lambda f: [one.unlink() for one in f.iterdir() if one.is_file()]
    huge = struct.pack("<Q", 1 << 60) + b"{}"
    liar = json.dumps({first: {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4]}}).encode()
    overlap = json.dumps({k: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for k in (first, last)}).encode()
    for name, content in {
        "empty": b"", "one byte": b"\0", "garbage": b"not weights at all", "a zip": b"PK\x03\x04" + bytes(100),
        "a header of an exabyte": huge, "no weights": struct.pack("<Q", 2) + b"{}", "a pickle": b"\x80\x04\x95\x00.",
        "a shape that lies": struct.pack("<Q", len(liar)) + liar + bytes(4),
        "weights that overlap": struct.pack("<Q", len(overlap)) + overlap + bytes(4),
    }.items():  # fmt: skip
        yield f"model.safetensors: {name}", raw("model.safetensors", content)
    yield "model.safetensors: cut", raw("model.safetensors", lambda data: data[: len(data) // 2])
    yield "model.safetensors: cut by a byte", raw("model.safetensors", lambda data: data[:-1])
    yield "model.safetensors: longer", raw("model.safetensors", lambda data: data + b"more")
    yield "model.safetensors: header garbled", raw("model.safetensors", lambda data: data[:8] + b"\xff" + data[9:])
    for key in (first, last):
        yield f"without {key}", tensors(lambda w, k=key: w.pop(k))
        for name, value in {"NaN": NAN, "inf": INF, "-inf": -INF}.items():
            yield f"{name} in {key}", tensors(lambda w, k=key, v=value: w.__setitem__(k, _with(w[k], v)))
        for kind in ("int64", "bool", "uint8", "float16", "bfloat16", "float64", "complex64"):
            yield f"{key} as {kind}", tensors(lambda w, k=key, t=kind: w.__setitem__(k, w[k].to(getattr(torch, t))))
        yield f"{key} flat", tensors(lambda w, k=key: w.__setitem__(k, torch.cat([w[k].flatten(), torch.zeros(1)])))
        yield f"{key} empty", tensors(lambda w, k=key: w.__setitem__(k, torch.zeros(0)))
        yield f"{key} renamed", tensors(lambda w, k=key: w.__setitem__(f"{k}x", w.pop(k)))
    yield "all weights in half precision", tensors(lambda w: w.update({k: v.half() for k, v in w.items()}))
    yield "all weights in double precision", tensors(lambda w: w.update({k: v.double() for k, v in w.items()}))
    yield "one weight more", tensors(lambda w: w.__setitem__("more", torch.zeros(1)))


def _with(tensor: torch.Tensor, value: float) -> torch.Tensor:
    found = tensor.clone()
    found.view(-1)[0] = value
    return found
