"""The laws of an edge pattern, tried on hard documents."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from socialgraph.edges.affinity import Affinity
from socialgraph.edges.laws import TOLERANCE
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Centrality, Pattern
from socialgraph.edges.social import SocialEdges
from socialgraph.errors import OptionError, blaming
from socialgraph.testing.documents import hard_documents, statistics_changed
from socialgraph.testing.laws import check_laws, copied, global_generators_touched, repr_names_every_argument

#: how far costly weights may be off between batches; a graph holds those that were computed once
COSTLY_TOLERANCE = 1e-3
#: what a graph may have besides what the documents here have
TAKEN = ("segment", "hub_mask", "passage_mask", "circle_score", "edge_weight", "query_id", "document_id")
#: share of the pairs that are drawn
DENSITY = 0.1


def check_pattern(pattern: Pattern, device: torch.device | str = "cpu") -> None:
    """Check that a pattern obeys every law, on hard documents; say nothing where it does.

    The documents are small and each is hard in its own way: empty, one word, two, the same word again and again, no
    word of the query, nothing but its word, no tf-idf weight, a long one, and batches of them. Their word pieces have
    ids from 5 to 99; a small collection's statistics come with them. The laws are :data:`LAWS`.

    Args:
        pattern: an instance, such as ``MyPattern(p=50)``; it is copied for every law.
        device: where documents and pattern lie.

    Raises:
        LawError: a law is broken. The message names the law, the document and the offending pair of places.
        OptionError: not an instance of :class:`Pattern`.
    """
    if not isinstance(pattern, Pattern):
        raise OptionError(f"check_pattern takes an instance of a Pattern, such as MyPattern(), got {pattern!r}")
    with torch.no_grad():  # as SocialEdges asks
        moved = copied(pattern)
        with blaming(pattern, "none yet"):  # one without super().__init__() is no module
            moved = moved.to(device)
        check_laws(moved, LAWS, hard_documents(torch.device(device)))


# --- laws -----------------------------------------------------------------------------------------
# Each returns the offence in words, or nothing. They ask what holds and turn it around: no number is above a bound.


def it_has_a_name_for_graphs(pattern: Pattern, graph: Data) -> str | None:
    """The name is in snake case and not taken: it names a module, an option and, for weights, a part of the graph."""
    name = pattern.name
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        return f"the name must be in snake case, got {name!r}"
    if name in TAKEN or hasattr(graph, name) or hasattr(torch.nn.ModuleDict(), name):
        return f"the name {name!r} is taken"
    if re.search("batch|index|face|adj|ptr", name):
        return f"the name {name!r} means something to PyG: choose one without batch, index, face, adj and ptr"
    return None


def weights_are_a_number_for_each_node(pattern: Pattern, graph: Data) -> str | None:
    """A centrality's weights are real numbers, ``[N]``."""
    if not isinstance(pattern, Centrality):
        return None
    weights, wanted = pattern.weights(graph), f"weights must return real numbers, [{graph.num_nodes}]"
    if not isinstance(weights, Tensor):
        return f"{wanted}, got {type(weights).__name__}"
    if weights.layout != torch.strided or weights.is_complex() or list(weights.shape) != [graph.num_nodes]:
        return f"{wanted}, got {weights.dtype} {list(weights.shape)}, {weights.layout}"
    return None


def it_answers_with_an_affinity(pattern: Pattern, graph: Data) -> str | None:
    """Every document gets an answer: an affinity over the nodes, whose pairs are float64."""
    affinity = pattern(graph)
    if not isinstance(affinity, Affinity):
        return f"forward must return an Affinity, got {type(affinity).__name__}"
    if not torch.equal(affinity.batch, documents(graph)[0]):
        return "the affinity's batch must be the graph's, see socialgraph.edges.layout.documents"
    some = affinity.pair(affinity.batch[:0], affinity.batch[:0])
    if not isinstance(some, Tensor) or some.layout != torch.strided:
        got = some.layout if isinstance(some, Tensor) else type(some).__name__
        return f"pair must return a dense tensor, got {got}"
    for matrix in matrices(affinity):
        if matrix.dtype != torch.float64 or matrix.device != graph.input_ids.device:
            return f"pair must return float64 on {graph.input_ids.device}, got {matrix.dtype} on {matrix.device}"
        if matrix.dim() != 2 or matrix.size(0) != matrix.size(1):
            return f"pair must broadcast ids [l, 1] and [1, l] to [l, l], got {list(matrix.shape)}"
    return None


def values_lie_between_0_and_1(pattern: Pattern, graph: Data) -> str | None:
    """P is finite and in [0, 1], up to rounding."""
    for number, matrix in enumerate(matrices(pattern(graph))):
        wrong = ~((matrix >= -TOLERANCE) & (matrix <= 1.0 + TOLERANCE))
        if bool(wrong.any()):
            return f"{in_words(matrix, wrong, number)}, not in [0, 1]"
    return None


