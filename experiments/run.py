"""Train PARADE-max and Socialformer on the same budget, re-rank the test queries, print one table.

python experiments/run.py --help explains the options.
"""

import sys
import time
from pathlib import Path

STARTED = time.perf_counter()
if "--help" not in sys.argv:
    print("socialgraph: loading PyTorch and transformers ...", flush=True)

# A class in the user's own folder, such as partition._target_=my_module.MyPartition, is found from there.
sys.path.insert(0, str(Path.cwd()))

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import InstantiationException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> None:
    """Run the comparison that the configuration describes."""
    from comparison import compare

    from socialgraph.errors import SocialgraphError

    try:
        compare(config, Path(HydraConfig.get().runtime.output_dir), STARTED)
    except (SocialgraphError, InstantiationException, OmegaConfBaseException) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, SocialgraphError):
            cause = cause.__cause__  # hydra wraps what a class says into an error of its own
        sys.exit(f"error: {cause or str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
