"""Training lowers the loss, resumes bit for bit, and counts groups; head and BERT learn at their own rates."""

import hashlib
import json
import resource
import shutil
from collections import namedtuple

import pytest
import torch
from conftest import document_batch
from transformers import TrainingArguments

from socialgraph.data import Document, GraphBuilder, Split, TermStatistics, Tokens, TrainingGroups, WeightCache
from socialgraph.data.files import only_here
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticDistance
from socialgraph.errors import CheckpointError, OptionError, OutputError
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import RankingTrainer, rerank, train
from socialgraph.ranking.checkpoints import checkpoints, last_whole
from socialgraph.ranking.losses.listwise import listwise_cross_entropy
from socialgraph.ranking.trainer import checkpoint_bytes


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
    statistics = TermStatistics.of(tokens, documents)
    edges = SocialEdges([StaticDistance(), DynamicDistance()])
    return folder, split, GraphBuilder(documents, tokens, statistics, edges, EdgeCircles(k=2), Windows(16))


OPTIONS = {"learning_rate": 2e-3, "per_device_train_batch_size": 4, "use_cpu": True, "disable_tqdm": True}


def assert_same(state, other):
    """Compare two models' weights bit for bit."""
    assert state.keys() == other.keys()
    assert [name for name in state if not torch.equal(state[name], other[name])] == []


def test_training_learns_the_task_and_resumes_to_the_same_weights(task, tmp_path):
    folder, split, builder = task
    groups = TrainingGroups(split, size=48, negatives=3)
    straight = Socialformer.from_backbone(folder)
    options = {**OPTIONS, "num_train_epochs": 4, "logging_steps": 7, "save_strategy": "steps", "save_steps": 24}
    log = train(straight, builder, groups, split.queries, tmp_path / "a", **options)
    losses = [line["loss"] for line in log if "loss" in line]
    assert losses[-1] < 0.5 * losses[0]
    run = rerank(straight, builder, split.queries, split.candidates, progress=False)
    assert sum(next(iter(scores)) == f"d{q[1:]}" for q, scores in run.items()) >= 6

    resumed = Socialformer.from_backbone(folder)
    checkpoint = str(tmp_path / "a" / "checkpoint-24")
    again = train(resumed, builder, groups, split.queries, tmp_path / "b", resume=checkpoint, **options)
    assert_same(resumed.state_dict(), straight.state_dict())
    assert [line["loss"] for line in again if "loss" in line] == losses


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
    # a worker has one thread and other batches: BERT's weights, and with them the graphs, differ in their last digits
    assert logs[1] == pytest.approx(logs[0], abs=1e-5)


def test_training_again_and_in_workers_repeats_to_the_last_bit(task, tmp_path):
    folder, split, builder = task
    groups = TrainingGroups(split, size=16, negatives=3)
    start = Socialformer.from_backbone(folder).state_dict()
    weights, logs = [], []
    for workers in (0, 0, 2):
        model = Socialformer.from_backbone(folder)
        model.load_state_dict(start)
        options = {**OPTIONS, "logging_steps": 1, "num_train_epochs": 2, "dataloader_num_workers": workers}
        log = train(model, builder, groups, split.queries, tmp_path, **options)
        logs.append([(line["loss"], line["grad_norm"]) for line in log if "loss" in line])
        weights.append(model.state_dict())
    assert len(logs[0]) == 8
    assert logs[0] == logs[1] == logs[2]
    for other in weights[1:]:
        assert_same(weights[0], other)


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
        train(Socialformer.from_backbone(folder), builder, groups, split.queries, tmp_path, **options)
        orders.append(groups.asked)
    assert orders[0] == [*range(12)] * 2
    first, second = orders[1][:12], orders[1][12:]
    assert sorted(first) == sorted(second) == [*range(12)]
    assert first != second


def step(task, folder, model, **options):
    """Train one step of plain gradient descent and return how far each parameter went."""
    _, split, builder = task
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    options = {
        **OPTIONS, "optim": "sgd", "lr_scheduler_type": "constant", "max_grad_norm": 0, "logging_steps": 1, **options,
    }  # fmt: skip
    log = train(model, builder, TrainingGroups(split, 4, negatives=3), split.queries, folder, **options)
    moved = {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}
    return moved, log[0]


