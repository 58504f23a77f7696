"""First-stage retrieval: which documents are worth a closer look. BM25 and query likelihood.

Both read title and text, in lower case, words of two characters or more, without bm25s's English stop words,
stemmed by Snowball's English stemmer. A list holds only documents that share a word with the query; equal
scores go by document id, the smaller first.
"""

from __future__ import annotations

import logging
import warnings
from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection as Ids
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
import Stemmer
from tqdm import tqdm

from socialgraph.data.collection import Collection, Document, Queries, Run, check_scores, first_ids
from socialgraph.described import Described
from socialgraph.errors import InputError, OptionError, check_between, check_whole
from socialgraph.lexical import Tokenized, Tokenizer, bm25s

logger = logging.getLogger(__name__)
# The library asks for all of its own lines; which are shown is the program's choice.
logging.getLogger("bm25s").setLevel(logging.NOTSET)


class Retriever(Described, ABC):
    """Base of the first stages: words, index, best k.

    A subclass indexes lists of word ids (`_index`) and scores one query against all documents that share a
    word with it (`_matches`); it hides nothing else. Use:
    `Retriever().fit(collection.documents).retrieve(queries, k=100)`.

    Memory holds the index, for one query a score for each document, and what is returned.
    """

    def __init__(self) -> None:
        self._tokenizer = Tokenizer(stopwords="english", stemmer=Stemmer.Stemmer("english"))
        self._doc_ids: npt.NDArray[np.object_] | None = None
        self._by_id: npt.NDArray[np.int64]  # rows in the order of the documents' ids
        self._id_order: npt.NDArray[np.int64]  # place of each document in that order

    def fit(self, documents: Mapping[str, Document]) -> Self:
        """Index the documents, in one pass over them.

        Raises:
            InputError: There are no documents, or none of them has a word.
        """
        self._tokenizer.reset_vocab()
        ids: list[str] = []

        def texts() -> Any:
            # Not len(documents) for the bar: a store on disk may have to be built to know it.
            for document in tqdm(documents.values(), "indexing", unit="doc", disable=None, leave=False):
                ids.append(document.doc_id)
                yield document.full_text

        stream = self._tokenizer.streaming_tokenize(texts(), update_vocab=True, allow_empty=False)
        words = [array("i", one) for one in stream]  # 4 bytes a word, half of a list's
        if not any(words):
            raise InputError(f"nothing to index: {len(ids)} documents, and none of them has a word")
        self._doc_ids = np.array(ids, dtype=object)
        self._by_id = np.argsort(self._doc_ids, kind="stable")
        self._id_order = np.empty_like(self._by_id)
        self._id_order[self._by_id] = np.arange(len(ids))
        self._index(words, self._tokenizer.get_vocab_dict())
        return self

    def retrieve(self, queries: Queries, k: int = 100, exclude: Ids[str] = frozenset()) -> Run:
        """Return for each query the k best documents and their scores, best first.

        Args:
            queries: Query id -> text. A query that shares no word with any document is not in the run.
            k: At most so many documents for each query, 1 or more.
            exclude: Ids of documents that must not come out. They still count in the statistics of the collection.

        Raises:
            OptionError: k is below 1, or `fit` was not called.

        Warns:
            UserWarning: Queries that match nothing, with a count and the first ids.
        """
        check_whole("k", k, 1)
        excluded = self._rows(exclude)
        kept = np.ones(len(self._ids()), dtype=bool)
        kept[excluded] = False
        run: Run = {}
        bar = tqdm(self._asked(queries), "retrieving", len(queries), unit="query", disable=None, leave=False)
        for query_id, query in bar:
            rows, scores = self._matches(query)
            if len(excluded):
                rows, scores = rows[kept[rows]], scores[kept[rows]]
            best = self._best(rows, scores, k)
            if len(best):
                run[query_id] = dict(zip(self._ids()[rows[best]], scores[best].tolist(), strict=True))
        lost = [query_id for query_id in queries if query_id not in run]
        if lost:
            warnings.warn(f"{len(lost)} queries match no document: {first_ids(lost)}", stacklevel=2)
        return run

    def score(self, query: str, documents: Ids[str]) -> dict[str, float]:
        """Return the scores of some documents for one query, best first; those that share no word with it have none.

        Raises:
            OptionError: `fit` was not called.
        """
        wanted = np.sort(self._rows(documents))
        rows, scores = next((self._matches(words) for _, words in self._asked({"": query})), (wanted[:0], wanted[:0]))
        places = np.searchsorted(rows, wanted)
        places = places[np.append(rows, -1)[places] == wanted]  # rows come in their order
        best = places[self._best(rows[places], scores[places], len(places))]
        return dict(zip(self._ids()[rows[best]], scores[best].tolist(), strict=True))

    def _ids(self) -> npt.NDArray[np.object_]:
        if self._doc_ids is None:
            raise OptionError(f"{self!r} has no index yet: call fit(documents) first")
        return self._doc_ids

    def _rows(self, doc_ids: Ids[str]) -> npt.NDArray[np.int64]:
        """Return the rows of those of some documents that are in the index."""
        ids, wanted = self._ids(), np.array(list(doc_ids), dtype=object)
        if not len(wanted):
            return np.empty(0, np.int64)
        rows = self._by_id[np.searchsorted(ids, wanted, sorter=self._by_id).clip(max=len(ids) - 1)]
        return rows[ids[rows] == wanted]

    def _asked(self, queries: Queries) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield the words of each query that has some."""
        words = self._tokenizer.streaming_tokenize(queries.values(), update_vocab=False, allow_empty=False)
        return ((query_id, query) for query_id, query in zip(queries, words, strict=True) if query)

    def _best(self, rows: npt.NDArray[np.int64], scores: npt.NDArray[Any], k: int) -> npt.NDArray[np.int64]:
        """Return positions of the k highest scores, best first, equal scores by document id."""
        places = np.arange(len(rows))
        if len(rows) > k:
            least = np.partition(scores, len(scores) - k)[len(scores) - k]
            places = np.flatnonzero(scores >= least)  # k, and whatever ties with the last of them
        return places[np.lexsort((self._id_order[rows[places]], -scores[places]))][:k]

    @abstractmethod
    def _index(self, words: Sequence[Sequence[int]], vocabulary: dict[str, int]) -> None:
        """Index documents given as lists of word ids; `vocabulary` is word stem -> id."""

    @abstractmethod
    def _matches(self, query: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return (rows of the documents that hold a word of the query, in order, their scores); `query` has a word."""


