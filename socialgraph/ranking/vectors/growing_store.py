"""A store of vectors while it is written, batch by batch; see :mod:`.vector_store` for its files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from socialgraph.errors import InputError
from socialgraph.nn.bi_encoder import PassageVectors
from socialgraph.ranking.journal import write_all, writing
from socialgraph.ranking.vectors.vector_store import FILES

#: bytes before the rows of a .npy file
_HEADER = 128


class GrowingStore:
    """The four files of a store, each open at its end; see :func:`growing_store`."""

    def __init__(self, tokens: _Rows, cls: _Rows, passage_ptr: _Rows, document_ptr: _Rows) -> None:
        self.tokens, self.cls, self.passage_ptr, self.document_ptr = tokens, cls, passage_ptr, document_ptr
        self.files = (tokens, cls, passage_ptr, document_ptr)
        for ptr in (passage_ptr, document_ptr):
            if ptr.rows == 0:
                ptr.append(torch.zeros(1))

    def append(self, vectors: PassageVectors) -> None:
        """Write the vectors of more documents."""
        self.passage_ptr.append(self.tokens.rows + vectors.size.cumsum(0))
        self.document_ptr.append(self.cls.rows + vectors.document_ptr[1:])
        self.tokens.append(vectors.token)
        self.cls.append(vectors.cls)

    def sync(self) -> list[int]:
        """Wait until all of it is on the disk; return the rows of each file."""
        for file in self.files:
            file.sync()
        return [file.rows for file in self.files]


@contextmanager
def growing_store(folder: Path, dtype: str, widths: tuple[int, int], rows: Sequence[int]) -> Iterator[GrowingStore]:
    """Open the files of a store; they are whole when the context ends well.

    Args:
        folder: of the store; it is made where there is none.
        dtype: of the tokens' vectors.
        widths: of a token's vector, and of a [CLS]'s.
        rows: how many rows of each file are there already, in the order of :data:`~.vector_store.FILES`.

    Raises:
        InputError: a file has fewer rows.
        OutputError: a file cannot be written.
    """
    with writing(folder):
        folder.mkdir(exist_ok=True)
    forms = ((dtype, (widths[0],)), ("float32", (widths[1],)), ("int64", ()), ("int64", ()))
    with ExitStack() as opened:
        files = []
        for name, form, there in zip(FILES, forms, rows, strict=True):
            path = folder / f"{name}.npy"
            with writing(path):
                path.touch()
            files.append(_Rows(opened.enter_context(open(path, "r+b", buffering=0)), *form, there))
        yield GrowingStore(*files)
        for file in files:
            file.finish()


class _Rows:
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
        """Write more rows."""
        array = rows.cpu().numpy().astype(self.dtype)
        with writing(self.file.name):
            write_all(self.file, array.tobytes())
        self.rows += len(array)

    def sync(self) -> None:
        """Wait until all of it is on the disk."""
        with writing(self.file.name):
            os.fsync(self.file.fileno())

    def finish(self) -> None:
        """Write how many rows there are."""
        with writing(self.file.name):
            self.file.seek(0)
            self._header()
        self.sync()

    def _header(self) -> None:
        about = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self.file, {**about, "shape": (self.rows, *self.shape)})
        # numpy leaves room for a longer number of rows, so that the header written last has the length of the first.
        assert self.file.tell() == _HEADER, "the header of a .npy file has changed its length"
