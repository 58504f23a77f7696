"""A training in a folder goes on after a kill, and in no other's; only candidates that are asked for are found."""

from pathlib import Path

import pytest
import torch
from commands import write_tales

from socialgraph import Ranker
from socialgraph.data import Collection, Document, Split, load_folder
from socialgraph.errors import CheckpointError, OptionError
from socialgraph.ranker import training
from socialgraph.ranker.training import stages, steps_taken, train_stages
from socialgraph.ranking.checkpoints import whole_checkpoints
from socialgraph.ranking.trainer import RankingTrainer

SMALL = {"document_length": 60, "query_length": 8, "window": 16}
OPTIONS = {"groups": 8, "negatives": 1, "per_device_train_batch_size": 1, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def tales(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tales")
    write_tales(folder)
    return folder


@pytest.fixture(scope="module")
def collection(tales):
    return load_folder(tales)


def ranker(tales, name="maxp", *overrides, **options):
    return Ranker.from_recipe(name, *overrides, backbone=str(tales / "bert"), **{**SMALL, **options})


def test_a_training_in_a_folder_that_is_stopped_goes_on_to_the_same_weights(tales, collection, tmp_path, monkeypatch):
    quiet = ranker(tales).fit(collection, **OPTIONS)
    with monkeypatch.context() as patch:
        step, steps = RankingTrainer.training_step, []

        def interrupted(self, *arguments):
            steps.append(1)
            if len(steps) == 6:
                raise KeyboardInterrupt
            return step(self, *arguments)

        patch.setattr(RankingTrainer, "training_step", interrupted)
        with pytest.raises(KeyboardInterrupt, match="stopped in step 6; the same call goes on from"):
            ranker(tales).fit(collection, folder=tmp_path, **OPTIONS)
    assert [path.name for path in whole_checkpoints(tmp_path)] == ["checkpoint-4", "checkpoint-5"]
    again = ranker(tales).fit(collection, folder=tmp_path, **OPTIONS)
    for name, weight in quiet.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], weight), name


def test_the_folder_of_another_training_is_refused(tales, collection, tmp_path):
    training = tmp_path / "training"
    ranker(tales).fit(collection, folder=training, **OPTIONS)
    write_tales(tmp_path / "other")
    other = ranker(tmp_path / "other")
    other.model.embedding.word.weight.data *= 2  # another backbone
    texts = {**collection.documents, "w0": Document("w0", "w1 w2")}
    for one, asked in (
        (other, collection),
        (ranker(tales, window=8), collection),
        (ranker(tales), Collection("other", texts, collection.splits)),
    ):
        before = {name: weight.clone() for name, weight in one.model.state_dict().items()}
        with pytest.raises(CheckpointError, match="of other work: "):
            one.fit(asked, folder=training, **OPTIONS)
        assert all(torch.equal(weight, before[name]) for name, weight in one.model.state_dict().items())


def summed(scores, group, relevant):
    return scores.sum() * 0 + 7


def test_a_loss_of_ones_own_is_passed_and_none_is_imported_because_a_recipe_says_so(tales, collection, tmp_path):
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    one = ranker(tales)
    one.recipe["training"] = {**one.recipe["training"], "loss": "planted.loss"}
    with pytest.raises(OptionError, match=r"the loss 'planted.loss' is not imported because a recipe says so: pass it"):
        one.fit(collection, **OPTIONS)
    for loss in (summed, f"{__name__}.summed"):
        one.fit(collection, loss=loss, **OPTIONS)
        assert one.history["training"]["loss"] in (loss, "summed")


def bare(collection):
    """Return the collection without candidates, and with a training split that nobody can answer."""
    splits = {name: Split(split.queries, split.qrels) for name, split in collection.splits.items()}
    splits["train"] = Split({"q": "nowhere"}, {"q": {"w0": 1}})
    return Collection("bare", collection.documents, splits)


def test_only_the_candidates_that_are_asked_for_are_found(tales, collection, monkeypatch):
    asked, depth = [], 3
    rerank = "socialgraph.ranking.rerank"
    monkeypatch.setattr(rerank, lambda *arguments, **_: asked.append(arguments[3]) or arguments[3])
    ranker(tales).evaluate(bare(collection), "test", depth=depth)
    (candidates,) = asked
    assert candidates.keys() <= collection["test"].queries.keys()
    assert max(map(len, candidates.values())) == depth


def test_a_text_without_word_pieces_is_last(tales):
    one = ranker(tales)
    texts = ["", "w1 w2", "w40", "\u200b"]
    with pytest.warns(UserWarning, match="2 documents have no word piece and stand last"):
        assert [place for place, _ in one.rank("w1", texts)][2:] == [0, 3]
    with pytest.warns(UserWarning, match="stand last"):
        empty, text = one.predict([("w1", ""), ("w1", "w40")])
    assert empty < text


def test_groups_are_divided_by_the_shares_and_no_stage_goes_without():
    shares = {"passage": 2, "document": 1, "selection": 1}
    assert dict(stages(shares, 8)) == {"passage": range(4), "document": range(4, 6), "selection": range(6, 8)}
    assert list(stages(None, 8)) == [(None, range(8))]
    for amount in range(1, 20):
        parts = [list(part) for _, part in stages(shares, amount)]
        assert all(parts)
        assert sorted({group for part in parts for group in part}) == list(range(amount))
    log = [{"stage": "passage", "step": 3}, {"stage": "passage", "step": 5}, {"stage": "document", "step": 2}, {}]
    assert steps_taken(log) == 7


class Anything:
    """A model of one's own that enters whatever stage it is told to."""

    def enter(self, stage):
        self.stage = stage


@pytest.mark.parametrize("stage", ["../evil", "/tmp/evil", "..", "student"])
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
    with pytest.raises(OptionError, match=f"recipe.stages: object has no stages of training, got {stage!r}"):
        train_stages(object(), None, range(3), Path("folder"), recipe)
