"""What long documents cost, step by step: `python benchmarks/document.py`.

All steps on the same pydocs documents, in turn in one process; medians of rounds, milliseconds for each document, and
the share of the Socialformer's forward pass. A GPU needs more documents: --documents 64 --bf16 --backbone
bert-base-uncased. JSON: benchmarks/results/document.json, with --bf16 document-bf16.json.
"""

from __future__ import annotations

import contextlib
from itertools import cycle

import torch
from measure import device, interleaved, medians, parser, ratio, table, write

from socialgraph.data import GraphBuilder, TermStatistics, Tokens, load_pydocs
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import PARADE, Socialformer
from socialgraph.partition import EdgeCircles, NodeCircles, Windows

FORWARD = "Socialformer forward, passages and edge-level circles"


def main() -> None:
    """Time every step on the first pydocs documents that are long enough."""
    options = parser(__doc__)
    options.add_argument("--length", type=int, default=2048, help="word pieces of a document")
    options.add_argument("--documents", type=int, default=4, help="documents of a batch")
    options.add_argument("--circles", type=int, default=16, help="friend circles of a document")
    options.add_argument("--backbone", default="minilm", help="a BERT: minilm, a hub id or a folder")
    options.add_argument("--rounds", type=int, default=11, help="rounds that count")
    options.add_argument("--bf16", action="store_true", help="models in bfloat16 autocast; graphs never are")
    args = options.parse_args()
    where = device()
    collection = load_pydocs()
    tokens = Tokens(args.backbone, max_document_length=args.length)
    counts = TermStatistics.of(tokens, collection.documents)
    whole = [d.doc_id for d in collection.documents.values() if tokens.document(d).numel() == args.length]
    text = "open a file and copy its contents"
    pairs = [(f"q{i}", text, name) for i, name in zip(range(args.documents), cycle(whole))]
    bert, half = (DynamicCentrality(args.backbone, bf16=bf16).to(where) for bf16 in (False, True))
    patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), bert]
    edges = SocialEdges(patterns)
    node, edge = NodeCircles(args.circles), EdgeCircles(args.circles)
    batch, passages = (
        GraphBuilder(
            collection.documents, tokens, counts, *parts, Windows(128), keep_edges=parts[0] is not None, device=where
        )(pairs)
        for parts in ((edges, edge), (None, None))
    )
    circles = (batch.edge_index, batch.batch, batch.num_graphs, batch.edge_weight)
    socialformer, parade = (kind.from_backbone(args.backbone).eval().to(where) for kind in (Socialformer, PARADE))
    precision = torch.autocast(where.type, torch.bfloat16) if args.bf16 else contextlib.nullcontext()

    def score(model: torch.nn.Module, graph: object) -> None:
        with precision:
            model(graph)

    def undrawn(level: NodeCircles | EdgeCircles) -> None:
        level.from_sampled(edges.sampled(batch))

    steps = {
        "dynamic centrality (a BERT pass over 512 tokens)": lambda: bert.weights(batch),
        "the same in bfloat16": lambda: half.weights(batch),
        "probabilities": lambda: edges.sampled(batch),
        "all edges": lambda: edges(batch),
        "edge-level circles of all edges": lambda: edge(*circles),
        "node-level circles of all edges": lambda: node(*circles),
        "probabilities + edge-level circles": lambda: undrawn(edge),
        "probabilities + node-level circles": lambda: undrawn(node),
        FORWARD: lambda: score(socialformer, batch),
        "PARADE forward, passages": lambda: score(parade, passages),
    }
    with torch.inference_mode():
        seconds = interleaved(steps, args.rounds, warmup=2)
    middle = {step: 1e3 * value / len(pairs) for step, value in medians(seconds).items()}
    share = {step: ratio(seconds, step, FORWARD) for step in steps}
    print(f"\n{len(pairs)} documents of {args.length} word pieces, {args.circles} circles each, {where}")
    table(
        ["step", "ms per document", "of the Socialformer forward"],
        [[step, f"{middle[step]:.1f}", f"{share[step]:.1%}"] for step in steps],
    )
    about = {"length": args.length, "documents": len(pairs), "circles": args.circles, "backbone": args.backbone}
    figures = {"milliseconds per document": middle, "of the forward": share, "rounds": args.rounds}
    write("document-bf16" if args.bf16 else "document", {**about, "bf16": args.bf16, **figures})


if __name__ == "__main__":
    main()
