"""The kernels on a CPU, in numba: a thread for each document, compiled once and cached on disk.

:mod:`socialgraph.kernels` says what is computed. Here a row of the graph is drawn at most once and kept as bits:
nodes that may lead are counted again in every round, and counting bits takes a hundredth of the time of drawing them.
Most rows of a long document are never drawn: a bound says that their nodes cannot lead.

Three habits keep the inner loop in vector units. Loops run over slices, so that no index might be negative. Sums of
uint32 are wrapped, because numba takes them for uint64. And the higher and the lower end of a pair have other hashes,
so a row has two loops, left and right of the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from torch import Tensor

from socialgraph.kernels.closed_form import FACTOR_STEP, HASH_RANGE, SUM_STEP, ClosedForm

#: chance that any node of a document has a higher degree than its bound
FAILURE = 1e-12
#: columns of factors in the inner loop: the paper's mixture has three
UNROLLED = 3
#: rows that there is room for at first
FIRST_ROWS = 64
#: documents of at most so many tokens are drawn as a whole: most of their rows are needed, and a pair is drawn once
WHOLE = 4096


def compiled(function: Callable[..., Any]) -> Any:
    """Compile without the interpreter's lock. The result is cached on disk where there is a folder for it."""
    try:
        return njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no such folder: compiled anew in each process
        return njit(nogil=True, error_model="numpy")(function)


@intrinsic
def popcount(typing: Any, x: Any) -> Any:
    """Return how many bits of a uint64 are set."""
    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])


@intrinsic
def lowest_bit(typing: Any, x: Any) -> Any:
    """Return the place of the lowest bit of a uint64 that is set."""
    never_zero = ir.Constant(ir.IntType(1), 1)
    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.cttz(args[0], never_zero)


# --- probabilities --------------------------------------------------------------------------------------


@compiled
def rounded(x, step):
    """Round to a multiple of a step, half to even."""
    return np.rint(x / step) * step


@compiled
def some_smooth_products(begin, step, given, row, factor, constant):
    """Write f's closed form for every ``step``-th document."""
    ptr, weights, share = given
    for d in range(begin, ptr.size - 1, step):
        first, last = ptr[d], ptr[d + 1]
        shift = 0.0
        row[first:last] = 0.0
        for kind in range(share.size):
            lowest = lower = np.inf
            highest = higher = -np.inf
            for i in range(first, last):
                weight = weights[kind, i]
                a = math.sqrt(0.0 if weight < 0.0 else weight)
                factor[kind, i] = a
                if a < lower:
                    lowest, lower = min(a, lowest), max(a, lowest)
                if a > higher:
                    highest, higher = max(a, highest), min(a, highest)
            least, most = lowest * lower, highest * higher
            reach = span = 1.0
            slope = root = 0.0  # where all pairs are equal
            if last - first > 1 and most > least:
                reach, span = highest - lowest, most - least
                slope = share[kind] * (lowest * reach / span)
                root = math.sqrt(share[kind] / span) * reach
                shift += share[kind] * ((lowest * lowest - least) / span)
            for i in range(first, last):
                u = (factor[kind, i] - lowest) / reach
                row[i] += slope * u
                factor[kind, i] = rounded(root * u, FACTOR_STEP)
        for i in range(first, last):
            row[i] = rounded(row[i], SUM_STEP)
        constant[d] = rounded(shift, SUM_STEP)


@compiled
def some_totals(begin, step, form, total, bound):
    """Write the sum and the bound of every ``step``-th document."""
    ptr, kernel, constant, scale, row, u, v, _ = form
    for d in range(begin, ptr.size - 1, step):
        first, last = ptr[d], ptr[d + 1]
        n = last - first
        rows = 0.0
        for i in range(first, last):
            rows += row[i]
        whole = (constant[d] * n + 2.0 * rows) * (n - 1.0)
        most = constant[d] + 2.0 * largest(row[first:last])
        for s in range(u.shape[0]):
            left = right = square = 0.0
            for i in range(first, last):
                left += u[s, i]
                right += v[s, i]
                square += rounded(u[s, i] * v[s, i], SUM_STEP)
            whole += left * right - square
            most += largest(u[s, first:last]) * largest(v[s, first:last])
        # float64 cannot hold the sum of long documents' kernels
        pairs, nothing, peak = np.int64(0), 0.0, 0.0
        for distance in range(1, n):
            near = kernel[distance]
            pairs += (n - distance) * np.int64(near / SUM_STEP)
            nothing += near * 0.0  # not 0 where it is no number
            peak = max(peak, near)
        whole += 2.0 * SUM_STEP * np.float64(pairs) + nothing
        total[d] = scale[d] * whole if n > 1 else 0.0
        bound[d] = min(1.0, scale[d] * (most + peak))


