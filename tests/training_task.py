"""A task that a tiny model learns in seconds; ``task`` is a fixture for all tests."""

import pytest
import torch

from socialgraph.data import Document, GraphBuilder, Split, TermStatistics, Tokens
from socialgraph.edges import DynamicDistance, SocialEdges, StaticDistance
from socialgraph.partition import EdgeCircles, Windows

OPTIONS = {"learning_rate": 2e-3, "per_device_train_batch_size": 4, "use_cpu": True, "disable_tqdm": True}


@pytest.fixture
def task(tiny_bert):
    """Documents about one word each; the query is the word."""
    folder, _ = tiny_bert
    documents = {
        f"d{i}": Document(f"d{i}", f"w{i} " * 5 + " ".join(f"w{100 + i + j}" for j in range(20))) for i in range(8)
    }
    queries = {f"q{i}": f"w{i}" for i in range(8)}
    split = Split(
        queries, {f"q{i}": {f"d{i}": 1} for i in range(8)}, {q: dict.fromkeys(documents, 1.0) for q in queries}
    )
    tokens = Tokens(folder)
    statistics = TermStatistics.of(tokens, documents)
    edges = SocialEdges([StaticDistance(), DynamicDistance()])
    return folder, split, GraphBuilder(documents, tokens, statistics, edges, EdgeCircles(k=2), Windows(16))


def assert_same(state, other):
    """Compare two models' weights bit for bit."""
    assert state.keys() == other.keys()
    assert [name for name in state if not torch.equal(state[name], other[name])] == []


class Overlap(torch.nn.Module):
    """A user's own model, which knows of no objective: counts the query's words in the document."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, graph):
        same = torch.isin(graph.input_ids, graph.query_ids).float()
        return self.weight * torch.zeros(graph.num_graphs).index_add_(0, graph.batch, same)
