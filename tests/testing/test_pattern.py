"""Every pattern obeys every law, and every law can be broken."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from socialgraph.edges import (
    Affinity,
    Centrality,
    DynamicCentrality,
    DynamicDistance,
    LowRank,
    Pattern,
    StaticCentrality,
    StaticDistance,
    Uniform,
)
from socialgraph.edges.kleinberg import Kleinberg
from socialgraph.edges.layout import documents
from socialgraph.edges.learned import Learned
from socialgraph.edges.nearby import Nearby
from socialgraph.edges.query_to_all import QueryToAll
from socialgraph.edges.watts_strogatz import WattsStrogatz
from socialgraph.errors import LawError, OptionError, law_name
from socialgraph.testing import check_pattern
from socialgraph.testing.documents import hard_documents
from socialgraph.testing.pattern import LAWS

PATTERNS = [
    Uniform(), StaticDistance(), StaticCentrality(), DynamicDistance(), WattsStrogatz(), WattsStrogatz(4, 0.3),
    Kleinberg(), Kleinberg(3.0), Nearby(), Nearby(3), QueryToAll(),
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_every_pattern_obeys(pattern: Pattern) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize("mode", ["attention", "cosine"])
def test_dynamic_centrality_obeys(tiny_bert, mode: str) -> None:
    check_pattern(DynamicCentrality(tiny_bert[0], mode))


def test_learned_obeys(tiny_bert) -> None:
    check_pattern(Learned(tiny_bert[0], rank=8))


# --- one broken pattern for each law --------------------------------------------------------------


class Rule(Affinity):
    """Any function of two places as an affinity."""

    def __init__(self, graph, rule) -> None:
        super().__init__(*documents(graph))
        self.rule = rule

    def pair(self, i, j):
        return self.rule(i - self.ptr[self.batch[i]], j - self.ptr[self.batch[j]])


def near(i, j):
    return 1.0 / (1.0 + (i - j).abs().double())


class Good(Pattern):
    """Right as it is; those below break one law each."""

    def forward(self, graph):
        return Rule(graph, near)


class Batchwise(Good):
    """A name that PyG would take for a number of graphs."""


class Size(Good):
    """A name that graphs have already."""


class Update(Good):
    """A name that a dict of modules has already."""


class Segment(Good):
    """A name that some graphs have already."""


class Named(Good):
    name = "Named"


class Silent(Good):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()


class Tensors(Good):
    def forward(self, graph):
        return torch.ones(len(graph.input_ids), len(graph.input_ids))


class Single(Good):
    def forward(self, graph):
        return Rule(graph, lambda i, j: near(i, j).float())


class Flat(Good):
    def forward(self, graph):
        return Rule(graph, lambda i, j: near(i, j)[:1])


class OneDocument(Good):
    def forward(self, graph):
        size = len(graph.input_ids)
        return LowRank(torch.zeros(size, dtype=torch.long), torch.tensor([0, size]), constant=torch.ones(1))


class NotEmpty(Good):
    def forward(self, graph):
        graph.input_ids.max()  # of nothing there is none
        return super().forward(graph)


class TooMuch(Good):
    def forward(self, graph):
        return Rule(graph, lambda i, j: 3.0 * near(i, j))


class Infinite(Good):
    def forward(self, graph):
        return Rule(graph, lambda i, j: (i - j).double() / (i - j).double().clamp(min=0.0))


class OneSided(Good):
    def forward(self, graph):
        return Rule(graph, lambda i, j: torch.where(i < j, near(i, j), 0.0))


class InPlace(Good):
    def forward(self, graph):
        graph.tfidf.clamp_(max=0.4)
        return super().forward(graph)


class Alternating(Good):
    calls = 0

    def forward(self, graph):
        self.calls += 1
        return Rule(graph, lambda i, j: near(i, j) / self.calls)


class Dice(Good):
    def forward(self, graph):
        torch.rand(1)
        return super().forward(graph)


class Sociable(Good):
    def forward(self, graph):
        share = 1.0 / len(documents(graph)[1])
        return Rule(graph, lambda i, j: near(i, j) * share)


class SociableCelebrities(Centrality):
    costly = True

    def weights(self, graph):
        return graph.tfidf + 0.01 * len(documents(graph)[1])


class OtherBlocks(Good):
    def forward(self, graph):
        affinity = super().forward(graph)
        affinity.block = lambda i, j: 0.5 * affinity.pair(i, j)
        return affinity


class HalfBlocks(Good):
    def forward(self, graph):
        affinity = super().forward(graph)
        blocks = list(affinity.blocks())
        affinity.blocks = lambda: iter(blocks * 2)
        return affinity


class OtherSums(Good):
    def forward(self, graph):
        affinity = super().forward(graph)
        affinity.row_sums = lambda: Affinity.row_sums(affinity) + 0.1
        return affinity


class OtherTotals(Good):
    def forward(self, graph):
        affinity = super().forward(graph)
        affinity.totals = lambda: Affinity.totals(affinity) * 1.5
        return affinity


class LowBound(Good):
    def forward(self, graph):
        affinity = super().forward(graph)
        affinity.highest = lambda: Affinity.highest(affinity) * 0.3
        return affinity


class Halved(LowRank):
    """Mixtures of a LowRank are made of its factors: what its methods say is lost."""

    def pair(self, i, j):
        p = super().pair(i, j)
        return torch.where((i - j) % 2 == 0, p, 0.5 * p)

    block = pair
    row_sums, totals = Affinity.row_sums, Affinity.totals


class LostInTheMix(Good):
    def forward(self, graph):
        batch, ptr = documents(graph)
        return Halved(batch, ptr, constant=torch.ones(len(ptr) - 1))


class Carried(Good):
    def __init__(self) -> None:
        super().__init__()
        self.share = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, graph):
        return Rule(graph, lambda i, j: near(i, j) * self.share)


#: pattern -> (law, document, and a part of what is said)
BROKEN = {
    Named: ("it has a name for graphs", "empty", "the name must be in snake case, got 'Named'"),
    Size: ("it has a name for graphs", "empty", "the name 'size' is taken"),
    Update: ("it has a name for graphs", "empty", "the name 'update' is taken"),
    Segment: ("it has a name for graphs", "empty", "the name 'segment' is taken"),
    Batchwise: ("it has a name for graphs", "empty", "the name 'batchwise' means something to PyG"),
    Silent: ("repr names every argument", "empty", "repr must say 'depth=', got 'Silent()'"),
    Tensors: ("it answers with an affinity", "empty", "forward must return an Affinity, got Tensor"),
    Single: ("it answers with an affinity", "empty", "pair must return float64 on cpu, got torch.float32 on cpu"),
    Flat: ("it answers with an affinity", "two words", "[l, 1] and [1, l] to [l, l], got [1, 2]"),
    OneDocument: ("it answers with an affinity", "batch of unequal documents", "the affinity's batch must be"),
    NotEmpty: ("it answers with an affinity", "empty", "it raises RuntimeError: max()"),
    TooMuch: ("values lie between 0 and 1", "two words", "document 0: P(0, 1) = 1.5, not in [0, 1]"),
    Infinite: ("values lie between 0 and 1", "two words", "document 0: P(0, 1) = -inf, not in [0, 1]"),
    OneSided: ("who comes first does not matter", "two words", "document 0: P(0, 1) = 0.5, P(1, 0) = 0"),
    InPlace: ("the graph stays as it is", "one word", "tfidf is another after the call"),
    Alternating: ("the same graph gets the same values", "two words", "P(0, 1) = 0.5 at the first call, 0.25 at"),
    Dice: ("global random numbers stay as they are", "empty", "it uses or seeds the global generator of torch"),
    Sociable: ("a batch is its documents alone", "batch of unequal documents", "document 2: P(0, 1) = "),
    SociableCelebrities: ("a batch is its documents alone", "batch of unequal documents", "document 5: P(0, "),
    OtherBlocks: ("blocks are the pairs", "two words", "document 0: P(0, 1) = 0.5 as a pair, 0.25 in its block"),
    HalfBlocks: ("blocks are the pairs", "two words", "blocks must come to each pair i < j of document 0 once"),
    OtherSums: ("sums are those of the pairs", "one word", "place 0 of document 0 sum up to 0, row_sums says 0.1"),
    OtherTotals: ("sums are those of the pairs", "two words", "document 0 sum up to 1, totals says 1.5"),
    LowBound: ("no pair exceeds the highest", "two words", "document 0: P(0, 1) = 0.5, highest says 0.3"),
    LostInTheMix: ("edges can be drawn from it alone", "one word, repeated", "P(0, 1) = 0.5, but mixed and"),
    Carried: ("no gradient is carried along", "two words", "P asks for a gradient outside no_grad"),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_law_is_named(broken: type[Pattern]) -> None:
    law, name, offence = BROKEN[broken]
    with pytest.raises(LawError) as caught:
        check_pattern(broken())
    message = str(caught.value)
    assert "\n" not in message
    assert f"breaks the law {law!r} on the graph {name!r}" in message
    assert offence in message


def test_what_breaks_laws_would_obey_without_it() -> None:
    check_pattern(Good())


def test_every_law_can_be_broken() -> None:
    assert {law for law, _, _ in BROKEN.values()} == {law_name(law) for law in LAWS}


def test_the_pattern_itself_is_left_alone() -> None:
    pattern = Alternating()
    with pytest.raises(LawError):
        check_pattern(pattern)
    assert pattern.calls == 0


def test_a_class_is_no_instance() -> None:
    with pytest.raises(OptionError, match=r"takes an instance of a Pattern, such as MyPattern\(\)"):
        check_pattern(Uniform)


def test_the_documents_are_hard() -> None:
    graphs = hard_documents(torch.device("cpu"))
    assert {0, 1, 2, 200} <= {len(graph.input_ids) for graph in graphs.values()}
    matches = {name: torch.isin(g.input_ids, g.query_ids).double().mean().item() for name, g in graphs.items()}
    assert matches["no word of the query"] == 0 < matches["long"] < 1 == matches["nothing but the query's word"]
    batch = graphs["batch of unequal documents"]
    assert isinstance(batch, Batch)
    lengths = batch.ptr.diff().tolist()
    assert lengths[0] == lengths[-1] == 0
    assert 0 in lengths[1:-1]
    assert len(set(lengths)) > 6
