"""Re-ranking is killed at random moments and started again: it ends as if nobody had disturbed it.

Long form: python tests/trust/test_killed_reranking.py --kills 20
"""

import json
import os
import random
import sys
import time
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
from children import fresh
from conftest import write_tiny_bert
from killing import killed, long_form, undisturbed
from tales import builder_of, random_texts

from socialgraph.data.trec import write_run
from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer
from socialgraph.nn.colbert import ColBERT
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import rerank

WORKS = ("reranking", "passages")
QUERIES = {f"q{i}": f"w{i} w{i + 1} w{2 * i}" for i in range(6)}
#: 60 documents, 6 queries
OPTIONS = {"token_budget": 200, "progress": False}


class Works:
    """What is killed: each work leaves its results in a folder that it is told."""

    def __init__(self, folder):
        if not (folder / "bert").exists():
            write_tiny_bert(folder / "bert")
        name = str(folder / "bert")
        torch.manual_seed(0)  # each process makes the same
        texts = random_texts(range(20, 140, 2))
        edges = SocialEdges([StaticDistance(), StaticCentrality()])
        self.social = builder_of(name, texts, edges, EdgeCircles(k=2), Windows(32))
        self.windows = builder_of(name, texts, passages=Windows(32))
        self.candidates = {query_id: dict.fromkeys(self.social.documents, 1.0) for query_id in QUERIES}
        self.former, self.colbert = Socialformer.from_backbone(name), ColBERT.from_backbone(name)

    def reranking(self, folder):
        asked = (self.former, self.social, QUERIES, self.candidates)
        write_run(folder / "result", rerank(*asked, journal=folder / "journal", **OPTIONS))

    def passages(self, folder):
        asked = (self.colbert, self.windows, QUERIES, self.candidates)
        write_run(folder / "result", rerank(*asked, journal=folder / "journal", **OPTIONS))

    def count(self, name, folder):
        """Let each batch that goes through a model leave a byte in a file, which outlives the process."""
        calls = os.open(folder / "calls", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        model = {"reranking": self.former, "passages": self.colbert}[name]
        function = model.forward

        def counted(*arguments):
            os.write(calls, b".")
            return function(*arguments)

        model.forward = counted


def do(name, works, folder):
    """Do one of the works, in a process of its own."""
    torch.set_num_threads(1)
    made = Works(works)
    made.count(name, folder)
    (folder / "ready").touch()
    getattr(made, name)(folder)


def begin(name, works, folder):
    """Return a process that has begun with a work."""
    (folder / "ready").unlink(missing_ok=True)
    child = fresh().Process(target=do, args=(name, works, folder))
    child.start()
    while child.exitcode is None and not (folder / "ready").exists():
        time.sleep(0.001)
    return child


def contents(folder):
    return (folder / "result").read_bytes()


def noted(folder):
    """Return the numbers of the batches in the journal, in their order."""
    lines = (folder / "journal" / "finished-0.jsonl").read_text().splitlines()
    return [json.loads(line)["batch"] for line in lines]


def kill(name, works, folder, kills, chance):
    """Kill a work so often; return in words what was tried."""

    def begin_here(here):
        return begin(name, works, here)

    quiet = folder / "undisturbed"
    seconds = undisturbed(begin_here, quiet)
    longest = 2 * seconds / min(kills, 5)
    rounds = killed(begin_here, folder, kills, lambda child, here: time.sleep(chance.uniform(0, longest)))
    batches, again = (quiet / "calls").stat().st_size, 0
    assert batches > 20
    for here, deaths in rounds.items():
        assert contents(here) == contents(quiet), f"{name}: {here.name} has another result"
        calls = (here / "calls").stat().st_size
        assert batches <= calls <= batches + deaths, f"{name}: {calls} batches for {batches}, killed {deaths} times"
        again += calls - batches
        assert noted(here) == list(range(batches)), f"{name}: a batch is missing or noted twice"
    return f"{name} of {batches} batches killed {kills} times, {again} batches done again; runs: {len(rounds)}"


def prepare(works):
    """Write the BERT and the vectors, in a process of its own; return their folder."""
    first = fresh().Process(target=Works, args=(works,))
    first.start()
    first.join()
    return works


@pytest.fixture(scope="module")
def works(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("killed") / "works")


@pytest.mark.parametrize("name", WORKS)
def test_killed_work_ends_as_if_nobody_had_disturbed_it(works, name, tmp_path, record_property):
    record_property("told", kill(name, works, tmp_path, 4, random.Random()))


def kill_all(folder, kills, chance):
    """Kill each work so often; return in words what was tried."""
    works = prepare(folder / "works")
    return "\n".join(kill(name, works, folder / name, kills, chance) for name in WORKS)


if __name__ == "__main__":
    long_form(__doc__, kill_all)
