"""What it looks like: a document's social graph in networkx, in numbers, as a picture and as a page.

What draws is imported when it is asked for (PEP 562): Matplotlib takes half a second, and most commands draw nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from socialgraph.inspect.describe import describe, describe_all
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.inspect.networkx import to_graphml, to_networkx
from socialgraph.inspect.report import View, report

if TYPE_CHECKING:
    from socialgraph.inspect.by_length import draw_by_length, measures_by_length
    from socialgraph.inspect.figure import draw
    from socialgraph.inspect.leaders_figure import draw_leaders
    from socialgraph.inspect.patterns_figure import draw_patterns
    from socialgraph.inspect.sizes_figure import circle_sizes, draw_circle_sizes

__all__ = [
    "View",
    "circle_sizes",
    "describe",
    "describe_all",
    "draw",
    "draw_by_length",
    "draw_circle_sizes",
    "draw_leaders",
    "draw_patterns",
    "measures_by_length",
    "report",
    "scores_without",
    "to_graphml",
    "to_networkx",
]

_LATER = {
    "circle_sizes": "sizes_figure",
    "draw": "figure",
    "draw_by_length": "by_length",
    "draw_circle_sizes": "sizes_figure",
    "draw_leaders": "leaders_figure",
    "draw_patterns": "patterns_figure",
    "measures_by_length": "by_length",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"socialgraph.inspect.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
