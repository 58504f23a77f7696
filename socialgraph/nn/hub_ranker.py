"""What is saved, loaded, asked and trained alike: the road from graph to loss, and from folder to model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import torch
from huggingface_hub import PyTorchModelHubMixin, hf_hub_download
from safetensors.torch import load_model, save_file
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.backbone import check_finite, read_json
from socialgraph.data.files import atomic_folder
from socialgraph.described import Known, instantiate, spec_of
from socialgraph.errors import CheckpointError, check_choice

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

    def __init_subclass__(cls, **options: Any) -> None:
        # the mixin forgets arguments that are no JSON; here they are kept as they are until the model is saved
        super().__init_subclass__(coders={object: (lambda value: value, lambda value: value)}, **options)

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
        check_choice(f"the stage of {type(self).__name__}", stage, self.stages)
        self.stage = stage

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, classes: Sequence[type] = (), **options: Any
    ) -> Self:
        """Load a model that ``save_pretrained`` or ``push_to_hub`` wrote. Only safetensors and JSON are read.

        Args:
            pretrained_model_name_or_path: the folder, or an id of the hub.
            classes: those of objects inside the model, such as a readout of one's own. Nothing is imported because the
                folder says so.
            options: of the download, such as ``revision``; or of the class, over those of config.json.

        Raises:
            CheckpointError: the folder holds no such model.
        """
        try:
            if Path(pretrained_model_name_or_path).is_dir():
                read_json(Path(pretrained_model_name_or_path) / "config.json")
            return super().from_pretrained(pretrained_model_name_or_path, classes=classes, **options)
        except CheckpointError:
            raise
        except Exception as error:  # the hub, safetensors and torch each have errors of their own
            reason = f"not a saved {cls.__name__} ({' '.join(str(error).split())[:300]})"
            raise CheckpointError(f"{pretrained_model_name_or_path}: {reason}") from error

    @classmethod
    def _from_pretrained(
        cls, *, model_id: str, map_location: str = "cpu", strict: bool = True, classes: Sequence[type] = (),
        **options: Any,
    ) -> Self:  # fmt: skip
        # Called by the hub's mixin with the options of the download and the model's own.
        names = ("revision", "cache_dir", "force_download", "token", "local_files_only")
        download = {key: options.pop(key) for key in names}
        file = Path(model_id) / "model.safetensors"
        if not Path(model_id).is_dir():
            file = Path(hf_hub_download(model_id, "model.safetensors", **download))
        find = Known(classes)
        options = {name: instantiate(value, find, torch.nn.Module) for name, value in options.items()}
        with torch.device("meta"):  # before memory is taken
            numbers = sum(weight.numel() for weight in cls(**options).parameters())
        if numbers > file.stat().st_size:
            raise CheckpointError(
                f"{model_id}: config.json asks for {numbers:,} weights, which {file.name} does not hold"
            )
        model = cls(**options)
        # strict: a key that does not fit would leave random weights where trained ones belong
        load_model(model, file, strict=strict, device=map_location)
        check_finite(model_id, model)
        return model.eval()

    def save_pretrained(self, save_directory: str | Path, *, config: Any = None, **options: Any) -> str | None:
        """Write the model to a folder: as a whole, or what was there stays.

        Args:
            save_directory: the folder.
            config: what config.json says, in place of the arguments of the class.
            options: others of ``huggingface_hub.PyTorchModelHubMixin.save_pretrained``.

        Raises:
            OutputError: the folder cannot be written.
            OptionError: an argument that no file can hold.
        """
        described = spec_of(self._hub_mixin_config if config is None else config)
        options.setdefault("repo_id", Path(save_directory).name)
        with atomic_folder(save_directory) as beside:
            said: str | None = super().save_pretrained(beside, config=described, **options)
            if (Path(save_directory) / "README.md").exists():
                (beside / "README.md").unlink()
        return said

    def _save_pretrained(self, save_directory: Path) -> None:
        # A weight that has two names is there once; what torch.compile wraps is called as before.
        stored = self.state_dict().keys()
        weights = {name: value for name, value in (*self.named_parameters(), *self.named_buffers()) if name in stored}
        tensors = {name.replace("_orig_mod.", ""): value.detach().contiguous() for name, value in weights.items()}
        save_file(tensors, save_directory / "model.safetensors", metadata={"format": "pt"})


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode, without dropout and without gradient, and afterwards back as it was."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)