def who_comes_first_does_not_matter(pattern: Pattern, graph: Data) -> str | None:
    """P is symmetric."""
    for number, matrix in enumerate(matrices(pattern(graph))):
        wrong = ~((matrix - matrix.T).abs() <= TOLERANCE)
        if bool(wrong.any()):
            i, j = wrong.nonzero()[0].tolist()
            return f"{in_words(matrix, wrong, number)}, P({j}, {i}) = {float(matrix[j, i]):.6g}"
    return None


def the_graph_stays_as_it_is(pattern: Pattern, graph: Data) -> str | None:
    """The tensors of the graph are not changed."""
    statistics = copy.deepcopy(graph.statistics)
    before = {key: value.clone() for key, value in graph.to_dict().items() if isinstance(value, Tensor)}
    pattern(graph).totals()
    for key, value in before.items():
        if not torch.equal(value, graph[key]):
            return f"{key} is another after the call"
    return statistics_changed(graph.statistics, statistics)


def the_same_graph_gets_the_same_values(pattern: Pattern, graph: Data) -> str | None:
    """Two calls give the same P, to the last bit."""
    return difference(matrices(pattern(graph)), matrices(pattern(graph)), 0.0, "at the first call", "at the second")


def training_and_ranking_get_the_same_values(pattern: Pattern, graph: Data) -> str | None:
    """P does not depend on ``training``, which nobody sets: graphs are the same whatever a model does."""
    fresh, ranking = matrices(pattern(graph)), matrices(pattern.eval()(graph))
    return difference(fresh, ranking, 0.0, "as it was made", "after eval()")


def global_random_numbers_stay_as_they_are(pattern: Pattern, graph: Data) -> str | None:
    """Nothing is drawn at random: a pattern is a probability, edges are drawn later, by hashes."""
    return global_generators_touched(lambda: matrices(pattern(graph)))


def a_batch_is_its_documents_alone(pattern: Pattern, graph: Data) -> str | None:
    """A document has the same P alone and in a batch, to the last bit.

    Costly weights are computed once and then kept with the pair, see :class:`socialgraph.data.Cache`; these may
    differ in the last digits.
    """
    if not isinstance(graph, Batch):
        return None
    tolerance = COSTLY_TOLERANCE if isinstance(pattern, Centrality) and pattern.costly else 0.0
    parts = graph.to_data_list()
    for document in parts:
        document.statistics = graph.statistics
    alone = [matrix for document in parts for matrix in matrices(pattern(document))]
    return difference(matrices(pattern(graph)), alone, tolerance, "in the batch", "alone")


def blocks_are_the_pairs(pattern: Pattern, graph: Data) -> str | None:
    """The walk over all pairs comes to each of them once, with the value of ``pair``."""
    affinity = pattern(graph)
    size = affinity.batch.numel()
    dense, visits = torch.zeros(size, size, dtype=torch.float64), torch.zeros(size, size)
    for i, j, upper, p in affinity.blocks():
        i, j = (x.expand(p.shape)[upper].cpu() for x in (i, j))
        dense[i, j] = p[upper].cpu()
        visits[i, j] += 1
    start = 0
    for number, matrix in enumerate(matrices(affinity)):
        inside = slice(start, start := start + len(matrix))
        if not torch.equal(visits[inside, inside], torch.ones(matrix.shape).triu(1)):
            return f"blocks must come to each pair i < j of document {number} once"
        wrong = ~((dense[inside, inside] - matrix.cpu().triu(1)).abs() <= TOLERANCE)
        if bool(wrong.any()):
            i, j = wrong.nonzero()[0].tolist()
            return f"{in_words(matrix, wrong, number)} as a pair, {float(dense[inside, inside][i, j]):.6g} in its block"
    return None


def sums_are_those_of_the_pairs(pattern: Pattern, graph: Data) -> str | None:
    """``row_sums`` and ``totals`` are sums of ``pair``, up to rounding, without pairs of a node with itself."""
    affinity = pattern(graph)
    rows, totals, start = affinity.row_sums(), affinity.totals(), 0
    for number, matrix in enumerate(matrices(affinity)):
        length = len(matrix)
        want, tolerance = matrix.sum(1), TOLERANCE * (1 + length)
        wrong = (~((rows[start : start + length] - want).abs() <= tolerance)).nonzero().flatten()
        if wrong.numel():
            i = int(wrong[0])
            got = float(rows[start + i])
            return (
                f"the pairs of place {i} of document {number} sum up to {float(want[i]):.6g}, row_sums says {got:.6g}"
            )
        if not abs(float(totals[number] - want.sum())) <= tolerance * (1 + length):
            got = float(totals[number])
            return f"the pairs of document {number} sum up to {float(want.sum()):.6g}, totals says {got:.6g}"
        start += length
    return None


