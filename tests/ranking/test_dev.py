"""Measuring while training changes nothing of it; the best checkpoint is kept and loaded; patience ends it."""

import pytest
import torch
from safetensors.torch import load_file
from trained import losses_of, trained
from training_task import assert_same

from socialgraph.data import Split
from socialgraph.errors import OptionError
from socialgraph.ranking import Dev
from socialgraph.ranking.checkpoints import whole_checkpoints


def fit(task, folder, dev, **changes):
    """Train eight steps with a checkpoint after each; return model and log."""
    torch.manual_seed(0)
    options = {"save_strategy": "steps", "save_steps": 1, **changes}
    options = {name: value for name, value in options.items() if value is not None}
    return trained(task, folder, size=32, dev=dev, **options)


def measured(log):
    return [line["eval_nDCG@10"] for line in log if "eval_nDCG@10" in line]


class Scripted(Dev):
    """Measures what it is told, one value a time."""

    values = ()

    def measure(self, model, builder):
        model.eval()
        return {"eval_nDCG@10": self.values[self.seen.append(1) or len(self.seen) - 1]}


def scripted(split, values, patience=None):
    dev = Scripted(split, patience=patience)
    object.__setattr__(dev, "values", values)
    object.__setattr__(dev, "seen", [])
    return dev


def test_measuring_changes_no_loss_and_real_measures_lie_in_their_range(task, tmp_path):
    _, alone = fit(task, tmp_path / "alone", None)
    _, looked = fit(task, tmp_path / "looked", Dev(task[1], ["nDCG@10", "RR@10"]))
    assert losses_of(looked) == losses_of(alone)
    assert len(measured(looked)) == 8
    assert all(0 <= value <= 1 for value in measured(looked))
    assert len([line for line in looked if "eval_RR@10" in line]) == 8


def test_the_best_checkpoint_is_kept_and_loaded(task, tmp_path):
    values = [0.1, 0.5, 0.9, 0.2, 0.9, 0.3, 0.4, 0.8]
    model, _ = fit(task, tmp_path, scripted(task[1], values), save_total_limit=2)
    assert [path.name for path in whole_checkpoints(tmp_path)] == ["checkpoint-3", "checkpoint-8"]
    assert_same(model.state_dict(), load_file(tmp_path / "checkpoint-3" / "model.safetensors"))


def test_patience_ends_a_training_and_one_that_is_resumed_where_it_would_have_ended(task, tmp_path):
    values = [0.1, 0.5, 0.4, 0.5, 0.3, 0.9, 0.9, 0.9]
    model, log = fit(task, tmp_path, scripted(task[1], values, patience=3), save_total_limit=8)
    assert measured(log) == values[:5]  # 0.5 again is not better
    for last in (3, 4):
        resumed = {"resume": tmp_path / f"checkpoint-{last}", "save_total_limit": 8}
        again, log = fit(task, tmp_path, scripted(task[1], values[last:], patience=3), **resumed)
        assert measured(log) == values[:5]
        assert_same(again.state_dict(), model.state_dict())
    assert_same(model.state_dict(), load_file(tmp_path / "checkpoint-2" / "model.safetensors"))


@pytest.mark.parametrize(
    ("options", "told"),
    [({"measures": []}, "measure"), ({"measures": ["nDCG@0"]}, "measure"), ({"patience": 1.5}, "dev: patience")],
)
def test_bad_options(task, options, told):
    with pytest.raises(OptionError, match=told):
        Dev(task[1], **options)


def test_a_training_says_what_it_misses(task, tmp_path):
    with pytest.raises(OptionError, match="eval_strategy=steps needs dev"):
        fit(task, tmp_path, None, eval_strategy="steps", eval_steps=1)
    with pytest.raises(OptionError, match="dev: its split has no candidates:"):
        fit(task, tmp_path, Dev(Split(task[1].queries, task[1].qrels)))


def test_there_are_ten_checkpoints_in_a_training_or_one_a_step(task, tmp_path):
    values = [0.1, 0.9, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    model, log = fit(task, tmp_path, scripted(task[1], values), save_strategy=None, save_steps=None)
    assert measured(log) == values
    assert_same(model.state_dict(), load_file(tmp_path / "checkpoint-2" / "model.safetensors"))
