"""Made-up documents whose answers are known: who should meet whom, how far apart they stand, and what leads astray."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges import draw_key
from socialgraph.errors import OptionError, check_choice
from socialgraph.testing.documents import document

#: words of the made-up language; those of a query are others
VOCABULARY = 5000
#: the id of the first word: those below are special in most vocabularies
FIRST_WORD = 1000
#: no distractor stands nearer than so many words to a key or to an answer
MARGIN = 32


class KnownAnswer(NamedTuple):
    """A document and a query, and whom a good circle brings together."""

    graph: Data  #: what patterns and partitions see, see :func:`socialgraph.testing.documents.document`
    one: Tensor  #: places of the key, or of the first half of the answer, ``[a]``
    other: Tensor  #: places of the fact, or of the second half, ``[b]``


class Layout(NamedTuple):
    """Places of what matters, counted from its first word."""

    keys: list[list[int]]  # of each group of the query's words that stand side by side
    one: list[int]
    other: list[int]


def fact(distance: int) -> Layout:
    """Return a key of two words and a fact of four, the nearest of them ``distance`` apart."""
    return Layout(keys=[[0, 1]], one=[0, 1], other=[1 + distance + n for n in range(4)])


def halves(distance: int) -> Layout:
    """Return two halves of an answer, ``distance`` apart, each with a key of its own on its outer side."""
    second = [5 + distance + n for n in range(4)]
    return Layout(keys=[[0, 1], [second[-1] + 1, second[-1] + 2]], one=[2, 3, 4, 5], other=second)


#: "fact": the query's words stand once, and what they ask for stands apart from them; "halves": each half of the answer
#: stands beside words of the query, and the halves stand apart from each other
KINDS: dict[str, Callable[[int], Layout]] = {"fact": fact, "halves": halves}


def known_answer(number: int, kind: str, length: int, distance: int, distractors: int) -> KnownAnswer:
    """Return the made-up document of this number.

    Its words are drawn by Zipf's law, so that few are common and most are rare; their tf-idf follows from the law. A
    key is made of two words that the language does not have. An answer is made of the words that would stand there
    anyway: nothing marks it but its place. A distractor is a key at a random place with nothing to say.

    What is drawn depends on ``number`` alone: the same words, coins and order at every distance, and few distractors
    are among many. So two such documents differ in what is asked for, and in nothing else.

    Raises:
        OptionError: an unknown kind, or the document is too short.
    """
    check_choice("kind", kind, KINDS)
    draw = torch.Generator().manual_seed(number)
    words = torch.multinomial(zipf(), length, replacement=True, generator=draw)
    where, turned = torch.rand(2, generator=draw, dtype=torch.float64).tolist()
    slots = torch.randperm(length // 2, generator=draw) * 2

    keys, one, other = KINDS[kind](distance)
    extent = max(keys[-1][-1], other[-1]) + 1
    start = int(where * (length - extent + 1))

    def place(inside: list[int]) -> Tensor:
        """Return places in the document; half of the documents tell it backwards."""
        there = torch.tensor(inside)
        return start + (there if turned < 0.5 else extent - 1 - there).sort().values

    taken = torch.cat([place(one), place(other), *map(place, keys)])
    free = ((slots[:, None] - taken).abs() > MARGIN + 1).all(1)
    if extent > length or int(free.sum()) < distractors:
        what = f"{distractors} distractors and an answer that is {distance} apart"
        raise OptionError(f"a document of {length} words has no room for {what}; take a longer one")
    for copy in range(len(keys) + distractors):
        key = copy % len(keys)
        here = place(keys[key]) if copy < len(keys) else slots[free][copy - len(keys)] + torch.arange(2)
        words[here] = VOCABULARY + 2 * key + torch.arange(2)
    query = [FIRST_WORD + VOCABULARY + n for n in range(2 * len(keys))]
    graph = document((FIRST_WORD + words).tolist(), query, tfidf(words, length).tolist())
    graph.draw_key = torch.tensor([draw_key(number, torch.tensor([]), torch.tensor([]))])
    return KnownAnswer(graph, place(one), place(other))


@lru_cache(maxsize=1)
def zipf() -> Tensor:
    """Return how often each word of the language is said, ``[VOCABULARY]``, with Mandelbrot's 2.7 for English."""
    share = 1.0 / (torch.arange(VOCABULARY, dtype=torch.float64) + 3.7)
    return share / share.sum()


def tfidf(words: Tensor, length: int) -> Tensor:
    """Return the weight of each word, were the collection made of such documents; a key is as rare as the last word."""
    share = zipf()[words.clamp(max=VOCABULARY - 1)]
    return -torch.bincount(words)[words] * torch.log(1.0 - (1.0 - share) ** length)
