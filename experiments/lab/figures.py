"""What figures.py draws."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from hydra import initialize_config_dir
from matplotlib.figure import Figure
from omegaconf import DictConfig
from tqdm import tqdm

from lab.by_query import lengths_of
from lab.command import CONF
from lab.comparison import per_query
from lab.files import write_figure, write_json
from lab.paper_figures import (
    circle_sizes,
    draw_by_length,
    draw_circle_sizes,
    draw_patterns,
    measures_by_length,
    median_sizes,
)
from lab.plan import composed
from lab.store import Store, versions
from lab.task import made, read_texts, test_split, whole_texts
from socialgraph.data import Cache, Collection, GraphBuilder, TermStatistics, Tokens
from socialgraph.data.collection import hash_fraction
from socialgraph.data.files import file_name
from socialgraph.edges import SocialEdges
from socialgraph.errors import InputError, OptionError
from socialgraph.partition import Whole
from socialgraph.ranking import evaluate
from socialgraph.recipes.build import build
from socialgraph.recipes.compose import taken

#: a figure and the numbers in it
Drawn = tuple[Figure, dict[str, Any]]

#: the paper's 32 circles of documents of 2,000 tokens; of too many friends the first stay, as in the released code
PAPER_CIRCLES = ["document_length=2000", "partition.k=32", "partition.max_size=128", "partition.keep=first"]
#: circles whose median is printed
SHOWN = (1, 4, 8, 12, 16, 24, 32)


def draw_figure4(chosen: argparse.Namespace) -> Drawn:
    """Draw what each pattern makes of one document."""
    if (chosen.query is None) != (chosen.document is None):
        raise OptionError("--query and --document come together: give both or none")
    config = configured(["edges.sparsity=0.9", *chosen.overrides])  # the paper's, for this figure
    edges = made(config.edges, "edges", SocialEdges)
    collection, tokens, statistics = read(config)
    pair = ("query", chosen.query, chosen.document)
    if chosen.query is None:
        pair = relevant_pairs(collection, config, tokens)[0]
    # the figure draws the edges itself, so no circles are gathered
    builder = GraphBuilder(collection.documents, tokens, statistics, edges, passages=Whole(), seed=config.seed)
    graph = builder([pair])[0]
    numbers = {
        "collection": collection.name, "query_id": pair[0], "query": pair[1], "document": pair[2],
        "word_pieces": graph.num_nodes, "edges": repr(edges), "seed": config.seed,
    }  # fmt: skip
    return draw_patterns(graph, edges, f"{pair[2]} for the query “{pair[1]}”"), numbers


def draw_figure5(chosen: argparse.Namespace) -> Drawn:
    """Gather the circles of some documents, draw their sizes and print some."""
    if chosen.documents < 1:
        raise OptionError(f"--documents must be at least 1, got {chosen.documents}")
    names = chosen.partitions.split(",")
    config, *each = (
        configured([*own, *PAPER_CIRCLES, *chosen.overrides]) for own in ([], *([f"partition={n}"] for n in names))
    )
    partitions = {f"{name}-level": build(taken(one.partition)) for name, one in zip(names, each, strict=True)}
    given = made(config.edges, "edges", SocialEdges)
    collection, tokens, statistics = read(config)
    pairs = relevant_pairs(collection, config, tokens)[: chosen.documents]
    cache = Cache()  # BERT reads each pair once
    sizes: dict[str, dict[float, list[list[int]]]] = {name: {} for name in partitions}
    total = len(partitions) * len(chosen.sparsity) * len(pairs)
    with tqdm(total=total, desc="circles", unit="document", disable=None) as bar:
        for name, circles in partitions.items():
            for sparsity in chosen.sparsity:
                edges = SocialEdges(dict(given.patterns.items()), given.weights, sparsity)
                builder = GraphBuilder(
                    collection.documents, tokens, statistics, edges, circles, seed=config.seed, cache=cache
                )
                for pair in pairs:
                    sizes[name].setdefault(sparsity, []).extend(circle_sizes(builder([pair])))
                    bar.update()
    k, max_size = (max(one.partition[option] for one in each) for option in ("k", "max_size"))
    numbers = {
        "collection": collection.name, "documents": [pair[2] for pair in pairs],
        "queries": [pair[0] for pair in pairs], "word_pieces": config.document_length, "edges": repr(given),
        "partitions": {name: repr(circles) for name, circles in partitions.items()},
        "k": k, "max_size": max_size, "seed": config.seed, "medians": printed_medians(sizes, k, len(pairs)),
        "sizes": sizes,
    }  # fmt: skip
    return draw_circle_sizes(sizes, max_size), numbers


def printed_medians(sizes: dict[str, dict[float, list[list[int]]]], k: int, documents: int) -> dict[str, Any]:
    """Print the median sizes of some circles, and return those of all."""
    turns = [turn for turn in SHOWN if turn <= k]
    print(f"median sizes over {documents} documents of circle {' '.join(map(str, turns))}")
    medians: dict[str, Any] = {}
    for name, lines in sizes.items():
        for sparsity, some in lines.items():
            medians.setdefault(name, {})[f"{sparsity:g}"] = one = median_sizes(some, k).tolist()
            print(f"{name:12} {sparsity:>5g}: {' '.join(f'{one[turn - 1]:g}' for turn in turns)}")
    return medians


def draw_figure6(chosen: argparse.Namespace) -> Drawn:
    """Measure finished rows and draw them by the length of what was to be found."""
    config = configured(chosen.overrides)
    collection, split = made(config.data.collection, "data.collection", Collection), test_split(config.data)
    qrels = collection[split].qrels
    store = Store(chosen.results / file_name(config.data.label) / file_name(split))
    measures: dict[str, dict[str, float]] = {}
    for row in chosen.rows.split(","):
        name, values = measured(store, row, chosen.measure, qrels, collection.name)
        measures[row if name in measures else name] = values
    relevant = {query: collection[split].relevant(query) for values in measures.values() for query in values}
    lengths = lengths_of(relevant, collection, whole_texts(collection, config.backbone))
    inside = {name: {q: value for q, value in values.items() if q in lengths} for name, values in measures.items()}
    buckets = measures_by_length(inside, lengths, chosen.bounds)
    for bucket in buckets:
        means = ", ".join(f"{system} {mean:.3f}" for system, mean in bucket.means.items())
        print(f"{bucket.name:>16}: {len(bucket.queries):4} queries  {means}")
    note = f"{collection.name}, split {split}, {len(lengths)} queries; lines: one standard error"
    numbers = {
        "collection": collection.name, "split": split, "measure": chosen.measure,
        "buckets": [vars(bucket) for bucket in buckets],
    }  # fmt: skip
    return draw_by_length(buckets, chosen.measure, note), numbers


def measured(
    store: Store, row: str, measure: str, qrels: dict[str, dict[str, int]], collection: str
) -> tuple[str, dict[str, float]]:
    """Return a finished row's name, and the measure of each of its queries, the mean over its seeds.

    Raises:
        InputError: no such row, a damaged one, or one about another collection.
    """
    seeds = []
    for seed, value in store.seeds(row).items():
        if value["collection"] != collection:
            other = f"is about {value['collection']}, and the collection is {collection}"
            raise InputError(f"{store.folder / f'{row}.{seed}.run.gz'} {other}: run the table again on it")
        judged = {query: qrels[query] for query in next(iter(value["measures"].values()))}
        seeds.append(evaluate(judged, store.ranking(f"{row}.{seed}"), [measure]).per_query)
    return value["name"], per_query(seeds)[measure]


DRAW = {"4": draw_figure4, "5": draw_figure5, "6": draw_figure6}


def write(figure: Figure, numbers: dict[str, Any], chosen: argparse.Namespace) -> None:
    """Write a picture and its numbers, each whole or not at all."""
    write_figure(chosen.output, chosen.dpi, lambda: figure)
    write_json(chosen.output.with_suffix(".json"), numbers | {"versions": versions()})
    print(f"written: {chosen.output} and {chosen.output.with_suffix('.json')}")


def configured(overrides: Sequence[str]) -> DictConfig:
    """Return the configuration of a run with these overrides."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return composed(overrides)


def read(config: DictConfig) -> tuple[Collection, Tokens, TermStatistics]:
    """Return a configuration's collection, its word pieces and their statistics."""
    collection = made(config.data.collection, "data.collection", Collection)
    return collection, *read_texts(collection, config.backbone, config.document_length, config.query_length)


def relevant_pairs(collection: Collection, config: DictConfig, tokens: Tokens) -> list[tuple[str, str, str]]:
    """Return test queries with a document that they should find: ``(query id, query, document id)``.

    Only documents that have all the word pieces that are read, each once; in the order of the queries' hashes.

    Raises:
        InputError: there is none.
    """
    name = test_split(config.data)
    split = collection[name]
    first: dict[str, str] = {}  # document -> query
    for query in sorted(split.queries, key=hash_fraction):
        for document in split.relevant(query):
            first.setdefault(document, query)
    lengths = tokens.lengths(list(first), collection.documents)
    pairs = [
        (query, split.queries[query], document)
        for (document, query), length in zip(first.items(), lengths, strict=True)
        if length == tokens.max_document_length
    ]
    if not pairs:
        raise InputError(
            f"no relevant document of {collection.name}, split {name}, has "
            f"{tokens.max_document_length} word pieces: choose a smaller document_length"
        )
    return pairs
