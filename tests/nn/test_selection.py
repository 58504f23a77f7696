"""Choosing, joining and shortening circles, against plain Python over lists."""

import pytest
import torch
from conftest import document_batch, passage_batch
from torch_geometric.data import Batch

from socialgraph.data.graph import circle_document, circle_score, circle_size, rate
from socialgraph.errors import InputError
from socialgraph.nn import circle_sequences
from socialgraph.nn.selection import best, fitting, join, select, text_room, truncate
from socialgraph.partition import Windows
from socialgraph.ranks import ranks

DOCUMENT = torch.tensor([0, 0, 0, 2, 2, 2, 2, 3])  # document 1 has no circle
SCORE = torch.tensor([1.0, 3.0, 2.0, 5.0, 7.0, 7.0, 5.0, 0.0])


def circles_of(graph):
    """Each circle as (leader, members)."""
    node, circle = graph.circle_index.tolist()
    assert circle == sorted(circle)
    members = [[n for n, c in zip(node, circle, strict=True) if c == k] for k in range(graph.leader_index.numel())]
    assert all(one == sorted(set(one)) for one in members)
    return list(zip(graph.leader_index.tolist(), members, strict=True))


def rated(batch):
    generator = torch.Generator().manual_seed(1)
    rate(batch, torch.randint(0, 4, (batch.num_circles,), generator=generator).float())
    return batch


def members_read(score, size, document, room):
    """A literal statement of `fitting`: member by member, from the best circle on, while there is room."""
    read = [0] * len(score)
    left = list(room)
    for circle in sorted(range(len(score)), key=lambda c: (-score[c], c)):
        for _ in range(size[circle]):
            if left[document[circle]] > 0:
                read[circle] += 1
                left[document[circle]] -= 1
    return read


def test_best_by_hand():
    assert ranks(SCORE, DOCUMENT).tolist() == [2, 0, 1, 2, 0, 1, 3, 0]
    as_list = lambda amount: best(SCORE, DOCUMENT, amount).int().tolist()  # noqa: E731
    assert as_list(1) == [0, 1, 0, 0, 1, 0, 0, 1]
    assert as_list(2) == [0, 1, 1, 0, 1, 1, 0, 1]
    assert as_list(3) == [1, 1, 1, 1, 1, 1, 0, 1]
    assert as_list(9) == [1] * 8
    low = torch.full((8,), -torch.inf)
    assert best(low, DOCUMENT, 1).int().tolist() == [1, 0, 0, 1, 0, 0, 0, 1]
    assert best(SCORE[:0], DOCUMENT[:0], 2).shape == (0,)


def test_fitting_by_hand():
    size = torch.tensor([3, 4, 5, 2, 9, 1, 2, 6])
    read = lambda *room: fitting(SCORE, size, DOCUMENT, torch.tensor(room)).tolist()  # noqa: E731
    assert read(4, 0, 10, 6) == [0, 4, 0, 0, 9, 1, 0, 6]
    assert read(6, 0, 10, 5) == [0, 4, 2, 0, 9, 1, 0, 5]  # what overflows is cut
    assert read(3, 0, 8, 1) == [0, 3, 0, 0, 8, 0, 0, 1]  # the best too
    assert read(12, 0, 99, 6) == [3, 4, 5, 2, 9, 1, 2, 6]


def test_fitting_as_the_statement():
    generator = torch.Generator().manual_seed(0)
    draw = lambda high, n: torch.randint(0, high, (n,), generator=generator)  # noqa: E731
    for _ in range(50):
        document = draw(5, int(draw(20, 1))).sort().values
        score, size, room = draw(4, document.numel()).float(), draw(6, document.numel()) + 1, draw(15, 5) + 1
        expected = members_read(score.tolist(), size.tolist(), document.tolist(), room.tolist())
        assert fitting(score, size, document, room).tolist() == expected


