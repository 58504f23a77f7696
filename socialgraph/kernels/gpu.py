"""The kernels on a GPU, in Triton: two launches for the probabilities of a batch, three for its circles or edges.

:mod:`socialgraph.kernels` says what is computed. Here nothing is kept of a graph: a pair costs some forty operations
on numbers that are at hand, less than writing it down and reading it again.

* :func:`smooth_kernel` and :func:`totals_kernel` are what probabilities need of a document: one program each.
* :func:`prepare_kernel` hashes nodes and clears what is counted.
* :func:`degree_kernel` counts the friends of all nodes, each pair once: programs of some rows of a document each.
* :func:`circles_kernel` takes all circles out of a document: one program each, which meets at a barrier where one step
  reads what another has written. Documents may be longer than its tiles; then it walks.
* :func:`edges_kernel` writes all edges, once the degrees have said where each row begins.

Products of factors are exact in float64, so that it does not matter whether the compiler fuses them with sums.
``TRITON_INTERPRET=1`` runs the same on a CPU.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from socialgraph.kernels.closed_form import FACTOR_STEP, SUM_STEP, ClosedForm

#: a tile of pairs: larger ones spill registers
ROWS, COLUMNS = 32, 16
#: nodes, friends or members that the program of a document looks at together
TILE, MEMBERS = 1024, 64
#: warps of that program
WARPS = 16
#: circles whose bits fit in a word
WORD = 32
#: what stands for the leader among the weights of its friends: more than the bits of any float32 up to 1
LEADER_KEY = 0x7FFFFFFF
#: a product is rounded before it is added to something
UNFUSED = {"enable_fp_fusion": False}
#: numbers from here on have no fraction
WHOLE: tl.constexpr = tl.constexpr(2.0**52)


@triton.jit
def rounded(x, STEP: tl.constexpr):
    """Round to a multiple of a step, a power of two, half to even."""
    y = x * (1.0 / STEP)
    shift = tl.where(y < 0.0, -WHOLE, WHOLE)
    return tl.where(tl.abs(y) < WHOLE, (y + shift) - shift, y) * STEP


@triton.jit
def smooth_kernel(
    ptr, nodes, weights, portion, row, factor, constant,
    KINDS: tl.constexpr, FACTOR_STEP: tl.constexpr, SUM_STEP: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write f's closed form for a document."""
    document = tl.program_id(0)
    first = tl.load(ptr + document)
    n = (tl.load(ptr + document + 1) - first).to(tl.int32)
    none = tl.full([], float("inf"), tl.float64)
    shift = tl.full([], 0.0, tl.float64)
    for kind in tl.static_range(KINDS):
        given, out, counts = weights + kind * nodes + first, factor + kind * nodes + first, tl.load(portion + kind)
        lowest, lower, highest, higher = none, none, -none, -none
        for begin in range(0, n, TILE):
            i = begin + tl.arange(0, TILE)
            weight = tl.load(given + i, i < n, 0.0)
            a = tl.sqrt(tl.where(weight < 0.0, 0.0, weight))
            tl.store(out + i, a, i < n)
            # the two lowest and the two highest
            low, high = tl.where(i < n, a, none), tl.where(i < n, a, -none)
            one, place = tl.min(low, 0, return_indices=True)
            two = tl.min(tl.where(i - begin == place, none, low), 0)
            lower = tl.minimum(tl.maximum(lowest, one), tl.minimum(lower, two))
            lowest = tl.minimum(lowest, one)
            one, place = tl.max(high, 0, return_indices=True)
            two = tl.max(tl.where(i - begin == place, -none, high), 0)
            higher = tl.maximum(tl.minimum(highest, one), tl.maximum(higher, two))
            highest = tl.maximum(highest, one)
        least, most = lowest * lower, highest * higher
        speaks = (n > 1) & (most > least)
        reach, span = tl.where(speaks, highest - lowest, 1.0), tl.where(speaks, most - least, 1.0)
        slope = tl.where(speaks, counts * (lowest * reach / span), 0.0)
        root = tl.where(speaks, tl.sqrt(counts / span) * reach, 0.0)
        shift += tl.where(speaks, counts * ((lowest * lowest - least) / span), 0.0)
        tl.debug_barrier()
        for begin in range(0, n, TILE):
            i = begin + tl.arange(0, TILE)
            u = (tl.load(out + i, i < n, 0.0) - lowest) / reach
            tl.store(out + i, rounded(root * u, FACTOR_STEP), i < n)
            summand = slope * u
            if kind > 0:
                summand += tl.load(row + first + i, i < n, 0.0)
            if kind == KINDS - 1:
                summand = rounded(summand, SUM_STEP)
            tl.store(row + first + i, summand, i < n)
        tl.debug_barrier()
    tl.store(constant + document, rounded(shift, SUM_STEP))


