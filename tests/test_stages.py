from pathlib import Path

import pytest

from socialgraph.ranker import training
from socialgraph.ranker.training import train_stages
from socialgraph.recipes.stages import stages, steps_taken


def test_steps_of_all_stages_are_counted():
    log = [{"step": 3, "loss": 1.0}, {"step": 5, "loss": 0.5}, {"note": "no step"}]
    assert steps_taken(log) == 5
    assert steps_taken([{"stage": "ranker", **log[1]}, {"stage": "student", "step": 2}, log[2]]) == 7
    assert steps_taken([]) == 0


def test_groups_are_divided_by_the_shares_and_no_stage_goes_without():
    shares = {"passage": 2, "document": 1, "selection": 1}
    assert dict(stages(shares, 8)) == {"passage": range(4), "document": range(4, 6), "selection": range(6, 8)}
    assert list(stages(None, 8)) == [(None, range(8))]
    for amount in range(1, 20):
        parts = [list(part) for _, part in stages(shares, amount)]
        assert all(parts)
        assert sorted({group for part in parts for group in part}) == list(range(amount))


class Anything:
    """A model of one's own that enters whatever stage it is told to."""

    def enter(self, stage):
        self.stage = stage


@pytest.mark.parametrize("stage", ["../evil", "/tmp/evil", "a/b", "..", "student"])
def test_checkpoints_of_a_stage_stay_in_the_folder_of_the_training(stage, monkeypatch):
    places = []
    monkeypatch.setattr(
        training.ranking, "train", lambda model, builder, groups, folder, **_: places.append(folder) or []
    )
    recipe = {"stages": {stage: 1.0}, "training": {"loss": "listwise", "head_learning_rate": None, "arguments": {}}}
    train_stages(Anything(), None, range(3), Path("folder"), recipe)
    (place,) = places
    assert place.parent == Path("folder")
    assert ".." not in place.parts
