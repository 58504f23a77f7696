"""Whole words of a document, which of them are the query's, and names that tell its circles apart."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from socialgraph.lexical import STOPWORDS_EN_PLUS

#: words that tell nothing about a text, English ones
STOP_WORDS = frozenset(STOPWORDS_EN_PLUS)
#: characters of a word in a name, and of the words of a name together
LONGEST, ROOM = 20, 26
#: words of a name
MOST = 3


def continues(piece: str) -> bool:
    """Whether a word piece goes on with the word of the one before."""
    return piece.startswith("##") and len(piece) > 2


def whole_words(pieces: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the words that word pieces make, in lower case, and for each piece the place of its word among them."""
    words: list[str] = []
    places = []
    for piece in pieces:
        if words and continues(piece):
            words[-1] += piece[2:]
        else:
            words.append(piece)
        places.append(len(words) - 1)
    return [word.casefold() for word in words], places


def telling(word: str) -> bool:
    """Return whether a word says something by itself: no punctuation, no single letter, no stop word."""
    spoken = all(unicodedata.category(one)[0] in "LNM" for one in word) and any(one.isalnum() for one in word)
    return spoken and (len(word) > 1 or not word.isascii()) and word not in STOP_WORDS


def query_nodes(pieces: Sequence[str], query: Sequence[str]) -> list[int]:
    """Return the nodes whose whole word is one of the query's, without stop words.

    Args:
        pieces: the document's word pieces, one for each node.
        query: the query's word pieces.
    """
    asked = {word for word in whole_words(query)[0] if telling(word)}
    words, places = whole_words(pieces)
    return [node for node, place in enumerate(places) if words[place] in asked]


def query_pieces(query: str) -> list[str]:
    """Return a query's words where its word pieces are not known."""
    return re.findall(r"\w+", query.casefold())


def circle_names(pieces: Sequence[str], circles: Sequence[Sequence[int]]) -> list[str]:
    r"""Return a name for each circle: its two or three most distinctive words, no two names the same.

    A word t of circle c weighs

    .. math:: tf_{t, c} \, \ln \frac{1 + C}{cf_t}

    with tf the number of its occurrences that have a member in the circle, and cf the number of the C circles in which
    it occurs: tf-idf, with circles for documents. Numbers come after words. A circle without such a word is called
    "circle", with its number, from 0.

    Args:
        pieces: the document's word pieces, one for each node.
        circles: the members of each circle.
    """
    words, places = whole_words(pieces)
    spoken = [telling(word) for word in words]
    counts = [
        Counter(words[place] for place in sorted({places[node] for node in members}) if spoken[place])
        for members in circles
    ]
    circles_of = Counter(itertools.chain.from_iterable(counts))
    names: list[str] = []
    for number, count in enumerate(counts):
        weight = {word: amount * math.log((1 + len(counts)) / circles_of[word]) for word, amount in count.items()}
        # the sort is stable: of equals the first of the text
        best = sorted(weight, key=lambda word: (word.isnumeric(), -weight[word]))
        names.append(next((name for name in _candidates(best) if name not in names), f"circle {number}"))
    return names


def _candidates(best: Sequence[str]) -> Iterator[str]:
    """Yield names of two or three of the best words, the best names first."""
    kept: list[str] = []
    for word in best:
        # one of "symlink" and "symlinks" is enough
        if len(kept) < 12 and word.removesuffix("s") not in {one.removesuffix("s") for one in kept}:
            kept.append(word)
    kept = [word if len(word) <= LONGEST else word[: LONGEST - 1] + "…" for word in kept]
    if len(kept) == 1:
        yield kept[0]
    for chosen in sorted(itertools.combinations(range(len(kept)), MOST), key=sum):
        if sum(len(kept[place]) for place in chosen) <= ROOM:
            yield ", ".join(kept[place] for place in chosen)
            break
    for first, second in sorted(itertools.combinations(range(len(kept)), 2), key=sum):
        yield f"{kept[first]}, {kept[second]}"
