"""What each stage of the cascade's training moves, and the loss of its selection."""

import math

import pytest
import torch
from test_idcm import build, chunk_batch, written_out

from socialgraph.nn.idcm import IDCM, order_loss


def test_stages_train_on_one_chunk_then_on_all(tiny_bert):
    folder, bert = tiny_bert
    batch = chunk_batch()
    model = IDCM.from_backbone(folder, chunks=3, dropout=0.0).train()
    assert model.stage == "selection"
    with torch.no_grad():
        model.weights.copy_(torch.tensor([1.0, 0.5, 0.25]))
        large = [one for _, one, _ in written_out(model, bert, batch)]
    seen = []

    def objective(scores):
        seen.append(scores.detach())
        return scores.sum()

    model.enter("passage")
    model(batch, objective).backward()
    untouched = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert untouched == {name for name, _ in model.named_parameters() if name.startswith(("esm.", "weights"))}
    batch.circle_score = torch.arange(15.0) % 7  # best: chunk 6 of the first, 1 of the third, 0 of the last document
    assert batch.leader_index.numel() == 15
    model(batch, objective)
    model.enter("document")
    model.zero_grad()
    model(batch, objective).backward()
    untouched = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert untouched == {name for name, _ in model.named_parameters() if name.startswith("esm.")}
    scores = lambda c: [one[number] if one else 0.0 for one, number in zip(large, c, strict=True)]  # noqa: E731
    weighted = [sum(w * s for w, s in zip((1, 0.5, 0.25), sorted(one)[::-1], strict=False)) for one in large]
    torch.testing.assert_close(seen[0], torch.tensor(scores((0, 0, 0, 0))), atol=1e-5, rtol=0)
    torch.testing.assert_close(seen[1], torch.tensor(scores((6, 0, 4, 0))), atol=1e-5, rtol=0)
    torch.testing.assert_close(seen[2], torch.tensor(weighted), atol=1e-5, rtol=0)


def plain_order_loss(score, target, document, amount):
    """NDCG-Loss2 in plain loops, one document after the other."""
    losses = []
    for number in range(max(document) + 1):
        mine = [c for c in range(len(score)) if document[c] == number]
        if len(mine) <= amount:
            continue
        by_target = sorted(mine, key=lambda c: -target[c])
        by_score = sorted(mine, key=lambda c: -score[c])
        gain = {c: max(amount - by_target.index(c), 0) for c in mine}
        ideal = sum((2 ** (amount - r) - 1) / math.log2(2 + r) for r in range(amount))
        losses.append(0.0)
        for i in mine:
            for j in mine:
                if gain[i] > gain[j]:
                    apart = abs(by_score.index(i) - by_score.index(j))
                    delta = abs(1 / math.log2(1 + apart) - 1 / math.log2(2 + apart))
                    weight = delta * abs((2 ** gain[i] - 1) / ideal - (2 ** gain[j] - 1) / ideal)
                    losses[-1] -= weight * math.log2(1 / (1 + math.exp(-(score[i] - score[j]))))
    return sum(losses) / max(len(losses), 1)


@pytest.mark.parametrize("amount", [1, 2, 4])
def test_order_loss_is_ndcg_loss_2(amount):
    generator = torch.Generator().manual_seed(amount)
    document = torch.tensor([0] * 7 + [2] * 3 + [3] * 5 + [4])
    score, target = (torch.randn(len(document), generator=generator) for _ in range(2))
    expected = plain_order_loss(score.tolist(), target.tolist(), document.tolist(), amount)
    assert expected > 0
    assert order_loss(score, target, document, amount).item() == pytest.approx(expected, rel=1e-5)
    exact = score.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: order_loss(x, target, document, amount), exact)


def test_order_loss_is_stable_and_defined():
    document = torch.zeros(5, dtype=torch.long)
    score = torch.tensor([-1e4, 1e4, 0.0, 3.0, 5.0], requires_grad=True)
    loss = order_loss(score, -score.detach(), document, 2)
    loss.backward()
    assert loss.isfinite()
    assert score.grad.isfinite().all()
    score.grad = None
    loss = order_loss(score, score.detach(), document, 5)  # five chunks, five places: no choice
    loss.backward()
    assert loss.item() == 0
    assert score.grad.tolist() == [0] * 5


def test_the_selection_stage_moves_the_small_model_alone_and_hears_no_dropout(tiny_bert):
    batch = chunk_batch()
    model = build(tiny_bert[0], chunks=2, dropout=0.5).train()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        expected = plain_order_loss(
            model.promise(batch).tolist(),
            model.eval().judge(batch).tolist(),
            batch.batch[batch.leader_index].tolist(),
            2,
        )
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-3, weight_decay=0.1)
    for _ in range(2):
        loss = model(batch, lambda scores: pytest.fail("the judgements are not asked"))
        optimizer.zero_grad()
        loss.backward()
        assert loss.item() == pytest.approx(expected, rel=1e-4)  # the same loss twice: BERT is heard without dropout
    optimizer.step()
    assert model.training
    assert all(module.training for module in model.modules())
    moved = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert moved == {name for name in before if name.startswith("esm.")}


def test_the_small_model_learns_berts_order(tiny_bert):
    batch = chunk_batch(lengths=(64, 64, 60, 1, 0))
    model = build(tiny_bert[0], chunks=2).train()
    optimizer = torch.optim.AdamW(model.esm.parameters(), lr=3e-3)

    def found():
        """How many of BERT's two best chunks are chosen, of 2 * 3."""
        with torch.no_grad():
            small, large = model.promise(batch)[:24].view(3, 8), model.eval().judge(batch)[:24].view(3, 8)
        model.train()
        return sum(
            len({*s.topk(2).indices.tolist()} & {*b.topk(2).indices.tolist()})
            for s, b in zip(small, large, strict=True)
        )

    before, losses = found(), []
    for _ in range(60):
        losses.append(model(batch, torch.sum))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert before < 6
    assert found() == 6
    assert losses[-1] < 0.3 * losses[0]
    with torch.no_grad():  # what BERT would say of all chunks is now found by reading two
        model.eval()
        torch.testing.assert_close(model(batch), model.documents(batch), atol=1e-5, rtol=0)
