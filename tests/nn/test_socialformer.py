"""The model against transformers' BertModel, and its own promises."""

from functools import partial

import pytest
import torch
from conftest import assert_backends_agree, document_batch, pair_inputs, shaken

from socialgraph.errors import InputError, OptionError
from socialgraph.nn import Socialformer, circle_sequences


def circle_texts(batch):
    """Write out of each circle the query, its text and where the leader stands: an independent statement."""
    texts = []
    for document in batch.to_data_list():
        query = document.query_ids.tolist()
        for circle in range(document.num_circles):
            members = document.circle_index[0][document.circle_index[1] == circle]
            place = len(query) + 2 + members.tolist().index(int(document.leader_index[circle]))
            texts.append((query, document.input_ids[members].tolist(), 0 if document.passage_mask[circle] else place))
    return texts


def test_sequences_are_cls_query_sep_members_sep():
    batch = document_batch()
    sequences = circle_sequences(batch, cls=2, sep=3)
    texts = circle_texts(batch)
    assert len(texts) == batch.num_circles == sequences.ptr.numel() - 1 > 10
    for number, (query, text, leader) in enumerate(texts):
        ids, first = [2, *query, 3, *text, 3], len(query) + 2
        start, end = sequences.ptr[number], sequences.ptr[number + 1]
        assert sequences.token[start:end].tolist() == ids
        assert sequences.position[start:end].tolist() == list(range(len(ids)))
        assert sequences.segment[start:end].tolist() == [0] * first + [1] * (len(ids) - first)
        assert int(sequences.leader[number]) == int(start) + leader
    gapped = circle_sequences(batch, cls=2, sep=3, positions="gaps")
    assert gapped.token.tolist() == sequences.token.tolist()
    for number, positions in enumerate(gapped_positions(batch)):
        assert gapped.position[sequences.ptr[number] : sequences.ptr[number + 1]].tolist() == positions
    assert gapped.position.tolist() != sequences.position.tolist()
    by_cls = circle_sequences(batch, cls=2, sep=3, leader="cls")
    assert by_cls.leader.tolist() == by_cls.ptr[:-1].tolist()


def gapped_positions(batch):
    """Write out each circle's positions where every gap between its members takes one place."""
    for document in batch.to_data_list():
        for circle in range(document.num_circles):
            members = document.circle_index[0][document.circle_index[1] == circle].tolist()
            positions = list(range(document.query_ids.numel() + 2))
            for number, member in enumerate(members):
                positions.append(positions[-1] + 1 + (number > 0 and member != members[number - 1] + 1))
            yield [*positions, positions[-1] + 1]


@pytest.mark.parametrize("leader", ["central", "cls"])
@pytest.mark.parametrize("inter_circle", [False, True])
def test_untrained_model_is_bert_on_each_circle(tiny_bert, leader, inter_circle):
    folder, bert = tiny_bert
    batch = document_batch()
    model = Socialformer.from_backbone(folder, leader=leader, inter_circle=inter_circle).eval()
    states = []
    with torch.no_grad():
        for query, text, central in circle_texts(batch):
            hidden = bert(**pair_inputs(query, text)).last_hidden_state[0]
            states.append(hidden[central if leader == "central" else 0])
        states = torch.stack(states)
        document = batch.batch[batch.leader_index]
        for number in range(batch.num_graphs):
            mine = states[document == number]
            pooled = mine.max(0).values if len(mine) else torch.zeros(32)
            expected = model.score.weight[0] @ pooled + model.score.bias[0]
            torch.testing.assert_close(model(batch)[number], expected, atol=1e-5, rtol=0)


def test_the_inter_circle_transformer_learns_from_the_second_step_on(tiny_bert):
    """W^C = [I, 0] shuts it off at first; the gradient of W^C's other half opens it."""
    model, batch = Socialformer.from_backbone(tiny_bert[0], dropout=0.0), document_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    moved = []
    for _ in range(2):
        optimizer.zero_grad()
        model(batch).sum().backward()
        inside = [p.grad.abs().max() for part in model.inter for p in part.transformer.parameters()]
        doors = [part.update.weight.grad[:, 32:].abs().max() for part in model.inter]
        moved.append((float(max(inside)), float(min(doors))))
        optimizer.step()
    assert moved[0][0] == 0 < moved[0][1]
    assert moved[1][0] > 0


