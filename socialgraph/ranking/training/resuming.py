"""What a training knows beside its weights and its log, written as safetensors and given back when it is resumed.

The library keeps it in pickles. Beside a checkpoint's weights it looks for them, finds none, and goes on without. Its
public events are the moments to give back what they would have held, and some of what it forgets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from socialgraph.errors import CheckpointError, first_line
from socialgraph.ranking import processes
from socialgraph.ranking.training import checkpoints


def state_of(trainer: Trainer) -> dict[str, Any]:
    """Return all that :class:`Resumed` gives back. All processes call it together."""
    scaler = getattr(trainer.accelerator, "scaler", None)
    mine = {
        "random": checkpoints.random_state(),
        "loss": trainer._tr_loss.item(),  # since the last line of the log
        "logged": trainer._globalstep_last_logged,  # the step of that line
        "total": trainer._total_loss_scalar,  # of the losses up to there
    }
    return {
        "optimizer": trainer.optimizer.state_dict(),
        "scheduler": trainer.lr_scheduler.state_dict(),
        "scaler": scaler.state_dict() if scaler else None,
        "processes": processes.from_all(mine),
    }


class Resumed(TrainerCallback):
    """Gives a training back what it knew when a checkpoint was written.

    Args:
        trainer: of the training.
        checkpoint: a whole one.

    Raises:
        CheckpointError: it does not hold such a state; here or when the training begins.
    """

    def __init__(self, trainer: Trainer, checkpoint: Path) -> None:
        self.trainer = trainer
        self.checkpoint = checkpoint
        self.state = checkpoints.load_state(checkpoint, checkpoints.TRAINING)
        self.random: dict[str, Any] | None = None  # until it is restored

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **options: Any
    ) -> None:
        """Restore optimizer, schedule and the sums of losses, which the library has just set to 0."""
        trainer = self.trainer
        try:
            trainer.optimizer.load_state_dict(self.state["optimizer"])
            trainer.lr_scheduler.load_state_dict(self.state["scheduler"])
            if self.state["scaler"]:
                trainer.accelerator.scaler.load_state_dict(self.state["scaler"])
            everyone = self.state["processes"]
            if processes.number() < len(everyone):  # else there are more processes than before: these are new
                mine = everyone[processes.number()]
                self.random = mine["random"]
                trainer._tr_loss += mine["loss"]
                trainer._globalstep_last_logged = mine["logged"]
                trainer._total_loss_scalar = mine["total"]
        except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise CheckpointError(
                f"{self.checkpoint}: optimizer and scheduler do not fit this training ({first_line(error)})"
            ) from error
        self.state = {}  # two moments for each weight

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **options: Any
    ) -> None:
        """Restore random numbers between two epochs: the loader is about to draw the next one's seed from them."""
        if state.epoch % 1 == 0:
            self._restore_random()

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **options: Any
    ) -> None:
        """Restore random numbers inside an epoch: batches that are skipped may have drawn some on the way here."""
        self._restore_random()

    def _restore_random(self) -> None:
        if self.random is not None:
            checkpoints.set_random_state(self.random)
            self.random = None
