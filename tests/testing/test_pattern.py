"""Patterns of the package keep their contract; broken ones are named."""

from __future__ import annotations

import pytest
import torch
from drawing import Rule, near

from socialgraph.edges import Affinity, Centrality, DynamicCentrality, LowRank, Pattern, Pmi, Uniform
from socialgraph.edges.dynamic_distance import DynamicDistance
from socialgraph.edges.layout import documents
from socialgraph.edges.learned import Learned
from socialgraph.edges.network_models import Kleinberg, Nearby, QueryToAll, WattsStrogatz
from socialgraph.edges.static_centrality import StaticCentrality
from socialgraph.edges.static_distance import StaticDistance
from socialgraph.errors import ContractError, OptionError
from socialgraph.testing import check_pattern
from socialgraph.testing.graphs import TOGETHER

PATTERNS = [
    Uniform(), StaticDistance(), StaticCentrality(), DynamicDistance(), WattsStrogatz(), WattsStrogatz(4, 0.3),
    Kleinberg(), Kleinberg(3.0), Nearby(), Nearby(3), QueryToAll(), Pmi(), Pmi(window=2, least=1),
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_every_pattern_keeps_its_contract(pattern: Pattern) -> None:
    check_pattern(pattern)


def test_patterns_with_a_bert_keep_their_contract(tiny_bert) -> None:
    for pattern in (
        DynamicCentrality(tiny_bert[0]),
        DynamicCentrality(tiny_bert[0], "cosine"),
        Learned(tiny_bert[0], 8),
    ):
        check_pattern(pattern)


class Good(Pattern):
    """Right as it is; those below break one contract each. What all checks share: test_partition.py."""

    def forward(self, graph):
        return Rule(*documents(graph), lambda i, j: self.rule(i, j).double())

    def rule(self, i, j):
        return near(i, j)


class Batchwise(Centrality):
    """PyG would take what has this name for a number of graphs."""

    def weights(self, graph):
        return graph.tfidf


class Matrix(Good):
    def forward(self, graph):
        return torch.ones(graph.num_nodes, graph.num_nodes)


class HalfPrecise(Good):
    def forward(self, graph):
        return Rule(*documents(graph), lambda i, j: near(i, j).float())


class InNumpy(Good):
    def forward(self, graph):
        return Rule(*documents(graph), lambda i, j: near(i, j).numpy())


class OneDocument(Good):
    def forward(self, graph):
        size = len(graph.input_ids)
        return LowRank(torch.zeros(size, dtype=torch.long), torch.tensor([0, size]), constant=torch.ones(1))


class AboveOne(Good):
    def rule(self, i, j):
        return 3.0 * near(i, j)


class OneWay(Good):
    def rule(self, i, j):
        return near(i, j) * (i < j)


class AmongAll(Good):
    """Counts places from the start of the batch."""

    def rule(self, i, j):
        return ((i + j) % 97) / 97


class OneWeight(Centrality):
    def weights(self, graph):
        return graph.tfidf[:1]


class Negative(Centrality):
    def weights(self, graph):
        return -graph.tfidf


class Halved(LowRank):
    """Mixtures of a LowRank are made of its factors: what its methods say is lost."""

    def pair(self, i, j):
        return super().pair(i, j) * torch.where((i - j) % 2 == 0, 1.0, 0.5)

    block = pair
    row_sums, totals = Affinity.row_sums, Affinity.totals


class LostInTheMix(Good):
    def forward(self, graph):
        batch, ptr = documents(graph)
        return Halved(batch, ptr, constant=torch.ones(len(ptr) - 1))


RANGE, SAME = "probabilities lie between 0 and 1", "edges are drawn from the same probabilities"
#: pattern -> (contract, document, and a part of what is said)
BROKEN: dict[type[Pattern], tuple[str, str, str]] = {
    Batchwise: ("it has a name for graphs", "none yet", "'batchwise' means something to graphs of PyG"),
    Matrix: ("form", "empty", "forward must return an Affinity, got Tensor"),
    HalfPrecise: ("form", "empty", "pair must return float64 [0, 0] on cpu, as its ids broadcast, got torch.float32"),
    InNumpy: ("form", "empty", "pair must return a dense tensor, got ndarray"),
    OneDocument: ("form", "two empty documents", "the affinity has 1 documents, the graph 2"),
    AboveOne: (RANGE, "no edges", "document 0: P(0, 1) = 1.5, P(1, 0) = 1.5"),
    OneWay: ("probabilities are symmetric", "no edges", "document 0: P(0, 1) = 0.5, P(1, 0) = 0"),
    AmongAll: ("a batch is its documents alone", TOGETHER, "document 2: P(0, 1) = "),
    OneWeight: ("form", "no edges", "weights must return a dense tensor, [5], got [1]"),
    Negative: ("weights are finite and not negative", "one word", "the weight of place 0 is -"),
    LostInTheMix: (SAME, "no edges", "mixed and scaled"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_contract_is_named(broken: type[Pattern]) -> None:
    contract, document, what = BROKEN[broken]
    pattern = broken()
    with pytest.raises(ContractError) as caught:
        check_pattern(pattern)
    message = str(caught.value)
    assert message.startswith(f"{pattern!r} breaks the contract {contract!r} on the graph {document!r}: ")
    assert what in message
    assert "\n" not in message


class NearIndex(Good):
    """Keeps no weights in a graph, so may have any name."""


def test_right_ones_are_not() -> None:
    check_pattern(NearIndex())
    with pytest.raises(OptionError, match=r"takes an instance of a Pattern, such as MyPattern\(\)"):
        check_pattern(Uniform)
