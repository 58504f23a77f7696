"""One broken pattern for each law, and what is said of it."""

from __future__ import annotations

from functools import partial

import torch
from drawing import Rule, near

from socialgraph.edges import Affinity, Centrality, LowRank, Pattern
from socialgraph.edges.layout import documents


def infinite(i, j):
    return (i - j).double() / (i - j).double().clamp(min=0.0)


class Good(Pattern):
    """Right as it is; those below break one law each."""

    def forward(self, graph):
        return Rule(*documents(graph), near)


class By(Good):
    """Has one argument, and prints it."""

    def __init__(self, how) -> None:
        super().__init__()
        self.how = how

    def __repr__(self) -> str:
        return f"{type(self).__name__}(how={self.how})"


class Ruled(By):
    """P(i, j) by somebody's rule."""

    def forward(self, graph):
        return Rule(*documents(graph), self.how)


class Altered(By):
    """A right affinity, and what somebody makes of it."""

    def forward(self, graph):
        affinity = super().forward(graph)
        altered = self.how(affinity)
        return affinity if altered is None else altered


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


class OneDocument(Good):
    def forward(self, graph):
        size = len(graph.input_ids)
        return LowRank(torch.zeros(size, dtype=torch.long), torch.tensor([0, size]), constant=torch.ones(1))


class NotEmpty(Good):
    def forward(self, graph):
        graph.input_ids.max()  # of nothing there is none
        return super().forward(graph)


class InPlace(Good):
    def forward(self, graph):
        graph.tfidf.clamp_(max=0.4)
        return super().forward(graph)


class Alternating(Good):
    calls = 0

    def forward(self, graph):
        self.calls += 1
        return Rule(*documents(graph), lambda i, j: near(i, j) / self.calls)


class Trained(Good):
    def forward(self, graph):
        return Rule(*documents(graph), lambda i, j: near(i, j) / (1 + self.training))


class OneWeight(Centrality):
    def weights(self, graph):
        return graph.tfidf[:1]


class Dice(Good):
    def forward(self, graph):
        torch.rand(1)
        return super().forward(graph)


class Sociable(Good):
    def forward(self, graph):
        share = 1.0 / len(documents(graph)[1])
        return Rule(*documents(graph), lambda i, j: near(i, j) * share)


class SociableCelebrities(Centrality):
    costly = True

    def weights(self, graph):
        return graph.tfidf + 0.01 * len(documents(graph)[1])


def other_blocks(affinity):
    affinity.block = lambda i, j: 0.5 * affinity.pair(i, j)


def blocks_twice(affinity):
    blocks = list(affinity.blocks())
    affinity.blocks = lambda: iter(blocks * 2)


def other_sums(affinity):
    affinity.row_sums = lambda: Affinity.row_sums(affinity) + 0.1


def other_totals(affinity):
    affinity.totals = lambda: Affinity.totals(affinity) * 1.5


def low_bound(affinity):
    affinity.highest = lambda: Affinity.highest(affinity) * 0.3


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
        return Rule(*documents(graph), lambda i, j: near(i, j) * self.share)


NAME, AFFINITY, RANGE = "it has a name for graphs", "it answers with an affinity", "values lie between 0 and 1"
BLOCKS, SUMS, ALONE = "blocks are the pairs", "sums are those of the pairs", "a batch is its documents alone"
TWO, BATCH = "two words", "batch of unequal documents"

#: pattern -> (law, document, and a part of what is said)
BROKEN = {
    Named: (NAME, "empty", "the name must be in snake case, got 'Named'"),
    Size: (NAME, "empty", "the name 'size' is taken"),
    Update: (NAME, "empty", "the name 'update' is taken"),
    Segment: (NAME, "empty", "the name 'segment' is taken"),
    Batchwise: (NAME, "empty", "the name 'batchwise' means something to PyG"),
    Silent: ("repr names every argument", "empty", "repr must say 'depth=', got 'Silent()'"),
    partial(Altered, lambda p: torch.ones(2, 2)): (AFFINITY, "empty", "forward must return an Affinity, got Tensor"),
    partial(Ruled, lambda i, j: near(i, j).float()): (
        AFFINITY, "empty", "pair must return float64 on cpu, got torch.float32 on cpu",
    ),
    partial(Ruled, lambda i, j: near(i, j)[:1]): (AFFINITY, TWO, "[l, 1] and [1, l] to [l, l], got [1, 2]"),
    OneDocument: (AFFINITY, BATCH, "the affinity's batch must be"),
    NotEmpty: (AFFINITY, "empty", "it raises RuntimeError: max()"),
    partial(Ruled, lambda i, j: 3.0 * near(i, j)): (RANGE, TWO, "document 0: P(0, 1) = 1.5, not in [0, 1]"),
    partial(Ruled, infinite): (RANGE, TWO, "document 0: P(0, 1) = -inf, not in [0, 1]"),
    partial(Ruled, lambda i, j: torch.where(i < j, near(i, j), 0.0)): (
        "who comes first does not matter", TWO, "document 0: P(0, 1) = 0.5, P(1, 0) = 0",
    ),
    InPlace: ("the graph stays as it is", "one word", "tfidf is another after the call"),
    Alternating: ("the same graph gets the same values", TWO, "P(0, 1) = 0.5 at the first call, 0.25 at"),
    Trained: ("training and ranking get the same values", TWO, "P(0, 1) = 0.25 as it was made, 0.5 after eval()"),
    OneWeight: ("weights are a number for each node", TWO, "real numbers, [2], got torch.float32 [1], torch.strided"),
    Dice: ("global random numbers stay as they are", "empty", "it uses or seeds the global generator of torch"),
    Sociable: (ALONE, BATCH, "document 2: P(0, 1) = "),
    SociableCelebrities: (ALONE, BATCH, "document 5: P(0, "),
    partial(Altered, other_blocks): (BLOCKS, TWO, "document 0: P(0, 1) = 0.5 as a pair, 0.25 in its block"),
    partial(Altered, blocks_twice): (BLOCKS, TWO, "blocks must come to each pair i < j of document 0 once"),
    partial(Altered, other_sums): (SUMS, "one word", "place 0 of document 0 sum up to 0, row_sums says 0.1"),
    partial(Altered, other_totals): (SUMS, TWO, "document 0 sum up to 1, totals says 1.5"),
    partial(Altered, low_bound): ("no pair exceeds the highest", TWO, "document 0: P(0, 1) = 0.5, highest says 0.3"),
    LostInTheMix: ("edges can be drawn from it alone", "one word, repeated", "P(0, 1) = 0.5, but mixed and"),
    Carried: ("no gradient is carried along", TWO, "P asks for a gradient outside no_grad"),
}  # fmt: skip
