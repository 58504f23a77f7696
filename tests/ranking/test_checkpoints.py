"""A training that ends early goes on to the same weights; what is another's is refused and left alone."""

from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from full_disk import files_no_larger_than
from trained import losses_of, trained
from training_task import Overlap, assert_same

from socialgraph.data import Document, Split, Tokens
from socialgraph.errors import CheckpointError, OutputError, TrainingError
from socialgraph.nn import Socialformer
from socialgraph.ranking.checkpoints import MARKER, whole_checkpoints
from socialgraph.ranking.losses import listwise_cross_entropy


@pytest.fixture
def begin(task, tmp_path):
    """Train four steps, with checkpoints after two and four, of a model that is always born the same."""

    def begun(folder=tmp_path / "training", task=task, model=None, **changes):
        torch.manual_seed(0)
        model = Socialformer.from_backbone(task[0]) if model is None else model
        torch.manual_seed(torch.seed())  # a checkpoint must bring its own random numbers
        model, log = trained(task, folder, model, **{"save_strategy": "steps", "save_steps": 2, **changes})
        return model.state_dict(), losses_of(log)

    begun.folder = tmp_path / "training"
    return begun


def stopping(last):
    """Return the listwise loss; after so many batches the user presses Ctrl-C."""
    left = [None] * last

    def loss(scores, group, relevant):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return listwise_cross_entropy(scores, group, relevant)

    return named(loss)


def named(loss):
    """Return a loss that is called as the one that it stands for."""
    loss.__qualname__ = "listwise_cross_entropy"
    return loss


@pytest.mark.parametrize(
    ("last", "options"),
    [
        (7, {"train_sampling_strategy": "random", "num_train_epochs": 3, "save_steps": 5}),  # in the midst of an epoch
        (7, {"gradient_accumulation_steps": 2, "num_train_epochs": 3, "save_steps": 1, "head_learning_rate": 1e-2}),
        (7, {"dataloader_num_workers": 2, "num_train_epochs": 2, "save_steps": 4}),  # between two epochs
    ],
)
def test_a_stopped_training_ends_with_the_same_bits(begin, tmp_path, last, options):
    weights, losses = begin(tmp_path / "quiet", **options)
    with pytest.raises(KeyboardInterrupt, match=r"stopped in step \d; the same call goes on from .*point-"):
        begin(loss=stopping(last), **{**options, "dataloader_num_workers": 0})
    again, found = begin(resume=True, **options)
    assert_same(again, weights)
    assert found == losses


def test_resume_begins_and_what_is_finished_stands(begin):
    with pytest.raises(KeyboardInterrupt, match="in step 1; no checkpoint was kept: it begins anew"):
        begin(loss=stopping(0), resume=True)
    weights, losses = begin(resume=True)
    again, found = begin(resume=True)
    assert_same(again, weights)
    assert found == losses
    with pytest.raises(OutputError, match="checkpoint-4: a checkpoint of an earlier training; go on with it"):
        begin()
    other, _ = begin(resume=begin.folder / "checkpoint-2")
    assert_same(other, weights)


def steps(folder):
    """Return the steps of the whole checkpoints."""
    return [int(path.name.removeprefix("checkpoint-")) for path in whole_checkpoints(folder)]


def test_a_checkpoint_that_is_not_whole_is_not_believed(begin):
    weights, _ = begin()
    marker = begin.folder / "checkpoint-4" / MARKER
    marker.write_text("")  # as its writer leaves it that dies
    (begin.folder / "checkpoint-4" / "model.safetensors").write_bytes(b"half")
    for there in ("checkpoint-4", "checkpoint-3"):
        with pytest.raises(CheckpointError, match=rf"{there}: not whole \(its training.json: .*\); remove it"):
            begin(resume=begin.folder / there)
    assert steps(begin.folder) == [2]
    assert_same(begin(resume=True)[0], weights)
    assert steps(begin.folder) == [2, 4]
    marker.write_text("{")
    with pytest.raises(CheckpointError, match="checkpoint-4: not whole"):
        begin(resume=True)


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


