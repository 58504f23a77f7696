"""What it looks like: a document's social graph in networkx, in numbers, as a picture and as a page."""

from socialgraph.inspect.describe import describe
from socialgraph.inspect.drawing import draw
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.inspect.networkx import to_gexf, to_graphml, to_networkx
from socialgraph.inspect.patterns import pattern_probabilities
from socialgraph.inspect.report import View, report

__all__ = [
    "View",
    "describe",
    "draw",
    "pattern_probabilities",
    "report",
    "scores_without",
    "to_gexf",
    "to_graphml",
    "to_networkx",
]
