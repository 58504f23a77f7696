"""A ranker as a transformer of PyTerrier: ``bm25 >> pt.text.get_text(dataset) >> SocialgraphReranker(ranker)``.

PyTerrier comes with the extra: ``pip install 'socialgraph-ir[pyterrier]'``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyterrier as pt

from socialgraph import ranking
from socialgraph.data import Document
from socialgraph.errors import InputError
from socialgraph.ranker.ranker import BATCH, Ranker

if TYPE_CHECKING:
    from pandas import DataFrame


class SocialgraphReranker(pt.Transformer):
    """Scores the documents of each query again (R -> R).

    It needs the columns ``qid``, ``query``, ``docno`` and the text, sets ``score`` and ``rank``, and keeps all others.
    The scores are those of :func:`socialgraph.ranking.rerank` with these ids. PyTerrier: Craig Macdonald and Nicola
    Tonellotto, "Declarative Experimentation in Information Retrieval using PyTerrier", ICTIR 2020.

    Args:
        ranker: what scores.
        text_field: the column with the document's text.
        batch_size: word pieces of documents that are scored together.
        progress: show a bar; None: on a terminal, after two seconds.
    """

    def __init__(
        self, ranker: Ranker, text_field: str = "text", batch_size: int = BATCH, progress: bool | None = None
    ) -> None:
        super().__init__()
        self.ranker = ranker
        self.text_field = text_field
        self.batch_size = batch_size
        self.progress = progress

    def transform(self, inp: DataFrame) -> DataFrame:
        """Return the same rows with new scores and ranks.

        Raises:
            InputError: a document has two texts, or a query two, or one is missing or no string.
        """
        pt.validate.result_frame(inp, extra_columns=["query", self.text_field], context=self)
        rows = list(zip(inp["qid"], inp["docno"], inp["query"], inp[self.text_field], strict=True))
        for query, document, *both in rows:
            for field, text in zip(("query", self.text_field), both, strict=True):
                if not isinstance(text, str):
                    raise InputError(f"qid {query!r}, docno {document!r}: {field!r} must be a string, got {text!r:.80}")
        queries = _one_each(((query, asked) for query, _, asked, _ in rows), "query")
        texts = _one_each(((document, text) for _, document, _, text in rows), "document")
        documents = {name: Document(name, text) for name, text in texts.items()}
        pairs = list(zip(map(str, inp["qid"]), map(str, inp["docno"]), strict=True))
        candidates: dict[str, dict[str, float]] = {}
        for query, document in pairs:
            candidates.setdefault(query, {})[document] = 0.0
        run = ranking.rerank(
            self.ranker.model, self.ranker.builder(documents), queries, candidates, self.batch_size,
            progress=self.progress,
        )  # fmt: skip
        return pt.model.add_ranks(inp.assign(score=[run[query][document] for query, document in pairs]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ranker!r})"


def _one_each(pairs: Iterable[tuple[object, str]], what: str) -> dict[str, str]:
    """Return texts by name.

    Raises:
        InputError: a name has two.
    """
    text_of: dict[str, str] = {}
    for name, text in pairs:
        if text_of.setdefault(str(name), text) != text:
            raise InputError(f"{what} {name!r} has two texts: one each is needed")
    return text_of
