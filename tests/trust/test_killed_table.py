"""A table is killed at random moments and started again: it ends with the same files as one that nobody disturbed.

Long form: python tests/trust/test_killed_table.py --kills 20
"""

import gzip
import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
from children import fresh
from commands import call, typed_for_tales, write_tales
from killing import killed, long_form, undisturbed

ROWS = "rows=[bm25,parade,socialformer-node,idcm]"


def typed(folder):
    """Return what a user types to rank it."""
    return [
        *typed_for_tales(folder), "table=table1", "size.long=48", "trainer.groups=24", "trainer.save_every=4",
        "trainer.token_budget=60", ROWS,
    ]  # fmt: skip


def table(folder, results):
    """Make the table, in a process of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    os.chdir(results.parent)
    call("run", *typed(folder), f"results={results}")


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


def kill_table(folder, kills, chance):
    """Kill a table so often; return in words what was tried."""
    child, made = fresh().Process(target=write_tales, args=(folder / "tales",)), {}
    child.start()
    child.join()

    def nothing_is_made_twice(results):
        for path in results.rglob("*.run.gz"):
            assert made.setdefault(path, path.stat().st_mtime_ns) == path.stat().st_mtime_ns

    def begin(results):
        nothing_is_made_twice(results)
        child = fresh().Process(target=table, args=(folder / "tales", results))
        child.start()
        return child

    seconds = undisturbed(begin, folder / "whole")
    runs = killed(begin, folder, kills, lambda *_: time.sleep(chance.uniform(0.05, 1) * seconds / 2))
    whole = finished(folder / "whole")
    assert len(whole) == 8
    assert all(len(value) > 0 for value in whole.values())
    for results in runs:
        nothing_is_made_twice(results)
        assert finished(results) == whole
        assert not (results / "tales" / "test" / ".unfinished").exists()
    return f"a table killed {kills} times; runs: {len(runs)}"


def test_a_killed_table_goes_on_and_ends_the_same(tmp_path, record_property):
    record_property("told", kill_table(tmp_path, 4, random.Random()))


if __name__ == "__main__":
    long_form(__doc__, kill_table)
