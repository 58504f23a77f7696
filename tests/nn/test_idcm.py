"""The cascade against plain Python and transformers' BertModel; what each stage of training moves."""

import math

import pytest
import torch
from conftest import pair_inputs, passage_batch

from socialgraph.errors import OptionError
from socialgraph.nn.idcm import IDCM, order_loss
from socialgraph.partition import Windows


def chunk_batch(lengths=(70, 0, 33, 1)):
    """Documents whose circles are windows: 9, 0, 5 and 1 chunks, the last ones of the long ones shorter."""
    return passage_batch(lengths, Windows(8))


def build(folder, seed=5, **options):
    """A model whose every weight is away from its start."""
    torch.manual_seed(seed)
    model = IDCM.from_backbone(folder, **options).eval()
    for name, parameter in model.named_parameters():
        parameter.data += (0.3 if name.startswith(("esm.", "score.", "weights")) else 0.02) * torch.randn_like(
            parameter
        )
    return model


def states(esm, embeddings):
    """The convolution of one text in plain loops."""
    weight, bias = esm.conv.weight, esm.conv.bias
    rows = []
    for place in range(len(embeddings)):
        row = bias.clone()
        for ahead in range(weight.size(2)):
            if place + ahead < len(embeddings):
                row = row + weight[:, :, ahead] @ embeddings[place + ahead]
        rows.append(row.clamp(min=0))
    return rows


def small_score(esm, query, chunk, kernels):
    """The small model's score of one chunk in plain loops; ``kernels`` are pairs (mu, sigma)."""
    words, contexts = (query, chunk), (states(esm, query), states(esm, chunk))
    total = esm.score.bias[0]
    for number, (mu, sigma) in enumerate(kernels):
        ours, theirs = words if number == 0 and esm.exact == "words" else contexts
        for one in ours:
            cosines = [torch.dot(one, other) / (one.norm() * other.norm()).clamp(min=1e-12) for other in theirs]
            kernel = sum(math.exp(-((float(c) - mu) ** 2) / (2 * sigma**2)) for c in cosines)
            total = total + esm.score.weight[0, number] * math.log(max(kernel, 1e-4))
    return float(total)


KERNELS = [(1.0, 1e-3), *((0.9 - 0.2 * k, 0.1) for k in range(10))]
AS_RELEASED = [(1.0, 0.1), *KERNELS[1:]]


def written_out(model, bert, batch):
    """Return for each document the small model's and BERT's score of each chunk, and the cascade's score."""
    model_words = model.embedding.word.weight
    found = []
    for document in batch.to_data_list():
        query, small, large = document.query_ids, [], []
        for circle in range(document.num_circles):
            chunk = document.input_ids[document.circle_index[0][document.circle_index[1] == circle]]
            kernels = KERNELS if model.esm.exact == "words" else AS_RELEASED
            small.append(small_score(model.esm, model_words[query], model_words[chunk], kernels))
            inputs = pair_inputs(query.tolist(), chunk.tolist())
            large.append(float(model.score(bert(**inputs).last_hidden_state[0, 0])))
        read = sorted(range(len(small)), key=lambda c, s=small: -s[c])[: model.chunks]
        judged = sorted((large[c] for c in read), reverse=True)
        found.append((small, large, sum(w * s for w, s in zip(model.weights.tolist(), judged, strict=False))))
    return found


@pytest.mark.parametrize("exact", ["words", "states"])
def test_the_cascade_is_what_it_says(tiny_bert, exact):
    folder, bert = tiny_bert
    batch = chunk_batch()
    batch.input_ids[14:16] = batch.query_ids[:2]  # the end of a chunk is the query: exact matches in context
    model = IDCM.from_backbone(folder, chunks=3, exact=exact).eval()
    assert model.weights.tolist() == [1, 1, 1]
    torch.manual_seed(2)
    with torch.no_grad():
        model.weights.copy_(torch.tensor([1.5, -0.7, 0.3]))
        model.esm.score.weight.normal_()
        model.score.weight.normal_()
        model.score.bias.fill_(0.4)
        expected = written_out(model, bert, batch)
        small = torch.tensor([score for one, _, _ in expected for score in one])
        large = torch.tensor([score for _, one, _ in expected for score in one])
        torch.testing.assert_close(model.promise(batch), small, atol=2e-3, rtol=1e-4)
        torch.testing.assert_close(model.judge(batch), large, atol=1e-5, rtol=0)
        scores = model(batch)
        torch.testing.assert_close(scores, torch.tensor([score for _, _, score in expected]), atol=1e-5, rtol=0)
        assert scores[1] == 0
        whole = model.documents(batch)
        assert (whole - scores).abs()[0] > 1e-3  # had it read all chunks, others would have been the best
        torch.testing.assert_close(whole[3], scores[3])
        single = batch.to_data_list()[2]
        torch.testing.assert_close(model(single), scores[2:3], atol=1e-5, rtol=0)


def test_bad_options_are_refused(tiny_bert):
    with pytest.raises(OptionError, match="kernels must be at least 2, got 1"):
        IDCM.from_backbone(tiny_bert[0], kernels=1)
    with pytest.raises(OptionError, match="the stage of IDCM must be one of passage, document, selection, got 'rank"):
        IDCM.from_backbone(tiny_bert[0]).enter("ranking")


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
