"""What edges and circles cost for one document, against the paper's text: `python benchmarks/graph.py`.

Four ways to the sixteen circles of a document with the four patterns (sparsity 0.93):

* literal: sections 3.1 and 3.2 pair by pair in plain Python, as `tests/reference.py` states them;
* NumPy: the same with whole l x l matrices, as a careful NumPy user would write it;
* edge list: our sampler draws all edges, the partition reads them;
* ours: circles by the kernels, which store no graph; what GraphBuilder does.

The first two make independent random draws, so their circles differ from ours; the last two agree bit for bit, which
is checked, and run on the GPU if there is one. BERT's weights for dynamic centrality are given to all. All ways take
turns in one process; the table has medians. Peak memory is that of a process of its own, above what it had after
loading. The JSON goes to benchmarks/results/graph.json.
"""

import math
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch
from measure import device, parser, write
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.data import TermStatistics, Tokens, load_pydocs
from socialgraph.data.graph import document_graph, weigh
from socialgraph.edges import (
    Centrality,
    DynamicCentrality,
    DynamicDistance,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
    draw_key,
)
from socialgraph.partition import EdgeCircles, FriendCircles, NodeCircles

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import reference

SPARSITY, CIRCLES, SIZE = 0.93, 16, 128
LEVELS: dict[str, type[FriendCircles]] = {"edge": EdgeCircles, "node": NodeCircles}
#: the longest document for each way, and how often it is timed
WAYS = {
    "literal": (2048, 3), "NumPy": (4096, 5), "edge list": (8192, 7), "ours": (65536, 15),
}  # fmt: skip
#: ours: they agree bit for bit
EXACT = ("edge list", "ours")


class Given(Centrality):
    """Dynamic centrality whose weights are already there."""

    name = "dynamic_centrality"


PATTERNS = [StaticDistance(), StaticCentrality(), DynamicDistance(), Given()]
SAMPLER = SocialEdges(PATTERNS, sparsity=SPARSITY)


@cache
def corpus() -> tuple[Tensor, TermStatistics, Tensor, DynamicCentrality]:
    """All of pydocs as one row of word pieces, its statistics, a query, and the pattern with the BERT."""
    tokens = Tokens("minilm", max_document_length=1 << 20)
    ids = [tokens.document(document) for document in load_pydocs().documents.values()]
    query = tokens.query("open a file and copy its contents")
    longest = sorted(ids, key=len, reverse=True)
    return torch.cat(longest), TermStatistics.count(ids, tokens.vocab_size), query, DynamicCentrality("minilm")


def document(length: int) -> Batch:
    """A batch of one document: the longest page, cut, or followed by others."""
    words, counts, query, bert = corpus()
    ids = words[:length].long()
    batch = Batch.from_data_list([document_graph(ids, query, draw_key(0, query, ids), tfidf=counts.tfidf(ids))])
    weigh(batch, bert.name, bert.weights(batch))
    return batch


def literal(batch: Batch, level: str) -> list[reference.Circle]:
    """Pair by pair."""
    patterns = [
        reference.static_distance(batch.num_nodes),
        reference.static_centrality(batch.tfidf.tolist()),
        reference.dynamic_distance(batch.input_ids.tolist(), batch.query_ids.tolist()),
        reference.f(batch.dynamic_centrality.tolist()),
    ]
    p = reference.mean(patterns)
    length = len(p)
    mu = p.sum() / (length * length * (1 - SPARSITY))  # equation 8
    adjacency = np.zeros((length, length), dtype=bool)
    for i in range(length):
        for j in range(i + 1, length):
            if random.random() < p[i, j] / mu:
                adjacency[i, j] = adjacency[j, i] = True
    circles = reference.edge_circles if level == "edge" else reference.node_circles
    return circles(adjacency, CIRCLES, SIZE, "strongest", p)


def numpy(batch: Batch, level: str) -> list[tuple[int, np.ndarray]]:
    """Whole matrices."""
    place = np.arange(batch.num_nodes)
    near = 1 + np.abs(place[:, None] - place) / 50
    others = ~np.eye(len(place), dtype=bool)
    match = np.isin(batch.input_ids.numpy(), batch.query_ids.numpy())
    asked = (1 / near[:, match]).mean(1) if match.any() else np.zeros(len(place))
    p = 1 / near**2
    for weight in (batch.tfidf.numpy(), asked, batch.dynamic_centrality.numpy()):
        s = np.sqrt(weight[:, None] * weight)
        low, high = s.min(where=others, initial=np.inf), s.max(where=others, initial=0)
        if high > low:
            p += (s - low) / (high - low)
    p /= 4
    mu = p.sum() / (len(place) ** 2 * (1 - SPARSITY))
    adjacency = np.triu(np.random.default_rng(0).random(p.shape) < p / mu, 1)
    adjacency |= adjacency.T
    circles = []
    for _ in range(CIRCLES):
        degree = adjacency.sum(1)
        leader = int(degree.argmax())
        if degree[leader] == 0:
            break
        friends = np.flatnonzero(adjacency[leader])
        friends = friends[np.argsort(-p[leader, friends], kind="stable")[: SIZE - 1]]
        members = np.append(friends, leader)
        if level == "edge":
            adjacency[np.ix_(members, members)] = False
        else:
            adjacency[members] = adjacency[:, members] = False
        circles.append((leader, members))
    return circles


