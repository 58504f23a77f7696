"""Stored vectors: documents go through BERT once, re-ranking reads what it said of them.

A store is a folder:

| file | holds |
|---|---|
| tokens.npy | vectors of all tokens, one document after the other, ``[T, D]`` float16 or float32 |
| cls.npy | vectors of the passages' [CLS], ``[C, F]`` float32; F is 0 where the model has none |
| passage_ptr.npy | bounds of the passages among the tokens, ``[C + 1]`` int64 |
| document_ptr.npy | bounds of the documents among the passages, ``[B + 1]`` int64 |
| store.json | ids of the documents; class, config and sha256 of the weights of the model; how documents were cut |
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum
from tqdm import tqdm

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import Queries, Run, first_ids
from socialgraph.data.collection import identity as collection_identity
from socialgraph.data.files import atomic_write
from socialgraph.errors import CheckpointError, InputError, OptionError, first_line
from socialgraph.nn.bi_encoder import BiEncoder, PassageVectors, QueryVectors
from socialgraph.ranking import processes
from socialgraph.ranking.identity import differences, digest, graphs_of, identity_of
from socialgraph.ranking.journal import Journal, write_all, writing
from socialgraph.ranking.memory import Halving
from socialgraph.ranking.rerank import Pair, Request, batches, computing, finite, scored, warn_of_empty

DTYPES = ("float16", "float32")
#: queries that go through BERT together
QUERIES = 64
#: seconds of encoding that are done again at most, once it was stopped
STEP_SECONDS = 10.0
#: changes when the files do
VERSION = 1
#: any text will do: passages do not depend on the query, but a graph has one
_NO_QUERY = "a"
#: bytes before the rows of a .npy file
_HEADER = 128


class VectorStore:
    """The stored vectors of a collection. Only rows that are asked for are read from the disk.

    Args:
        folder: that :func:`encode_collection` wrote.

    Raises:
        CheckpointError: the folder holds no whole store.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.about: dict[str, Any] = json.loads((self.folder / "store.json").read_text(encoding="utf-8"))
            if self.about["version"] != VERSION:
                raise ValueError(f"version {self.about['version']}, this program reads {VERSION}")
            self.token, self.cls, self.passage_ptr, self.document_ptr = (
                _mapped(self.folder / f"{name}.npy") for name in ("tokens", "cls", "passage_ptr", "document_ptr")
            )
            self.documents = {document: place for place, document in enumerate(self.about["documents"])}
            ends = (int(self.passage_ptr[-1]), int(self.document_ptr[-1]), self.document_ptr.numel() - 1)
            sizes = (len(self.token), len(self.cls), len(self.documents))
            if ends != sizes or self.passage_ptr.numel() != len(self.cls) + 1:
                raise ValueError(f"{sizes} tokens, passages and documents where {ends} are expected")
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise CheckpointError(f"{self.folder}: not a whole store of vectors ({first_line(error)})") from error

    def check(self, model: BiEncoder, builder: GraphBuilder) -> None:
        """Refuse a model or a builder that is not the one of the store.

        Raises:
            CheckpointError: it says what differs.
        """
        mine = {**identity_of(model), **_cutting(builder)}
        if changes := differences({name: self.about.get(name) for name in mine}, mine):
            raise CheckpointError(
                f"{self.folder}: the store is of other work: {'; '.join(changes)}; encode the collection again"
            )

    def passages(self, document_ids: Sequence[str], device: torch.device | str = "cpu") -> PassageVectors:
        """Return the vectors of some documents' passages; of their tokens only where they lie.

        Args:
            document_ids: of B documents.
            device: where all but the tokens' vectors go.
        """
        place = torch.tensor([self.documents[document] for document in document_ids], dtype=torch.long)
        size = self.document_ptr[place + 1] - self.document_ptr[place]
        ptr = cumsum(size)
        document = torch.repeat_interleave(size)
        passage = torch.arange(document.numel()) + (self.document_ptr[place] - ptr[:-1])[document]
        start = self.passage_ptr[passage]
        return PassageVectors(
            token=self.token,
            start=start.to(device),
            size=(self.passage_ptr[passage + 1] - start).to(device),
            cls=self.cls[passage].to(device),
            document=document.to(device),
            document_ptr=ptr.to(device),
        )

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, {len(self)} documents, {len(self.token)} tokens)"


