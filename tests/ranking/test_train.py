"""Training lowers the loss, resumes, and counts groups; the loss is the paper's."""

import math

import pytest
import torch
from conftest import document_batch

from socialgraph.data import Document, GraphBuilder, Split, TermStatistics, Tokens, TrainingGroups, WeightCache
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticDistance
from socialgraph.errors import OptionError
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import listwise_cross_entropy, rerank, train


def test_listwise_cross_entropy_by_hand():
    scores = torch.tensor([1.0, 2.0, 0.5, 3.0, -1.0])
    group = torch.tensor([0, 0, 0, 1, 1])
    relevant = torch.tensor([True, False, False, False, True])
    first = -math.log(math.exp(1) / (math.exp(1) + math.exp(2) + math.exp(0.5)))
    second = -math.log(math.exp(-1) / (math.exp(-1) + math.exp(3)))
    loss = listwise_cross_entropy(scores, group, relevant)
    assert loss.item() == pytest.approx((first + second) / 2, abs=1e-6)
    equal = torch.nn.functional.cross_entropy(scores[None, :3], torch.tensor([0]))
    assert listwise_cross_entropy(scores[:3], group[:3], relevant[:3]).item() == pytest.approx(equal.item(), abs=1e-6)


def test_a_hopeless_or_certain_loss_stays_finite():
    scores = torch.tensor([-5000.0, 5000.0], requires_grad=True)
    loss = listwise_cross_entropy(scores, torch.tensor([0, 0]), torch.tensor([True, False]))
    loss.backward()
    assert loss.isfinite()
    assert scores.grad.isfinite().all()


@pytest.fixture
def task(tiny_bert):
    """Documents about one word each; the query is the word."""
    folder, _ = tiny_bert
    documents = {
        f"d{i}": Document(f"d{i}", f"w{i} " * 5 + " ".join(f"w{100 + i + j}" for j in range(20))) for i in range(8)
    }
    queries = {f"q{i}": f"w{i}" for i in range(8)}
    split = Split(
        queries, {f"q{i}": {f"d{i}": 1} for i in range(8)}, {q: dict.fromkeys(documents, 1.0) for q in queries}
    )
    tokens = Tokens(folder)
    statistics = TermStatistics.count((tokens.document(d) for d in documents.values()), tokens.vocab_size)
    edges = SocialEdges([StaticDistance(), DynamicDistance()])
    return folder, split, GraphBuilder(documents, tokens, statistics, edges, EdgeCircles(k=2), Windows(16))


OPTIONS = {"learning_rate": 2e-3, "per_device_train_batch_size": 4, "use_cpu": True, "disable_tqdm": True}


def test_training_learns_the_task_and_resumes_to_the_same_weights(task, tmp_path):
    folder, split, builder = task
    groups = TrainingGroups(split, size=48, negatives=3)
    straight = Socialformer.from_backbone(folder)
    options = {**OPTIONS, "num_train_epochs": 4, "logging_steps": 6, "save_strategy": "steps", "save_steps": 24}
    log = train(straight, builder, groups, split.queries, tmp_path / "a", **options)
    losses = [line["loss"] for line in log if "loss" in line]
    assert losses[-1] < 0.5 * losses[0]
    run = rerank(straight, builder, split.queries, split.candidates, progress=False)
    assert sum(next(iter(scores)) == f"d{q[1:]}" for q, scores in run.items()) >= 6

    resumed = Socialformer.from_backbone(folder)
    checkpoint = str(tmp_path / "a" / "checkpoint-24")
    train(resumed, builder, groups, split.queries, tmp_path / "b", resume=checkpoint, **options)
    for name, value in resumed.state_dict().items():
        torch.testing.assert_close(value, straight.state_dict()[name], atol=1e-6, rtol=1e-5, msg=name)


def test_accumulation_equals_one_large_batch(task, tmp_path):
    folder, split, builder = task
    groups = TrainingGroups(split, size=4, negatives=3)
    weights = []
    for size, accumulate in ((4, 1), (1, 4)):
        torch.manual_seed(0)
        model = Socialformer.from_backbone(folder, dropout=0.0)
        options = {
            **OPTIONS,
            "per_device_train_batch_size": size,
            "gradient_accumulation_steps": accumulate,
            "optim": "sgd",
        }
        train(model, builder, groups, split.queries, tmp_path, **options)
        weights.append(model.state_dict())
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name], atol=1e-6, rtol=1e-4, msg=name)


def test_workers_change_no_loss(task, tmp_path):
    folder, split, builder = task
    groups = TrainingGroups(split, size=24, negatives=3)
    builder.edges = SocialEdges([StaticDistance(), DynamicCentrality(folder)])
    logs = []
    for workers in (0, 2):
        builder.cache = WeightCache()
        torch.manual_seed(0)
        model = Socialformer.from_backbone(folder)
        # ranked before, as in a run that goes on: what was kept then must be good for training too
        rerank(model, builder, split.queries, split.candidates, progress=False)
        options = {**OPTIONS, "num_train_epochs": 2, "logging_steps": 1, "dataloader_num_workers": workers}
        log = train(model, builder, groups, split.queries, tmp_path, **options)
        logs.append([line["loss"] for line in log if "loss" in line])
    assert len(logs[0]) == 12
    assert logs[1] == pytest.approx(logs[0], abs=1e-5)


def test_unknown_arguments_are_refused(task, tmp_path):
    folder, split, builder = task
    with pytest.raises(OptionError, match=r"trainer: .*learning_speed"):
        train(
            Socialformer.from_backbone(folder),
            builder,
            TrainingGroups(split, 4),
            split.queries,
            tmp_path,
            learning_speed=1,
        )


def test_gradients_reach_every_weight(tiny_bert):
    folder, _ = tiny_bert
    model = Socialformer.from_backbone(folder).train()
    for inter in model.inter:  # W^C = [I, 0] lets no gradient into the leaders' transformer at step 0
        torch.nn.init.normal_(inter.update.weight, std=0.1)
    model(document_batch()).sum().backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert without == []
