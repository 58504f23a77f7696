"""Which questions of a split are asked."""

from itertools import pairwise

from lab.task import sampled

from socialgraph.data import Split


def test_questions_that_were_asked_before_are_left_out():
    names = [f"q{n}" for n in range(40)]
    split = Split(
        {name: "words" for name in names},
        {name: {"relevant": 1} for name in names},
        {name: {"other": 2.0} | ({"relevant": 1.0} if n % 4 else {}) for n, name in enumerate(names)},
    )
    every = [sampled(split, None, 2, answerable=True, skipped=skipped).queries.keys() for skipped in range(31)]
    assert every[0] == {name for n, name in enumerate(names) if n % 4}  # the others have no relevant candidate
    assert all(len(before - after) == 1 and after < before for before, after in pairwise(every))
    first, fresh = (sampled(split, 10, 2, answerable=True, skipped=skipped) for skipped in (0, 10))
    assert first.queries.keys() == every[0] - every[10]
    assert fresh.queries.keys() == fresh.qrels.keys() == fresh.candidates.keys() == every[10] - every[20]
