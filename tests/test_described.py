"""What a class of one's own prints, by which its graphs and scores are found again."""

import numpy as np
import pytest

from socialgraph.partition import NodeCircles, Partition, Windows


class Mine(Partition):
    def __init__(self, size=3, name="a", like=None):
        super().__init__()
        self.size, self.name, self.like = size, name, like


class Further(NodeCircles):
    def __init__(self, answer, share=0.5, **others):
        super().__init__(**others)
        self.answer, self.share = answer, share


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (Mine(), "Mine(size=3, name='a', like=None)"),
        (Mine(4, like=Windows(8)), "Mine(size=4, name='a')"),  # what is no plain value is left out
        (Further(print, k=2), "Further(k=2, max_size=128, keep='strongest', share=0.5)"),
        (Windows(np.int64(3), k=np.int64(2)), "Windows(size=3, before=0, after=0, k=2)"),
    ],
)
def test_options_are_printed(one, text):
    assert repr(one) == text
