"""Made-up documents say what they promise: the distance, the keys, the distractors, and nothing else differs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from socialgraph.errors import OptionError
from socialgraph.query_match import query_match
from socialgraph.testing.known_answers import KINDS, MARGIN, KnownAnswer, known_answer

NUMBERS = range(12)


def places_of_query(answer: KnownAnswer) -> Tensor:
    graph = answer.graph
    return query_match(graph, torch.zeros_like(graph.input_ids)).nonzero().flatten()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distance", [1, 7, 300])
def test_the_two_stand_that_far_apart(kind: str, distance: int) -> None:
    for number in NUMBERS:
        answer = known_answer(number, kind, 512, distance, 0)
        assert (answer.one[:, None] - answer.other).abs().min() == distance
        assert answer.one.min() >= 0
        assert max(answer.one.max(), answer.other.max()) < answer.graph.num_nodes == 512


def test_the_key_is_the_query_and_the_fact_is_none_of_it() -> None:
    for number in NUMBERS:
        answer = known_answer(number, "fact", 512, 20, 0)
        assert torch.equal(places_of_query(answer), answer.one)
        assert answer.graph.input_ids[answer.one].tolist() == answer.graph.query_ids.tolist()


def test_each_half_stands_beside_a_key_of_its_own() -> None:
    for number in NUMBERS:
        answer = known_answer(number, "halves", 512, 20, 0)
        query = places_of_query(answer)
        keys = answer.graph.input_ids[query].view(2, 2)
        assert sorted(keys.flatten().tolist()) == answer.graph.query_ids.tolist()
        for half in (answer.one, answer.other):
            assert not torch.isin(half, query).any()
            gap = (query[:, None] - half).abs().amin(1)
            assert sorted(gap.tolist())[:2] == [1, 2]  # one key is its neighbour
            assert gap.max() > 20  # the other is not


@pytest.mark.parametrize("kind", KINDS)
def test_distractors_are_keys_elsewhere(kind: str) -> None:
    for number in NUMBERS:
        alone, few, many = (known_answer(number, kind, 1024, 50, amount) for amount in (0, 4, 10))
        none, some, more = map(places_of_query, (alone, few, many))
        for found, amount in ((some, 4), (more, 10)):
            false = found[~torch.isin(found, none)]
            assert false.numel() == 2 * amount
            near = torch.cat([alone.one, alone.other, none])
            assert (false[:, None] - near).abs().min() > MARGIN
        assert torch.isin(some, more).all()  # few are among many
        amounts = many.graph.input_ids[more].unique(return_counts=True)[1]
        assert set(amounts.tolist()) == ({11} if kind == "fact" else {6})  # of each key as many


def test_documents_differ_in_what_is_asked_for_and_in_nothing_else() -> None:
    one, other = known_answer(3, "fact", 512, 10, 0), known_answer(3, "halves", 512, 200, 5)
    told = torch.cat([places_of_query(one), places_of_query(other)])
    same = torch.ones(512, dtype=torch.bool)
    same[told] = False
    assert torch.equal(one.graph.input_ids[same], other.graph.input_ids[same])
    assert torch.equal(one.graph.draw_key, other.graph.draw_key)
    another = known_answer(4, "fact", 512, 10, 0).graph
    assert not torch.equal(another.input_ids, one.graph.input_ids)
    assert not torch.equal(another.draw_key, one.graph.draw_key)


def test_the_key_comes_before_and_behind_the_fact_and_anywhere() -> None:
    answers = [known_answer(number, "fact", 512, 10, 0) for number in range(60)]
    first = [bool(answer.one.max() < answer.other.min()) for answer in answers]
    assert 15 < sum(first) < 45
    starts = torch.tensor([min(int(a.one.min()), int(a.other.min())) for a in answers])
    assert (torch.bincount(starts // 128, minlength=4) >= 5).all()


def test_rare_words_weigh_more_and_keys_are_rarest() -> None:
    graph = known_answer(0, "fact", 2048, 10, 3).graph
    word, count = graph.input_ids.unique(return_counts=True)
    weight = torch.stack([graph.tfidf[graph.input_ids == w][0] for w in word]) / count  # idf
    assert (weight.diff() >= 0).all()  # words are numbered from the most common on
    assert (weight[-2:] == weight.max()).all()
    assert torch.equal(word[-2:], graph.query_ids)
    assert count[-2:].tolist() == [4, 4]  # the key and three distractors
    top = word[count.argmax()]
    assert top - 1000 < 20  # Zipf: the most said word is one of the first
    assert count.float().median() <= 2


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(OptionError, match="kind must be one of fact, halves, got 'riddle'"):
        known_answer(0, "riddle", 512, 10, 0)
    with pytest.raises(OptionError, match="a document of 64 words has no room for 0 distractors and an answer that"):
        known_answer(0, "fact", 64, 100, 0)
    with pytest.raises(OptionError, match="no room for 200 distractors"):
        known_answer(0, "fact", 256, 10, 200)
