"""How common each word piece is in a collection."""

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
from socialgraph.data.encoder import BATCH_CHARACTERS
from socialgraph.data.pair_counts import PairCounts
from socialgraph.data.tokens import Tokens
from socialgraph.errors import OptionError


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
            kept = self._kept(f"pairs, window {window}, least {least}", partial(self._count_pairs, window, least))
            self.counted[window, least] = PairCounts(**kept)
        return self.counted[window, least]

    def _count_pairs(self, window: int, least: int) -> dict[str, Tensor]:
        if self.texts is None:
            raise OptionError(
                f"nobody has counted which words stand within {window} places of each other, and the texts are "
                "gone: hand over a collection, or call ranker.count(texts)"
            )
        counts = PairCounts.of(self.texts(), self.document_frequency.numel(), window, least)
        return {"key": counts.key, "count": counts.count, "frequency": counts.frequency}

    def _known(self) -> tuple[Tensor, int]:
        """Return document frequencies and the number of documents; they are counted when they are first asked for."""
        if self._counts is None:
            kept = self._kept("document frequencies", self._count_documents)
            self._counts = kept["frequency"], int(kept["size"])
        return self._counts

    def _count_documents(self) -> dict[str, Tensor]:
        assert self._source is not None
        frequency, size = _frequency(pieces(*self._source), self._source[0].vocab_size)
        return {"frequency": frequency, "size": torch.tensor(size)}

    def _kept(self, what: str, count: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
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
