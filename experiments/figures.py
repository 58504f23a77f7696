"""Figures 4, 5 and 6 of the paper: patterns of one document, sizes of circles, measures by length.

python experiments/figures.py 4 --help explains the options of one.
"""

from __future__ import annotations

import argparse

from lab.command import begin, loading
from lab.mistakes import one_line_errors

from socialgraph.errors import OptionError

begin()


def main() -> None:
    """Read the options and draw."""
    from lab.figure_options import FIGURES, options_of

    form = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    options = argparse.ArgumentParser(description=__doc__, **form)
    kinds = options.add_subparsers(dest="figure", required=True, metavar="4, 5 or 6")
    for number, (text, examples) in FIGURES.items():
        epilog = f"examples:\n{examples}"
        options_of(number, kinds.add_parser(number, help=text, description=text, epilog=epilog, **form))
    chosen = options.parse_args()
    with one_line_errors():
        if chosen.output.suffix not in (".png", ".svg", ".pdf"):
            raise OptionError(f"--output must end in .png, .svg or .pdf, got {chosen.output}")
        loading()
        from lab.figures import DRAW, write

        write(*DRAW[chosen.figure](chosen), chosen)


if __name__ == "__main__":
    main()
