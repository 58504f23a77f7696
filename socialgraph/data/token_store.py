"""A collection's documents as word pieces on disk, tokenised once."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from filelock import FileLock
from torch import Tensor
from tqdm import tqdm

from socialgraph.data.batches import batches
from socialgraph.data.collection import Document, identity
from socialgraph.data.files import atomic_write, cache_folder
from socialgraph.data.kept import kept
from socialgraph.errors import InputError

logger = logging.getLogger(__name__)

Ids = npt.NDArray[np.unsignedinteger[Any] | np.signedinteger[Any]]

#: characters that are tokenised at once: enough for all threads, little in memory
_BATCH_CHARACTERS = 2_000_000
#: documents whose word pieces are counted at once
_BATCH_DOCUMENTS = 4096


class Encoder:
    """Texts to word pieces, many at once on all cores, whole and without special tokens.

    Args:
        tokenizer: a fast tokenizer of transformers. Its own settings stay as they are.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.vocab_size = len(tokenizer)
        self._backend = copy.deepcopy(tokenizer.backend_tokenizer)
        self._backend.no_truncation()
        self._backend.no_padding()

    def __call__(self, texts: Sequence[str]) -> list[Ids]:
        """Return each text's word pieces ``[L]``: uint16 where the vocabulary allows, else int32."""
        # Lone surrogates have no UTF-8 and would stop the tokenizer.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encodings = self._backend.encode_batch_fast(clean, add_special_tokens=False)
        return [np.array(one.ids, dtype=self.dtype) for one in encodings]

    @property
    def dtype(self) -> npt.DTypeLike:
        """The smallest type that holds every word piece."""
        return np.uint16 if self.vocab_size <= 1 << 16 else np.int32

    def identity(self) -> str:
        """Return a text that is the same for two encoders that give the same word pieces."""
        parts = json.loads(self._backend.to_str())
        return json.dumps({part: parts[part] for part in ("added_tokens", "normalizer", "pre_tokenizer", "model")})