def encode_collection(
    model: BiEncoder,
    builder: GraphBuilder,
    document_ids: Sequence[str],
    folder: str | os.PathLike[str],
    token_budget: int = 16_384,
    dtype: str = "float16",
    bf16: bool = False,
    progress: bool | None = None,
) -> VectorStore:
    """Read documents once and store their vectors. The folder appears whole or not at all.

    Vectors go to the disk batch by batch; in memory stay the ids.

    Until it is whole the store grows in a folder beside, ``folder.part``. What was stopped, by whatever, goes on from
    there when it is started again with the same arguments; who does not want that deletes it. A batch that does
    not fit in memory is halved, with one warning. Under ``torchrun`` the first process encodes and the others wait.

    Args:
        model: it is put in evaluation mode and left where it is.
        builder: builds the graphs, on the model's device. Its passages must be a function of the document alone.
        document_ids: of the collection; repeated ids count once.
        folder: it must not exist.
        token_budget: word pieces of documents in a batch; a longer document makes a batch of its own.
        dtype: of the tokens' vectors, "float16" or "float32".
        bf16: compute in bfloat16 where it is safe.
        progress: show a progress bar; None: on a terminal.

    Raises:
        InputError: a document is not in the collection, the folder exists, or beside it lies the beginning of another.
        OptionError: an option out of its range, or a builder of friend circles, which depend on the query.
        TooLargeError: a document does not fit in memory even alone.
        OutputError: the store cannot be written, has no room, or another run writes it.
    """
    if token_budget < 1:
        raise OptionError(f"token_budget must be at least 1, got {token_budget}")
    if dtype not in DTYPES:
        raise OptionError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    if builder.passages is None or builder.circles is not None:
        raise OptionError("only passages can be stored: build graphs with passages and without friend circles")
    ids = list(dict.fromkeys(document_ids))
    unknown = [document for document in ids if document not in builder.documents]
    if unknown:
        raise InputError(f"{len(unknown)} documents are not in the collection: {first_ids(unknown)}")
    place = Path(folder)
    part = place.with_name(f"{place.name}.part")
    if processes.from_first(place.exists()):
        if processes.is_first() and not (part / "store").exists():
            shutil.rmtree(part, ignore_errors=True)  # whoever made the folder died before it could
        raise InputError(f"{place}: is there already; remove it or choose another folder")
    model.eval()
    if processes.is_first():
        about = {"version": VERSION, **identity_of(model), **_cutting(builder), "dtype": dtype, "documents": ids}
        with torch.inference_mode():
            _encode(model, builder, about, part, token_budget, bf16, progress)
        with writing(place):
            os.rename(part / "store", place)
        shutil.rmtree(part, ignore_errors=True)
    processes.wait()
    store = VectorStore(place)
    warn_of_empty([ids[i] for i in (store.document_ptr.diff() == 0).nonzero().flatten().tolist()])
    return store


def _encode(
    model: BiEncoder,
    builder: GraphBuilder,
    about: dict[str, Any],
    part: Path,
    token_budget: int,
    bf16: bool,
    progress: bool | None,
) -> None:
    """Write a store into a folder in ``part``, or what is missing of it; a journal beside it tells what is there."""
    ids, width = about["documents"], model.token_size
    texts = {"documents": digest(ids), "texts": collection_identity(builder.documents)}
    identity = {**about, **texts, "token_budget": token_budget, "bf16": bf16}
    size = _bytes_of(builder, ids, width * np.dtype(about["dtype"]).itemsize)
    lengths: dict[str, int] = {}
    halving = Halving[str](lambda document: lengths[document], lambda document: f"document {document!r}")

    def encode(documents: Sequence[str]) -> PassageVectors:
        graph = builder([("", _NO_QUERY, document) for document in documents])
        with torch.autocast(builder.device.type, torch.bfloat16, enabled=bf16):
            return model.encode(graph)

    disable = processes.no_bar(progress)
    with Journal(part, identity, size, together=False) as journal:
        folder = part / "store"
        # how far the files have grown: batches in all of them, rows in each
        begin, *rows = journal.finished[max(journal.finished)] if journal.finished else [0] * 5
        with (
            _all_growing(folder, about["dtype"], (width, model.cls_size), rows) as files,
            tqdm(total=len(ids), initial=rows[3], desc="encoding", unit="doc", disable=disable) as bar,
        ):
            tokens, cls, passage_ptr, document_ptr = files
            if begin == 0:
                passage_ptr.append(torch.zeros(1))
                document_ptr.append(torch.zeros(1))
            since = time.monotonic()
            for number, batch in islice(enumerate(_document_batches(builder, ids, token_budget)), begin, None):
                lengths = dict(batch)
                for some, vectors in halving(encode, list(lengths)):
                    passage_ptr.append(tokens.rows + vectors.size.cumsum(0))
                    document_ptr.append(cls.rows + vectors.document_ptr[1:])
                    tokens.append(vectors.token)
                    cls.append(vectors.cls)
                    bar.update(len(some))
                if time.monotonic() - since >= STEP_SECONDS:
                    for file in files:
                        file.sync()
                    journal.append(number, [number + 1, *(file.rows for file in files)])
                    since = time.monotonic()
        with atomic_write(folder / "store.json") as text:
            json.dump(about, text, ensure_ascii=True)


