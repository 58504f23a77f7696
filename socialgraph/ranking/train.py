"""Training through transformers' Trainer: the loop, precision, checkpoints and devices are its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
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
from socialgraph.ranking.listwise import listwise_cross_entropy

logger = logging.getLogger(__name__)

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]

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
            :class:`~socialgraph.nn.BertRanker`.
        arguments: of the training; batch sizes count groups (queries), not documents.
        groups: what is trained on.
        collator: builds the graphs.
        loss: of scores, group and relevant; see :func:`~socialgraph.ranking.listwise_cross_entropy`.
        options: further arguments of ``transformers.Trainer``.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        arguments: TrainingArguments,
        groups: TrainingGroups,
        collator: GroupCollator,
        loss: Loss = listwise_cross_entropy,
        **options: Any,
    ) -> None:
        super().__init__(model, arguments, train_dataset=groups, data_collator=collator, **options)
        self.loss = loss

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

        loss = model(self.data_collator.builder.finish(inputs["graph"]), objective)
        return (loss, {}) if return_outputs else loss


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
    loss: Loss = listwise_cross_entropy,
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
        loss: see :class:`RankingTrainer`.
        resume: True goes on from the last checkpoint in ``folder``, a path from that one.
        options: arguments of ``transformers.TrainingArguments``, over the paper's defaults: AdamW with
            learning rate 1e-5, batches of 8 queries, one epoch.

    Raises:
        OptionError: an argument that the library does not know or refuses.
    """
    try:
        pin = {"dataloader_pin_memory": builder.device.type == "cuda"}
        arguments = TrainingArguments(output_dir=str(folder), remove_unused_columns=False, **DEFAULTS | pin | options)
    except (TypeError, ValueError) as error:
        raise OptionError(f"trainer: {str(error).splitlines()[0]}") from error
    trainer = RankingTrainer(model, arguments, groups, GroupCollator(builder, queries), loss)
    trainer.remove_callback(PrinterCallback)
    if not arguments.disable_tqdm:
        trainer.remove_callback(ProgressCallback)
        trainer.add_callback(QuietProgress)
    trainer.add_callback(LogLines)
    trainer.train(resume_from_checkpoint=resume or None)
    log: list[dict[str, float]] = trainer.state.log_history
    return log
