"""A Trainer of transformers for groups of document graphs: the loop, precision, devices and loggers are its own."""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_model
from torch import Tensor
from torch_geometric.data import Batch
from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments

from socialgraph.data.files import check_room, only_here
from socialgraph.data.groups import GroupCollator, TrainingGroups
from socialgraph.errors import CheckpointError, OptionError, OutputError, first_line
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.ranking import processes
from socialgraph.ranking.identity import REFUSED, graphs_of
from socialgraph.ranking.training import checkpoints
from socialgraph.ranking.training.dev import Dev, StopEarly
from socialgraph.ranking.training.halved_step import HalvedStep, collated
from socialgraph.ranking.training.losses import Loss, loss_resolver
from socialgraph.ranking.training.optimizer import set_head_rate
from socialgraph.ranking.training.resuming import Resumed, state_of

logger = logging.getLogger(__name__)

#: arguments that are the same from a training's beginning to its end, however often it is resumed
SAME_WHEN_RESUMED = (
    "seed", "data_seed", "num_train_epochs", "max_steps", "learning_rate", "lr_scheduler_type", "lr_scheduler_kwargs",
    "warmup_steps", "optim", "optim_args", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "max_grad_norm",
    "bf16", "fp16", "train_sampling_strategy",
)  # fmt: skip


