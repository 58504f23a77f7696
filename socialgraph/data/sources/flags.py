"""``flags.tsv``: which questions are clear, and where a first stage puts their document among all."""

from __future__ import annotations

from collections import Counter

import Stemmer

from socialgraph.data.collection import Run
from socialgraph.data.sources.source import Contents
from socialgraph.lexical import bm25s

_RARE = 0.02  # share of the documents that may hold a word which tells one apart


def flags(contents: Contents, run: Run) -> str:
    """Return a line for each question, sorted by id: id, anchored (1 or 0), rank.

    A question is anchored if it shares a word with its document that at most 2 % of the documents hold. Words are those
    of the first stage: without English stop words, stemmed. The rank is the document's in ``run``, from 1, and 0 if it
    is not there.
    """
    texts = [document.full_text for document in contents.documents.values()]
    words = dict(zip(contents.documents, _words(texts), strict=True))
    count = Counter(word for held in words.values() for word in held)
    rare = {word for word, holders in count.items() if holders <= _RARE * len(words)}
    lines = []
    questions = sorted(contents.questions)
    for one, asked in zip(questions, _words([one.text for one in questions]), strict=True):
        anchored = bool(asked & words[one.doc_id] & rare)
        ranked = list(run.get(one.query_id, {}))
        rank = ranked.index(one.doc_id) + 1 if one.doc_id in ranked else 0
        lines.append(f"{one.query_id}\t{int(anchored)}\t{rank}\n")
    return "".join(lines)


def _words(texts: list[str]) -> list[set[str]]:
    stem = Stemmer.Stemmer("english")
    tokens = bm25s.tokenize(texts, stopwords="english", stemmer=stem, return_ids=False, show_progress=False)
    return [set(words) for words in tokens]
