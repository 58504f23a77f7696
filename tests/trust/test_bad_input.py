"""Bad input, by the hundred: each case ends in a result with finite scores, or in one of the project's own errors.

An error is one line that can be printed on a terminal and names the file, the line, the id or the option. Numbers of
cases are printed at the end.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from bad_input import COLLECTION, SURROGATES, TEXTS, collections
from bad_options import CONFIGS, options
from commands import configuration
from conftest import document_batch
from hydra import compose
from lab.execute import System
from ledger_of_cases import Ledger, as_error, told  # noqa: F401  (a fixture)

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens, read_run, write_run
from socialgraph.data.collection import Queries, Run
from socialgraph.data.folder import load_folder
from socialgraph.edges import DynamicCentrality, DynamicDistance, Pattern, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.inspect.report import View, report
from socialgraph.nn import Socialformer
from socialgraph.partition import Blocks, EdgeCircles, NodeCircles, Partition, Windows
from socialgraph.ranking import evaluate, rerank


class World:
    """A small model with all four patterns, which reads whatever texts there are to the end."""

    def __init__(self, folder: str) -> None:
        self.tokens = Tokens(folder, 120, 30)
        patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality(folder)]
        self.edges = SocialEdges(patterns, sparsity=0.8)
        self.model = Socialformer.from_backbone(folder).eval()

    def rank(self, documents: Any, queries: Queries, candidates: Run) -> Run:
        """Return the re-ranked run; all scores are finite."""
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


def test_configurations(tiny_bert):
    """Overrides as they are typed: the recipe's edges and circles are made, or one line says why not."""
    ledger = Ledger("configurations")
    tiny = f"model.backbone={tiny_bert[0]}"
    with configuration():
        for override in CONFIGS:

            def do(override: str = override) -> None:
                with as_error():
                    System(compose("config", [tiny, *override.split(" ")]))

            ledger.case(override, do, "^error: .", sound=override == "edges.sparsity=0.93")
    ledger.close(at_least=45)
