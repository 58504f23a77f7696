"""Re-ranking that is stopped goes on: nothing is scored twice, other work is refused, a full disk spoils nothing."""

import copy
import json

import pytest
import torch
from full_disk import files_no_larger_than
from power_cut import PowerCut, counted
from tales import builder_of, random_texts

from socialgraph.data import Document, TermStatistics, Tokens
from socialgraph.data.passage_bm25 import PassageBM25
from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import InputError, OutputError
from socialgraph.nn import Socialformer
from socialgraph.partition import NodeCircles, Windows
from socialgraph.ranking import rerank
from socialgraph.ranking.journal import read_journal

QUERIES = {"q1": "w1 w2", "q2": "w3", "q3": "w9 w8 w7"}
OPTIONS = {"token_budget": 60, "progress": False}


@pytest.fixture
def builder(tiny_bert):
    texts, edges = random_texts([3 + 11 * i for i in range(8)]), SocialEdges([StaticDistance(), StaticCentrality()])
    return builder_of(tiny_bert[0], texts, edges, NodeCircles(k=2), Windows(32), PassageBM25())


@pytest.fixture
def model(tiny_bert):
    torch.manual_seed(1)
    return Socialformer.from_backbone(tiny_bert[0])


@pytest.fixture
def candidates(builder):
    return {query_id: dict.fromkeys(builder.documents, 1.0) for query_id in QUERIES}


def pairs(path):
    """Return the pairs of a journal in their order."""
    return [(query, document) for line in path.read_text().splitlines()[1:] for query, document, _ in json.loads(line)]


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_finished_is_not_scored_again(builder, model, candidates, tmp_path, workers):
    with counted(model) as calls:
        whole = rerank(model, builder, QUERIES, candidates, **OPTIONS)
    path, total = tmp_path / "scores" / "journal", len(calls)
    options = {**OPTIONS, "journal": path, "workers": workers}
    for stop_after in (3, 0, 5):
        with counted(model, stop_after), pytest.raises(PowerCut):
            rerank(model, builder, QUERIES, candidates, **options)
    with counted(model) as calls:
        found = rerank(model, builder, QUERIES, candidates, **options)
    assert len(calls) == total - 8
    assert [list(scores.items()) for scores in found.values()] == [list(scores.items()) for scores in whole.values()]
    assert len(pairs(path)) == len(set(pairs(path))) == 24
    with counted(model) as calls:
        assert rerank(model, builder, QUERIES, candidates, **options) == whole
    assert not calls


def test_ctrl_c_says_how_to_go_on(builder, model, candidates, tmp_path):
    def stopped(*_):
        raise KeyboardInterrupt

    model.register_forward_hook(stopped)
    for options, told in (
        ({}, "nothing is kept without a journal"),
        ({"journal": tmp_path / "j"}, "goes on from .*/j$"),
    ):
        with pytest.raises(KeyboardInterrupt, match=f"re-ranking was stopped; .*{told}"):
            rerank(model, builder, QUERIES, candidates, **OPTIONS, **options)


@pytest.mark.parametrize("torn", [b'[["q1", "d', b"\x00\x00\x00", b'[["q1", "d1", "much"]]', b"[[1]]", b"7"])
def test_a_torn_line_costs_its_batch_alone(builder, model, candidates, tmp_path, torn):
    path = tmp_path / "journal"
    whole = rerank(model, builder, QUERIES, candidates, journal=path, **OPTIONS)
    lines = path.read_bytes().split(b"\n")
    for kept in (1, 4, len(lines)):
        path.write_bytes(b"\n".join([*lines[:kept], torn]))
        with counted(model) as calls:
            assert rerank(model, builder, QUERIES, candidates, journal=path, **OPTIONS) == whole
        assert len(calls) == len(lines) - kept
        assert len(read_journal(path)) == 24


