"""A run from its configuration to its files, and many of them: one after the other, or by a launcher of Hydra.

Under torchrun or accelerate launch every process takes the same steps; the first one writes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf
from transformers import set_seed

from lab.command import logged
from lab.describe import describe_graphs
from lab.levels import evidence, reading
from lab.memory import PeakMemory
from lab.options.classes import check_parts
from lab.outcome import Outcome, Ranked
from lab.plan import Run, by_row
from lab.recipe import Recipe, check_own_classes, check_training, device, rerank, train
from lab.store import Store
from lab.task import Task, made, rank_by_first_stage, task_of
from lab.unfinished import Unfinished, locked
from socialgraph.data import Cache, TrainingGroups
from socialgraph.data.files import file_name
from socialgraph.errors import OutputError, counted
from socialgraph.ranking import Retriever, processes

log = logging.getLogger("socialgraph")

#: kinds of runs that train nothing
LEVELS = {"evidence": evidence.look, "reading": reading.read}


def execute_all(runs: Sequence[Run], may_begin: Callable[[Run], bool] = lambda run: True) -> None:
    """Execute the runs that are not finished.

    One after the other, or as ``hydra/launcher=`` says: joblib, submitit_local, submitit_slurm. What another process
    has begun is left to it.

    Args:
        runs: all that are wanted.
        may_begin: is asked before each run that is executed here.

    Raises:
        OutputError: a run that was launched elsewhere did not end; what the others have finished stands.
    """
    waiting = not_finished(runs)
    launcher = HydraConfig.get().launcher if HydraConfig.initialized() else None
    if launcher is not None and not launcher._target_.endswith("BasicLauncher"):
        launch(waiting)
        return
    find_training(waiting)
    for place, run in enumerate(waiting, 1):
        if may_begin(run):
            execute(run, f"[{place}/{len(waiting)}] ")


def find_training(runs: Sequence[Run]) -> None:
    """Look up what runs will learn from, so that a split that is not there shows before the first one is executed.

    Raises:
        InputError: it is not there.
    """
    for run in runs:
        if run.kind not in LEVELS and learns(run.config):
            _ = task_of(run.config).train


def not_finished(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that are not finished, in every process the same."""
    waiting = processes.from_first([number for number, run in enumerate(runs) if run.finished() is None])
    return [runs[number] for number in waiting]


def check_all(runs: Sequence[Run]) -> None:
    """Make what the unfinished runs are made of, so that a mistake in any shows before the first one is executed.

    Runs of one row have the same classes, which are tried once.

    Raises:
        LawError: a class of the user's own breaks a law that the rest relies on.
        OptionError: an option that a class or the training library does not take.
    """
    for some in by_row(not_finished(runs)).values():
        run = next((run for run in some if run.kind not in LEVELS), some[0])
        recipe = Recipe(run.config)
        check_parts(OmegaConf.to_container(run.config.data, resolve=True), "data")
        check_own_classes(recipe)
        if not recipe.is_first_stage and run.kind not in LEVELS:
            check_training(recipe)


def launch(runs: Sequence[Run]) -> None:
    """Hand runs to the launcher of Hydra that the user has chosen, one job for each, and wait for them."""
    if not runs:
        return
    hydra, config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
    assert hydra is not None
    context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks())
    launcher = Plugins.instance().instantiate_launcher(context, partial(execute_job, list(runs)), config)
    try:
        jobs = launcher.launch([[f"hydra.job.name={file_name(run.name)}"] for run in runs], initial_job_idx=0)
    except Exception as error:  # whatever became of a job on another machine
        cause = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise OutputError(f"a run did not end: {cause}; finished runs stand, call again for the rest") from error
    for job in jobs:
        _ = job.return_value  # raises what the job has raised


def execute_job(runs: Sequence[Run], config: DictConfig) -> None:
    """Execute the run that a launcher has chosen for this process."""
    with logged():
        execute(runs[HydraConfig.get().job.num])


