"""Documents go through BERT once, and their vectors are stored (:mod:`.vector_store`)."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from socialgraph.data.batches import batches
from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import first_ids
from socialgraph.data.collection import identity as collection_identity
from socialgraph.data.files import atomic_write
from socialgraph.errors import InputError, OptionError, check_choice
from socialgraph.nn.bi_encoder import BiEncoder, PassageVectors
from socialgraph.ranking import processes
from socialgraph.ranking.identity import digest, identity_of
from socialgraph.ranking.journal import Journal, writing
from socialgraph.ranking.memory import Halving
from socialgraph.ranking.rerank import warn_of_empty
from socialgraph.ranking.vectors.growing_store import growing_store
from socialgraph.ranking.vectors.vector_store import VERSION, VectorStore, cutting

DTYPES = ("float16", "float32")
#: seconds of encoding that are done again at most, once it was stopped
STEP_SECONDS = 10.0
#: any text will do: passages do not depend on the query, but a graph has one
_NO_QUERY = "a"


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
    check_choice("dtype", dtype, DTYPES)
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
        about = {"version": VERSION, **identity_of(model), **cutting(builder), "dtype": dtype, "documents": ids}
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
    ids, widths = about["documents"], (model.token_size, model.cls_size)
    texts = {"documents": digest(ids), "texts": collection_identity(builder.documents)}
    identity = {**about, **texts, "token_budget": token_budget, "bf16": bf16}
    size = _bytes_of(builder, ids, widths[0] * np.dtype(about["dtype"]).itemsize)
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
        encoded = max(0, rows[3] - 1)  # there is a bound more than there are documents
        with (
            growing_store(folder, about["dtype"], widths, rows) as store,
            tqdm(total=len(ids), initial=encoded, desc="encoding", unit="doc", disable=disable) as bar,
        ):
            since = time.monotonic()
            for number, batch in islice(enumerate(_document_batches(builder, ids, token_budget)), begin, None):
                lengths = dict(batch)
                for some, vectors in halving(encode, list(lengths)):
                    store.append(vectors)
                    bar.update(len(some))
                if time.monotonic() - since >= STEP_SECONDS:
                    journal.append(number, [number + 1, *store.sync()])
                    since = time.monotonic()
        with atomic_write(folder / "store.json") as text:
            json.dump(about, text, ensure_ascii=True)


def _bytes_of(builder: GraphBuilder, ids: Sequence[str], each: int) -> int:
    """Return how much room documents take at ``each`` bytes a word piece; 0 where their lengths are not known yet."""
    return 0 if builder.tokens.store is None else each * sum(builder.tokens.lengths(ids, builder.documents))


def _document_batches(builder: GraphBuilder, ids: list[str], budget: int) -> Iterator[list[tuple[str, int]]]:
    """Cut documents into batches of (id, length); lengths are found chunk by chunk, while word pieces are cached."""
    for begin in range(0, len(ids), 1024):
        chunk = ids[begin : begin + 1024]
        lengths = builder.tokens.lengths(chunk, builder.documents)
        yield from batches(list(zip(chunk, lengths, strict=True)), itemgetter(1), budget)
