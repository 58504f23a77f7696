"""Get a collection: fetch its public source, build its folder in the cache, check every file; data=NAME finds it there.

python experiments/data.py --help explains the options; docs/data.md what is in the collections.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from lab.command import begin, loading, logged, one_line_errors

begin()

EXAMPLES = """\
  socialgraph data wtq
  socialgraph data fairytale covidqa
  socialgraph data fairytale --source path/to/FairytaleQAData     (where there is no network)
The cache is ~/.cache/socialgraph; SOCIALGRAPH_CACHE names another folder."""


def main() -> None:
    """Read the options and build."""
    options = argparse.ArgumentParser(
        prog="socialgraph data",
        description=(__doc__ or "").split("\n\n")[0],
        epilog=f"examples:\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("names", nargs="+", metavar="NAME", help="wtq, fairytale or covidqa")
    options.add_argument("--source", type=Path, metavar="FOLDER", help="an unpacked copy of the source's repository")
    what = "take another version of the source, and keep what comes out of it, though digests differ"
    options.add_argument("--unchecked", action="store_true", help=what)
    chosen = options.parse_args()
    if chosen.source is not None and len(chosen.names) > 1:
        options.error("--source is the copy of one collection")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    loading()
    with one_line_errors(), logged():
        from socialgraph.data.sources import make_collection
        from socialgraph.ranking import BM25

        for name in chosen.names:
            folder = make_collection(name, BM25(), chosen.source, checked=not chosen.unchecked)
            print(f"{name}: {folder}; data={name} finds it there")


if __name__ == "__main__":
    main()
