"""Bad input, by the hundred: each case ends in a result with finite scores, or in one of the project's own errors.

An error is one line that can be printed on a terminal and names the file, the line, the id or the option. Numbers of
cases are printed at the end.
"""

from __future__ import annotations

import faulthandler
import math
import re
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from bad_input import COLLECTION, CORPUS, SURROGATES, TEXTS, collections, folders, options
from conftest import document_batch
from hydra import compose, initialize_config_dir

from socialgraph import backbone
from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens, read_run, write_run
from socialgraph.data.collection import Queries, Run
from socialgraph.data.folder import load_folder
from socialgraph.edges import DynamicCentrality, DynamicDistance, Pattern, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.errors import SocialgraphError
from socialgraph.inspect.report import View, report
from socialgraph.nn import Socialformer
from socialgraph.partition import Blocks, EdgeCircles, NodeCircles, Partition, Windows
from socialgraph.ranking import evaluate, rerank

SECONDS = 20  # for one case; the slowest takes about one
COUNTS: dict[str, list[int]] = {}  # kind -> cases, refused


@pytest.fixture(autouse=True)
def _count(record_property):
    before = {kind: list(counts) for kind, counts in COUNTS.items()}
    yield
    for kind, (cases, refused) in COUNTS.items():
        mine, no = (new - old for new, old in zip((cases, refused), before.get(kind, (0, 0)), strict=True))
        if mine:
            record_property("told", f"bad input, {kind}: {mine} cases, {no} refused, {mine - no} with a result")


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Stop what takes longer: with an exception, and where that cannot be raised, with the end of the program."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    faulthandler.dump_traceback_later(6 * seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Ledger:
    """Runs cases and remembers what went wrong."""

    def __init__(self, kind: str) -> None:
        self.wrong: list[str] = []
        self.counts = COUNTS.setdefault(kind, [0, 0])

    def case(self, name: str, do: Callable[[], Any], names: str, sound: bool = False) -> None:
        """Run one case; ``names`` is a pattern of which an error's message must hold a match.

        Args:
            name: of the case.
            do: the case.
            names: see above.
            sound: nothing is wrong with the input, so that an error is one too many.
        """
        self.counts[0] += 1
        with limit(SECONDS), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                do()
            except SocialgraphError as error:
                self.counts[1] += 1
                text = str(error)
                if sound:
                    self.wrong.append(f"{name}: refused, but nothing is wrong: {text}")
                if not text.isprintable() or len(text) > 1500:
                    self.wrong.append(f"{name}: not one short printable line: {text[:300]!r}")
                if not re.search(names, text):
                    self.wrong.append(f"{name}: names neither file, line, id nor option ({names}): {text}")
            except Exception as error:
                self.wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]!r}")
        for warning in warned:
            if issubclass(warning.category, UserWarning) and not str(warning.message).isprintable():
                self.wrong.append(f"{name}: a warning that is not one printable line: {str(warning.message)!r}")

    def close(self, at_least: int) -> None:
        cases, refused = self.counts
        assert self.wrong == [], "\n".join([f"{len(self.wrong)} of {cases} went wrong", *self.wrong])
        assert cases >= at_least
        assert 0 < refused < cases  # both ends are reached


class World:
    """A small model with all four patterns, which reads whatever texts there are to the end."""

    def __init__(self, folder: str) -> None:
        self.tokens = Tokens(folder, 120, 30)
        patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality(folder)]
        self.edges = SocialEdges(patterns, sparsity=0.8)
        self.model = Socialformer.from_backbone(folder).eval()

    def rank(self, documents: Any, queries: Queries, candidates: Run) -> Run:
        """Return the re-ranked run; all scores are finite."""
        self.tokens._documents.__init__(1 << 20)  # ids mean other texts now
        statistics = TermStatistics.of(self.tokens, documents)
        builder = GraphBuilder(
            documents, self.tokens, statistics, self.edges, EdgeCircles(k=4, max_size=12), Windows(16), keep_edges=True
        )
        run = rerank(self.model, builder, queries, candidates, progress=False)
        assert {q: set(d) for q, d in run.items()} == {q: set(d) for q, d in candidates.items()}
        assert all(math.isfinite(score) for scores in run.values() for score in scores.values())
        return run


