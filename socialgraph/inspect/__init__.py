"""What it looks like: a document's social graph in networkx, in numbers, as a picture and as a page."""

from socialgraph.inspect.by_length import draw_by_length, measures_by_length
from socialgraph.inspect.circle_sizes import circle_sizes, draw_circle_sizes
from socialgraph.inspect.describe import describe, describe_all
from socialgraph.inspect.figure import draw
from socialgraph.inspect.leaders_figure import draw_leaders
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.inspect.networkx import to_graphml, to_networkx
from socialgraph.inspect.patterns_figure import draw_patterns
from socialgraph.inspect.report import View, report

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
