"""Collections from public sources: what each says, how it is read, and the folder that is built of it."""

from socialgraph.data.sources.make import SOURCES, make_collection

__all__ = ["SOURCES", "make_collection"]
