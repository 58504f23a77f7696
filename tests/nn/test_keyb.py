"""KeyB, both ways, against a plain statement with transformers' BertModel."""

import pytest
import torch
from conftest import pair_inputs, passage_batch

from socialgraph.data.graph import circle_document, rate
from socialgraph.errors import InputError, OptionError
from socialgraph.nn.keyb import KeyB, KeyBPARADE
from socialgraph.nn.parade import PARADE
from socialgraph.nn.selection import select
from socialgraph.partition import Windows

LENGTHS = (70, 0, 33, 1, 8)
BLOCK = 9


def blocks(lengths=LENGTHS, rated=True):
    """Documents in blocks of 9 tokens, each with a random score."""
    batch = passage_batch(lengths, Windows(BLOCK))
    if rated:
        generator = torch.Generator().manual_seed(2)
        rate(batch, torch.randint(0, 5, (batch.num_circles,), generator=generator).float())  # with ties
    return batch


def score(model, bert, query, text):
    """The model's score of [CLS] query [SEP] text [SEP], by transformers."""
    with torch.no_grad():
        return model.score(bert(**pair_inputs(query, text)).last_hidden_state[0, 0]).item()


def statement(model, bert, graph, values, length):
    """What KeyB is: score of the best blocks, until the room is full, in the order of the text."""
    query, text = graph.query_ids.tolist(), graph.input_ids.tolist()
    cut = [text[i : i + BLOCK] for i in range(0, len(text), BLOCK)]
    if not cut:
        return model.score.bias.item(), 0
    room = length - 3 - len(query)
    order = sorted(range(len(cut)), key=lambda c: (-values[c], c))
    taken = {}
    for block in order:  # the block that overflows is added, and cut
        if room > 0:
            taken[block] = cut[block][:room]
            room -= len(taken[block])
    joined = [word for c in sorted(taken) for word in taken[c]]
    return score(model, bert, query, joined), len(taken)


def move(model, bert):
    """Give the linear layer large weights, so that blocks differ, and a bias."""
    torch.manual_seed(4)
    torch.nn.init.normal_(model.score.weight)
    model.score.bias.data.fill_(0.2)
    return model.eval(), bert


@pytest.mark.parametrize("length", [96, 40, 13])  # all blocks of most, some, less than one
@pytest.mark.parametrize("select", ["bm25", "bert"])
def test_the_best_blocks_in_the_order_of_the_text(tiny_bert, select, length):
    folder, bert = tiny_bert
    model, bert = move(KeyB.from_backbone(folder, select=select, length=length), bert)
    batch = blocks()
    expected, amounts = [], []
    for graph in batch.to_data_list():
        values = graph.circle_score.tolist()
        if select == "bert":
            text, query = graph.input_ids.tolist(), graph.query_ids.tolist()
            values = [score(model, bert, query, text[i : i + BLOCK]) for i in range(0, len(text), BLOCK)]
        value, amount = statement(model, bert, graph, values, length)
        expected.append(value)
        amounts.append(amount)
    assert amounts[0] in {96: (8,), 40: (4, 5), 13: (1, 2)}[length]  # of 8 blocks, the last of 7 tokens
    with torch.no_grad():
        scores = model(batch)
    assert scores.tolist() == pytest.approx(expected, abs=1e-4)


def test_selecting_takes_no_gradient_and_no_dropout(tiny_bert):
    model = KeyB.from_backbone(tiny_bert[0], select="bert", length=40, dropout=0.5).train()
    batch = blocks()
    first, second = model.glance(batch), model.glance(batch)
    assert torch.equal(first, second)
    assert not first.requires_grad
    assert all(module.training for module in model.modules())
    # the gradient is that of reading the chosen blocks alone
    plain = KeyB.from_backbone(tiny_bert[0], select="bm25", length=40, dropout=0.0).train()
    plain.load_state_dict(model.state_dict())
    rate(batch, first)
    by_itself = KeyB.from_backbone(tiny_bert[0], select="bert", length=40, dropout=0.0).train()
    by_itself.load_state_dict(model.state_dict())
    for reader in (plain, by_itself):
        reader(batch).sum().backward()
    for (name, one), other in zip(plain.named_parameters(), by_itself.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, msg=name)


def test_keyb_parade_reads_the_best_passages(tiny_bert):
    folder, _ = tiny_bert
    torch.manual_seed(0)
    model = KeyBPARADE.from_backbone(folder, passages=2).eval()
    parade = PARADE.from_backbone(folder, readout="transformer").eval()
    parade.load_state_dict(model.state_dict())
    batch = blocks()
    score, document = batch.circle_score.tolist(), circle_document(batch).tolist()
    best = sorted(range(len(score)), key=lambda c: (document[c], -score[c], c))
    keep = torch.zeros(len(score), dtype=torch.bool)
    keep[[c for number in range(5) for c in [one for one in best if document[one] == number][:2]]] = True
    with torch.no_grad():
        torch.testing.assert_close(model(batch), parade(select(batch, keep)), atol=1e-5, rtol=0)
        assert not torch.allclose(model(batch), parade(batch))


@pytest.mark.parametrize("make", [KeyB, KeyBPARADE])
def test_graphs_without_scores_and_bad_options_are_refused(tiny_bert, make):
    folder, _ = tiny_bert
    with pytest.raises(InputError, match=r"no circle_score: build it with GraphBuilder\(..., relevance=PassageBM25"):
        make.from_backbone(folder)(blocks(rated=False))
    with pytest.raises(OptionError, match=r"bm25, bert, got 'tfidf'|passages must be at least 1 or None, got 0"):
        make.from_backbone(folder, **({"select": "tfidf"} if make is KeyB else {"passages": 0}))
    assert make.from_backbone(folder).eval()(blocks((0, 0))).tolist() == [0.0, 0.0]
