"""The laws of a partition, tried on hard graphs."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from socialgraph.errors import LawError, OptionError
from socialgraph.partition.partition import Partition


def check_partition(partition: Partition, device: torch.device | str = "cpu") -> None:
    """Check that a partition obeys every law, on hard graphs; say nothing where it does.

    The graphs are small and each is hard in its own way: empty, one node, no edges, one edge, a path, stars, cliques,
    random ones with and without ties, and batches of all of them. The laws are those of :data:`ANSWER_LAWS`, which
    every answer must obey, :data:`CALL_LAWS`, which compare several calls, and
    :func:`equal_weights_favour_no_end`, tried on 40 random documents.

    Args:
        partition: an instance, such as ``MyPartition(k=4)``; it is copied for every law.
        device: where the graphs lie.

    Raises:
        LawError: a law is broken. The message names the law, the graph and the offending circle.
        OptionError: not an instance of :class:`Partition`.
    """
    if not isinstance(partition, Partition):
        raise OptionError(f"check_partition takes an instance of a Partition, such as MyPartition(), got {partition!r}")
    device = torch.device(device)
    calls = [(law, graph) for law in CALL_LAWS for graph in hard_graphs(device)]
    calls.append((equal_weights_favour_no_end, equal_friends(getattr(partition, "max_size", 128), device)))
    for law, graph in calls:
        try:
            offence = law(copy.deepcopy(partition), graph)
        except LawError:
            raise
        except Exception as error:  # whatever the partition raises, the message says where
            offence = f"it raises {type(error).__name__}: {error}"
            raise LawError(partition, name_of(law), graph.name, offence) from error
        if offence:
            raise LawError(partition, name_of(law), graph.name, offence)


# --- graphs ---------------------------------------------------------------------------------------


class Graph(NamedTuple):
    """What a partition is given: one document or a batch of them."""

    name: str
    edge_index: Tensor
    batch: Tensor
    batch_size: int
    edge_weight: Tensor | None

    def documents(self) -> list[Graph]:
        """Return each document as a graph of its own."""
        found = []
        for number in range(self.batch_size):
            node = (self.batch == number).nonzero().flatten()
            edge = self.batch[self.edge_index[0]] == number
            edges = self.edge_index[:, edge] - (int(node[0]) if node.numel() else 0)
            weight = None if self.edge_weight is None else self.edge_weight[edge]
            found.append(Graph(f"{self.name}, document {number} alone", edges, torch.zeros_like(node), 1, weight))
        return found

    def to(self, device: torch.device) -> Graph:
        """Return a copy of the graph on a device."""
        weight = None if self.edge_weight is None else self.edge_weight.to(device, copy=True)
        edge_index, batch = (x.to(device, copy=True) for x in (self.edge_index, self.batch))
        return Graph(self.name, edge_index, batch, self.batch_size, weight)


def one_document(name: str, size: int, pairs: Iterable[tuple[int, int]], equal: bool = False) -> Graph:
    """Return the graph of these pairs (i < j), with random weights in (0, 1] or equal ones."""
    pair = torch.tensor(sorted(set(pairs)), dtype=torch.long).reshape(-1, 2).T
    weight = 1.0 - torch.rand(pair.size(1), generator=torch.Generator().manual_seed(size))
    weight = torch.full_like(weight, 0.5) if equal else weight
    edge_index = torch.cat([pair, pair.flip(0)], 1)
    order = torch.argsort(edge_index[0] * size + edge_index[1])
    return Graph(name, edge_index[:, order], torch.zeros(size, dtype=torch.long), 1, weight.repeat(2)[order])


def join(name: str, graphs: Sequence[Graph]) -> Graph:
    """Return documents as one batch."""
    device = graphs[0].batch.device
    sizes = torch.tensor([graph.batch.numel() for graph in graphs], device=device)
    starts = sizes.cumsum(0) - sizes
    edge_index = torch.cat([graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)], 1)
    weight = torch.cat([torch.empty(0, device=device) if g.edge_weight is None else g.edge_weight for g in graphs])
    return Graph(name, edge_index, torch.repeat_interleave(sizes), len(graphs), weight)


def hard_graphs(device: torch.device) -> list[Graph]:
    """Return the graphs that partitions are checked on."""

    def clique(nodes: Iterable[int]) -> list[tuple[int, int]]:
        nodes = list(nodes)
        return [(i, j) for i in nodes for j in nodes if i < j]

    def chance(size: int, density: float) -> list[tuple[int, int]]:
        hit = torch.rand(size, size, generator=torch.Generator().manual_seed(size)) < density
        return [(i, j) for i, j in hit.triu(1).nonzero().tolist()]

    empty = one_document("empty", 0, [])
    graphs = [
        empty,
        one_document("one node", 1, []),
        one_document("no edges", 5, []),
        one_document("one edge", 2, [(0, 1)]),
        one_document("one edge among strangers", 6, [(2, 5)]),
        one_document("path", 10, [(i, i + 1) for i in range(9)]),
        one_document("star", 9, [(i, 8) for i in range(8)]),
        one_document("star of 150", 150, [(min(i, 70), max(i, 70)) for i in range(150) if i != 70]),
        one_document("complete", 7, clique(range(7)), equal=True),
        one_document("two cliques", 10, clique(range(5)) + clique(range(5, 10))),
        one_document("two cliques, interleaved", 10, clique(range(0, 10, 2)) + clique(range(1, 10, 2)), equal=True),
        one_document("two cliques that share a node", 9, clique(range(5)) + clique(range(4, 9))),
        one_document("pairs", 40, [(i, i + 20) for i in range(20)]),
        one_document("random, sparse", 60, chance(60, 0.03)),
        one_document("random", 120, chance(120, 0.07)),
        one_document("random, dense", 50, chance(50, 0.6)),
        one_document("random, equal weights", 55, chance(55, 0.2), equal=True),
    ]
    batches = [
        join("batch of two empty documents", [empty, empty]),
        join("batch of unequal documents", [*graphs[:9], empty, *graphs[:8:-1], empty]),
    ]
    return [graph.to(device) for graph in graphs + batches]


def equal_friends(max_size: int, device: torch.device) -> Graph:
    """Return 40 documents whose pairs are friends by chance, with equal weights: more friends than fit in a circle."""
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for size in range(40, 80) if max_size < 32 else range(160, 200):
        hit = torch.rand(size, size, generator=draw).triu(1) > 0.1
        edge_index = (hit | hit.T).nonzero().T
        weight = torch.full((edge_index.size(1),), 0.5)
        graphs.append(Graph("", edge_index, torch.zeros(size, dtype=torch.long), 1, weight))
    return join("random friends of equal weight", graphs).to(device)


# --- laws of an answer ----------------------------------------------------------------------------
# Each returns the offence in words, or nothing.


def form(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """circle_index is [2, M] and leader_index [C], int64, on the graph's device."""
    for name, x, shape in (("circle_index", circle_index, "[2, M]"), ("leader_index", leader_index, "[C]")):
        if not isinstance(x, Tensor):
            return f"{name} must be a tensor, got {type(x).__name__}"
        if x.dtype != torch.long or x.device != graph.batch.device:
            return f"{name} must be int64 on {graph.batch.device}, got {x.dtype} on {x.device}"
        if x.dim() != len(shape.split(",")) or (x.dim() == 2 and x.size(0) != 2):
            return f"{name} must have the shape {shape}, got {list(x.shape)}"
    return None


