"""Mistakes that a user can make, each as one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from lab.options.commands import COMMANDS
from lab.options.kinds import unknown, walk, words_of
from socialgraph.errors import SocialgraphError, first_line, shown, suggestion


@contextmanager
def one_line_errors(command: str = "run") -> Iterator[None]:
    """Turn the mistakes that a user can make into one line and exit status 1."""
    try:
        yield
    except (SocialgraphError, HydraException, OmegaConfBaseException) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, SocialgraphError):
            cause = cause.__cause__  # hydra wraps what a class says into an error of its own
        sys.exit(shown_error(str(cause) if cause else whole_message(error, command)))
    except Warning as error:  # python -W error, or a file of the user's own, makes errors of warnings
        sys.exit(shown_error(f"a warning, and warnings are errors here: {first_line(error)}"))


def shown_error(text: str) -> str:
    """Return an error as a line of its own: what a progress bar has left on the terminal's line is wiped off."""
    return ("\r\x1b[K" if sys.stderr.isatty() else "") + shown(f"error: {text}")


def not_begun(error: Exception) -> str:
    """Return why Hydra could not begin: an option of its own is wrong."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be written ({error.strerror}): choose another folder, hydra.run.dir=..."
    typed = [one for one in sys.argv[1:] if re.fullmatch(r"[+\w/]+=(null|true|false|[-+.\d]+)", one)]
    is_group = first_line(error).startswith("Config group override must be")
    told = f" ({' or '.join(typed)}): a group takes the name of one of its files" if is_group and typed else ""
    return f"Hydra could not begin: {first_line(error)}{told}"


def whole_message(error: Exception, command: str = "run") -> str:
    """Return what an error of Hydra says in one line.

    Args:
        error: of Hydra or OmegaConf.
        command: whose options may be meant.
    """
    first, *others = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        return f"there is no {error.missing_cfg_file}; there are: {', '.join(error.options)}"
    if first.startswith("Cannot find primary config"):
        return f"{first.split('. ')[0]}: leave out --config-name, and the command takes its own, {command}"
    if isinstance(error, OverrideParseException):
        if error.override.rstrip().endswith(","):
            return f"{error.override}: a value is missing after the last comma"
        first = first.split(" expecting ")[0]  # a list of the grammar's words
        typed = "" if error.override in first else f"{error.override}: "
        return f"{typed}{first}: an option is written key=value, and what holds other signs in quotes, key='\"a(b)\"'"
    place = re.search(r"full_key: (\S+)", f"{error}\n{error.__cause__}")
    if match := re.match(r"Could not override '([\w.]+)'\.", first):
        there = getattr(error.__cause__, "parent_node", None)
        return no_option(place[1] if place else match[1], command, [] if there is None else list(there))
    if match := re.match(r"Error merging override [+~]*([\w.]+)=(.*)", first):
        option = dict(walk(COMMANDS[command])).get(match[1])
        if option is not None:
            return f"{match[1]} must be {words_of(option.kind)}, got {match[2]}"
    if ", set env var" in first:  # a class that cannot be imported
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        first = f"{first.split(', set env var')[0]} ({first_line(cause)})"
    if first.endswith(":") and others:
        return f"{first} {others[0]}"
    return f"{place[1]}: {first}" if place else first


def no_option(name: str, command: str, there: Sequence[str] = ()) -> str:
    """Return that a configuration has no option of this name, and which one may be meant, of those that are there."""
    group, _, last = name.rpartition(".")
    known = [one for one, _ in walk(COMMANDS[command]) if one.rpartition(".")[0] == group]
    arguments = group.endswith(".arguments")  # of the training library, where nothing need be set
    if name in known and arguments:
        return f"{name} is not set: type +{name}=..."
    if name in known and group:
        return f"{name} is an option of another file of {group}: choose one with {group}=..."
    if not known or arguments:
        near = suggestion(last, there, f"{group}.")
        hint = f"{near} Otherwise, " if near.startswith("did") else ""
        where = "where a class of your own, a table or the training library takes it, type"
        return f"no option is called {name}; {hint}{where} +{name}=..."
    return unknown(name, [one for one in known if one != name])  # of another command that has the same options
