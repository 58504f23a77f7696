"""Documents a second from text to score, beside the model alone: `python benchmarks/text_to_score.py`.

`rerank` scores made-up pages of 2,048 word pieces with a BERT of random weights (bert-base's sizes), so it needs no
files. With nothing kept each page is tokenised and read by dynamic centrality; with tokens kept it is read by dynamic
centrality; then with its weights kept, too. *Model alone*: graphs lie on the device, batch by batch. *Graphs alone*: as
they are built with tokens kept. Medians of rounds in turn. Also: where the processor waits for the card, and for which
part of the time the card computes. In $OUT: text_to_score.txt and .json. On a CPU it is a rehearsal: take --small.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from made_up import backbone, texts
from measure import medians, parser
from torch.profiler import ProfilerActivity, profile

from socialgraph.data import Cache, Document, GraphBuilder, TermStatistics, Tokens
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking.rerank import rerank

BEGAN = time.perf_counter()
CARD = torch.cuda.is_available()
WHERE = torch.device("cuda" if CARD else "cpu")
OUT = Path(os.environ.get("OUT", "."))
LINES: list[str] = []
ALONE = "model alone"


def say(text: str) -> None:
    """Print at once, and keep for $OUT."""
    print(text, flush=True)
    LINES.append(text)
    (OUT / "text_to_score.txt").write_text("\n".join(LINES) + "\n")


def wait() -> None:
    """Wait for the card."""
    if CARD:
        torch.cuda.synchronize()


def main() -> None:
    """Time all parts, for batches of some sizes."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=256, help="pages")
    options.add_argument("--length", type=int, default=2048, help="word pieces of a page")
    options.add_argument("--batch", type=int, nargs="+", default=[8, 64, 128], help="pages of a batch")
    options.add_argument("--circles", type=int, default=16, help="friend circles of a page")
    options.add_argument("--rounds", type=int, default=2, help="rounds that count")
    options.add_argument("--seconds", type=float, default=80, help="when to begin nothing new")
    options.add_argument("--small", action="store_true", help="a rehearsal: 2 small layers, 4 short pages")
    args = options.parse_args()
    layers, width, heads = (2, 64, 2) if args.small else (12, 768, 12)
    if args.small:
        args.documents, args.length, args.batch, args.circles, args.rounds = 4, 256, [2], 2, 1
    OUT.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore")
    pages = {f"d{i}": Document(f"d{i}", text) for i, text in enumerate(texts(args.documents, args.length))}
    queries = {f"q{i}": text for i, text in enumerate(texts(8, 6, seed=1))}
    candidates: dict[str, dict[str, float]] = {query: {} for query in queries}
    for number, page in enumerate(pages):
        candidates[f"q{number % len(queries)}"][page] = 1.0
    pairs = [(query, queries[query], page) for query, some in candidates.items() for page in some]
    with tempfile.TemporaryDirectory() as folder:
        name = backbone(Path(folder), layers, width, heads)
        fresh, kept = (Tokens(name, args.length, cache=Cache(size=size)) for size in (0, 1 << 30))
        centrality = DynamicCentrality(name, bf16=True)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance(), centrality])
    with WHERE:
        model = Socialformer(hidden_size=width, num_layers=layers, num_heads=heads, intermediate_size=4 * width).eval()
    statistics = TermStatistics(torch.ones(kept.vocab_size, dtype=torch.long), 100)

    def builder(tokens: Tokens, cache: int) -> GraphBuilder:
        parts = (edges, EdgeCircles(args.circles), Windows(128))
        return GraphBuilder(pages, tokens, statistics, *parts, device=WHERE, cache=Cache(size=cache))

    nothing, tokens_kept, both = builder(fresh, 0), builder(kept, 0), builder(kept, 1 << 30)
    card = torch.cuda.get_device_name() if CARD else "CPU: a rehearsal"
    say(f"{card}, torch {torch.__version__}, {len(pairs)} pages, {time.perf_counter() - BEGAN:.0f} s")
    figures: dict[str, Any] = dict(vars(args), device=card)
    for size in sorted(args.batch, reverse=True):
        if time.perf_counter() - BEGAN > args.seconds:
            say(f"-- {size} pages a batch: left out, {time.perf_counter() - BEGAN:.0f} s are over")
            continue
        figures[str(size)] = measure(model, nothing, tokens_kept, both, queries, candidates, pairs, size, args)
        (OUT / "text_to_score.json").write_text(json.dumps(figures, indent=1) + "\n")


