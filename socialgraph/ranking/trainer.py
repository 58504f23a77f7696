"""Training: a Trainer of transformers for groups of document graphs. Loop, precision, devices, loggers are its own."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from safetensors.torch import save_model
from torch import Tensor
from torch.utils.data import Subset
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import first_ids
from socialgraph.data.files import check_room
from socialgraph.data.groups import GroupCollator, TrainingGroups
from socialgraph.errors import (
    CheckpointError,
    InputError,
    OptionError,
    OutputError,
    SocialgraphError,
    TooLargeError,
    TrainingError,
    first_line,
)
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.ranking import processes
from socialgraph.ranking.checkpoints import Markers, check_same, last_whole, whole_checkpoints
from socialgraph.ranking.dev import Dev
from socialgraph.ranking.identity import REFUSED, SAME_WHEN_RESUMED, digest, identity_of
from socialgraph.ranking.losses import Loss, loss_resolver
from socialgraph.ranking.memory import is_out_of_memory

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
    "logging_nan_inf_filter": False,  # such a loss ends the training
    "report_to": [],
}
#: how the names of BERT's parameters begin, in every :class:`~socialgraph.nn.BertRanker`; of a
#: :class:`~socialgraph.nn.WholeDocument` all, its head too
BERT = ("embedding.", "layers.", "pooler.", "encoder.")


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

    A model that learns in stages is trained in the one that it is in: ``model.enter("document")`` before it. Groups
    whose query has no word piece are left out, with a warning.

    Args:
        model: what learns.
        builder: builds graphs; ``dataloader_num_workers`` processes do so ahead of the model (on another device than
            the CPU they read the texts, and edges and circles are the model's process's).
        groups: what is trained on, in this order, in every epoch (``train_sampling_strategy="random"`` shuffles them by
            ``seed``, in each epoch anew). :class:`~socialgraph.data.TrainingGroups` are shuffled already.
        folder: where checkpoints go (with ``save_strategy="steps"``), of which the last two are kept, or more
            (``save_total_limit``). No other process may train there.
        loss: "listwise" (the paper), "hinge", "ranknet", "binary", the dotted name of one of your own, or a function;
            see :func:`~socialgraph.ranking.loss_resolver`.
        head_learning_rate: of all parameters that are not BERT's, as KeyB has it (2e-5 for BERT and 1e-3 for the linear
            layer; Li, Popa, Chagnon, Cinar and Gaussier, TOIS 2023); None: as BERT's. The schedule scales both.
        resume: True goes on from the newest whole checkpoint in ``folder``, from the beginning where there is none: a
            training that was killed goes on with the same call, and a model made with the same seed; one that was
            finished loads its weights. A path goes on from that one.
        dev: what is measured while the model is trained, at each of ten checkpoints (``save_steps`` says otherwise). At
            the end the model has the weights of the best checkpoint, which is kept. None: nothing is measured.
        options: arguments of ``transformers.TrainingArguments``, over the paper's defaults: AdamW with
            learning rate 1e-5, batches of 8 queries, one epoch. ``report_to`` names loggers, such as "trackio",
            "tensorboard" or "wandb"; they change nothing of the training.

    Raises:
        OptionError: an argument that the library does not know or refuses, a logger that is not installed, no such
            loss, or a dev split without candidates.
        InputError: no query has a word piece.
        CheckpointError: the checkpoint to resume from is of another model or training, or the folder holds another
            program's.
        OutputError: ``folder`` cannot be written, is full, is another process's, or holds checkpoints and ``resume`` is
            False.
        TooLargeError: a step does not fit in memory.
        TrainingError: the loss or the weights are not finite any more.
    """
    if dev is not None and not dev.split.has_candidates:
        raise OptionError("dev: its split has no candidates: socialgraph.ranking.retrieve_candidates finds them")
    if "output_dir" in options:
        raise OptionError("trainer: output_dir is called folder here")
    processes.count()  # under torchrun this gives each process its GPU, before the library asks for it
    readable = _with_word_pieces(groups, builder)
    try:
        pin = {"dataloader_pin_memory": builder.device.type == "cuda"}
        chosen = DEFAULTS | pin | (options if dev is None else dev.arguments(options))
        arguments = TrainingArguments(output_dir=str(folder), remove_unused_columns=False, **chosen)
        trainer = RankingTrainer(model, arguments, readable, GroupCollator(builder), loss, head_learning_rate, dev)
    except SocialgraphError:
        raise
    except (TypeError, ValueError, RuntimeError, ImportError) as error:  # the last two: a logger is not installed
        raise OptionError(f"trainer: {first_line(error)}") from error
    trainer.remove_callback(PrinterCallback)
    if not arguments.disable_tqdm:
        trainer.remove_callback(ProgressCallback)
        trainer.add_callback(QuietProgress)
    trainer.add_callback(LogLines)
    trainer.train(resume_from_checkpoint=resume or None)
    log: list[dict[str, float]] = trainer.state.log_history
    return log


