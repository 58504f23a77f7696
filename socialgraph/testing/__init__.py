"""Do your own classes keep the promises? Every law is tried on hard graphs; a broken one is named in one line.

And what can a partition bring together? :func:`probe` tries it on made-up documents whose answers are known.
And what can a model carry there? :func:`probe_model` trains a small one.
"""

from socialgraph.testing.model import check_model
from socialgraph.testing.partition import check_partition
from socialgraph.testing.pattern import check_pattern
from socialgraph.testing.probe import Probe, probe
from socialgraph.testing.probe_model import ModelProbe, probe_model

__all__ = ["ModelProbe", "Probe", "check_model", "check_partition", "check_pattern", "probe", "probe_model"]
