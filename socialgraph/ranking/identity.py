"""What the results of a piece of work depend on, and whether what lies on the disk is of the same work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import identity as collection_identity

#: of transformers.TrainingArguments: what is logged and shown, on which no result depends
LOGGING = ("report_to", "run_name", "project", "trackio_space_id", "logging_dir", "logging_first_step", "disable_tqdm")
#: ... what is the same from a training's beginning to its end, however often it is resumed
SAME_WHEN_RESUMED = (
    "seed", "data_seed", "num_train_epochs", "max_steps", "learning_rate", "lr_scheduler_type", "lr_scheduler_kwargs",
    "warmup_steps", "optim", "optim_args", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "max_grad_norm",
    "bf16", "fp16", "train_sampling_strategy",
)  # fmt: skip
#: ... and what is refused: it would write what no training here can go on from
REFUSED = ("fsdp", "deepspeed", "push_to_hub", "save_only_model")


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return in what two descriptions of work differ, a phrase each: ``trainer.seed was 1, is 2``. Same work: ``[]``.

    Everything that is kept on the disk is compared by this one function before it is used again: checkpoints, journals,
    finished runs. A key that is missing equals one whose value is None: an option that is new and
    switched off changes nothing.

    Args:
        old: as it was read from the disk: JSON, nested as deep as it likes.
        new: of the work that is wanted; it is brought to JSON here, so that a tuple equals the list that was read.
    """
    return _differences(old, json.loads(json.dumps(new)), "")


def _differences(old: Any, new: Any, name: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys([*old, *new])
        parts = (_differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key)) for key in keys)
        return [phrase for part in parts for phrase in part]
    return [] if old == new else [f"{name} was {_shortened(old)}, is {_shortened(new)}"]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


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
        "config": config,
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