def measure(
    model: Socialformer, nothing: GraphBuilder, tokens_kept: GraphBuilder, both: GraphBuilder,
    queries: dict[str, str], candidates: dict[str, dict[str, float]], pairs: list[tuple[str, str, str]], size: int,
    args: Any,
) -> dict[str, Any]:  # fmt: skip
    """Time all parts with batches of ``size`` pages."""
    budget = size * args.length

    def ranked(builder: GraphBuilder) -> Callable[[], Any]:
        return lambda: rerank(model, builder, queries, candidates, token_budget=budget, bf16=True, progress=False)

    parts = [pairs[i : i + size] for i in range(0, len(pairs), size)]
    graphs = [tokens_kept(part) for part in parts]

    def alone() -> None:
        with torch.inference_mode(), torch.autocast(WHERE.type, torch.bfloat16):
            for graph in graphs:
                model(graph)

    def drawn() -> None:
        for part in parts:
            tokens_kept(part)

    def read() -> None:
        for part in parts:
            tokens_kept.read(part)

    def tokenised() -> None:
        for part in parts:
            nothing.read(part)

    steps: dict[str, Callable[[], Any]] = {
        ALONE: alone,
        "rerank, nothing kept": ranked(nothing),
        "rerank, tokens kept": ranked(tokens_kept),
        "rerank, tokens and centrality kept": ranked(both),
        "graphs alone, tokens kept": drawn,
        "reading alone, tokens kept": read,
        "reading alone, nothing kept": tokenised,
    }
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(args.rounds + 1):
        for name, run in steps.items():
            if number and time.perf_counter() - BEGAN > args.seconds + 10:
                continue
            wait()
            began = time.perf_counter()
            run()
            wait()
            if number:
                seconds[name].append(time.perf_counter() - began)
    middle = medians({name: values for name, values in seconds.items() if values})
    say(f"\n{size} pages a batch, {time.perf_counter() - BEGAN:.0f} s")
    for name, value in middle.items():
        share = f"{middle[ALONE] / value:7.1%} of the model alone"
        speed = f"{1e3 * value / len(pairs):8.3f} ms a page | {len(pairs) / value:8.0f} pages / s"
        say(f"| {name:40} | {speed} | {share} |")
    figures: dict[str, Any] = {"seconds": middle}
    if CARD:
        figures["waits"] = {name: waited(name, run) for name, run in list(steps.items())[:3]}
        figures["busy"] = busy(steps["rerank, tokens kept"])
    return figures


def waited(name: str, run: Callable[[], Any]) -> dict[str, int]:
    """Return the lines at which the processor waits for the card, and print the first."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    found = Counter(
        f"{Path(one.filename).name}:{one.lineno}" for one in caught if "synchron" in str(one.message).lower()
    )
    say(f"   {name}: {sum(found.values())} waits: " + ", ".join(f"{line} x{n}" for line, n in found.most_common(40)))
    return dict(found)


def busy(run: Callable[[], Any]) -> float:
    """Return for which part of the time kernels run, and print it."""
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        run()
        wait()
    events = [event for event in prof.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    spans = sorted((event.time_range.start, event.time_range.end) for event in events)
    whole, computed, last = spans[-1][1] - spans[0][0], 0.0, 0.0
    for start, end in spans:
        computed += max(0.0, end - max(start, last))
        last = max(last, end)
    say(f"   tokens kept: {len(spans)} kernels, the card computes for {computed / whole:.1%} of the time")
    return computed / whole


if __name__ == "__main__":
    main()
