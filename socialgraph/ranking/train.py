"""Training through transformers' Trainer: the loop, precision and devices are its own.

Checkpoints are this package's (:mod:`~socialgraph.ranking.checkpoints`), because the Trainer's are pickles.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import save_model
from torch import Tensor
from torch_geometric.data import Batch
from tqdm.contrib.logging import logging_redirect_tqdm
from transformers import (
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.files import check_room, only_here
from socialgraph.data.groups import Group, GroupCollator, TrainingGroups
from socialgraph.errors import (
    CheckpointError,
    OptionError,
    OutputError,
    SocialgraphError,
    TooLargeError,
    first_line,
)
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.ranking import checkpoints, processes
from socialgraph.ranking.identity import graphs_of
from socialgraph.ranking.losses import Loss, loss_resolver
from socialgraph.ranking.memory import free, is_out_of_memory

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: how the names of BERT's parameters begin, in every :class:`~socialgraph.nn.BertRanker`; of a
#: :class:`~socialgraph.nn.WholeDocument` all, its head too
BERT = ("embedding.", "layers.", "pooler.", "encoder.")

#: what the paper says (section 4.3), and what keeps the library quiet
DEFAULTS: dict[str, Any] = {
    "learning_rate": 1e-5,
    "num_train_epochs": 1,
    "per_device_train_batch_size": 8,
    "train_sampling_strategy": "sequential",
    "save_strategy": "no",
    "save_total_limit": 2,
    "logging_steps": 10,
    "report_to": [],
}

#: arguments that a training keeps from its beginning to its end, however often it is resumed
KEPT = (
    "seed", "data_seed", "num_train_epochs", "max_steps", "learning_rate", "lr_scheduler_type", "warmup_steps", "optim",
    "weight_decay", "max_grad_norm", "bf16", "fp16", "train_sampling_strategy",
)  # fmt: skip
#: arguments that would write pickles, or nothing that a training can go on from
REFUSED = ("fsdp", "deepspeed", "push_to_hub", "save_only_model", "load_best_model_at_end")


class WhenThereIsRoom:
    """Calls a collator; where memory runs out, hands the groups over alone, for the trainer to build in halves.

    Args:
        collator: builds the graphs.
    """

    def __init__(self, collator: GroupCollator) -> None:
        self.collator = collator

    def __call__(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Return what the collator returns, or ``groups`` and no ``graph``."""
        try:
            return self.collator(groups)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        free()
        return {"graph": None, "groups": [tuple(group) for group in groups]}


