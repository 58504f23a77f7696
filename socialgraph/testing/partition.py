"""The laws of a partition, tried on hard graphs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_geometric.data import Data

from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import OptionError, blaming
from socialgraph.partition import Partition
from socialgraph.partition.laws import in_words
from socialgraph.testing.answers import answer, circles, difference, unpack
from socialgraph.testing.documents import hard_documents, statistics_changed
from socialgraph.testing.graphs import Graph, equal_friends, hard_graphs, join, one_document
from socialgraph.testing.laws import check_laws, global_generators_touched, repr_names_every_argument


def check_partition(partition: Partition, device: torch.device | str = "cpu") -> None:
    """Check that a partition obeys every law, on hard graphs; say nothing where it does.

    The graphs are small and each is hard in its own way: empty, one node, no edges, one edge, a path, stars, cliques,
    random ones with and without ties, and batches of all of them. The laws are those that every answer must obey
    (:data:`socialgraph.partition.laws.ANSWER_LAWS`), :data:`CALL_LAWS`, which compare several calls, and
    :func:`equal_weights_favour_no_end`, tried on 40 random documents; and where a partition has its own
    ``from_sampled``, it must find what ``forward`` finds. A partition whose ``forward`` names ``graph`` is tried with
    documents that have words of the query and scores of a first stage, and with some that have neither.

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
    graphs = {graph.name: graph for graph in hard_graphs(device)}
    with blaming(partition, "none yet"):  # one whose forward is no function has no parameters to look at
        sees_graph = partition.sees_graph
    if sees_graph:  # no made-up document has a word of this query
        bare = [graph._replace(query=(5,), first_stage=False) for graph in graphs.values()]
        graphs |= {f"{graph.name}, no query match": graph for graph in bare}
    check_laws(partition, CALL_LAWS, graphs)
    fair = equal_friends(getattr(partition, "max_size", 128), device)
    check_laws(partition, [equal_weights_favour_no_end], {fair.name: fair})
    check_laws(partition, [undrawn_edges_give_the_same_circles], hard_documents(device))


# --- laws of several calls ------------------------------------------------------------------------


def every_graph_gets_an_answer(partition: Partition, graph: Graph) -> str | None:
    """No graph is refused, and every answer obeys the laws of an answer."""
    answer(partition, graph)
    return None


def inputs_stay_as_they_are(partition: Partition, graph: Graph) -> str | None:
    """The tensors that a partition is given are not changed."""
    given = graph.to(graph.batch.device)
    words, before = (x.data() if partition.sees_graph else Data() for x in (given, graph))
    partition.gathered(given.edge_index, given.batch, given.batch_size, given.edge_weight, words)
    for name in ("edge_index", "batch", "edge_weight"):
        if not torch.equal(getattr(given, name), getattr(graph, name)):
            return f"{name} is another after the call"
    for name in ("input_ids", "query_ids", "tfidf", "first_stage_score") if partition.sees_graph else ():
        if name in before and not torch.equal(words[name].nan_to_num(), before[name].nan_to_num()):
            return f"graph.{name} is another after the call"
    return statistics_changed(words.statistics, before.statistics) if partition.sees_graph else None


def the_same_graph_gets_the_same_circles(partition: Partition, graph: Graph) -> str | None:
    """Two calls give the same circles."""
    return difference(circles(partition, graph), circles(partition, graph), "at the first call", "at the second")


def training_and_ranking_get_the_same_circles(partition: Partition, graph: Graph) -> str | None:
    """Circles do not depend on ``training``, which nobody sets: graphs are the same whatever a model does."""
    fresh, ranking = circles(partition, graph), circles(partition.eval(), graph)
    return difference(fresh, ranking, "as it was made", "after eval()")


def no_memory_of_other_graphs(partition: Partition, graph: Graph) -> str | None:
    """A call in between with another graph changes nothing."""
    before = circles(partition, graph)
    pairs = [(i, j) for i in range(33) for j in range(i + 1, 33) if (i * j) % 3 == 1]
    answer(partition, one_document("another", 33, pairs).to(graph.batch.device))
    return difference(before, circles(partition, graph), "before another graph", "after it")


