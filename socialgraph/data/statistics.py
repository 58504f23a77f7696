"""How common each word piece is in a collection, and which stand near each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial

import torch
from safetensors.torch import load, save
from torch import Tensor
from tqdm import tqdm

from socialgraph.data.batches import batches
from socialgraph.data.cache import content_key
from socialgraph.data.collection import Document, identity
from socialgraph.data.tokens import BATCH_CHARACTERS, Tokens
from socialgraph.errors import OptionError

#: word pieces whose neighbours are counted at once
_AT_ONCE = 1 << 20


class TermStatistics:
    r"""Document frequencies of word pieces, and the tf-idf weights that follow.

    .. math:: w_t = tf_{t, d} \cdot \ln \frac{1 + N}{1 + df_t}

    with tf the count of t in d. The paper says "tf-idf" and no more. A constant factor would cancel in the pattern, so
    that only the counts and the logarithm matter; the 1 keeps words that no document holds finite.

    Args:
        document_frequency: number of documents that hold each word piece, ``[V]``.
        size: number of documents N.
        texts: returns the word pieces of each document, each ``[L]``, for :meth:`pairs`; None where they are gone.
    """

    def __init__(
        self, document_frequency: Tensor, size: int, texts: Callable[[], Iterable[Tensor]] | None = None
    ) -> None:
        self._counts: tuple[Tensor, int] | None = (document_frequency, size)
        self._source: tuple[Tokens, Mapping[str, Document]] | None = None
        self.texts = texts
        #: pair counts that were asked for, by window and least count
        self.counted: dict[tuple[int, int], PairCounts] = {}

    @classmethod
    def count(cls, documents: Iterable[Tensor], vocab_size: int) -> TermStatistics:
        """Count over documents of word pieces, each ``[L]``."""
        return cls(*_frequency(documents, vocab_size))

    @classmethod
    def of(cls, tokens: Tokens, documents: Mapping[str, Document]) -> TermStatistics:
        """Count over what is read of a collection's documents, when somebody asks for it: many systems never do.

        What was counted is kept where ``tokens`` has a cache on disk.
        """
        statistics = cls(torch.empty(0), 0, partial(pieces, tokens, documents))
        statistics._counts, statistics._source = None, (tokens, documents)
        return statistics

    @property
    def document_frequency(self) -> Tensor:
        """Number of documents that hold each word piece, ``[V]`` int64."""
        return self._known()[0]

    @property
    def size(self) -> int:
        """Number of documents."""
        return self._known()[1]

    @cached_property
    def idf(self) -> Tensor:
        """The logarithm above, ``[V]`` float64."""
        # Taken on the CPU, once, and rounded: other devices and processors differ in a logarithm's last digit.
        idf = torch.log((1.0 + self.size) / (1.0 + self.document_frequency.cpu().double()))
        return torch.round(idf * 2.0**30) / 2.0**30

    def pairs(self, window: int = 8, least: int = 5) -> PairCounts:
        """Return how often word pieces stand near each other in the collection; counted once, when first asked.

        Args:
            window: places that count as near.
            least: pairs that are rarer are left out.

        Raises:
            OptionError: the texts are gone, as in a ranker that was saved before anyone asked.
        """
        if (window, least) not in self.counted:
            kept = self._cached(f"pairs, window {window}, least {least}", partial(self._count_pairs, window, least))
            self.counted[window, least] = PairCounts(**kept)
        return self.counted[window, least]

    def _count_pairs(self, window: int, least: int) -> dict[str, Tensor]:
        if self.texts is None:
            message = f"nobody has counted which words stand within {window} places of each other"
            raise OptionError(f"{message}, and the texts are gone: hand over a collection, or call ranker.count(texts)")
        counts = PairCounts.of(self.texts(), self.document_frequency.numel(), window, least)
        return {"key": counts.key, "count": counts.count, "frequency": counts.frequency}

    def _known(self) -> tuple[Tensor, int]:
        """Return document frequencies and the number of documents; they are counted when they are first asked for."""
        if self._counts is None:
            kept = self._cached("document frequencies", self._count_documents)
            self._counts = kept["frequency"], int(kept["size"])
        return self._counts

    def _count_documents(self) -> dict[str, Tensor]:
        assert self._source is not None
        frequency, size = _frequency(pieces(*self._source), self._source[0].vocab_size)
        return {"frequency": frequency, "size": torch.tensor(size)}

    def _cached(self, what: str, count: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """Return what was counted of the same texts before, where it is on disk; else count, and keep it."""
        if self._source is None or self._source[0].cache.path is None:
            return count()
        tokens, documents = self._source
        about = f"{what} of {tokens.max_document_length} word pieces of {identity(documents)}"
        key = content_key(tokens.encoder.identity, about.encode())
        for value in tokens.cache.get([key]).values():
            return load(value)
        counts = count()
        tokens.cache.put({key: save(counts)})
        return counts

    def tfidf(self, ids: Tensor) -> Tensor:
        """Return the weight of each token of one document ``[L]``, float64."""
        ids = ids.long()
        return torch.bincount(ids, minlength=1)[ids] * self.idf[ids]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} documents, {self.idf.numel()} word pieces)"


def pieces(tokens: Tokens, documents: Mapping[str, Document]) -> Iterator[Tensor]:
    """Yield the word pieces of each document that are read, ``[L]``."""
    total = len(documents) if isinstance(documents, dict) else None  # a store on disk may have to be built first
    stream = tqdm(documents.values(), "reading words", total, unit="doc", disable=None, leave=False)
    for batch in batches(stream, lambda document: len(document.text), BATCH_CHARACTERS):
        texts = {document.doc_id: document for document in batch}
        yield from tokens.documents(list(texts), texts)


def _frequency(documents: Iterable[Tensor], vocab_size: int) -> tuple[Tensor, int]:
    """Return in how many documents each word piece is, ``[V]``, and how many documents there are."""
    frequency, size = torch.zeros(vocab_size, dtype=torch.long), 0
    for ids in documents:
        frequency[torch.unique(ids.long())] += 1
        size += 1
    return frequency, size


class PairCounts:
    r"""Counts of neighbours: how often word t stands within ``window`` places of word s, in all documents.

    .. math:: n(s, t) = |\{(i, j) : 0 < |i - j| \le window, \; x_i = s, x_j = t\}|

    over the ordered pairs of places of each document, so n(s, t) = n(t, s), and a pair of equal words counts twice.
    Pairs that are rarer than ``least`` are not kept, for most pairs are; the sums still count them.

    Args:
        key: s V + t of the pairs s <= t that are kept, sorted, ``[P]``.
        count: n of each, ``[P]``.
        frequency: the sum of n(s, t) over all t, for each s, ``[V]``.
    """

    def __init__(self, key: Tensor, count: Tensor, frequency: Tensor) -> None:
        self.key = key
        self.count = count
        self.frequency = frequency
        self.total = int(frequency.sum())

    @classmethod
    def of(cls, documents: Iterable[Tensor], vocab_size: int, window: int, least: int) -> PairCounts:
        """Count over documents of word pieces, each ``[L]``."""
        frequency = torch.zeros(vocab_size, dtype=torch.long)
        key, count = frequency.new_empty(0), frequency.new_empty(0)
        for text in concatenated(documents, window):
            pairs = []
            for distance in range(1, window + 1):
                one, two = text[:-distance], text[distance:]
                within = (one >= 0) & (two >= 0)
                one, two = one[within], two[within]
                frequency += torch.bincount(torch.cat([one, two]), minlength=vocab_size)
                pairs.append(torch.minimum(one, two) * vocab_size + torch.maximum(one, two))
            # once for all distances: what is known of a large collection is far more than what is new
            new, times = torch.unique(torch.cat(pairs), return_counts=True)
            key, place = torch.unique(torch.cat([key, new]), return_inverse=True)
            count = torch.zeros_like(key).index_add_(0, place, torch.cat([count, times]))
        count = torch.where(key // vocab_size == key % vocab_size, 2 * count, count)
        kept = count >= least
        return cls(key[kept], count[kept], frequency)

    def __call__(self, s: Tensor, t: Tensor) -> Tensor:
        """Return n(s, t) for word pieces that broadcast; 0 for pairs that are not kept."""
        key = torch.minimum(s, t) * self.frequency.numel() + torch.maximum(s, t)
        if not self.key.numel():
            return torch.zeros_like(key)
        place = torch.searchsorted(self.key, key).clamp(max=self.key.numel() - 1)
        return torch.where(self.key[place] == key, self.count[place], 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key.numel():,} pairs)"


def concatenated(documents: Iterable[Tensor], window: int) -> Iterator[Tensor]:
    """Yield documents of word pieces one after the other, many in one tensor, with ``window`` times -1 behind each."""
    gap = torch.full((window,), -1)
    parts: list[Tensor] = []
    size = 0
    for ids in documents:
        parts += [ids.long(), gap]
        size += len(ids)
        if size >= _AT_ONCE:
            yield torch.cat(parts)
            parts, size = [], 0
    if parts:
        yield torch.cat(parts)
