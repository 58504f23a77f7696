"""networkx graphs against the tensors they come from."""

from __future__ import annotations

import json

import networkx as nx
import pytest
import torch

from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import InputError, OutputError
from socialgraph.inspect import pattern_probabilities, to_gexf, to_graphml, to_networkx

WEIGHTS = {"static_distance": 1.0, "static_centrality": 3.0, "dynamic_distance": 2.0}
EDGES = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()], WEIGHTS, sparsity=0.8)


def members(graph, number):
    return set(graph.circle_index[0, graph.circle_index[1] == number].tolist())


@pytest.mark.parametrize("place", range(4))
def test_nodes_are_the_documents(batch, place):
    graph = batch[place]
    words = [f"w{i}" for i in graph.input_ids.tolist()]
    result = to_networkx(graph, words)
    assert list(result) == list(range(graph.num_nodes))
    friends, passages = (mask.nonzero().flatten().tolist() for mask in (~graph.passage_mask, graph.passage_mask))
    counts = {"num_circles": len(friends), "num_passages": len(passages)}
    assert result.graph == {"query_id": "", "document_id": "", **counts}
    for node, at in result.nodes.items():
        assert at["word"] == words[node]
        assert at["position"] == node
        assert at["tfidf"] == float(graph.tfidf[node])
        assert at["dynamic_distance"] == float(graph.dynamic_distance[node])
        # friend circles and passages are each numbered from 0
        assert at["circles"] == [number for number, c in enumerate(friends) if node in members(graph, c)]
        assert at["leads"] == [number for number, c in enumerate(friends) if int(graph.leader_index[c]) == node]
        assert [at["passage"]] == [number for number, c in enumerate(passages) if node in members(graph, c)]
        assert at["query_match"] is (int(graph.input_ids[node]) in graph.query_ids.tolist())


@pytest.mark.parametrize("place", range(4))
def test_edges_are_the_friendships(batch, place):
    graph = batch[place]
    result = to_networkx(graph)
    expected = dict(zip(map(tuple, graph.edge_index.T.tolist()), graph.edge_weight.tolist(), strict=True))
    found = {pair: at["weight"] for i, j, at in result.edges(data=True) for pair in ((i, j), (j, i))}
    assert found == expected
    assert not result.is_directed()
    friends = dict(enumerate(members(graph, c) for c in (~graph.passage_mask).nonzero().flatten().tolist()))
    for i, j, at in result.edges(data=True):
        assert at["circles"] == [c for c, inside in friends.items() if i in inside and j in inside]


def test_refusals(batch):
    with pytest.raises(InputError, match="batch of 4"):
        to_networkx(batch)
    graph = batch[0]
    graph.query_id, graph.document_id = "q7", "d9"
    with pytest.raises(InputError, match=r"'q7', document 'd9': expected a word for each of its 70 .* got 1"):
        to_networkx(graph, ["one"])
    del graph.edge_index, graph.edge_weight
    with pytest.raises(InputError, match="build it with GraphBuilder"):
        to_networkx(graph)


@pytest.mark.parametrize("place", [0, 3])
def test_edges_have_the_probability_of_each_pattern(batch, place):
    graph = batch[place]
    # a pattern of little weight has the largest share in no edge, and is seen nevertheless
    edges = SocialEdges({**EDGES.patterns, "far": StaticDistance(50)}, {**WEIGHTS, "far": 0.01}, sparsity=0.8)
    dense = {name: pattern(graph).dense()[0] for name, pattern in edges.patterns.items()}
    network = to_networkx(graph, edges=edges)
    for i, j, at in network.edges(data=True):
        assert all(at[f"p_{name}"] == matrix[i, j] for name, matrix in dense.items())
        parts = {name: WEIGHTS[name] * float(dense[name][i, j]) for name in WEIGHTS}
        assert parts[at["pattern"]] == max(parts.values())
    tensors = pattern_probabilities(graph, edges)
    assert list(tensors) == list(dense)
    for name, matrix in dense.items():
        assert torch.equal(tensors[name], matrix[tuple(graph.edge_index)])


