"""Re-ranking is killed at random moments and started again: it ends as if nobody had disturbed it.

Long form: python tests/trust/test_killed_reranking.py --kills 20
"""

import os
import random
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
from children import fresh
from conftest import write_tiny_bert
from killing import killed, long_form, undisturbed
from tales import builder_of, random_texts

from socialgraph.data.trec import write_run
from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import rerank
from socialgraph.ranking.journal import read_journal

QUERIES = {f"q{i}": f"w{i} w{i + 1} w{2 * i}" for i in range(6)}


def rank(bert, folder):
    """Rank 60 documents for 6 queries, in a process of its own; each batch leaves a byte, which outlives it."""
    torch.set_num_threads(1)
    torch.manual_seed(0)  # each process makes the same
    edges = SocialEdges([StaticDistance(), StaticCentrality()])
    builder = builder_of(str(bert), random_texts(range(20, 140, 2)), edges, EdgeCircles(k=2), Windows(32))
    model = Socialformer.from_backbone(str(bert))
    candidates = {query_id: dict.fromkeys(builder.documents, 1.0) for query_id in QUERIES}
    calls = os.open(folder / "calls", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    model.register_forward_hook(lambda *_: os.write(calls, b".") and None)
    (folder / "ready").touch()
    options = {"token_budget": 200, "progress": False, "journal": folder / "journal"}
    write_run(folder / "result", rerank(model, builder, QUERIES, candidates, **options))


def kill(folder, kills, chance):
    """Kill a re-ranking so often; return in words what was tried."""
    bert = folder / "bert"
    write_tiny_bert(bert)

    def begin(here):
        (here / "ready").unlink(missing_ok=True)
        child = fresh().Process(target=rank, args=(bert, here))
        child.start()
        while child.exitcode is None and not (here / "ready").exists():
            time.sleep(0.001)
        return child

    quiet = folder / "undisturbed"
    longest = 2 * undisturbed(begin, quiet) / min(kills, 5)
    rounds = killed(begin, folder, kills, lambda child, here: time.sleep(chance.uniform(0, longest)))
    batches, again = (quiet / "calls").stat().st_size, 0
    assert batches > 20
    for here, deaths in rounds.items():
        assert (here / "result").read_bytes() == (quiet / "result").read_bytes(), f"{here.name} has another result"
        calls = (here / "calls").stat().st_size
        assert batches <= calls <= batches + deaths, f"{calls} batches for {batches}, killed {deaths} times"
        again += calls - batches
        assert [*read_journal(here / "journal").items()] == [*read_journal(quiet / "journal").items()]
    return f"re-ranking of {batches} batches killed {kills} times, {again} batches done again; runs: {len(rounds)}"


def test_a_killed_reranking_ends_as_if_nobody_had_disturbed_it(tmp_path, record_property):
    record_property("told", kill(tmp_path, 4, random.Random()))


if __name__ == "__main__":
    long_form(__doc__, kill)
