"""Kernels of edges and circles alone, on the CPU or a GPU: `python benchmarks/kernels.py --documents 128`.

Probabilities are given, but for the last two rows, which have the weights of nodes. Documents are made up: words in a
skewed distribution, tf-idf weights, a query of four words. What comes out on a GPU is held against the CPU first.
Medians of rounds in turn, milliseconds for the whole batch. JSON: benchmarks/results/kernels.json.
"""

from __future__ import annotations

import torch
from measure import device, interleaved, medians, parser, table, write
from torch_geometric.data import Batch

from socialgraph.data.graph import document_graph
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance, draw_key
from socialgraph.kernels import ClosedForm, all_edges, greedy_circles
from socialgraph.partition import EdgeCircles, NodeCircles


def pages(documents: int, length: int) -> Batch:
    """Return made-up documents."""
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for _ in range(documents):
        ids = (torch.rand(length, generator=draw) ** 4 * 20_000).long()
        query = ids[torch.randint(length, (4,), generator=draw)]
        tfidf = (1.0 + ids.double()).log()  # rare words have high numbers
        graphs.append(document_graph(ids, query, draw_key(0, query, ids), tfidf=tfidf))
    return Batch.from_data_list(graphs)


def main() -> None:
    """Check and time the kernels."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=8, help="documents of a batch")
    options.add_argument("--length", type=int, default=2048, help="word pieces of a document")
    options.add_argument("--rounds", type=int, default=15, help="rounds that count")
    args = options.parse_args()
    where, batch = device(), pages(args.documents, args.length)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()])
    form = edges.sampled(batch).closed_form
    assert form is not None
    there = ClosedForm(*(x.to(where) for x in form))
    batch["dynamic_distance"] = DynamicDistance().weights(batch)
    moved = batch.clone().to(where)
    for node_level in (False, True):
        found, want = (greedy_circles(one, 16, 128, node_level, True) for one in (there, form))
        assert all(torch.equal(x.cpu(), y) for x, y in zip(found, want, strict=True)), "other circles than on the CPU"
    steps = {
        "edge-level circles": lambda: greedy_circles(there, 16, 128, False, True),
        "node-level circles": lambda: greedy_circles(there, 16, 128, True, True),
        "all edges": lambda: all_edges(there),
        "probabilities + edge-level circles": lambda: EdgeCircles().from_sampled(edges.sampled(moved)),
        "probabilities + node-level circles": lambda: NodeCircles().from_sampled(edges.sampled(moved)),
    }
    with torch.inference_mode():
        figures = {step: 1e3 * value for step, value in medians(interleaved(steps, args.rounds, warmup=2)).items()}
    print(f"\n{args.documents} documents of {args.length} word pieces, {where}")
    table(["step", "ms"], [[step, f"{value:.2f}"] for step, value in figures.items()])
    write("kernels", {"documents": args.documents, "length": args.length, "milliseconds": figures})


if __name__ == "__main__":
    main()