def test_collections(tiny_bert, tmp_path):
    ledger, world = Ledger("collections"), World(tiny_bert[0])
    for number, case in enumerate(collections()):
        folder = tmp_path / "c" / str(number)
        folder.mkdir(parents=True)
        for name, content in (COLLECTION | case.files).items():
            if content is not None:
                (folder / name).write_bytes(content)

        names = [name for name, content in (COLLECTION | case.files).items() if content is not None]

        def do(folder: Path = folder, names: list[str] = names) -> None:
            collection = load_folder(folder, cache=tmp_path / "cache")
            collection.check()
            split = collection["test"]
            assert all(math.isfinite(x) for scores in (split.candidates or {}).values() for x in scores.values())
            every = {query_id: dict.fromkeys(collection.documents, 0.0) for query_id in split.queries}
            run = world.rank(collection.documents, split.queries, split.candidates or every)
            write_run(folder / "written", run)
            assert read_run(folder / "written") == run
            assert set(folder.iterdir()) == {folder / name for name in names} | {folder / "written"}
            if split.qrels:
                means = evaluate(split.qrels, run, ["RR@10", "nDCG@10"]).mean
                assert all(0 <= value <= 1 for value in means.values())

        ledger.case(case.name, do, re.escape(str(folder)) + r"|split|'q\d'|odd|query id", sound=case.files == {})
    ledger.close(at_least=400)


def test_texts_in_memory(tiny_bert):
    """Texts that never were in a file; here with lone surrogates."""
    ledger, world = Ledger("texts in memory"), World(tiny_bert[0])
    for name, text in (TEXTS | SURROGATES).items():
        for what, query, document in (("query", text, "w1 w2 w3"), ("document", "w1", text), ("both", text, text)):
            documents = {"odd": Document("odd", document, text[:50]), "d": Document("d", "w1 w5 " * 20)}

            def do(documents: Any = documents, query: str = query) -> None:
                world.rank(documents, {"q": query}, {"q": {"odd": 1.0, "d": 0.0}})

            ledger.case(f"{what}: {name}", do, "'q'|'odd'", sound=True)

        def page(text: str = text) -> None:
            graph = document_batch(lengths=(6,))[0]
            graph.document_id, graph.query_id = text, text
            shown = report(View(graph, statistics={text[:100]: text[:100]}), [text[:1000]] * 6, text)
            assert "<script>alert" not in shown
            assert shown.isascii() or not set(shown) & {"\u2028", "\u2029", "\u202e", "\x1b", "\x00", "\ud800"}

        ledger.case(f"page: {name}", page, ".", sound=True)
    assert ledger.wrong == []


def world_of(made: Any, folder: str) -> None:
    """Put a pattern, a sampler or a partition to work."""
    batch = document_batch()
    if isinstance(made, Pattern):
        made = SocialEdges([made], sparsity=0.8)
    if isinstance(made, EdgeSampler):
        edge_index, weight = made(batch)
        assert weight.isfinite().all()
        assert edge_index.numel() == 0 or int(edge_index.max()) < batch.num_nodes
        NodeCircles(k=2, max_size=5)(edge_index, batch.batch, batch.num_graphs, weight)
    if isinstance(made, Partition) and not isinstance(made, Blocks):
        circle_index, leader_index = made(batch.edge_index, batch.batch, batch.num_graphs, batch.edge_weight)
        assert circle_index.numel() == 0 or int(circle_index[0].max()) < batch.num_nodes
        assert leader_index.numel() == 0 or int(circle_index[1].max()) == leader_index.numel() - 1
    if isinstance(made, dict):
        assert all(
            math.isfinite(score) for scores in made.values() if isinstance(scores, dict) for score in scores.values()
        )
    if isinstance(made, Tokens):
        assert len(made.document(Document("d", "w1 w2 " * 99))) <= 198


