"""What the check of each batch costs, as a share of its edges and circles: `python benchmarks/check.py`.

`GraphBuilder(check=True)` against `check=False` on the same pydocs documents, in turn in one process: a partition and a
pattern as users write them (only those are checked), `EdgeCircles` and `StaticDistance` under other names, beside the
other three patterns; weights of dynamic centrality are given, and not all edges are drawn. The share is the
median of the ratios within each round, less 1; the middle half of the rounds stands beside it. JSON:
benchmarks/results/check.json.
"""

from __future__ import annotations

import statistics
import time
from functools import partial

import torch
from measure import device, interleaved, medians, parser, table, write
from torch_geometric.data import Batch

from socialgraph.data import GraphBuilder, TermStatistics, Tokens, load_pydocs
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.partition import EdgeCircles, Windows

#: word pieces of a document at most, and documents of a batch
BATCHES = ((128, 1), (512, 1), (512, 8), (512, 16), (512, 32), (2048, 1), (2048, 8))


class OwnDistance(StaticDistance):
    """A pattern of the user's own."""


class OwnCircles(EdgeCircles):
    """A partition of the user's own."""


def draw(builder: GraphBuilder, batch: Batch) -> Batch:
    """Give a batch its edges and circles."""
    return builder.draw(batch.clone())


def main() -> None:
    """Time batches of several sizes with the check and without."""
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=41, help="rounds that count")
    args = options.parse_args()
    where, collection, rows = device(), load_pydocs(), []
    clock = time.process_time if where.type == "cpu" else time.perf_counter  # of a CPU's time others get none
    for length, amount in BATCHES:
        tokens = Tokens("minilm", max_document_length=length)
        statistic = TermStatistics.of(tokens, collection.documents)
        names = [d for d in collection.documents if tokens.document(collection.documents[d]).numel() == length]
        pairs = [(f"q{i}", "open a file and copy its contents", name) for i, name in enumerate(names[:amount])]
        patterns = [OwnDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality("minilm")]
        steps = {}
        for name, check in (("checked", True), ("unchecked", False)):
            edges = SocialEdges(patterns)
            parts = (collection.documents, tokens, statistic, edges, OwnCircles(16), Windows(128))
            builder = GraphBuilder(*parts, check=check, device=where)
            builder(pairs)  # keeps the weights of dynamic centrality
            steps[name] = partial(draw, builder, builder.read(pairs))
        with torch.inference_mode():
            seconds = interleaved(steps, args.rounds, warmup=3, clock=clock)
        share = [a / b - 1 for a, b in zip(seconds["checked"], seconds["unchecked"], strict=True)]
        low, middle, high = statistics.quantiles(share, n=4)
        rows.append({
            "tokens": length, "documents": amount, "share": middle, "middle half": [low, high],
            "milliseconds": {name: 1e3 * value for name, value in medians(seconds).items()},
        })  # fmt: skip
    table(
        ["tokens", "documents", "unchecked, ms", "the check, %", "middle half, %"],
        [
            [str(r["tokens"]), str(r["documents"]), f"{r['milliseconds']['unchecked']:.1f}", f"{100 * r['share']:.1f}",
             " to ".join(f"{100 * x:.1f}" for x in r["middle half"])]
            for r in rows
        ],
    )  # fmt: skip
    write("check", {"rows": rows, "rounds": args.rounds})


if __name__ == "__main__":
    main()
