"""What every command takes: data, training, a recipe."""

# ruff: noqa: RUF009 (about() makes a dataclass's field, as field() does)
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from lab.options.kinds import LARGEST, Built, Only, about, between

Count = Annotated[int, between(0, LARGEST)]
Positive = Annotated[int, between(1, LARGEST)]
Seed = Annotated[int, between(0, 2**32 - 1)]
Rate = Annotated[float, between(0)]
Share = Annotated[float, between(0, 1)]
Above0 = Annotated[float, between(0, above=True)]
Name = Annotated[str, Only("", lambda text: text.strip() != "")]  # text that is not blank
Label = Name | int
FILLED = Only("that is not empty", bool)
Names = Annotated[list[Name], FILLED]
Loss = Literal["listwise", "hinge", "ranknet", "binary"]


def is_measure(name: str) -> bool:
    """Whether ir_measures knows a measure, and something that is installed computes it."""
    import ir_measures

    try:
        return bool(ir_measures.DefaultPipeline.supports(ir_measures.parse_measure(name)))
    except (ValueError, NameError, KeyError, SyntaxError, AssertionError):
        return False


Measure = Annotated[str, Only("that ir_measures knows as a measure, such as RR@10 or nDCG@10", is_measure)]
Measures = Annotated[list[Measure], FILLED]


@dataclass(kw_only=True)
class Arguments:
    """Of transformers.TrainingArguments; these are the usual ones, and any other may be added with +."""

    open: ClassVar[bool] = True
    learning_rate: Rate = about("of the weights that are BERT's", optional=True)
    per_device_train_batch_size: Positive = about("groups in a batch, of all processes together", optional=True)
    gradient_accumulation_steps: Positive = about("batches in a step", optional=True)
    num_train_epochs: Above0 = about("how often each group is read", optional=True)
    max_steps: Literal[-1] | Positive = about("steps in all, in place of epochs; -1: by epochs", optional=True)
    warmup_steps: Rate = about("steps in which the learning rate rises; below 1: a share of all", optional=True)
    logging_steps: Above0 = about("steps from one line of the log to the next", optional=True)
    weight_decay: Rate = about("of AdamW", optional=True)
    max_grad_norm: Rate = about("gradients are cut to this norm; 0: never", optional=True)
    adam_beta1: Share = about("of AdamW", optional=True)
    adam_beta2: Share = about("of AdamW", optional=True)
    adam_epsilon: Above0 = about("of AdamW", optional=True)
    dataloader_num_workers: Count = about("processes that build graphs ahead", optional=True)


@dataclass(kw_only=True)
class Trainer:
    """How models are trained and how much re-ranking reads at once (trainer=cpu, gpu or paper)."""

    groups: Count = about("training groups of one relevant document and the negatives; 0: nothing is trained")
    negatives: Positive = about("documents of a group beside the relevant one, drawn from the candidates")
    token_budget: Positive = about("word pieces of documents in a re-ranking batch")
    save_every: Count = about("steps from one checkpoint to the next; 0: none")
    compile: bool = about("torch.compile for the layers")
    bf16: bool | Literal["auto"] = about("bfloat16; auto: where the hardware has it")
    arguments: Arguments = about("of the training library; batches count groups")


@dataclass(kw_only=True)
class Training:
    """What models learn from (training=listwise, icli or keyb)."""

    loss: Loss = about("of the scores in a group")
    head_learning_rate: Rate | None = about("of all weights that are not BERT's; null: as BERT's")
    arguments: Arguments = about("of the training library, over the trainer's")


@dataclass(kw_only=True)
class Splits:
    """Which split of the collection is what."""

    train: Label = about("models are trained on it")
    dev: Label = about("the weight of BM25 is chosen on it")
    test: Label | Names = about("ranked at the end")


@dataclass(kw_only=True)
class Queries:
    """How many queries are ranked, drawn by hash."""

    dev: Positive | None = about("of dev; null: all")
    test: Positive | None = about("of each test split; null: all")
    found: bool = about("only those whose candidates hold a relevant document", optional=True)


@dataclass(kw_only=True)
class Data:
    """What is ranked (data=pydocs, wtq, fairytale, covidqa, folder, irds, hub, msmarco or trec-dl-2019)."""

    label: Label = about("names the folder of results")
    collection: Built = about("what loads the collection")
    retriever: Built | None = about("the first stage, for splits without candidates of their own; null: all have some")
    depth: Positive = about("candidates of each query")
    runs: dict[str, Name] = about("split: TREC run file with its candidates")
    splits: Splits = about("of the collection")
    queries: Queries = about("that are ranked")
    path: Name = about("folder of the collection (folder)", optional=True)
    root: Name = about("folder in which built collections lie (wtq, fairytale, covidqa)", optional=True)
    candidates: Name = about("name of the run files (folder), or folder of ANCE's runs (msmarco)", optional=True)
    id: Label = about("of the collection (irds, hub) or of its test split (msmarco)", optional=True)
    train: Name | None = about("id of the training split (irds)", optional=True)
    dev: Name | None = about("id of the dev split (irds, msmarco)", optional=True)
    qrels: Name | None = about("id of the dataset with the judgements (hub)", optional=True)
    revision: Name | None = about("a commit, branch or tag (hub)", optional=True)


@dataclass(kw_only=True)
class Recipe:
    """What is trained and ranks, a system by name (docs/recipes.md): recipe=parade-max, ..."""

    name: Name = about("in tables")
    first_stage: Built | None = about("a retriever in place of a model")
    model: Built | None = about("the model")
    edges: Built | None = about("who knows whom")
    circles: Built | None = about("friend circles")
    passages: Built | None = about("what cuts the text")
    relevance: Built | None = about("what rates circles, for models that choose")
    joint: bool = about("the query is part of the graph")
    document_length: Positive = about("word pieces of a document that are read")
    training: Training | None = about("as the group training; null: nothing is trained")
    stages: Annotated[dict[str, Above0], FILLED] | None = about("stages of training and their shares of the groups")
    stored: bool = about("encode documents once and re-rank from the vectors")


@dataclass(kw_only=True)
class Run:
    """What every command takes."""

    measures: Measures = about("names of ir_measures; the first one counts")
    check: bool = about("hold each answer of a partition or pattern of your own against the laws")
    seed: Seed = about("of the training groups, the weights that are not pre-trained, and the coins")
    document_length: Positive = about("word pieces of a document that are read")
    k: Positive = about("friend circles of a document: partition.k, unless that is set")
    query_length: Positive = about("word pieces of a query that are read")
    window: Positive = about("word pieces of a passage")
    backbone: Name = about("of all systems: as model.backbone")
    long_backbone: Name = about("of recipe=whole: an encoder that reads long texts")
    sentence_backbone: Name = about("of recipe=sentence-maxp and sentence-circles")
    data: Data = about("what is ranked")
    trainer: Trainer = about("how models are trained")
    training: Training | None = about("what models learn from")
    model: Built = about("of recipe=socialformer", optional=True)
    edges: Built = about("who knows whom", optional=True)
    partition: Built = about("who meets in which circle", optional=True)
    recipe: Recipe = about("what is trained and ranks")
