"""Training lowers the loss, repeats bit for bit, and counts groups; head and BERT learn at their own rates."""

import pytest
import torch
from trained import losses_of, trained
from training_task import OPTIONS, Overlap
from transformers import TrainingArguments

from socialgraph.data import Cache, Split, TrainingGroups
from socialgraph.data.groups import GroupCollator
from socialgraph.edges import DynamicCentrality, SocialEdges, StaticDistance
from socialgraph.errors import InputError, OptionError, TooLargeError
from socialgraph.nn import Socialformer
from socialgraph.ranking import rerank, train
from socialgraph.ranking.trainer import RankingTrainer


def test_training_learns_the_task(task, tmp_path):
    _, split, builder = task
    model, log = trained(task, tmp_path, size=48, negatives=3, num_train_epochs=4, logging_steps=7)
    losses = losses_of(log)
    assert losses[-1] < 0.5 * losses[0]
    run = rerank(model, builder, split.queries, split.candidates, progress=False)
    assert sum(next(iter(scores)) == f"d{q[1:]}" for q, scores in run.items()) >= 6


def test_accumulation_equals_one_large_batch(task, tmp_path):
    weights = []
    for size, accumulate in ((4, 1), (1, 4)):
        torch.manual_seed(0)
        model = Socialformer.from_backbone(task[0], dropout=0.0)
        steps = {"per_device_train_batch_size": size, "gradient_accumulation_steps": accumulate}
        trained(task, tmp_path, model, size=4, negatives=3, optim="sgd", **steps)
        weights.append(model.state_dict())
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name], atol=1e-6, rtol=1e-4, msg=name)


def test_workers_change_no_loss(task, tmp_path):
    folder, split, builder = task
    builder.edges = SocialEdges([StaticDistance(), DynamicCentrality(folder)])
    logs = []
    for workers in (0, 2):
        builder.cache = Cache()
        torch.manual_seed(0)
        model = Socialformer.from_backbone(folder)
        # ranked before, as in a run that goes on: what was kept then must be good for training too
        rerank(model, builder, split.queries, split.candidates, progress=False)
        options = {"num_train_epochs": 2, "dataloader_num_workers": workers}
        logs.append(losses_of(trained(task, tmp_path, model, size=24, negatives=3, **options)[1]))
    assert len(logs[0]) == 12
    # a worker has one thread and other batches: BERT's weights, and with them the graphs, differ in their last digits
    assert logs[1] == pytest.approx(logs[0], abs=1e-5)


