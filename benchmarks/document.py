"""What one long document costs, step by step: `python benchmarks/document.py [length]`.

All steps are timed in turn, ROUNDS times over, in one process; the table has the medians. The JSON with machine and
versions goes to benchmarks/results/document.json.
"""

import json
import platform
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

import torch
from tqdm import tqdm

from socialgraph.data import GraphBuilder, TermStatistics, Tokens, load_pydocs
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import PARADE, Socialformer
from socialgraph.partition import EdgeCircles, NodeCircles, Windows

ROUNDS = 15


def main(length: int = 2048) -> None:
    """Time every step on the first pydocs document that is long enough."""
    collection = load_pydocs()
    tokens = Tokens("minilm", max_document_length=length)
    counts = TermStatistics.count(map(tokens.document, collection.documents.values()), tokens.vocab_size)
    name = next(d.doc_id for d in collection.documents.values() if tokens.document(d).numel() == length)
    pair = [("q", "open a file and copy its contents", name)]
    bert = DynamicCentrality("minilm")
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance(), bert])
    node, edge = NodeCircles(k=16), EdgeCircles(k=16)
    batch = GraphBuilder(collection.documents, tokens, counts, edges, edge, Windows(128))(pair)
    passages = GraphBuilder(collection.documents, tokens, counts, None, None, Windows(128))(pair)
    circles = (batch.edge_index, batch.batch, 1, batch.edge_weight)
    socialformer, parade = Socialformer.from_backbone("minilm").eval(), PARADE.from_backbone("minilm").eval()
    steps = {
        "dynamic centrality (a BERT pass over 512 tokens)": lambda: bert.weights(batch),
        "edges: patterns, mu, coins": lambda: edges(batch),
        "16 edge-level circles": lambda: edge(*circles),
        "16 node-level circles": lambda: node(*circles),
        "Socialformer forward, 16 passages + 16 circles": lambda: socialformer(batch),
        "PARADE forward, 16 passages": lambda: parade(passages),
    }
    times: dict[str, list[float]] = {step: [] for step in steps}
    with torch.inference_mode():
        for round_number in tqdm(range(ROUNDS + 2), desc="timing"):
            for step, run in steps.items():
                began = time.perf_counter()
                run()
                if round_number >= 2:  # the first two warm up
                    times[step].append(1e3 * (time.perf_counter() - began))
    median = {step: statistics.median(values) for step, values in times.items()}
    whole = median["Socialformer forward, 16 passages + 16 circles"]
    print(f"\n{name}, {length} word pieces, {batch.edge_index.size(1) // 2} edges, float32, median of {ROUNDS}\n")
    print("| step | ms | of the Socialformer forward |\n|---|---:|---:|")
    for step, value in median.items():
        print(f"| {step} | {value:.1f} | {value / whole:.1%} |")
    packages = ("torch", "torch-geometric", "transformers")
    result = {
        "document": name,
        "length": length,
        "milliseconds": median,
        "rounds": ROUNDS,
        "threads": torch.get_num_threads(),
        "processor": torch.cpu.get_capabilities().get("cpu_name") or platform.processor(),
        "versions": {"python": platform.python_version()} | {package: version(package) for package in packages},
    }
    path = Path(__file__).parent / "results" / "document.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