class TokenStore:
    """Word pieces of all documents of a collection, whole, in files that are mapped into memory.

    One store serves every length that is read of a document. In a folder lie: ``ids.bin``, the word pieces of all
    documents one after another; ``keys.npy``, a sorted 64-bit hash of each document's id (of 3.2 million ids two
    have the same hash with a probability of 3e-7, which building refuses); ``starts.npy`` and ``lengths.npy``, where
    the document of each hash lies in ``ids.bin``, in word pieces; ``store.json``; and
    ``frequency-<length>.safetensors``, the document frequencies, once they are asked for. 3.2 million documents of
    1,500 word pieces take 10 GB on disk, and in memory only what is read.

    Args:
        folder: with these files, see :meth:`of`.

    Raises:
        InputError: the folder holds no whole store.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            facts = json.loads((self.folder / "store.json").read_text())
            if facts["dtype"] not in ("uint16", "int32"):  # a type of objects would take its numbers for addresses
                raise ValueError(f"word pieces of the type {facts['dtype']!r}")
            self.vocab_size: int = facts["vocab_size"]
            ids = np.memmap(self.folder / "ids.bin", facts["dtype"], "r") if facts["tokens"] else np.empty(0, np.int32)
            files = (self.folder / f"{name}.npy" for name in ("keys", "starts", "lengths"))
            tables = (np.load(file, mmap_mode="r", allow_pickle=False) for file in files)
            # Plain arrays over the same memory: slices of a memmap are ten times slower to take.
            self._ids, self._keys, self._starts, self._lengths = map(np.asarray, (ids, *tables))
            sizes = (self._ids.size, self._keys.size, self._starts.size, self._lengths.size)
            if sizes != (facts["tokens"], *[facts["documents"]] * 3):
                raise ValueError(f"sizes {sizes} are not those of store.json")
            ends = self._starts + self._lengths
            if self._keys.size and (min(self._starts.min(), self._lengths.min()) < 0 or ends.max() > self._ids.size):
                raise ValueError("a document lies outside of ids.bin")
        except (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError) as error:
            raise InputError(f"{self.folder}: no whole token store, delete the folder ({error})") from error

    @classmethod
    def of(cls, documents: Mapping[str, Document], tokenizer: Any, cache: str | os.PathLike[str] | None = None) -> Self:
        """Return the store of these documents for this tokenizer; build it if it is not in the cache.

        It is found again as long as the tokenizer and :func:`~socialgraph.data.collection.identity` of the documents
        stay the same. Building streams the documents, takes memory for one batch of texts and 20 bytes a document,
        and leaves a whole store or none.

        Args:
            documents: a collection's documents.
            tokenizer: a fast tokenizer of transformers.
            cache: folder of caches; by default the environment variable ``SOCIALGRAPH_CACHE``, else ``socialgraph``
                in the user's cache folder.

        Raises:
            InputError: the store cannot be written, or a document comes twice.
        """
        encoder = Encoder(tokenizer)
        name = hashlib.sha256(f"{encoder.identity()}\n{identity(documents)}".encode()).hexdigest()[:16]
        folder = cache_folder(cache) / "tokens" / name
        if not folder.exists():
            logger.info("tokenising %r into %s", documents if len(repr(documents)) < 80 else "documents", folder)
            try:
                locks = cache_folder(cache) / "locks"
                for place in (folder.parent, locks):
                    place.mkdir(parents=True, exist_ok=True)
                with FileLock(locks / f"tokens-{name}.lock"):  # who comes second waits, and finds the store
                    if not folder.exists():
                        _build(documents, encoder, folder)
            except OSError as error:
                raise InputError(
                    f"{folder}: cannot be written ({error}); set SOCIALGRAPH_CACHE to a folder with room"
                ) from error
        return cls(folder)

    def find(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the row of each document, -1 where the store has none of that id."""
        keys = _hashes(ids)
        rows = np.searchsorted(self._keys, keys)
        if len(self._keys) == 0:
            return np.full(len(keys), -1)
        rows[self._keys[np.minimum(rows, len(self._keys) - 1)] != keys] = -1
        return rows

    def lengths(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of word pieces of the documents in these rows."""
        return self._lengths[rows].astype(np.int64)

    def row(self, row: int, length: int) -> Tensor:
        """Return the first ``length`` word pieces of the document in a row, ``[L]`` int32."""
        start = int(self._starts[row])
        return torch.from_numpy(self._ids[start : start + min(length, int(self._lengths[row]))].astype(np.int32))

    def document_frequency(self, length: int) -> Tensor:
        """Return how many documents hold each word piece among their first ``length``, ``[V]`` int64.

        Counted in one pass over the store, and kept beside it.

        Raises:
            InputError: what was kept is damaged.
        """
        file = self.folder / f"frequency-{length}.safetensors"
        (frequency,) = kept(file, ["frequency"], lambda: [torch.from_numpy(self._count(length))])
        if frequency.shape != (self.vocab_size,) or frequency.dtype != torch.int64:
            raise InputError(f"{file}: no {self.vocab_size} counts, delete it")
        return frequency

    def _count(self, length: int) -> npt.NDArray[np.int64]:
        frequency = np.zeros(self.vocab_size, np.int64)
        order = np.argsort(self._starts, kind="stable")  # as they lie on disk
        starts, lengths = self._starts[order], np.minimum(self._lengths[order], length).astype(np.int64)
        bar = tqdm(total=len(self), desc="counting", unit="doc", disable=None, leave=False)
        for first in range(0, len(self), _BATCH_DOCUMENTS):
            start, size = (array[first : first + _BATCH_DOCUMENTS] for array in (starts, lengths))
            place = np.arange(size.sum()) + np.repeat(start - (np.cumsum(size) - size), size)
            document = np.repeat(np.arange(len(size)), size)
            pairs = np.sort(document * self.vocab_size + self._ids[place])
            new = np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]
            frequency += np.bincount(pairs[new] % self.vocab_size, minlength=self.vocab_size)
            bar.update(len(size))
        return frequency

    def __len__(self) -> int:
        return int(self._keys.size)

    def __reduce__(self) -> tuple[type[TokenStore], tuple[Path]]:
        return type(self), (self.folder,)  # a worker maps the files itself: arrays would travel as a copy

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} documents, {self._ids.size:,} word pieces)"


def text_batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Cut a stream of documents into lists that are worth tokenising at once and fit in memory."""
    return batches(documents, lambda document: len(document.text), _BATCH_CHARACTERS)


def _build(documents: Mapping[str, Document], encoder: Encoder, folder: Path) -> None:
    """Write a store into a folder beside, and rename it once it is whole. The store's lock is held."""
    for left in folder.parent.glob(f".{folder.name}.*.part"):  # by a process that died while it held the lock
        shutil.rmtree(left, ignore_errors=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
    try:
        keys, lengths = _write_ids(documents, encoder, beside / "ids.bin")
        order = np.argsort(keys, kind="stable")
        keys, starts = keys[order], (np.cumsum(lengths) - lengths)[order]
        if len(keys) and (twice := np.flatnonzero(keys[1:] == keys[:-1])).size:
            raise InputError(
                f"documents {order[twice[0]] + 1:,} and {order[twice[0] + 1] + 1:,} of the collection have the same id"
            )
        for name, array in (("keys", keys), ("starts", starts), ("lengths", lengths[order].astype(np.int32))):
            with atomic_write(beside / f"{name}.npy", "wb") as file:
                np.save(file, array, allow_pickle=False)
        facts = {"documents": len(keys), "tokens": int(lengths.sum()), "vocab_size": encoder.vocab_size,
                 "dtype": np.dtype(encoder.dtype).name}  # fmt: skip
        with atomic_write(beside / "store.json") as file:
            json.dump(facts, file, indent=1)
        beside.chmod(folder.parent.stat().st_mode & 0o777)  # mkdtemp makes folders that only their owner can read
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write_ids(
    documents: Mapping[str, Document], encoder: Encoder, path: Path
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Write all documents' word pieces into one file; return hashes of their ids, and their lengths."""
    keys: list[npt.NDArray[np.uint64]] = [np.empty(0, np.uint64)]
    lengths: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    # Not the length of a store on disk: it may have to be built to be counted.
    total = len(documents) if isinstance(documents, dict) else None
    bar = tqdm(total=total, desc="tokenising", unit="doc", disable=None, leave=False)
    with atomic_write(path, "wb") as file, ThreadPoolExecutor(1) as beside, bar:

        def write(new: list[Ids]) -> None:
            lengths.append(np.array([len(ids) for ids in new]))
            file.write(np.concatenate(new).tobytes())
            bar.update(len(new))

        waiting = None
        for batch in text_batches(documents.values()):  # the next batch is read while one is tokenised
            keys.append(_hashes([document.doc_id for document in batch]))
            if waiting is not None:
                write(waiting.result())
            waiting = beside.submit(encoder, [document.full_text for document in batch])
        if waiting is not None:
            write(waiting.result())
    return np.concatenate(keys), np.concatenate(lengths)


def _hashes(ids: Iterable[str]) -> npt.NDArray[np.uint64]:
    digests = (hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in ids)
    return np.frombuffer(b"".join(digests), dtype="<u8")
