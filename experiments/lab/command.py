"""How a command begins and ends, and what it logs. Nothing here is slow to import."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from socialgraph.errors import OptionError, SocialgraphError, no_scripting_warning, nobody_reads, shown

EXPERIMENTS = Path(__file__).resolve().parents[1]
#: of several processes the first one writes and speaks
IS_FIRST = int(os.environ.get("RANK", "0")) == 0

OmegaConf.register_new_resolver("experiments", lambda: str(EXPERIMENTS), replace=True)


def begin() -> None:
    """Find a class in the user's own folder, such as my_module.MyPartition, in this process and those it starts."""
    if not IS_FIRST:
        sys.argv += ["hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=none"]
    sys.path.insert(0, str(Path.cwd()))
    folders = [str(EXPERIMENTS), str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    # tqdm reads these when it is imported: a bar goes when its stage is done, and a file gets none
    os.environ.setdefault("TQDM_LEAVE", "")
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")


def loading() -> None:
    """Say that a slow import comes."""
    if IS_FIRST:
        print("socialgraph: loading PyTorch and transformers ...", flush=True)


def command(
    name: str, rewritten: Callable[[Sequence[str]], list[str]] = list
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for what a command does with its configuration, ``conf/<name>.yaml``.

    Args:
        name: of the command.
        rewritten: what is typed -> what Hydra takes.
    """

    def decorated(task: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(task)
        def logging_task(config: Any) -> None:
            loading()
            with one_line_errors(), logged(), no_scripting_warning():
                task(config)

        configured = hydra.main(version_base="1.3", config_path=str(EXPERIMENTS / "conf"), config_name=name)

        @functools.wraps(task)
        def main() -> None:
            os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra lets errors pass, and here they become one line
            with one_line_errors():
                sys.argv[1:] = rewritten(sys.argv[1:])
                configured(logging_task)()

        return main

    return decorated


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the mistakes that a user can make into one line; the exit status of a wrong option is 2, of others 1."""
    try:
        yield
    except BrokenPipeError:
        nobody_reads()
    except (SocialgraphError, HydraException, OmegaConfBaseException) as error:
        first = cause(error)
        is_data = isinstance(first, SocialgraphError) and not isinstance(first, OptionError)
        _stop(in_one_line(error), status=1 if is_data else 2)
    except OSError as error:
        if error.filename is None:
            raise
        _stop(f"{error.filename}: {error.strerror}; choose another folder, hydra.run.dir=...", status=1)
    except KeyboardInterrupt:
        _stop("interrupted: what is finished stands, and the same command goes on (hydra.run.dir=... of run.py)", 130)


def _stop(message: str, status: int) -> None:
    wiped = "\r\x1b[K" if sys.stderr.isatty() else ""  # what a progress bar has left on the terminal's line
    print(wiped + shown(f"error: {message}"), file=sys.stderr, flush=True)
    sys.exit(status)


def cause(error: BaseException) -> BaseException:
    """Return the error of ours that another library has wrapped into one of its own, or else the error."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, SocialgraphError):
        inner = inner.__cause__
    return inner or error


def in_one_line(error: BaseException) -> str:
    """Return what an error says, in one line; one of Hydra with its cause, which names the option."""
    first = cause(error)
    if isinstance(first, SocialgraphError):
        return str(first)
    lines = [line.strip() for one in (error, error.__cause__) if one is not None for line in str(one).splitlines()]
    left_out = ("object_type=", "reference_type=", "Config search path", "provider=")
    told = dict.fromkeys(line for line in lines if line and not line.startswith(left_out))
    return " ".join(told) or type(error).__name__


@contextmanager
def logged() -> Iterator[None]:
    """Keep log lines out of bars, say each of our warnings once, and leave out what libraries say of themselves."""
    from tqdm.contrib.logging import logging_redirect_tqdm

    logging.captureWarnings(True)
    usual, warnings.formatwarning = warnings.formatwarning, lambda message, *_: f"warning: {message}"
    for library in ("matplotlib", "httpx", "submitit"):
        logging.getLogger(library).setLevel(logging.WARNING)
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # that it looks for fonts, once
    if not IS_FIRST:
        logging.disable(logging.INFO)
    said: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        """Whether a line is none that a table's other rows have said: each builds its own model."""
        text = record.getMessage()
        repeated = record.levelno >= logging.WARNING and text in said
        said.add(text)
        return not repeated

    loggers = [logging.getLogger(name) for name in ("socialgraph", "py.warnings")]
    for one in loggers:
        one.addFilter(is_new)
    try:
        with logging_redirect_tqdm():
            yield
    finally:
        logging.captureWarnings(False)
        warnings.formatwarning = usual
        for one in loggers:
            one.removeFilter(is_new)
