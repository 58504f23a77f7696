"""Train a model: the library's arguments, its lines of log, and :class:`~socialgraph.ranking.RankingTrainer`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from tqdm.contrib.logging import logging_redirect_tqdm
from transformers import (
    PrinterCallback,
    ProgressCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.groups import GroupCollator, TrainingGroups
from socialgraph.errors import OptionError
from socialgraph.ranking.training.dev import Dev
from socialgraph.ranking.training.losses import Loss
from socialgraph.ranking.training.trainer import RankingTrainer

logger = logging.getLogger(__name__)

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
        """Write the step with the loss, or with the measures on dev."""
        logs = logs or {}
        shown = {name.removeprefix("eval_"): logs[name] for name in logs if name == "loss" or name[:5] == "eval_"}
        if shown and state.is_world_process_zero:
            what = ", ".join(f"{name} {float(value):.3f}" for name, value in shown.items())
            with logging_redirect_tqdm():
                logger.info("step %d of %d: %s", state.global_step, state.max_steps, what)


class QuietProgress(ProgressCallback):
    """The progress bar without the printed dicts."""

    def on_log(self, *_: Any, **__: Any) -> None:
        """Print nothing."""


def train(
    model: torch.nn.Module,
    builder: GraphBuilder,
    groups: TrainingGroups,
    folder: str | Path,
    loss: str | Loss = "listwise",
    head_learning_rate: float | None = None,
    resume: bool | str = False,
    dev: Dev | None = None,
    **options: Any,
) -> list[dict[str, float]]:
    """Train a model in place and return the log: one dict for each line, with loss and learning rate.

    A model that learns in stages is trained in the one that it is in: ``model.enter("document")`` before it.

    Args:
        model: what learns.
        builder: builds graphs; ``dataloader_num_workers`` processes do so ahead of the model (on another device than
            the CPU they read the texts, and edges and circles are the model's process's).
        groups: what is trained on, in this order, in every epoch (``train_sampling_strategy="random"`` shuffles them by
            ``seed``, in each epoch anew). :class:`~socialgraph.data.TrainingGroups` are shuffled already.
        folder: where checkpoints go (with ``save_strategy="steps"``), of which the last two are kept
            (``save_total_limit``). No other process may train there.
        loss: "listwise" (the paper), "hinge", "ranknet", "binary", or a function; see :class:`RankingTrainer`.
        head_learning_rate: of all parameters that are not BERT's, as KeyB has it (2e-5 for BERT and 1e-3 for the linear
            layer; Li, Popa, Chagnon, Cinar and Gaussier, TOIS 2023); None: as BERT's. The schedule scales both.
        resume: True goes on from the newest whole checkpoint in ``folder``, from the beginning where there is none: a
            training that was killed goes on with the same call, one that was finished loads its weights. A path goes on
            from that one.
        dev: what is measured while the model is trained, at each of ten checkpoints (``save_steps`` says otherwise). At
            the end the model has the weights of the best checkpoint, which is kept. None: nothing is measured.
        options: arguments of ``transformers.TrainingArguments``, over the paper's defaults: AdamW with
            learning rate 1e-5, batches of 8 queries, one epoch. ``report_to`` names loggers, such as "trackio",
            "tensorboard" or "wandb"; they change nothing of the training.

    Raises:
        OptionError: an argument that the library does not know or refuses, no such loss, or a dev split without
            candidates.
        CheckpointError: the checkpoint to resume from is broken, holds a pickle, or is of another model or training.
        OutputError: ``folder`` cannot be written, is full, is another process's, or holds checkpoints and ``resume`` is
            False.
        TooLargeError: a group does not fit in memory even alone.
    """
    if dev is not None and not dev.split.has_candidates:
        raise OptionError("dev: its split has no candidates: socialgraph.ranking.retrieve_candidates finds them")
    try:
        pin = {"dataloader_pin_memory": builder.device.type == "cuda"}
        chosen = DEFAULTS | pin | (options if dev is None else dev.arguments(options))
        arguments = TrainingArguments(output_dir=str(folder), remove_unused_columns=False, **chosen)
    except (TypeError, ValueError) as error:
        raise OptionError(f"trainer: {str(error).splitlines()[0]}") from error
    trainer = RankingTrainer(model, arguments, groups, GroupCollator(builder), loss, head_learning_rate, dev)
    trainer.remove_callback(PrinterCallback)
    if not arguments.disable_tqdm:
        trainer.remove_callback(ProgressCallback)
        trainer.add_callback(QuietProgress)
    trainer.add_callback(LogLines)
    trainer.train(resume_from_checkpoint=resume or None)
    log: list[dict[str, float]] = trainer.state.log_history
    return log
