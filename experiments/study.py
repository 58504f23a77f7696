"""The study: do friend circles help? Tables 1 and 2 and Figure 6 on real long documents, trained and ranked here.

What is finished stays on disk, so a study is done in pieces: call the same line until nothing is left. Each row (a
system, a collection, a seed) is trained once, on one budget, and ranks the test queries once; what is chosen (the
weight of BM25 beside it) is chosen on dev.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from app import begin, one_line_errors

begin()

CONF = Path(__file__).parent / "conf"
EXAMPLES = """\
  python experiments/study.py size=cpu                       (the core on wtq: within two hours on two cores)
  python experiments/study.py size=cpu minutes=10            (a piece of it; again and again)
  python experiments/study.py size=gpu part=all minutes=9    (everything, on a GPU)
  python experiments/study.py part=tales rows=[parade,socialformer-edge] seeds=[0,1,2]
  python experiments/study.py part=tries rows=[parade,as-it-stands,led-by-cls]     (on dev only)
  python experiments/study.py part=past                      (what the tries have chosen, on test)
  python experiments/study.py part=all minutes=0             (runs nothing, writes the tables of what is finished)
  python experiments/study.py size=gpu --pack study.tar.xz    (all that a machine without network needs)
  python experiments/study.py trainer.groups=4 data.queries.test=4 data.queries.dev=2 warm_up.groups=4
                                                             (smaller than small, to see it work)
Whatever run.py takes goes to every row, after the row's own. Rows are those of table1.py and table2.py.
Results: <results>/<data>/<split>/<row>.<seed>.run.gz and .json, and there study.md with its figures."""


def main() -> None:
    """Read the options, run what is not finished, write the report."""
    options = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"options (conf/study.yaml):\n\n{(CONF / 'study.yaml').read_text()}\nexamples:\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="see below")
    what = "write the collections (fewer candidates) and the backbone (16 bits) into a .tar.xz, and run nothing"
    options.add_argument("--pack", type=Path, metavar="FILE", help=what)
    chosen = options.parse_args()
    with one_line_errors():
        from study_plan import read_study
        from study_runs import make_study

        study = read_study(chosen.overrides)
        if chosen.pack is not None:
            from study_pack import pack

            pack(study, chosen.pack)
        else:
            make_study(study)


if __name__ == "__main__":
    main()