@pytest.mark.parametrize("file", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"])
def test_damage_is_told_in_one_line_and_no_code_of_a_checkpoint_runs(begin, tmp_path, file):
    begin()
    path = begin.folder / "checkpoint-2" / file
    torch.save(Trap(tmp_path / "caught"), path)
    for content in (b"damaged", path.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="checkpoint-2: cannot be read") as error:
            begin(resume=begin.folder / "checkpoint-2")
        assert "\n" not in str(error.value)
        assert not (tmp_path / "caught").exists()


def test_a_model_of_the_users_own_resumes_and_one_of_ours_is_saved_as_a_model(begin, tmp_path):
    weights, _ = begin(tmp_path / "ours")
    assert_same(Socialformer.from_pretrained(tmp_path / "ours" / "checkpoint-4").state_dict(), weights)
    options = {"learning_rate": 0.1, "loss": "hinge"}
    weights, losses = begin(model=Overlap(), **options)
    again, found = begin(model=Overlap(), resume=begin.folder / "checkpoint-2", **options)
    assert_same(again, weights)
    assert found == losses


def other_text(task):
    builder = task[2]
    builder.documents = {**builder.documents, "d7": Document("d7", "w1 w2")}
    builder.tokens = Tokens(task[0])
    return {}


def other_query(task):
    folder, split, builder = task
    queries = {**split.queries, "q7": "w7 w9"}
    return {"task": (folder, Split(queries, split.qrels, split.candidates), builder)}


CHANGES = {
    "groups in a step was 4, is 8": lambda _: {"gradient_accumulation_steps": 2},
    "number of groups was 16, is 24": lambda _: {"size": 24},
    "groups was '": lambda _: {"draw": 1},
    "options.seed was 42, is 7": lambda _: {"seed": 7},
    "loss was 'listwise_cross_entropy', is 'ranknet'": lambda _: {"loss": "ranknet"},
    "config.dropout was 0.1, is 0.5": lambda task: {"model": Socialformer.from_backbone(task[0], dropout=0.5)},
    "weights was '": lambda task: {"model": Socialformer.from_backbone(task[0])},  # of another backbone, or seed
    "texts was '": other_text,
    "groups was '.*, is '": other_query,
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_training_is_not_resumed(begin, task, what):
    begin()
    before = {path: path.stat().st_mtime_ns for path in begin.folder.rglob("*")}
    with pytest.raises(CheckpointError, match=f"checkpoint-4: of other work: .*{what}"):
        begin(resume=True, **CHANGES[what](task))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_what_is_not_ours_is_left_alone(begin):
    notes = begin.folder / "checkpoint-10" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    for resume in (False, True):
        with pytest.raises(CheckpointError, match=r"checkpoint-10: not of a training of this package .*move it"):
            begin(resume=resume)
    assert notes.read_text() == "mine"
    notes.rename(begin.folder / ".tmpAbCdEf")
    notes.parent.rmdir()
    begin(save_steps=1, save_total_limit=1)  # two in any case: the older goes before the new one is whole
    names = {path.name for path in begin.folder.iterdir()}
    assert names == {".tmpAbCdEf", "checkpoint-3", "checkpoint-4"}


def test_a_disk_that_fills_up_costs_what_was_not_kept(begin, tmp_path):
    weights, _ = begin(tmp_path / "quiet")
    size = (tmp_path / "quiet" / "checkpoint-4" / "model.safetensors").stat().st_size
    batches = []

    def filling(*what):
        batches.append(what)
        if len(batches) == 3:
            full.enter_context(files_no_larger_than(room))
        return listwise_cross_entropy(*what)

    for room in (8000, size):  # for no weights, or for no optimizer
        full = ExitStack()
        batches.clear()
        with full, pytest.raises(OutputError, match=r"cannot be written .*free the disk.*; the same call .*-2"):
            begin(tmp_path / str(room), loss=named(filling))
        assert_same(begin(tmp_path / str(room), resume=True)[0], weights)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file.*cannot be written"):
        begin(tmp_path / "file" / "folder")


def diverging(step, what):
    """Return the listwise loss, which in one step is not finite, or has a gradient that is not."""
    calls = []

    def loss(scores, group, relevant):
        calls.append(1)
        value = listwise_cross_entropy(scores, group, relevant)
        if len(calls) != step:
            return value
        return value * float("nan") if what == "loss" else value + (scores - scores.detach()).abs().sqrt().sum()

    return loss


@pytest.mark.parametrize(
    ("step", "what", "told"),
    [(3, "loss", "the loss of step 3 is nan"), (3, "gradient", "the loss of step 4 is nan"),
     (4, "gradient", "after step 4 the weights '.*' are not finite")],
)  # fmt: skip
def test_a_training_that_diverges_stops_and_keeps_the_last_good_checkpoint(begin, step, what, told):
    """After a gradient that is no number the weights are none."""
    with pytest.raises(TrainingError, match=rf"{told}: the training diverges; lower learning_rate=.*-2 is the last"):
        begin(loss=diverging(step, what))
    model = Socialformer.from_pretrained(begin.folder / "checkpoint-2")
    assert all(weight.isfinite().all() for weight in model.parameters())
    assert steps(begin.folder) == [2]
