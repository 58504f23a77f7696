"""Long-document ranking as graph learning: Socialformer and its relatives on PyTorch Geometric.

The package listing tells the story in the order in which data flows: words meet (``edges``), friends gather in
circles (``partition``), both on a collection's documents (``data``), they talk inside and across circles (``nn``), and
the leaders' views become a ranking (``ranking``). ``inspect`` shows what happened.
"""

from importlib.metadata import version

__version__ = version("socialgraph-ir")
