"""What the commands share: how they begin, what they log, and errors of one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONF = Path(__file__).resolve().parents[1] / "conf"


def begin() -> None:
    """Say that a slow import comes, and find a class in the user's own folder, such as my_module.MyPartition.

    Of several processes only the first one writes: the others have no output folder and no log.
    """
    if int(os.environ.get("RANK", "0")) > 0:
        sys.argv += ["hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=none"]
    elif "--help" not in sys.argv:
        print("socialgraph: loading PyTorch and transformers ...", flush=True)
    sys.path.insert(0, str(Path.cwd()))
    # processes that a launcher starts find the same modules
    folders = [str(CONF.parent), str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    os.environ.setdefault("TQDM_LEAVE", "")  # tqdm reads it when it is imported: a bar goes when its stage is done


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the mistakes that a user can make into one line and exit status 1."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from socialgraph.errors import SocialgraphError, shown

    try:
        yield
    except (SocialgraphError, HydraException, OmegaConfBaseException) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, SocialgraphError):
            cause = cause.__cause__  # hydra wraps what a class says into an error of its own
        sys.exit(shown(f"error: {cause or whole_message(error)}"))


def whole_message(error: Exception) -> str:
    """Return what an error of Hydra says in one line: where a class failed, also what the class said."""
    first, *others = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{first} {others[0]}" if first.endswith(":") and others else first


@contextmanager
def logged() -> Iterator[None]:
    """Keep log lines out of bars, and out of the log what other libraries say of themselves."""
    import logging

    from tqdm.contrib.logging import logging_redirect_tqdm

    logging.captureWarnings(True)
    for library in ("matplotlib", "httpx", "submitit"):
        logging.getLogger(library).setLevel(logging.WARNING)
    if int(os.environ.get("RANK", "0")) > 0:
        logging.disable(logging.INFO)  # of several processes the first one speaks
    with logging_redirect_tqdm():
        for handler in logging.getLogger().handlers:
            handler.setLevel(logging.INFO)  # bm25s sets its own level, to DEBUG
        yield
