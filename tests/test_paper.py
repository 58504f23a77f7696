"""The paper's setting: what its two commands compose to, printed, and held to section 4 of Socialformer."""

import pytest
from commands import composed_from
from omegaconf import OmegaConf

SETTING = ["trainer=paper", "model.backbone=bert-base-uncased", "document_length=2048", "partition.k=16"]
TRAIN, DEV, DL = "msmarco-document/train", "msmarco-document/dev", "msmarco-document/trec-dl-2019/judged"


@pytest.mark.parametrize(("data", "test"), [("msmarco", DEV), ("trec-dl-2019", DL)])
@pytest.mark.parametrize("partition", ["edge", "node"])
def test_the_commands_compose_to_section_4(data, test, partition, capsys):
    config = composed_from(f"data={data}", "data.candidates=runs", f"partition={partition}", *SETTING)
    names = ("data", "trainer", "model", "edges", "partition", "document_length", "window", "query_length")
    shown = {name: config[name] for name in names}
    with capsys.disabled():
        print(f"\n# data={data} partition={partition}\n{OmegaConf.to_yaml(OmegaConf.create(shown), resolve=False)}")
    # the collection and what is re-ranked: ANCE's top 100
    assert config.data.collection._target_ == "socialgraph.data.load_msmarco"
    assert config.data.collection.candidates == "runs"
    assert (config.data.id, config.data.dev) == (test, DL if test == DEV else DEV)
    assert config.data.depth == 100
    assert (config.data.retriever, config.data.queries.test) == (None, None)
    # training: one epoch of 367 thousand queries, 1 to 7, batches of 8, AdamW (the trainer's own) with 1e-5
    arguments = config.trainer.arguments
    assert (config.trainer.groups, config.trainer.negatives) == (367_013, 7)
    assert (arguments.learning_rate, arguments.per_device_train_batch_size) == (1e-5, 8)
    assert not {"num_train_epochs", "optim"} & set(arguments)
    assert (config.training.loss, config.recipe.stages, config.training.arguments) == ("listwise", None, {})
    # the model: BERT-base, windows of 128, at most 16 circles, sparsity 0.93, max pooling
    assert config.recipe.model._target_ == "socialgraph.nn.Socialformer.from_backbone"
    assert config.recipe.model.backbone == config.backbone == "bert-base-uncased"
    assert config.recipe.model.readout == "max"
    assert config.recipe.document_length == 2048
    assert config.recipe.passages.size == 128
    assert config.recipe.circles.k == 16
    assert config.recipe.edges.sparsity == 0.93
    assert len(config.recipe.edges.patterns) == 4


@pytest.mark.parametrize("size", ["cpu", "gpu"])
def test_short_documents_have_as_many_circles_as_long_ones(size):
    """The paper has one k. With fewer on short documents edge-level circles would keep fewer edges there."""
    sizes = composed_from(f"+size={size}").size
    assert sizes.short < sizes.long
    assert sizes.short_circles == sizes.long_circles == (16 if size == "gpu" else 8)
