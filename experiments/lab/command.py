"""What the commands share: how they begin, what they log, and errors of one line."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
    os.environ.setdefault("TQDM_LEAVE", "")  # tqdm reads it when it is imported: a bar goes when its stage is done


def loading() -> None:
    """Say that a slow import comes."""
    if int(os.environ.get("RANK", "0")) == 0:
        print("socialgraph: loading PyTorch and transformers ...", flush=True)


def command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for what a command does with its configuration, ``conf/<name>.yaml``.

    What is typed is held against its options before anything heavy is imported, and each mistake ends in one line,
    also one that Hydra finds.
    """

    def decorated(task: Callable[..., None]) -> Callable[..., None]:
        import hydra

        from lab.options.commands import check_command
        from lab.options.page import register_help
        from lab.overrides import spelled_out

        register_help()
        begun = False

        @functools.wraps(task)
        def checked(config: Any) -> None:
            nonlocal begun
            begun = True
            with one_line_errors(name):
                check_command(config, name)
                loading()
                with logged():
                    task(config)

        configured = hydra.main(version_base="1.3", config_path=str(CONF), config_name=name)(checked)

        @functools.wraps(task)
        def main(config: Any = None) -> None:
            os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra lets errors pass, and here they become one line
            try:
                with one_line_errors(name):
                    sys.argv[1:] = spelled_out(sys.argv[1:])
                    configured(config)
            except Exception as error:
                if begun:
                    raise
                sys.exit(shown_error(not_begun(error)))

        return main

    return decorated


@contextmanager
def one_line_errors(command: str = "run") -> Iterator[None]:
    """Turn the mistakes that a user can make into one line and exit status 1."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from socialgraph.errors import SocialgraphError

    try:
        yield
    except (SocialgraphError, HydraException, OmegaConfBaseException) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, SocialgraphError):
            cause = cause.__cause__  # hydra wraps what a class says into an error of its own
        sys.exit(shown_error(str(cause) if cause else whole_message(error, command)))


def shown_error(text: str) -> str:
    """Return an error as a line of its own: what a progress bar has left on the terminal's line is wiped off."""
    from socialgraph.errors import shown

    return ("\r\x1b[K" if sys.stderr.isatty() else "") + shown(f"error: {text}")


def not_begun(error: Exception) -> str:
    """Return why Hydra could not begin: an option of its own is wrong."""
    from socialgraph.errors import first_line

    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be written ({error.strerror}): choose another folder, hydra.run.dir=..."
    return f"Hydra could not begin: {first_line(error)}"


def whole_message(error: Exception, command: str = "run") -> str:
    """Return what an error of Hydra says in one line.

    Args:
        error: of Hydra or OmegaConf.
        command: whose options may be meant.
    """
    from hydra.errors import MissingConfigException

    from socialgraph.errors import first_line

    first, *others = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        return f"there is no {error.missing_cfg_file}; there are: {', '.join(error.options)}"
    place = re.search(r"full_key: (\S+)", f"{error}\n{error.__cause__}")
    if match := re.match(r"Could not override '([\w.]+)'\.", first):
        return no_option(place[1] if place else match[1], command)
    if ", set env var" in first:  # a class that cannot be imported
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        first = f"{first.split(', set env var')[0]} ({first_line(cause)})"
    if first.endswith(":") and others:
        return f"{first} {others[0]}"
    return f"{place[1]}: {first}" if place else first


def no_option(name: str, command: str) -> str:
    """Return that a configuration has no option of this name, and which one may be meant."""
    from lab.options.commands import COMMANDS
    from lab.options.kinds import names_of, unknown

    group = name.rpartition(".")[0]
    known = [one for one in names_of(COMMANDS[command]) if one.rpartition(".")[0] == group]
    if name in known:
        return f"{name} is an option of another file of {group}: choose one with {group}=..."
    if not known or group.endswith(".arguments"):
        told = "where a class of your own, a table or the training library takes it, type"
        return f"no option is called {name}; {told} +{name}=..."
    return unknown(name, known)


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