def test_the_probabilities_of_the_patterns_make_that_of_the_edge(batch):
    graph, edges = batch[0], SocialEdges(EDGES.patterns.values(), sparsity=0.8)  # as it was drawn
    parts = pattern_probabilities(graph, edges)
    mean = sum(edges.weights[name] * part for name, part in parts.items())
    factor = graph.edge_weight / mean  # 1 / mu, but where P / mu is clipped at 1
    unclipped = graph.edge_weight < 1
    assert torch.allclose(factor[unclipped], factor[unclipped][0].expand(int(unclipped.sum())), rtol=1e-4)
    pairs = torch.tensor([[0, 5], [5, 0]])
    assert all(len(set(part.tolist())) == 1 for part in pattern_probabilities(graph, EDGES, pairs).values())
    del graph.edge_index
    with pytest.raises(InputError, match="keep_edges=True"):
        pattern_probabilities(graph, EDGES)


def test_it_survives_json_and_the_graph_stays_as_it_was(batch):
    graph = batch[0]
    before = {key: value for key, value in graph.to_dict().items()}
    result = to_networkx(graph, ["$"] * graph.num_nodes, EDGES)
    again = nx.node_link_graph(json.loads(json.dumps(nx.node_link_data(result, edges="edges"))), edges="edges")
    assert nx.utils.graphs_equal(again, result)
    assert graph.to_dict().keys() == before.keys()
    assert all(graph[key] is value for key, value in before.items() if isinstance(value, torch.Tensor))


FORMATS = [(to_graphml, nx.read_graphml), (to_gexf, nx.read_gexf)]


@pytest.mark.parametrize(("write", "read"), FORMATS)
def test_a_file_is_read_back(batch, write, read, tmp_path):
    graph = batch[0]
    graph.query_id, graph.document_id = "q & a", "<d>"
    words = ["</node>", "$x$", "\x00\x1bhid\ud800den", "é漢", "\ufffe", "##ing", *["w"] * 64]
    write(graph, tmp_path / "graph.xml", words, EDGES)
    again, expected = read(tmp_path / "graph.xml", node_type=int), to_networkx(graph, words, EDGES)
    if write is to_graphml:  # GEXF has no place for what is said of the whole graph
        assert {name: again.graph[name] for name in expected.graph} == expected.graph
    assert set(again) == set(expected)
    assert {frozenset(pair) for pair in again.edges} == {frozenset(pair) for pair in expected.edges}
    for node, at in expected.nodes.items():
        got = again.nodes[node]
        assert got.get("circles", "") == ",".join(map(str, at["circles"]))
        assert got.get("leads", "") == ",".join(map(str, at["leads"]))
        assert (got["passage"], got["query_match"], got["position"]) == (at["passage"], at["query_match"], node)
        assert got["tfidf"] == pytest.approx(at["tfidf"])
    shown = ["</node>", "$x$", "hidden", "é漢", None, "##ing", "w"]
    assert [again.nodes[node].get("word") for node in range(7)] == shown
    assert [again.nodes[node]["label"] for node in (0, 2, 6)] == ["</node>", "hidden", "w"]
    for i, j, at in expected.edges(data=True):
        got = again.edges[i, j]
        assert (got["pattern"], got.get("circles", "")) == (at["pattern"], ",".join(map(str, at["circles"])))
        assert all(got[name] == pytest.approx(at[name]) for name in ("weight", *(f"p_{name}" for name in WEIGHTS)))


@pytest.mark.parametrize(("write", "read"), FORMATS)
def test_a_file_of_an_empty_document_and_a_folder_in_its_place(batch, write, read, tmp_path):
    write(batch[1], tmp_path / "graph.xml")
    assert read(tmp_path / "graph.xml").number_of_nodes() == 0
    with pytest.raises(OutputError, match="is a folder: give the path of a file in it"):
        write(batch[3], tmp_path)
