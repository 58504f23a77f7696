"""Runs cases of bad input, and remembers what went wrong."""

from __future__ import annotations

import faulthandler
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hydra.errors import HydraException
from lab.command import in_one_line
from omegaconf.errors import OmegaConfBaseException

from socialgraph.errors import SocialgraphError, shown

SECONDS = 20  # for one case; the slowest takes about one
COUNTS: dict[str, list[int]] = {}  # kind -> cases, refused


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Stop what takes longer: with an exception, and where that cannot be raised, with the end of the program."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    faulthandler.dump_traceback_later(6 * seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def as_error() -> Iterator[None]:
    """Let the one line that a command ends with be an error, as a ledger counts them."""
    try:
        yield
    except (SocialgraphError, HydraException, OmegaConfBaseException) as error:
        raise SocialgraphError(shown(f"error: {in_one_line(error)}")) from None


class Ledger:
    """Runs cases and remembers what went wrong."""

    def __init__(self, kind: str) -> None:
        self.wrong: list[str] = []
        self.counts = COUNTS.setdefault(kind, [0, 0])

    def case(self, name: str, do: Callable[[], Any], names: str, sound: bool = False) -> None:
        """Run one case; ``names`` is a pattern of which an error's message must hold a match.

        Args:
            name: of the case.
            do: the case.
            names: see above.
            sound: nothing is wrong with the input, so that an error is one too many.
        """
        self.counts[0] += 1
        with limit(SECONDS), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                do()
            except SocialgraphError as error:
                self.counts[1] += 1
                text = str(error)
                if sound:
                    self.wrong.append(f"{name}: refused, but nothing is wrong: {text}")
                if not text.isprintable() or len(text) > 1500:
                    self.wrong.append(f"{name}: not one short printable line: {text[:300]!r}")
                if not re.search(names, text):
                    self.wrong.append(f"{name}: names neither file, line, id nor option ({names}): {text}")
            except Exception as error:
                self.wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]!r}")
        for warning in warned:
            if issubclass(warning.category, UserWarning) and not str(warning.message).isprintable():
                self.wrong.append(f"{name}: a warning that is not one printable line: {str(warning.message)!r}")

    def close(self, at_least: int) -> None:
        cases, refused = self.counts
        assert self.wrong == [], "\n".join([f"{len(self.wrong)} of {cases} went wrong", *self.wrong])
        assert cases >= at_least
        assert 0 < refused < cases  # both ends are reached


@pytest.fixture(autouse=True)
def told(record_property):
    """How much was tried, for the end of a run of the tests."""
    before = {kind: list(counts) for kind, counts in COUNTS.items()}
    yield
    for kind, (cases, refused) in COUNTS.items():
        mine, no = (new - old for new, old in zip((cases, refused), before.get(kind, (0, 0)), strict=True))
        if mine:
            record_property("told", f"bad input, {kind}: {mine} cases, {no} refused, {mine - no} with a result")
