"""What the levels of compare.py cost that train nothing: `python benchmarks/levels.py`, beside the goals.

Edge-level circles, 8 of 4,096 word pieces, on fairytale (`experiments/data.py fairytale` builds it). Node-level circles
go first, so that dynamic centrality is kept when the clock starts, in a cache of its own, which is thrown away:

* evidence: the whole run, from kept weights to measures, for 500 pairs;
* encoder and reader: of 300 questions x 6 candidates, circles gathered and every sequence that the node-level ones did
  not have scored;
* read before: the same command again, what it takes longer than with one strategy less, and the same circles once more
  where only scores of their sequences are kept.

Where the collection has fewer questions, seconds are scaled to those numbers. The JSON goes to
benchmarks/results/levels.json.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import parser, table, write

from socialgraph.data.files import cache_folder

ROOT = Path(__file__).parents[1]
#: what is measured -> seconds that it should take at most, on two idle cores
GOALS = {"evidence": 45, "circles + encoder": 90, "circles + reader": 360, "read before": 5}


def compare(folder: Path, questions: int, pairs: int, partitions: str = "node,edge") -> float:
    """Call the command with a cache and results of its own; return its seconds, the start of Python included."""
    typed = [
        f"partition={partitions}", "data=fairytale", "data.splits.test=test", "document_length=4096", "partition.k=8",
        f"levels.evidence.amount={pairs}", f"levels.reading.amount={questions}",
        f"data.root={cache_folder() / 'collections'}", f"results={folder / 'results'}",
    ]  # fmt: skip
    environment = os.environ | {"SOCIALGRAPH_CACHE": str(folder / "cache")}
    began = time.perf_counter()
    command = [sys.executable, ROOT / "experiments" / "compare.py", *typed]
    subprocess.run(command, check=True, env=environment, cwd=folder)
    return time.perf_counter() - began


def stored(folder: Path, level: str) -> tuple[Path, dict[str, Any]]:
    """Return the file of the edge-level run of a level, and what is in it."""
    (file,) = (folder / "results").glob(f"fairytale/test/compare/*edge-{level}.0.json")
    return file, json.loads(file.read_text())


def main() -> None:
    """Execute both levels, then once more."""
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=300, help="of the reading")
    options.add_argument("--pairs", type=int, default=500, help="of the evidence")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = compare(folder, args.questions, args.pairs)
        _, evidence = stored(folder, "evidence")
        file, reading = stored(folder, "reading")
        again = compare(folder, args.questions, args.pairs)
        alone = compare(folder, args.questions, args.pairs, "node")
        file.unlink()
        compare(folder, args.questions, args.pairs)
        _, kept = stored(folder, "reading")
    asked, read = (len(next(iter(run["measures"].values()))) for run in (evidence, reading))
    documents = 6 * read
    circles = reading["graph_seconds_per_document"] * documents
    found = {
        "evidence": evidence["seconds"] * args.pairs / asked,
        "circles + encoder": (circles + reading["encoder_seconds"]) * args.questions / read,
        "circles + reader": (circles + reading["reader_seconds"]) * args.questions / read,
        "read before": again,
        "read before, each strategy more": again - alone,
        "sequences kept": kept["seconds"] * args.questions / read,
    }
    head = ["", "seconds", "goal"]
    table(head, [[name, f"{seconds:.1f}", str(GOALS.get(name, ""))] for name, seconds in found.items()])
    print(f"{reading['newly_read']} sequences were read, {kept['newly_read']} once their scores were kept")
    about = {"pairs": asked, "questions": read, "sequences": reading["newly_read"], "first command": first}
    write("levels", {"seconds": found, "goals": GOALS, **about})


if __name__ == "__main__":
    main()