def global_random_numbers_stay_as_they_are(partition: Partition, graph: Graph) -> str | None:
    """Randomness comes from generators of the partition's own."""
    return global_generators_touched(lambda: answer(partition, graph))


def no_more_than_k_circles(partition: Partition, graph: Graph) -> str | None:
    """A document has at most ``k`` circles, where the partition has such a number."""
    k = getattr(partition, "k", None)
    for document, own in enumerate(circles(partition, graph)):
        if isinstance(k, int) and len(own) > k:
            return f"document {document} has {len(own)} circles, but k is {k}"
    return None


def no_more_than_max_size_members(partition: Partition, graph: Graph) -> str | None:
    """A circle has at most ``max_size`` members, the leader included, where the partition has such a number."""
    most = getattr(partition, "max_size", None)
    for document, own in enumerate(circles(partition, graph)):
        for number, (leader, members) in enumerate(own):
            if isinstance(most, int) and len(members) > most:
                what = f"circle {number} of document {document} has {len(members)} members, but max_size is {most}"
                return f"{what}; it is {in_words(leader, members)}"
    return None


def circles_are_not_all_the_same(partition: Partition, graph: Graph) -> str | None:
    """Three circles of a document or more do not all have the same members, unless all its words are friends."""
    for document, own in enumerate(circles(partition, graph)):
        if len(own) > 2 and len({tuple(members) for _, members in own}) == 1 and not all_friends(graph)[document]:
            return f"all {len(own)} circles of document {document} have the members of the one {in_words(*own[0])}"
    return None


def all_friends(graph: Graph) -> list[bool]:
    """Return of each document whether all its words are friends of each other."""
    size = torch.bincount(graph.batch, minlength=graph.batch_size)
    friends = torch.bincount(graph.batch[graph.edge_index[0]], minlength=graph.batch_size)
    return (friends == size * (size - 1)).tolist()


def where_all_are_friends_somebody_meets(partition: Partition, graph: Graph) -> str | None:
    """A document of three words or more that are all friends has a circle; not asked of who says ``by_place``."""
    sizes = torch.bincount(graph.batch, minlength=graph.batch_size).tolist()
    for document, own in enumerate(circles(partition, graph) if not partition.by_place else []):
        size = sizes[document]
        if size > 2 and all_friends(graph)[document] and not own:
            return f"document {document} has {size} words, all friends of each other, and no circle"
    return None


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


#: what several calls have to do with each other, in the order in which it is checked
CALL_LAWS: tuple[Callable[[Partition, Graph], str | None], ...] = (
    every_graph_gets_an_answer,
    repr_names_every_argument,
    no_more_than_k_circles,
    no_more_than_max_size_members,
    circles_are_not_all_the_same,
    where_all_are_friends_somebody_meets,
    inputs_stay_as_they_are,
    the_same_graph_gets_the_same_circles,
    training_and_ranking_get_the_same_circles,
    no_memory_of_other_graphs,
    global_random_numbers_stay_as_they_are,
    weights_may_be_missing,
    a_batch_is_its_documents_alone,
    the_order_of_documents_does_not_matter,
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
    for document, (size, own) in enumerate(zip(sizes, circles(partition, graph), strict=True)):
        friends = [node for leader, members in own[:1] for node in members if node != leader]
        if friends:
            others = (size * (size - 1) / 2 - own[0][0]) / (size - 1)  # the mean place of all but the leader
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


def undrawn_edges_give_the_same_circles(partition: Partition, document: Data) -> str | None:
    """A partition with a ``from_sampled`` of its own finds the circles that it finds in the drawn edges."""
    if type(partition).from_sampled is Partition.from_sampled:
        return None
    for sparsity in (0.9, 0.3):
        sampled = SocialEdges([StaticDistance(), StaticCentrality()], sparsity=sparsity).sampled(document)
        edge_index, edge_weight = sampled.edges()
        graph = Graph("drawn edges", edge_index, sampled.batch, sampled.batch_size, edge_weight, words=document)
        want = circles(partition, graph)
        offence = difference(want, unpack(graph, *partition.from_sampled(sampled)), "by forward", "by from_sampled")
        if offence:
            return offence
    return None
