"""What can go wrong, said in one line that tells what to do."""

import difflib
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from typing import NoReturn


class SocialgraphError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(SocialgraphError, ValueError):
    """Data that cannot be used. The message names the file and line, or the id."""


class OptionError(SocialgraphError, ValueError):
    """An option out of its range. The message says the range and what came."""


class CheckpointError(SocialgraphError, ValueError):
    """A model folder that cannot be used. The message names the file or the key."""


class OutputError(SocialgraphError, OSError):
    """A folder that cannot be written: full, closed, or in use. The message says which, and what to do."""


class TooLargeError(SocialgraphError, RuntimeError):
    """A document or a training step that does not fit in memory. The message names it, and what to lower."""


class TrainingError(SocialgraphError, RuntimeError):
    """A training that cannot go on. The message names the step, and the last good checkpoint."""


class ContractError(SocialgraphError, AssertionError):
    """A strategy or model that breaks a contract. The message names it, the contract, the graph and what is wrong.

    Args:
        strategy: the partition, pattern, sampler or model.
        contract: what must hold.
        where: name of the graph or document.
        violation: what is wrong there.
    """

    def __init__(self, strategy: object, contract: str, where: str, violation: str) -> None:
        try:
            name = repr(strategy)
        except Exception:  # that may be what is broken
            name = ""
        if not name or "\n" in name:  # a model prints all its layers
            name = type(strategy).__name__
        super().__init__(f"{name} breaks the contract {contract!r} on the graph {where!r}: {violation}")


#: what comes from outside, whoever is asked. All else that a class or a file of the user's own raises becomes a line,
#: also what is no ``Exception``: the end of the program, or a panic of a library in Rust
FROM_OUTSIDE = (KeyboardInterrupt, GeneratorExit)


@contextmanager
def no_scripting_warning() -> Iterator[None]:
    """Import PyG without what PyTorch, from 2.14, says at each start: PyG still scripts two of its classes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", FutureWarning)
        yield


def nobody_reads() -> NoReturn:
    """End where what reads our output, ``head`` perhaps, has gone; and let Python flush what is left to nobody."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


def is_user_defined(strategy: object) -> bool:
    """Whether the class of a strategy is the user's own, none of this package."""
    return not f"{type(strategy).__module__}.".startswith("socialgraph.")


@contextmanager
def blaming(strategy: object, where: str) -> Iterator[None]:
    """Turn whatever a class of the user's own raises into one line that names class, file and line.

    Args:
        strategy: the partition or pattern that is asked inside.
        where: name of the graph or document.

    Raises:
        ContractError: in place of what was raised, which is its cause.
    """
    try:
        yield
    except (SocialgraphError, *FROM_OUTSIDE):
        raise
    except BaseException as error:
        if not is_user_defined(strategy):
            raise
        raise ContractError(strategy, "every graph gets an answer", where, raised(strategy, error)) from error


def raised(strategy: object, error: BaseException) -> str:
    """Return what a strategy has raised, and in which line of its own file."""
    at = ""
    with suppress(TypeError, OSError):  # typed into a notebook, say
        at = raised_at(error, inspect.getfile(type(strategy)))
    return f"it raises {type(error).__name__}: {first_line(error)}{at}"


def raised_at(error: BaseException, file: str) -> str:
    """Return the last line of a file that an error came through, " (file:line)", or nothing."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({file}:{lines[-1]})" if lines else ""


def is_whole(value: object, low: int) -> bool:
    """Whether an option is a whole number from ``low`` to 2^31 - 1: tensors take no larger, and no fraction."""
    return isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) < 1 << 31


def check_whole(name: str, value: object, low: int, or_none: bool = False) -> None:
    """Refuse an option that is no whole number from ``low`` on.

    Args:
        name: of the option.
        value: what came.
        low: the lowest that it may be.
        or_none: whether it may be None as well.

    Raises:
        OptionError: names the option and what it may be.
    """
    if not (is_whole(value, low) or (or_none and value is None)):
        kind = "" if isinstance(value, int) else "a whole number of "
        raise OptionError(f"{name} must be {kind}at least {low}{' or None' if or_none else ''}, got {value!r}")


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Refuse an option that is none of its choices.

    Args:
        name: of the option.
        value: what came.
        choices: what it may be.

    Raises:
        OptionError: names all choices.
    """
    if value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(map(str, choices))}, got {value!r}")


def first_line(error: BaseException) -> str:
    """Return the first line of what an error of another library says, or its name where it says nothing."""
    try:
        text = str(error).strip()
    except Exception:  # an error of the user's own may have no words
        text = ""
    return (text or type(error).__name__).splitlines()[0][:300]


def suggestion(name: str, names: Sequence[str], before: str = "") -> str:
    """Return which of some names one may have meant; what stands before all of them is not compared."""
    if near := difflib.get_close_matches(name, names, n=1):
        return f"did you mean {before}{near[0]}?"
    return f"there are: {', '.join(names) or 'none'}" if len(names) < 40 else f"none of the {len(names)} is like it"


def counted(number: int, what: str) -> str:
    """Return "1 step", "1,000 steps"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def shown(text: str) -> str:
    r"""Return a text on one line, with `\x1b` for an escape: a terminal would obey it, and a turned direction hides."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def check_between(name: str, value: float, low: float, high: float) -> None:
    """Refuse an option that is no number from ``low`` to ``high``.

    Args:
        name: of the option.
        value: what came.
        low: the lowest that it may be.
        high: the highest.

    Raises:
        OptionError: names the option and its range.
    """
    if not isinstance(value, Real) or not low <= value <= high:
        raise OptionError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