def edge_list(batch: Batch, level: str) -> tuple[Tensor, Tensor]:
    """All edges, then the circles."""
    edge_index, edge_weight = SAMPLER(batch)
    return LEVELS[level](CIRCLES, SIZE)(edge_index, batch.batch, 1, edge_weight)


def ours(batch: Batch, level: str) -> tuple[Tensor, Tensor]:
    """The circles from a graph that is drawn where they look."""
    return LEVELS[level](CIRCLES, SIZE).from_sampled(SAMPLER.sampled(batch))


RUN: dict[str, Callable] = {
    "literal": literal, "NumPy": numpy, "edge list": edge_list, "ours": ours,
}  # fmt: skip


def memory(way: str, small: Batch, batch: Batch, level: str) -> float:
    """Peak memory of one run, in MB, above what was there before."""
    torch.set_num_threads(1)
    with torch.inference_mode():
        RUN[way](small, level)
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten (Linux)
        before = resident("VmRSS")
        RUN[way](batch, level)
    return resident("VmHWM") - before


def resident(name: str) -> float:
    """Memory of this process in MB: now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def main() -> None:
    """Time all ways at all lengths."""
    options = parser(__doc__)
    options.add_argument("--longest", type=int, default=65536, help="tokens of the longest document")
    options.add_argument("--shortest", type=int, default=512, help="... and of the shortest; it doubles from there")
    args = options.parse_args()
    rows, where = [], device()
    print(
        "| tokens | circles | " + " | ".join(f"{way}, ms" for way in WAYS) + " | literal / ours | literal / compiled |"
    )
    print("|---:|---|" + "---:|" * (len(WAYS) + 2))
    for length in (args.shortest << n for n in range(int(math.log2(args.longest / args.shortest)) + 1)):
        batch = document(length)
        there = batch.clone().to(where)
        for level in LEVELS:
            ways = [way for way, (most, _) in WAYS.items() if length <= most]
            times: dict[str, list[float]] = {way: [] for way in ways}
            with torch.inference_mode():
                circles = [RUN[way](there, level) for way in ways if way in EXACT]
                assert all(all(map(torch.equal, circles[0], other)) for other in circles[1:])
                for turn in range(-2, max(turns for _, turns in WAYS.values())):  # two more to warm up
                    for way in ways:
                        if turn < WAYS[way][1] and (turn >= 0 or way in EXACT):
                            began = time.perf_counter()
                            RUN[way](there if way in EXACT else batch, level)
                            if where.type == "cuda":
                                torch.cuda.synchronize()
                            if turn >= 0:
                                times[way].append(1e3 * (time.perf_counter() - began))
            with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                peak = {way: pool.apply(memory, (way, document(64), batch, level)) for way in ways if way != "compiled"}
            median = {way: statistics.median(times[way]) for way in ways}
            over = {
                fast: {way: median[way] / median[fast] for way in ways} for fast in ("ours", "compiled") if fast in ways
            }
            rows.append({
                "tokens": length, "level": level, "milliseconds": median, "over": over, "peak megabytes, CPU": peak,
            })  # fmt: skip
            cells = [
                f"{median[way]:.1f}" + (f" ({peak[way]:.0f} MB)" if way in peak else "") if way in median else ""
                for way in WAYS
            ]
            ratios = [
                f"{over[fast]['literal']:.0f}" if "literal" in over.get(fast, {}) else ""
                for fast in ("ours", "compiled")
            ]
            print(f"| {length} | {level} | " + " | ".join(cells + ratios) + " |", flush=True)
    growth = {}
    for level in LEVELS:
        line = {row["tokens"]: row["milliseconds"]["ours"] for row in rows if row["level"] == level}
        for first, last in ((2048, 32768), (8192, 65536)):
            if first in line and last in line:
                growth[f"{level}, {first} to {last}"] = math.log(line[last] / line[first]) / math.log(last / first)
    for name, exponent in growth.items():
        print(f"growth of ours, {name}: {exponent:.2f}")
    turns = {way: turns for way, (_, turns) in WAYS.items()}
    write("graph", {"rows": rows, "growth exponents": growth, "turns": turns})


if __name__ == "__main__":
    main()