def test_selected_circles_and_what_stays():
    batch = rated(document_batch())
    before = circles_of(batch)
    keep = best(batch.circle_score, circle_document(batch), 2)
    assert 4 < int(keep.sum()) < keep.numel()
    graph = select(batch, keep)
    assert circles_of(graph) == [circle for circle, stays in zip(before, keep, strict=True) if stays]
    assert torch.equal(graph.circle_score, batch.circle_score[keep])
    assert torch.equal(graph.passage_mask, batch.passage_mask[keep])
    for key in ("batch", "input_ids", "query_ids", "query_length"):
        assert graph[key] is batch[key]
    assert circles_of(batch) == before
    assert circles_of(batch[0]) == circles_of(document_batch()[0])
    # what is read is what was read of these circles
    whole, part = (circle_sequences(g, cls=2, sep=3) for g in (batch, graph))
    kept = [whole.token[whole.ptr[c] : whole.ptr[c + 1]] for c in keep.nonzero().squeeze(-1)]
    assert torch.equal(part.token, torch.cat(kept))
    assert part.document_ptr.tolist() == [0, 2, 2, 4, 5]
    assert select(batch, torch.zeros_like(keep)).leader_index.shape == (0,)


def test_joined_circles():
    batch = rated(document_batch())
    keep = torch.zeros(batch.num_circles, dtype=torch.bool)
    keep[[1, 3, 6, -3, -2]] = True  # two windows and a friend circle of document 0, two friend circles of document 2
    graph = select(batch, keep)
    owner = batch.batch[graph.leader_index].tolist()
    assert sorted(set(owner)) == [0, 2]
    assert owner.count(2) == 2
    expected = []
    for document in (0, 2):
        union = set()
        for (_, members), mine in zip(circles_of(graph), owner, strict=True):
            union |= set(members) if mine == document else set()
        expected.append((min(union), sorted(union)))
    joined = join(graph)
    assert circles_of(joined) == expected
    assert joined.passage_mask.tolist() == [True, True]
    assert "circle_score" not in joined
    assert "circle_score" in graph
    assert circle_size(joined).tolist() == [len(members) for _, members in expected]


def test_overlapping_windows_join_to_the_document():
    batch = passage_batch((0, 41, 5), Windows(10, 3, 4))
    assert circles_of(join(batch)) == [(0, list(range(41))), (41, list(range(41, 46)))]


def test_shortened_circles():
    batch = document_batch(seed=1)
    before, owner, room = circles_of(batch), circle_document(batch).tolist(), [5, 1, 3, 2]
    expected = []
    for (leader, members), document in zip(before, owner, strict=True):
        stay = members[: room[document]]
        expected.append((leader if leader in stay else stay[0], stay))
    graph = truncate(batch, torch.tensor(room)[circle_document(batch)])
    assert circles_of(graph) == expected
    assert any(new != old for (new, _), (old, _) in zip(expected, before, strict=True))
    assert any(leader not in (stay[0],) for leader, stay in expected)
    assert circles_of(batch) == before
    assert circles_of(truncate(batch, torch.full((batch.num_circles,), 99))) == before


def test_room_and_score_are_asked_for_clearly():
    batch = document_batch()  # queries of 2, 3, 4 and 5 word pieces
    assert text_room(batch, 20).tolist() == [15, 14, 13, 12]
    assert text_room(batch, 9).tolist() == [4, 3, 2, 1]
    with pytest.raises(InputError, match="a query of 5 word pieces leaves no room for text in 8 tokens"):
        text_room(batch, 8)
    with pytest.raises(InputError, match=r"relevance=PassageBM25\(\)"):
        circle_score(batch)
    assert torch.equal(circle_score(rated(batch)), batch.circle_score)


def test_empty_documents_and_single_graphs():
    empty = rated(document_batch(lengths=(0, 0)))
    document, room = circle_document(empty), torch.tensor([3, 3])
    read = fitting(circle_score(empty), circle_size(empty), document, room)
    for graph in (select(empty, read > 0), join(empty), truncate(empty, read)):
        assert circles_of(graph) == []
        assert circle_sequences(graph, cls=2, sep=3).document_ptr.tolist() == [0, 0, 0]
    single = rated(document_batch(lengths=(40,)))[0]
    together = Batch.from_data_list([single])
    assert circle_document(single).tolist() == circle_document(together).tolist() == [0] * single.num_circles
    shorten = lambda g: truncate(g, torch.full((g.num_circles,), 4))  # noqa: E731
    for change in (join, shorten, lambda g: select(g, g.circle_score > 1)):
        assert circles_of(change(single)) == circles_of(change(together))
