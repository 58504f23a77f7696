"""A task that a tiny model learns in seconds; ``task`` is a fixture for all tests."""

import pytest
import torch
from tales import builder_of

from socialgraph.data import Split
from socialgraph.edges import DynamicDistance, SocialEdges, StaticDistance
from socialgraph.partition import EdgeCircles, Windows

OPTIONS = {"learning_rate": 2e-3, "per_device_train_batch_size": 4, "use_cpu": True, "disable_tqdm": True}


def task_for(bert, length=25, edges=True):
    """Return a split and a builder: documents about one word each; the query is the word."""
    texts = [f"w{i} " * 5 + " ".join(f"w{(100 + i + j) % 195}" for j in range(length - 5)) for i in range(8)]
    queries, grades = {f"q{i}": f"w{i}" for i in range(8)}, {f"q{i}": {f"d{i}": 1} for i in range(8)}
    split = Split(queries, grades, {query: dict.fromkeys([f"d{i}" for i in range(8)], 1.0) for query in queries})
    if not edges:
        return split, builder_of(str(bert), texts, passages=Windows(8))
    social = SocialEdges([StaticDistance(), DynamicDistance()])
    return split, builder_of(str(bert), texts, social, EdgeCircles(k=2, max_size=64), Windows(16))


@pytest.fixture
def task(tiny_bert):
    """Return the folder of a BERT, a split and a builder."""
    return tiny_bert[0], *task_for(tiny_bert[0])


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
