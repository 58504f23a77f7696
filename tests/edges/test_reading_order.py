"""Reading order: a chain, weak where the text pauses."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from socialgraph.edges.reading_order import ReadingOrder


def graph(ids):
    return Data(input_ids=torch.tensor(ids, dtype=torch.long), num_nodes=len(ids))


@pytest.fixture
def edges(tiny_bert):
    return ReadingOrder(tiny_bert[0], costs={"w1": 1.0, "w2": 2.5, "not a word": 0.0}, otherwise=7.0)


def test_by_hand(edges):
    # ids of w0, w1, w2: 5, 6, 7
    edge_index, weight = edges(graph([9, 6, 7, 8]))
    assert edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    assert weight.tolist() == [7.0, 7.0, 1.0, 1.0, 2.5, 2.5]
    assert weight.dtype == torch.float32


def test_documents_do_not_meet(edges):
    texts = [[5, 6], [], [7], [6, 6, 5]]
    edge_index, weight = edges(Batch.from_data_list([graph(text) for text in texts]))
    assert edge_index.tolist() == [[0, 1, 3, 4, 4, 5], [1, 0, 4, 3, 5, 4]]
    assert weight.tolist() == [7.0, 7.0, 1.0, 1.0, 1.0, 1.0]
    assert edges(graph([]))[0].shape == (2, 0)
    assert edges(graph([]))[1].shape == (0,)
