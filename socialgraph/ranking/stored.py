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

import hashlib
import json
import os
import shutil
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from socialgraph.errors import CheckpointError, InputError, OptionError
from socialgraph.nn.late_interaction import LateInteraction, PassageVectors, QueryVectors
from socialgraph.ranking.rerank import batches, best_first

DTYPES = ("float16", "float32")
#: queries that go through BERT together
QUERIES = 64
#: changes when the files do
VERSION = 1
#: any text will do: passages do not depend on the query, but a graph has one
_NO_QUERY = "a"


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
            found = (len(self.token), len(self.cls), len(self.documents))
            if ends != found or self.passage_ptr.numel() != len(self.cls) + 1:
                raise ValueError(f"{found} tokens, passages and documents where {ends} are expected")
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise CheckpointError(f"{self.folder}: not a whole store of vectors ({first})") from error

    def check(self, model: LateInteraction, builder: GraphBuilder) -> None:
        """Refuse a model or a builder that is not the one of the store.

        Raises:
            CheckpointError: it says what differs.
        """
        for name, mine in {**_model_identity(model), **_cutting(builder)}.items():
            if self.about.get(name) != mine:
                raise CheckpointError(
                    f"{self.folder}: the store was made with another {name.replace('_', ' ')} "
                    f"({_short(self.about.get(name))}, now {_short(mine)}); encode the collection again"
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
    model: LateInteraction,
    builder: GraphBuilder,
    document_ids: Sequence[str],
    folder: str | os.PathLike[str],
    token_budget: int = 16_384,
    dtype: str = "float16",
    bf16: bool = False,
    progress: bool = True,
) -> VectorStore:
    """Read documents once and store their vectors. The folder appears whole or not at all.

    Vectors go to the disk batch by batch; in memory stay the ids and two numbers a passage.

    Args:
        model: it is put in evaluation mode and left where it is.
        builder: builds the graphs, on the model's device. Its passages must be a function of the document alone.
        document_ids: of the collection; repeated ids count once.
        folder: it must not exist.
        token_budget: word pieces of documents in a batch; a longer document makes a batch of its own.
        dtype: of the tokens' vectors, "float16" or "float32".
        bf16: compute in bfloat16 where it is safe.
        progress: show a progress bar.

    Raises:
        InputError: a document is not in the collection, or the folder exists.
        OptionError: an option out of its range, or a builder of friend circles, which depend on the query.
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
    model.eval()
    about = {"version": VERSION, **_model_identity(model), **_cutting(builder), "dtype": dtype, "documents": ids}
    passage_sizes, document_sizes = [], []
    with (
        torch.inference_mode(),
        _whole_folder(Path(folder)) as place,
        _growing(place / "tokens.npy", model.token_vector.out_features, dtype) as tokens,
        _growing(place / "cls.npy", model.cls_size, "float32") as cls,
        tqdm(total=len(ids), desc="encoding", unit="doc", disable=not progress) as bar,
    ):
        for batch in _document_batches(builder, ids, token_budget):
            graph = builder([("", _NO_QUERY, document) for document in batch])
            with torch.autocast(builder.device.type, torch.bfloat16, enabled=bf16):
                vectors = model.encode(graph)
            tokens.append(vectors.token)
            cls.append(vectors.cls)
            passage_sizes.append(vectors.size.cpu())
            document_sizes.append(vectors.document_ptr.diff().cpu())
            bar.update(len(batch))
        for name, sizes in (("passage_ptr", passage_sizes), ("document_ptr", document_sizes)):
            with open(place / f"{name}.npy", "wb") as file:
                np.save(file, cumsum(torch.cat([torch.empty(0, dtype=torch.long), *sizes])).numpy(), allow_pickle=False)
                _sync(file)
        with open(place / "store.json", "w", encoding="utf-8", newline="\n") as file:
            json.dump(about, file, ensure_ascii=True)
            _sync(file)
    store = VectorStore(folder)
    empty = [ids[i] for i in (store.document_ptr.diff() == 0).nonzero().flatten().tolist()]
    if empty:
        warnings.warn(
            f"{len(empty)} documents have no word piece, they all get one score: {first_ids(empty)}", stacklevel=2
        )
    return store


@torch.inference_mode()
def rerank_stored(
    model: LateInteraction,
    store: VectorStore,
    builder: GraphBuilder,
    queries: Queries,
    candidates: Run,
    token_budget: int = 131_072,
    bf16: bool = False,
    progress: bool = True,
) -> Run:
    """Score every candidate as :func:`~socialgraph.ranking.rerank` does, up to rounding, without reading documents.

    BERT sees each query once. Where the model ranks passages by BM25 the builder makes the pair's graph for it.
    A query without word pieces keeps its candidates' order.

    Args:
        model: the one of the store; it is put in evaluation mode and left where it is.
        store: vectors of the candidates.
        builder: makes word pieces and graphs, on the model's device.
        queries: query id -> text.
        candidates: what is re-ranked; only queries that are in ``queries``.
        token_budget: stored tokens of documents in a batch; a longer document makes a batch of its own.
        bf16: compute in bfloat16 where it is safe.
        progress: show a progress bar.

    Raises:
        CheckpointError: the store is of another model, or its passages are not those of the builder.
        InputError: a candidate is not in the store.
        OptionError: token_budget below 1.
    """
    if token_budget < 1:
        raise OptionError(f"token_budget must be at least 1, got {token_budget}")
    store.check(model, builder)
    candidates = {query_id: scores for query_id, scores in candidates.items() if query_id in queries}
    missing = sorted({document for scores in candidates.values() for document in scores} - store.documents.keys())
    if missing:
        raise InputError(f"{len(missing)} candidates are not in the store {store.folder}: {first_ids(missing)}")
    pieces = {query_id: builder.tokens.query(queries[query_id]) for query_id in candidates}
    silent = [query_id for query_id, ids in pieces.items() if ids.numel() == 0]
    if silent:
        warnings.warn(
            f"{len(silent)} queries have no word piece and keep the order of their candidates: {first_ids(silent)}",
            stacklevel=2,
        )
    found: dict[str, dict[str, float]] = {query_id: dict(candidates[query_id]) for query_id in silent}
    asked = [query_id for query_id in candidates if query_id not in found]
    tokens = store.passage_ptr[store.document_ptr].diff()  # of each document

    model.eval()
    total = sum(len(candidates[query_id]) for query_id in asked)
    with tqdm(total=total, desc="re-ranking", unit="doc", disable=not progress) as bar:
        for begin in range(0, len(asked), QUERIES):
            here = asked[begin : begin + QUERIES]
            with torch.autocast(builder.device.type, torch.bfloat16, enabled=bf16):
                query = model.encode_queries(_query_graph([pieces[query_id] for query_id in here], builder.device))
            pairs = [(number, document) for number, query_id in enumerate(here) for document in candidates[query_id]]
            lengths = tokens[[store.documents[document] for _, document in pairs]].tolist()
            for batch in batches(lengths, token_budget):
                owners, documents = zip(*(pairs[i] for i in batch), strict=True)
                passages = store.passages(documents, builder.device)
                relevance = None
                if model.reads_relevance:
                    graph = builder([(here[pairs[i][0]], queries[here[pairs[i][0]]], pairs[i][1]) for i in batch])
                    relevance = model.relevance(graph)
                    _check_passages(graph, passages, documents, store)
                owner = torch.tensor(owners, device=builder.device)
                scores = model.match(QueryVectors(query.token[owner], query.cls[owner]), passages, relevance)
                for number, document, score in zip(owners, documents, scores.tolist(), strict=True):
                    found.setdefault(here[number], {})[document] = score
                bar.update(len(batch))
    return {query_id: best_first(found.get(query_id, {})) for query_id in candidates}


def _query_graph(pieces: list[Tensor], device: torch.device) -> Data:
    """Return what a model reads of queries."""
    return Data(query_ids=torch.cat(pieces), query_length=torch.tensor([len(ids) for ids in pieces])).to(device)


def _check_passages(graph: Data, passages: PassageVectors, documents: Sequence[str], store: VectorStore) -> None:
    found = torch.bincount(graph.batch[graph.leader_index], minlength=len(documents))
    odd = (found != passages.document_ptr.diff()).nonzero().flatten().tolist()
    if odd:
        raise CheckpointError(
            f"{store.folder}: document {documents[odd[0]]!r} has {int(passages.document_ptr.diff()[odd[0]])} passages "
            f"there and {int(found[odd[0]])} now; encode the collection again"
        )


def _document_batches(builder: GraphBuilder, ids: list[str], budget: int) -> Iterator[list[str]]:
    """Cut documents into batches; their lengths are found chunk by chunk, while the word pieces are still cached."""
    for begin in range(0, len(ids), 1024):
        chunk = ids[begin : begin + 1024]
        lengths = builder.tokens.lengths(chunk, builder.documents)
        for batch in batches(lengths, budget):
            yield [chunk[i] for i in batch]


def _model_identity(model: LateInteraction) -> dict[str, Any]:
    """Return what makes the vectors what they are, beside the documents."""
    config = json.loads(json.dumps(model._hub_mixin_config, default=str))
    config.pop("attention", None)  # all backends compute the same
    digest = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}\n".encode())
        digest.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return {"model": type(model).__name__, "config": config, "weights": digest.hexdigest()}


def _cutting(builder: GraphBuilder) -> dict[str, Any]:
    return {"passages": repr(builder.passages), "document_length": builder.tokens.max_document_length}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _mapped(path: Path) -> Tensor:
    """Return a file of numbers as a tensor whose rows are read when they are asked for."""
    return torch.from_numpy(np.load(path, mmap_mode="c", allow_pickle=False))


class _Growing:
    """A .npy file of rows whose number is known at the end only."""

    def __init__(self, file: IO[bytes], width: int, dtype: str) -> None:
        self.file, self.width, self.dtype, self.rows = file, width, np.dtype(dtype), 0
        self._header()

    def append(self, rows: Tensor) -> None:
        array = np.ascontiguousarray(rows.cpu().numpy(), dtype=self.dtype)
        self.file.write(array.data)
        self.rows += len(array)

    def finish(self) -> None:
        self.file.seek(0)
        self._header()

    def _header(self) -> None:
        about = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self.file, {**about, "shape": (self.rows, self.width)})
        # numpy leaves room for a longer number of rows, so that the header written last has the length of the first.
        assert self.file.tell() == 128, "the header of a .npy file has changed its length"


@contextmanager
def _growing(path: Path, width: int, dtype: str) -> Iterator[_Growing]:
    with open(path, "wb") as file:
        rows = _Growing(file, width, dtype)
        yield rows
        rows.finish()
        _sync(file)


@contextmanager
def _whole_folder(folder: Path) -> Iterator[Path]:
    """Give a folder beside ``folder`` that takes its name at the end, or goes away."""
    if folder.exists():
        raise InputError(f"{folder}: is there already; remove it or choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.parent / f".{folder.name}.{uuid.uuid4().hex}.part"
    beside.mkdir()
    try:
        yield beside
        os.rename(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _sync(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())
