"""Stages of a training: what is learned one after the other, each on groups of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def stages(shares: Mapping[str, float] | None, groups: int) -> Iterator[tuple[str | None, range]]:
    """Yield each stage of training with its groups: consecutive, by its share, one group at least.

    Args:
        shares: a recipe's ``stages``; None: there is one, which has no name.
        groups: number of training groups.
    """
    if shares is None:
        yield None, range(groups)
        return
    total, before = sum(shares.values()), 0.0
    for stage, share in shares.items():
        first, last = round(groups * before / total), round(groups * (before + share) / total)
        first = min(first, groups - 1)
        yield str(stage), range(first, max(first + 1, last))
        before += share