def _with_word_pieces(groups: TrainingGroups, builder: GraphBuilder) -> TrainingGroups:
    """Return the groups whose query a model can read; warn of the others.

    Raises:
        InputError: there is none.
    """
    places = tqdm(range(len(groups)), "reading queries", unit="group", delay=2, disable=None, leave=False)
    drawn = ((place, groups[place]) for place in places)
    lost = {place: group.query_id for place, group in drawn if builder.tokens.query(group.query).numel() == 0}
    if not lost:
        return groups
    silent = sorted(set(lost.values()))
    if len(lost) == len(groups):
        raise InputError(f"none of the training queries has a word piece: {first_ids(silent)}")
    logger.warning(
        "%d training queries have no word piece, their %d groups are left out: %s",
        len(silent), len(lost), first_ids(silent),
    )  # fmt: skip
    return Subset(groups, [place for place in range(len(groups)) if place not in lost])  # type: ignore[return-value]


class RankingTrainer(Trainer):
    """A Trainer whose batches are groups of document graphs and whose loss compares within a group.

    The folder is this process's alone while it trains with checkpoints. Among several processes only the first writes.

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
        OptionError: no such loss, a learning rate below 0, or an argument that is not offered.
        OutputError: the folder cannot be written.
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
        if refused := [name for name in REFUSED if getattr(arguments, name, None)]:
            raise OptionError(f"trainer: {', '.join(refused)} is not offered")
        if dev is None and arguments.eval_strategy != "no":
            raise OptionError(f"trainer: eval_strategy={arguments.eval_strategy.value} needs dev: what is measured")
        self.loss = loss_resolver(loss)
        self.builder = collator.builder
        self.dev = dev
        self.head_learning_rate = head_learning_rate
        self.takes_objective = "objective" in inspect.signature(model.forward).parameters
        self.folder = Path(arguments.output_dir)
        self.saves = arguments.save_strategy != "no"
        self.markers = Markers()
        self.reading: Path | None = None  # the checkpoint that is gone on from, until the first step
        if arguments.save_total_limit:  # the library removes the older one before the new one is marked
            arguments.save_total_limit = max(2, arguments.save_total_limit)
        processes.run_in_first(lambda: check_room(self.folder))
        measured = None if dev is None else list(dev.split.queries)
        super().__init__(model, arguments, collator, groups, measured, **options)
        # transformers divides the loss by the steps of an accumulation; before 5.17 it told accelerate to do so, too.
        self.accelerator.gradient_accumulation_steps = 1
        self.add_callback(self.markers)
        if dev is not None and dev.patience is not None:
            self.add_callback(EarlyStoppingCallback(dev.patience))

    def train(self, resume_from_checkpoint: str | Path | bool | None = None, **options: Any) -> Any:
        """Train, from the beginning or from a checkpoint; errors are those of :func:`train`.

        Args:
            resume_from_checkpoint: as ``resume`` of :func:`train`.
            options: of ``transformers.Trainer.train``.
        """
        with self._alone(), self._explained(), torch.inference_mode(False), torch.enable_grad():
            checkpoint = None
            if self.saves or resume_from_checkpoint:
                self.markers.training = self.depends_on()
                checkpoint = processes.run_in_first(lambda: self._checkpoint(resume_from_checkpoint))
            if checkpoint is None:
                result = super().train(**options)
            else:
                logger.info("going on from %s", checkpoint)
                self.reading = checkpoint
                result = super().train(str(checkpoint), **options)
            self.reading = None
            self._check_weights()
            return result

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the folder, where checkpoints are kept: two trainings there would write into each other's."""
        lock = FileLock(self.folder / ".lock")
        if self.saves and processes.is_first():
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                raise OutputError(
                    f"{self.folder}: another process trains there; wait for it, stop it, or choose another folder"
                ) from error
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in one line why a training ended, and how it goes on."""
        try:
            yield
        except OutputError as error:
            raise OutputError(f"{error}; {self._advice()}") from error
        except SocialgraphError:
            raise
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped in step {self.state.global_step + 1}; {self._advice()}") from None
        except Exception as error:
            if is_out_of_memory(error):
                size, steps = self.args.per_device_train_batch_size, self.args.gradient_accumulation_steps
                raise TooLargeError(
                    f"out of memory in step {self.state.global_step + 1}: lower per_device_train_batch_size={size} "
                    f"(and raise gradient_accumulation_steps={steps} by as much), the negatives of a group, or "
                    f"document_length; {self._advice()}"
                ) from error
            if self.reading is not None:
                raise CheckpointError(f"{self.reading}: cannot be read ({first_line(error)}); remove it") from error
            if self.markers.writing is not None:
                raise OutputError(
                    f"{self.markers.writing}: cannot be written ({first_line(error)}); free the disk; {self._advice()}"
                ) from error
            raise

    def _advice(self) -> str:
        last = last_whole(self.folder) if self.saves else None
        if last is None:
            return "no checkpoint was kept: it begins anew"
        return f"the same call goes on from {last} (of train: resume=True)"

    def _checkpoint(self, resume: str | Path | bool | None) -> Path | None:
        """Return the checkpoint to go on from, of this training; None: train from the beginning."""
        there = whole_checkpoints(self.folder)
        if not resume:
            if there:
                raise OutputError(
                    f"{there[-1]}: a checkpoint of an earlier training; go on with it (resume), remove it, "
                    "or choose another folder"
                )
            return None
        checkpoint = Path(str(resume)) if resume is not True else there[-1] if there else None
        if checkpoint is not None:
            check_same(checkpoint, self.markers.training)
        return checkpoint

    def depends_on(self) -> dict[str, Any]:
        """Return what a training depends on, as JSON has it: start, texts and options."""
        arguments, groups = self.args.to_dict(), self.train_dataset
        places = tqdm(range(len(groups)), "reading groups", unit="group", delay=2, disable=None, leave=False)
        return {
            **identity_of(self.model, self.builder),
            "stage": getattr(self.model, "stage", None),
            "loss": getattr(self.loss, "__qualname__", type(self.loss).__name__),
            "head_learning_rate": self.head_learning_rate,
            "number of groups": len(groups),
            "groups": digest(groups[place] for place in places),
            "groups in a step": self.args.train_batch_size * self.args.gradient_accumulation_steps * processes.count(),
            "options": {name: arguments.get(name) for name in SAME_WHEN_RESUMED},
        }

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: Mapping[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the loss of a batch of groups. Through ``forward``, so that a wrapped model sees the call."""

        def objective(scores: Tensor) -> Tensor:
            return self.loss(scores.float(), inputs["group"], inputs["relevant"])

        graph = self.builder.finish(inputs["graph"])
        loss = model(graph, objective) if self.takes_objective else objective(model(graph))
        return (loss, {}) if return_outputs else loss

    def training_step(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Add a batch's gradients to the model's and return its loss.

        Raises:
            TrainingError: it is not finite.
        """
        self.reading = None
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        if not loss.isfinite():
            raise self._diverged(f"the loss of step {self.state.global_step + 1} is {loss.item()}")
        return loss

    def _check_weights(self) -> None:
        if odd := [name for name, weight in self.model.named_parameters() if not weight.isfinite().all()]:
            raise self._diverged(f"after step {self.state.global_step} the weights {odd[0]!r} are not finite")

    def _diverged(self, what: str) -> TrainingError:
        last = last_whole(self.folder) if self.saves else None
        kept = f"{last} is the last good checkpoint" if last else "no checkpoint was kept"
        return TrainingError(f"{what}: the training diverges; lower learning_rate={self.args.learning_rate}; {kept}")

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        """Make the library's optimizer; where the head has its own rate, each of its groups is cut in two.

        Before anything is trained, because the schedule and checkpoints read this list.
        """
        is_new = self.optimizer is None
        optimizer: torch.optim.Optimizer = super().create_optimizer(model)
        if is_new and self.head_learning_rate is not None:
            named = (self.model if model is None else model).named_parameters()
            head = {id(parameter) for name, parameter in named if not name.startswith(BERT)}
            bert, rest = [], []
            for group in optimizer.param_groups:
                bert.append({**group, "params": [p for p in group["params"] if id(p) not in head]})
                own = [p for p in group["params"] if id(p) in head]
                rest.append({**group, "params": own, "lr": self.head_learning_rate})
            optimizer.param_groups[:] = [group for group in bert + rest if group["params"]]
        return optimizer

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Measure on dev, and write the measures into the log.

        Raises:
            OptionError: there is no ``dev``.
        """
        if self.dev is None:
            raise OptionError("trainer: evaluate needs dev: what is measured")
        measures = self.dev.measure(self.model, self.builder)
        self.log(measures)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, measures)
        return measures

    def save_model(self, output_dir: str | Path | None = None, _internal_call: bool = False) -> None:
        """Write the model, as ``save_pretrained`` where it has that, else its weights alone, as safetensors.

        Raises:
            TrainingError: its weights are not finite.
        """
        folder = Path(output_dir or self.folder)
        self._check_weights()
        if processes.is_first():
            if _internal_call:
                self.markers.begin(folder)
            folder.mkdir(parents=True, exist_ok=True)
            if isinstance(self.model, HubRanker):
                self.model.save_pretrained(folder)
            else:
                save_model(self.model, folder / "model.safetensors")
        processes.wait()  # the others write beside it


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