# --- one row ------------------------------------------------------------------------------------------


@compiled
def mix_bits(x):
    """Return SplitMix64's finaliser of a uint64."""
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def mix_signed(x):
    """Return the same finaliser of an int64, with shifts that keep the sign."""
    x = x * np.int64(-0x61C8864680B583EB)
    x = (x ^ (x >> np.int64(30))) * np.int64(-0x40A7B892E31B1A47)
    x = (x ^ (x >> np.int64(27))) * np.int64(-0x6B2FB644ECCEEE15)
    return x ^ (x >> np.int64(31))


@compiled
def pair_hash(x):
    """Return the hash of a pair, 24 bits, from the sum of its ends' hashes, uint32 (MurmurHash3's finaliser)."""
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x85EBCA6B))
    x = np.uint32(x ^ (x >> np.uint32(13)))
    x = np.uint32(x * np.uint32(0xC2B2AE35))
    x = np.uint32(x ^ (x >> np.uint32(16)))
    return np.float64(np.int32(x & np.uint32(0xFFFFFF)))


@compiled
def draw_slice(own, other, scale, near, row, rows, a, b, c, va, vb, vc, hit):
    """Draw a node's edges to the nodes of a slice: ``hit`` 1 or 0. The inner loop of everything."""
    for j in range(hit.size):
        p = scale * (near[j] + row + rows[j] + (a * va[j] + (b * vb[j] + c * vc[j])))
        hit[j] = pair_hash(np.uint32(own + other[j])) < p


@compiled
def draw_row(i, first, tables, known, hit):
    """Draw a node's edges to the nodes from place ``first`` on, into ``hit [n]``; there is none to itself."""
    n, scale, near, row, u, v, lower, higher = tables
    rows = row
    if u.shape[0] > UNROLLED:  # the first columns are in the inner loop, further ones are summed before
        for j in range(first, n):
            known[j] = row[j]
        for s in range(UNROLLED, u.shape[0]):
            weight = u[s, i]
            for j in range(first, n):
                known[j] += weight * v[s, j]
        rows = known
    a, b, c = u[0, i], u[1, i], u[2, i]
    start = n - 1 - i  # near[start + j] is the kernel at distance |i - j|
    for begin, end, own, other in ((first, i, higher[i], lower), (max(first, i + 1), n, lower[i], higher)):
        if begin < end:
            draw_slice(
                own, other[begin:end], scale, near[start + begin : start + end], row[i], rows[begin:end], a, b, c,
                v[0, begin:end], v[1, begin:end], v[2, begin:end], hit[begin:end],
            )  # fmt: skip
    if first <= i:
        hit[i] = 0


@compiled
def probability(i, j, tables):
    """Return what the hash of a pair is compared with: P * 2^24, not clipped."""
    n, scale, near, row, u, v, _, _ = tables
    p = near[n - 1 - i + j] + row[i] + row[j]
    for s in range(u.shape[0]):
        p += u[s, i] * v[s, j]
    return scale * p


@compiled
def edge_weight(i, j, tables):
    """Return the probability of an edge, float32."""
    return np.float32(min(1.0, probability(i, j, tables) / HASH_RANGE))


@compiled
def document_tables(form, d):
    """Return what the functions above need to know of a document; its scale is in units of 2^-24.

    ``near [2 n - 1]`` is the kernel mirrored, so that a row of it is a slice; ``lower [n]`` and ``higher [n]`` are what
    a node adds to the hashes of its pairs as their lower and as their higher end.
    """
    ptr, kernel, constant, scale, row, u, v, key = form
    first, n = ptr[d], ptr[d + 1] - ptr[d]
    near = np.empty(2 * n - 1)
    left, right = np.zeros((max(u.shape[0], UNROLLED), n)), np.zeros((max(u.shape[0], UNROLLED), n))
    lower, higher = np.empty(n, np.uint32), np.empty(n, np.uint32)
    start = mix_bits(np.uint64(key[d]))
    for i in range(n):
        near[n - 1 + i] = near[n - 1 - i] = kernel[i] + constant[d]
        for s in range(u.shape[0]):
            left[s, i], right[s, i] = u[s, first + i], v[s, first + i]
        twice = start + np.uint64(2 * i)
        lower[i], higher[i] = np.uint32(mix_bits(twice)), np.uint32(mix_bits(twice + np.uint64(1)))
        if key[d] < 0:  # all pairs have the same hash
            lower[i], higher[i] = np.uint32(~key[d]), np.uint32(0)
    return n, scale[d] * HASH_RANGE, near, row[first : first + n], left, right, lower, higher


