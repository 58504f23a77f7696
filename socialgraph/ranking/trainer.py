"""Training: a Trainer of transformers for groups of document graphs. Loop, precision, devices, loggers are its own."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import torch
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

from socialgraph.data.batches import check_shared_memory
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
    check_between,
    first_line,
)
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.ranking import processes
from socialgraph.ranking.checkpoints import Markers, check_checkpoint, whole_checkpoints
from socialgraph.ranking.dev import Dev
from socialgraph.ranking.identity import digest, identity_of
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
#: arguments that are the same from a training's beginning to its end, however often it is resumed
SAME_WHEN_RESUMED = (
    "seed", "data_seed", "num_train_epochs", "max_steps", "learning_rate", "lr_scheduler_type", "lr_scheduler_kwargs",
    "warmup_steps", "optim", "optim_args", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "max_grad_norm",
    "bf16", "fp16", "train_sampling_strategy",
)  # fmt: skip
#: arguments that would write what no training here can go on from
REFUSED = ("fsdp", "deepspeed", "push_to_hub", "save_only_model")
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
    fresh_draws: bool = False,
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
            (``save_total_limit``).
        loss: "listwise" (the paper), "hinge", "ranknet", "binary", the dotted name of one of your own, or a function;
            see :func:`~socialgraph.ranking.loss_resolver`.
        head_learning_rate: of all parameters that are not BERT's, as KeyB has it (2e-5 for BERT and 1e-3 for the linear
            layer; Li, Popa, Chagnon, Cinar and Gaussier, TOIS 2023); None: as BERT's. The schedule scales both.
        resume: True goes on from the newest whole checkpoint in ``folder``, from the beginning where there is none: a
            training that was killed goes on with the same call, and a model made with the same seed; one that was
            finished loads its weights. A path goes on from that one.
        dev: what is measured while the model is trained, at each of ten checkpoints (``save_steps`` says otherwise). At
            the end the model has the weights of the best checkpoint, which is kept. None: nothing is measured.
        fresh_draws: whether each epoch draws graphs of its own; else all see the same.
        options: arguments of ``transformers.TrainingArguments``, over the paper's defaults: AdamW with
            learning rate 1e-5, batches of 8 queries, one epoch. ``report_to`` names loggers, such as "trackio",
            "tensorboard" or "wandb"; they change nothing of the training.

    Raises:
        OptionError: an argument that the library does not know or refuses, a logger that is not installed, no such
            loss, or a dev split without candidates.
        InputError: no query has a word piece.
        CheckpointError: the checkpoint to resume from is of another model or training, or the folder holds another
            program's.
        OutputError: ``folder`` cannot be written, is full, or holds checkpoints and ``resume`` is False.
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
        collator = GroupCollator(builder, fresh_draws)
        trainer = RankingTrainer(model, arguments, readable, collator, loss, head_learning_rate, dev)
    except SocialgraphError:
        raise
    except (TypeError, ValueError, RuntimeError, ImportError) as error:  # the last two: a logger is not installed
        raise OptionError(f"trainer: {first_line(error)}") from error
    trainer.train(resume_from_checkpoint=resume or None)
    log: list[dict[str, float]] = trainer.state.log_history
    return log


def _with_word_pieces(groups: TrainingGroups, builder: GraphBuilder) -> TrainingGroups:
    """Return the groups whose query a model can read; warn of the others. Only where there are some, all are drawn.

    Raises:
        InputError: there is none.
    """
    source, _ = _source(groups)
    asked = tqdm(source.query_ids, "reading queries", unit="query", delay=2, disable=None, leave=False)
    silent = sorted(one for one in asked if builder.tokens.query(source.queries[one]).numel() == 0)
    if not silent:
        return groups
    kept = [place for place in range(len(groups)) if groups[place].query_id not in silent]
    if not kept:
        raise InputError(f"none of the training queries has a word piece: {first_ids(silent)}")
    logger.warning(
        "%d training queries have no word piece, their %d groups are left out: %s",
        len(silent), len(groups) - len(kept), first_ids(silent),
    )  # fmt: skip
    return Subset(groups, kept)  # type: ignore[return-value]


def _source(groups: Any) -> tuple[TrainingGroups, list[int]]:
    """Return what groups are drawn from, and which of all groups there they are."""
    if not isinstance(groups, Subset):
        return groups, [*range(len(groups))]
    source, places = _source(groups.dataset)
    return source, [places[place] for place in groups.indices]


class RankingTrainer(Trainer):
    """A Trainer whose batches are groups of document graphs and whose loss compares within a group, see :func:`train`.

    Batch sizes count groups (queries), not documents. Among several processes only the first writes.
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
        for name, rate in (("learning_rate", arguments.learning_rate), ("head_learning_rate", head_learning_rate)):
            if rate is not None:
                check_between(name, rate, 0, 1e12)
        if refused := [name for name in REFUSED if getattr(arguments, name, None)]:
            raise OptionError(f"trainer: {', '.join(refused)} is not offered")
        if dev is None and arguments.eval_strategy != "no":
            raise OptionError(f"trainer: eval_strategy={arguments.eval_strategy.value} needs dev: what is measured")
        check_shared_memory(arguments.dataloader_num_workers)
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
        self.remove_callback(PrinterCallback if arguments.disable_tqdm else ProgressCallback)
        if not arguments.disable_tqdm:
            self.add_callback(Bar)
        self.add_callback(self.markers)
        if collator.fresh_draws:
            if arguments.dataloader_persistent_workers:
                raise OptionError("trainer: dataloader_persistent_workers is not offered with fresh_draws")
            self.add_callback(FreshDraws(collator))
        if dev is not None and dev.patience is not None:
            self.add_callback(EarlyStoppingCallback(dev.patience))

    def train(self, resume_from_checkpoint: str | Path | bool | None = None, **options: Any) -> Any:
        """Train, from the beginning or from a checkpoint; see ``resume`` of :func:`train`, also for what is raised."""
        with self._explained(), torch.inference_mode(False), torch.enable_grad():
            if self.saves or resume_from_checkpoint:
                self.markers.training = self.depends_on()
                self.reading = processes.run_in_first(lambda: self._checkpoint(resume_from_checkpoint))
            if self.reading is not None:
                logger.info("going on from %s", self.reading)
            result = super().train(None if self.reading is None else str(self.reading), **options)
            self.reading = None
            self._check_weights()
            return result

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

    def _last(self) -> Path | None:
        """Return the newest whole checkpoint."""
        return next(reversed(whole_checkpoints(self.folder)), None) if self.saves else None

    def _advice(self) -> str:
        last = self._last()
        if last is None:
            return "no checkpoint was kept: it begins anew"
        return f"the same call goes on from {last} (of train: resume=True)"

    def _checkpoint(self, resume: str | Path | bool | None) -> Path | None:
        """Return the checkpoint to go on from, of this training; None: train from the beginning."""
        there = whole_checkpoints(self.folder)
        if there and not resume:
            told = "go on with it (resume), remove it, or choose another folder"
            raise OutputError(f"{there[-1]}: a checkpoint of an earlier training; {told}")
        if not resume or (resume is True and not there):
            return None
        checkpoint = there[-1] if resume is True else Path(resume)
        check_checkpoint(checkpoint, self.markers.training)
        return checkpoint

    def depends_on(self) -> dict[str, Any]:
        """Return what a training depends on, as JSON has it: start, texts, groups and options."""
        arguments = self.args.to_dict()
        source, places = _source(self.train_dataset)
        return {
            **identity_of(self.model, self.builder),
            "stage": getattr(self.model, "stage", None),
            "loss": getattr(self.loss, "__qualname__", type(self.loss).__name__),
            "head_learning_rate": self.head_learning_rate,
            "fresh_draws": getattr(self.data_collator, "fresh_draws", False) or None,
            "number of groups": len(places),
            "groups": digest([
                source.seed, source.negatives, places, source.positives, source.others,
                {query_id: source.queries[query_id] for query_id in source.query_ids},
            ]),
            "groups in a step": self.args.train_batch_size * self.args.gradient_accumulation_steps * processes.count(),
            **{f"options.{name}": arguments.get(name) for name in SAME_WHEN_RESUMED},
        }  # fmt: skip

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
        """Add a batch's gradients to the model's and return its loss, which must be finite."""
        self.reading = None
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        if not loss.isfinite():
            self._stop(f"the loss of step {self.state.global_step + 1} is {loss.item()}")
        return loss

    def _check_weights(self) -> None:
        if odd := [name for name, weight in self.model.named_parameters() if not weight.isfinite().all()]:
            self._stop(f"after step {self.state.global_step} the weights {odd[0]!r} are not finite")

    def _stop(self, what: str) -> NoReturn:
        last = self._last()
        kept = f"{last} is the last good checkpoint" if last else "no checkpoint was kept"
        raise TrainingError(f"{what}: the training diverges; lower learning_rate={self.args.learning_rate}; {kept}")

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        """Make the library's optimizer; where the head has its own rate, each of its groups is cut in two.

        Before anything is trained, because the schedule and checkpoints read this list.
        """
        is_new = self.optimizer is None
        optimizer: torch.optim.Optimizer = super().create_optimizer(model)
        if is_new and self.head_learning_rate is not None:
            named = (self.model if model is None else model).named_parameters()
            head = {id(parameter) for name, parameter in named if not name.startswith(BERT)}
            groups = []
            for is_head in (False, True):
                for group in optimizer.param_groups:
                    own = [parameter for parameter in group["params"] if (id(parameter) in head) is is_head]
                    groups.append({**group, "params": own, **({"lr": self.head_learning_rate} if is_head else {})})
            optimizer.param_groups[:] = [group for group in groups if group["params"]]
        return optimizer

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Measure on dev, and write the measures into the log."""
        assert self.dev is not None  # without it the constructor refuses ``eval_strategy``
        measures = self.dev.measure(self.model, self.builder)
        self.log(measures)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, measures)
        return measures

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Keep a line of the log, and write the loss, or the measures on dev, as one line of text."""
        super().log(logs, start_time)
        shown = {name.removeprefix("eval_"): logs[name] for name in logs if name == "loss" or name[:5] == "eval_"}
        if shown and self.is_world_process_zero():
            what = ", ".join(f"{name} {float(value):.3f}" for name, value in shown.items())
            with logging_redirect_tqdm():
                logger.info("step %d of %d: %s", self.state.global_step, self.state.max_steps, what)

    def save_model(self, output_dir: str | Path | None = None, _internal_call: bool = False) -> None:
        """Write the model, if its weights are finite: by ``save_pretrained``, or the weights alone as safetensors."""
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


class FreshDraws(TrainerCallback):
    """Numbers the draws by epoch, before workers are started that read the number.

    Args:
        collator: builds the graphs.
    """

    def __init__(self, collator: GroupCollator) -> None:
        self.collator = collator

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        """Begin the draw of this epoch, also where a training goes on in its middle."""
        self.collator.draw = int(state.epoch or 0)


class Bar(ProgressCallback):
    """The library's progress bar, without the dicts that it prints."""

    def on_log(self, *_: Any, **__: Any) -> None:
        """Print nothing."""