class Seen(TrainingGroups):
    """Remembers which groups were asked for."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.asked = []

    def __getitem__(self, index):
        self.asked.append(index)
        return super().__getitem__(index)


def test_groups_come_in_their_order_or_shuffled_by_the_seed(task, tmp_path):
    folder, split, builder = task
    orders = []
    for options in ({}, {"train_sampling_strategy": "random"}):
        groups = Seen(split, 12, negatives=1)
        options = {**OPTIONS, "num_train_epochs": 2, **options}
        train(Socialformer.from_backbone(folder), builder, groups, tmp_path, **options)
        orders.append(groups.asked)  # nothing is drawn before
    assert orders[0] == [*range(12)] * 2
    first, second = orders[1][:12], orders[1][12:]
    assert sorted(first) == sorted(second) == [*range(12)]
    assert first != second


@pytest.mark.parametrize("workers", [0, 1])
def test_each_epoch_has_draws_of_its_own_where_it_shall(task, tmp_path, workers):
    losses = []
    for fresh in (False, True):
        torch.manual_seed(0)
        model = Socialformer.from_backbone(task[0], dropout=0.0)
        options = {"num_train_epochs": 3, "learning_rate": 0.0, "dataloader_num_workers": workers}
        losses.append(losses_of(trained(task, tmp_path, model, size=4, fresh_draws=fresh, **options)[1]))
    assert len(losses[0]) == len(losses[1]) == 3
    assert losses[0][0] == losses[0][1] == losses[0][2] == losses[1][0]
    assert len(set(losses[1])) == 3


def step(task, folder, model, **options):
    """Train one step of plain gradient descent and return how far each parameter went."""
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    plain = {"optim": "sgd", "lr_scheduler_type": "constant", "max_grad_norm": 0}
    _, log = trained(task, folder, model, size=4, negatives=3, **plain, **options)
    moved = {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}
    return moved, log[0]


def test_head_and_bert_have_their_own_rates_and_one_schedule_and_weight_decay(task, tmp_path):
    model = Socialformer.from_backbone(task[0])
    arguments = TrainingArguments(str(tmp_path), weight_decay=0.1, learning_rate=1e-3, warmup_steps=4, use_cpu=True)
    groups, collator = TrainingGroups(task[1], 8), GroupCollator(task[2])
    trainer = RankingTrainer(model, arguments, groups, collator, head_learning_rate=1e-2)
    trainer.create_optimizer_and_scheduler(8)
    for _ in range(2):
        trainer.optimizer.step()
        trainer.lr_scheduler.step()
    found = {
        id(parameter): (group["lr"], group["weight_decay"])
        for group in trainer.optimizer.param_groups
        for parameter in group["params"]
    }
    for name, parameter in model.named_parameters():
        rate = 1e-3 if name.startswith(("embedding.", "layers.")) else 1e-2
        decay = 0.0 if name.endswith(".bias") or "norm" in name else 0.1
        assert found.pop(id(parameter)) == (pytest.approx(rate / 2), decay), name
    assert not found


def test_a_loss_by_name_or_function_is_the_one_that_is_lowered(task, tmp_path):
    values = {}
    losses = {"listwise": "listwise", "binary": "binary", "own": lambda scores, *_: 0 * scores.sum() + 7}
    for name, loss in losses.items():
        torch.manual_seed(0)
        model = Socialformer.from_backbone(task[0], dropout=0.0)
        values[name] = step(task, tmp_path, model, loss=loss)[1]["loss"]
    # scores near 0: of four documents log 4, of one log 2
    assert values == pytest.approx({"listwise": 1.386, "binary": 0.693, "own": 7}, abs=0.1)


def test_a_module_that_only_scores_is_trained(task, tmp_path):
    moved, log = step(task, tmp_path, Overlap(), loss="hinge", learning_rate=0.1)
    assert log["loss"] == pytest.approx(1.0)
    assert moved["weight"] > 0


class TwoStages(Socialformer):
    """Learns scores, then the bias alone, with a loss of its own."""

    stages = ("scores", "bias")

    def forward(self, graph, objective=None):
        if objective is None or self.stage == "scores":
            return super().forward(graph, objective)
        return (self.score.bias - 1).square().sum()


def test_what_is_trained_is_the_stage_that_a_model_is_in(task, tmp_path):
    model = TwoStages.from_backbone(task[0])
    model.enter("scores")
    moved, log = step(task, tmp_path, model)
    assert log["loss"] == pytest.approx(1.386, abs=0.2)
    assert moved["layers.0.query.weight"].any()
    model.enter("bias")
    moved, log = step(task, tmp_path, model)
    assert log["loss"] == pytest.approx(1.0, abs=0.1)
    assert {name for name, way in moved.items() if way.any()} == {"score.bias"}


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_training_learns_whatever_the_caller_has_switched_off(task, tmp_path, context):
    model = Socialformer.from_backbone(task[0])
    with context():
        moved, _ = step(task, tmp_path, model)
    assert moved["layers.0.query.weight"].any()


def test_queries_without_word_pieces_are_left_out_and_counted(task, tmp_path, caplog):
    folder, split, builder = task
    queries = {query: "\u200b" if query in ("q2", "q5") else text for query, text in split.queries.items()}
    model = Socialformer.from_backbone(folder)
    groups = TrainingGroups(Split(queries, split.qrels, split.candidates), 16)
    log = train(model, builder, groups, tmp_path, **OPTIONS)
    assert log[-1]["step"] == 3  # of 12 groups, 4 a step
    assert "2 training queries have no word piece, their 4 groups are left out: q2, q5" in caplog.text
    silent = Split(dict.fromkeys(queries, ""), split.qrels, split.candidates)
    with pytest.raises(InputError, match=r"none of the training queries has a word piece: q0, q1, q2, \.\.\."):
        train(model, builder, TrainingGroups(silent, 8), tmp_path)


def test_out_of_memory_says_what_to_lower(task, tmp_path):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    told = (
        r"out of memory in step 1: lower per_device_train_batch_size=4 \(and raise gradient_accumulation_steps=1 by as "
        "much\\), the negatives of a group, or document_length; no checkpoint was kept: it begins anew"
    )
    with pytest.raises(TooLargeError, match=told):
        trained(task, tmp_path, loss=full)
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        trained(task, tmp_path, loss=lambda *_: torch.ones(2) @ torch.ones(3))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"report_to": "wandb"}, "trainer: WandbCallback requires wandb to be installed"),
        ({"report_to": "no_such_logger"}, "trainer: no_such_logger is not supported"),
        ({"output_dir": "here"}, "trainer: output_dir is called folder here"),
        ({"learning_speed": 1}, "trainer: .*learning_speed"),
        ({"save_only_model": True}, "trainer: save_only_model is not offered"),
        ({"head_learning_rate": -1.0}, "head_learning_rate must be a number from 0 to .*, got -1.0"),
        ({"learning_rate": "high"}, "learning_rate must be a number from 0 to"),
        ({"dataloader_num_workers": -1}, "workers must be at least 0, got -1"),
        ({"dataloader_num_workers": 10_000_000}, "workers=10000000 hand their batches over in /dev/shm"),
        ({"loss": "no_such_module.loss"}, "loss no_such_module.loss: No module named 'no_such_module'; is the module"),
    ],
)
def test_wrong_arguments_end_in_one_line(task, tmp_path, options, told):
    with pytest.raises(OptionError, match=told) as error:
        trained(task, tmp_path, **options)
    assert "\n" not in str(error.value)