def _bytes_of(builder: GraphBuilder, ids: Sequence[str], each: int) -> int:
    """Return how much room documents take at ``each`` bytes a word piece; 0 where their lengths are not known yet."""
    return 0 if builder.tokens.store is None else each * sum(builder.tokens.lengths(ids, builder.documents))


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
            **identity_of(model),
            **graphs_of(builder),
            **computing(model, builder, token_budget, bf16),
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
        cut = []
        for pairs in map(self.request.pairs, self.chunks):
            cut += [pairs[some.start : some.stop] for some in batches(list(map(self.length, pairs)), token_budget)]
        return cut

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


def _document_batches(builder: GraphBuilder, ids: list[str], budget: int) -> Iterator[list[tuple[str, int]]]:
    """Cut documents into batches of (id, length); lengths are found chunk by chunk, while word pieces are cached."""
    for begin in range(0, len(ids), 1024):
        chunk = ids[begin : begin + 1024]
        lengths = builder.tokens.lengths(chunk, builder.documents)
        for batch in batches(lengths, budget):
            yield [(chunk[i], lengths[i]) for i in batch]


def _cutting(builder: GraphBuilder) -> dict[str, Any]:
    return {"passages": repr(builder.passages), "document_length": builder.tokens.max_document_length}


def _mapped(path: Path) -> Tensor:
    """Return a file of numbers as a tensor whose rows are read when they are asked for."""
    return torch.from_numpy(np.load(path, mmap_mode="c", allow_pickle=False))


class _Growing:
    """A .npy file of rows whose number is known at the end only; the first ``rows`` are there already."""

    def __init__(self, file: IO[bytes], dtype: str, shape: tuple[int, ...], rows: int) -> None:
        self.file, self.dtype, self.shape, self.rows = file, np.dtype(dtype), shape, rows
        end = _HEADER + rows * math.prod(shape) * self.dtype.itemsize
        if rows > 0 and os.fstat(file.fileno()).st_size < end:
            raise InputError(f"{file.name}: shorter than its journal says; delete the folder")
        with writing(file.name):
            self._header()
            file.truncate(end)
        file.seek(end)

    def append(self, rows: Tensor) -> None:
        array = rows.cpu().numpy().astype(self.dtype)
        with writing(self.file.name):
            write_all(self.file, array.tobytes())
        self.rows += len(array)

    def sync(self) -> None:
        with writing(self.file.name):
            os.fsync(self.file.fileno())

    def finish(self) -> None:
        with writing(self.file.name):
            self.file.seek(0)
            self._header()
        self.sync()

    def _header(self) -> None:
        about = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self.file, {**about, "shape": (self.rows, *self.shape)})
        # numpy leaves room for a longer number of rows, so that the header written last has the length of the first.
        assert self.file.tell() == _HEADER, "the header of a .npy file has changed its length"


@contextmanager
def _growing(path: Path, dtype: str, shape: tuple[int, ...], rows: int) -> Iterator[_Growing]:
    with writing(path):
        path.touch()
    with open(path, "r+b", buffering=0) as file:
        growing = _Growing(file, dtype, shape, rows)
        yield growing
        growing.finish()


@contextmanager
def _all_growing(folder: Path, dtype: str, widths: tuple[int, int], rows: Sequence[int]) -> Iterator[list[_Growing]]:
    """Open the four files of a store, which have so many rows: vectors of tokens, of [CLS], and the two bounds."""
    with writing(folder):
        folder.mkdir(exist_ok=True)
    files = [
        ("tokens.npy", dtype, (widths[0],)),
        ("cls.npy", "float32", (widths[1],)),
        ("passage_ptr.npy", "int64", ()),
        ("document_ptr.npy", "int64", ()),
    ]
    with ExitStack() as opened:
        yield [
            opened.enter_context(_growing(folder / name, kind, shape, there))
            for (name, kind, shape), there in zip(files, rows, strict=True)
        ]
