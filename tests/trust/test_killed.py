"""Training, re-ranking and a table are killed at random moments and begun again: each ends as if undisturbed.

``SOCIALGRAPH_CASES=5`` kills five times as often.
"""

import gzip
import json
import os
import random
import signal
import time

import torch
from cases import TIMES
from children import fresh
from commands import call, typed_for_tales, write_tales
from conftest import write_tiny_bert
from safetensors.torch import load_file, save_model
from tales import builder_of, random_texts
from training_task import assert_same, task_for

from socialgraph.data import TrainingGroups
from socialgraph.data.trec import write_run
from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer
from socialgraph.nn.idcm import IDCM
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import rerank, train
from socialgraph.ranking.checkpoints import MARKER
from socialgraph.ranking.journal import read_journal

KILLS = 4 * TIMES


def start(work, *arguments):
    """Begin a work in a process of its own."""
    child = fresh().Process(target=work, args=arguments)
    child.start()
    return child


def undisturbed(begin, folder):
    """Let a work end in a new folder; return how many seconds it took once it had begun."""
    folder.mkdir(parents=True)
    child = begin(folder)
    begun = time.perf_counter()
    child.join()
    assert child.exitcode == 0
    return time.perf_counter() - begun


def killed(begin, folder, moment):
    """Kill a work :data:`KILLS` times, in as many new folders as that takes; in each it goes on until it ends.

    Args:
        begin: begins the work in a folder, or goes on with it; returns the process.
        folder: where the folders are made.
        moment: waits, for a process and its folder, for the moment at which it is killed.

    Returns:
        Of each folder how often the work was killed in it.
    """
    deaths = {}
    while sum(deaths.values()) < KILLS:
        here = folder / f"killed-{len(deaths)}"
        here.mkdir()
        deaths[here], has_ended = 0, False
        while not has_ended:
            child = begin(here)
            if sum(deaths.values()) < KILLS:
                moment(child, here)
                child.kill()
            child.join()
            has_ended = child.exitcode != -signal.SIGKILL
            deaths[here] += not has_ended
        assert child.exitcode == 0, f"{here}: ended with {child.exitcode}"
    return deaths


# --- training: three stages of a cascade, with dropout, accumulation and a checkpoint every other step ---------------

OPTIONS = {
    "learning_rate": 2e-3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_train_epochs": 2,
    "logging_steps": 3, "save_strategy": "steps", "save_steps": 2, "use_cpu": True, "disable_tqdm": True,
}  # fmt: skip


def cascade(bert):
    """Return a model with three stages of training."""
    return IDCM.from_backbone(str(bert), chunks=2, kernels=3)


def train_cascade(bert, run):
    """Train what is left to train, and write the weights; what is said goes to a file."""
    torch.set_num_threads(1)
    with open(run / "errors", "a") as errors:
        os.dup2(errors.fileno(), 1)
        os.dup2(errors.fileno(), 2)
    split, builder = task_for(bert, edges=False)
    groups = TrainingGroups(split, size=16, negatives=2)
    torch.manual_seed(os.getpid())  # what a checkpoint does not restore would show
    model = cascade(bert)
    model.load_state_dict(load_file(bert / "start.safetensors"))
    for stage in model.stages:
        model.enter(stage)
        log = train(model, builder, groups, run / stage, resume=True, **OPTIONS)
        assert log[-1]["step"] == 8
    save_model(model, str(run / "end.safetensors"))


def half_written(run):
    """Return the checkpoints that are being written, or were when the process died."""
    return {path.parent for path in run.glob(f"*/*/{MARKER}") if not path.read_text()}


def test_a_killed_training_ends_with_the_same_weights(tmp_path):
    """Half of the kills fall anywhere, half of them while a checkpoint is being written."""
    bert = tmp_path / "bert"
    write_tiny_bert(bert, num_hidden_layers=2)
    save_model(cascade(bert), str(bert / "start.safetensors"))

    def begin(run):
        return start(train_cascade, bert, run)

    def moment(child, run):
        if random.random() < 0.5:
            nth, names = random.randrange(1, 4), set()
            while len(names) < nth and child.exitcode is None:
                names |= half_written(run)
                time.sleep(0.0005)
            time.sleep(random.uniform(0, 0.02))
        else:
            child.join(random.uniform(0, seconds / 2))

    seconds = undisturbed(begin, tmp_path / "undisturbed")
    weights = load_file(tmp_path / "undisturbed" / "end.safetensors")
    for run in killed(begin, tmp_path, moment):
        assert_same(load_file(run / "end.safetensors"), weights)