def test_head_and_bert_go_at_their_own_rates(task, tmp_path):
    moved = {}
    for rate in (None, 0.1):
        torch.manual_seed(0)
        model = Socialformer.from_backbone(task[0], dropout=0.0)
        moved[rate], log = step(task, tmp_path, model, learning_rate=0.01, head_learning_rate=rate)
        assert log["learning_rate"] == 0.01
    heads = 0
    for name, way in moved[None].items():
        head = not name.startswith(("embedding.", "layers."))
        heads += head and bool(way.any())
        torch.testing.assert_close(moved[0.1][name], way * (10 if head else 1), atol=2e-6, rtol=1e-3, msg=name)
    assert heads
    assert moved[None]["layers.0.query.weight"].any()


def test_schedule_and_weight_decay_hold_for_both_rates(task, tmp_path):
    model = Socialformer.from_backbone(task[0])
    arguments = TrainingArguments(str(tmp_path), weight_decay=0.1, learning_rate=1e-3, warmup_steps=4, use_cpu=True)
    trainer = RankingTrainer(model, arguments, TrainingGroups(task[1], 8), None, head_learning_rate=1e-2)
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


def test_resumes_with_two_rates_to_the_same_weights(task, tmp_path):
    folder, split, builder = task
    groups = TrainingGroups(split, size=16, negatives=1)
    options = {**OPTIONS, "head_learning_rate": 1e-2, "save_strategy": "steps", "save_steps": 2}
    weights = []
    for seed, resume in enumerate((False, str(tmp_path / "checkpoint-2"))):
        torch.manual_seed(seed)  # another head, which the checkpoint has to replace
        model = Socialformer.from_backbone(folder)
        train(model, builder, groups, split.queries, tmp_path, resume=resume, **options)
        weights.append(model.state_dict())
    assert_same(*weights)


@pytest.mark.parametrize("frozen", ["bert", "head"])
def test_frozen_parameters_stay(task, tmp_path, frozen):
    model = Socialformer.from_backbone(task[0])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(("embedding.", "layers.")) == (frozen == "head"))
    moved, _ = step(task, tmp_path, model, head_learning_rate=1e-2)
    went = {name for name, way in moved.items() if way.any()}
    assert went
    assert all(name.startswith(("embedding.", "layers.")) == (frozen == "head") for name in went)


def test_a_loss_by_name_or_function_is_the_one_that_is_lowered(task, tmp_path):
    values = {}
    losses = {"listwise": "listwise", "binary": "binary", "own": lambda scores, *_: 0 * scores.sum() + 7}
    for name, loss in losses.items():
        torch.manual_seed(0)
        model = Socialformer.from_backbone(task[0], dropout=0.0)
        values[name] = step(task, tmp_path, model, loss=loss)[1]["loss"]
    # scores near 0: of four documents log 4, of one log 2
    assert values == pytest.approx({"listwise": 1.386, "binary": 0.693, "own": 7}, abs=0.1)
    with pytest.raises(OptionError, match="no loss is called 'triplet'"):
        step(task, tmp_path, model, loss="triplet")
    with pytest.raises(OptionError, match="head_learning_rate must be 0 or more"):
        step(task, tmp_path, model, head_learning_rate=-1.0)