@pytest.mark.parametrize("content", ["", "my notes\n", "[]\n", "{"])
def test_another_file_is_refused_and_left_alone(builder, model, candidates, tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=r"notes.txt: .*delete it or choose another"):
        rerank(model, builder, QUERIES, candidates, journal=path, **OPTIONS)
    assert path.read_text() == content
    with pytest.raises(InputError, match="not a journal of re-ranking"):
        rerank(model, builder, QUERIES, candidates, journal=tmp_path, **OPTIONS)


def changed(name, builder, model, candidates):
    """Return the arguments of another re-ranking."""
    queries, options = dict(QUERIES), {"token_budget": 60, "bf16": False}
    if name == "weights":
        model.layers[0].query.weight.data[0, 0] += 1e-3
    elif name == "attention":
        model.attention = "edges"
    elif name in ("seed", "passages", "edges", "circles", "relevance"):
        other = {"seed": 1, "passages": Windows(31), "edges": SocialEdges([StaticDistance()]),
                 "circles": NodeCircles(k=3), "relevance": PassageBM25(b=0.5)}  # fmt: skip
        setattr(builder, name, other[name])
    elif name == "statistics":
        builder.statistics = TermStatistics(builder.statistics.document_frequency + 1, builder.statistics.size)
    elif name == "document length":
        builder.tokens.max_document_length = 4096
    elif name in options:
        options[name] = {"token_budget": 61, "bf16": True}[name]
    elif name == "query":
        queries["q1"] = "w1 w3"
    elif name == "text":
        text = builder.documents["d1"].text
        builder.documents["d1"] = Document("d1", f"w194{text[text.index(' ') :]}")
        builder.tokens = Tokens(builder.tokens_of)
    elif name == "candidate":
        candidates = {**candidates, "q2": {"d1": 1.0}}
    return (model, builder, queries, candidates), options


CHANGES = {"weights": "weights", "attention": "attention", "seed": "seed", "passages": "passages", "edges": "edges",
           "circles": "circles", "relevance": "relevance", "statistics": "statistics", "token_budget": "token_budget",
           "document length": "document_length", "bf16": "bf16", "query": "pairs", "text": "texts",
           "candidate": "pairs"}  # fmt: skip


def test_other_work_is_refused(builder, model, candidates, tmp_path, tiny_bert):
    builder.tokens_of = tiny_bert[0]
    path = tmp_path / "journal"
    rerank(model, builder, QUERIES, candidates, **OPTIONS, journal=path)
    before = path.read_bytes()
    for name, told in CHANGES.items():
        other = copy.copy(builder)
        other.documents, other.tokens = dict(builder.documents), copy.copy(builder.tokens)
        arguments, options = changed(name, other, copy.deepcopy(model), candidates)
        expected = rf"journal is of other work: .*{told} was .*, is .*; delete it or choose another"
        with pytest.raises(InputError, match=expected):
            rerank(*arguments, **options, progress=False, journal=path)
        assert path.read_bytes() == before, name


def test_a_disk_that_fills_up_leaves_what_was_written(builder, model, candidates, tmp_path):
    options = {**OPTIONS, "journal": tmp_path / "journal"}
    with counted(model) as calls:
        whole = rerank(model, builder, QUERIES, candidates, **OPTIONS)
    total = len(calls)
    with counted(model, 2), pytest.raises(PowerCut):
        rerank(model, builder, QUERIES, candidates, **options)
    before = options["journal"].read_bytes()
    for room in (1, 100, 400):
        with (
            files_no_larger_than(len(before) + room),
            pytest.raises(OutputError, match=r"journal: cannot be written \(File too large\); what is finished"),
        ):
            rerank(model, builder, QUERIES, candidates, **options)
        assert options["journal"].read_bytes().startswith(before)
    with counted(model) as calls:
        assert rerank(model, builder, QUERIES, candidates, **options) == whole
    assert 0 < len(calls) < total - 2


def test_a_file_that_cannot_be_written_is_refused_before_any_work(builder, model, candidates, tmp_path):
    (tmp_path / "file").write_text("here")
    with counted(model) as calls, pytest.raises(OutputError, match="cannot be written"):
        rerank(model, builder, QUERIES, candidates, journal=tmp_path / "file" / "journal", **OPTIONS)
    assert not calls
