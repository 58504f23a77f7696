"""A GPU by itself, on made-up pages: what `python benchmarks/exchange.py --made-up` measures."""

from __future__ import annotations

import contextlib
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from made_up import backbone, circles
from measure import device, interleaved, medians, write
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from socialgraph.edges import DynamicCentrality
from socialgraph.nn import Socialformer, circle_sequences

WHERE = device()
CARD = WHERE.type == "cuda"
BEGAN = time.perf_counter()
FIGURES: dict[str, Any] = {}
LENGTH, CIRCLES = 2048, 16


def main(small: bool, peak: float) -> None:
    """Measure all parts, most telling first; one that fails is told and does not end the others."""
    layers, width, heads, pages, training = (2, 64, 4, 2, (1,)) if small else (12, 768, 12, 128, (16, 32))
    torch.manual_seed(0)
    warnings.filterwarnings("ignore")
    with WHERE:
        model = Socialformer(
            hidden_size=width, num_layers=layers, num_heads=heads, intermediate_size=4 * width, dropout=0.0
        ).eval()
    with torch.no_grad():  # attention of random weights is nearly even, which would hide faults
        for layer in model.layers:
            layer.query.weight.mul_(3)
            layer.key.weight.mul_(3)
    say(f"{torch.cuda.get_device_name() if CARD else 'CPU: a rehearsal'}, torch {torch.__version__}")
    parts: list[tuple[str, Callable[[], None]]] = [
        ("forward pass", lambda: forward(model, pages, peak)),
        *((f"training step, {n} pages", partial(training_step, model, n, peak)) for n in training),
        ("dynamic centrality", lambda: centrality(layers, width, heads, pages)),
        *(
            (f"attention in segments of {n}", partial(attention, heads, width // heads, 2**19, n))
            for n in (137, 256, 512)
        ),
        ("forward pass of 8 pages", lambda: forward(model, 1 if small else 8, peak)),
    ]
    for name, run in parts:
        say(f"\n## {name} ({time.perf_counter() - BEGAN:.0f} s)")
        try:
            run()
        except Exception as error:
            say(f"-- {type(error).__name__}: {str(error).strip().splitlines()[0][:300]}")
            if not CARD:
                raise
        if CARD:
            torch.cuda.empty_cache()
    write("exchange-made-up", FIGURES)
    say(f"\n{time.perf_counter() - BEGAN:.0f} s")


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


def half() -> Any:
    """Return the context in which all is computed in bfloat16."""
    return torch.autocast(WHERE.type, torch.bfloat16)


def error(found: Tensor, exact: Tensor) -> float:
    """Return the relative error."""
    return float((found.double() - exact.double()).norm() / exact.double().norm())


def operations(model: Socialformer, ptr: Tensor) -> int:
    """Return the floating point operations of a forward pass: linear layers and attention of circles, no leaders."""
    layer, size = model.layers[0], ptr.diff()
    linear = 2 * (4 * layer.hidden_size**2 + 2 * layer.hidden_size * layer.intermediate_size)
    whole = int(size.sum()) * linear + 4 * layer.hidden_size * int((size**2).sum())
    last = int(size.sum()) * 4 * layer.hidden_size**2  # keys and values of all, the rest of leaders
    return (len(model.layers) - 1) * whole + last + size.numel() * linear


def timed(steps: dict[str, Callable[[], Any]], rounds: int = 4) -> dict[str, float]:
    """Return the median milliseconds of each step."""
    return {name: 1e3 * value for name, value in medians(interleaved(steps, rounds)).items()}


def forward(model: Socialformer, pages: int, peak: float) -> None:
    """Time the forward pass; hold two pages against float32."""
    length = LENGTH if CARD else 256
    few, graph = (circles(n, length, CIRCLES, WHERE, seed=n) for n in (2, pages))
    work = operations(model, circle_sequences(graph, 101, 102).ptr)

    def run(data: Any = graph) -> Tensor:
        with torch.inference_mode(), half():
            return model.documents(data)

    with torch.no_grad():
        say(f"relative error {error(run(few), model.documents(few)):.1e}")
    (took,) = timed({"forward": run}).values()
    say(f"{pages} pages, {work / 1e12:.1f} TFLOP: {took:.1f} ms, {work / took / 1e9 / peak:.1%} of the peak")
    FIGURES[f"forward, {pages} pages"] = {
        "ms": took, "share of the peak": work / took / 1e9 / peak, "waits": waits(run), "profile": profiled(run),
    }  # fmt: skip


def training_step(model: Socialformer, pages: int, peak: float) -> None:
    """Time forward, backward and fused AdamW, with dropout as in a training and without; hold gradients of a page."""
    length = LENGTH if CARD else 256
    one, graph = (circles(n, length, CIRCLES, WHERE, seed=n + 1) for n in (1, pages))
    work = 3 * operations(model, circle_sequences(graph, 101, 102).ptr)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0, fused=CARD)

    def step(data: Any = graph, dropout: float = 0.0, context: Callable[[], Any] = half) -> None:
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout
        optimizer.zero_grad()
        with context():
            scores = model(data)
        scores.float().logsumexp(0).backward()

    def gradients(context: Callable[[], Any]) -> Tensor:
        step(one, context=context)
        return torch.cat([p.grad.float().flatten() for p in model.parameters() if p.grad is not None])

    def whole(dropout: float) -> None:
        step(dropout=dropout)
        optimizer.step()

    model.train()
    try:
        exact = gradients(contextlib.nullcontext)
        say(f"relative error of gradients {error(gradients(half), exact):.1e}")
        del exact
        if CARD:
            torch.cuda.reset_peak_memory_stats()
        found = timed({"without dropout": lambda: whole(0.0), "dropout 0.1": lambda: whole(0.1)})
        for name, took in found.items():
            say(f"{pages} pages, {name}: {took:.1f} ms, {work / took / 1e9 / peak:.1%} of the peak")
        room = torch.cuda.max_memory_allocated() / 1e9 if CARD else None
        say(f"{room} GB at the highest")
        FIGURES[f"training step, {pages} pages"] = {
            "ms": found, "share of the peak": {n: work / took / 1e9 / peak for n, took in found.items()},
            "GB": room, "waits": waits(lambda: whole(0.0)), "profile": profiled(lambda: whole(0.1)),
        }  # fmt: skip
    finally:
        optimizer.zero_grad()
        model.eval()


def waits(run: Callable[[], Any]) -> dict[str, int]:
    """Return the lines at which the processor waits for the card, by PyTorch's own warnings."""
    if not CARD:
        return {}
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
    say(f"{found.total()} waits: {', '.join(f'{line} x{count}' for line, count in found.items())}")
    return dict(found)


def profiled(run: Callable[[], Any], shown: int = 22) -> dict[str, Any]:
    """Return what the card computes, kernel by kernel, and for which part of the time; print the longest."""
    with profile(activities=[ProfilerActivity.CUDA if CARD else ProfilerActivity.CPU]) as prof:
        run()
        if CARD:
            torch.cuda.synchronize()
    kind = torch.autograd.DeviceType.CUDA if CARD else torch.autograd.DeviceType.CPU
    events = [event for event in prof.events() if event.device_type == kind]
    if not events:
        return {}
    took, times = Counter[str](), Counter[str]()
    for event in events:
        took[event.name] += event.time_range.end - event.time_range.start
        times[event.name] += 1
    whole = max(event.time_range.end for event in events) - min(event.time_range.start for event in events)
    say(f"{len(events)} kernels compute for {took.total() / 1e3:.1f} of {whole / 1e3:.1f} ms")
    for name, time_of in took.most_common(shown):
        say(f"{time_of / 1e3:9.2f} ms {times[name]:5} x {name[:110]}")
    return {
        "kernels": len(events), "ms computing": took.total() / 1e3, "ms": whole / 1e3,
        "longest": {name[:200]: [times[name], time_of / 1e3] for name, time_of in took.most_common(40)},
    }  # fmt: skip


def centrality(layers: int, width: int, heads: int, pages: int) -> None:
    """Time dynamic centrality as a GPU reads it, and by transformers under autocast; hold both against float32."""
    length = LENGTH if CARD else 256
    with tempfile.TemporaryDirectory() as folder:
        name = backbone(Path(folder), layers, width, heads)
        exact, ours, autocast = (DynamicCentrality(name, bf16=bf16).to(WHERE) for bf16 in (False, True, True))
    autocast.bert.config.hidden_act = "any other"  # which transformers alone reads, and it has built its layers
    graph = circles(pages, length, CIRCLES, WHERE, seed=5)
    graph.ptr = torch.arange(pages + 1, device=WHERE) * length
    steps = {
        "dynamic centrality": lambda: ours.weights(graph), "by transformers, autocast": lambda: autocast.weights(graph)
    }  # fmt: skip
    want = exact.weights(graph)
    for label, run in steps.items():
        say(f"{label}: relative error {error(run(), want):.1e}")
    cosine = lambda: ours.cosines(graph, graph.batch)  # noqa: E731
    found = timed({**steps, "of it: cosines": torch.no_grad()(cosine)}, 3)
    base = FIGURES.get(f"forward, {pages} pages", {}).get("ms", float("nan"))
    for label, took in found.items():
        say(f"{label}: {took:.1f} ms, {took / base:.1%} of the forward pass")
    FIGURES["dynamic centrality"] = {"ms": found, "waits": waits(steps["dynamic centrality"])}
    FIGURES["dynamic centrality"]["profile"] = profiled(steps["dynamic centrality"], 10)


def attention(heads: int, width: int, rows: int, length: int) -> None:
    """Time attention forward and backward in segments of one length and by several tiles, beside flash attention.

    What is best here is what SHORT, FORWARD and BACKWARD in socialgraph/kernels/attention.py should be.
    """
    if not CARD:
        return
    from torch.nn.attention.varlen import varlen_attn

    from socialgraph.kernels import attention as ours

    ptr = torch.arange(rows // length + 1, device=WHERE) * length
    bounds = ptr.int()
    packed = torch.randn(int(ptr[-1]), 3, heads, width, dtype=torch.bfloat16, device=WHERE, requires_grad=True)
    query, key, value = packed.detach().unbind(1)
    grad, grads = torch.randn_like(query), torch.empty_like(packed).unbind(1)
    out, lse = ours.attention(query, key, value, ptr, ptr, length)
    flash = varlen_attn(*packed.unbind(1), bounds, bounds, length, length)

    def there(tiles: tuple[int, int, int]) -> None:
        ours.FORWARD = tiles
        ours.attention(query, key, value, ptr, ptr, length)

    def back(tiles: tuple[int, int, int]) -> None:
        ours.BACKWARD = tiles
        ours.attention_backward(grad, query, key, value, out, lse, ptr, ptr, length, grads)

    def flash_back() -> Tensor:
        return torch.autograd.grad(flash, packed, grad, retain_graph=True)[0]

    before = ours.FORWARD, ours.BACKWARD
    back(before[1])
    say(f"segments of {length}: forward differs from flash's by {error(out, flash):.1e}, backward by "
        f"{error(torch.stack(grads, 1), flash_back()):.1e}")  # fmt: skip
    steps: dict[str, Callable[[], Any]] = {
        "flash, forward": torch.no_grad()(lambda: varlen_attn(query, key, value, bounds, bounds, length, length)),
        "flash, backward": flash_back,
    }
    for tiles in ((64, 16, 4), (64, 32, 4), (64, 64, 4), (128, 32, 8), (32, 32, 4)):
        steps |= {f"{tiles}, forward": partial(there, tiles), f"{tiles}, backward": partial(back, tiles)}
    found = timed(steps, 3)
    ours.FORWARD, ours.BACKWARD = before
    for kind in ("forward", "backward"):
        some = sorted((took, name) for name, took in found.items() if name.endswith(kind))
        say(f"{length}, {kind}, ms: " + "; ".join(f"{name.rsplit(', ', 1)[0]} {took:.2f}" for took, name in some))
    FIGURES[f"attention in segments of {length}, ms"] = found
