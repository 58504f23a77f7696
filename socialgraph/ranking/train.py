"""Training through transformers' Trainer: the loop, precision, checkpoints and devices are its own."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
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
from socialgraph.data.groups import GroupCollator, TrainingGroups
from socialgraph.errors import OptionError
from socialgraph.nn.bert_ranker import BertRanker
from socialgraph.ranking.losses import Loss, loss_resolver

logger = logging.getLogger(__name__)

#: how the names of BERT's parameters begin, in every :class:`~socialgraph.nn.BertRanker`
BERT = ("embedding.", "layers.")

#: what the paper says (section 4.3), and what keeps the library quiet
DEFAULTS: dict[str, Any] = {
    "learning_rate": 1e-5,
    "num_train_epochs": 1,
    "per_device_train_batch_size": 8,
    "save_strategy": "no",
    "logging_steps": 10,
    "report_to": [],
}


class RankingTrainer(Trainer):
    """A Trainer whose batches are groups of document graphs and whose loss compares within a group.

    Args:
        model: makes a loss of a batch of document graphs and an objective, see
            :class:`~socialgraph.nn.BertRanker`. One whose ``forward`` takes no ``objective`` makes scores of a batch.
        arguments: of the training; batch sizes count groups (queries), not documents.
        groups: what is trained on.
        collator: builds the graphs.
        loss: a name or a function of scores, group and relevant; see :func:`~socialgraph.ranking.loss_resolver`.
        head_learning_rate: of all parameters that are not BERT's; None: they have the same as BERT's.
        options: further arguments of ``transformers.Trainer``.

    Raises:
        OptionError: no such loss, or a learning rate below 0.
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
        self.loss = loss_resolver(loss)
        self.head_learning_rate = head_learning_rate
        self.takes_objective = "objective" in inspect.signature(model.forward).parameters
        super().__init__(model, arguments, train_dataset=groups, data_collator=collator, **options)

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

        graph = self.data_collator.builder.finish(inputs["graph"])
        loss = model(graph, objective) if self.takes_objective else objective(model(graph))
        return (loss, {}) if return_outputs else loss

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
        if logs and "loss" in logs and state.is_local_process_zero:
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
        groups: what is trained on, in this order.
        queries: query id -> text.
        folder: where checkpoints go (with ``save_strategy="steps"``).
        loss: "listwise" (the paper), "hinge", "ranknet", "binary", or a function; see :class:`RankingTrainer`.
        head_learning_rate: of all parameters that are not BERT's, as KeyB has it (2e-5 for BERT and 1e-3 for the linear
            layer; Li, Popa, Chagnon, Cinar and Gaussier, TOIS 2023); None: as BERT's. The schedule scales both.
        stage: which of the model's stages of training this is; None: the one that it is in.
        resume: True goes on from the last checkpoint in ``folder``, a path from that one.
        options: arguments of ``transformers.TrainingArguments``, over the paper's defaults: AdamW with
            learning rate 1e-5, batches of 8 queries, one epoch.

    Raises:
        OptionError: an argument that the library does not know or refuses, no such loss, or no such stage.
    """
    if stage is not None:
        if not isinstance(model, BertRanker):
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
