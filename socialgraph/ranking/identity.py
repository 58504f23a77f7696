"""What a piece of work depends on, and whether what lies on the disk is of the same work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import identity as collection_identity
from socialgraph.errors import CheckpointError


def check_same(where: object, kept: Mapping[str, Any], work: Mapping[str, Any]) -> None:
    """Compare what work on the disk depended on to the work that is to go on with it.

    A key that is missing equals one whose value is None: an option that is new and switched off changes nothing.

    Args:
        where: the file or folder.
        kept: as it was read from there.
        work: what is wanted; JSON.

    Raises:
        CheckpointError: they differ, and the message says in what.
    """
    work = json.loads(json.dumps(work))  # a tuple becomes the list that was read
    changed = [
        f"{name} was {kept.get(name)!r:.60}, is {work.get(name)!r:.60}"
        for name in {**kept, **work} if kept.get(name) != work.get(name)
    ]  # fmt: skip
    if changed:
        raise CheckpointError(f"{where}: of other work: {'; '.join(changed[:4])}; remove it or choose another")


def digest(values: Iterable[Any]) -> str:
    """Return a hash of some values, each of JSON."""
    whole = hashlib.sha256()
    for value in values:
        whole.update(json.dumps(value).encode() + b"\n")
    return whole.hexdigest()


def weights_digest(*modules: torch.nn.Module) -> str:
    """Return a hash of all weights of some modules, with their names."""
    whole = hashlib.sha256()
    for name, weight in (item for module in modules for item in sorted(module.state_dict().items())):
        whole.update(f"{name} {tuple(weight.shape)} {weight.dtype}\n".encode())
        whole.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return whole.hexdigest()


def identity_of(model: torch.nn.Module, builder: GraphBuilder) -> dict[str, Any]:
    """Return what the scores of a model depend on: its class, config and weights, the texts and how they are read."""
    config = json.loads(json.dumps(getattr(model, "_hub_mixin_config", None), default=str)) or {}
    frequency = builder.statistics.document_frequency
    parts = {name: getattr(builder, name) for name in ("edges", "circles", "passages", "relevance")}
    return {
        "model": type(model).__name__,
        **{f"config.{name}": value for name, value in config.items()},
        "weights": weights_digest(model),
        **{name: repr(part) for name, part in parts.items()},
        "patterns": weights_digest(*(part for part in parts.values() if isinstance(part, torch.nn.Module))),
        "texts": collection_identity(builder.documents),
        "statistics": digest([builder.statistics.size, frequency.tolist()]),
        "seed": builder.seed,
        "joint": builder.joint,
        "document_length": builder.tokens.max_document_length,
        "query_length": builder.tokens.max_query_length,
    }