class RankingTrainer(Trainer):
    """A Trainer whose batches are groups of document graphs and whose loss compares within a group.

    Checkpoints are safetensors and JSON, appear whole or not at all, and are checked before they are used. The folder
    is this process's alone while it trains with checkpoints. Among several processes only the first writes.

    Where a step runs out of memory, its batch is halved, and the halves again, with one warning: gradients are
    those of the whole batch up to rounding, as a half counts by its share of the groups (where the loss is a mean over
    documents, "binary", this takes groups of equal size). Several processes cannot halve: each step waits for all.

    Args:
        model: makes a loss of a batch of document graphs and an objective, see
            :class:`~socialgraph.nn.HubRanker`. One whose ``forward`` takes no ``objective`` makes scores of a batch.
        arguments: of the training; batch sizes count groups (queries), not documents.
        groups: what is trained on.
        collator: builds the graphs.
        loss: a name or a function of scores, group and relevant; see :func:`~socialgraph.ranking.loss_resolver`.
        head_learning_rate: of all parameters that are not BERT's; None: they have the same as BERT's.
        options: further arguments of ``transformers.Trainer``.

    Raises:
        OptionError: no such loss, a learning rate below 0, or an argument whose checkpoints would be pickles.
        OutputError: the folder cannot be written, or has no room for the checkpoints.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        arguments: TrainingArguments,
        groups: TrainingGroups,
        collator: GroupCollator,
        loss: str | Loss = "listwise",
        head_learning_rate: float | None = None,
        **options: Any,
    ) -> None:
        if head_learning_rate is not None and head_learning_rate < 0:
            raise OptionError(f"head_learning_rate must be 0 or more, got {head_learning_rate}")
        refused = [name for name in REFUSED if getattr(arguments, name, None)]
        if refused:
            raise OptionError(f"trainer: {', '.join(refused)} is not offered; checkpoints here hold no pickle")
        self.loss = loss_resolver(loss)
        self.head_learning_rate = head_learning_rate
        self.takes_objective = "objective" in inspect.signature(model.forward).parameters
        self.share = 1.0  # of the groups that are computed now, where a batch is halved
        self.warned = False
        self.resumed: list[dict[str, Any]] = []  # of each process, what else a checkpoint knows
        self.folder = Path(arguments.output_dir)
        self.saves = arguments.save_strategy != "no"
        self.kept: dict[str, Any] = {}  # settings, once they are worked out
        by_first(lambda: check_room(self.folder, checkpoint_bytes(model, arguments) if self.saves else 0))
        super().__init__(model, arguments, train_dataset=groups, data_collator=WhenThereIsRoom(collator), **options)

    def train(self, resume_from_checkpoint: str | Path | bool | None = None, **options: Any) -> Any:
        """Train, from the beginning or from a checkpoint.

        Args:
            resume_from_checkpoint: True goes on from the newest whole checkpoint in the folder, from the beginning
                where there is none; a path goes on from that one.
            options: of ``transformers.Trainer.train``.

        Raises:
            CheckpointError: the checkpoint is broken, holds a pickle, or is of another model or training.
            OutputError: another process trains into the folder, it holds checkpoints and ``resume_from_checkpoint`` is
                False, or the disk is full.
            TooLargeError: a group does not fit in memory even alone.
        """
        with ExitStack() as held:
            if self.saves or resume_from_checkpoint is True:
                by_first(lambda: held.enter_context(only_here(self.folder)) and None)
            found = by_first(lambda: self._start(resume_from_checkpoint))
            return super().train(str(found) if found else None, **options)

    def _start(self, resume: str | Path | bool | None) -> Path | None:
        """Return the checkpoint to go on from."""
        if resume is True:
            found = checkpoints.last_whole(self.folder)
            if found:
                logger.info("going on from %s", found)
        elif resume:
            found = Path(resume)
            checkpoints.check_whole(found)
        else:
            found = None
            if self.saves and (there := checkpoints.checkpoints(self.folder)):
                raise OutputError(
                    f"{there[-1]}: a checkpoint of an earlier training; go on with it (resume), remove it, "
                    "or choose another folder"
                )
        if found or self.saves:
            self.kept = self.settings()
        if found:
            checkpoints.check_same(found, self.kept)
        return found

    def settings(self) -> dict[str, Any]:
        """Return what must be the same when a training is resumed, as JSON has it."""
        arguments = self.args.to_dict()
        groups, builder = self.train_dataset, self.data_collator.collator.builder
        places = range(0, len(groups), max(1, len(groups) // 64))  # enough to tell one draw from another
        told = repr([len(groups), *(tuple(groups[place]) for place in places)])
        return {
            **{name: arguments.get(name) for name in KEPT},
            "groups in a step": self.args.train_batch_size * self.args.gradient_accumulation_steps * processes.count(),
            "number of groups": len(groups),
            "groups": hashlib.sha256(told.encode()).hexdigest()[:16],
            **{f"graph's {name}": value for name, value in graphs_of(builder).items()},
            "loss": getattr(self.loss, "__qualname__", type(self.loss).__name__),
            "head_learning_rate": self.head_learning_rate,
            "model": type(self.model).__name__,
            "stage": getattr(self.model, "stage", None),
        }

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: Mapping[str, Tensor | Batch],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the loss of a batch of groups; through ``forward``, so that a wrapped model sees the call."""

        def objective(scores: Tensor) -> Tensor:
            return self.loss(scores.float(), inputs["group"], inputs["relevant"])

        if inputs["graph"] is None:
            raise MemoryError("no room to build the graphs")
        graph = self.data_collator.collator.builder.finish(inputs["graph"])
        loss = model(graph, objective) if self.takes_objective else objective(model(graph))
        if self.share < 1:
            loss = loss * self.share
        return (loss, {}) if return_outputs else loss

    def training_step(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Add a batch's gradients to the model's and return its loss; in halves where memory runs out."""
        groups = [Group(*group) for group in inputs["groups"]]
        return self._step(model, inputs, groups, len(groups))

    def _step(self, model: torch.nn.Module, inputs: dict[str, Any], groups: list[Group], whole: int) -> Tensor:
        # gradients of earlier batches of an accumulation wait aside, so that a step that fails cannot spoil them;
        # several processes never try again, and have hooks on their gradients
        waiting = []
        if processes.count() == 1:
            waiting = [(parameter, parameter.grad) for parameter in model.parameters() if parameter.grad is not None]
            model.zero_grad()
        self.share = len(groups) / whole
        loss = None
        try:
            loss = super().training_step(model, inputs)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if len(groups) == 1 or processes.count() > 1:
                raise self._too_large(groups) from error
        if loss is None:  # no longer in the except block: its error holds the tensors that filled the memory
            model.zero_grad()
            inputs.clear()
            free()
            if not self.warned:
                self.warned = True
                warnings.warn(
                    f"out of memory on a batch of {len(groups)} groups: halved; per_device_train_batch_size="
                    f"{len(groups) // 2} and gradient_accumulation_steps twice as high would avoid it",
                    stacklevel=2,
                )
            middle = (len(groups) + 1) // 2
            halves = [groups[:middle], groups[middle:]]
            loss = torch.stack([self._step(model, self.data_collator(half), half, whole) for half in halves]).sum()
        for parameter, gradient in waiting:
            parameter.grad = gradient if parameter.grad is None else gradient.add_(parameter.grad)
        return loss

    def _too_large(self, groups: list[Group]) -> TooLargeError:
        if len(groups) > 1:
            return TooLargeError(
                f"out of memory on a batch of {len(groups)} groups, and several processes cannot halve it; "
                f"use per_device_train_batch_size={len(groups) // 2}, gradient_accumulation_steps twice as high"
            )
        (query_id, documents), builder = groups[0], self.data_collator.collator.builder
        length, longest = max(zip(builder.tokens.lengths(documents, builder.documents), documents, strict=True))
        return TooLargeError(
            f"query {query_id!r}: its {len(documents)} documents do not fit in memory even alone; the longest, "
            f"{longest!r}, has {length} word pieces; lower document_length or the group's negatives"
        )

    def save_model(self, output_dir: str | Path | None = None, _internal_call: bool = False) -> None:
        """Write the model, as ``save_pretrained`` where it has that, else its weights alone, as safetensors."""
        folder = Path(output_dir or self.folder)
        if not processes.is_first():
            return
        if isinstance(self.model, HubRanker):
            self.model.save_pretrained(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            save_model(self.model, folder / checkpoints.WEIGHTS)

    def _save_checkpoint(self, model: torch.nn.Module, trial: Any = None) -> None:
        mine = {
            "random": checkpoints.random_state(),
            "loss": self._tr_loss.item(),  # since the last line of the log
            "logged": self._globalstep_last_logged,
        }
        everyone = processes.from_all(mine)
        self.store_flos()
        by_first(lambda: self._write_checkpoint(everyone))

    def _write_checkpoint(self, everyone: list[dict[str, Any]]) -> None:
        folder = self.folder / f"checkpoint-{self.state.global_step}"
        scaler = getattr(self.accelerator, "scaler", None)
        state = {
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.lr_scheduler.state_dict(),
            "scaler": scaler.state_dict() if scaler else None,
            "processes": everyone,
        }
        with checkpoints.new_checkpoint(folder) as part:
            self.save_model(part)
            checkpoints.save_state(part, checkpoints.TRAINING, state)
            self.state.save_to_json(str(part / checkpoints.PROGRESS))
            checkpoints.save_settings(part, self.kept)
        checkpoints.keep(folder, self.args.save_total_limit)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: torch.nn.Module | None = None) -> None:
        checkpoints.load_weights(self.model if model is None else model, Path(resume_from_checkpoint))
        progress = Path(resume_from_checkpoint) / checkpoints.PROGRESS
        try:
            TrainerState.load_from_json(str(progress))
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise CheckpointError(f"{progress}: damaged ({first_line(error)})") from error

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        state = checkpoints.load_state(Path(checkpoint), checkpoints.TRAINING)
        try:
            self.optimizer.load_state_dict(state["optimizer"])
            self.lr_scheduler.load_state_dict(state["scheduler"])
            if state["scaler"]:
                self.accelerator.scaler.load_state_dict(state["scaler"])
            self.resumed = list(state["processes"])
        except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise CheckpointError(
                f"{checkpoint}: optimizer and scheduler do not fit this training ({first_line(error)})"
            ) from error

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """Restore what the library lost: random numbers, and the loss since the last line of the log."""
        everyone, self.resumed = self.resumed, []
        if processes.number() < len(everyone):  # else there are more processes than before: these are new
            mine = everyone[processes.number()]
            checkpoints.set_random_state(mine["random"])
            self._tr_loss += mine["loss"]
            self._globalstep_last_logged = mine["logged"]

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        """Make the library's optimizer; where the head has its own rate, its groups are cut in two."""
        is_new = self.optimizer is None
        optimizer: torch.optim.Optimizer = super().create_optimizer(model)
        if is_new and self.head_learning_rate is not None:
            named = (self.model if model is None else model).named_parameters()
            head = {id(parameter) for name, parameter in named if not name.startswith(BERT)}
            bert, rest = [], []
            for group in optimizer.param_groups:
                bert.append({**group, "params": [p for p in group["params"] if id(p) not in head]})
                mine = [p for p in group["params"] if id(p) in head]
                rest.append({**group, "params": mine, "lr": self.head_learning_rate})
            # in place, because the scheduler and checkpoints read this list
            optimizer.param_groups[:] = [group for group in bert + rest if group["params"]]
        return optimizer


def by_first(function: Callable[[], T]) -> T:
    """Call a function in the first process alone; return what it returned, or raise what it refused, in all."""
    value: Any = None
    refused: SocialgraphError | None = None
    if processes.is_first():
        try:
            value = function()
        except SocialgraphError as error:
            refused = error
    value, refused = processes.from_first((value, refused))
    if refused is not None:
        raise refused
    found: T = value
    return found


def checkpoint_bytes(model: torch.nn.Module, arguments: TrainingArguments) -> int:
    """Return how many bytes the checkpoints to come need, at most.

    A checkpoint holds the weights and, of those that learn, two moments. One more than are kept is there for a moment;
    where all are kept, room for two is asked for. What is there already needs no room.
    """
    one = sum(p.numel() * p.element_size() * (3 if p.requires_grad else 1) for p in model.parameters())
    there = len(checkpoints.checkpoints(Path(arguments.output_dir)))
    return one * max(1, (arguments.save_total_limit or 1) + 1 - there)


class LogLines(TrainerCallback):
    """Writes each line of the training log as one line of text, where the library prints a dict."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Write the step and the loss."""
        if logs and "loss" in logs and state.is_world_process_zero:
            with logging_redirect_tqdm():
                logger.info("step %d of %d: loss %.3f", state.global_step, state.max_steps, float(logs["loss"]))


class QuietProgress(ProgressCallback):
    """The progress bar without the printed dicts."""

    def on_log(self, *_: Any, **__: Any) -> None:
        """Print nothing."""


def train(
    model: torch.nn.Module,
    builder: GraphBuilder,
    groups: TrainingGroups,
    queries: dict[str, str],
    folder: str | Path,
    loss: str | Loss = "listwise",
    head_learning_rate: float | None = None,
    stage: str | None = None,
    resume: bool | str = False,
    **options: Any,
) -> list[dict[str, float]]:
    """Train a model in place and return the log: one dict for each line, with loss and learning rate.

    Args:
        model: what learns.
        builder: builds graphs; ``dataloader_num_workers`` processes do so ahead of the model (on another device than
            the CPU they read the texts, and edges and circles are the model's process's).
        groups: what is trained on, in this order, in every epoch (``train_sampling_strategy="random"`` shuffles them by
            ``seed``, in each epoch anew). :class:`~socialgraph.data.TrainingGroups` are shuffled already.
        queries: query id -> text.
        folder: where checkpoints go (with ``save_strategy="steps"``), of which the last two are kept
            (``save_total_limit``). No other process may train there.
        loss: "listwise" (the paper), "hinge", "ranknet", "binary", or a function; see :class:`RankingTrainer`.
        head_learning_rate: of all parameters that are not BERT's, as KeyB has it (2e-5 for BERT and 1e-3 for the linear
            layer; Li, Popa, Chagnon, Cinar and Gaussier, TOIS 2023); None: as BERT's. The schedule scales both.
        stage: which of the model's stages of training this is; None: the one that it is in.
        resume: True goes on from the newest whole checkpoint in ``folder``, from the beginning where there is none: a
            training that was killed goes on with the same call, one that was finished loads its weights. A path goes on
            from that one.
        options: arguments of ``transformers.TrainingArguments``, over the paper's defaults: AdamW with
            learning rate 1e-5, batches of 8 queries, one epoch.

    Raises:
        OptionError: an argument that the library does not know or refuses, no such loss, or no such stage.
        CheckpointError: the checkpoint to resume from is broken, holds a pickle, or is of another model or training.
        OutputError: ``folder`` cannot be written, is full, is another process's, or holds checkpoints and ``resume`` is
            False.
        TooLargeError: a group does not fit in memory even alone.
    """
    if stage is not None:
        if not isinstance(model, HubRanker):
            raise OptionError(f"{type(model).__name__} has no stages of training, got stage={stage!r}")
        model.enter(stage)
    try:
        pin = {"dataloader_pin_memory": builder.device.type == "cuda"}
        arguments = TrainingArguments(output_dir=str(folder), remove_unused_columns=False, **DEFAULTS | pin | options)
    except (TypeError, ValueError) as error:
        raise OptionError(f"trainer: {str(error).splitlines()[0]}") from error
    trainer = RankingTrainer(model, arguments, groups, GroupCollator(builder, queries), loss, head_learning_rate)
    trainer.remove_callback(PrinterCallback)
    if not arguments.disable_tqdm:
        trainer.remove_callback(ProgressCallback)
        trainer.add_callback(QuietProgress)
    trainer.add_callback(LogLines)
    trainer.train(resume_from_checkpoint=resume or None)
    log: list[dict[str, float]] = trainer.state.log_history
    return log
