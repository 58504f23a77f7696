"""Re-ranking from stored vectors: BERT reads the queries, and what it said of the documents is there."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.data.batches import batches
from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import Queries, Run, first_ids
from socialgraph.errors import CheckpointError, InputError
from socialgraph.nn.bi_encoder import BiEncoder, PassageVectors, QueryVectors
from socialgraph.ranking.identity import digest
from socialgraph.ranking.rerank import Pair, Request, depends_on, finite, scored
from socialgraph.ranking.vectors.vector_store import VectorStore

#: queries that go through BERT together
QUERIES = 64


@torch.inference_mode()
def rerank_stored(
    model: BiEncoder,
    store: VectorStore,
    builder: GraphBuilder,
    queries: Queries,
    candidates: Run,
    token_budget: int = 131_072,
    bf16: bool = False,
    progress: bool | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> Run:
    """Score every candidate as :func:`~socialgraph.ranking.rerank` does, up to rounding, without reading documents.

    BERT sees each query once. Where the model ranks passages by BM25 the builder makes the pair's graph for it.
    A query without word pieces keeps its candidates' order. Several processes, a batch that does not fit in memory and
    the journal are as there.

    Args:
        model: the one of the store; it is put in evaluation mode and left where it is.
        store: vectors of the candidates.
        builder: makes word pieces and graphs, on the model's device.
        queries: query id -> text.
        candidates: what is re-ranked; only queries that are in ``queries``.
        token_budget: stored tokens of documents in a batch; a longer document makes a batch of its own.
        bf16: compute in bfloat16 where it is safe.
        progress: show a progress bar; None: on a terminal.
        journal: a folder where the scores of each finished batch are kept.

    Raises:
        CheckpointError: the store is of another model, its passages are not those of the builder, or a score is not a
            finite number.
        InputError: a candidate is not in the store or its score not finite, or the journal is of other work.
        OptionError: token_budget below 1.
        TooLargeError: a document does not fit in memory even alone.
        OutputError: the journal cannot be written, or another run holds it.
    """
    store.check(model, builder)
    request = Request(builder, queries, candidates, token_budget)
    missing = sorted({document for some in request.candidates.values() for document in some} - store.documents.keys())
    if missing:
        raise InputError(f"{len(missing)} candidates are not in the store {store.folder}: {first_ids(missing)}")
    model.eval()
    match = _Match(model, store, builder, request, bf16)
    cut = match.batches(token_budget)
    identity = {}
    if journal is not None:
        identity = {
            "work": "re-ranking from stored vectors",
            "candidates": digest(request.known_of(pair) for batch in cut for pair in batch),
            **depends_on(model, builder, token_budget, bf16),
            "store": digest(sorted(store.about.items())),
        }
    return request.run(scored(cut, match, match.length, progress, journal, identity))


class _Match:
    """Scores pairs by stored vectors. Queries go through BERT in chunks, each when the first of its pairs comes."""

    def __init__(
        self, model: BiEncoder, store: VectorStore, builder: GraphBuilder, request: Request, bf16: bool
    ) -> None:
        self.model, self.store, self.builder, self.request, self.bf16 = model, store, builder, request, bf16
        asked = request.asked
        self.chunks = [asked[begin : begin + QUERIES] for begin in range(0, len(asked), QUERIES)]
        self.place = {query_id: divmod(number, QUERIES) for number, query_id in enumerate(asked)}  # chunk, row
        self.tokens = store.passage_ptr[store.document_ptr].diff().tolist()  # of each document
        self.encoded: tuple[int, QueryVectors] | None = None  # the last chunk, as batches come chunk by chunk

    def length(self, pair: Pair) -> int:
        """Return how many tokens of a pair's document are stored."""
        tokens: int = self.tokens[self.store.documents[pair[2]]]
        return tokens

    def batches(self, token_budget: int) -> list[list[Pair]]:
        """Cut all pairs; no batch has queries of two chunks."""
        return [
            batch
            for pairs in map(self.request.pairs, self.chunks)
            for batch in batches(pairs, self.length, token_budget)
        ]  # fmt: skip

    def __call__(self, some: Sequence[Pair], _: object) -> list[float]:
        """Return the scores of some pairs of one chunk."""
        query = self._queries(self.place[some[0][0]][0])
        documents = [document for _, _, document in some]
        passages = self.store.passages(documents, self.builder.device)
        relevance = None
        if self.model.reads_relevance:
            graph = self.builder(some)
            relevance = self.model.relevance(graph)
            _check_passages(graph, passages, documents, self.store)
        row = torch.tensor([self.place[query_id][1] for query_id, _, _ in some], device=self.builder.device)
        own = QueryVectors(query.token[row], query.cls[row])
        return finite(self.model.match(own, passages, relevance).tolist(), some, self.model)

    def _queries(self, chunk: int) -> QueryVectors:
        if self.encoded is None or self.encoded[0] != chunk:
            pieces = [self.request.pieces[query_id] for query_id in self.chunks[chunk]]
            device = self.builder.device
            with torch.autocast(device.type, torch.bfloat16, enabled=self.bf16):
                self.encoded = chunk, self.model.encode_queries(_query_graph(pieces, device))
        return self.encoded[1]


def _query_graph(pieces: list[Tensor], device: torch.device) -> Data:
    """Return what a model reads of queries."""
    return Data(query_ids=torch.cat(pieces), query_length=torch.tensor([len(ids) for ids in pieces])).to(device)


def _check_passages(graph: Data, passages: PassageVectors, documents: Sequence[str], store: VectorStore) -> None:
    counts = torch.bincount(graph.batch[graph.leader_index], minlength=len(documents))
    odd = (counts != passages.document_ptr.diff()).nonzero().flatten().tolist()
    if odd:
        raise CheckpointError(
            f"{store.folder}: document {documents[odd[0]]!r} has {int(passages.document_ptr.diff()[odd[0]])} passages "
            f"there and {int(counts[odd[0]])} now; encode the collection again"
        )
