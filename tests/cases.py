"""How many cases tests try: few and always the same, or many more.

``SOCIALGRAPH_CASES=50 pytest tests`` tries fifty times as many; property tests then try other ones at each start.
"""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("SOCIALGRAPH_CASES", "1"))


def cases(amount: int) -> settings:
    """Return hypothesis's settings for so many cases, or ``SOCIALGRAPH_CASES`` times as many."""
    return settings(
        max_examples=amount * TIMES,
        derandomize=TIMES == 1,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
