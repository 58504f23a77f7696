"""What a partition, a pattern or a rule prints: its class and its options."""

from __future__ import annotations

import inspect
from numbers import Number


class Described:
    """Prints the options of its constructors, those of the bases first, that it keeps under their own names.

    Graphs, scores and weights are kept by what they were made by, as it prints itself: two that differ in an option
    must not look the same. An option that is no number, text, truth value or None is left out, since many an object
    prints its place in memory; a class that has one prints itself by a ``__repr__`` of its own.
    """

    def __repr__(self) -> str:
        options = {}
        for kind in reversed(type(self).__mro__):
            own = vars(kind).get("__init__")
            for name in inspect.signature(own).parameters if own else ():
                value = getattr(self, name, ...)
                if value is None or isinstance(value, Number | str):
                    options[name] = repr(value) if isinstance(value, str) else str(value)
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in options.items())})"