def no_pair_exceeds_the_highest(pattern: Pattern, graph: Data) -> str | None:
    """``highest`` is a bound of each document's pairs."""
    affinity = pattern(graph)
    highest = affinity.highest()
    for number, matrix in enumerate(matrices(affinity)):
        wrong = ~(matrix <= highest[number] + TOLERANCE)
        if bool(wrong.any()):
            return f"{in_words(matrix, wrong, number)}, highest says {float(highest[number]):.6g}"
    return None


def edges_can_be_drawn_from_it_alone(pattern: Pattern, graph: Data) -> str | None:
    """:class:`SocialEdges` scales the same P to the density asked for, and draws about so many edges.

    Where fewer pairs than that have P > 0, all of these are drawn.
    """
    edges = SocialEdges([pattern], sparsity=1.0 - DENSITY)
    edge_index, _ = edges(graph)
    drawn = torch.bincount(documents(graph)[0][edge_index[0]], minlength=getattr(graph, "num_graphs", 1)).tolist()
    scaled = matrices(edges.probabilities(graph))
    for number, (matrix, chance) in enumerate(zip(matrices(pattern(graph)), scaled, strict=True)):
        pairs = len(matrix) * (len(matrix) - 1)
        speaks = matrix > TOLERANCE
        if not bool(speaks.any()):
            continue
        # the same P: what a pair gains by scaling is what all gain
        factor = float(chance.sum() / matrix.sum())
        wrong = ~((chance - factor * matrix).abs() <= TOLERANCE * (1.0 + factor))
        if bool(wrong.any()):
            i, j = wrong.nonzero()[0].tolist()
            what = in_words(matrix, wrong, number)
            return f"{what}, but mixed and scaled by {factor:.4g} it is {float(chance[i, j]):.6g}"
        expected = float(chance.clamp(0.0, 1.0).sum())
        target = min(DENSITY * pairs, float(speaks.sum()))
        if abs(expected - target) > 0.01 * target + 0.01:
            return f"document {number}: {target / 2:.1f} edges asked for, {expected / 2:.1f} expected"
        deviation = (2.0 * float((chance.clamp(0.0, 1.0) * (1.0 - chance.clamp(0.0, 1.0))).sum())) ** 0.5
        if abs(drawn[number] - expected) > 6.0 * deviation + 2.0:
            return f"document {number}: {expected / 2:.1f} edges expected, {drawn[number] // 2} drawn"
    return None


def no_gradient_is_carried_along(pattern: Pattern, graph: Data) -> str | None:
    """A graph that is drawn later, outside ``no_grad``, has no part of a parameter's graph of gradients in it."""
    sampled = SocialEdges([pattern]).sampled(graph)
    with torch.enable_grad():
        nodes = (documents(graph)[0] == 0).nonzero().flatten()[:2]
        if nodes.numel() == 2 and sampled.weight(nodes[0], nodes[1]).requires_grad:
            return "P asks for a gradient outside no_grad: let forward compute with parameters, not pair"
    return None


#: the laws, in the order in which they are checked
LAWS: tuple[Callable[[Pattern, Data], str | None], ...] = (
    it_has_a_name_for_graphs,
    repr_names_every_argument,
    weights_are_a_number_for_each_node,
    it_answers_with_an_affinity,
    values_lie_between_0_and_1,
    who_comes_first_does_not_matter,
    the_graph_stays_as_it_is,
    the_same_graph_gets_the_same_values,
    training_and_ranking_get_the_same_values,
    global_random_numbers_stay_as_they_are,
    a_batch_is_its_documents_alone,
    blocks_are_the_pairs,
    sums_are_those_of_the_pairs,
    no_pair_exceeds_the_highest,
    edges_can_be_drawn_from_it_alone,
    no_gradient_is_carried_along,
)


# --- how laws are told ----------------------------------------------------------------------------


def matrices(affinity: Affinity) -> list[Tensor]:
    """Return P of each document, the diagonal 0; whatever :meth:`Affinity.dense` says, ``pair`` is asked."""
    return Affinity.dense(affinity)


def difference(one: list[Tensor], two: list[Tensor], tolerance: float, when: str, then: str) -> str | None:
    """Return the first pair that differs, in words."""
    if [len(x) for x in one] != [len(x) for x in two]:
        return f"documents of {[len(x) for x in one][:9]} words {when}, of {[len(x) for x in two][:9]} {then}"
    for number, (x, y) in enumerate(zip(one, two, strict=True)):
        wrong = ~((x - y).abs() <= tolerance)
        if bool(wrong.any()):
            i, j = wrong.nonzero()[0].tolist()
            digits = 6 if abs(float(x[i, j] - y[i, j])) > TOLERANCE else 17
            return f"{in_words(x, wrong, number, digits)} {when}, {float(y[i, j]):.{digits}g} {then}"
    return None


def in_words(matrix: Tensor, wrong: Tensor, document: int, digits: int = 6) -> str:
    """Return the first wrong pair in words, by its places in its document."""
    i, j = wrong.nonzero()[0].tolist()
    return f"document {document}: P({i}, {j}) = {float(matrix[i, j]):.{digits}g}"
