"""How cost grows with length, documents and circles: `python benchmarks/scaling.py`.

Edges, circles and the whole Socialformer forward over pydocs text, one knob at a time; the exponent is the slope of
a straight line through log(seconds) over log(knob). Medians of ROUNDS rounds in turn, on the GPU if there is one. JSON:
benchmarks/results/scaling.json.
"""

from __future__ import annotations

import numpy as np
import torch
from measure import device, interleaved, medians, parser, table, write
from torch_geometric.data import Batch

from socialgraph.data import GraphBuilder, TermStatistics, Tokens, load_pydocs
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Windows

ROUNDS = 5
KNOBS = {"length": [256, 512, 1024, 2048], "documents": [1, 2, 4, 8], "circles": [2, 4, 8, 16]}
BASE = {"length": 1024, "documents": 2, "circles": 8}


def main() -> None:
    """Turn each knob with the others at their base, and fit the exponents."""
    parser(__doc__).parse_args()
    where = device()
    collection = load_pydocs()
    longest = Tokens("minilm", max_document_length=max(KNOBS["length"]))
    names = [
        d.doc_id for d in collection.documents.values() if longest.document(d).numel() == longest.max_document_length
    ]
    counts = TermStatistics.count(map(longest.document, collection.documents.values()), longest.vocab_size)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()])
    model = Socialformer.from_backbone("minilm").eval().to(where)
    result, rows = {}, []
    for knob, values in KNOBS.items():
        steps = {}
        for value in values:
            setting = BASE | {knob: value}
            tokens = Tokens("minilm", max_document_length=setting["length"])
            builder = GraphBuilder(
                collection.documents, tokens, counts, edges, EdgeCircles(k=setting["circles"]), Windows(128),
                device=where,
            )  # fmt: skip
            pairs = [("q", "open a file", name) for name in names[: setting["documents"]]]
            graph = builder(pairs)
            steps[f"graph {value}"] = lambda builder=builder, pairs=pairs: builder(pairs)
            steps[f"forward {value}"] = lambda graph=graph: score(model, graph)
        middle = medians(interleaved(steps, ROUNDS))
        for kind in ("graph", "forward"):
            seconds = [middle[f"{kind} {value}"] for value in values]
            exponent = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
            result[f"{kind} by {knob}"] = {"values": values, "seconds": seconds, "exponent": exponent}
            rows.append([f"{kind} by {knob} {values}", *(f"{1e3 * s:.0f}" for s in seconds), f"{exponent:.2f}"])
    table(["ms", "1st", "2nd", "3rd", "4th", "exponent"], rows)
    write("scaling", {"base": BASE, "rounds": ROUNDS, "figures": result})


@torch.inference_mode()
def score(model: Socialformer, graph: Batch) -> None:
    """Score a batch."""
    model(graph)


if __name__ == "__main__":
    main()
