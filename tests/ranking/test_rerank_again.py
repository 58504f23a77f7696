"""Re-ranking that is stopped goes on: nothing is scored twice, other work is refused, a full disk spoils nothing."""

import copy
import json
import shutil

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

QUERIES = {"q1": "w1 w2", "q2": "w3", "q3": "w9 w8 w7"}


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


def numbers(folder):
    return [json.loads(line)["batch"] for line in (folder / "finished-0.jsonl").read_text().splitlines()]


def test_what_is_finished_is_not_scored_again(builder, model, candidates, tmp_path):
    options = {"token_budget": 60, "progress": False}
    with counted(model) as calls:
        whole = rerank(model, builder, QUERIES, candidates, **options)
    folder, total = tmp_path / "journal", len(calls)
    for stop_after in (3, 0, 5):
        with counted(model, stop_after) as calls, pytest.raises(PowerCut):
            rerank(model, builder, QUERIES, candidates, journal=folder, **options)
    with counted(model) as calls:
        found = rerank(model, builder, QUERIES, candidates, journal=folder, **options)
    assert (len(calls), numbers(folder)) == (total - 8, list(range(total)))
    assert [list(scores.items()) for scores in found.values()] == [list(scores.items()) for scores in whole.values()]
    with counted(model) as calls:
        assert rerank(model, builder, QUERIES, candidates, journal=folder, **options) == whole
    assert not calls


def test_workers_leave_out_what_is_finished_too(builder, model, candidates, tmp_path):
    options = {"token_budget": 60, "progress": False, "journal": tmp_path / "journal", "workers": 1}
    with counted(model, 4), pytest.raises(PowerCut):
        rerank(model, builder, QUERIES, candidates, **options)
    found = rerank(model, builder, QUERIES, candidates, **options)
    assert found == rerank(model, builder, QUERIES, candidates, token_budget=60, progress=False)
    assert numbers(tmp_path / "journal")[:4] == [0, 1, 2, 3]


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
    elif name in ("text", "length"):
        text = builder.documents["d1"].text
        builder.documents["d1"] = Document("d1", f"{text} w1" if name == "length" else f"w194{text[text.index(' ') :]}")
        builder.tokens = Tokens(builder.tokens_of)
    elif name == "order":
        candidates = dict(reversed(candidates.items()))
    elif name == "candidate":
        candidates = {**candidates, "q2": {"d1": 1.0}}
    return (model, builder, queries, candidates), options


CHANGES = {"weights": "weights", "attention": "attention", "seed": "seed", "passages": "passages", "edges": "edges",
           "circles": "circles", "relevance": "relevance", "statistics": "statistics", "token_budget": "token_budget",
           "document length": "document_length", "bf16": "bf16", "query": "candidates", "length": "candidates",
           "text": "texts", "order": "candidates", "candidate": "candidates"}  # fmt: skip


def test_other_work_is_refused(builder, model, candidates, tmp_path, tiny_bert):
    builder.tokens_of = tiny_bert[0]
    folder = tmp_path / "journal"
    rerank(model, builder, QUERIES, candidates, 60, progress=False, journal=folder)
    before = (folder / "finished-0.jsonl").read_bytes()
    for name, told in CHANGES.items():
        other = copy.copy(builder)
        other.documents, other.tokens = dict(builder.documents), copy.copy(builder.tokens)
        arguments, options = changed(name, other, copy.deepcopy(model), candidates)
        expected = rf"journal is of other work: .*{told}.* was .*, is .*; delete the folder or choose another"
        with pytest.raises(InputError, match=expected):
            rerank(*arguments, **options, progress=False, journal=folder)
        assert (folder / "finished-0.jsonl").read_bytes() == before, name
    shutil.rmtree(folder)
    rerank(*arguments, **options, progress=False, journal=folder)


def test_a_disk_that_fills_up_leaves_what_was_written(builder, model, candidates, tmp_path):
    options = {"token_budget": 60, "progress": False, "journal": tmp_path / "journal"}
    whole = rerank(model, builder, QUERIES, candidates, 60, progress=False)
    with counted(model, 2), pytest.raises(PowerCut):  # what is written before scores is small and there
        rerank(model, builder, QUERIES, candidates, **options)
    path = tmp_path / "journal" / "finished-0.jsonl"
    for room in (1, 100, 400):
        before = path.read_bytes()
        with (
            files_no_larger_than(len(before) + room),
            pytest.raises(
                OutputError, match=r"journal: cannot be written \(File too large\); what is finished is kept"
            ),
        ):
            rerank(model, builder, QUERIES, candidates, **options)
        after = path.read_bytes()
        assert after.startswith(before)
        assert len(after) <= len(before) + room
        assert after.endswith(b"\n")
    with counted(model) as calls:
        assert rerank(model, builder, QUERIES, candidates, **options) == whole
    assert 0 < len(calls) < len(numbers(tmp_path / "journal")) - 2


def test_folders_that_cannot_be_written_are_refused_before_any_work(builder, model, candidates, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("here")
    with counted(model) as calls:
        with pytest.raises(OutputError, match="cannot be written"):
            rerank(model, builder, QUERIES, candidates, progress=False, journal=tmp_path / "file")
        monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100}))
        with pytest.raises(OutputError, match=r"0\.0 GB will be written and 0\.0 GB are free"):
            rerank(model, builder, QUERIES, candidates, progress=False, journal=tmp_path / "journal")
    assert not calls