def test_options(tiny_bert):
    ledger = Ledger("options")
    for name, option, make in options():
        ledger.case(name, lambda make=make: world_of(make(tiny_bert[0]), tiny_bert[0]), option)
    ledger.close(at_least=300)


def test_backbones(tiny_bert, tmp_path):
    ledger, good = Ledger("folders of a backbone"), tmp_path / "good"
    counts = {"hidden_size": "width", "num_hidden_layers": "layers", "num_attention_heads": "heads",
    "vocab_size": "words",
              "intermediate_size": "inner width", "max_position_embeddings": "positions", "type_vocab_size": "segments",
              "layer_norm_eps": "epsilon", "hidden_dropout_prob": "dropout", "pad_token_id": "padding",
              "hidden_act": "activation", "model_type": "type", "architectures": "architectures",
              "initializer_range": "spread"}  # fmt: skip
    shutil.copytree(tiny_bert[0], good, ignore=lambda *_: ["good"])
    tokens = {"tokenizer.json": [b"", b"{}", b"[]", b"garbage", b"[" * 100_000,
                                 b'{"model": {"type": "WordPiece"}}',
                                 b'{"model": {"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}}']}  # fmt: skip
    batch = document_batch()
    for name, change in _with_files(folders(good, counts), tokens):
        folder = _copy(good, tmp_path / "odd")
        change(folder)

        def do(folder: Path = folder) -> None:
            backbone.locate.cache_clear()
            model = Socialformer.from_backbone(str(folder)).eval()
            assert model(batch).isfinite().all()
            assert DynamicCentrality(str(folder)).weights(batch).isfinite().all()

        ledger.case(name, do, re.escape(str(folder)) + "|activation|hidden_act", sound=name == "nothing is odd")
    ledger.close(at_least=200)


def test_saved_models(tiny_bert, tmp_path):
    ledger, good = Ledger("folders of a model"), tmp_path / "good"
    Socialformer.from_backbone(tiny_bert[0]).save_pretrained(good)
    counts = {key: key for key in ("hidden_size", "num_layers", "num_heads", "vocab_size", "intermediate_size",
    "max_positions",
              "type_vocab_size", "layer_norm_eps", "dropout", "cls_token_id", "sep_token_id", "backbone", "attention",
              "inter_heads", "inter_width", "inter_circle", "inter_shared", "leader", "readout", "reads")}  # fmt: skip
    batch = document_batch()
    for name, change in folders(good, counts):
        folder = _copy(good, tmp_path / "odd")
        change(folder)

        def do(folder: Path = folder) -> None:
            with redirect_stdout(StringIO()):
                model = Socialformer.from_pretrained(folder).eval()
            assert model(batch).isfinite().all()

        ledger.case(name, do, re.escape(str(folder)) + "|attention|leader", sound=name == "nothing is odd")
    ledger.close(at_least=250)


