"""Choosing, joining and shortening circles, against plain Python over lists."""

import torch
from conftest import document_batch

from socialgraph.data.graph import circle_document, circle_size, rate
from socialgraph.nn import circle_sequences
from socialgraph.nn.selection import best, join, select, truncate


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
