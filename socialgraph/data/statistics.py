"""How common each word piece is in a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from socialgraph.data.collection import Document
from socialgraph.data.pair_counts import PairCounts
from socialgraph.data.token_store import text_batches
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
        folder: where pair counts are kept for the next time.
    """

    def __init__(
        self,
        document_frequency: Tensor,
        size: int,
        texts: Callable[[], Iterable[Tensor]] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.document_frequency = document_frequency
        self.size = size
        self.texts = texts
        self.folder = folder
        #: pair counts that were asked for, by window and least count
        self.counted: dict[tuple[int, int], PairCounts] = {}
        # Taken here, on the CPU, once, and rounded: other devices and processors differ in a logarithm's last digit.
        idf = torch.log((1.0 + size) / (1.0 + document_frequency.cpu().double()))
        self.idf = torch.round(idf * 2.0**30) / 2.0**30

    @classmethod
    def count(cls, documents: Iterable[Tensor], vocab_size: int) -> TermStatistics:
        """Count over documents of word pieces, each ``[L]``."""
        frequency, size = torch.zeros(vocab_size, dtype=torch.long), 0
        for ids in documents:
            frequency[torch.unique(ids.long())] += 1
            size += 1
        return cls(frequency, size)

    @classmethod
    def of(cls, tokens: Tokens, documents: Mapping[str, Document]) -> TermStatistics:
        """Count over what is read of a collection's documents; from the store's own count where there is a store."""
        texts = partial(pieces, tokens, documents)
        if tokens.store is None:
            counted = cls.count(texts(), tokens.vocab_size)
            return cls(counted.document_frequency, counted.size, texts)
        length = tokens.max_document_length
        folder = tokens.store.folder / f"pairs-{length}"
        return cls(tokens.store.document_frequency(length), len(tokens.store), texts, folder)

    def pairs(self, window: int = 8, least: int = 5) -> PairCounts:
        """Return how often word pieces stand near each other in the collection; counted once, when first asked.

        Args:
            window: places that count as near.
            least: pairs that are rarer are left out.

        Raises:
            OptionError: the texts are gone, as in a ranker that was saved before anyone asked.
        """
        if (window, least) not in self.counted:
            file = self.folder and self.folder / f"window-{window}-least-{least}.safetensors"
            self.counted[window, least] = PairCounts.kept(file, partial(self._count_pairs, window, least))
        return self.counted[window, least]

    def _count_pairs(self, window: int, least: int) -> PairCounts:
        if self.texts is None:
            raise OptionError(
                f"nobody has counted which words stand within {window} places of each other, and the texts are "
                "gone: hand over a collection, or call ranker.count(texts)"
            )
        return PairCounts.of(self.texts(), self.document_frequency.numel(), window, least)

    def tfidf(self, ids: Tensor) -> Tensor:
        """Return the weight of each token of one document ``[L]``, float64."""
        ids = ids.long()
        return torch.bincount(ids, minlength=1)[ids] * self.idf[ids]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} documents, {self.idf.numel()} word pieces)"


def pieces(tokens: Tokens, documents: Mapping[str, Document]) -> Iterable[Tensor]:
    """Yield the word pieces of each document that are read, ``[L]``."""
    total = len(documents) if isinstance(documents, dict) else None  # a store on disk may have to be built first
    stream = tqdm(documents.values(), "reading words", total, unit="doc", disable=None, leave=False)
    for batch in text_batches(stream):
        texts = {document.doc_id: document for document in batch}
        yield from tokens.documents(list(texts), texts)
