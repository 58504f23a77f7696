"""How long a user waits for the command: `python benchmarks/wait.py`.

Each line is a program of its own, from its start to its end, in turn, round after round: the help, a mistake, the score
of one short text, the page of one; and beside them what the libraries alone take to be imported. JSON:
benchmarks/results/wait.json.

``--before FOLDER`` times a checkout of an earlier commit too, in turn with this one; 756812a is the last in which all
was imported at once (``git worktree add FOLDER 756812a``).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from measure import interleaved, medians, parser, ratio, table, write

TEXT = "Copy data and mode bits of a file, as cp -p does."
COMMAND = ("-m", "socialgraph")
QUERY = ("--query", "copy a file with its permissions")
#: what every score needs; PyTorch Geometric imports pandas, and parts of transformers, by itself
LIBRARIES = {
    "import torch": "import torch",
    "import torch, transformers": "from transformers import BertModel, PreTrainedTokenizerFast",
    "and torch_geometric": "import torch_geometric.data; from transformers import BertModel, PreTrainedTokenizerFast",
}


def main() -> None:
    """Time all programs."""
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=5, help="of which each program's median is taken")
    options.add_argument("--before", type=Path, metavar="FOLDER", help="a checkout of an earlier commit")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        text, page = Path(place) / "text.txt", str(Path(place) / "page.html")
        text.write_text(TEXT)
        programs = {
            "--help": [*COMMAND, "--help"],
            "a mistake": [*COMMAND, "rank", *QUERY, "no-such-file"],
            **{name: ["-c", code] for name, code in LIBRARIES.items()},
            "first score": [*COMMAND, "rank", *QUERY, str(text)],
            "page": ["-c", PAGE, TEXT, page],
        }
        steps = {name: partial(called, name, program) for name, program in programs.items()}
        if args.before is not None:
            earlier = {
                "--help, before": ["-m", "socialgraph.inspect", "--help"],
                "first score, before": ["-c", SCORE, TEXT],
                "page, before": ["-c", PAGE, TEXT, page],
            }
            steps |= {name: partial(called, name, program, args.before) for name, program in earlier.items()}
        seconds = interleaved(steps, args.rounds)
    middle = medians(seconds)
    base = "import torch, transformers"
    times = {name: ratio(seconds, name, base) for name in steps}
    table(["", "s", f"x {base}"], [[name, f"{middle[name]:.2f}", f"{times[name]:.2f}"] for name in steps])
    write("wait", {"rounds": args.rounds, "seconds": middle, f"times {base}": times})


SCORE = """
import sys
from socialgraph import Ranker
Ranker.from_pretrained("minilm-reader").rank("copy a file with its permissions", sys.argv[1:])
"""
PAGE = """
import sys
from socialgraph import Ranker
Ranker.from_pretrained("minilm-reader").explain("copy a file", sys.argv[1]).save(sys.argv[2])
"""


def called(name: str, program: list[str], folder: Path | None = None) -> None:
    """Run a program of Python to its end, on the package in that folder; only a mistake may fail."""
    done = subprocess.run([sys.executable, *program], capture_output=True, text=True, cwd=folder)
    if (done.returncode != 0) != (name == "a mistake"):
        sys.exit(f"{name}: {done.stderr[-500:]}")


if __name__ == "__main__":
    main()
