"""Do your own classes keep the promises? Every law is tried on hard graphs; a broken one is named in one line."""

from socialgraph.testing.partition import check_partition
from socialgraph.testing.pattern import check_pattern

__all__ = ["check_partition", "check_pattern"]
