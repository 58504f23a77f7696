"""Sparse transformers' edges against their rules, written out pair by pair."""

import pytest
import torch
from conftest import SPECIAL, write_tokenizer
from torch_geometric.data import Batch

from socialgraph.data.graph import document_graph
from socialgraph.edges.draws import draw_key, node_hashes, pair_hash
from socialgraph.edges.rules import RandomBlocks, SentenceHubs, SlidingWindow
from socialgraph.edges.sparse import BigBirdEdges, LongformerEdges, QDSEdges, SparseEdges
from socialgraph.errors import OptionError

CLS, SEP, DOT, QUESTION = 2, 3, 5, 6  # of the backbone below
LENGTHS = (90, 0, 47, 1, 130)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    """A tokenizer that knows . and ?, but no !."""
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder, [*SPECIAL, ".", "?", *(f"w{i}" for i in range(13))])
    return str(folder)


def joint_batch(lengths=LENGTHS, seed=0) -> Batch:
    """Return joint graphs of random documents; every second query holds a mark and so does the unknown word 1."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number, length in enumerate(lengths):
        ids = torch.randint(1, 20, (length,), generator=generator)
        ids[(ids > 1) & (ids < 5)] = 9
        query = torch.tensor([7, 8, DOT, 9][: 3 + number % 2])
        nodes = torch.cat([torch.tensor([CLS]), query, torch.tensor([SEP]), ids, torch.tensor([SEP])])
        segment = torch.tensor([0] * (len(query) + 2) + [1] * (length + 1))
        graphs.append(document_graph(nodes, query, draw_key(0, query, ids), segment=segment))
    return Batch.from_data_list(graphs)


def sentence_starts(graph) -> set[int]:
    ids, segment = graph.input_ids.tolist(), graph.segment.tolist()
    document = [place for place in range(len(ids) - 1) if segment[place] == 1]
    marks = (DOT, QUESTION)
    return {p for p in document if ids[p] not in marks and (p == document[0] or ids[p - 1] in marks)}


def longformer(graph, i, j):
    return abs(i - j) <= 8


def longformer_global(graph, i, j):
    return longformer(graph, i, j) or graph.segment[i] == 0 or graph.segment[j] == 0


def qds(graph, i, j):
    starts = sentence_starts(graph)
    return longformer_global(graph, i, j) or i in starts or j in starts


def drawn_blocks(graph, block, listens, amount, seed):
    """Return the blocks with the lowest hashes among those that are no neighbour and no hub."""
    last = (graph.num_nodes - 1) // block
    key = graph.draw_key ^ draw_key(seed, torch.tensor([]), torch.tensor([]))
    one, other = node_hashes(key.expand(last + 1), torch.arange(last + 1))
    free = [b for b in range(1, last) if abs(b - listens) > 1]
    return sorted(free, key=lambda b: (int(pair_hash(one[listens], other[b])), b))[:amount]


def bigbird(graph, i, j):
    a, b, last = i // 8, j // 8, (graph.num_nodes - 1) // 8
    return abs(a - b) <= 1 or {a, b} & {0, last} or b in drawn_blocks(graph, 8, a, 2, 5)


def recipes(backbone):
    return {
        longformer: LongformerEdges(window=16),
        longformer_global: LongformerEdges(window=16, query=True),
        qds: QDSEdges(window=16, backbone=backbone),
        bigbird: BigBirdEdges(block=8, random=2, seed=5),
    }


@pytest.mark.parametrize("block_size", [100, 1 << 20])
@pytest.mark.parametrize("rule", [longformer, longformer_global, qds, bigbird], ids=lambda rule: rule.__name__)
def test_edges_are_the_pairs_of_the_rule_sorted(rule, block_size, backbone):
    lengths = (40, 0, 21, 1, 59) if rule is bigbird else LENGTHS  # bigbird's rule above is slow
    batch = joint_batch(lengths)
    edges = recipes(backbone)[rule]
    edges.block_size = block_size
    edge_index, edge_weight = edges(batch)
    expected = []
    for graph, start in zip(batch.to_data_list(), batch.ptr.tolist(), strict=False):
        n = graph.num_nodes
        mine = [
            [heard, listens]
            for heard in range(n)
            for listens in range(n)
            if heard != listens and rule(graph, listens, heard)
        ]
        assert edges(graph)[0].T.tolist() == mine  # alone, a graph that is no batch
        expected += [[start + heard, start + listens] for heard, listens in mine]
    assert edge_index.T.tolist() == expected
    assert edge_weight.dtype == torch.float32
    assert edge_weight.tolist() == [1.0] * len(expected)


def test_hubs_are_named_and_hear_and_are_heard_by_all(backbone):
    batch = joint_batch()
    hubs = recipes(backbone)[qds].hubs(batch)
    expected = []
    for graph in batch.to_data_list():
        starts = sentence_starts(graph)
        expected += [graph.segment[node] == 0 or node in starts for node in range(graph.num_nodes)]
    assert hubs.tolist() == expected
    assert int(hubs.sum()) > int((batch.segment == 0).sum()) + 10
    assert not bool(LongformerEdges().hubs(batch).any())
    assert torch.equal(LongformerEdges(query=True).hubs(batch), batch.segment == 0)
    block = torch.cat([torch.arange(n) // 8 for n in batch.ptr.diff().tolist()])
    last = torch.cat([torch.full((n,), (n - 1) // 8) for n in batch.ptr.diff().tolist()])
    assert torch.equal(recipes(backbone)[bigbird].hubs(batch), (block == 0) | (block == last))
    size = batch.ptr.diff()[batch.batch]
    for edges in recipes(backbone).values():
        edge_index, hub = edges(batch)[0], edges.hubs(batch)
        for row in edge_index:
            assert torch.equal(torch.bincount(row, minlength=len(hub))[hub], size[hub] - 1)


def test_bad_options_are_refused_and_a_repr_says_all(backbone):
    for make in (lambda: SlidingWindow(1), lambda: RandomBlocks(8, -1), lambda: SparseEdges([])):
        with pytest.raises(OptionError):
            make()
    assert SparseEdges([RandomBlocks(10, 0)])(joint_batch())[0].numel() == 0
    assert repr(BigBirdEdges(8, 2, 5)) == (
        "BigBirdEdges(BlockWindow(block=8), BlockHubs(block=8), RandomBlocks(block=8, amount=2, seed=5))"
    )
    assert SentenceHubs(backbone).marks.tolist() == [DOT, QUESTION]  # [UNK] is not taken for "!"