@triton.jit
def totals_kernel(
    ptr, nodes, kernel, constant, scale, row, u, v, result, bound,
    S: tl.constexpr, SUM_STEP: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write the sum and the bound of a document."""
    document = tl.program_id(0)
    first = tl.load(ptr + document)
    n = (tl.load(ptr + document + 1) - first).to(tl.int32)
    zero = tl.full([], 0.0, tl.float64)
    unit, base = tl.load(scale + document), tl.load(constant + document)
    rows, most, nothing, peak, pairs = zero, zero, zero, zero, tl.full([], 0, tl.int64)
    for begin in range(0, n, TILE):
        i = begin + tl.arange(0, TILE)
        x = tl.load(row + first + i, i < n, 0.0)
        rows += tl.sum(x, 0)
        most = tl.maximum(most, tl.max(tl.abs(x), 0))
        near = tl.load(kernel + i, (i > 0) & (i < n), 0.0)
        # float64 cannot hold the sum of long documents' kernels
        pairs += tl.sum((n - i) * (near * (1.0 / SUM_STEP)).to(tl.int64), 0)
        nothing += tl.sum(near * 0.0, 0)  # not 0 where one is no number
        peak = tl.maximum(peak, tl.max(near, 0))
    whole = (base * n + 2.0 * rows) * (n - 1.0)
    most = base + 2.0 * most
    for s in tl.static_range(S):
        left, right, square, one, other = zero, zero, zero, zero, zero
        for begin in range(0, n, TILE):
            i = begin + tl.arange(0, TILE)
            x = tl.load(u + s * nodes + first + i, i < n, 0.0)
            y = tl.load(v + s * nodes + first + i, i < n, 0.0)
            left, right = left + tl.sum(x, 0), right + tl.sum(y, 0)
            square += tl.sum(rounded(x * y, SUM_STEP), 0)
            one, other = tl.maximum(one, tl.max(tl.abs(x), 0)), tl.maximum(other, tl.max(tl.abs(y), 0))
        whole += left * right - square
        most += one * other
    whole += 2.0 * SUM_STEP * pairs.to(tl.float64) + nothing
    tl.store(result + document, tl.where(n > 1, unit * whole, 0.0))
    tl.store(bound + document, tl.minimum(1.0, unit * (most + peak)))


@triton.jit
def mix_bits(x):
    """Return SplitMix64's finaliser of a uint64."""
    x = x * 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


@triton.jit
def mix_signed(x):
    """Return the same finaliser of an int64, with shifts that keep the sign."""
    x = x * (-0x61C8864680B583EB)
    x = (x ^ (x >> 30)) * (-0x40A7B892E31B1A47)
    x = (x ^ (x >> 27)) * (-0x6B2FB644ECCEEE15)
    return x ^ (x >> 31)


@triton.jit
def pair_hash(x):
    """Return the hash of a pair, 24 bits, as float64 from the sum of its ends' hashes (MurmurHash3's finaliser)."""
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    x = x ^ (x >> 16)
    return (x & 0xFFFFFF).to(tl.int32).to(tl.float64)


@triton.jit
def probability(i, j, first, nodes, kernel, constant, scale, row, u, v, S: tl.constexpr):
    """Return P of places i and j of a document (broadcast) in units of 2^-24, not clipped."""
    p = tl.load(kernel + tl.abs(i - j)) + constant + tl.load(row + first + i) + tl.load(row + first + j)
    for s in tl.static_range(S):
        p += tl.load(u + s * nodes + first + i) * tl.load(v + s * nodes + first + j)
    return p * (scale * 16777216.0)


@triton.jit
def prepare_kernel(ptr, key, lower, higher, degree, share, WORDS: tl.constexpr, TILE: tl.constexpr):
    """Hash the nodes of a document, and clear degrees and the circles that nodes share."""
    document = tl.program_id(0)
    first = tl.load(ptr + document)
    n = (tl.load(ptr + document + 1) - first).to(tl.int32)
    own = tl.load(key + document)
    start = mix_bits(own.to(tl.uint64))
    for begin in range(0, n, TILE):
        place = begin + tl.arange(0, TILE)
        inside = place < n
        twice = start + (2 * place).to(tl.uint64)
        # 32 bits of each hash; of a negative key those whose sum is the same for all pairs
        low = tl.where(own < 0, (-1 - own).to(tl.uint64), mix_bits(twice))
        high = tl.where(own < 0, 0, mix_bits(twice + 1))
        tl.store(lower + first + place, low.to(tl.uint32).to(tl.int32, bitcast=True), inside)
        tl.store(higher + first + place, high.to(tl.uint32).to(tl.int32, bitcast=True), inside)
        tl.store(degree + first + place, tl.zeros_like(place), inside)
        for word in tl.static_range(WORDS):
            tl.store(share + (first + place) * WORDS + word, tl.zeros_like(place), inside)


@triton.jit
def degree_kernel(
    ptr, nodes, kernel, constant, scale, row, u, v, lower, higher, degree,
    S: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Count the friends of some rows of a document among the nodes behind each, for both ends of a pair."""
    document = tl.program_id(0)
    first = tl.load(ptr + document)
    n = (tl.load(ptr + document + 1) - first).to(tl.int32)
    top = tl.program_id(1) * ROWS
    if top < n:
        shift, unit = tl.load(constant + document), tl.load(scale + document)
        i = top + tl.arange(0, ROWS)
        i_safe = tl.minimum(i, n - 1)[:, None]
        own = tl.load(lower + first + i_safe).to(tl.uint32, bitcast=True)
        friends = tl.zeros([ROWS], tl.int32)
        for begin in range((top // COLUMNS) * COLUMNS, n, COLUMNS):
            j = begin + tl.arange(0, COLUMNS)
            j_safe = tl.minimum(j, n - 1)[None, :]
            other = tl.load(higher + first + j_safe).to(tl.uint32, bitcast=True)
            p = probability(
                i_safe, j_safe, first, nodes, kernel, shift, unit, row, u, v, S
            )  # fmt: skip
            edge = (pair_hash(own + other) < p) & (i[:, None] < j[None, :]) & (j[None, :] < n)
            hit = edge.to(tl.int32)
            friends += tl.sum(hit, 1)
            tl.atomic_add(degree + first + j, tl.sum(hit, 0), j < n, sem="relaxed")
        tl.atomic_add(degree + first + i, friends, i < n, sem="relaxed")


@triton.jit
def edges_kernel(
    ptr, nodes, kernel, constant, scale, row, u, v, lower, higher, start, total, edge_index, weight,
    S: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the edges of some rows of a document; ``start`` says where each row's begin."""
    document = tl.program_id(0)
    first = tl.load(ptr + document)
    n = (tl.load(ptr + document + 1) - first).to(tl.int32)
    top = tl.program_id(1) * ROWS
    if top < n:
        shift, unit = tl.load(constant + document), tl.load(scale + document)
        i = top + tl.arange(0, ROWS)
        i_safe = tl.minimum(i, n - 1)[:, None]
        low_i = tl.load(lower + first + i_safe).to(tl.uint32, bitcast=True)
        high_i = tl.load(higher + first + i_safe).to(tl.uint32, bitcast=True)
        end = tl.load(start + first + i, i < n, 0)
        for begin in range(0, n, COLUMNS):
            j = begin + tl.arange(0, COLUMNS)
            j_safe = tl.minimum(j, n - 1)[None, :]
            low_j = tl.load(lower + first + j_safe).to(tl.uint32, bitcast=True)
            high_j = tl.load(higher + first + j_safe).to(tl.uint32, bitcast=True)
            p = probability(
                i_safe, j_safe, first, nodes, kernel, shift, unit, row, u, v, S
            )  # fmt: skip
            drawn = pair_hash(tl.where(i[:, None] < j[None, :], low_i + high_j, low_j + high_i))
            edge = (drawn < p) & (i[:, None] != j[None, :]) & (i[:, None] < n) & (j[None, :] < n)
            hit = edge.to(tl.int64)
            place = end[:, None] + tl.cumsum(hit, 1) - 1
            tl.store(edge_index + place, first + i[:, None] + 0 * j[None, :], edge)
            tl.store(edge_index + total + place, first + j[None, :] + 0 * i[:, None], edge)
            tl.store(weight + place, tl.minimum(p / 16777216.0, 1.0).to(tl.float32), edge)
            end += tl.sum(hit, 1)


@triton.jit
def shared(one, other, share, first, WORDS: tl.constexpr, NODE_LEVEL: tl.constexpr):
    """Return where circles have taken the edge between two places (broadcast), as a number that is not 0."""
    if NODE_LEVEL:
        return tl.load(share + first + one) | tl.load(share + first + other)
    taken = tl.load(share + (first + one) * WORDS) & tl.load(share + (first + other) * WORDS)
    for word in tl.static_range(1, WORDS):
        taken |= tl.load(share + (first + one) * WORDS + word) & tl.load(share + (first + other) * WORDS + word)
    return taken


@triton.jit
def reaching(keys, amount, least, TILE: tl.constexpr):
    """Return how many of the first ``amount`` keys are at least ``least``."""
    found = 0
    for begin in range(0, amount, TILE):
        f = begin + tl.arange(0, TILE)
        found += tl.sum(((tl.load(keys + f, f < amount, 0) >= least) & (f < amount)).to(tl.int32), 0)
    return found


@triton.jit
def circles_kernel(
    ptr, nodes, kernel, constant, scale, row, u, v, lower, higher, degree, share, friend, friend_key, friend_tie,
    members, leaders, k, max_size,
    S: tl.constexpr, WORDS: tl.constexpr, NODE_LEVEL: tl.constexpr, BY_WEIGHT: tl.constexpr,
    TILE: tl.constexpr, MEMBERS: tl.constexpr, LEADER_KEY: tl.constexpr,
):  # fmt: skip
    """Take all circles out of one document.

    ``degree`` holds what is left of each node's, ``share [N, WORDS]`` a bit for each circle of a node (node-level: one
    for all). ``friend`` and its keys list the leader and its friends, in order; a list of a document has as much room
    as the document, and that of ``members`` is ``max_size``.
    """
    document = tl.program_id(0)
    first = tl.load(ptr + document)
    n = (tl.load(ptr + document + 1) - first).to(tl.int32)
    shift, unit = tl.load(constant + document), tl.load(scale + document)
    friend += first
    friend_key += first
    friend_tie += first
    turn = 0
    going = n > 1
    while going:
        # 1. The node of highest degree leads; of equals the lowest.
        best = tl.full([], 0, tl.int64)
        for begin in range(0, n, TILE):
            i = begin + tl.arange(0, TILE)
            rank = (tl.load(degree + first + i, i < n, 0).to(tl.int64) << 32) + (LEADER_KEY - i)
            best = tl.maximum(best, tl.max(rank, 0))
        leader = (LEADER_KEY - (best & LEADER_KEY)).to(tl.int32)
        going = (best >> 32) > 0
        if going:
            # 2. The leader and its friends, each with its weight and what decides between equal weights.
            low, high = (
                tl.load(lower + first + leader).to(tl.uint32, bitcast=True),
                tl.load(higher + first + leader).to(tl.uint32, bitcast=True),
            )
            mixed = mix_signed(leader.to(tl.int64))
            count = 0
            for begin in range(0, n, TILE):
                j = begin + tl.arange(0, TILE)
                inside = j < n
                j_safe = tl.minimum(j, n - 1)
                low_j = tl.load(lower + first + j_safe).to(tl.uint32, bitcast=True)
                high_j = tl.load(higher + first + j_safe).to(tl.uint32, bitcast=True)
                p = probability(
                    leader, j_safe, first, nodes, kernel, shift, unit, row, u, v, S
                )  # fmt: skip
                drawn = pair_hash(tl.where(leader < j, low + high_j, low_j + high))
                edge = (drawn < p) & (shared(leader, j_safe, share, first, WORDS, NODE_LEVEL) == 0)
                listed = ((edge & (j != leader)) | (j == leader)) & inside
                bits = tl.minimum(p / 16777216.0, 1.0).to(tl.float32).to(tl.int32, bitcast=True)
                place = count + tl.cumsum(listed.to(tl.int32), 0) - 1
                tl.store(friend + place, j, listed)
                tl.store(friend_key + place, tl.where(j == leader, LEADER_KEY, bits), listed)
                if BY_WEIGHT:
                    # the lowest tie hash goes first: its complement is the highest
                    tie = ~mix_signed(mixed + mix_signed(j.to(tl.int64)))
                    tl.store(friend_tie + place, tie, listed)
                count += tl.sum(listed.to(tl.int32), 0)
            tl.debug_barrier()

            # 3. Of too many the strongest stay: the last weight that does, bit by bit, then the last of equals.
            least = 0
            last = tl.full([], -0x8000000000000000, tl.int64)
            if BY_WEIGHT:
                if count > max_size:
                    for b in range(31):
                        more = least | (1 << (30 - b))
                        if reaching(friend_key, count, more, TILE) >= max_size:
                            least = more
                    above = reaching(friend_key, count, least + 1, TILE)
                    if reaching(friend_key, count, least, TILE) > max_size:
                        for b in range(64):
                            bit = tl.full([], 1, tl.int64) << (63 - b)
                            more = last ^ bit  # the highest bit is the sign: from the lowest number upwards
                            reach = 0
                            for begin in range(0, count, TILE):
                                f = begin + tl.arange(0, TILE)
                                equal = tl.load(friend_key + f, f < count, -1) == least
                                reach += tl.sum(
                                    (equal & (tl.load(friend_tie + f, f < count, 0) >= more)).to(tl.int32), 0
                                )
                            if reach >= max_size - above:
                                last = more

            # 4. The members, in order.
            size = 0
            member = members + (document.to(tl.int64) * k + turn) * max_size
            for begin in range(0, count, TILE):
                f = begin + tl.arange(0, TILE)
                node = tl.load(friend + f, f < count, 0)
                if BY_WEIGHT:
                    weight = tl.load(friend_key + f, f < count, -1)
                    stays = (weight > least) | (weight == least)
                    if count > max_size:
                        stays = (weight > least) | ((weight == least) & (tl.load(friend_tie + f, f < count, 0) >= last))
                else:
                    # one place is the leader's, before whom or behind whom the others stand
                    stays = (f - (node > leader).to(tl.int32) < max_size - 1) | (node == leader)
                stays = stays & (f < count)
                place = size + tl.cumsum(stays.to(tl.int32), 0) - 1
                tl.store(member + place, node, stays)
                size += tl.sum(stays.to(tl.int32), 0)
            tl.store(leaders + document * k + turn, leader)
            tl.debug_barrier()

            # 5. What degrees lose: to the members those of all nodes that are left, or of the members alone.
            losers = size
            if NODE_LEVEL:  # who is left, in the place of the friends, whom nobody asks for any more
                losers = 0
                for begin in range(0, n, TILE):
                    i = begin + tl.arange(0, TILE)
                    left = ((tl.load(share + first + i, i < n, 1) == 0) & (i < n)).to(tl.int32)
                    tl.store(friend + losers + tl.cumsum(left, 0) - 1, i, left > 0)
                    losers += tl.sum(left, 0)
                tl.debug_barrier()
            for begin in range(0, losers, MEMBERS):
                a = begin + tl.arange(0, MEMBERS)
                i = tl.load((friend if NODE_LEVEL else member) + a, a < losers, 0)
                low_i = tl.load(lower + first + i).to(tl.uint32, bitcast=True)[:, None]
                high_i = tl.load(higher + first + i).to(tl.uint32, bitcast=True)[:, None]
                lost = tl.zeros([MEMBERS], tl.int32)
                for start in range(0, size, MEMBERS):
                    b = start + tl.arange(0, MEMBERS)
                    j = tl.load(member + b, b < size, 0)
                    low_j = tl.load(lower + first + j).to(tl.uint32, bitcast=True)[None, :]
                    high_j = tl.load(higher + first + j).to(tl.uint32, bitcast=True)[None, :]
                    p = probability(
                        i[:, None], j[None, :], first, nodes, kernel, shift, unit, row, u, v, S
                    )  # fmt: skip
                    drawn = pair_hash(tl.where(i[:, None] < j[None, :], low_i + high_j, low_j + high_i))
                    edge = (drawn < p) & (i[:, None] != j[None, :]) & (b < size)[None, :]
                    if not NODE_LEVEL:
                        edge = edge & (shared(i[:, None], j[None, :], share, first, WORDS, NODE_LEVEL) == 0)
                    lost += tl.sum(edge.to(tl.int32), 1)
                left = tl.load(degree + first + i, a < losers, 0) - lost
                tl.store(degree + first + i, left, a < losers)
            tl.debug_barrier()

            # 6. The members have this circle; node-level, they have no friends any more.
            for begin in range(0, size, TILE):
                a = begin + tl.arange(0, TILE)
                node = tl.load(member + a, a < size, 0)
                if NODE_LEVEL:
                    tl.store(share + first + node, tl.full([TILE], 1, tl.int32), a < size)
                    tl.store(degree + first + node, tl.zeros([TILE], tl.int32), a < size)
                else:
                    word = share + (first + node) * WORDS + turn // 32
                    tl.store(word, tl.load(word, a < size, 0) | (1 << (turn % 32)), a < size)
            tl.debug_barrier()
            turn += 1
            going = turn < k


def smooth_products(ptr: Tensor, weights: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """See :func:`socialgraph.kernels.smooth_products`."""
    (kinds, nodes), documents = weights.shape, ptr.numel() - 1
    row, factor, constant = weights.new_empty(nodes), torch.empty_like(weights), weights.new_empty(documents)
    smooth_kernel[documents,](
        ptr, nodes, weights, share, row, factor, constant,
        KINDS=kinds, FACTOR_STEP=FACTOR_STEP, SUM_STEP=SUM_STEP, TILE=TILE, **UNFUSED,
    )  # fmt: skip
    return row, factor, constant


def totals(form: ClosedForm) -> tuple[Tensor, Tensor]:
    """See :func:`socialgraph.kernels.totals`."""
    total, bound = torch.empty_like(form.scale), torch.empty_like(form.scale)
    totals_kernel[form.ptr.numel() - 1,](
        form.ptr, form.row.numel(), *form[1:7], total, bound, S=form.u.size(0), SUM_STEP=SUM_STEP, TILE=TILE, **UNFUSED
    )
    return total, bound


def prepared(form: ClosedForm, words: int = 1) -> tuple[int, int, tuple[Any, ...], Tensor, Tensor]:
    """Return documents, nodes, what kernels read of a batch, and cleared degrees and shares."""
    documents, nodes = form.ptr.numel() - 1, form.row.numel()
    number = torch.empty(2, nodes, dtype=torch.int32, device=form.ptr.device)
    degree = torch.empty(nodes, dtype=torch.int32, device=form.ptr.device)
    share = torch.empty(nodes, words, dtype=torch.int32, device=form.ptr.device)
    ptr, kernel, constant, scale, row, u, v, key = form
    prepare_kernel[documents,](ptr, key, number[0], number[1], degree, share, WORDS=words, TILE=TILE)
    read = (ptr, nodes, kernel, constant, scale, row, u, v, number[0], number[1])
    return documents, nodes, read, degree, share


def count_degrees(form: ClosedForm, documents: int, read: tuple[Any, ...], degree: Tensor) -> None:
    """Count the friends of all nodes into ``degree``."""
    grid = (documents, triton.cdiv(form.kernel.numel(), ROWS))
    degree_kernel[grid](*read, degree, S=form.u.size(0), ROWS=ROWS, COLUMNS=COLUMNS, num_warps=4)


def greedy_circles(form: ClosedForm, k: int, max_size: int, node_level: bool, by_weight: bool) -> tuple[Tensor, Tensor]:
    """See :func:`socialgraph.kernels.greedy_circles`."""
    words = 1 if node_level else triton.cdiv(k, WORD)
    documents, nodes, read, degree, share = prepared(form, words)
    count_degrees(form, documents, read, degree)
    members = torch.full((documents, k, max_size), -1, dtype=torch.int32, device=degree.device)
    leaders = torch.full((documents, k), -1, dtype=torch.int32, device=degree.device)
    friend = torch.empty(2, nodes, dtype=torch.int32, device=degree.device)
    tie = torch.empty(nodes, dtype=torch.long, device=degree.device)
    circles_kernel[documents,](
        *read, degree, share, friend[0], friend[1], tie, members, leaders, k, max_size,
        S=form.u.size(0), WORDS=words, NODE_LEVEL=node_level, BY_WEIGHT=by_weight,
        TILE=TILE, MEMBERS=MEMBERS, LEADER_KEY=LEADER_KEY, num_warps=WARPS,
    )  # fmt: skip
    return members, leaders


def all_edges(form: ClosedForm) -> tuple[Tensor, Tensor]:
    """See :func:`socialgraph.kernels.all_edges`."""
    documents, _, read, degree, _ = prepared(form)
    count_degrees(form, documents, read, degree)
    end = degree.cumsum(0)
    total = int(end[-1]) if end.numel() else 0
    edge_index = torch.empty(2, total, dtype=torch.long, device=degree.device)
    weight = torch.empty(total, device=degree.device)
    grid = (documents, triton.cdiv(form.kernel.numel(), ROWS))
    edges_kernel[grid](
        *read, end - degree, total, edge_index, weight,
        S=form.u.size(0), ROWS=ROWS, COLUMNS=COLUMNS, num_warps=4,
    )  # fmt: skip
    return edge_index, weight
