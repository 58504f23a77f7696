"""Train a system and a baseline on the same budget, re-rank the test queries, print one table.

python experiments/run.py --help explains the options.
"""

import time
from pathlib import Path

from app import begin, one_line_errors

STARTED = time.perf_counter()
begin()

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> None:
    """Run the comparison that the configuration describes."""
    with one_line_errors():
        from comparison import compare

        compare(config, Path(HydraConfig.get().runtime.output_dir), STARTED)


if __name__ == "__main__":
    main()
