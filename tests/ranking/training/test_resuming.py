"""A training that ends early goes on to the same weights; another one's checkpoints are refused."""

import hashlib
import json
import shutil
from collections import namedtuple
from contextlib import ExitStack

import pytest
import torch
from full_disk import files_no_larger_than
from trained import losses_of, trained
from training_task import Overlap, assert_same
from transformers import TrainingArguments

from socialgraph.data import GroupCollator, TrainingGroups
from socialgraph.data.files import only_here
from socialgraph.edges import SocialEdges, StaticDistance
from socialgraph.errors import CheckpointError, OptionError, OutputError
from socialgraph.nn import Socialformer
from socialgraph.ranking import RankingTrainer
from socialgraph.ranking.training.checkpoints import checkpoints, last_whole
from socialgraph.ranking.training.losses.listwise import listwise_cross_entropy
from socialgraph.ranking.training.trainer import checkpoint_bytes


def logged(task, folder, **changes):
    """Train four steps with checkpoints after two and four; ``changes`` of the arguments. Return model and log."""
    return trained(task, folder, **{"save_strategy": "steps", "save_steps": 2, **changes})


def begin(task, folder, **changes):
    """Return model and losses of such a training."""
    model, log = logged(task, folder, **changes)
    return model, losses_of(log)


def test_a_checkpoint_is_a_saved_model_and_holds_no_pickle(task, tmp_path):
    model, _ = begin(task, tmp_path)
    files = {path.name for path in (tmp_path / "checkpoint-4").iterdir()}
    assert files == {
        "README.md", "config.json", "model.safetensors", "settings.json", "trainer_state.json", "training.json",
        "training.safetensors", "whole.json",
    }  # fmt: skip
    assert_same(Socialformer.from_pretrained(tmp_path / "checkpoint-4").state_dict(), model.state_dict())
    arguments = TrainingArguments(str(tmp_path / "b"), use_cpu=True)
    trainer = RankingTrainer(Overlap(), arguments, TrainingGroups(task[1], 8), GroupCollator(task[2]))
    trainer.save_model(tmp_path / "c")
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["model.safetensors"]


def test_resume_begins_goes_on_and_leaves_what_is_finished(task, tmp_path):
    begun, losses = begin(task, tmp_path, resume=True)
    finished, again = begin(task, tmp_path, resume=True)
    assert_same(finished.state_dict(), begun.state_dict())
    assert again == losses
    (tmp_path / "checkpoint-4" / "whole.json").unlink()
    with pytest.warns(UserWarning, match="checkpoint-4/whole.json: missing.*checkpoint-2 is used instead"):
        halfway, again = begin(task, tmp_path, resume=True)
    assert_same(halfway.state_dict(), begun.state_dict())
    assert again == losses
    assert last_whole(tmp_path).name == "checkpoint-4"


@pytest.mark.parametrize("every", [1, 3, 10])  # lines of the log before, around and never before the checkpoint
def test_a_resumed_training_ends_with_the_mean_loss_of_all_steps(task, tmp_path, every):
    _, whole = logged(task, tmp_path, logging_steps=every)
    mean = whole[-1]["train_loss"]
    _, halfway = logged(task, tmp_path, logging_steps=every, resume=str(tmp_path / "checkpoint-2"))
    _, finished = logged(task, tmp_path, logging_steps=every, resume=True)
    assert halfway[-1]["train_loss"] == finished[-1]["train_loss"] == mean
    if every == 1:
        assert mean == pytest.approx(sum(line["loss"] for line in whole[:-1]) / 4)


def test_a_model_of_the_users_own_resumes(task, tmp_path):
    begun, losses = begin(task, tmp_path, model=Overlap(), fp16=False, learning_rate=0.1)
    resumed, again = begin(task, tmp_path, model=Overlap(), learning_rate=0.1, resume=str(tmp_path / "checkpoint-2"))
    assert_same(resumed.state_dict(), begun.state_dict())
    assert again == losses


def test_one_checkpoint_may_be_kept(task, tmp_path):
    begin(task, tmp_path, save_total_limit=1, save_steps=1)
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-4"]
    (tmp_path / "all").mkdir()
    begin(task, tmp_path / "all", save_total_limit=None, save_steps=1)
    assert len(checkpoints(tmp_path / "all")) == 4


def test_resumes_with_two_rates_to_the_same_weights(task, tmp_path):
    weights = []
    for seed, resume in enumerate((False, str(tmp_path / "checkpoint-2"))):
        torch.manual_seed(seed)  # another head, which the checkpoint has to replace
        model, _ = begin(task, tmp_path, head_learning_rate=1e-2, resume=resume)
        weights.append(model.state_dict())
    assert_same(*weights)