def _copy(good: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(good, to)
    return to


def _with_files(cases: Iterator[tuple[str, Any]], files: dict[str, list[bytes]]) -> Iterator[tuple[str, Any]]:
    yield from cases
    for name, contents in files.items():
        for content in contents:
            yield f"{name}: {content[:40]!r}", lambda folder, n=name, c=content: (folder / n).write_bytes(c)


CONF = str(Path(__file__).parents[2] / "experiments" / "conf")
CONFIGS = (
    "edges.sparsity=2", "edges.sparsity=-1", "edges.sparsity=nan", "edges.sparsity=inf", "edges.sparsity=many",
    "edges.sparsity=null", "edges.sparsity=[0.9]", "edges.sparsity=1e400", "edges.sparsty=0.9", "+edges.density=0.1",
    "edges.weights.static_distance=0.3", "+edges.weights.static_distance=-1", "+edges.weights.static_distance=nan",
    "+edges.weights.nobody=1", "+edges.weights.static_distance=much", "edges.patterns={}", "edges.patterns=null",
    "edges.patterns.static_distance.p=0", "edges.patterns.static_distance.p=nan", "edges.patterns.static_distance.p=x",
    "edges._target_=socialgraph.edges.Nobody", "edges._target_=no_such_module.X", "edges._target_=json.loads",
    "edges._target_=''", "edges._target_=null", "edges._target_=5", "edges=nobody", "partition=nobody", "recipe=nobody",
    "data=nobody", "nobody=1", "partition.k=0", "partition.k=-1", "partition.k=1.5", "partition.k=nan", "partition.k=x",
    "partition.k=null", "partition.k=[4]", "partition.k=1000000000000000000000000000000", "partition.max_size=1",
    "partition.max_size=0", "partition.max_size=-5", "partition.keep=weakest", "partition.keep=null",
    "partition._target_=socialgraph.partition.Nobody", "partition._target_=builtins.dict",
    "partition._target_=os.getcwd",
    "window=0", "window=-1", "window=x", "window=nan", "window=null", "window=${nobody}", "window=${window}",
    "window=${query_length}", "document_length=${query_length} query_length=${document_length}",
    "window=${oc.env:NOBODY}",
    "window=${nobody:1}", "window=${", "window='${'", "window", "window==1", "++++", "~nobody", "~edges.patterns",
    "recipe@baseline=nobody", "'\x00=1'", "window=!!python/object/apply:os.system", "edges.weights={a:{b:{c:1}}}",
    "edges.patterns.dynamic_centrality.mode=nobody", "edges.patterns.dynamic_centrality.backbone=/nowhere",
    "window=99999999999999999999", "edges.sparsity=0.93",
)  # fmt: skip


def test_configurations(tiny_bert, tmp_path, monkeypatch):
    """Overrides as they are typed: the recipe's edges and circles are made, or one line says why not."""
    monkeypatch.syspath_prepend(Path(CONF).parent)
    from lab.mistakes import one_line_errors
    from lab.recipe import Recipe

    ledger = Ledger("configurations")
    tiny = f"model.backbone={tiny_bert[0]}"
    with initialize_config_dir(CONF, version_base="1.3"):
        for override in CONFIGS:

            def do(override: str = override) -> None:
                try:
                    with one_line_errors():
                        Recipe(compose("config", [tiny, *override.split(" ")]).recipe)
                except SystemExit as stopped:
                    raise SocialgraphError(str(stopped.code)) from None

            ledger.case(override, do, "^error: .", sound=override == "edges.sparsity=0.93")
    ledger.close(at_least=60)


def test_a_case_that_goes_wrong_is_noticed(tiny_bert, monkeypatch):
    """The ledger itself: an error from inside, NaN, silence about the file, an escape, an endless loop."""

    def endless() -> None:
        while True:
            pass

    def raising(error: Exception) -> Callable[[], None]:
        def do() -> None:
            raise error

        return do

    monkeypatch.setitem(globals(), "SECONDS", 1)
    monkeypatch.setitem(globals(), "COUNTS", {})
    ledger = Ledger("none")
    ledger.case("from inside", raising(RuntimeError("mat1 and mat2")), ".")
    ledger.case("no file", raising(SocialgraphError("bad")), "folder")
    ledger.case("an escape", raising(SocialgraphError("folder \x1b[31m")), "folder")
    ledger.case("endless", endless, ".")
    ledger.case("sound", raising(SocialgraphError("folder")), "folder", sound=True)
    assert [entry.split(":")[0] for entry in ledger.wrong] == [
        "from inside",
        "no file",
        "an escape",
        "endless",
        "sound",
    ]
    world = World(tiny_bert[0])
    world.model.score.bias.data.fill_(math.nan)
    with pytest.raises((AssertionError, SocialgraphError)), torch.no_grad():
        world.rank({"d": Document("d", COLLECTION[CORPUS].decode())}, {"q": "w1"}, {"q": {"d": 1.0}})