# --- bounds -------------------------------------------------------------------------------------------


@compiled
def largest(x):
    """Return the largest absolute value, 0 of nothing."""
    most = 0.0
    for value in x:
        most = max(most, abs(value))
    return most


@compiled
def lower_bounds(tables, gone, bound):
    r"""Lower ``bound [n]`` to what no node's degree exceeds, but for a chance of :data:`FAILURE` in the document.

    The degree is a sum of m independent draws of mean E together. By Bernstein's inequality (Boucheron, Lugosi and
    Massart, Concentration Inequalities, 2013, section 2.8) it exceeds

    .. math::
        U = E + \lambda / 3 + \sqrt{(\lambda / 3)^2 + 2 \lambda E (1 - E / m)}

    with a chance of at most exp(-lambda). That holds too where E is more than the mean, as it is where probabilities
    are clipped at 1. For one node lambda is ln(n / FAILURE), so that none of n exceeds its own.

    P is a sum of rounded numbers, so a pair that never meets may have one just below 0, which hides as much of the
    others in E. All roundings of a pair are less than 2^-17 of the largest terms; as much is added for each pair.

    Args:
        tables: of the document.
        gone: nodes that are no friends any more.
        bound: changed.
    """
    n, scale, near, row, u, v, _, _ = tables
    others = n - 1.0 - gone.size
    # sums over the nodes that are left, but for the kernel's: its smallest value is what each one gone took at least
    everyone, behind, least = 0.0, 0.0, near[n - 1]
    for j in range(n):
        everyone += row[j]
        least = min(least, near[n - 1 + j])
        behind += near[n - 1 + j]
    behind -= near[n - 1]  # the kernel's sum over the nodes behind; before the first there is none
    before = 0.0
    for j in gone:
        everyone -= row[j] + least
    reach = 1.0 + scale / HASH_RANGE * (largest(near) + 2.0 * largest(row))
    sums = np.zeros(u.shape[0])
    for s in range(u.shape[0]):
        for j in range(n):
            sums[s] += v[s, j]
        for j in gone:
            sums[s] -= v[s, j]
        reach += scale / HASH_RANGE * largest(u[s]) * largest(v[s])
    margin = 2.0**-17 * reach * n
    chance = math.log(n / FAILURE)
    third = chance / 3.0
    for i in range(n):
        expected = before + behind + others * row[i] + everyone - row[i]
        for s in range(u.shape[0]):
            expected += u[s, i] * (sums[s] - v[s, i])
        expected = min(max(scale / HASH_RANGE * expected + margin, 0.0), others)
        variance = expected * (1.0 - expected / max(others, 1.0))
        most = expected + third + math.sqrt(third * third + 2.0 * chance * variance)
        bound[i] = min(bound[i], np.int64(most if most < others else others))
        if i + 1 < n:
            before += near[n + i]  # distance i + 1
            behind -= near[2 * n - 2 - i]  # distance n - 1 - i


# --- circles ------------------------------------------------------------------------------------------


@compiled
def pack(hit, bits):
    """Pack bytes that are 0 or 1 into bits: byte i becomes bit i % 64 of word i // 64."""
    eight = hit.view(np.uint64)
    for w in range(bits.size):
        word = np.uint64(0)
        for b in range(8):
            # the product moves bit 0 of byte i to bit 56 + i
            byte = (eight[8 * w + b] * np.uint64(0x0102040810204080)) >> np.uint64(56)
            word |= byte << np.uint64(8 * b)
        bits[w] = word


@compiled
def count_common(x, y):
    """Return how many bits two rows share."""
    total = np.uint64(0)
    for w in range(x.size):
        total += popcount(x[w] & y[w])
    return np.int64(total)


