"""The options of figures.py."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.command import CONF

#: figure -> what it shows, and examples
FIGURES = {
    "4": ("what each pattern makes of one document, and all of them together", """\
  python experiments/figures.py 4
  python experiments/figures.py 4 document_length=2000 edges.sparsity=0.93
  python experiments/figures.py 4 --query "open a file" --document library/pathlib
  python experiments/figures.py 4 '~edges.patterns.dynamic_centrality' --output three.png"""),
    "5": ("how large the first, second, ... circle is, by sparsity, for both partitions", """\
  python experiments/figures.py 5
  python experiments/figures.py 5 --documents 1                         (one document, as in the paper)
  python experiments/figures.py 5 partition.keep=strongest --sparsity 0.95 0.9"""),
    "6": ("how good systems are at short and at long documents, from finished rows of a table", """\
  python experiments/figures.py 6                           (rows of pydocs that come with the project)
  python experiments/figures.py 6 --rows maxp,parade,socialformer-edge --measure nDCG@10 --bounds 1024 4096
  python experiments/figures.py 6 data=folder data.path=path/to/collection data.splits.test=test_bal"""),
}  # fmt: skip


def options_of(number: str, options: argparse.ArgumentParser) -> None:
    """Add the options of a figure."""
    add = options.add_argument
    add("overrides", nargs="*", metavar="KEY=VALUE", help="options of run.py, see its --help")
    what = "the picture (.png, .svg, .pdf); its numbers go beside it as .json (default: %(default)s)"
    add("--output", type=Path, default=Path(f"figure{number}.png"), help=what)
    add("--dpi", type=int, default=100, help="pixels for each inch (default: %(default)s)")
    if number == "4":
        add("--query", help="text of the query; with --document (default: the first test query)")
        add("--document", help="id of the document (default: the one that is relevant to it)")
    elif number == "5":
        add("--documents", type=int, default=20, help="how many, relevant to test queries (default: %(default)s)")
        add("--sparsity", type=float, nargs="+", default=[0.99, 0.97, 0.95, 0.93], help="(default: as in the paper)")
        add("--partitions", default="edge,node", help="of the group partition, with commas (default: %(default)s)")
    else:
        add("--rows", default="parade,socialformer-node,socialformer-edge", help="with commas (default: %(default)s)")
        add("--measure", default="RR@100", help="as ir_measures writes it (default: %(default)s)")
        add("--bounds", type=int, nargs="+", default=[512, 1024, 2048], help="word pieces where a new bucket begins")
        add("--results", type=Path, default=CONF.parent / "results", help="folder of finished rows")
