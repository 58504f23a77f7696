"""What figures.py draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from omegaconf import DictConfig
from tqdm import tqdm

from lab.paper_figures import (
    circle_sizes,
    draw_by_length,
    draw_circle_sizes,
    draw_patterns,
    measures_by_length,
    median_sizes,
)
from lab.report import per_query
from lab.results import Results, versions, write_figure, write_text
from lab.rows import composed, results_folder
from lab.task import made, read_texts
from lab.typed import typed
from socialgraph.data import Cache, Collection, GraphBuilder, TermStatistics, Tokens
from socialgraph.data.collection import hash_fraction
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


def draw(config: DictConfig) -> None:
    """Draw the figure that an option names, and write it and its numbers, each whole or not at all.

    Raises:
        OptionError: there is no such figure, or no such kind of file.
    """
    if config.figure not in DRAW:
        raise OptionError(f"figure must be 4, 5 or 6, got {config.figure}")
    output = Path(config.output)
    if output.suffix not in (".png", ".svg", ".pdf"):
        raise OptionError(f"output must end in .png, .svg or .pdf, got {output}")
    figure, numbers = DRAW[config.figure](config)
    write_figure(output, config.dpi, lambda: figure)
    write_text(output.with_suffix(".json"), json.dumps(numbers | {"versions": versions()}, indent=1) + "\n")
    print(f"written: {output} and {output.with_suffix('.json')}")


def draw_figure4(config: DictConfig) -> Drawn:
    """Draw what each pattern makes of one document."""
    if (config.query is None) != (config.document is None):
        raise OptionError("query and document come together: give both or none")
    config = composed(["edges.sparsity=0.9", *typed()])  # the paper's, for this figure
    edges = made(config.edges, "edges", SocialEdges)
    collection, tokens, statistics = read(config)
    pair = ("query", config.query, config.document)
    if config.query is None:
        pair = relevant_pairs(collection, config, tokens)[0]
    # the figure draws the edges itself, so no circles are gathered
    builder = GraphBuilder(collection.documents, tokens, statistics, edges, passages=Whole(), seed=config.seed)
    graph = builder([pair])[0]
    numbers = {
        "collection": collection.name, "query_id": pair[0], "query": pair[1], "document": pair[2],
        "word_pieces": graph.num_nodes, "edges": repr(edges), "seed": config.seed,
    }  # fmt: skip
    return draw_patterns(graph, edges, f"{pair[2]} for the query “{pair[1]}”"), numbers


def draw_figure5(config: DictConfig) -> Drawn:
    """Gather the circles of some documents, draw their sizes and print some."""
    if config.documents < 1:
        raise OptionError(f"documents must be at least 1, got {config.documents}")
    own = [f"partition={name}" for name in config.partitions]
    each = [composed([partition, *PAPER_CIRCLES, *typed()]) for partition in own]
    config = composed([*PAPER_CIRCLES, *typed()])
    partitions = {
        f"{name}-level": build(taken(one.partition)) for name, one in zip(config.partitions, each, strict=True)
    }
    given = made(config.edges, "edges", SocialEdges)
    collection, tokens, statistics = read(config)
    pairs = relevant_pairs(collection, config, tokens)[: config.documents]
    cache = Cache()  # BERT reads each pair once
    sizes: dict[str, dict[float, list[list[int]]]] = {name: {} for name in partitions}
    total = len(partitions) * len(config.sparsity) * len(pairs)
    with tqdm(total=total, desc="circles", unit="document", disable=None) as bar:
        for name, circles in partitions.items():
            for sparsity in config.sparsity:
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


def draw_figure6(config: DictConfig) -> Drawn:
    """Measure finished rows and draw them by the length of what was to be found."""
    collection = made(config.data.collection, "data.collection", Collection)
    split = str(config.data.splits.test)
    qrels, results = collection[split].qrels, Results(results_folder(config))
    measures: dict[str, dict[str, float]] = {}
    for row in config.rows:
        name, values = measured(results, row, config.measure, qrels, collection.name)
        measures[row if name in measures else name] = values
    relevant = {query: collection[split].relevant(query) for values in measures.values() for query in values}
    lengths = lengths_of(relevant, collection, Tokens(config.backbone, 1 << 30, cache=Cache.on_disk()))
    inside = {name: {q: value for q, value in values.items() if q in lengths} for name, values in measures.items()}
    buckets = measures_by_length(inside, lengths, list(config.bounds))
    for bucket in buckets:
        means = ", ".join(f"{system} {mean:.3f}" for system, mean in bucket.means.items())
        print(f"{bucket.name:>16}: {len(bucket.queries):4} queries  {means}")
    note = f"{collection.name}, split {split}, {len(lengths)} queries; lines: one standard error"
    numbers = {
        "collection": collection.name, "split": split, "measure": config.measure,
        "buckets": [vars(bucket) for bucket in buckets],
    }  # fmt: skip
    return draw_by_length(buckets, config.measure, note), numbers


def measured(
    results: Results, row: str, measure: str, qrels: dict[str, dict[str, int]], collection: str
) -> tuple[str, dict[str, float]]:
    """Return a finished row's name, and the measure of each of its queries, the mean over its seeds.

    Raises:
        InputError: no such row, a damaged one, or one about another collection.
    """
    seeds = []
    for seed, value in results.seeds(row).items():
        if value["collection"] != collection:
            other = f"is about {value['collection']}, and the collection is {collection}"
            raise InputError(f"{results.folder / f'{row}.{seed}.run.gz'} {other}: run the table again on it")
        judged = {query: qrels[query] for query in next(iter(value["measures"].values()))}
        seeds.append(evaluate(judged, results.ranking(f"{row}.{seed}"), [measure]).per_query)
    return value["name"], per_query(seeds)[measure]


DRAW = {4: draw_figure4, 5: draw_figure5, 6: draw_figure6}


def lengths_of(relevant: dict[str, list[str]], collection: Collection, tokens: Tokens) -> dict[str, int]:
    """Return the length of the shortest document that is relevant to each query, in word pieces of the whole text.

    A judged document that the collection does not hold has none.
    """
    there = {query: [d for d in documents if d in collection.documents] for query, documents in relevant.items()}
    ids = sorted({document for documents in there.values() for document in documents})
    length = dict(zip(ids, tokens.lengths(ids, collection.documents), strict=True))
    return {query: min(length[d] for d in documents) for query, documents in there.items() if documents}


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
    name = str(config.data.splits.test)
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
