"""What the paper says, literally: full matrices, sets and loops. Slow, and independent of the package.

Socialformer (Zhou et al., WWW 2022), sections 3.1 and 3.2. Equation numbers are the paper's.
Everything is float64.
Where the paper leaves a case open, the project's rule is said in the docstring ("Rule: ...").
Every matrix is l x l with a zero diagonal: a token is no friend of itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

Matrix = np.ndarray
Circle = tuple[int, list[int]]  # leader, members in ascending order (the leader is one of them)


# --------------------------------------------------------------------------------------------------
# Section 3.1: the four patterns
# --------------------------------------------------------------------------------------------------


def static_distance(length: int, p: float = 50.0) -> Matrix:
    """Equation (1): P_sd(i, j) = 1 / (1 + |i - j| / p)^2."""
    probability = np.zeros((length, length))
    for i in range(length):
        for j in range(length):
            if i != j:
                probability[i, j] = 1 / (1 + abs(i - j) / p) ** 2
    return probability


def smooth(product: float) -> float:
    """The smoothing function of Equation (3), the square root."""
    return math.sqrt(product)


def f(weights: Sequence[float]) -> Matrix:
    """Equation (3): f(i, j) = (s(i, j) - min s) / (max s - min s), with s(i, j) = sqrt(w_i w_j).

    Rule: min and max run over the distinct pairs i != j. If all products are equal (also: one pair or none),
    f is 0.
    """
    length = len(weights)
    s = {(i, j): smooth(weights[i] * weights[j]) for i in range(length) for j in range(length) if i != j}
    probability = np.zeros((length, length))
    if not s or min(s.values()) == max(s.values()):
        return probability
    lowest, highest = min(s.values()), max(s.values())
    for (i, j), value in s.items():
        probability[i, j] = (value - lowest) / (highest - lowest)
    return probability


def static_centrality(tfidf: Sequence[float]) -> Matrix:
    """Equation (2): P_sc(i, j) = f(w_i w_j), w the tf-idf weights."""
    return f(tfidf)


def dynamic_distance_weights(document: Sequence[int], query: Sequence[int], p: float = 50.0) -> list[float]:
    """Equation (4): w_i = (1/n) sum_j 1 / (1 + |i - pos(t_j)| / p).

    The sum runs over the n document positions whose token is in the query.
    Rule: a position counts once, however often its token stands in the query. No match: all weights are 0.
    """
    positions = [position for position, token in enumerate(document) if token in set(query)]
    n = len(positions)
    weights = []
    for i in range(len(document)):
        total = 0.0
        for position in positions:
            total += 1 / (1 + abs(i - position) / p)
        weights.append(total / n if n else 0.0)
    return weights


def dynamic_distance(document: Sequence[int], query: Sequence[int], p: float = 50.0) -> Matrix:
    """Equation (5): P_dd(i, j) = f(w_i w_j)."""
    return f(dynamic_distance_weights(document, query, p))


def most_relevant(cosines: Sequence[float], room: int) -> list[int]:
    """The positions of the `room` highest cosines, highest first; of equal ones the lower position."""
    return sorted(range(len(cosines)), key=lambda i: (-cosines[i], i))[:room]


def dynamic_centrality_weights(
    cosines: Sequence[float], relevant: Sequence[int], attention: Sequence[float]
) -> list[float]:
    """Section 3.1, around Equation (6): BERT's [CLS] attention replaces the cosines of the relevant tokens.

    `attention[n]` belongs to document position `relevant[n]`.
    Rule: negative cosines count as 0; the attention is rescaled so that its sum equals the sum of the cosines
    that it replaces.
    """
    weights = [max(0.0, cosine) for cosine in cosines]
    replaced = sum(weights[i] for i in relevant)
    total = sum(attention)
    for i, value in zip(relevant, attention, strict=True):
        weights[i] = value * replaced / total
    return weights


def dynamic_centrality(cosines: Sequence[float], relevant: Sequence[int], attention: Sequence[float]) -> Matrix:
    """Equation (7): P_dc(i, j) = f(w_i w_j)."""
    return f(dynamic_centrality_weights(cosines, relevant, attention))


# --------------------------------------------------------------------------------------------------
# Section 3.1: from patterns to probabilities
# --------------------------------------------------------------------------------------------------


def mean(patterns: Sequence[Matrix], weights: Sequence[float] | None = None) -> Matrix:
    """P = sum_x lambda_x P_x, the text above Equation (8). Rule: the lambdas are rescaled to sum to 1."""
    lambdas = [1.0] * len(patterns) if weights is None else list(weights)
    total = np.zeros_like(patterns[0])
    for weight, pattern in zip(lambdas, patterns, strict=True):
        total = total + weight / sum(lambdas) * pattern
    return total


def scale(probability: Matrix, sparsity: float) -> float:
    """mu of Equation (8), by bisection. Rule: clipped at 1, and over the pairs i != j instead of l^2:

    sum over i != j of min(1, P_ij / mu) = l (l - 1) (1 - sparsity).

    Where even mu -> 0 (every positive P at 1) does not reach the target, the smallest mu tried is returned.
    """
    length = len(probability)
    target = length * (length - 1) * (1 - sparsity)

    def density(mu: float) -> float:
        return float(np.minimum(1.0, probability / mu).sum())

    low, high = 1e-12, 1e12  # density falls as mu grows
    for _ in range(90):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if density(middle) > target else (low, middle)
    return low


def probabilities(probability: Matrix, sparsity: float) -> Matrix:
    """min(1, P / mu): what the coin of each pair is compared with.

    Rule: where every pattern abstains (P is 0 everywhere) every pair has probability 1 - sparsity.
    """
    length = len(probability)
    if length < 2:
        return np.zeros((length, length))
    if probability.max() == 0:
        return (1 - sparsity) * (1 - np.eye(length))
    return np.minimum(1.0, probability / scale(probability, sparsity))


# --------------------------------------------------------------------------------------------------
# Section 3.2: friend circles
# --------------------------------------------------------------------------------------------------


def node_circles(
    adjacency: Matrix, k: int, max_size: int, keep: str = "strongest", weight: Matrix | None = None
) -> list[Circle]:
    """Node-level partition: the members of a circle leave the graph. Rules: see `_circle`."""
    left = {i: {j for j in range(len(adjacency)) if adjacency[i, j]} for i in range(len(adjacency))}
    circles: list[Circle] = []
    while len(circles) < k and any(left.values()):
        leader, members = _circle(left, max_size, keep, weight)
        circles.append((leader, sorted(members)))
        for gone in members:  # with all their edges
            for friend in left.pop(gone):
                if friend in left:
                    left[friend].remove(gone)
    return circles


def edge_circles(
    adjacency: Matrix, k: int, max_size: int, keep: str = "strongest", weight: Matrix | None = None
) -> list[Circle]:
    """Edge-level partition: the edges among the members leave the graph. Rules: see `_circle`."""
    left = {i: {j for j in range(len(adjacency)) if adjacency[i, j]} for i in range(len(adjacency))}
    circles: list[Circle] = []
    while len(circles) < k and any(left.values()):
        leader, members = _circle(left, max_size, keep, weight)
        circles.append((leader, sorted(members)))
        for member in members:
            left[member] = left[member] - members
    return circles


def _circle(left: dict[int, set[int]], max_size: int, keep: str, weight: Matrix | None) -> tuple[int, set[int]]:
    """Find the next circle: the node of highest degree and its neighbours.

    Rules: of equal degrees the lower id leads. At most `max_size` members, the leader included. Of more
    friends "strongest" keeps those of highest weight (of equal weights the lower `coin`; no weights: all are
    equal), and "first" the lowest ids.
    """
    leader = min(left, key=lambda node: (-len(left[node]), node))
    if keep == "first":
        friends = sorted(left[leader])
    elif keep == "strongest":
        friends = strongest(left[leader], leader, None if weight is None else weight[leader])
    else:
        raise ValueError(keep)
    return leader, {leader, *friends[: max_size - 1]}


def strongest(nodes: Iterable[int], leader: int, weight: Sequence[float] | None) -> list[int]:
    """Nodes by the weight of their edge with the leader, highest first; of equal ones the lower `coin`."""
    return sorted(nodes, key=lambda node: (0.0 if weight is None else -weight[node], coin(leader, node)))


def coin(i: int, j: int) -> int:
    """The coin of a pair of places in a document. Rule: mix(mix(i) + mix(j)), signed, 64 bits."""
    return _mix(_mix(i) + _mix(j))


def _mix(x: int) -> int:
    """SplitMix64's finaliser, with shifts that keep the sign."""

    def signed(number: int) -> int:
        return (number + 2**63) % 2**64 - 2**63

    x = signed(signed(x) * -0x61C8864680B583EB)
    x = signed((x ^ (x >> 30)) * -0x40A7B892E31B1A47)
    x = signed((x ^ (x >> 27)) * -0x6B2FB644ECCEEE15)
    return x ^ (x >> 31)
