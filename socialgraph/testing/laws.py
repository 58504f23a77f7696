"""What all checks share: laws are tried one after the other on every graph, and the first broken one is told."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import torch

from socialgraph.errors import FROM_OUTSIDE, LawError, law_name, raised

S = TypeVar("S")
G = TypeVar("G")


def check_laws(subject: S, laws: Iterable[Callable[[S, G], str | None]], graphs: Mapping[str, G]) -> None:
    """Try every law on every graph, the graphs of a law in order: the message names the simplest graph that breaks it.

    Args:
        subject: what must obey; each law gets a copy.
        laws: each returns the offence in words, or nothing; its name is that of its function.
        graphs: by name; each law gets a copy.

    Raises:
        LawError: a law is broken, or the subject raises something.
    """
    copied(subject)
    for law in laws:
        for name, graph in graphs.items():
            try:
                offence = law(copy.deepcopy(subject), copy.deepcopy(graph))
            except (LawError, *FROM_OUTSIDE):
                raise
            except BaseException as error:  # whatever the subject raises, the message says where
                raise LawError(subject, law_name(law), name, raised(subject, error)) from error
            if offence:
                raise LawError(subject, law_name(law), name, offence)


def copied(subject: S) -> S:
    """Return a copy of what is checked.

    Raises:
        LawError: it holds something that cannot be copied, and so not be handed to a worker, as a lock.
    """
    try:
        return copy.deepcopy(subject)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:
        raise LawError(subject, "it can be copied", "none yet", raised(subject, error)) from error


def repr_names_every_argument(subject: object, graph: object) -> str | None:
    """``repr`` prints every constructor argument: PyG notices a changed transform by it, and tables a changed row."""
    text = repr(subject)
    for name, parameter in inspect.signature(type(subject)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        wanted = f"{name}={getattr(subject, name)!r}" if hasattr(subject, name) else f"{name}="
        if wanted not in text:
            return f"repr must say {wanted!r}, got {text!r}"
    return None


def global_generators_touched(call: Callable[[], Any]) -> str | None:
    """Return which of the global random generators a call uses or seeds, in words, or nothing.

    Randomness comes from generators of one's own: training must not depend on who draws how often.
    """
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def states() -> Iterator[tuple[str, object]]:
        yield "random", random.getstate()
        yield "numpy", [x.tobytes() if isinstance(x, np.ndarray) else x for x in np.random.get_state()]
        yield "torch", torch.get_rng_state().tolist()

    try:
        for draw in (random.random, np.random.rand, lambda: torch.rand(1)):
            draw()  # a seed that was the same before shows too
        before = list(states())
        call()
        touched = [name for (name, x), (_, y) in zip(before, states(), strict=True) if x != y]
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
        torch.set_rng_state(kept[2])
    return f"it uses or seeds the global generator of {touched[0]}; make one of your own" if touched else None