class Overlap(torch.nn.Module):
    """A user's own model, which knows of no objective: counts the query's words in the document."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, graph):
        same = torch.isin(graph.input_ids, graph.query_ids).float()
        return self.weight * torch.zeros(graph.num_graphs).index_add_(0, graph.batch, same)


def test_a_module_that_only_scores_is_trained(task, tmp_path):
    model = Overlap()
    moved, log = step(task, tmp_path, model, loss="hinge", learning_rate=0.1)
    assert log["loss"] == pytest.approx(1.0)
    assert moved["weight"] > 0
    with pytest.raises(OptionError, match="Overlap has no stages of training, got stage='late'"):
        step(task, tmp_path, model, stage="late")


class TwoStages(Socialformer):
    """Learns scores, then the bias alone, with a loss of its own."""

    stages = ("scores", "bias")

    def forward(self, graph, objective=None):
        if objective is None or self.stage == "scores":
            return super().forward(graph, objective)
        return (self.score.bias - 1).square().sum()


def test_a_stage_is_entered_before_training(task, tmp_path):
    model = TwoStages.from_backbone(task[0])
    assert model.stage == "bias"
    moved, log = step(task, tmp_path, model, stage="scores")
    assert model.stage == "scores"
    assert log["loss"] == pytest.approx(1.386, abs=0.2)
    assert moved["layers.0.query.weight"].any()
    moved, log = step(task, tmp_path, model, stage="bias")
    assert log["loss"] == pytest.approx(1.0, abs=0.1)
    assert {name for name, way in moved.items() if way.any()} == {"score.bias"}
    with pytest.raises(OptionError, match="TwoStages has the stages scores, bias, got 'third'"):
        step(task, tmp_path, model, stage="third")


def logged(task, folder, **changes):
    """Train four steps with checkpoints after two and four; ``changes`` of the arguments. Return model and log."""
    backbone, split, builder = task
    model = changes.pop("model", None) or Socialformer.from_backbone(backbone)
    negatives = changes.pop("negatives", 1)
    groups = TrainingGroups(split, changes.pop("size", 16), negatives, changes.pop("draw", 0))
    options = {**OPTIONS, "save_strategy": "steps", "save_steps": 2, "logging_steps": 1, **changes}
    return model, train(model, builder, groups, split.queries, folder, **options)


def begin(task, folder, **changes):
    """Return model and losses of such a training."""
    model, log = logged(task, folder, **changes)
    return model, [line["loss"] for line in log if "loss" in line]


def test_a_checkpoint_is_a_saved_model_and_holds_no_pickle(task, tmp_path):
    model, _ = begin(task, tmp_path)
    files = {path.name for path in (tmp_path / "checkpoint-4").iterdir()}
    assert files == {
        "README.md", "config.json", "model.safetensors", "settings.json", "trainer_state.json", "training.json",
        "training.safetensors", "whole.json",
    }  # fmt: skip
    assert_same(Socialformer.from_pretrained(tmp_path / "checkpoint-4").state_dict(), model.state_dict())
    arguments = TrainingArguments(str(tmp_path / "b"), use_cpu=True)
    trainer = RankingTrainer(Overlap(), arguments, TrainingGroups(task[1], 8), None)
    trainer.save_model(tmp_path / "c")
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["model.safetensors"]


def test_resume_begins_goes_on_and_leaves_what_is_finished(task, tmp_path):
    begun, losses = begin(task, tmp_path, resume=True)
    finished, again = begin(task, tmp_path, resume=True)
    assert_same(finished.state_dict(), begun.state_dict())
    assert again == losses
    (tmp_path / "checkpoint-4" / "whole.json").unlink()
    with pytest.warns(UserWarning, match="checkpoint-4/whole.json: missing.*checkpoint-2 is used instead"):
        halfway, again = begin(task, tmp_path, resume=True)
    assert_same(halfway.state_dict(), begun.state_dict())
    assert again == losses
    assert last_whole(tmp_path).name == "checkpoint-4"


@pytest.mark.parametrize("every", [1, 3, 10])  # lines of the log before, around and never before the checkpoint
def test_a_resumed_training_ends_with_the_mean_loss_of_all_steps(task, tmp_path, every):
    _, whole = logged(task, tmp_path, logging_steps=every)
    mean = whole[-1]["train_loss"]
    _, halfway = logged(task, tmp_path, logging_steps=every, resume=str(tmp_path / "checkpoint-2"))
    _, finished = logged(task, tmp_path, logging_steps=every, resume=True)
    assert halfway[-1]["train_loss"] == finished[-1]["train_loss"] == mean
    if every == 1:
        assert mean == pytest.approx(sum(line["loss"] for line in whole[:-1]) / 4)


def test_a_model_of_the_users_own_resumes(task, tmp_path):
    begun, losses = begin(task, tmp_path, model=Overlap(), fp16=False, learning_rate=0.1)
    resumed, again = begin(task, tmp_path, model=Overlap(), learning_rate=0.1, resume=str(tmp_path / "checkpoint-2"))
    assert_same(resumed.state_dict(), begun.state_dict())
    assert again == losses


def test_one_checkpoint_may_be_kept(task, tmp_path):
    begin(task, tmp_path, save_total_limit=1, save_steps=1)
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-4"]
    (tmp_path / "all").mkdir()
    begin(task, tmp_path / "all", save_total_limit=None, save_steps=1)
    assert len(checkpoints(tmp_path / "all")) == 4


CHANGES = {
    "groups in a step was 4, is 2": {"per_device_train_batch_size": 2},
    "groups in a step was 4, is 8": {"gradient_accumulation_steps": 2},
    "number of groups was 16, is 24": {"size": 24},
    "groups was '": {"draw": 1},
    "seed was 42, is 7": {"seed": 7},
    "learning_rate was 0.002, is 0.1": {"learning_rate": 0.1},
    "num_train_epochs was 1, is 2": {"num_train_epochs": 2},
    "loss was 'listwise_cross_entropy', is 'ranknet'": {"loss": "ranknet"},
    "head_learning_rate was None, is 0.1": {"head_learning_rate": 0.1},
}


def test_another_training_is_not_resumed(task, tmp_path):
    begin(task, tmp_path)
    for what, change in CHANGES.items():
        with pytest.raises(CheckpointError, match=f"checkpoint-4: of another training: .*{what}"):
            begin(task, tmp_path, resume=True, **change)
    task[2].edges = SocialEdges([StaticDistance()])
    with pytest.raises(CheckpointError, match="graph's edges was 'SocialEdges"):
        begin(task, tmp_path, resume=True)
    assert len(checkpoints(tmp_path)) == 2


def test_another_model_is_not_resumed(task, tmp_path):
    begin(task, tmp_path)
    other = Socialformer.from_backbone(task[0], inter_shared=True)
    with pytest.raises(CheckpointError, match=r"model.safetensors: does not fit Socialformer \(.*inter"):
        begin(task, tmp_path, resume=True, model=other)
    with pytest.raises(CheckpointError, match="model was 'Socialformer', is 'Overlap'"):
        begin(task, tmp_path, resume=True, model=Overlap())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("trainer_state.json", "[]", "trainer_state.json: damaged"),
        ("trainer_state.json", '{"nothing": 1}', "trainer_state.json: damaged"),
        ("training.json", "[]", "do not fit this training"),
        ("training.json", "{", "not the state of a training"),
    ],
)
def test_a_checkpoint_made_by_hand_is_refused(task, tmp_path, name, text, message):
    begin(task, tmp_path)
    checkpoint = tmp_path / "checkpoint-4"
    whole = json.loads((checkpoint / "whole.json").read_text())
    (checkpoint / name).write_text(text)
    whole[name] = [len(text), hashlib.sha256(text.encode()).hexdigest()]
    (checkpoint / "whole.json").write_text(json.dumps(whole))
    with pytest.raises(CheckpointError, match=message):
        begin(task, tmp_path, resume=True)


def test_checkpoints_are_not_written_over_nor_by_two(task, tmp_path):
    begin(task, tmp_path)
    with pytest.raises(OutputError, match="checkpoint-4: a checkpoint of an earlier training; go on with it"):
        begin(task, tmp_path)
    with only_here(tmp_path), pytest.raises(OutputError, match="another process writes there"):
        begin(task, tmp_path, resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file.*cannot be written"):
        begin(task, tmp_path / "file" / "folder")


def test_a_disk_without_room_is_found_before_training_and_in_the_middle(task, tmp_path, monkeypatch):
    model = Socialformer.from_backbone(task[0])
    weights = sum(parameter.numel() for parameter in model.parameters()) * 4
    arguments = TrainingArguments(str(tmp_path / "a"), use_cpu=True, save_total_limit=2)
    assert checkpoint_bytes(model, arguments) == 3 * 3 * weights
    Usage = namedtuple("Usage", "free")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: Usage(9 * weights - 1))
        with pytest.raises(OutputError, match="will be written"):
            begin(task, tmp_path / "a")

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    batches = []

    def filling(*what):  # no file may be longer, from the third batch on
        batches.append(what)
        if len(batches) == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (weights, hard))
        return listwise_cross_entropy(*what)

    try:
        with pytest.raises(OutputError, match=r"checkpoint-4: cannot be written .*free the disk and resume"):
            begin(task, tmp_path / "b", loss=filling)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in checkpoints(tmp_path / "b")] == ["checkpoint-2"]
    assert not list((tmp_path / "b").glob(".checkpoint*"))
    _, losses = begin(task, tmp_path / "b", loss=filling, resume=True)
    assert len(losses) == 4


@pytest.mark.parametrize("option", ["save_only_model", "push_to_hub"])
def test_checkpoints_that_hold_pickles_or_nothing_to_go_on_from_are_not_offered(task, tmp_path, option):
    with pytest.raises(OptionError, match=f"trainer: {option} is not offered"):
        begin(task, tmp_path, **{option: True})


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
