"""Do your own classes keep the promises? Every law is tried on hard graphs; a broken one is named in one line.

And what can a partition bring together? :func:`probe` tries it on made-up documents whose answers are known.
"""

from socialgraph.testing.model import check_model
from socialgraph.testing.partition import check_partition
from socialgraph.testing.pattern import check_pattern
from socialgraph.testing.probe import Probe, probe

__all__ = ["Probe", "check_model", "check_partition", "check_pattern", "probe"]