def test_edge_path_equals_fused_path_with_gradients(tiny_bert):
    make = partial(Socialformer.from_backbone, tiny_bert[0])
    assert len(assert_backends_agree(make, document_batch(), "padded", "edges")) > 50


def test_leaders_carry_news_between_circles(tiny_bert):
    folder, _ = tiny_bert
    batch = document_batch(lengths=(40,))
    changed = batch.clone()
    inside = batch.circle_index[0][batch.circle_index[1] == 0]
    changed.input_ids = batch.input_ids.clone()
    changed.input_ids[inside] = 7
    for inter_circle, spreads in ((False, False), (True, True)):
        torch.manual_seed(3)
        model = shaken(Socialformer.from_backbone(folder, inter_circle=inter_circle), by=0.05).eval()
        views = []
        for graph in (batch, changed):
            model.readout.register_forward_hook(lambda _, inputs, __, views=views: views.append(inputs[0].detach()))
            with torch.no_grad():
                model(graph)
        untouched = [
            c for c in range(batch.num_circles)
            if not torch.isin(batch.circle_index[0][batch.circle_index[1] == c], inside).any()
        ]  # fmt: skip
        assert untouched
        moved = (views[0][untouched] - views[-1][untouched]).abs().amax(1) > 1e-4
        assert bool(moved.all()) == spreads


@pytest.mark.parametrize("reads", ["updated", "high"])
def test_the_readout_pools_the_states_that_it_is_told(tiny_bert, reads):
    """Of the last block: [low, high] W^C, or high, as equation 11 is written."""
    model, seen = shaken(Socialformer.from_backbone(tiny_bert[0], reads=reads), by=0.05).eval(), {}
    model.inter[-1].register_forward_hook(lambda _, __, states: seen.update(updated=states[0], high=states[1]))
    model.readout.register_forward_hook(lambda _, inputs, __: seen.update(pooled=inputs[0]))
    with torch.no_grad():
        model(document_batch())
    assert not torch.equal(seen["updated"], seen["high"])
    assert torch.equal(seen["pooled"], seen[reads])


def test_gradient_checkpointing_changes_nothing(tiny_bert):
    folder, _ = tiny_bert
    batch = document_batch()
    gradients, runs = [], []
    for every in (0, 1, 2):
        torch.manual_seed(3)
        model = shaken(Socialformer.from_backbone(folder, dropout=0.0), by=0.05).train()
        if every:
            model.gradient_checkpointing_enable(every_n_layers=every)
        counted = [0] * len(model.layers)
        for number, layer in enumerate(model.layers):
            norm = layer.output_norm
            norm.register_forward_hook(lambda *_, n=number, c=counted: c.__setitem__(n, c[n] + 1))
        model(batch).sum().backward()
        gradients.append(model.embedding.word.weight.grad)
        runs.append(counted)
    torch.testing.assert_close(gradients[0], gradients[1])
    torch.testing.assert_close(gradients[0], gradients[2])
    assert runs == [[1, 1, 1], [2, 2, 2], [2, 1, 2]]  # what is checkpointed is computed twice


def test_bad_options_and_too_long_circles_are_refused(tiny_bert):
    folder, _ = tiny_bert
    for options in ({"readout": "no-such-pool"}, {"inter_heads": 5}, {"reads": "high", "inter_circle": False},
                    {"leader": "tallest"}):  # fmt: skip
        with pytest.raises(OptionError):
            Socialformer.from_backbone(folder, **options)
    with pytest.raises(InputError, match="this BERT reads 96"):
        Socialformer.from_backbone(folder)(document_batch(lengths=(200,), passages=128))
