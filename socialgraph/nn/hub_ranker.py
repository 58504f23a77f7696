"""What is saved, loaded, asked and trained alike: the road from graph to loss, and from folder to model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

import torch
from huggingface_hub import PyTorchModelHubMixin, hf_hub_download
from safetensors.torch import load_model
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.errors import CheckpointError, OptionError, first_line, is_whole
from socialgraph.model_files import check_finite, check_shapes, header, no_safetensors, read_json

#: scores ``[B]`` -> loss
Objective = Callable[[Tensor], Tensor]


#: the card of a model that is saved alone
_CARD = """\
---
{{ card_data }}
---

The weights of a model of [socialgraph](https://pypi.org/project/socialgraph-ir/), which scores document graphs.
`config.json` has the arguments of its class, whose `from_pretrained` loads it. What makes the graphs is not here:
edges, circles, word pieces and lengths are saved by `socialgraph.Ranker`, which then ranks texts.
"""


class HubRanker(
    torch.nn.Module,
    PyTorchModelHubMixin,
    library_name="socialgraph",
    license="apache-2.0",
    pipeline_tag="text-ranking",
    tags=["long-document-ranking", "graph-neural-network"],
    model_card_template=_CARD,
):
    """Base of all models. A subclass implements :meth:`scores`.

    ``save_pretrained(folder)`` or ``push_to_hub(id)`` writes config.json, the arguments of the class, and
    model.safetensors; ``from_pretrained(folder or hub id)`` reads them.
    """

    #: names of the stages of training, in their order; most models have one
    stages: tuple[str, ...] = ("ranking",)
    stage = "ranking"

    def forward(self, graph: Data, objective: Objective | None = None) -> Tensor:
        """Return the score of each document of a batch, ``[B]`` (of a single graph, ``[1]``), or the loss.

        Args:
            graph: with the attributes that the model names.
            objective: makes a loss of scores. A model with several scores, or with a loss of its own for a stage of
                its training, does so here.
        """
        scores = self.scores(graph)
        return scores if objective is None else objective(scores)

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``."""
        raise NotImplementedError

    def enter(self, stage: str) -> None:
        """Begin a stage of training.

        Raises:
            OptionError: the model has no such stage.
        """
        if stage not in self.stages:
            raise OptionError(f"{type(self).__name__} has the stages {', '.join(self.stages)}, got {stage!r}")
        self.stage = stage

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> Self:
        """Load a model that ``save_pretrained`` or ``push_to_hub`` wrote. Only safetensors and JSON are read.

        All sizes in config.json are compared with the weights before memory is taken.

        Raises:
            CheckpointError: the folder holds no such model.
        """
        folder = Path(pretrained_model_name_or_path)
        try:
            if folder.is_dir():
                read_json(folder / "config.json")
            return super().from_pretrained(pretrained_model_name_or_path, **options)
        except CheckpointError:
            raise
        except Exception as error:  # the hub, safetensors and torch each have errors of their own
            reason = f"not a saved {cls.__name__} ({first_line(error)})"
            raise CheckpointError(f"{pretrained_model_name_or_path}: {reason}") from error

    @classmethod
    def _from_pretrained(cls, *, model_id: str, map_location: str = "cpu", strict: bool = True, **options: Any) -> Self:
        # Called by the hub's mixin with the options of the download and the model's own.
        download = {key: options.pop(key) for key in ("revision", "cache_dir", "force_download", "token")}
        download["local_files_only"] = options.pop("local_files_only")
        if not Path(model_id).is_dir():
            file = Path(hf_hub_download(model_id, "model.safetensors", **download))
        elif not (file := Path(model_id) / "model.safetensors").exists():
            raise CheckpointError(no_safetensors(Path(model_id)))
        cls.check_files(model_id, options, header(file))
        model = cls(**options)
        # strict: a key that does not fit would leave random weights where trained ones belong
        load_model(model, file, strict=strict, device=map_location)
        check_finite(model_id, model)
        return model.eval()

    @classmethod
    def check_files(cls, model_id: str, options: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
        """Refuse options and weights that do not fit each other, before memory is taken for them.

        Args:
            model_id: what is loaded.
            options: of config.json.
            shapes: shapes of the weights by name.

        Raises:
            CheckpointError: names the first.
        """
        cls.check_types(model_id, options)
        with torch.device("meta"):
            wanted = dict(cls(**options).state_dict())
        check_shapes(f"{model_id}: not a saved {cls.__name__}", wanted, shapes)
        if odd := sorted(shapes.keys() - wanted.keys()):
            raise CheckpointError(f"{model_id}: {len(odd)} weights are left over, the first is {odd[0]!r}")

    @classmethod
    def check_types(cls, model_id: str, options: dict[str, Any]) -> None:
        """Refuse options of config.json that are not of the type that the class asks for.

        Raises:
            CheckpointError: names the first.
        """
        kinds = {key: kind for one in reversed(cls.__mro__) if issubclass(one, HubRanker)
                 for key, kind in get_type_hints(one.__init__).items()}  # fmt: skip
        for key, value in options.items():
            if key in kinds and not _fits(value, kinds[key]):
                got = f"{type(value).__name__} {str(value)[:40]!r}"
                raise CheckpointError(f"{model_id}: config.json: {key!r} must be {kinds[key]}, got {got}")


def _fits(value: object, kind: Any) -> bool:
    """Whether a value of a JSON file is of an argument's type; whole numbers lie from 0 to 2^31 - 1."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    types = {get_origin(one) or one for one in kinds}
    if float in types and isinstance(value, int):
        return True
    if isinstance(value, list):
        return list in types and all(is_whole(one, 0) for one in value)
    return type(value) in types and (type(value) is not int or is_whole(value, 0))
