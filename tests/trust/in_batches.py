"""Orders of documents, cut in batches, and threads, for tests that the same graph comes out."""

from contextlib import contextmanager

import pytest
import torch
from conftest import write_tiny_bert
from hypothesis import strategies as st

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: the same graph on a GPU is not tried")
THREADS = torch.get_num_threads()


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """A random BERT of 2 layers x 32, and a tokenizer that knows 195 words and what ends a sentence."""
    folder = tmp_path_factory.mktemp("backbone")
    write_tiny_bert(folder, marks=".?,", num_hidden_layers=2)
    return str(folder)


@contextmanager
def threads(number):
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(THREADS)


@st.composite
def batches(draw, amount):
    """An order of the documents, cut in batches."""
    order, found = draw(st.permutations(range(amount))), []
    while order:
        size = draw(st.integers(1, len(order)))
        found.append(order[:size])
        order = order[size:]
    return found
