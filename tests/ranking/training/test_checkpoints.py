"""A checkpoint is whole or not there; what is broken, a pickle or another training's is found before it is used."""

import json
import random
import warnings

import numpy as np
import pytest
import torch

from socialgraph.errors import CheckpointError, OptionError, OutputError
from socialgraph.ranking.training import checkpoints
from socialgraph.ranking.training.checkpoints import (
    check_same,
    check_whole,
    keep,
    last_whole,
    load_state,
    load_weights,
    new_checkpoint,
    random_state,
    save_settings,
    save_state,
    set_random_state,
)  # fmt: skip

SETTINGS = {"seed": 1, "learning_rate": 1e-5}


def write(folder, step, model=None):
    """Write a checkpoint with everything that one needs."""
    from safetensors.torch import save_model

    with new_checkpoint(folder / f"checkpoint-{step}") as part:
        save_model(model or torch.nn.Linear(2, 1), part / checkpoints.WEIGHTS)
        save_state(part, checkpoints.TRAINING, {"step": step})
        (part / checkpoints.PROGRESS).write_text("{}")
        save_settings(part, SETTINGS)
    return folder / f"checkpoint-{step}"


def optimizers():
    """Yield optimizers of every kind of state: moments, none, lists of tensors, factors, several rates."""
    yield lambda p: torch.optim.AdamW([{"params": p[:1], "lr": 1e-2}, {"params": p[1:]}], amsgrad=True)
    yield lambda p: torch.optim.SGD(p, 1e-2)
    yield lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9, nesterov=True)
    yield lambda p: torch.optim.Adafactor(p, 1e-2)
    yield lambda p: torch.optim.LBFGS(p, 1e-2, max_iter=3)
    yield lambda p: torch.optim.Rprop(p, 1e-2)
    yield lambda p: torch.optim.RMSprop(p, 1e-2, momentum=0.5, centered=True)


@pytest.mark.parametrize("make", list(optimizers()))
def test_any_optimizer_goes_on_as_if_nothing_had_been(tmp_path, make):
    def train(model, optimizer, scheduler, steps):
        for step in steps:
            x = torch.linspace(-1, 1, 12).reshape(4, 3) + step

            def closure(x=x):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                return loss

            optimizer.step(closure)
            scheduler.step()

    def parts():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
        optimizer = make(list(model.parameters()))
        return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    straight, halfway, resumed = parts(), parts(), parts()
    train(*straight, range(6))
    train(*halfway, range(3))
    save_state(tmp_path, "state", [part.state_dict() for part in halfway])
    for part, state in zip(resumed, load_state(tmp_path, "state"), strict=True):
        part.load_state_dict(state)
    train(*resumed, range(3, 6))
    for one, other in zip(straight[0].parameters(), resumed[0].parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_state_comes_back_as_it_was(tmp_path):
    shared = torch.arange(4.0)
    state = {
        "numbers": [1, 0.1, True, None, float("inf"), "text", (2, (3,)), [], (), {}],
        0: {"key": torch.ones(2, 3).T, 7: torch.tensor(5, dtype=torch.uint8), "empty": torch.empty(0)},
        "shared": [shared, shared[1:], torch.randn(3).bfloat16()],
    }
    save_state(tmp_path, "state", state)
    found = load_state(tmp_path, "state")
    assert found["numbers"] == state["numbers"]
    assert isinstance(found["numbers"][6], tuple)
    for key in (0, "shared"):
        held = state[key].values() if key == 0 else state[key]
        for one, other in zip(held, found[key].values() if key == 0 else found[key], strict=True):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)
    assert list(found[0]) == ["key", 7, "empty"]
    with pytest.raises(OptionError, match=r"state\.a\.1: a checkpoint cannot hold a object"):
        save_state(tmp_path, "state", {"a": [1, object()]})


def test_random_numbers_go_on(tmp_path):
    def draw():
        return random.random(), np.random.rand(), np.random.randn(), torch.rand(1).item(), torch.randn(3).tolist()

    draw()
    save_state(tmp_path, "random", random_state())
    drawn = draw()
    assert draw() != drawn
    set_random_state(load_state(tmp_path, "random"))
    assert draw() == drawn


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "not json", "no list", "a step out", "unfinished"])
@pytest.mark.parametrize("name", ["model.safetensors", "training.json", "trainer_state.json", "settings.json"])
def test_a_broken_checkpoint_is_noticed_and_the_one_before_is_used(tmp_path, name, damage):
    good, bad = write(tmp_path, 9), write(tmp_path, 10)
    check_whole(bad)
    path, whole = bad / name, bad / "whole.json"
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[:-1])
    elif damage == "flipped":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "gone":
        path.unlink()
    elif damage == "not json":
        path = whole
        whole.write_text("{")
    elif damage == "no list":
        whole.write_text(json.dumps({n: found for n, found in json.loads(whole.read_text()).items() if n != name}))
    elif damage == "a step out":
        path = bad / ".." / name
        (tmp_path / name).write_bytes(data)
        whole.write_text(json.dumps(json.loads(whole.read_text()) | {f"../{name}": [len(data), "x"]}))
    else:
        path = whole
        whole.unlink()
    with pytest.raises(CheckpointError, match=rf"{path}: (missing|damaged)"):
        check_whole(bad)
    with pytest.warns(UserWarning, match=rf"removed what was not whole: {path}.*; checkpoint-9 is used instead"):
        assert last_whole(tmp_path) == good
    assert not bad.exists()


