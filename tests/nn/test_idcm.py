"""The cascade against plain Python and transformers' BertModel; what each stage of training moves."""

import math

import pytest
import torch
from conftest import pair_inputs, passage_batch

from socialgraph.errors import OptionError
from socialgraph.nn.idcm import ESM, IDCM
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


def test_kernels_by_hand():
    esm = ESM(2, kernels=5, conv_width=1)
    with torch.no_grad():
        esm.conv.weight.copy_(torch.eye(2).unsqueeze(-1))
        esm.conv.bias.zero_()
        esm.score.weight.copy_(torch.tensor([[1.0, 10.0, 100.0, 1000.0, 10000.0]]))
        esm.score.bias.fill_(0.5)
    assert esm.mu.tolist() == pytest.approx([1.0, 0.75, 0.25, -0.25, -0.75])
    assert esm.sigma.tolist() == pytest.approx([1e-3, 0.25, 0.25, 0.25, 0.25])
    query = torch.tensor([[[2.0, 0.0]]])  # cosines with the chunk's two tokens: 1 and 0.6
    chunk = torch.tensor([[[5.0, 0.0], [3.0, 4.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    bell = lambda x: math.exp(-(x**2) / 2)  # noqa: E731
    # distances in sigmas of 1.0 and 0.6 from each mu; the exact kernel sees the first token only
    kernels = [1.0, bell(1.0) + bell(0.6), bell(3.0) + bell(1.4), bell(5.0) + bell(3.4), bell(7.0) + bell(5.4)]
    expected = 0.5 + sum(10.0**k * math.log(max(x, 1e-4)) for k, x in enumerate(kernels))
    score = esm(query, torch.tensor([[True]]), chunk, mask, torch.tensor([0]))
    assert score.item() == pytest.approx(expected, rel=1e-4)
    assert ESM(2).mu.tolist() == pytest.approx([mu for mu, _ in KERNELS])
    assert ESM(2).sigma.tolist() == pytest.approx([sigma for _, sigma in KERNELS])


def test_an_exact_match_is_a_word_of_the_query_whatever_follows_it(tiny_bert):
    """The kernel of exact matches counts words: log K is 0 for one match, log 2 for two, log 1e-4 for none."""
    batch = chunk_batch(lengths=(40,))
    query = batch.query_ids[:2]
    batch.input_ids[[3, 9, 10, 17]] = query[[0, 0, 1, 0]]
    batch.input_ids[[16, 18]] = batch.input_ids[[2, 4]]  # as in the first chunk, but for what stands around
    model = IDCM.from_backbone(tiny_bert[0]).eval()
    with torch.no_grad():
        model.esm.score.weight.zero_()[0, 0] = 1.0
        found = model.promise(batch)
    chunks = [batch.input_ids[i : i + 8].tolist() for i in range(0, 40, 8)]
    counts = [[chunk.count(word) for word in batch.query_ids.tolist()] for chunk in chunks]
    assert any(max(one) for one in counts)
    expected = [sum(math.log(max(count, 1e-4)) for count in one) for one in counts]
    assert found.tolist() == pytest.approx(expected, abs=1e-3)


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


def test_only_the_chosen_chunks_go_through_bert(tiny_bert):
    model = build(tiny_bert[0], chunks=2)
    sizes = []
    model.score.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    with torch.no_grad():
        model(chunk_batch())
    assert sizes == [2 + 0 + 2 + 1]


def test_half_precision_chooses_the_same_chunks(tiny_bert):
    batch = chunk_batch()
    model = build(tiny_bert[0], chunks=2)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        rough, promise = model(batch), model.promise(batch)
    with torch.no_grad():
        assert torch.equal(promise, model.promise(batch))
        torch.testing.assert_close(rough.float(), model(batch), atol=0.1, rtol=0.1)


def test_bad_options_are_refused(tiny_bert):
    for options in ({"chunks": 0}, {"kernels": 1}, {"conv_width": 0}):
        with pytest.raises(OptionError, match=f"{next(iter(options))} must be at least"):
            IDCM.from_backbone(tiny_bert[0], **options)
    with pytest.raises(OptionError, match="IDCM has the stages passage, document, selection, got 'ranking'"):
        IDCM.from_backbone(tiny_bert[0]).enter("ranking")