def execute(run: Run, prefix: str = "") -> None:
    """Execute a run, or go on with it where it was killed; unless it is finished, or another process is at it."""
    folder = run.folder / ".unfinished" / run.name
    with locked(folder) as is_mine:
        if not is_mine:
            log.info("%s%s: another process is at it", prefix, run.name)
            return
        reason = processes.from_first(run.reason())
        unfinished = Unfinished(folder, {"splits": list(run.folders), **next(iter(run.identities.values()))})
        if reason is not None:
            if reason != "new":
                log.info("%s%s: %s; again", prefix, run.name, reason)
            with unfinished.kept_if_begun():
                outcome = carry_out(run, unfinished)
            for split, folder in run.folders.items():
                value = outcome.value(split, task_of(run.config)) | {"config": run.identities[split]}
                Store(folder).write(run.name, outcome.tests[split].ranking, value)
            log.info("%s%s: %s", prefix, run.name, outcome.summary())
        unfinished.remove()


def carry_out(run: Run, unfinished: Unfinished) -> Outcome:
    """Turn a run into its outcome."""
    config, task = run.config, task_of(run.config)
    began = time.perf_counter()
    set_seed(config.seed)  # for edges and circles that are born at random
    recipe = Recipe(config)
    if run.kind in LEVELS:
        outcome = LEVELS[run.kind](run, recipe, task)
    elif recipe.is_first_stage:
        outcome = rank_first_stage(recipe, task)
    else:
        outcome = train_and_rank(run, recipe, task, unfinished)
    outcome.seconds = time.perf_counter() - began
    return outcome


def rank_first_stage(recipe: Recipe, task: Task) -> Outcome:
    """Rank the same candidates as all other rows, by a first stage's scores."""
    config = recipe.config
    retriever = made(config.recipe.first_stage, "recipe.first_stage", Retriever).fit(task.collection.documents)
    dev, *tests = (
        Ranked.of(split, rank_by_first_stage(retriever, task.collection, split), list(config.measures))
        for split in (task.dev, *task.tests.values())
    )
    return Outcome(recipe.name, dict(zip(task.tests, tests, strict=True)), dev)


def train_and_rank(run: Run, recipe: Recipe, task: Task, unfinished: Unfinished) -> Outcome:
    """Train a recipe's model and re-rank with it; what learns nothing is ranked as it is."""
    config = run.config
    processes.count()  # under torchrun this gives each process its GPU
    memory = PeakMemory()
    builder = recipe.builder(task, Cache(run.weights) if run.weights else None)
    set_seed(config.seed)
    model = recipe.model().to(device())
    if config.trainer.compile:
        model.compile_layers()
    training = None
    if learns(config):
        groups = TrainingGroups(task.train, config.trainer.groups, config.trainer.negatives, config.seed)
        training = unfinished.trained(model, lambda: train(config, model, builder, groups, unfinished.training))
        log.info("%s: trained on %s in %.0f s", recipe.name, counted(len(groups), "group"), training.seconds)
        if run.keep_model:
            ranker = recipe.ranker(model, builder, groups, task, training.log)
            unfinished.keep_model(ranker, run.folder / "models" / file_name(run.name))
    dev_name, ranked = str(config.data.splits.dev), {}
    for split, queries in {dev_name: task.dev, **task.tests}.items():
        ranked[split] = rerank(config, queries, model, builder, unfinished.journal(split))
    size = sum(parameter.numel() for parameter in model.parameters())
    outcome = Outcome(recipe.name, {name: ranked[name] for name in task.tests}, ranked[dev_name], training, size)
    outcome.memory = memory.read()
    if "sample" in run.asked:
        outcome.also = describe_graphs(config, builder, task.test, run.asked["sample"])
    return outcome


def learns(config: DictConfig) -> bool:
    """Tell whether a run has anything to train."""
    return config.recipe.first_stage is None and config.recipe.training is not None and config.trainer.groups > 0
