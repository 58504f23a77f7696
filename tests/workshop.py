"""What tests of comparisons share: a user's folder with classes of their own, and what is typed for a tiny budget."""

import csv
import sys
from pathlib import Path

import pytest
from commands import call, configuration
from tales import write_collection

MY_MODULE = '''
import torch
from socialgraph.edges import EdgeSampler, LowRank, Pattern
from socialgraph.edges.layout import documents
from socialgraph.partition import Partition


class Pairs(Partition):
    """The first two nodes of each document that has two."""

    by_place = True

    def __init__(self, k=1):
        super().__init__()
        self.k = k

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        ptr = torch.searchsorted(batch, torch.arange(batch_size + 1))
        leader = ptr[:-1][ptr.diff() > 1]
        member = torch.stack([leader, leader + 1], 1).flatten()
        return torch.stack([member, torch.arange(leader.numel()).repeat_interleave(2)]), leader


class Everybody(Pattern):
    """All pairs alike."""

    def forward(self, graph):
        batch, ptr = documents(graph)
        return LowRank(batch, ptr, constant=torch.ones(ptr.numel() - 1))


class Chain(EdgeSampler):
    """Each node knows the next."""

    def forward(self, graph):
        batch, _ = documents(graph)
        left = (batch[:-1] == batch[1:]).nonzero().flatten()
        row, col = torch.cat([left, left + 1]), torch.cat([left + 1, left])
        order = torch.argsort(2 * row + (col > row))
        return torch.stack([row, col])[:, order], torch.ones(row.numel())
'''


@pytest.fixture
def hydra():
    """Let a test compose configurations of experiments/."""
    with configuration():
        yield


@pytest.fixture
def workshop(tmp_path, tiny_bert, monkeypatch):
    """A user's folder with a module and a collection; return what is typed for a tiny budget."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_module", raising=False)
    (tmp_path / "my_module.py").write_text(MY_MODULE)
    folder, names = tmp_path / "tales", [f"d{d}" for d in range(12)]
    texts = {name: " ".join(f"w{(7 * d + i * i) % 60}" for i in range(60)) for d, name in enumerate(names)}
    queries = {name: f"w{(7 * d) % 60} w{d} w1" for d, name in enumerate(names)}
    write_collection(folder, texts, queries, train=names[:3], dev=names[3:5], test=names[5:])
    return [
        "data=folder", f"data.path={folder}", "data.label=tales", f"model.backbone={tiny_bert[0]}", "window=16",
        "document_length=48", "trainer.groups=1", "trainer.negatives=1", "trainer.bf16=false",
        "data.depth=5", "data.queries.test=null", "data.queries.dev=1", "partition.max_size=8",
    ]  # fmt: skip


def compare(*typed):
    """Call what a user calls; return the folder of results."""
    call("compare", *(() if any(one.startswith("level=") for one in typed) else ("level=[training]",)), *typed)
    (name,) = [one.split("=")[1] for one in typed if one.startswith("name=")] or ["compare"]
    return Path("experiments/results/tales/test") / name


def table(folder):
    """Return the lines of a table's CSV."""
    with open(folder / "table.csv", newline="") as file:
        return list(csv.DictReader(file))