# --- re-ranking ------------------------------------------------------------------------------------------------------

QUERIES = {f"q{i}": f"w{i} w{i + 1} w{2 * i}" for i in range(6)}


def rank(bert, folder):
    """Rank 60 documents for 6 queries; each batch leaves a byte, which outlives the process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)  # each process makes the same
    edges = SocialEdges([StaticDistance(), StaticCentrality()])
    builder = builder_of(str(bert), random_texts(range(20, 140, 2)), edges, EdgeCircles(k=2), Windows(32))
    model = Socialformer.from_backbone(str(bert))
    candidates = {query_id: dict.fromkeys(builder.documents, 1.0) for query_id in QUERIES}
    calls = os.open(folder / "calls", os.O_WRONLY | os.O_APPEND)
    model.register_forward_hook(lambda *_: os.write(calls, b".") and None)
    options = {"token_budget": 200, "progress": False, "journal": folder / "journal"}
    write_run(folder / "result", rerank(model, builder, QUERIES, candidates, **options))


def test_a_killed_reranking_ends_with_the_same_run_and_repeats_only_the_batch_in_flight(tmp_path):
    bert = tmp_path / "bert"
    write_tiny_bert(bert)

    def begin(here):
        (here / "calls").touch()
        return start(rank, bert, here)

    def done(here):
        return (here / "calls").stat().st_size

    def moment(child, here):
        last = done(here) + random.randrange(batches // 2)
        while done(here) <= last and child.exitcode is None:
            time.sleep(0.0005)
        time.sleep(random.uniform(0, 0.02))

    quiet = tmp_path / "undisturbed"
    undisturbed(begin, quiet)
    batches = done(quiet)
    assert batches > 20
    for here, deaths in killed(begin, tmp_path, moment).items():
        assert (here / "result").read_bytes() == (quiet / "result").read_bytes(), f"{here.name} has another result"
        assert batches <= done(here) <= batches + deaths
        assert [*read_journal(here / "journal").items()] == [*read_journal(quiet / "journal").items()]


# --- a table ---------------------------------------------------------------------------------------------------------


def make_table(folder, results):
    """Make a table of a first stage, two models that are trained, and one that is trained in stages."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    os.chdir(results.parent)
    typed = [
        "table=table1", "size.long=48", "trainer.groups=24", "trainer.save_every=4", "trainer.token_budget=60",
        "rows=[bm25,parade,socialformer-node,idcm]", f"results={results}",
    ]  # fmt: skip
    call("run", *typed_for_tales(folder), *typed)


def finished(results):
    """Return file -> content of all that is finished, without times, memory and versions."""
    found = {}
    for path in sorted((results / "tales" / "test").glob("*.*")):
        if path.suffix == ".gz":
            found[path.name] = gzip.decompress(path.read_bytes())
        elif path.suffix == ".json":
            value = json.loads(path.read_text())
            losses = [(line["step"], line["loss"]) for line in value["training"] if "loss" in line]
            found[path.name] = value["measures"], value["dev_measures"], value["sha256"], losses
    return found


def test_a_killed_table_goes_on_and_no_finished_row_is_touched(tmp_path):
    child, made = start(write_tales, tmp_path / "tales"), {}
    child.join()

    def assert_nothing_is_made_twice(results):
        for path in results.rglob("*.run.gz"):
            assert made.setdefault(path, path.stat().st_mtime_ns) == path.stat().st_mtime_ns

    def begin(results):
        assert_nothing_is_made_twice(results)
        return start(make_table, tmp_path / "tales", results)

    seconds = undisturbed(begin, tmp_path / "whole")
    whole = finished(tmp_path / "whole")
    assert len(whole) == 8
    assert all(len(value) > 0 for value in whole.values())
    for results in killed(begin, tmp_path, lambda child, _: child.join(random.uniform(0.05, 1) * seconds / 2)):
        assert_nothing_is_made_twice(results)
        assert finished(results) == whole
        assert not (results / "tales" / "test" / ".unfinished").exists()
