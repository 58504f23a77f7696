"""What all benchmarks share: steps timed in turn in one process, memory, and what the figures depend on."""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

RESULTS = Path(__file__).parent / "results"


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is a benchmark's docstring and tells the defaults."""

    class Formatter(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
        pass

    return argparse.ArgumentParser(description=description, formatter_class=Formatter)


def device() -> torch.device:
    """Return where models run: the GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def interleaved(
    steps: Mapping[str, Callable[[], Any]], rounds: int, warmup: int = 1, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Run all steps in turn, round after round, and return the seconds of each run but the first ``warmup``.

    In turn, because these machines are slower at some times than at others: what is compared must share them.
    """
    seconds: dict[str, list[float]] = {step: [] for step in steps}
    for number in tqdm(range(rounds + warmup), desc="timing", unit="round"):
        for step, run in steps.items():
            began = clock()
            run()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if number >= warmup:
                seconds[step].append(clock() - began)
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the median of each step."""
    return {step: statistics.median(values) for step, values in seconds.items()}


def ratio(seconds: Mapping[str, list[float]], slow: str, fast: str) -> float:
    """Return how many times longer ``slow`` took: the median of the ratios within each round."""
    return statistics.median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True))


def peak_memory(run: Callable[[], Any]) -> float | None:
    """Return by how many MB a step raised the process's memory at its highest, or None where nobody says."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what earlier steps have freed but still hold
        Path("/proc/self/clear_refs").write_text("5")  # forget the highest so far
        before = _resident("VmRSS")
        run()
        return (_resident("VmHWM") - before) / 1e3
    except OSError:  # not Linux
        return None


def _resident(key: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(key)).split()[1])


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print rows as Markdown."""
    print(f"\n| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def write(name: str, result: Mapping[str, Any]) -> None:
    """Write a benchmark's figures with machine and versions into results/``name``.json."""
    packages = ("torch", "torch-geometric", "transformers")
    machine = {
        "threads": torch.get_num_threads(),
        "processor": torch.cpu.get_capabilities().get("cpu_name") or platform.processor(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "versions": {"python": platform.python_version()} | {package: version(package) for package in packages},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({**result, **machine}, indent=1) + "\n")
