"""Long-document ranking as graph learning: Socialformer and its relatives on PyTorch Geometric.

The package listing tells the story in the order in which data flows: words meet (``edges``), friends gather in
circles (``partition``), both on a collection's documents (``data``), they talk inside and across circles (``nn``), and
the leaders' views become a ranking (``ranking``). ``inspect`` shows what happened. ``recipes`` holds every system as a
file, and :class:`Ranker` is one of them in one object.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from socialgraph.errors import no_scripting_warning

if TYPE_CHECKING:
    from socialgraph.ranker import Ranker

__version__ = version("socialgraph-ir")
__all__ = ["Ranker", "__version__"]


def __getattr__(name: str) -> Any:
    """Import what takes seconds when it is asked for (PEP 562)."""
    if name == "Ranker":
        with no_scripting_warning():
            return import_module("socialgraph.ranker").Ranker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
