"""Do classes of your own keep their contracts? Tried on hard graphs; what is broken is named in one line."""

from socialgraph.testing.model import check_model
from socialgraph.testing.partition import check_partition
from socialgraph.testing.pattern import check_pattern

__all__ = ["check_model", "check_partition", "check_pattern"]
