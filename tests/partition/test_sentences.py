"""Sentences by hand, and of random texts."""

import numpy as np
import pytest
import torch
from graphs import Graph, collate
from torch import Tensor

from socialgraph.errors import OptionError
from socialgraph.partition.sentences import Sentences


def chain(*texts: str) -> tuple[Tensor, Tensor, int, Tensor]:
    """Documents of one letter a token, tied as reading order ties them."""
    graphs = []
    for text in texts:
        cost = [{".": 1.0, "?": 1.0, "!": 1.0, ",": 2.0}.get(letter, 8.0) for letter in text[:-1]]
        row = torch.arange(len(cost))
        ends = torch.stack([torch.cat([row, row + 1]), torch.cat([row + 1, row])])
        order = torch.argsort(ends[0] * 1000 + ends[1])
        graphs.append(Graph(ends[:, order], len(text), torch.tensor(cost * 2)[order]))
    return collate(graphs)


def sentences(partition: Sentences, *texts: str) -> list[str]:
    (node, circle), leader = partition(*chain(*texts))
    letters = "".join(texts)
    found = ["".join(letters[i] for i in node[circle == c].tolist()) for c in range(leader.numel())]
    assert leader.tolist() == [int(node[circle == c][0]) for c in range(leader.numel())]
    return found


def test_sentences_by_hand() -> None:
    text = "ab,cd.efg?h!ij.klm"
    assert sentences(Sentences(), text) == ["ab,cd.", "efg?", "h!", "ij.", "klm"]
    assert sentences(Sentences(k=3), text, "", "x", "xy") == ["ab,cd.", "efg?", "ij.", "xy"]
    assert sentences(Sentences(k=1), text, text) == ["ab,cd.", "ab,cd."]
    # too long: cut at the comma; no comma: cut after so many tokens
    assert sentences(Sentences(5), text) == ["ab,", "cd.", "efg?", "h!", "ij.", "klm"]
    assert sentences(Sentences(4), "abcdefg.hi.") == ["abcd", "efg.", "hi."]
    # a full stop by itself is nobody's circle
    assert sentences(Sentences(), "ab...cd.") == ["ab.", "cd."]
    for bad in ({"max_size": 1}, {"k": 0}):
        with pytest.raises(OptionError, match="must be at least"):
            Sentences(**bad)


def test_sentences_of_random_texts() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        text = "".join(rng.choice(list("abcdefgh,.?"), int(rng.integers(1, 80))))
        want, start = [], 0
        for end in range(len(text)):
            if text[end] in ".?" or end == len(text) - 1:
                want.append(text[start : end + 1])
                start = end + 1
        assert sentences(Sentences(), text) == [sentence for sentence in want if len(sentence) > 1]
