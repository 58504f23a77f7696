"""What a GPU is told and asked for the circles of a batch: `python benchmarks/launches.py`.

A small operation takes a GPU less time than the processor needs to launch it, and every answer that the processor
waits for empties the queue. Both can be counted on a CPU: the operations that PyTorch is asked for, and those whose
answer is a number or a size. The kernels of probabilities and circles are the five launches that a GPU sees.
Weights of centralities are there. Ends with an error where more are counted than benchmarks/results/launches.json has,
and writes that file with --accept.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from measure import RESULTS, parser, table, write
from torch.utils._python_dispatch import TorchDispatchMode

from socialgraph.data import GraphBuilder, TermStatistics, Tokens, load_pydocs
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.partition import EdgeCircles, NodeCircles, Windows

#: operations that only say how memory is read, or take some
NOTHING = {
    "alias", "as_strided", "detach", "empty", "empty_like", "empty_strided", "expand", "lift_fresh", "new_empty",
    "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind",
    "unfold", "unsqueeze", "view", "_unsafe_view",
}  # fmt: skip
#: operations whose answer the processor waits for
ASKING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "repeat_interleave", "equal"}


class Counting(TorchDispatchMode):
    """Counts operations while they are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, operation: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Compute an operation and count it."""
        name = operation._schema.name.split("::")[1]
        self.found["launches"] += name not in NOTHING
        self.found["waits"] += name in ASKING
        return operation(*args, **(kwargs or {}))


def count(run: Any) -> dict[str, int]:
    """Return what is counted while circles are found; the kernels are five launches."""
    run()  # compiled and kept from now on
    with Counting() as counting:
        run()
    counting.found["launches"] += 5
    return dict(counting.found)


def main() -> None:
    """Count for batches of several sizes."""
    options = parser(__doc__)
    options.add_argument("--length", type=int, default=2048, help="word pieces of a document")
    options.add_argument("--documents", type=int, nargs="+", default=[1, 32], help="documents of a batch")
    options.add_argument("--accept", action="store_true", help="write what is counted")
    args = options.parse_args()
    collection = load_pydocs()
    tokens = Tokens("minilm", max_document_length=args.length)
    counts = TermStatistics.of(tokens, collection.documents)
    names = [d.doc_id for d in collection.documents.values() if tokens.document(d).numel() == args.length]
    patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality(mode="cosine")]
    edges = SocialEdges(patterns)
    figures: dict[str, dict[str, int]] = {}
    for partition in (EdgeCircles(), NodeCircles()):
        for documents in args.documents:
            builder = GraphBuilder(collection.documents, tokens, counts, edges, partition, Windows(128))
            pairs = [("q", f"open file {i} and copy its contents", names[i % len(names)]) for i in range(documents)]
            batch = builder.weighed(builder.read(pairs))
            found = count(lambda batch=batch, partition=partition: partition.from_sampled(edges.sampled(batch)))
            figures[f"{type(partition).__name__}, {documents} documents"] = found
    table(["circles", "launches", "waits"], [[name, *map(str, found.values())] for name, found in figures.items()])
    before = RESULTS / "launches.json"
    if args.accept:
        write("launches", {"length": args.length, "figures": figures})
    elif before.exists():
        known = json.loads(before.read_text())["figures"]
        grown = [name for name, found in figures.items() if any(n > known[name][what] for what, n in found.items())]
        if grown:
            sys.exit(f"more than benchmarks/results/launches.json has: {', '.join(grown)}; --accept takes them")


if __name__ == "__main__":
    main()