def nodes_exist(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """Members and leaders are nodes of the graph."""
    size = graph.batch.numel()
    for name, x in (("member", circle_index[0]), ("leader", leader_index)):
        wrong = x[(x < 0) | (x >= size)]
        if wrong.numel():
            which = (x == wrong[0]).nonzero()[0, 0]
            number = int(which if name == "leader" else circle_index[1, which])
            return f"circle {number} has the {name} {int(wrong[0])}, but nodes are 0 to {size - 1}"
    return None


def circles_are_numbered(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """Circles have the numbers 0 ... C - 1, each has a member, and there are C leaders."""
    count = leader_index.numel()
    wrong = circle_index[1][(circle_index[1] < 0) | (circle_index[1] >= count)]
    if wrong.numel():
        return f"there is a circle {int(wrong[0])}, but leaders only for {count} circles, from 0"
    without = (torch.bincount(circle_index[1], minlength=count) == 0).nonzero().flatten()
    return f"circle {int(without[0])} has a leader but no member" if without.numel() else None


def sorted_by_circle_and_node(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """Memberships are sorted by circle, those of a circle by node."""
    node, circle = circle_index
    falls = (circle.diff() < 0) | ((circle.diff() == 0) & (node.diff() < 0))
    if not bool(falls.any()):
        return None
    at = int(falls.nonzero()[0, 0])
    one, two = circle_index[:, at].tolist(), circle_index[:, at + 1].tolist()
    return f"node {one[0]} of circle {one[1]} stands before node {two[0]} of circle {two[1]}"


def nobody_is_twice_in_a_circle(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """A node is a member of a circle once."""
    twice = (circle_index.diff(dim=1) == 0).all(0).nonzero().flatten()
    if not twice.numel():
        return None
    node, circle = circle_index[:, int(twice[0])].tolist()
    return f"circle {circle} has the node {node} twice"


def a_circle_lies_in_one_document(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """All members of a circle belong to one document."""
    node, circle = circle_index
    same = circle.diff() == 0
    apart = (same & (graph.batch[node].diff() != 0)).nonzero().flatten()
    if not apart.numel():
        return None
    one, two = node[apart[0]], node[apart[0] + 1]
    where = f"node {int(one)} of document {int(graph.batch[one])} and node {int(two)} of {int(graph.batch[two])}"
    return f"circle {int(circle[apart[0]])} has {where}"


def the_leader_is_a_member(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """The leader of a circle is one of its members."""
    node, circle = circle_index
    leads = torch.zeros_like(leader_index, dtype=torch.bool)
    leads[circle[leader_index[circle] == node]] = True
    without = (~leads).nonzero().flatten()
    return shown(circle_index, leader_index, int(without[0])) if without.numel() else None


def circles_go_document_by_document(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """The circles of a document come before those of the next."""
    document = graph.batch[leader_index]
    back = (document.diff() < 0).nonzero().flatten()
    if not back.numel():
        return None
    at = int(back[0])
    return f"circle {at} is of document {int(document[at])}, circle {at + 1} of document {int(document[at + 1])}"


#: what every answer obeys, in the order in which it is checked
ANSWER_LAWS: tuple[Callable[[Graph, Tensor, Tensor], str | None], ...] = (
    form,
    nodes_exist,
    circles_are_numbered,
    sorted_by_circle_and_node,
    nobody_is_twice_in_a_circle,
    a_circle_lies_in_one_document,
    the_leader_is_a_member,
    circles_go_document_by_document,
)


# --- laws of several calls ------------------------------------------------------------------------


def every_graph_gets_an_answer(partition: Partition, graph: Graph) -> str | None:
    """No graph is refused, and every answer obeys the laws of an answer."""
    answer(partition, graph)
    return None


def repr_names_every_argument(partition: Partition, graph: Graph) -> str | None:
    """``repr`` prints every constructor argument: PyG notices a changed transform by it, and tables a changed row."""
    text = repr(partition)
    for name, parameter in inspect.signature(type(partition)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        wanted = f"{name}={getattr(partition, name)!r}" if hasattr(partition, name) else f"{name}="
        if wanted not in text:
            return f"repr must say {wanted!r}, got {text!r}"
    return None


def inputs_stay_as_they_are(partition: Partition, graph: Graph) -> str | None:
    """The tensors that a partition is given are not changed."""
    given = graph.to(graph.batch.device)
    partition(given.edge_index, given.batch, given.batch_size, given.edge_weight)
    for name in ("edge_index", "batch", "edge_weight"):
        if not torch.equal(getattr(given, name), getattr(graph, name)):
            return f"{name} is another after the call"
    return None


def the_same_graph_gets_the_same_circles(partition: Partition, graph: Graph) -> str | None:
    """Two calls give the same circles."""
    return difference(circles(partition, graph), circles(partition, graph), "at the first call", "at the second")


def no_memory_of_other_graphs(partition: Partition, graph: Graph) -> str | None:
    """A call in between with another graph changes nothing."""
    before = circles(partition, graph)
    pairs = [(i, j) for i in range(33) for j in range(i + 1, 33) if (i * j) % 3 == 1]
    answer(partition, one_document("another", 33, pairs).to(graph.batch.device))
    return difference(before, circles(partition, graph), "before another graph", "after it")


def global_random_numbers_stay_as_they_are(partition: Partition, graph: Graph) -> str | None:
    """Randomness comes from generators of the partition's own: training must not depend on who draws how often."""
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def states() -> Iterator[tuple[str, object]]:
        yield "random", random.getstate()
        yield "numpy", [x.tobytes() if isinstance(x, np.ndarray) else x for x in np.random.get_state()]
        yield "torch", torch.get_rng_state().tolist()

    try:
        for draw in (random.random, np.random.rand, lambda: torch.rand(1)):
            draw()  # a seed that was the same before shows too
        before = list(states())
        answer(partition, graph)
        touched = [name for (name, x), (_, y) in zip(before, states(), strict=True) if x != y]
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
        torch.set_rng_state(kept[2])
    return f"it uses or seeds the global generator of {touched[0]}; make one of your own" if touched else None


def weights_may_be_missing(partition: Partition, graph: Graph) -> str | None:
    """``edge_weight=None`` gets an answer too."""
    answer(partition, graph._replace(name=f"{graph.name}, without weights", edge_weight=None))
    return None


def a_batch_is_its_documents_alone(partition: Partition, graph: Graph) -> str | None:
    """A document has the same circles alone and in a batch."""
    if graph.batch_size == 1:
        return None
    alone = [circles(partition, document)[0] for document in graph.documents()]
    return difference(circles(partition, graph), alone, "in the batch", "alone")


def the_order_of_documents_does_not_matter(partition: Partition, graph: Graph) -> str | None:
    """A batch turned around has the same circles, turned around."""
    if graph.batch_size == 1:
        return None
    turned = join(f"{graph.name}, turned around", graph.documents()[::-1])
    return difference(circles(partition, graph), circles(partition, turned)[::-1], "in order", "turned around")


def a_drawn_graph_gets_the_same_circles(partition: Partition, graph: Graph) -> str | None:
    """Who takes a graph that draws its own rows finds the same circles as in its edges."""
    if not partition.takes_lazy or getattr(partition, "needs_lazy", False):
        return None
    expected = circles(partition, graph)
    for short in (True, False):
        drawn = DrawnGraph(graph, short)
        found = unpack(graph, *partition(drawn, graph.batch, graph.batch_size))
        offence = difference(expected, found, "from the edges", "drawn")
        if offence:
            return offence
    return None


#: what several calls have to do with each other, in the order in which it is checked
CALL_LAWS: tuple[Callable[[Partition, Graph], str | None], ...] = (
    every_graph_gets_an_answer,
    repr_names_every_argument,
    inputs_stay_as_they_are,
    the_same_graph_gets_the_same_circles,
    no_memory_of_other_graphs,
    global_random_numbers_stay_as_they_are,
    weights_may_be_missing,
    a_batch_is_its_documents_alone,
    the_order_of_documents_does_not_matter,
    a_drawn_graph_gets_the_same_circles,
)


def equal_weights_favour_no_end(partition: Partition, graph: Graph) -> str | None:
    """Where friends are strangers to the text and edges of equal weight, circles lean to neither end of documents.

    A partition that breaks ties by the lower node breaks it: of more friends than fit in a circle it keeps the first.
    It is not asked of one that says ``by_place``.

    For each document x is how far the friends of its first circle's leader lie behind the middle, on average. The edges
    of :func:`equal_friends` are independent of places, so without a favoured end x is as likely above 0 as below, and
    for D such numbers the chance of (sum x)^2 > t sum x^2 is at most 2 exp(-t / 2), one in a million here (Bradley
    Efron, "Student's t-test under symmetry conditions", Journal of the American Statistical Association 64, 1969).
    """
    if partition.by_place:
        return None
    x = torch.zeros(graph.batch_size, dtype=torch.float64)
    sizes = torch.bincount(graph.batch, minlength=graph.batch_size).tolist()
    for document, (size, found) in enumerate(zip(sizes, circles(partition, graph), strict=True)):
        friends = [node for leader, members in found[:1] for node in members if node != leader]
        if friends:
            others = (size * (size - 1) / 2 - found[0][0]) / (size - 1)  # the mean place of all but the leader
            x[document] = (sum(friends) / len(friends) - others) / size
    if float(x.sum()) ** 2 <= SURPRISE * float(x.square().sum()):
        return None
    lean = float(x[x != 0].mean())
    end = "start" if lean < 0 else "end"
    return (
        f"a leader's friends lie {abs(lean):.0%} of a document nearer to the {end} than chance puts them; break ties "
        "by a coin of the pair, or say by_place = True where places are meant to count"
    )


#: t of :func:`equal_weights_favour_no_end`
SURPRISE = 29.0


class DrawnGraph:
    """A graph that draws its own rows, see :class:`socialgraph.partition.remaining.Drawable`: one group, itself.

    Its rows are read off the edges, so what is drawn is known.
    """

    def __init__(self, graph: Graph, short: bool) -> None:
        size, device = graph.batch.numel(), graph.batch.device
        self.strength = torch.zeros(size, size, device=device)
        self.strength[graph.edge_index[0], graph.edge_index[1]] = (
            torch.ones_like(graph.edge_index[0]).float() if graph.edge_weight is None else graph.edge_weight
        )
        length = torch.bincount(graph.batch, minlength=graph.batch_size)
        document = (length > 1).nonzero().flatten()
        length, start = length[document], (length.cumsum(0) - length)[document]
        place = torch.arange(int(length.max()) + 1 if document.numel() else 1, device=device)
        self.inside = place < length[:, None]
        self.node = torch.where(self.inside, start[:, None] + place, start[:, None])
        self.short = short
        self.block_size = 1 << 18

    def groups(self) -> Iterator[DrawnGraph]:
        """Yield the documents that may have edges."""
        if self.node.size(0):
            yield self

    def hits(self, document: Tensor, place: Tensor, column: Tensor | None = None) -> Tensor:
        """Return who is friends with whom; see :class:`socialgraph.partition.remaining.Group`."""
        other = self.node if column is None else self.node.gather(1, column)
        real = self.inside if column is None else self.inside.gather(1, column)
        friends = self.strength[self.node[document, place][:, None], other[document]] > 0
        return (friends & real[document] & self.inside[document, place][:, None]).int()

    def dense(self) -> Tensor:
        """Return the matrix of each document."""
        number, width = self.node.shape
        document, place = torch.ones_like(self.inside).nonzero(as_tuple=True)
        return self.hits(document, place).view(number, width, width).to(torch.uint8)

    def degree_bound(self) -> Tensor:
        """Return one friend more than nodes have: a bound need not be reached."""
        return torch.where(self.inside, (self.strength > 0).sum(1)[self.node] + 1, 0)

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the weights of edges."""
        return self.strength[self.node.gather(1, i[:, None]), self.node.gather(1, j)]


# --- how laws are told ----------------------------------------------------------------------------

#: (leader, members) of each circle of each document, in the document's own ids
Circles = list[list[tuple[int, list[int]]]]


def name_of(law: Callable[..., str | None]) -> str:
    """Return a law's name: its function's."""
    return law.__name__.replace("_", " ")


def answer(partition: Partition, graph: Graph) -> tuple[Tensor, Tensor]:
    """Return the circles of ``graph``.

    Raises:
        LawError: they break one of the :data:`ANSWER_LAWS`.
    """
    given = graph.to(graph.batch.device)  # a copy, in case it is changed
    found = partition(given.edge_index, given.batch, given.batch_size, given.edge_weight)
    if not isinstance(found, tuple) or len(found) != 2:
        what = f"forward must return (circle_index, leader_index), got {type(found).__name__}"
        raise LawError(partition, name_of(form), graph.name, what)
    for law in ANSWER_LAWS:
        offence = law(graph, *found)
        if offence:
            raise LawError(partition, name_of(law), graph.name, offence)
    return found


def circles(partition: Partition, graph: Graph) -> Circles:
    """Return the circles of each document in a form that can be compared."""
    return unpack(graph, *answer(partition, graph))


def unpack(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> Circles:
    """Return circles as lists, document by document."""
    length = torch.bincount(graph.batch, minlength=graph.batch_size)
    start = (length.cumsum(0) - length).tolist()
    members: list[list[int]] = [[] for _ in leader_index]
    for node, circle in circle_index.T.tolist():
        members[circle].append(node)
    found: Circles = [[] for _ in start]
    for leader, nodes in zip(leader_index.tolist(), members, strict=True):
        document = int(graph.batch[leader])
        found[document].append((leader - start[document], [node - start[document] for node in nodes]))
    return found


def difference(one: Circles, two: Circles, when: str, then: str) -> str | None:
    """Return the first circle that differs, in words."""
    for document, (before, after) in enumerate(zip(one, two, strict=True)):
        for number in range(max(len(before), len(after))):
            x, y = (told(*some[number]) if number < len(some) else "not there" for some in (before, after))
            if before[number : number + 1] != after[number : number + 1]:
                return f"circle {number} of document {document} is {x} {when}, {y} {then}"
    return None


def shown(circle_index: Tensor, leader_index: Tensor, number: int) -> str:
    """Return a circle in words."""
    members = circle_index[0, circle_index[1] == number].tolist()
    return f"circle {number} is {told(int(leader_index[number]), members)}"


def told(leader: int, members: list[int]) -> str:
    """Return leader and members in words, not all of many."""
    some = ", ".join(map(str, members[:12])) + (f", ... ({len(members)})" if len(members) > 12 else "")
    return f"led by {leader} with the members {some}"
