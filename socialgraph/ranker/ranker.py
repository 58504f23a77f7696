"""One object that ranks: a recipe with its weights, word pieces and statistics."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch

from socialgraph import ranking
from socialgraph.backbone import READER
from socialgraph.data import Cache, Collection, Document, GraphBuilder, TermStatistics, Tokens, TrainingGroups
from socialgraph.data.graph import DocumentGraph
from socialgraph.data.texts import Text, Texts, as_document, as_documents, as_queries, checked_query
from socialgraph.described import spec_of
from socialgraph.edges import SocialEdges, StaticCentrality
from socialgraph.errors import InputError, OptionError, check_whole, first_line
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.partition import Partition
from socialgraph.partition.resolver import with_k
from socialgraph.ranker import files
from socialgraph.ranker.training import interval, record, train_stages, with_candidates
from socialgraph.ranking.dev import TENTH
from socialgraph.ranking.evaluate import parse_measures
from socialgraph.recipes.build import Parts, build
from socialgraph.recipes.compose import compose_recipe
from socialgraph.recipes.typed import quoted

if TYPE_CHECKING:  # who ranks draws nothing
    from socialgraph.inspect.report import Page, View

#: word pieces of documents in a batch
BATCH = 16_384
#: name of a split to measure on that is none of the collection's
DEV = "dev of this training"
#: word pieces of a document that the reader scores
READER_LENGTH = 4096

Ranking = list[tuple[Any, float]]
"""(place or id of a text, score), best first."""


class Ranker:
    """Everything that makes a score: recipe, weights, word pieces, document frequencies; saved as one folder.

    Make one with :meth:`from_pretrained` or :meth:`from_recipe`.

    Args:
        recipe: values of a recipe, see :func:`~socialgraph.recipes.compose.compose_recipe`.
        parts: what makes its graphs.
        model: what scores them.
        tokens: texts to word pieces.
        statistics: document frequencies, for texts that belong to no collection. None: every word is as common as any
            other, until :meth:`count` or :meth:`fit` has seen texts.
        history: what the model card tells: how it was trained, and what was measured.
    """

    def __init__(
        self,
        recipe: dict[str, Any],
        parts: Parts,
        model: HubRanker,
        tokens: Tokens,
        statistics: TermStatistics | None = None,
        history: dict[str, Any] | None = None,
    ) -> None:
        self.recipe = recipe
        self.parts = parts
        self.model = model.eval()
        self.tokens = tokens
        self.statistics = statistics or TermStatistics(torch.zeros(tokens.vocab_size, dtype=torch.long), 0)
        self.history = history or {}
        self.cache = Cache()
        self._read: WeakKeyDictionary[Collection, TermStatistics] = WeakKeyDictionary()
        self.to("cuda" if torch.cuda.is_available() else "cpu")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was read of collections: it is kept no longer than they are, and read again."""
        return {**self.__dict__, "_read": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._read = WeakKeyDictionary()

    @classmethod
    def from_pretrained(cls, name: str | PathLike[str], classes: Sequence[type | str] = (), **download: Any) -> Self:
        """Load a ranker. Only JSON and safetensors are read, and classes of this package made.

        Args:
            name: a folder that :meth:`save_pretrained` wrote, a hub id, or "minilm-reader" where no such folder is: the
                reader that comes along with the extra ``offline``, a document's score being that of its best passage of
                128 word pieces.
            classes: the user's own, where the ranker has some: a partition, a pattern, a readout. Nothing is imported
                because the folder says so.
            download: arguments of ``huggingface_hub.snapshot_download``, such as ``revision``.

        Raises:
            CheckpointError: there is no such ranker, it is damaged, or it needs a class that is not among ``classes``.
        """
        if str(name) == READER and not (Path(name) / files.ABOUT).exists():
            return cls.from_recipe("maxp", backbone=READER, document_length=READER_LENGTH)
        return cls(*files.load(name, classes, download))

    @classmethod
    def from_recipe(
        cls, name: str, *overrides: str, partition: str | type[Partition] | Partition | None = None,
        backbone: str | None = None, config_dir: str | PathLike[str] | None = None,
        classes: Sequence[type | str] = (), **options: Any,
    ) -> Self:  # fmt: skip
        """Put a recipe together; what its backbone does not know is drawn at random.

        Args:
            name: a recipe, such as "socialformer-edge", "maxp" or "bigbird".
            overrides: options as ``run.py`` takes them: ``"partition.k=8"``, ``"edges=random"``.
            partition: of friend circles: a name, or a class or object of one's own. An object keeps its arguments as
                attributes of the same names, so that it can be saved.
            backbone: a BERT: "minilm-reader", "minilm", a folder or a hub id.
            config_dir: a folder of one's own with more recipes, ``recipe/<name>.yaml``.
            classes: of your own that these recipes may name; of others only those of this package are made.
            options: ``document_length``, ``query_length``, ``window``, ``seed``.

        Raises:
            OptionError: no such recipe, partition or option, or a recipe without a model.
            CheckpointError: no such backbone.
        """
        typed = [*overrides, *(f"{key}={quoted(value)}" for key, value in options.items())]
        if backbone is not None:
            keys = ("model.backbone", "sentence_backbone", "long_backbone")
            typed += [f"{key}={quoted(backbone)}" for key in keys]
        if isinstance(partition, str):
            typed.append(f"partition={partition}")
        recipe = compose_recipe(name, typed, config_dir, classes)
        if recipe["model"] is None:
            kind = str(recipe["first_stage"]["_target_"])
            raise OptionError(f"recipe {name} is a first stage and has no model: use {kind} itself")
        if partition is not None and recipe["circles"] is None:
            raise OptionError(f"recipe {name} has no friend circles, so it takes no partition")
        check_whole("seed", recipe["seed"], 0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe["seed"])
            if partition is None or isinstance(partition, str):
                parts = Parts.of(recipe)
            else:
                own = partition() if isinstance(partition, type) else partition
                if not isinstance(own, Partition):
                    raise OptionError(f"a partition is a name, or a class or an object of Partition, got {own!r}")
                parts = Parts.of({**recipe, "circles": None})
                recipe["circles"], parts.circles = spec_of(own), own
            torch.manual_seed(recipe["seed"])
            model = build(recipe["model"], HubRanker)
        tokens = Tokens(recipe["model"]["backbone"], recipe["document_length"], recipe["query_length"])
        full_name = str(recipe["name"]).format(circles=circles_name(parts.circles))
        return cls({**recipe, "name": full_name}, parts, model, tokens)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.model.parameters()).device

    def to(self, device: torch.device | str) -> Self:
        """Move it to a device.

        Raises:
            OptionError: this machine has no such device.
        """
        try:
            self.model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise OptionError(f"device {str(device)!r} cannot be used here ({first_line(error)})") from error
        if self.parts.edges is not None:
            self.parts.edges.to(device)
        return self

    def rank(
        self, query: str | Sequence[str] | Mapping[str, str], texts: Texts, top_k: int | None = None,
        batch_size: int = BATCH, progress: bool | None = None, bf16: bool = False,
    ) -> Any:  # fmt: skip
        """Return texts in the order of their scores, best first: ``[(place, score), ...]``.

        The scores are those of :func:`socialgraph.ranking.rerank`. Texts of a :class:`~socialgraph.data.Collection` are
        weighed by its own document frequencies, others by those of :attr:`statistics`.

        Args:
            query: a text; or several in a list or, by id, in a dict.
            texts: strings, or dicts with ``text`` and ``title``, in a list; or by id in a dict; or a collection.
            top_k: how many are returned; None: all.
            batch_size: word pieces of documents that are scored together, a document at least.
            progress: show a bar; None: on a terminal, after two seconds.
            bf16: compute in bfloat16 where it is safe.

        Returns:
            For each text its place in the list, or its id as it was given, and its score. Of several queries a list of
            such lists, or a dict by id. A query without word pieces leaves the texts in the order of their places or
            ids, with the score 0, and warns.

        Raises:
            InputError: texts or queries that are none.
            OptionError: ``top_k`` below 1.
            TooLargeError: a text does not fit in memory even alone.
        """
        check_whole("top_k", top_k, 1, or_none=True)
        places, documents = as_documents(texts)
        queries = as_queries(query)
        candidates = {name: dict.fromkeys(documents if places is None else places, 0.0) for name in queries}
        builder = self.builder(texts if isinstance(texts, Collection) else documents)
        run = ranking.rerank(self.model, builder, queries, candidates, batch_size, bf16, progress)
        keys = dict(zip(documents, texts, strict=True)) if isinstance(texts, Mapping) else {}
        rankings = {
            name: [(keys.get(one, one), score) for one, score in ordered(scores, places)[:top_k]]
            for name, scores in run.items()
        }
        if isinstance(query, str):
            return rankings[query]
        if isinstance(query, Mapping):
            return {key: rankings[name] for name, key in zip(queries, query, strict=True)}
        return [rankings[one] for one in query]

    def predict(
        self, pairs: Sequence[Any], batch_size: int = BATCH, show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True, convert_to_tensor: bool = False,
    ) -> Any:  # fmt: skip
        """Return the score of each (query, text), in their order: as sentence-transformers' ``CrossEncoder.predict``.

        Args:
            pairs: ``[(query, text), ...]``; of one pair alone the score is a number.
            batch_size: as in :meth:`rank`; unlike there, it counts word pieces.
            show_progress_bar: show a bar; None: on a terminal, after two seconds.
            convert_to_numpy: return an array, float32; False: a list.
            convert_to_tensor: return a tensor, whatever ``convert_to_numpy`` says.

        Raises:
            InputError: pairs or texts that are none.
        """
        alone = isinstance(pairs, list | tuple) and len(pairs) == 2 and isinstance(pairs[0], str)
        asked = [pairs] if alone or not isinstance(pairs, Sequence | np.ndarray) else pairs
        for pair in asked:
            if not isinstance(pair, list | tuple | np.ndarray) or len(pair) != 2:
                raise InputError(f"predict takes pairs, [(query, text), ...], got {str(pair)[:80]!r} among them")
        places, documents = as_documents([text for _, text in asked])
        names = list(zip((checked_query(one) for one, _ in asked), cast("list[str]", places), strict=True))
        candidates: dict[str, dict[str, float]] = {}
        for query, document in names:
            candidates.setdefault(query, {})[document] = 0.0
        queries = as_queries(list(candidates))
        builder = self.builder(documents)
        run = ranking.rerank(self.model, builder, queries, candidates, batch_size, progress=show_progress_bar)
        scores = np.array([run[query][document] for query, document in names], np.float32)
        if convert_to_tensor:
            return torch.from_numpy(scores)[0] if alone else torch.from_numpy(scores)
        kept = scores if convert_to_numpy else scores.tolist()
        return kept[0] if alone else kept

    def builder(self, documents: Collection | Mapping[str, Document], keep_edges: bool = False) -> GraphBuilder:
        """Return what builds graphs of these documents; those of a collection by its own document frequencies."""
        first_stage = documents.first_stage_score if isinstance(documents, Collection) else None
        if isinstance(documents, Collection):
            statistics, documents = self.read(documents), documents.documents
        else:
            statistics = self.statistics
            if self._asks_statistics() and statistics.size == 0:
                warnings.warn(
                    f"{self.recipe['name']} weighs words by their document frequencies and has none yet, so all weigh "
                    "the same: call ranker.count(texts), or fit",
                    stacklevel=3,
                )
        options: dict[str, Any] = {"seed": self.recipe["seed"], "device": self.device, "cache": self.cache}
        options["first_stage"] = first_stage
        keep = keep_edges and self.parts.edges is not None
        return self.parts.builder(documents, self.tokens, statistics, keep_edges=keep, **options)

    def read(self, collection: Collection) -> TermStatistics:
        """Return the statistics of a collection; it is read once, if anything asks for them."""
        if collection not in self._read:
            self._read[collection] = TermStatistics.of(self.tokens, collection.documents)
        return self._read[collection]

    def _asks_statistics(self) -> bool:
        edges = self.parts.edges
        weighs = edges is not None and any(isinstance(one, StaticCentrality) for one in edges.patterns.values())
        return weighs or "BM25" in type(self.parts.relevance).__name__

    def count(self, texts: Texts) -> Self:
        """Take the document frequencies of these texts, for all texts that belong to no collection."""
        if isinstance(texts, Collection):
            self.statistics = self.read(texts)
        else:
            self.statistics = TermStatistics.of(self.tokens, as_documents(texts)[1])
        return self

    def fit(
        self, collection: Collection, groups: int | None = None, negatives: int = 7, dev: ranking.Dev | None = None,
        folder: str | PathLike[str] | None = None, depth: int = 100, **options: Any,
    ) -> Self:  # fmt: skip
        """Train on a collection's split "train", stage by stage where the recipe has stages.

        Where the split, or that of ``dev``, has no candidates, BM25 retrieves ``depth`` for each query.

        Args:
            collection: whose document frequencies the ranker takes over.
            groups: of one relevant document and the negatives; None: one for each query.
            negatives: of a group.
            dev: what is measured while it is trained; the best checkpoint is kept. See
                :class:`~socialgraph.ranking.Dev`.
            folder: where checkpoints go, ten in a training unless ``save_steps`` says otherwise; one that was killed
                goes on there with the same call. None: none are kept.
            depth: candidates that BM25 retrieves.
            options: of ``transformers.TrainingArguments``, such as ``learning_rate`` and ``num_train_epochs``, or
                ``loss`` and ``head_learning_rate`` as :func:`~socialgraph.ranking.train` takes them, over the recipe's.

        Raises:
            OptionError: the recipe learns nothing, or the trainer does not take an option.
            InputError: no query has a relevant document and another candidate.
        """
        training = self.recipe["training"]
        if training is None:
            raise OptionError(f"recipe {self.recipe['name']} learns nothing")
        loss = options.get("loss", training["loss"])
        if "loss" not in options and "." in loss and loss.rpartition(".")[0] not in sys.modules:
            raise OptionError(f"the loss {loss!r} is not imported because a recipe says so: pass it, loss={loss!r}")
        if folder is None and dev is None and (lost := sorted(one for one in options if one.startswith("save_"))):
            raise OptionError(f"{', '.join(lost)}: nothing is kept without a folder; say folder=, too")
        if dev is not None and not isinstance(dev, ranking.Dev):
            raise OptionError(f"dev must be a Dev, such as Dev(collection['dev']), got {type(dev).__name__}")
        asked = ["train"]
        if dev is not None and isinstance(collection, Collection):
            asked.append(next((name for name, split in collection.splits.items() if split is dev.split), DEV))
            # one of another collection, too: training must not see the documents that it asks for
            collection = collection.with_splits({**collection.splits, asked[1]: dev.split})
        collection = with_candidates(collection, asked, depth)
        dev = None if dev is None else replace(dev, split=collection[asked[1]])
        split, seed = collection["train"], self.recipe["seed"]
        drawn = TrainingGroups(split, len(split.queries) if groups is None else groups, negatives, seed)
        own = {"resume": folder is not None, "dev": dev, "seed": seed, "use_cpu": self.device.type == "cpu"}
        if folder is not None:
            own |= {"save_strategy": "steps", "save_steps": TENTH}
        builder = self.count(collection).builder(collection)
        with tempfile.TemporaryDirectory() if folder is None else nullcontext(folder) as place:
            log = train_stages(self.model, builder, drawn, Path(place), self.recipe, **{**own, **options})
        self.model.eval()
        # measures, if there were any, were of other weights
        told = loss if isinstance(loss, str) else getattr(loss, "__qualname__", type(loss).__name__)
        self.history = {"training": record(collection, drawn, told, options, log)}
        return self

    def evaluate(
        self, collection: Collection, split: str = "test", measures: Sequence[str] = ("RR@10", "nDCG@10"),
        batch_size: int = BATCH, progress: bool | None = None, depth: int = 100,
    ) -> ranking.Evaluation:  # fmt: skip
        """Re-rank a split's candidates and measure; the means, with their intervals, go to the model card.

        Where the split has no candidates, BM25 retrieves ``depth`` for each query.
        """
        parse_measures(measures)
        collection = with_candidates(collection, [split], depth)
        part, builder = collection[split], self.builder(collection)
        run = ranking.rerank(self.model, builder, part.queries, part.candidates or {}, batch_size, progress=progress)
        evaluation = ranking.evaluate(part.qrels, run, measures, collection.ignore_identical_ids)
        means = {name: interval(values) for name, values in evaluation.per_query.items()}
        measured = self.history.setdefault("measures", {})
        measured[f"{collection.name}, {split}"] = {"queries": len(part.qrels), "means": means}
        return evaluation

    def save_pretrained(self, folder: str | PathLike[str]) -> Path:
        """Write all that makes a score to a folder, and a model card.

        Raises:
            OutputError: the folder cannot be written.
            OptionError: a part that no file can hold.
        """
        return files.save(self._contents, Path(folder))

    def push_to_hub(self, repo_id: str, private: bool | None = None, **options: Any) -> str:
        """Save it as a repository of the hub and return its address.

        Args:
            repo_id: "user/name".
            private: whether only its owner sees it.
            options: of ``huggingface_hub.HfApi.upload_folder``, such as ``commit_message``.
        """
        return files.push(self._contents, repo_id, private, options)

    @property
    def _contents(self) -> files.Contents:
        return files.Contents(self.recipe, self.parts, self.model, self.tokens, self.statistics, self.history)

    def graph(self, query: str, text: Text, circles: Partition | None = None) -> DocumentGraph:
        """Return the graph of a query and a text, with its edges and circles, for :mod:`socialgraph.inspect`.

        ``socialgraph.inspect.to_networkx(ranker.graph(query, text))`` is the same for networkx.

        Args:
            query: its text.
            text: the document.
            circles: a partition in place of the ranker's own.

        Raises:
            InputError: a query without word pieces.
            OptionError: ``circles`` for a ranker without edges, or one that reads the document as a whole.
        """
        name, document = as_document(text)
        (query_id,) = as_queries(query)
        builder = self.builder({name: document}, keep_edges=True)
        if circles is not None and (builder.edges is None or builder.joint):
            raise OptionError(f"{self.recipe['name']} draws no friends, so {circles!r} has nobody to gather")
        builder.circles = builder.circles if circles is None else circles
        return cast(DocumentGraph, builder([(query_id, query, name)])[0])

    def words(self, graph: DocumentGraph) -> list[str]:
        """Return the word pieces of a graph's nodes."""
        return self.tokens.words(graph.input_ids)

    def explain(
        self, query: str, text: Text, beside: str | type[Partition] | Partition | None = None,
        evidence: tuple[int, int] | None = None,
    ) -> Page:  # fmt: skip
        """Return a page about a query and a text: circles, friends, and what each circle is worth to the score.

        In a notebook it shows itself; ``page.save("page.html")`` writes it.

        Args:
            query: its text.
            text: the document.
            beside: a partition to stand beside the ranker's own, with as many circles: what would other circles hold?
            evidence: the word pieces where the answer stands, from and to before, where it is known; see
                :func:`~socialgraph.data.evidence.evidence_nodes`.

        Raises:
            InputError: a query without word pieces.
            OptionError: no such partition, or the ranker has no edges to gather its circles from.
        """
        from socialgraph.inspect.report import page_of

        graphs = {circles_name(self.parts.circles): self.graph(query, text)}
        if beside is not None:
            other = with_k(beside, getattr(self.parts.circles, "k", None))  # as many circles where both have a k
            name = beside if isinstance(beside, str) else circles_name(other)
            graphs[name if name not in graphs else f"{name} (2)"] = self.graph(query, text, other)
        views = [self._view(query, text, name if beside is not None else "", one) for name, one in graphs.items()]
        edges = self.parts.edges if isinstance(self.parts.edges, SocialEdges) else None
        return page_of(views, query, as_document(text)[1], self.tokens, self.model, edges, evidence)

    def _view(self, query: str, text: Text, name: str, graph: DocumentGraph) -> View:
        from socialgraph.inspect.leave_one_out import scores_without
        from socialgraph.inspect.report import View

        graph.document_id = getattr(text, "doc_id", "")  # what a text is called here tells nobody anything
        if "circle_index" not in graph:
            return View(graph.cpu(), name, float(self.predict([(query, text)])[0]))
        score, without = scores_without(self.model, graph)
        return View(graph.cpu(), name, score, without)

    def __repr__(self) -> str:
        graphs = self.parts.circles or self.parts.passages or self.parts.edges
        length = f"document_length={self.tokens.max_document_length}"
        return f"{type(self).__name__}({self.recipe['name']}: {type(self.model).__name__}, {graphs!r}, {length})"


def circles_name(circles: Partition | None) -> str:
    """Return what a partition is called in names and pages: "edge" for ``EdgeCircles``, and so on."""
    return "passages" if circles is None else type(circles).__name__.removesuffix("Circles").lower()


def ordered(scores: Mapping[str, float], places: Sequence[str] | None) -> Ranking:
    """Return (id, score), best first; or (place, score) where each place has the id that ``places`` says."""
    if places is None:
        return list(scores.items())
    return sorted(((place, scores[one]) for place, one in enumerate(places)), key=lambda pair: (-pair[1], pair[0]))
