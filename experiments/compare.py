"""Compare partitions, edges or any options: circles, ranking and cost in one table and one plot.

python experiments/compare.py --help explains the options.
"""

import sys

from app import begin, one_line_errors

begin()

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="conf", config_name="compare")
def main(config: DictConfig) -> None:
    """Run, or resume, the variants and write table and plot."""
    with one_line_errors():
        from sweep import make_sweep

        make_sweep(config, AXES, list(HydraConfig.get().overrides.task))


if __name__ == "__main__":
    from axes import split

    AXES, sys.argv[1:] = split(sys.argv[1:])
    main()
