"""Re-ranking by two processes, as accelerate starts them: together they give what one gives, alone each its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
from conftest import write_tiny_bert
from tales import builder_of, random_texts

from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import processes, rerank

QUERIES = {"q1": "w1 w2", "q2": "w3", "q3": "w9 w8 w7"}
OPTIONS = {"token_budget": 150, "progress": True, "distributed": True}
LAUNCHER = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
            "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]  # fmt: skip


def program(folder):
    """Re-rank in each way and write down what this process got."""
    first = processes.is_first()
    if first:
        write_tiny_bert(folder)
    processes.wait()
    edges = SocialEdges([StaticDistance(), StaticCentrality()])
    builder = builder_of(str(folder), random_texts(range(10, 200, 10)), edges, EdgeCircles(k=2), Windows(32))
    torch.manual_seed(0)
    model = Socialformer.from_backbone(str(folder))
    candidates = {query_id: dict.fromkeys(builder.documents, 1.0) for query_id in QUERIES}
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    found = {"processes": processes.count(), "number": processes.number()}

    found["rerank"] = rerank(model, builder, QUERIES, candidates, **OPTIONS)
    found["batches"] = len(calls)
    journal = folder / "journal"
    found["journal"] = rerank(model, builder, QUERIES, candidates, journal=journal, **OPTIONS)
    calls.clear()
    found["again"] = rerank(model, builder, QUERIES, candidates, journal=journal, **OPTIONS)
    found["batches again"] = len(calls)

    # each a query of its own, and one of them something more
    mine = {f"q{processes.number()}": f"w{processes.number()} w5"}
    asked = {query_id: dict.fromkeys(list(builder.documents)[: 5 + processes.number()], 1.0) for query_id in mine}
    found["own"] = [mine, asked, rerank(model, builder, mine, asked, progress=False)]
    if first:
        rerank(model, builder, mine, asked, progress=False)
    (folder / f"found-{processes.number()}.json").write_text(json.dumps(found))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process finds, with as many threads as each of two has; and what ranks as it does."""
    folder, threads = tmp_path_factory.mktemp("alone") / "work", torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        program(folder)
    finally:
        torch.set_num_threads(threads)
    return json.loads((folder / "found-0.json").read_text())


def test_two_processes_return_what_one_does(alone, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, *LAUNCHER, __file__, str(tmp_path / "work")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    both = [json.loads((tmp_path / "work" / f"found-{number}.json").read_text()) for number in range(2)]
    assert [(one["processes"], one["number"]) for one in both] == [(2, 0), (2, 1)]
    for one in both:
        for name in ("rerank", "journal", "again"):  # the order counts too
            assert json.dumps(one[name]) == json.dumps(alone[name]), name
        assert one["batches again"] == 0
    shares = [one["batches"] for one in both]
    assert sum(shares) == alone["batches"]
    assert max(shares) - min(shares) <= 1
    assert json.dumps(both[0]["own"]) == json.dumps(alone["own"])
    for number, one in enumerate(both):
        mine, asked, run = one["own"]
        assert list(mine) == list(run) == [f"q{number}"]
        assert run[f"q{number}"].keys() == asked[f"q{number}"].keys()
    # two calls have work, and a bar is drawn at its end at least once
    assert done.stderr.count("re-ranking (1 of 2 processes): 100%") >= 2


if __name__ == "__main__":
    program(Path(sys.argv[1]))
