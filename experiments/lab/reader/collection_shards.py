"""Collections as shards: only documents that answer no dev or test question, and only training questions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from lab.reader.shards import QUESTION, Shard
from tqdm import tqdm

from socialgraph.data import Collection, GraphBuilder, TermStatistics, Tokens
from socialgraph.data.evidence import Evidence
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import InputError
from socialgraph.partition import EdgeCircles

#: word pieces of a document that are read
LONGEST = 4096


def collection_shard(collection: Collection, evidence: dict[str, Evidence], circles: int = 500) -> Shard:
    """Return the training documents of a collection, the training questions whose evidence is known, and circles.

    Args:
        collection: with the split "train".
        evidence: query id -> place of its answer.
        circles: of so many documents at most friend circles are drawn.

    Raises:
        InputError: there is no document, or no question, to learn from.
    """
    held_out = collection.held_out_documents()
    ids = [one for one in sorted(collection.documents) if one not in held_out]
    row = {document_id: number for number, document_id in enumerate(ids)}
    pieces = Tokens("minilm", LONGEST, QUESTION)
    texts = [text.numpy().astype(np.int64) for text in pieces.documents(ids, collection.documents)]
    questions, first = [], dict[int, str]()
    for query_id, text in collection["train"].queries.items():
        place = evidence.get(query_id)
        if place is not None and place.document_id in row and (asked := pieces.query(text).numpy()).size:
            place = place.in_full_text(collection.documents[place.document_id], pieces)
            if place.start < len(texts[row[place.document_id]]):
                questions.append((asked, row[place.document_id], place.start, place.end))
                first.setdefault(row[place.document_id], text)
    if not questions:
        told = "no training question whose evidence is known and stands in a document that answers no dev or test one"
        raise InputError(f"{collection.name}: {told}")
    bounds = np.cumsum([0, *map(len, texts)])
    friends = list(friends_of(collection, ids, dict(list(first.items())[:circles])))
    empty = np.zeros(0, np.int64)
    asked, *where = zip(*questions, strict=True)
    return Shard(
        np.concatenate(texts), np.diff(bounds), np.concatenate(asked), np.array([len(one) for one in asked]),
        *(np.array(column, np.int64) for column in where),
        np.concatenate([empty, *(bounds[d] + nodes for d, nodes in friends)]),
        np.array([len(nodes) for _, nodes in friends], np.int64),
    )  # fmt: skip


def friends_of(
    collection: Collection, ids: list[str], asked: dict[int, str], k: int = 8
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (row of the document, places): friend circles of the graphs of questions and their documents."""
    tokens = Tokens("minilm", max_document_length=2048)
    documents = {document_id: collection.documents[document_id] for document_id in ids}
    statistics = TermStatistics.of(tokens, documents)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()], sparsity=0.93)
    builder = GraphBuilder(documents, tokens, statistics, edges, EdgeCircles(k=k))
    chosen = list(asked.items())
    for start in tqdm(range(0, len(chosen), 4), f"{collection.name}: circles", leave=False, disable=None):
        pairs = chosen[start : start + 4]
        batch = builder([(str(d), text, ids[d]) for d, text in pairs])
        node, circle = batch.circle_index.numpy()
        owner = batch.batch[batch.leader_index].numpy()
        for c in range(len(owner)):
            members = node[circle == c]
            if len(members) >= 16:
                yield pairs[owner[c]][0], np.sort(members) - int(batch.ptr[owner[c]])
