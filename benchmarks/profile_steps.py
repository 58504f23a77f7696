"""Where the time of one training step and of one re-ranking batch goes: `python benchmarks/profile_steps.py`.

torch.profiler over a Socialformer with all four patterns, from ids to the optimizer's step (one group, by default of
1 + 3 documents) and from ids to scores (as many). A GPU needs more: --documents 64 --bf16 --backbone bert-base-uncased.
Word pieces come from a cache on disk, nothing else is kept. On a GPU each stage waits for the one before it, and
operations are listed by their time there. Written as Markdown to benchmarks/results/profile.md, with options
profile-bf16.md and so on. --trace also writes a trace for chrome://tracing.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import torch
from measure import RESULTS, device, parser
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from socialgraph.data import Cache, GraphBuilder, TermStatistics, Tokens, load_pydocs
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import listwise_cross_entropy

STAGES = ("texts", "dynamic centrality", "edges and circles", "forward", "backward", "optimizer")


def main() -> None:
    """Profile both on the first long documents."""
    options = parser(__doc__)
    options.add_argument("--length", type=int, default=2048, help="word pieces of a document")
    options.add_argument("--documents", type=int, default=4, help="documents of a batch")
    options.add_argument("--backbone", default="minilm", help="a BERT: minilm, a hub id or a folder")
    options.add_argument("--bf16", action="store_true", help="models in bfloat16 autocast")
    options.add_argument("--bf16-centrality", action="store_true", help="dynamic centrality's BERT in bfloat16 as well")
    options.add_argument("--trace", type=Path, help="folder for traces")
    args = options.parse_args()
    where = device()
    collection = load_pydocs()
    folder = tempfile.TemporaryDirectory()
    tokens = Tokens(args.backbone, args.length, cache=Cache(folder.name))
    counts = TermStatistics.of(tokens, collection.documents)
    lengths = tokens.lengths(list(collection.documents), collection.documents)
    long = [name for name, length in zip(collection.documents, lengths, strict=True) if length == args.length]
    pairs = [
        (f"q{i}", "open a file and copy its contents", name) for i, name in zip(range(args.documents), cycle(long))
    ]
    bert = DynamicCentrality(args.backbone, bf16=args.bf16_centrality).to(where)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance(), bert])
    builder = GraphBuilder(
        collection.documents, tokens, counts, edges, EdgeCircles(k=max(1, args.length // 128)), Windows(128),
        device=where, cache=Cache(size=0),
    )  # fmt: skip
    weights = bert.weights
    bert.weights = staged("dynamic centrality", weights)  # type: ignore[method-assign]
    model = Socialformer.from_backbone(args.backbone).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    precision = torch.autocast(where.type, torch.bfloat16) if args.bf16 else contextlib.nullcontext()
    group = torch.zeros(len(pairs), dtype=torch.long, device=where)
    relevant = group == torch.arange(len(pairs), device=where)

    def graph() -> object:
        batch = staged("texts", builder.read)(pairs)
        return staged("edges and circles", builder.draw)(batch)

    def train() -> None:
        model.train()
        batch = graph()
        with stage("forward"), precision:
            loss = model(batch, lambda scores: listwise_cross_entropy(scores, group, relevant))
        with stage("backward"):
            loss.backward()
        with stage("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    @torch.inference_mode()
    def rank() -> None:
        model.eval()
        batch = graph()
        with stage("forward"), precision:
            model(batch)

    how = f"{'bfloat16 autocast' if args.bf16 else 'float32'}, {where}, {torch.get_num_threads()} threads"
    if args.bf16_centrality:
        how += "; dynamic centrality in bfloat16"
    text = [
        "# Profiles\n",
        f"`python benchmarks/profile_steps.py`: {len(pairs)} documents of {args.length} word pieces, {args.backbone}, "
        f"{how}.\n",
    ]
    for name, step in (("One training step", train), ("One re-ranking batch", rank)):
        step()
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if where.type == "cuda" else [])
        with profile(activities=activities) as found:
            step()
        if args.trace:
            args.trace.mkdir(parents=True, exist_ok=True)
            found.export_chrome_trace(str(args.trace / f"{name.split()[1]}.json"))
        text.append(report(name, found))
    folder.cleanup()
    RESULTS.mkdir(exist_ok=True)
    label = "profile" + args.bf16 * "-bf16" + args.bf16_centrality * "-bf16-centrality"
    (RESULTS / f"{label}.md").write_text("\n".join(text))
    print("\n".join(text))


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Give what happens a name that the profiler shows, until the GPU has done it."""
    with record_function(name):
        yield
        if torch.cuda.is_available():
            torch.cuda.synchronize()


def staged(name: str, function: Callable) -> Callable:
    """Return the function as a stage."""

    def call(*arguments: object) -> object:
        with stage(name):
            return function(*arguments)

    return call


def report(name: str, found: profile) -> str:
    """Return the stages and the operations that took longest."""
    events = found.key_averages()
    stages = {event.key: event.cpu_time_total for event in events if event.key in STAGES}
    stages["edges and circles"] -= stages["dynamic centrality"]
    total = sum(stages.values())
    lines = [f"## {name}: {total / 1e3:.0f} ms\n", "| stage | ms | share |\n|---|---:|---:|"]
    lines += [f"| {s} | {stages[s] / 1e3:.1f} | {stages[s] / total:.1%} |" for s in STAGES if s in stages]
    lines += ["\n| operation, itself | ms | share | calls |\n|---|---:|---:|---:|"]
    clock = "self_device_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    operations = [event for event in events if event.device_type == DeviceType.CPU and event.key not in STAGES]
    own = [(getattr(event, clock), event) for event in operations]
    for time, event in sorted(own, key=lambda pair: -pair[0])[:12]:
        lines.append(f"| {event.key} | {time / 1e3:.1f} | {time / total:.1%} | {event.count} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
