"""What the scripts share: the line they begin with, and errors of one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def begin() -> None:
    """Say that a slow import comes, and find a class in the user's own folder, such as my_module.MyPartition.

    Of several processes only the first one writes: the others have no output folder and no log.
    """
    if int(os.environ.get("RANK", "0")) > 0:
        sys.argv += ["hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=none"]
    elif "--help" not in sys.argv:
        print("socialgraph: loading PyTorch and transformers ...", flush=True)
    sys.path.insert(0, str(Path.cwd()))


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the mistakes that a user can make into one line and exit status 1."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from socialgraph.data.collection import shown
    from socialgraph.errors import SocialgraphError

    try:
        yield
    except (SocialgraphError, HydraException, OmegaConfBaseException) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, SocialgraphError):
            cause = cause.__cause__  # hydra wraps what a class says into an error of its own
        sys.exit(shown(f"error: {cause or str(error).splitlines()[0]}"))
