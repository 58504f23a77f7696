"""One broken model for each law, and what is said of it."""

from __future__ import annotations

import torch
from torch_geometric.utils import scatter

from socialgraph.nn import MaxP
from socialgraph.testing.model_graphs import TOGETHER


class Good(MaxP):
    """Right as it is; those below break one law each."""


class Column(Good):
    def scores(self, graph):
        return super().scores(graph)[:, None]


class NoFloor(Good):
    """The best of no passages."""

    def scores(self, graph):
        amount = torch.bincount(graph.batch[graph.leader_index], minlength=graph.num_graphs)
        return super().scores(graph).masked_fill(amount == 0, -torch.inf)


class NotEmpty(Good):
    def scores(self, graph):
        return super().scores(graph) + graph.input_ids.max()


class InPlace(Good):
    def scores(self, graph):
        graph.tfidf += 1.0
        return super().scores(graph)


class Adds(Good):
    def scores(self, graph):
        graph.scored = super().scores(graph)
        return graph.scored


class Alternating(Good):
    calls = 0

    def scores(self, graph):
        self.calls += 1
        return super().scores(graph) + self.calls % 2


class Dice(Good):
    def scores(self, graph):
        return super().scores(graph) + 1e-9 * torch.rand(1)


class Sociable(Good):
    """Looks at the documents beside."""

    def scores(self, graph):
        scores = super().scores(graph)
        return scores - scores.mean()


class Superstitious(Good):
    """Cares who comes second, and who last but one."""

    def scores(self, graph):
        lengths = graph.ptr.diff()
        return super().scores(graph) + float(len(lengths) > 3 and lengths[1] < lengths[-2])


class Unwritten(Good):
    """Takes an option that no file can hold."""

    def __init__(self, weight=torch.nn.Identity(), **bert):  # noqa: B008
        super().__init__(**bert)
        self.weight = weight


class Unsaved(Good):
    """Keeps a weight where torch does not find it."""

    def __init__(self, **bert):
        super().__init__(**bert)
        self.kept = [torch.rand(1)]

    def scores(self, graph):
        return super().scores(graph) + self.kept[0]


class Rooted(Good):
    """The slope of a root at 0 is infinite, whatever torch.where chooses."""

    def scores(self, graph):
        total = graph.ptr.diff() * self.score.weight.square().sum()
        return super().scores(graph) + torch.where(total > 0, total.sqrt(), 0.0)


class Detached(Good):
    def scores(self, graph):
        return (self.score.weight.sum() + self.score.bias) * super().scores(graph).detach()


class Idle(Good):
    def __init__(self, **bert):
        super().__init__(**bert)
        self.idle = torch.nn.Linear(2, 2)


class Rounded(Good):
    def __init__(self, **bert):
        super().__init__(**bert)
        self.share = torch.nn.Parameter(torch.ones(1))

    def scores(self, graph):
        return super().scores(graph) + self.share.mul(10).round()


class QueryAlone(Good):
    """Never looks at the document."""

    def scores(self, graph):
        words = self.embedding.word.weight[graph.query_ids].mean(1)
        owner = torch.repeat_interleave(graph.query_length)
        mean = scatter(words, owner, dim_size=graph.query_length.numel(), reduce="mean")
        rest = sum(weight.sum() for weight in self.parameters())
        return mean + 1e-3 * rest


#: model -> (law, graph, and a part of what is said)
BROKEN = {
    Column: ("every document gets one finite score", "some words", "1 documents must have the scores [1], got [1, 1]"),
    NoFloor: ("every document gets one finite score", "empty", "document 0 scores -inf"),
    NotEmpty: ("every document gets one finite score", "empty", "it raises RuntimeError: max()"),
    InPlace: ("the graph stays as it is", "some words", "tfidf is another after the call"),
    Adds: ("the graph stays as it is", "some words", "scored is new after the call"),
    Alternating: ("the same graph gets the same scores", "some words", "document 0 scores "),
    Dice: ("global random numbers stay as they are", "some words", "it uses or seeds the global generator of torch"),
    Sociable: ("a batch is its documents alone", TOGETHER, "in the batch, "),
    Superstitious: ("the order of documents does not matter", TOGETHER, "document 0 scores "),
    Unwritten: (
        "what is saved is loaded",
        TOGETHER,
        "raises OptionError: torch.nn.modules.linear.Identity: it takes any",
    ),
    Unsaved: ("what is saved is loaded", TOGETHER, "when saved, "),
    Rooted: ("gradients are finite", TOGETHER, "the gradient of score.weight is not finite"),
    Detached: ("gradients reach every parameter", TOGETHER, "no gradient comes to embedding.word.weight and "),
    Idle: ("gradients reach every parameter", TOGETHER, "no gradient comes to idle.weight and 1 others"),
    Rounded: ("gradients reach every parameter", TOGETHER, "no gradient comes to share; "),
    QueryAlone: ("two documents can be told apart", "two documents", "the loss was 0.6931 at first and 0.6931 after"),
}
