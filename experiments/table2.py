"""Table 2: what each pattern of Socialformer adds, beside the paper's own figures.

python experiments/table2.py --help explains the options.
"""

from app import begin, one_line_errors

begin()

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="conf", config_name="table2")
def main(config: DictConfig) -> None:
    """Run, or resume, the rows and write the table."""
    with one_line_errors():
        from tables import make_table

        make_table(config, list(HydraConfig.get().overrides.task))


if __name__ == "__main__":
    main()