@compiled
def places(x, y, out):
    """Write the places of the bits that two rows share to ``out``, ascending; return how many there are."""
    count = 0
    for w in range(x.size):
        word = x[w] & y[w]
        while word:
            out[count] = 64 * w + np.int64(lowest_bit(word))
            count += 1
            word &= word - np.uint64(1)
    return count


@compiled
def clear(x, y):
    """Clear those bits of x that are set in y."""
    for w in range(x.size):
        x[w] &= ~y[w]


@compiled
def set_bit(bits, node):
    """Set a place's bit."""
    bits[node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@compiled
def has_bit(bits, node):
    """Return whether a place's bit is set."""
    return (bits[node >> 6] >> np.uint64(node & 63)) & np.uint64(1) != 0


@compiled
def cut(keys, amount, bits):
    """Return the largest number that at least ``amount`` of ``keys`` reach, bit by bit from the highest of ``bits``."""
    least = np.uint64(0)
    for b in range(bits - 1, -1, -1):
        more = least | (np.uint64(1) << np.uint64(b))
        reach = 0
        for key in keys:
            reach += key >= more
        if reach >= amount:
            least = more
    return least


@compiled
def strongest(leader, friends, amount, mixed, tables):
    """Move the ``amount`` friends of highest weight to the front; of equals those whose pair has the lowest tie hash.

    Args:
        leader: whose friends they are.
        friends: ascending; changed, and what is moved stays ascending.
        amount: fewer than there are.
        mixed: of each node, see :func:`socialgraph.partition.ties.pair_hash`.
        tables: of the document.
    """
    weight = np.empty(friends.size, np.float32)
    for f in range(friends.size):
        weight[f] = edge_weight(leader, friends[f], tables)
    bits = weight.view(np.uint32)  # edges have positive weights, whose bits are in their order
    key, tie = np.empty(friends.size, np.uint64), np.empty(friends.size, np.uint64)
    for f in range(friends.size):
        key[f] = bits[f]
    least = cut(key, amount, 31)
    equal = 0
    for f in range(friends.size):
        amount -= key[f] > least
        if key[f] == least:
            tie[equal] = ~np.uint64(mix_signed(mixed[leader] + mixed[friends[f]])) ^ np.uint64(1 << 63)
            equal += 1
    last = cut(tie[:equal], amount, 64)
    count = equal = 0
    for f in range(friends.size):
        take = key[f] > least
        if key[f] == least:
            take = tie[equal] >= last
            equal += 1
        if take:
            friends[count] = friends[f]
            count += 1


@compiled
def descending(bound):
    """Return the nodes by bound, highest first (a counting sort)."""
    start = np.zeros(bound.size + 1, np.int64)
    for value in bound:
        start[bound.size - 1 - value] += 1
    total = np.int64(0)
    for value in range(start.size):
        start[value], total = total, total + start[value]
    order = np.empty(bound.size, np.int64)
    for i in range(bound.size):
        place = bound.size - 1 - bound[i]
        order[start[place]] = i
        start[place] += 1
    return order


@compiled
def transpose(block):
    """Transpose a square of 64 x 64 bits in place: halves change places, then halves of halves (Hacker's Delight)."""
    width, mask = 32, np.uint64(0x00000000FFFFFFFF)
    while width:
        shift = np.uint64(width)
        for start in range(0, 64, 2 * width):
            for r in range(start, start + width):
                swap = ((block[r] >> shift) ^ block[r + width]) & mask
                block[r] ^= swap << shift
                block[r + width] ^= swap
        width >>= 1
        mask ^= mask << np.uint64(max(width, 1))


@compiled
def draw_all(tables, rows, known, hit):
    """Draw all rows into bits, ``[64 * words, words]``: each pair once, right of the diagonal, and mirrored then."""
    n, words = tables[0], rows.shape[1]
    rows[:] = 0
    hit[:] = 0
    for i in range(n - 1):
        hit[i] = 0
        draw_row(i, i + 1, tables, known, hit)
        w = (i + 1) // 64
        pack(hit[64 * w :], rows[i, w:])
    block = np.empty(64, np.uint64)
    for w in range(words):
        for x in range(w, words):
            for r in range(64):
                block[r] = rows[64 * w + r, x]
            transpose(block)
            for r in range(64):
                rows[64 * x + r, w] |= block[r]


@compiled
def document_circles(tables, as_whole, max_size, node_level, by_weight, members, leaders):
    """Take circles out of one document: see :func:`socialgraph.kernels.greedy_circles`.

    Lazy greedy (Michel Minoux, "Accelerated greedy algorithms for maximizing submodular set functions", 1978): degrees
    only fall, so what was true of a node once bounds its degree for ever, and nodes below the best are not looked at.

    Args:
        tables: of the document.
        as_whole: whether all rows are drawn at once.
        max_size: members of a circle at most.
        node_level: whether circles share no node.
        by_weight: whether the strongest friends stay.
        members: what is returned, ``[k, max_size]``.
        leaders: what is returned, ``[k]``.
    """
    n, room = tables[0], members.shape[0]
    words = (n + 63) // 64
    known, hit, friends = np.empty(n), np.zeros(64 * words, np.uint8), np.empty(n, np.int64)
    bound, slot = np.full(n, n - 1), np.full(n, -1)  # what no degree exceeds; where a node's row is kept
    gone, taken = np.empty(n, np.int64), 0  # the nodes that circles have taken
    if as_whole:
        rows, owner, drawn = np.empty((64 * words, words), np.uint64), np.arange(n), n
        draw_all(tables, rows, known, hit)
        slot = owner
    else:
        rows, owner, drawn = np.empty((FIRST_ROWS, words), np.uint64), np.empty(n, np.int64), 0
        lower_bounds(tables, gone[:0], bound)
    first_bound = bound.copy()
    order = descending(bound) if drawn < n else owner  # who may lead stands in front
    undrawn = 0  # all before this one in the order are drawn
    circles = np.zeros((room, words), np.uint64)
    left = np.full(words, np.uint64(0xFFFFFFFFFFFFFFFF))  # nodes that no circle has taken
    mixed = np.empty(n, np.int64)
    for i in range(n):
        mixed[i] = mix_signed(np.int64(i))

    for turn in range(room):
        best, leader = 0, -1
        for d in range(drawn):
            i = owner[d]
            if bound[i] > best or (bound[i] == best and i < leader):
                bound[i] = count_common(rows[d], left)
                if bound[i] > best or (bound[i] == best and best > 0 and i < leader):
                    best, leader = bound[i], i
        while undrawn < n and slot[order[undrawn]] >= 0:
            undrawn += 1
        for s in range(undrawn, n):
            i = order[s]
            if first_bound[i] < best:
                break  # nor can anybody behind
            if slot[i] >= 0 or bound[i] < max(best, 1) or (bound[i] == best and i > leader):
                continue
            if drawn == rows.shape[0]:
                rows = np.concatenate((rows, np.empty_like(rows)))
            row = rows[drawn]
            draw_row(i, 0, tables, known, hit)
            pack(hit, row)
            for c in range(turn if not node_level else 0):
                if has_bit(circles[c], i):
                    clear(row, circles[c])
            slot[i], owner[drawn] = drawn, i
            drawn += 1
            bound[i] = count_common(row, left)
            if bound[i] > best or (bound[i] == best and best > 0 and i < leader):
                best, leader = bound[i], i
        if best == 0:
            break
        count = places(rows[slot[leader]], left, friends)
        if count >= max_size:
            if by_weight:
                strongest(leader, friends[:count], max_size - 1, mixed, tables)
            count = max_size - 1
        circle = circles[turn]
        for f in range(count):
            set_bit(circle, friends[f])
        set_bit(circle, leader)
        count = places(circle, circle, friends)
        leaders[turn] = leader
        for m in range(count):
            members[turn, m] = friends[m]
        if node_level:
            clear(left, circle)
            for i in friends[:count]:
                bound[i], gone[taken] = 0, i
                taken += 1
            if drawn < n:
                lower_bounds(tables, gone[:taken], bound)
        else:
            for i in friends[:count]:
                if slot[i] >= 0:
                    clear(rows[slot[i]], circle)


@compiled
def some_circles(begin, step, form, max_size, node_level, by_weight, members, leaders):
    """Take circles out of every ``step``-th document."""
    ptr = form[0]
    for d in range(begin, ptr.size - 1, step):
        if ptr[d + 1] - ptr[d] > 1:
            tables = document_tables(form, d)
            as_whole = tables[0] <= WHOLE or form[7][d] < 0  # bounds are those of draws
            document_circles(tables, as_whole, max_size, node_level, by_weight, members[d], leaders[d])


# --- edges --------------------------------------------------------------------------------------------


@compiled
def add_up(hit, count):
    """Add each 1 of ``hit`` to its count; return how many there are."""
    total = np.int32(0)
    for j in range(hit.size):
        count[j] += np.int32(hit[j])
        total += np.int32(hit[j])
    return total


@compiled
def some_degrees(begin, step, form, degree):
    """Count the friends of all nodes of every ``step``-th document."""
    ptr = form[0]
    for d in range(begin, ptr.size - 1, step):
        n = ptr[d + 1] - ptr[d]
        if n > 1:
            tables = document_tables(form, d)
            known, hit, count = np.empty(n), np.empty(n, np.uint8), np.zeros(n, np.int32)
            for i in range(n - 1):  # each pair once, counted for both
                draw_row(i, i + 1, tables, known, hit)
                count[i] += add_up(hit[i + 1 :], count[i + 1 :])
            for i in range(n):
                degree[ptr[d] + i] = count[i]


@compiled
def some_edges(begin, step, form, place, edge_index, weight):
    """Write the edges of every ``step``-th document; ``place`` says where each node's begin, and is changed."""
    ptr = form[0]
    for d in range(begin, ptr.size - 1, step):
        first, n = ptr[d], ptr[d + 1] - ptr[d]
        if n > 1:
            tables = document_tables(form, d)
            known, hit = np.empty(n), np.empty(n, np.uint8)
            for i in range(n - 1):
                # Rows come in order, so what they write into the rows below them is in order, too.
                draw_row(i, i + 1, tables, known, hit)
                for j in range(i + 1, n):
                    if hit[j]:
                        p = edge_weight(i, j, tables)
                        for one, other in ((first + i, first + j), (first + j, first + i)):
                            e = place[one]
                            edge_index[0, e], edge_index[1, e], weight[e] = one, other, p
                            place[one] = e + 1


# --- what Python calls ----------------------------------------------------------------------------------


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "socialgraph-kernel")


