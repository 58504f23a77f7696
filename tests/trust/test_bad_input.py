"""Bad input ends in a result with finite scores, or in one printable line that names the file, the id or the option."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import document_batch, write_tiny_bert
from tales import builder_of

from socialgraph.data import Document, read_run, write_run
from socialgraph.data.collection import Queries, Run, hash_split
from socialgraph.data.folder import load_folder
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import SocialgraphError
from socialgraph.inspect.report import View, report
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Partition, Windows
from socialgraph.ranking import BM25, evaluate, rerank
from socialgraph.ranking.interpolate import interpolate

TEXTS = {
    "empty": "",
    "unicode blanks": "\u00a0\u2003\u3000",
    "line ends": "w1\u2028w2\u2029w3\u0085w4",
    "controls": "".join(map(chr, [*range(1, 9), 11, 12, *range(14, 32), *range(127, 160)])),
    "direction overrides": "\u202ew1 w2\u202c\u2066\u2069\u200f\u061cשלום",
    "only emoji": "😀👩‍🔬🏳️‍🌈" * 50,
    "stacked accents": "w1" + "\u0301" * 500,
    "non-characters": "\ue000\ufffe\uffff\U0010ffff\ufffd w1",
    "a word of 1 MB": "a" * 1_000_000,
    "special tokens": "[CLS] w1 [SEP] w2 [MASK] [PAD] [UNK]",
    "markup": "<script>alert(1)</script> & \" ' </textarea>",
}
SURROGATES = {"a lone high surrogate": "w1 \ud800 w2", "a pair the wrong way": "\ude00\ud83d"}


def line(**entry: object) -> bytes:
    """Return a line of a corpus, with the characters themselves in it."""
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


GOOD = [{"doc_id": f"d{i}", "title": "w1", "text": " ".join(f"w{(7 * i + j) % 60}" for j in range(10 + 25 * i))}
        for i in range(4)]  # fmt: skip
COLLECTION: dict[str, bytes | None] = {
    "corpus.jsonl": b"".join(line(**entry) for entry in GOOD),
    "queries.test.tsv": b"q1\tw1 w2\nq2\tw30 w31\n",
    "qrels.test.txt": b"q1 0 d1 1\nq2 0 d2 2\n",
    "run.bm25.test.txt": b"".join(b"q%d Q0 d%d %d %d.5 t\n" % (q, d, d + 1, 9 - d) for q in (1, 2) for d in range(3)),
}
CORPUS, QUERIES, QRELS, RUN = COLLECTION


class World:
    """A small model with all four patterns, which reads whatever texts there are to the end."""

    def __init__(self, folder: Path) -> None:
        write_tiny_bert(folder)
        self.folder = folder
        patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality(str(folder))]
        self.parts = SocialEdges(patterns, sparsity=0.8), EdgeCircles(k=4, max_size=12), Windows(16)
        self.model = Socialformer.from_backbone(str(folder)).eval()

    def rank(self, documents: Any, queries: Queries, candidates: Run) -> Run:
        """Return the re-ranked run; all scores are finite."""
        builder = builder_of(str(self.folder), dict(documents), *self.parts, lengths=(120, 30), keep_edges=True)
        run = rerank(self.model, builder, queries, candidates, progress=False)
        assert {q: set(d) for q, d in run.items()} == {q: set(d) for q, d in candidates.items()}
        assert all(math.isfinite(score) for scores in run.values() for score in scores.values())
        return run

    def rank_folder(self, folder: Path, files: dict[str, bytes | None]) -> None:
        """Load a folder, rank, write the run, read it back and measure it."""
        for name, content in files.items():
            if content is not None:
                (folder / name).write_bytes(content)
        collection = load_folder(folder, cache=folder.parent / "cache")
        split = collection["test"]
        every = {query_id: dict.fromkeys(collection.documents, 0.0) for query_id in split.queries}
        run = self.rank(collection.documents, split.queries, split.candidates or every)
        write_run(folder / "written", run)
        assert read_run(folder / "written") == run
        given = {folder / name for name, content in files.items() if content is not None}
        assert set(folder.iterdir()) == given | {folder / "written"}
        if split.qrels:
            assert 0 <= evaluate(split.qrels, run, ["RR@10"]).mean["RR@10"] <= 1


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> World:
    return World(tmp_path_factory.mktemp("bert"))


def refusal(do: Callable[[], Any]) -> str | None:
    """Return the one printable line in which something ends, None where it does not."""
    try:
        do()
        return None
    except SocialgraphError as error:
        told = str(error)
    assert told.isprintable()
    assert len(told) <= 1500
    return told


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", TEXTS)
def test_odd_texts_are_ranked_and_an_odd_id_is_refused_with_its_line(world, tmp_path, name):
    odd = TEXTS[name].encode()
    files = {
        "text": {CORPUS: line(doc_id="odd", text=TEXTS[name]), RUN: b"q1 Q0 odd 9 1.0 t\n"},
        "title": {CORPUS: line(doc_id="odd", text="w1", title=TEXTS[name]), RUN: b"q1 Q0 odd 9 1.0 t\n"},
        "query": {QUERIES: b"odd\t" + odd + b"\n", RUN: b"odd Q0 d1 9 1.0 t\n"},
        "document id": {CORPUS: line(doc_id=TEXTS[name], text="w1"), RUN: b"q1 Q0 " + odd + b" 9 1.0 t\n"},
        "query id": {QUERIES: odd + b"\tw1\n", RUN: odd + b" Q0 d1 9 1.0 t\n"},
    }
    for place, more in files.items():
        (tmp_path / place).mkdir()
        whole = COLLECTION | {file: COLLECTION[file] + content for file, content in more.items()}
        told = refusal(lambda place=place, whole=whole: world.rank_folder(tmp_path / place, whole))
        if place in ("text", "title"):
            assert told is None, place
        elif told is not None:
            assert re.match(rf"{re.escape(str(tmp_path / place))}/(corpus.jsonl:5|queries.test.tsv:3): ", told), place


NUMBER = b"q1 Q0 d3 9 %s t"
#: files that are other than those of COLLECTION (lines are added, None takes a file away), and what is told
FILES: dict[str, tuple[dict[str, bytes | None], str | None]] = {
    "nothing is odd": ({}, None),
    "lists 10^5 deep": ({CORPUS: b"[" * 100_000 + b"]" * 100_000}, "corpus.jsonl:5"),
    "deep in a field that is not read": (
        {CORPUS: b'{"doc_id": "d9", "text": "w1", "more": ' + b"[" * 400 + b"]" * 400 + b"}"}, None,
    ),
    "a number of 10,000 digits": ({CORPUS: b'{"doc_id": ' + b"9" * 10_000 + b', "text": "w1"}'}, "corpus.jsonl:5"),
    "a key of 1 MB": ({CORPUS: json.dumps({"k" * 1_000_000: 1}).encode()}, "corpus.jsonl:5"),
    "NUL in the id": ({CORPUS: rb'{"doc_id": "d\u00009", "text": "w1"}'}, "corpus.jsonl:5"),
    "surrogates as bytes": ({CORPUS: b'{"doc_id": "d9", "text": "\xed\xa0\x80"}'}, "corpus.jsonl:5"),
    "100,000 tabs": ({QUERIES: b"q9" + b"\t" * 100_000}, "queries.test.tsv:3"),
    "a grade of underscores": ({QRELS: b"q1 0 d0 1_000"}, "qrels.test.txt:3"),
    "a grade of 5,000 digits": ({QRELS: b"q1 0 d0 " + b"9" * 5000}, "qrels.test.txt:3"),
    "grades below 0": ({QRELS: b"q1 0 d0 -1"}, None),
    "a score of nan": ({RUN: NUMBER % b"nan"}, "run.bm25.test.txt:7"),
    "a score of 1e999": ({RUN: NUMBER % b"1e999"}, "run.bm25.test.txt:7"),
    "a tiny score": ({RUN: NUMBER % b"1e-320"}, None),
    "an unknown candidate": ({RUN: b"q1 Q0 d9 9 0.5 t"}, "run.bm25.test.txt: candidate 'd9'"),
    "a query of stop words alone": ({QUERIES: b"odd\tthe of and to", RUN: b"odd Q0 d1 9 1.0 t"}, None),
    "a run called with a line end": ({RUN: None, "run.\n.test.txt": b"x"}, None),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_an_odd_line_is_read_or_named(world, tmp_path, name):
    more, expected = FILES[name]
    changed = {file: raw and COLLECTION.get(file, b"") + raw + b"\n" for file, raw in more.items()}
    folder = tmp_path / "c"
    folder.mkdir()
    told = refusal(lambda: world.rank_folder(folder, COLLECTION | changed))
    assert (told is None) == (expected is None), told
    assert expected is None or f"{folder}/{expected}" in told


#: how a whole file may be odd: what becomes of its content, and whether each file is then read
WHOLE: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    "CRLF": (lambda raw: raw.replace(b"\n", b"\r\n"), True),
    "no line end at the end": (lambda raw: raw.rstrip(b"\n"), True),
    "two byte order marks": (lambda raw: b"\xef\xbb\xbf" * 2 + raw, False),
    "UTF-16": (lambda raw: raw.decode().encode("utf-16"), False),
    "random bytes": (lambda raw: np.random.default_rng(0).bytes(5000), False),
    "10,000 NULs": (lambda raw: bytes(10_000), False),
    "packed, but not called so": (gzip.compress, False),
}
PACKED: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    "packed": (gzip.compress, True),
    "packed, cut": (lambda raw: gzip.compress(raw)[:-5], False),
    "packed, a bit turned": (lambda raw: gzip.compress(raw)[:14] + b"\xff" + gzip.compress(raw)[15:], False),
    "packed, then garbage": (lambda raw: gzip.compress(raw) + b"garbage", False),
    "packed, one long line": (lambda raw: gzip.compress(bytes(40 << 20), 1), False),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("file", COLLECTION)
@pytest.mark.parametrize("name", [*WHOLE, *PACKED])
def test_an_odd_file_is_read_or_named(world, tmp_path, file, name):
    if name in PACKED and file == QUERIES:
        return  # queries are never packed
    change, is_read = (WHOLE | PACKED)[name]
    written = f"{file}.gz" if name in PACKED else file
    folder = tmp_path / "c"
    folder.mkdir()
    files = {**COLLECTION, file: None, written: change(COLLECTION[file])}
    told = refusal(lambda: world.rank_folder(folder, files))
    assert (told is None) == is_read, told
    assert is_read or f"{folder / written}:" in told


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*TEXTS, *SURROGATES])
def test_an_odd_text_in_memory_is_ranked_and_shown(world, name):
    text = (TEXTS | SURROGATES)[name]
    documents = {"odd": Document("odd", text, text[:50]), "d": Document("d", "w1 w5 " * 20)}
    for query in ("w1 w2 w3", text):
        world.rank(documents, {"q": query}, {"q": {"odd": 1.0, "d": 0.0}})
    graph = document_batch(lengths=(6,))[0]
    graph.document_id, graph.query_id = text, text
    shown = report(View(graph, statistics={text[:100]: text[:100]}), [text[:1000]] * 6, text)
    assert "<script>alert" not in shown
    assert not set(shown) & {"\u2028", "\u2029", "\u202e", "\x1b", "\x00", "\ud800"}


DOCUMENTS = {f"d{i}": Document(f"d{i}", f"w{i} w1") for i in range(5)}
#: (class, option) -> what makes something of a number; what each class takes is tested beside it
OPTIONS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("StaticDistance", "p"): lambda x: SocialEdges([StaticDistance(p=x)], sparsity=0.8),
    ("SocialEdges", "sparsity"): lambda x: SocialEdges([StaticDistance()], sparsity=x),
    ("SocialEdges", "weights"): lambda x: SocialEdges([StaticDistance()], {"static_distance": x}),
    ("EdgeCircles", "k"): lambda x: EdgeCircles(k=x),
    ("Windows", "size"): Windows,
    ("BM25", "k1"): lambda x: BM25(k1=x).fit(DOCUMENTS).retrieve({"q": "w1"}),
    ("hash_split", "shares"): lambda x: hash_split(["a"], [x, 0.5, 0.5 - x]),
    ("interpolate", "score"): lambda x: interpolate({"q": {"d": x, "e": 0.0}}, {"q": {"d": 2.0}}, 0.5),
}


@pytest.mark.parametrize("number", [-1, 10**30, 1e308, 1e-320, math.nan, math.inf])
@pytest.mark.parametrize(("kind", "option"), OPTIONS)
def test_an_odd_number_works_or_its_option_is_named(kind, option, number):
    def work() -> None:
        made, batch = OPTIONS[kind, option](number), document_batch()
        if isinstance(made, SocialEdges):
            edge_index, weight = made(batch)
            assert weight.isfinite().all()
            assert not edge_index.numel() or int(edge_index.max()) < batch.num_nodes
        if isinstance(made, Partition):
            made(batch.edge_index, batch.batch, batch.num_graphs, batch.edge_weight)
        if kind in ("BM25", "interpolate"):
            assert all(math.isfinite(score) for scores in made.values() for score in scores.values())

    told = refusal(work)
    assert option in told if told else not math.isnan(number)
