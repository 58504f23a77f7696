"""The difference of two finished rows: paired over their queries, all of them and by where the evidence starts."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.command import begin, loading
from lab.mistakes import one_line_errors

begin()

EXAMPLES = """\
  python experiments/difference.py experiments/results/wtq/test socialformer-edge parade
  python experiments/difference.py experiments/results/wtq/test random-edges socialformer-edge --seeds 0 \\
      --also experiments/results/fairytale/test           (the queries of both)
  python experiments/difference.py experiments/results/whole-documents/fairytale/test far-circles far-random-friends \\
      --evidence ~/.cache/socialgraph/collections/fairytale --bounds 1024
  python experiments/difference.py experiments/results/wtq/test maxp bm25 --mixed    (the first one mixed with BM25)"""


def main() -> None:
    """Read the options and print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, epilog=f"examples:\n{EXAMPLES}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", type=Path, help="of finished rows: experiments/results/<data>/<split>")
    options.add_argument("row", help="such as socialformer-edge")
    options.add_argument("other", help="the row that is subtracted")
    what = "more such folders; a query that is in several counts once, as in the first"
    options.add_argument("--also", type=Path, nargs="+", default=[], metavar="FOLDER", help=what)
    options.add_argument("--measure", default="RR@10", help="one that the rows have (default: %(default)s)")
    options.add_argument("--seeds", type=int, nargs="+", help="these only (default: all that a row has)")
    what = "rows as mixed with the candidates' own scores; one that has no mixture, such as bm25, as it is"
    options.add_argument("--mixed", action="store_true", help=what)
    options.add_argument("--evidence", type=Path, metavar="COLLECTION", help="folder with evidence.tsv")
    what = "word pieces at which a new bucket of evidence begins (default: 512 1024 2048)"
    options.add_argument("--bounds", type=int, nargs="+", default=[512, 1024, 2048], help=what)
    chosen = options.parse_args()
    loading()
    with one_line_errors():
        from lab.difference import table

        print(table(chosen))


if __name__ == "__main__":
    main()
