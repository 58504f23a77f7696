"""What it looks like: a document's social graph in networkx and as a picture."""

from socialgraph.inspect.figure import draw
from socialgraph.inspect.networkx import to_networkx

__all__ = ["draw", "to_networkx"]
