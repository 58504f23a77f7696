"""What can go wrong, said in one line that tells what to do."""

from numbers import Integral


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
    """A document or a group that does not fit in memory even alone. The message names it, and what to lower."""


class LawError(SocialgraphError, AssertionError):
    """A strategy that breaks a law. The message names the strategy, the law, the graph and the offender.

    Args:
        strategy: the partition or pattern.
        law: name of the law.
        where: name of the graph or document.
        offence: what is wrong there.
    """

    def __init__(self, strategy: object, law: str, where: str, offence: str) -> None:
        super().__init__(f"{strategy!r} breaks the law {law!r} on the graph {where!r}: {offence}")


def is_whole(value: object, low: int) -> bool:
    """Whether an option is a whole number from ``low`` to 2^31 - 1: tensors take no larger, and no fraction."""
    return isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) < 1 << 31


def first_line(error: BaseException) -> str:
    """Return the first line of what an error of another library says, or its name where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


def shown(text: str) -> str:
    r"""Return a text on one line, with `\x1b` for an escape: a terminal would obey it, and a turned direction hides."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
