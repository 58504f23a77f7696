"""What every command takes: data, training, a recipe."""

from __future__ import annotations

from typing import Annotated, Literal

from lab.options.kinds import LARGEST, OPTIONAL, Built, Group, Only, between

Count = Annotated[int, between(0, LARGEST)]
Positive = Annotated[int, between(1, LARGEST)]
Seed = Annotated[int, between(0, 2**32 - 1)]
Rate = Annotated[float, between(0)]
Share = Annotated[float, between(0, 1)]
Above0 = Annotated[float, between(0, above=True)]
Name = Annotated[str, Only("", lambda text: text.strip() != "")]  # text that is not blank
Label = Name | int
FILLED = Only("that is not empty", bool)
ONCE = Only("has none twice", lambda values: len(set(values)) == len(values))
Names = Annotated[list[Name], FILLED]
Loss = Annotated[
    str,
    Only(
        "that names a loss: listwise, hinge, ranknet, binary, or module.function of your own",
        lambda name: "." in name or name in ("listwise", "hinge", "ranknet", "binary"),
    ),
]


def is_measure(name: str) -> bool:
    """Whether ir_measures knows a measure, and something that is installed computes it."""
    import ir_measures

    try:
        measure = ir_measures.parse_measure(name)
        return measure.params.get("cutoff", 1) > 0 and bool(ir_measures.DefaultPipeline.supports(measure))
    except (ValueError, NameError, KeyError, SyntaxError, AssertionError, TypeError):
        return False


Measure = Annotated[str, Only("that ir_measures knows as a measure, such as RR@10 or nDCG@10", is_measure)]
Measures = Annotated[list[Measure], FILLED, ONCE]


class Arguments(Group):
    """Of transformers.TrainingArguments; these are the usual ones, and any other may be added with +."""

    is_open = True
    learning_rate = Rate, "of the weights that are BERT's", OPTIONAL
    per_device_train_batch_size = Positive, "groups in a batch, of all processes together", OPTIONAL
    gradient_accumulation_steps = Positive, "batches in a step", OPTIONAL
    num_train_epochs = Above0, "how often each group is read", OPTIONAL
    max_steps = Literal[-1] | Positive, "steps in all, in place of epochs; -1: by epochs", OPTIONAL
    warmup_steps = Rate, "steps in which the learning rate rises; below 1: a share of all", OPTIONAL
    logging_steps = Above0, "steps from one line of the log to the next", OPTIONAL
    weight_decay = Rate, "of AdamW", OPTIONAL
    max_grad_norm = Rate, "gradients are cut to this norm; 0: never", OPTIONAL
    adam_beta1 = Share, "of AdamW", OPTIONAL
    adam_beta2 = Share, "of AdamW", OPTIONAL
    adam_epsilon = Above0, "of AdamW", OPTIONAL
    dataloader_num_workers = Count, "processes that build graphs ahead", OPTIONAL


class Trainer(Group):
    """How models are trained and how much re-ranking reads at once (trainer=cpu, quick, gpu or paper)."""

    groups = Count, "training groups of one relevant document and the negatives; 0: nothing is trained"
    negatives = Positive, "documents of a group beside the relevant one, drawn from the candidates"
    token_budget = Positive, "word pieces of documents in a re-ranking batch"
    save_every = Count, "steps from one checkpoint to the next; 0: none"
    compile = bool, "torch.compile for the layers"
    bf16 = bool | Literal["auto"], "bfloat16; auto: where the hardware has it"
    arguments = Arguments, "of the training library; batches count groups"


class Training(Group):
    """What models learn from (training=listwise, icli or keyb)."""

    loss = Loss, "of the scores in a group"
    head_learning_rate = Rate | None, "of all weights that are not BERT's; null: as BERT's"
    arguments = Arguments, "of the training library, over the trainer's"


class Splits(Group):
    """Which split of the collection is what."""

    train = Label, "models are trained on it"
    dev = Label, "the weight of BM25 is chosen on it"
    test = Label | Names, "ranked at the end"


class Queries(Group):
    """How many queries are ranked, drawn by hash."""

    dev = Count | None, "of dev; null: all; 0: none, and systems are mixed with BM25 half and half"
    test = Positive | None, "of each test split; null: all"
    found = bool, "only those whose candidates hold a relevant document", OPTIONAL


class Data(Group):
    """What is ranked (data=pydocs, wtq, fairytale, covidqa, folder, irds, hub, msmarco or trec-dl-2019)."""

    label = Label, "names the folder of results"
    collection = Built, "what loads the collection"
    retriever = Built | None, "the first stage, for splits without candidates of their own; null: all have some"
    depth = Positive, "candidates of each query"
    runs = dict[str, Name], "split: TREC run file with its candidates"
    splits = Splits, "of the collection"
    queries = Queries, "that are ranked"
    path = Name, "folder of the collection (folder)", OPTIONAL
    root = Name, "folder in which built collections lie (wtq, fairytale, covidqa)", OPTIONAL
    candidates = Name, "name of the run files (folder), or folder of ANCE's runs (msmarco)", OPTIONAL
    id = Label, "of the collection (irds, hub) or of its test split (msmarco)", OPTIONAL
    train = Name | None, "id of the training split (irds)", OPTIONAL
    dev = Name | None, "id of the dev split (irds, msmarco)", OPTIONAL
    qrels = Name | None, "id of the dataset with the judgements (hub)", OPTIONAL
    revision = Name | None, "a commit, branch or tag (hub)", OPTIONAL


class Recipe(Group):
    """What is trained and ranks, a system by name (docs/recipes.md): recipe=parade-max, ..."""

    name = Name, "in tables"
    first_stage = Built | None, "a retriever in place of a model"
    model = Built | None, "the model"
    edges = Built | None, "who knows whom"
    circles = Built | None, "friend circles"
    passages = Built | None, "what cuts the text"
    relevance = Built | None, "what rates circles, for models that choose"
    joint = bool, "the query is part of the graph"
    document_length = Positive, "word pieces of a document that are read"
    training = Training | None, "as the group training; null: nothing is trained"
    stages = Annotated[dict[str, Above0], FILLED] | None, "stages of training and their shares of the groups"


class Run(Group):
    """What every command takes."""

    measures = Measures, "names of ir_measures; the first one counts"
    check = bool, "hold each answer of a partition or pattern of your own against the laws"
    seed = Seed, "of the training groups, the weights that are not pre-trained, and the coins"
    document_length = Positive, "word pieces of a document that are read"
    k = Positive, "friend circles of a document: partition.k, unless that is set"
    query_length = Positive, "word pieces of a query that are read"
    window = Positive, "word pieces of a passage"
    backbone = Name, "of all systems: as model.backbone"
    long_backbone = Name, "of recipe=whole: an encoder that reads long texts"
    sentence_backbone = Name, "of recipe=sentence-maxp and sentence-circles"
    data = Data, "what is ranked"
    trainer = Trainer, "how models are trained"
    training = Training | None, "what models learn from"
    model = Built, "of recipe=socialformer", OPTIONAL
    edges = Built, "who knows whom", OPTIONAL
    partition = Built, "who meets in which circle", OPTIONAL
    recipe = Recipe, "what is trained and ranks"
