"""Figures 4, 5 and 6 of the paper: patterns of one document, sizes of circles, measures by length.

python experiments/figures.py --help explains the options.
"""

from lab.command import begin, command

begin()

from lab.config import spelled_out
from omegaconf import DictConfig


@command("figures", spelled_out)
def main(config: DictConfig) -> None:
    """Draw a figure, and write it with its numbers."""
    from lab.figures import draw

    draw(config)


if __name__ == "__main__":
    main()
