"""Re-ranking that is stopped goes on: nothing is scored twice, other work is refused, a full disk spoils nothing."""

import json
import math
from contextlib import contextmanager
from unittest import mock

import pytest
import torch
from full_disk import files_no_larger_than
from tales import builder_of, random_texts

from socialgraph.data import Document, PassageBM25, TermStatistics
from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import CheckpointError, OutputError
from socialgraph.nn import Socialformer
from socialgraph.partition import NodeCircles, Windows
from socialgraph.ranking import rerank
from socialgraph.ranking.journal import read_journal

QUERIES = {"q1": "w1 w2", "q2": "w3", "q3": "w9 w8 w7"}


class PowerCut(Exception):
    """Work is stopped in the middle."""


@contextmanager
def counted(model, stop_after):
    """Keep what a model is given, batch by batch; at the one after ``stop_after`` everything stops."""
    batches, compute = [], model.forward

    def counting(batch):
        if len(batches) >= stop_after:
            raise PowerCut
        batches.append(batch)
        return compute(batch)

    with mock.patch.object(model, "forward", counting):
        yield batches


@pytest.fixture
def builder(tiny_bert):
    texts, edges = random_texts([3 + 11 * i for i in range(8)]), SocialEdges([StaticDistance(), StaticCentrality()])
    return builder_of(tiny_bert[0], texts, edges, NodeCircles(k=2), Windows(32), PassageBM25())


@pytest.fixture
def model(tiny_bert):
    torch.manual_seed(1)
    return Socialformer.from_backbone(tiny_bert[0])


@pytest.fixture
def ranked(builder, model, tmp_path):
    """Return a function that re-ranks with a journal, and counts the batches that are scored."""

    def run(stop_after=math.inf, journal=tmp_path / "journal", queries=QUERIES, **options):
        candidates = {query_id: dict.fromkeys(builder.documents, 1.0) for query_id in queries}
        options = {"token_budget": 60, "progress": False, **options}
        with counted(model, stop_after) as calls:
            return rerank(model, builder, queries, candidates, journal=journal, **options), len(calls)

    run.path = tmp_path / "journal"
    return run


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_finished_is_not_scored_again(ranked, workers):
    whole, total = ranked(journal=None)
    for stop_after in (3, 0, 5):
        with pytest.raises(PowerCut):
            ranked(stop_after, workers=workers)
    found, calls = ranked(workers=workers)
    assert calls == total - 8
    assert [list(scores.items()) for scores in found.values()] == [list(scores.items()) for scores in whole.values()]
    lines = ranked.path.read_text().splitlines()[1:]
    assert len({(query, document) for line in lines for query, document, _ in json.loads(line)}) == 24
    assert ranked() == (whole, 0)


def test_ctrl_c_says_how_to_go_on(model, ranked):
    def stopped(*_):
        raise KeyboardInterrupt

    model.register_forward_hook(stopped)
    for journal, told in ((None, "nothing is kept without a journal"), (ranked.path, "goes on from .*/journal$")):
        with pytest.raises(KeyboardInterrupt, match=f"re-ranking was stopped; .*{told}"):
            ranked(journal=journal)


@pytest.mark.parametrize("torn", [b'[["q1", "d', b"\x00\x00\x00", b'[["q1", "d1", "much"]]', b"7"])
def test_a_torn_line_costs_its_batch_alone(ranked, torn):
    whole, _ = ranked()
    lines = ranked.path.read_bytes().split(b"\n")
    for kept in (1, 4, len(lines)):
        ranked.path.write_bytes(b"\n".join([*lines[:kept], torn]))
        assert ranked() == (whole, len(lines) - kept)
        assert len(read_journal(ranked.path)) == 24


@pytest.mark.parametrize("content", ["", "my notes\n", "[1]\n", None])
def test_another_file_is_refused_and_left_alone(ranked, tmp_path, content):
    path = tmp_path if content is None else tmp_path / "notes.txt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CheckpointError, match=r"not a journal of re-ranking .*; remove it or choose another"):
        ranked(journal=path)
    assert content is None or path.read_text() == content


CHANGES = {
    "weights": lambda builder, model: model.layers[0].query.weight.data[0, 0].add_(1e-3),
    "attention": lambda builder, model: setattr(model, "attention", "edges"),
    "seed": lambda builder, model: setattr(builder, "seed", 1),
    "passages": lambda builder, model: setattr(builder, "passages", Windows(31)),
    "edges": lambda builder, model: setattr(builder, "edges", SocialEdges([StaticDistance()])),
    "statistics": lambda builder, model: setattr(
        builder, "statistics", TermStatistics(builder.statistics.document_frequency + 1, builder.statistics.size)
    ),
    "document_length": lambda builder, model: setattr(builder.tokens, "max_document_length", 4096),
}  # fmt: skip
OPTIONS = {"token_budget": {"token_budget": 61}, "bf16": {"bf16": True}, "pairs": {"queries": {**QUERIES, "q1": "w1"}}}


@pytest.mark.parametrize("what", [*CHANGES, *OPTIONS, "texts"])
def test_other_work_is_refused(builder, model, ranked, what):
    ranked()
    before = ranked.path.read_bytes()
    if what == "texts":
        builder.documents = dict(builder.documents)
        text = builder.documents["d1"].text
        builder.documents["d1"] = Document("d1", f"w194{text[text.index(' ') :]}")
    else:
        CHANGES.get(what, lambda *_: None)(builder, model)
    with pytest.raises(CheckpointError, match=rf"of other work: .*{what} was .*, is .*; remove it or choose another"):
        ranked(**OPTIONS.get(what, {}))
    assert ranked.path.read_bytes() == before


def test_a_disk_that_fills_up_leaves_what_was_written(ranked):
    whole, total = ranked(journal=None)
    with pytest.raises(PowerCut):
        ranked(2)
    before = ranked.path.read_bytes()
    for room in (1, 400):
        with (
            files_no_larger_than(len(before) + room),
            pytest.raises(OutputError, match=r"journal: cannot be written \(File too large\); what is finished"),
        ):
            ranked()
        assert ranked.path.read_bytes().startswith(before)
    found, calls = ranked()
    assert found == whole
    assert 0 < calls < total - 2
    with pytest.raises(OutputError, match="cannot be written"):  # before any work
        ranked(0, journal=ranked.path / "inside")
