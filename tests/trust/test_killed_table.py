"""A table is killed at random moments and started again: it ends with the same files as one that nobody disturbed.

Long form: python tests/trust/test_killed_table.py --kills 20
"""

import argparse
import gzip
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
from children import fresh
from commands import call, typed_for_tales, write_tales

ROOT = Path(__file__).parents[2]
ROWS = "rows=[bm25,parade,socialformer-node,idcm,colbert]"


def typed(folder):
    """Return what a user types to rank it."""
    return [
        *typed_for_tales(folder), "size.short=32", "size.long=48", "trainer.groups=24", "trainer.save_every=4",
        "trainer.token_budget=60", ROWS,
    ]  # fmt: skip


def table(folder, results):
    """Make the table, in a process of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    sys.path.insert(0, str(ROOT / "experiments"))
    call("table", *typed(folder), f"results={results}")


def finished(results):
    """Return file -> content of all that is finished, without times, memory and versions."""
    found = {}
    for path in sorted((results / "tales" / "test").glob("*.*")):
        if path.suffix == ".gz":
            found[path.name] = gzip.decompress(path.read_bytes())
        elif path.suffix == ".json":
            value = json.loads(path.read_text())
            found[path.name] = value["measures"], value["dev_measures"], value["sha256"], losses(value["training"])
    return found


def losses(log):
    return [(line["step"], line["loss"], line["learning_rate"]) for line in log if "loss" in line]


def stage(results):
    """Return where a run was when it died."""
    place = results / "tales" / "test" / ".unfinished"
    there = sorted(path.relative_to(place).parts for path in place.rglob("*")) if place.is_dir() else []
    names = {part for parts in there for part in parts}
    if "scores" in names:
        return "re-ranking"
    if any(name.startswith("checkpoint") for name in names):
        return "training, with a checkpoint"
    return "training" if there else "between rows"


def killed_and_whole(folder, kills, seed=0):
    """Return what an undisturbed run leaves, what a killed one leaves, and where it was killed."""
    context, draw = fresh(), random.Random(seed)
    for work, arguments in ((write_tales, (folder / "tales",)), (table, (folder / "tales", folder / "whole"))):
        began = time.perf_counter()
        child = context.Process(target=work, args=arguments)
        child.start()
        child.join()
        assert child.exitcode == 0
    length, moments = time.perf_counter() - began, []
    while True:
        child = context.Process(target=table, args=(folder / "tales", folder / "killed"))
        child.start()
        before = {path: path.stat().st_mtime_ns for path in (folder / "killed").rglob("*.run.gz")}
        # what is left is shorter each time
        child.join(draw.uniform(0.05, 1) * length / 2 if len(moments) < kills else None)
        if child.exitcode is None:
            os.kill(child.pid, signal.SIGKILL)
            child.join()
            moments.append(stage(folder / "killed"))
        assert all(path.stat().st_mtime_ns == then for path, then in before.items())  # nothing is made twice
        if child.exitcode == -signal.SIGKILL:
            continue
        assert child.exitcode == 0
        if len(moments) == kills:
            return finished(folder / "whole"), finished(folder / "killed"), moments
        shutil.rmtree(folder / "killed")  # it ended before it could be killed so often: once more, and sooner
        moments, length = [], length / 2


def test_a_killed_table_goes_on_and_ends_the_same(tmp_path, record_property):
    whole, killed, moments = killed_and_whole(tmp_path, kills=4)
    assert killed == whole
    assert len(whole) == 10
    assert all(len(value) > 0 for value in whole.values())
    assert not (tmp_path / "killed" / "tales" / "test" / ".unfinished").exists()
    record_property("told", f"a table killed {len(moments)} times: {', '.join(moments)}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = killed_and_whole(Path(place), chosen.kills, chosen.seed)
    print(f"killed {len(found[2])} times: {', '.join(found[2])}")
    print("the same files" if found[0] == found[1] else "OTHER FILES")
    sys.exit(found[0] != found[1])
