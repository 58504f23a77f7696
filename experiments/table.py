"""The difference of two finished rows: paired over their queries, all of them and by where the evidence starts.

python experiments/table.py --help explains the options.
"""

from lab.command import begin, command

begin()

from omegaconf import DictConfig


@command("table")
def main(config: DictConfig) -> None:
    """Print the difference."""
    from lab.difference import difference
    from lab.report import markdown

    print(markdown(difference(config)))


if __name__ == "__main__":
    main()
