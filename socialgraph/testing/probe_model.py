"""What can a model carry from one place of a document to another? A small one is trained where the answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F
from torch_geometric.data import Batch

from socialgraph.data.circles import compose
from socialgraph.data.graph import document_graph, gather
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance, draw_key
from socialgraph.errors import OptionError, is_whole
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.partition import Partition, Windows

#: sizes of a BERT that is trained in seconds
SMALL: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 64,
    "max_positions": 64, "dropout": 0.0, "cls_token_id": 2, "sep_token_id": 3,
}  # fmt: skip
#: words of the made-up language: both values of the query, of each half of an answer, and of what leads astray; fillers
QUERY, ONE, OTHER, ASTRAY, FILLERS = (10, 11), (12, 13), (14, 15), (16, 17), range(20, 64)
#: words of a document, and of a window
LENGTH, WINDOW = 64, 16
#: pairs of a step, and those that are asked in the end
TOGETHER, ASKED = 32, 256


class Sort(NamedTuple):
    """A sort of documents."""

    kind: str  #: "fact": the document says what the query asks for; "halves": two halves of an answer agree
    distance: int = 0  #: between the halves
    distractors: int = 0  #: words that look like halves and mean nothing


#: what is tried: what any model can do, halves in one window, in two windows, and among distractors
SORTS = (Sort("fact"), Sort("halves", 4), Sort("halves", 32), Sort("halves", 32, 4))


class Carried(NamedTuple):
    """How often a model put the right document first."""

    sort: Sort
    share: list[float]  #: of the pairs that were asked, for each seed; chance is 0.5


class ModelProbe(NamedTuple):
    """What :func:`probe_model` found; ``print`` shows it as a table."""

    model: str
    steps: int
    rows: list[Carried]

    def __str__(self) -> str:
        lines = [f"{self.model}, {self.steps} steps of {TOGETHER} pairs; right of {ASKED}, chance 0.50", ""]
        lines.append(f"{'kind':8}{'distance':>10}{'distractors':>13}   right, for each seed")
        for (kind, distance, distractors), share in self.rows:
            right = "  ".join(f"{one:.2f}" for one in share)
            lines.append(f"{kind:8}{distance or '-':>10}{distractors:>13}   {right}")
        return "\n".join(lines)


def probe_model(
    make: Callable[[], HubRanker],
    circles: Partition | None = None,
    sorts: Sequence[Sort] = SORTS,
    steps: int = 100,
    seeds: Sequence[int] = (0,),
    learning_rate: float = 2e-3,
) -> ModelProbe:
    """Train a small model on made-up documents, and measure how often it then puts the right one of two first.

    Both documents of a pair have 64 words, the same but for one, and are read in windows of 16. Sorts:

    * *fact*: the query says one of two words, the document has the word that belongs to it, or the other one. Each
      window is read with the query, so every model should learn this.
    * *halves*: an answer has two halves, ``distance`` words apart, each with one of two values. The right document's
      agree, the wrong one's do not; one half alone says nothing, so they must be brought together. Below 16 words
      they stand in one window, from there on in two. *Distractors* look alike and mean nothing.

    A model that learns nothing in these steps may learn it in more: a share near 0.5 says what a short training from
    nothing comes to, and no more. The same seed gives all models the same documents.

    Args:
        make: makes the model, such as ``lambda: MyModel(**SMALL)``, with random weights.
        circles: friend circles beside the windows, drawn from friends by distance, centrality and query match.
        sorts: of documents; a model of its own is trained for each.
        steps: of training, of 32 pairs each.
        seeds: of weights and documents.
        learning_rate: of Adam.

    Raises:
        OptionError: a number out of its range.
    """
    for value in (steps, *(sort.distance + 1 for sort in sorts)):
        if not is_whole(value, 1):
            raise OptionError(f"steps must be at least 1 and distances at least 0, got {value}")
    with torch.random.fork_rng(devices=[]):
        rows = [Carried(sort, [right(make, circles, sort, steps, seed, learning_rate) for seed in seeds])
                for sort in sorts]  # fmt: skip
        return ModelProbe(type(make()).__name__, steps, rows)


def right(
    make: Callable[[], HubRanker], circles: Partition | None, sort: Sort, steps: int, seed: int, learning_rate: float
) -> float:
    """Return the share of pairs that a model puts right after its training."""
    torch.manual_seed(seed)
    model = make().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        better, worse = model(pairs(draw, sort, TOGETHER, circles)).view(-1, 2).unbind(1)
        optimizer.zero_grad()
        loss: Any = F.softplus(worse - better).mean()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        better, worse = model(pairs(draw, sort, ASKED, circles)).view(-1, 2).unbind(1)
    return float(((better > worse) + 0.5 * (better == worse)).mean())  # a tie is half right


def pairs(draw: torch.Generator, sort: Sort, amount: int, circles: Partition | None) -> Batch:
    """Return pairs of documents, the right one first: ``2 * amount`` graphs."""
    graphs = []
    for _ in range(amount):
        words = torch.randint(FILLERS.start, FILLERS.stop, (LENGTH,), generator=draw)
        first = int(torch.randint(LENGTH - sort.distance, (1,), generator=draw))
        if sort.distance < WINDOW:  # in one window
            first = first // WINDOW * WINDOW + first % (WINDOW - sort.distance)
        second = first + sort.distance
        asked, value = torch.randint(2, (2,), generator=draw).tolist()
        for place in torch.randperm(LENGTH, generator=draw)[: sort.distractors + 2].tolist():
            if place not in (first, second) and sort.distractors:
                words[place] = ASTRAY[place % 2]
        key = int(torch.randint(1 << 30, (1,), generator=draw))
        for wrong in (0, 1):
            said = words.clone()
            if sort.kind == "fact":
                said[first] = ONE[(asked + wrong) % 2]
            else:
                said[first], said[second] = ONE[value], OTHER[(value + wrong) % 2]
            tfidf = torch.where(said < FILLERS.start, 5.0, 1.0).double()
            query = torch.tensor([QUERY[asked if sort.kind == "fact" else 0]])
            graphs.append(document_graph(said, query, draw_key(key, query, said), tfidf=tfidf))
    graph = Batch.from_data_list(graphs)
    layout = graph.input_ids.new_empty(2, 0), graph.batch, graph.num_graphs
    weight = None
    if circles is not None:
        match = DynamicDistance()
        edges = SocialEdges([StaticDistance(), StaticCentrality(), match], sparsity=0.8)
        graph.dynamic_distance = match.weights(graph)
        edge_index, weight = edges(graph)
        layout = edge_index, graph.batch, graph.num_graphs
    gather(graph, *compose(Windows(WINDOW), circles, *layout, weight))
    return graph