def over_documents(work: Callable[..., None], given: tuple[Tensor, ...], *args: Any) -> None:
    """Do some work for all documents, in as many threads as PyTorch has; their bounds come first in ``given``."""
    threads = max(1, min(torch.get_num_threads(), given[0].numel() - 1))
    arrays = tuple(x.numpy() for x in given)
    args = tuple(x.numpy() if isinstance(x, Tensor) else x for x in args)
    if threads == 1:
        work(0, 1, arrays, *args)
        return
    for done in [_pool(threads).submit(work, t, threads, arrays, *args) for t in range(threads)]:
        done.result()


def smooth_products(ptr: Tensor, weights: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """See :func:`socialgraph.kernels.smooth_products`."""
    row, factor = weights.new_empty(weights.size(1)), torch.empty_like(weights)
    constant = weights.new_empty(ptr.numel() - 1)
    over_documents(some_smooth_products, (ptr, weights, share), row, factor, constant)
    return row, factor, constant


def totals(form: ClosedForm) -> tuple[Tensor, Tensor]:
    """See :func:`socialgraph.kernels.totals`."""
    total, bound = torch.empty_like(form.scale), torch.empty_like(form.scale)
    over_documents(some_totals, form, total, bound)
    return total, bound


def greedy_circles(form: ClosedForm, k: int, max_size: int, node_level: bool, by_weight: bool) -> tuple[Tensor, Tensor]:
    """See :func:`socialgraph.kernels.greedy_circles`."""
    documents = form.ptr.numel() - 1
    members = torch.full((documents, k, max_size), -1, dtype=torch.int32)
    leaders = torch.full((documents, k), -1, dtype=torch.int32)
    over_documents(some_circles, form, max_size, node_level, by_weight, members, leaders)
    return members, leaders


def all_edges(form: ClosedForm) -> tuple[Tensor, Tensor]:
    """See :func:`socialgraph.kernels.all_edges`."""
    degree = torch.zeros(form.row.numel(), dtype=torch.long)
    over_documents(some_degrees, form, degree)
    place = degree.cumsum(0) - degree
    total = int(degree.sum())
    edge_index, weight = torch.empty(2, total, dtype=torch.long), torch.empty(total)
    over_documents(some_edges, form, place, edge_index, weight)
    return edge_index, weight