def test_the_newest_is_the_one_with_most_steps_and_all_may_be_broken(tmp_path):
    assert last_whole(tmp_path) is None
    for step in (2, 10, 9):
        write(tmp_path, step)
    (tmp_path / ".checkpoint-12.part").mkdir()  # of a process that was killed
    (tmp_path / "checkpoint-of-mine").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert last_whole(tmp_path).name == "checkpoint-10"
    assert not (tmp_path / ".checkpoint-12.part").exists()
    for step in (2, 10, 9):
        (tmp_path / f"checkpoint-{step}" / "whole.json").unlink()
    with pytest.warns(UserWarning, match="training starts from the beginning") as caught:
        assert last_whole(tmp_path) is None
    assert len(caught) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-of-mine"]
    with pytest.raises(CheckpointError, match="no such checkpoint"):
        check_whole(tmp_path / "checkpoint-9")


@pytest.mark.parametrize("name", ["optimizer.pt", "rng_state.pth", "training_args.bin", "x.pkl"])
def test_a_pickle_is_refused_and_left_alone(tmp_path, name):
    write(tmp_path, 1)
    checkpoint = write(tmp_path, 2)
    torch.save({}, checkpoint / name)
    for look in (lambda: check_whole(checkpoint), lambda: last_whole(tmp_path)):
        with pytest.raises(CheckpointError, match=f"{checkpoint / name}: pickles are not loaded"):
            look()
    assert checkpoint.exists()


def test_what_cannot_be_written_leaves_no_trace(tmp_path):
    first = write(tmp_path, 1)
    before = {path: path.read_bytes() for path in first.iterdir()}

    def fail(name, error):
        with new_checkpoint(tmp_path / name) as part:
            (part / "a").write_text("a")
            raise error

    with pytest.raises(RuntimeError, match="mine"):
        fail("checkpoint-1", RuntimeError("mine"))
    with pytest.raises(OutputError, match=r"checkpoint-2: cannot be written \(.*No space.*earlier .* whole"):
        fail("checkpoint-2", OSError(28, "No space left on device"))
    assert {path: path.read_bytes() for path in first.iterdir()} == before
    assert list(tmp_path.iterdir()) == [first]


def test_the_last_ones_are_kept(tmp_path):
    def steps():
        return [checkpoints.step(path) for path in checkpoints.checkpoints(tmp_path)]

    for step in (2, 4, 6, 8):
        write(tmp_path, step)
    keep(tmp_path / "checkpoint-8", None)
    assert steps() == [2, 4, 6, 8]
    keep(tmp_path / "checkpoint-6", 2)  # made again after going back to 4: 8 is of the past
    assert steps() == [4, 6]
    keep(tmp_path / "checkpoint-6", 1)
    assert steps() == [6]


def test_another_training_is_told_by_what_differs(tmp_path):
    checkpoint = write(tmp_path, 1)
    check_same(checkpoint, SETTINGS)
    with pytest.raises(CheckpointError, match=r"of another training: learning_rate was 1e-05, is 0.1; new was None"):
        check_same(checkpoint, {**SETTINGS, "learning_rate": 0.1, "new": 1})
    for text in ("[]", "{", "null", "[" * 100_000):
        (checkpoint / "settings.json").write_text(text)
        with pytest.raises(CheckpointError, match=r"settings.json: damaged"):
            check_same(checkpoint, SETTINGS)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"tensor": "x"}', '{"new": 1}', '{"dict": 3}', '{"a": 1, "b": 2}', "{" * 9]
)
def test_a_state_of_something_else_is_refused(tmp_path, text):
    save_state(tmp_path, "state", {"a": torch.ones(1)})
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"state\.json: not the state of a training"):
        load_state(tmp_path, "state")


@pytest.mark.parametrize("other", [torch.nn.Linear(3, 1), torch.nn.Linear(2, 1, bias=False), torch.nn.Conv1d(2, 1, 1)])
def test_weights_of_another_model_are_refused(tmp_path, other):
    checkpoint = write(tmp_path, 1)
    with pytest.raises(CheckpointError, match=rf"model.safetensors: does not fit {type(other).__name__} \(.*"):
        load_weights(other, checkpoint)
    (checkpoint / "model.safetensors").write_bytes(b"garbage")
    with pytest.raises(CheckpointError, match=r"model.safetensors: does not fit"):
        load_weights(torch.nn.Linear(2, 1), checkpoint)