CHANGES = {
    "groups in a step was 4, is 2": {"per_device_train_batch_size": 2},
    "groups in a step was 4, is 8": {"gradient_accumulation_steps": 2},
    "number of groups was 16, is 24": {"size": 24},
    "groups was '": {"draw": 1},
    "seed was 42, is 7": {"seed": 7},
    "learning_rate was 0.002, is 0.1": {"learning_rate": 0.1},
    "adam_beta2 was 0.999, is 0.9": {"adam_beta2": 0.9},
    "num_train_epochs was 1, is 2": {"num_train_epochs": 2},
    "loss was 'listwise_cross_entropy', is 'ranknet'": {"loss": "ranknet"},
    "head_learning_rate was None, is 0.1": {"head_learning_rate": 0.1},
}


def test_another_training_is_not_resumed(task, tmp_path):
    begin(task, tmp_path)
    for what, change in CHANGES.items():
        with pytest.raises(CheckpointError, match=f"checkpoint-4: of another training: .*{what}"):
            begin(task, tmp_path, resume=True, **change)
    task[2].edges = SocialEdges([StaticDistance()])
    with pytest.raises(CheckpointError, match="graph's edges was 'SocialEdges"):
        begin(task, tmp_path, resume=True)
    assert len(checkpoints(tmp_path)) == 2


def test_another_model_is_not_resumed(task, tmp_path):
    begin(task, tmp_path)
    other = Socialformer.from_backbone(task[0], inter_shared=True)
    with pytest.raises(CheckpointError, match=r"model.safetensors: does not fit Socialformer \(.*inter"):
        begin(task, tmp_path, resume=True, model=other)
    with pytest.raises(CheckpointError, match="model was 'Socialformer', is 'Overlap'"):
        begin(task, tmp_path, resume=True, model=Overlap())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("trainer_state.json", "[]", "trainer_state.json: damaged"),
        ("trainer_state.json", '{"nothing": 1}', "trainer_state.json: damaged"),
        ("training.json", "[]", "do not fit this training"),
        ("training.json", "{", "not the state of a training"),
    ],
)
def test_a_checkpoint_made_by_hand_is_refused(task, tmp_path, name, text, message):
    begin(task, tmp_path)
    checkpoint = tmp_path / "checkpoint-4"
    whole = json.loads((checkpoint / "whole.json").read_text())
    (checkpoint / name).write_text(text)
    whole[name] = [len(text), hashlib.sha256(text.encode()).hexdigest()]
    (checkpoint / "whole.json").write_text(json.dumps(whole))
    with pytest.raises(CheckpointError, match=message):
        begin(task, tmp_path, resume=True)


def test_checkpoints_are_not_written_over_nor_by_two(task, tmp_path):
    begin(task, tmp_path)
    with pytest.raises(OutputError, match="checkpoint-4: a checkpoint of an earlier training; go on with it"):
        begin(task, tmp_path)
    with only_here(tmp_path), pytest.raises(OutputError, match="another process writes there"):
        begin(task, tmp_path, resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file.*cannot be written"):
        begin(task, tmp_path / "file" / "folder")


def test_a_disk_without_room_is_found_before_training_and_in_the_middle(task, tmp_path, monkeypatch):
    model = Socialformer.from_backbone(task[0])
    weights = sum(parameter.numel() for parameter in model.parameters()) * 4
    arguments = TrainingArguments(str(tmp_path / "a"), use_cpu=True, save_total_limit=2)
    assert checkpoint_bytes(model, arguments) == 3 * 3 * weights
    Usage = namedtuple("Usage", "free")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: Usage(9 * weights - 1))
        with pytest.raises(OutputError, match="will be written"):
            begin(task, tmp_path / "a")

    batches, full = [], ExitStack()

    def filling(*what):  # no file may be longer, from the third batch on
        batches.append(what)
        if len(batches) == 3:
            full.enter_context(files_no_larger_than(weights))
        return listwise_cross_entropy(*what)

    with full, pytest.raises(OutputError, match=r"checkpoint-4: cannot be written .*free the disk and resume"):
        begin(task, tmp_path / "b", loss=filling)
    assert [path.name for path in checkpoints(tmp_path / "b")] == ["checkpoint-2"]
    assert not list((tmp_path / "b").glob(".checkpoint*"))
    _, losses = begin(task, tmp_path / "b", loss=filling, resume=True)
    assert len(losses) == 4


@pytest.mark.parametrize("option", ["save_only_model", "push_to_hub"])
def test_checkpoints_that_hold_pickles_or_nothing_to_go_on_from_are_not_offered(task, tmp_path, option):
    with pytest.raises(OptionError, match=f"trainer: {option} is not offered"):
        begin(task, tmp_path, **{option: True})