class RankingTrainer(Trainer):
    """A Trainer whose batches are groups of document graphs and whose loss compares within a group.

    Checkpoints are safetensors and JSON, appear whole or not at all, and are checked before they are used. The folder
    is this process's alone while it trains with checkpoints. Among several processes only the first writes.

    Where a step runs out of memory, its batch is halved
    (:class:`~socialgraph.ranking.training.halved_step.HalvedStep`); where the loss is a mean over documents ("binary")
    the sum is exact for groups of equal size.

    Args:
        model: makes a loss of a batch of document graphs and an objective, see
            :class:`~socialgraph.nn.HubRanker`. One whose ``forward`` takes no ``objective`` makes scores of a batch.
        arguments: of the training; batch sizes count groups (queries), not documents.
        groups: what is trained on.
        collator: builds the graphs.
        loss: a name or a function of scores, group and relevant; see :func:`~socialgraph.ranking.loss_resolver`.
        head_learning_rate: of all parameters that are not BERT's; None: they have the same as BERT's.
        dev: what is measured when ``eval_strategy`` says so.
        options: further arguments of ``transformers.Trainer``.

    Raises:
        OptionError: no such loss, a learning rate below 0, or an argument whose checkpoints would be pickles.
        OutputError: the folder cannot be written, or has no room for the checkpoints.
    """

    control: TrainerControl

    def __init__(
        self,
        model: torch.nn.Module,
        arguments: TrainingArguments,
        groups: TrainingGroups,
        collator: GroupCollator,
        loss: str | Loss = "listwise",
        head_learning_rate: float | None = None,
        dev: Dev | None = None,
        **options: Any,
    ) -> None:
        if head_learning_rate is not None and head_learning_rate < 0:
            raise OptionError(f"head_learning_rate must be 0 or more, got {head_learning_rate}")
        refused = [name for name in REFUSED if getattr(arguments, name, None)]
        if refused:
            raise OptionError(f"trainer: {', '.join(refused)} is not offered; checkpoints here hold no pickle")
        if dev is None and arguments.eval_strategy != "no":
            raise OptionError(f"trainer: eval_strategy={arguments.eval_strategy.value} needs dev: what is measured")
        self.loss = loss_resolver(loss)
        self.builder = collator.builder
        self.dev = dev
        self.head_learning_rate = head_learning_rate
        self.takes_objective = "objective" in inspect.signature(model.forward).parameters
        self.folder = Path(arguments.output_dir)
        self.saves = arguments.save_strategy != "no"
        processes.run_in_first(lambda: check_room(self.folder, checkpoint_bytes(model, arguments) if self.saves else 0))
        self.made_with: dict[str, Any] = {}  # the settings, once a training with checkpoints begins
        measured = None if dev is None else list(dev.split.queries)
        super().__init__(model, arguments, partial(collated, collator), groups, measured, **options)
        # transformers divides the loss by the steps of an accumulation; before 5.17 it told accelerate to do so, too.
        self.accelerator.gradient_accumulation_steps = 1
        if dev is not None and dev.patience is not None:
            self.add_callback(StopEarly(dev))
        self.halved_step = HalvedStep(super().training_step, collator)

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
            if self.saves or resume_from_checkpoint:
                self.made_with = self.settings()
            if self.saves or resume_from_checkpoint is True:
                processes.run_in_first(lambda: held.enter_context(only_here(self.folder)))
            checkpoint = processes.run_in_first(lambda: self._checkpoint(resume_from_checkpoint))
            if checkpoint is None:
                return super().train(**options)
            logger.info("going on from %s", checkpoint)
            if self._is_over(checkpoint):
                return None
            checkpoints.load_weights(self.model, checkpoint)  # every key; the library would leave out what misses
            resumed = Resumed(self, checkpoint)
            self.add_callback(resumed)
            held.callback(self.remove_callback, resumed)
            return super().train(str(checkpoint), **options)

    def _checkpoint(self, resume: str | Path | bool | None) -> Path | None:
        """Return the checkpoint to go on from, whole and of this training; None: train from the beginning."""
        if not resume:
            if self.saves and (there := checkpoints.checkpoints(self.folder)):
                raise OutputError(
                    f"{there[-1]}: a checkpoint of an earlier training; go on with it (resume), remove it, "
                    "or choose another folder"
                )
            return None
        if resume is True:
            checkpoint = checkpoints.last_whole(self.folder)
        else:
            checkpoint = Path(resume)
            checkpoints.check_whole(checkpoint)
        if checkpoint is not None:
            checkpoints.check_same(checkpoint, self.made_with)
        return checkpoint

    def _is_over(self, checkpoint: Path) -> bool:
        """Tell whether the training was stopped early at a checkpoint; if so, take its log and its best weights."""
        progress = checkpoint / checkpoints.PROGRESS
        try:
            state = TrainerState.load_from_json(str(progress))
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise CheckpointError(f"{progress}: damaged ({first_line(error)})") from error
        if self.dev is None or not self.dev.is_over(state.log_history):
            return False
        best = checkpoint.with_name(f"checkpoint-{state.best_global_step}")
        checkpoints.check_whole(best)
        checkpoints.load_weights(self.model, best)
        self.state = state
        return True

    def settings(self) -> dict[str, Any]:
        """Return what must be the same when a training is resumed, as JSON has it."""
        arguments, groups = self.args.to_dict(), self.train_dataset
        places = range(0, len(groups), max(1, len(groups) // 64))  # enough to tell one draw from another
        drawn = repr([len(groups), *((groups[place].query_id, groups[place].document_ids) for place in places)])
        return {
            **{name: arguments.get(name) for name in SAME_WHEN_RESUMED},
            "groups in a step": self.args.train_batch_size * self.args.gradient_accumulation_steps * processes.count(),
            "number of groups": len(groups),
            "groups": hashlib.sha256(drawn.encode()).hexdigest()[:16],
            **{f"graph's {name}": value for name, value in graphs_of(self.builder).items()},
            "loss": getattr(self.loss, "__qualname__", type(self.loss).__name__),
            "head_learning_rate": self.head_learning_rate,
            "model": type(self.model).__name__,
            "stage": getattr(self.model, "stage", None),
        }

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: Mapping[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the loss of a batch of groups, times its share of a batch that is halved.

        Through ``forward``, so that a wrapped model sees the call.
        """

        def objective(scores: Tensor) -> Tensor:
            return self.loss(scores.float(), inputs["group"], inputs["relevant"])

        if inputs["graph"] is None:
            raise MemoryError("no room to build the graphs")
        graph: Batch = self.builder.finish(inputs["graph"])
        loss = model(graph, objective) if self.takes_objective else objective(model(graph))
        share = inputs.get("share", 1.0)
        if share < 1:
            loss = loss * share
        return (loss, {}) if return_outputs else loss

    def training_step(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Add a batch's gradients to the model's and return its loss; in halves where memory runs out."""
        return self.halved_step(model, inputs)

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        """Make the library's optimizer; where the head has its own rate, its groups are cut in two."""
        is_new = self.optimizer is None
        optimizer: torch.optim.Optimizer = super().create_optimizer(model)
        if is_new and self.head_learning_rate is not None:
            set_head_rate(optimizer, self.model if model is None else model, self.head_learning_rate)
        return optimizer

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Measure on dev, and write the measures into the log. The training goes on as if nobody had looked.

        Raises:
            OptionError: there is no ``dev``.
        """
        if self.dev is None:
            raise OptionError("trainer: evaluate needs dev: what is measured")
        random = checkpoints.random_state()
        measures = self.dev.measure(self.model, self.builder)
        checkpoints.set_random_state(random)
        self.log(measures)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, measures)
        return measures

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Write a line of the log. Its mean loss is that of all steps, also where the training was resumed.

        The library knows the losses since then; depending on its version it divides them by all steps.
        """
        if "train_loss" in logs:
            logs["train_loss"] = self._total_loss_scalar / max(self.state.global_step, 1)
        super().log(logs, start_time)

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
        # The one private method that is replaced: the library's writes pickles, and into the checkpoint's own folder,
        # where a process that dies leaves half of them.
        best = self.folder / f"checkpoint-{self.state.best_global_step}"
        if best.exists() or self.state.best_global_step == self.state.global_step:
            self.state.best_model_checkpoint = str(best)
        state = state_of(self)
        self.store_flos()
        processes.run_in_first(lambda: self._write_checkpoint(state))

    def _write_checkpoint(self, state: dict[str, Any]) -> None:
        folder = self.folder / f"checkpoint-{self.state.global_step}"
        with checkpoints.new_checkpoint(folder) as part:
            self.save_model(part)
            checkpoints.save_state(part, checkpoints.TRAINING, state)
            self.state.save_to_json(str(part / checkpoints.PROGRESS))
            checkpoints.save_settings(part, self.made_with)
        best = self.state.best_model_checkpoint
        checkpoints.keep(folder, self.args.save_total_limit, None if best is None else Path(best).name)


def checkpoint_bytes(model: torch.nn.Module, arguments: TrainingArguments) -> int:
    """Return how many bytes the checkpoints to come need, at most.

    A checkpoint holds the weights and, of those that learn, two moments. One more than are kept is there for a moment;
    where all are kept, room for two is asked for. What is there already needs no room.
    """
    one = sum(p.numel() * p.element_size() * (3 if p.requires_grad else 1) for p in model.parameters())
    there = len(checkpoints.checkpoints(Path(arguments.output_dir)))
    return one * max(1, (arguments.save_total_limit or 1) + 1 - there)
