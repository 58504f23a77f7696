"""What a GPU is told and asked while graphs are built on it: `python benchmarks/launches.py`.

Short operations take a GPU less time than the processor needs to launch them, about 15 microseconds each, and every
answer that the processor waits for (how many, which) empties the queue. Both can be counted without a GPU: the graphs
are built on the second device of the tests, whose operations the CPU computes and which takes a GPU's road through the
code, but for the fused kernel, instead of which its parts are counted. Dynamic centrality's weights are kept from
before. JSON: benchmarks/results/launches.json.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import parser, table, write
from torch.utils._pytree import tree_leaves

from socialgraph.data import GraphBuilder, TermStatistics, Tokens, load_pydocs
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.partition import EdgeCircles, NodeCircles, Windows

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import another_device
from another_device import DEVICE, There

#: operations that only say how memory is read, or take some
NOTHING = {
    "alias", "as_strided", "detach", "empty", "empty_like", "empty_strided", "expand", "lift_fresh", "new_empty",
    "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind",
    "unfold", "unsqueeze", "view", "_unsafe_view",
}  # fmt: skip
#: operations whose result has a size that the device must tell
ASKING = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "repeat_interleave"}
COUNTED: Counter[str] = Counter()
compute = another_device.compute


def counted(operation: Callable, args: tuple, kwargs: dict) -> Any:
    """Compute an operation, and count it if the device has to do with it."""
    result = compute(operation, args, kwargs)
    there = any(isinstance(x, There) for x in tree_leaves((args, kwargs)))
    arrives = any(isinstance(x, There) for x in tree_leaves(result))
    name = operation._schema.name.split("::")[1]
    if (there or arrives) and name not in NOTHING:
        COUNTED["launches"] += 1
        mask = name.startswith("index") and any(
            x.dtype in (torch.bool, torch.uint8) for x in tree_leaves(args[1:2]) if isinstance(x, torch.Tensor)
        )
        COUNTED["waits"] += name in ASKING or mask or (there and not arrives)
    return result


def count(run: Callable[[], Any]) -> dict[str, int]:
    """Return what is counted while something runs."""
    COUNTED.clear()
    run()
    return dict(COUNTED)


def main() -> None:
    """Count for batches of several sizes."""
    options = parser(__doc__)
    options.add_argument("--length", type=int, default=2048, help="word pieces of a document")
    options.add_argument("--documents", type=int, nargs="+", default=[1, 8, 32, 128], help="documents of a batch")
    options.add_argument("--circles", type=int, default=16, help="friend circles of a document")
    args = options.parse_args()
    another_device.compute = counted
    collection = load_pydocs()
    tokens = Tokens("minilm", max_document_length=args.length)
    counts = TermStatistics.of(tokens, collection.documents)
    names = [d.doc_id for d in collection.documents.values() if tokens.document(d).numel() == args.length]
    patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality(mode="cosine")]
    edges = SocialEdges(patterns)
    figures, rows = [], []
    for partition in (EdgeCircles(args.circles), NodeCircles(args.circles)):
        for documents in args.documents:
            builder = GraphBuilder(collection.documents, tokens, counts, edges, partition, Windows(128), device=DEVICE)
            pairs = [("q", f"open file {i} and copy its contents", names[i % len(names)]) for i in range(documents)]
            read = builder.read(pairs)
            batch = builder.draw(read)  # weights are kept from now on
            whole = count(lambda builder=builder, read=read: builder.draw(read))
            part = count(lambda batch=batch, of=partition: of.from_sampled(edges.sampled(batch)))
            figures.append({"documents": documents, "circles": repr(partition), "all": whole, "edges, circles": part})
            numbers = [str(found[what]) for found in (whole, part) for what in ("launches", "waits")]
            rows.append([str(documents), type(partition).__name__, *numbers])
    print(f"\nBatches of documents of {args.length} word pieces")
    table(["documents", "circles", "launches", "waits", "of it edges and circles", "waits"], rows)
    write("launches", {"length": args.length, "friend circles": args.circles, "figures": figures})


if __name__ == "__main__":
    main()
