"""What the commands share: how they begin, and what they log."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra

from lab.mistakes import not_begun, one_line_errors, shown_error
from lab.options.commands import check_command
from lab.options.help import register_help
from lab.overrides import spelled_out
from socialgraph.errors import no_scripting_warning, nobody_reads

CONF = Path(__file__).resolve().parents[1] / "conf"


def begin() -> None:
    """Find a class in the user's own folder, such as my_module.MyPartition, in this process and those it starts.

    Of several processes only the first one writes: the others have no output folder and no log.
    """
    if int(os.environ.get("RANK", "0")) > 0:
        sys.argv += ["hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=none"]
    sys.path.insert(0, str(Path.cwd()))
    # processes that a launcher starts find the same modules
    folders = [str(CONF.parent), str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    # tqdm reads these when it is imported: a bar goes when its stage is done, and a file gets none
    os.environ.setdefault("TQDM_LEAVE", "")
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")


def loading() -> None:
    """Say that a slow import comes."""
    if int(os.environ.get("RANK", "0")) == 0:
        print("socialgraph: loading PyTorch and transformers ...", flush=True)


def command(
    name: str, rewritten: Callable[[Sequence[str]], list[str]] = spelled_out
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for what a command does with its configuration, ``conf/<name>.yaml``.

    What is typed is held against its options before anything heavy is imported, and each mistake ends in one line,
    also one that Hydra finds.

    Args:
        name: of the command.
        rewritten: what is typed -> what Hydra takes.
    """

    def decorated(task: Callable[..., None]) -> Callable[..., None]:
        register_help()
        begun = False

        @functools.wraps(task)
        def checked(config: Any) -> None:
            nonlocal begun
            begun = True
            with one_line_errors(name):
                check_command(config, name)
                loading()
                with logged(), no_scripting_warning():
                    task(config)

        configured = hydra.main(version_base="1.3", config_path=str(CONF), config_name=name)(checked)

        @functools.wraps(task)
        def main(config: Any = None) -> None:
            os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra lets errors pass, and here they become one line
            try:
                with one_line_errors(name):
                    sys.argv[1:] = rewritten(sys.argv[1:])
                    configured(config)
            except BrokenPipeError:
                nobody_reads()
            except Exception as error:
                if begun:
                    raise
                sys.exit(shown_error(not_begun(error)))

        return main

    return decorated


@contextmanager
def logged() -> Iterator[None]:
    """Keep log lines out of bars, say each of our warnings once, and leave out what libraries say of themselves."""
    import logging
    import warnings

    from tqdm.contrib.logging import logging_redirect_tqdm

    logging.captureWarnings(True)
    usual, warnings.formatwarning = warnings.formatwarning, lambda message, *_: f"warning: {message}"
    for library in ("matplotlib", "httpx", "submitit"):
        logging.getLogger(library).setLevel(logging.WARNING)
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # that it looks for fonts, once
    if int(os.environ.get("RANK", "0")) > 0:
        logging.disable(logging.INFO)  # of several processes the first one speaks
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