class BM25(Retriever):
    r"""BM25 through bm25s (https://github.com/xhluca/bm25s), Lucene's variant.

    .. math:: \sum_{t \in q} \log\Big(1 + \frac{N - n_t + 0.5}{n_t + 0.5}\Big)
              \frac{f_{t,d}}{f_{t,d} + k_1 (1 - b + b\, l_d / \bar l)}

    with N documents, n_t of them with t, f_{t,d} times t in d, and d's length l_d in words. A word that comes
    twice in the query counts twice.

    Args:
        k1: How slowly repeated words saturate, 0 or more.
        b: How much long documents are held back, from 0 to 1.
    """

    def __init__(self, k1: float = 1.2, b: float = 0.75) -> None:
        super().__init__()
        check_between("k1", k1, 0, 1e12)
        check_between("b", b, 0, 1)
        self.k1 = k1
        self.b = b

    def _index(self, words: Sequence[Sequence[int]], vocabulary: dict[str, int]) -> None:
        self._bm25 = bm25s.BM25(k1=self.k1, b=self.b, method="lucene")
        self._bm25.index(Tokenized(ids=words, vocab=dict(vocabulary)), show_progress=False)

    def _matches(self, query: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        scores = self._bm25.get_scores_from_ids(list(query))
        rows = np.flatnonzero(scores)  # Lucene's idf is above 0, so a score of 0 means no word in common
        return rows, scores[rows]


class QueryLikelihood(Retriever):
    r"""Query likelihood with Dirichlet smoothing: log probability of the query in a document's model.

    .. math:: \log p(q \mid d) = \sum_{t \in q} \log \frac{f_{t,d} + \mu\, p(t \mid C)}{l_d + \mu}

    with f_{t,d} times t in d, d's length l_d in words and p(t|C) the share of t among all words of the
    collection. Words that the collection lacks are left out of the query. Zhai and Lafferty, "A study of
    smoothing methods for language models applied to ad hoc information retrieval", SIGIR 2001.

    Args:
        mu: Words' worth of the collection that are mixed into each document, above 0. The default 2000 is theirs.
    """

    def __init__(self, mu: float = 2000.0) -> None:
        super().__init__()
        check_between("mu", mu, 1e-12, 1e12)
        self.mu = mu

    def _index(self, words: Sequence[Sequence[int]], vocabulary: dict[str, int]) -> None:
        lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        columns = np.repeat(np.arange(len(words)), lengths)
        rows = np.fromiter(chain.from_iterable(words), dtype=np.int64, count=lengths.sum())
        shape = (len(vocabulary), len(words))
        # [words, documents]; equal positions are added up, so this counts
        counts = scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsr()
        self._share = counts.sum(axis=1) / lengths.sum()  # p(t|C), [words]
        self._lengths = lengths
        # log((f + mu p) / (l + mu)) = log(1 + f / (mu p)) + log(mu p / (l + mu)): the first term is 0 where f
        # is, so it is what a sparse matrix stores; the second needs only the query and the document's length.
        of_row = np.repeat(np.arange(shape[0]), np.diff(counts.indptr))
        counts.data = np.log1p(counts.data / (self.mu * self._share[of_row]))
        self._gain = counts

    def _matches(self, query: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        words, times = np.unique(np.asarray(query), return_counts=True)
        gain = self._gain[words]  # [words of the query, documents]
        rows = np.unique(gain.indices).astype(np.int64)
        scores = (times @ gain)[rows]
        scores -= len(query) * np.log(self._lengths[rows] + self.mu)
        scores += times @ np.log(self.mu * self._share[words])
        return rows, scores


def retrieve_candidates(
    collection: Collection, retriever: Retriever, depth: int = 100, splits: Sequence[str] | None = None
) -> Collection:
    """Return the collection with candidates for splits that have none. Candidates that are there stay.

    The candidates of `train` hold no document that is relevant to a query of another split, not even one that
    is relevant to the training query as well: with them a model learns that what the test asks for is never
    relevant. A query that is a document of the collection is no candidate of itself (:class:`Collection`).

    Args:
        collection: Where documents and queries come from.
        retriever: The first stage. It is fitted on the collection's documents here, if anything is to be retrieved.
        depth: Candidates for each query, 1 or more.
        splits: Which; None: all.

    Raises:
        InputError: None of a split's queries matches anything, or the first stage gave a score that is not finite.

    Warns:
        UserWarning: Queries that match nothing. They stay without candidates, and count 0 in every measure.
    """
    wanting = [
        name for name in (collection.splits if splits is None else splits) if not collection[name].has_candidates
    ]
    if not wanting:
        return collection
    logger.info("%s indexes %s", retriever, collection.name)
    retriever.fit(collection.documents)
    found = {}
    for name in wanting:
        queries = collection[name].queries
        exclude = collection.held_out_documents() if name == "train" else frozenset()
        run = retriever.retrieve(queries, depth + 1, exclude)  # one more, as a query may find itself
        if queries and not run:
            raise InputError(
                f"collection {collection.name}, split {name}: none of the {len(queries)} queries shares a word with a "
                f"document that {retriever!r} may return"
            )
        check_scores(run, f"{retriever!r}, split {name}")
        run = collection.without_identical(name, run)
        best = {query_id: dict(islice(scores.items(), depth)) for query_id, scores in run.items()}
        found[name] = collection[name].with_candidates(best)
    return collection.with_splits(collection.splits | found)
