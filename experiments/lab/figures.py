"""Pictures: Figures 4 to 6 of the Socialformer paper with their numbers, a document's graph, quality by sequences."""

from __future__ import annotations

import copy
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from omegaconf import DictConfig
from tqdm import tqdm

from lab.config import label_of, typed
from lab.execute import System
from lab.report import Comparison, Line, buckets, per_query
from lab.results import Results, versions, write_figure, write_text
from lab.rows import composed, results_folder
from lab.task import instantiate_as, load_task, read_texts
from socialgraph.data import Cache, Collection, GraphBuilder, TermStatistics, Tokens
from socialgraph.data.collection import hash_fraction
from socialgraph.data.graph import DocumentGraph, circle_size
from socialgraph.edges import Pattern, SocialEdges
from socialgraph.errors import InputError, OptionError
from socialgraph.partition import Whole
from socialgraph.ranking import evaluate
from socialgraph.recipes.build import build
from socialgraph.recipes.compose import filter_kwargs

#: a figure and the numbers in it
Drawn = tuple[Figure, dict[str, Any]]

#: the paper's 32 circles of documents of 2,000 tokens; of too many friends the first stay, as in the released code
PAPER_CIRCLES = ["document_length=2000", "partition.k=32", "partition.max_size=128", "partition.keep=first"]
#: Paul Tol's "bright": distinct for the colour-blind, too; with the markers more lines than colours can be told apart
COLOURS = ("#4477AA", "#EE6677", "#228833", "#AA3377", "#66CCEE", "#CCBB44", "#BBBBBB")
MARKERS = "os^DvP"


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
    write_figure(output, figure, config.dpi)
    write_text(output.with_suffix(".json"), json.dumps(numbers | {"versions": versions()}, indent=1) + "\n")
    print(f"written: {output} and {output.with_suffix('.json')}")


def panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, Any]:
    """Return a figure that belongs to no window, and its axes in an array ``[rows, columns]``."""
    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


# --- Figure 4: patterns of one document -------------------------------------------------------------------------------


def figure4(config: DictConfig) -> Drawn:
    """Draw what each pattern makes of one document."""
    if (config.query is None) != (config.document is None):
        raise OptionError("query and document come together: give both or none")
    config = composed(["edges.sparsity=0.9", *typed()])  # the paper's, for this figure
    edges = instantiate_as(config.edges, "edges", SocialEdges)
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


def draw_patterns(graph: DocumentGraph, edges: SocialEdges, title: str) -> Figure:
    """Draw what each pattern makes of one document (Figure 4).

    A column for each pattern alone, and, if there are several, one for the mean of all, as ``edges`` weighs them; every
    column has the sparsity of ``edges``. Above, the probability of each edge, min(1, P / mu), all on one scale. Below,
    the adjacency matrix that is drawn from it, with the same random numbers in all columns. Rows and columns are places
    in the document. The paper shows the adjacency matrices; the probabilities and the mean are added here.

    Args:
        graph: one pair. Its edges are not read, they are drawn again.
        edges: patterns, weights and sparsity.
        title: the headline.
    """
    graph, edges = copy.copy(graph).cpu(), copy.deepcopy(edges).cpu()
    samplers = {
        name.replace("_", " "): SocialEdges({name: cast(Pattern, pattern)}, sparsity=edges.sparsity)
        for name, pattern in edges.patterns.items()
    }
    if len(samplers) > 1:
        samplers["all together"] = edges
    probable = [one.probabilities(graph).dense()[0].detach().clamp(max=1.0).numpy() for one in samplers.values()]
    highest = max(float(matrix.max(initial=0.0)) for matrix in probable) or 1.0
    figure, axes = panels(2, len(samplers), 1.5 + 2.4 * len(samplers), 5.2, sharex=True, sharey=True)
    for (above, below), (name, one), matrix in zip(axes.T, samplers.items(), probable, strict=True):
        drawn = np.zeros_like(matrix)
        drawn[tuple(one(graph)[0].numpy())] = 1.0
        for place, values, most in ((above, matrix, highest), (below, drawn, 1.0)):
            norm = PowerNorm(0.7, 0.0, most)  # most probabilities are small
            place.imshow(values if values.size else np.zeros((1, 1)), cmap="Blues", norm=norm, gid=name)
        above.set_title(name, size=10, parse_math=False)
    axes[0, 0].set_ylabel("probability of an edge", size=9)
    axes[1, 0].set_ylabel("edges", size=9)
    figure.colorbar(axes[0, 0].images[0], ax=list(axes.flat), shrink=0.5, anchor=(0.0, 1.0))
    figure.suptitle(textwrap.shorten(title, 110, placeholder=" …"), size=11, parse_math=False, usetex=False)
    share = f"{100 * (1 - edges.sparsity):.3g} % of the pairs are expected to be edges"
    figure.supxlabel(f"place in the document (word pieces); in every column {share}", size=8)
    return figure


# --- Figure 5: sizes of circles ---------------------------------------------------------------------------------------


def figure5(config: DictConfig) -> Drawn:
    """Gather the circles of some documents, draw their sizes and print the medians."""
    if config.documents < 1:
        raise OptionError(f"documents must be at least 1, got {config.documents}")
    each = [composed([f"partition={name}", *PAPER_CIRCLES, *typed()]) for name in config.partitions]
    names = [f"{name}-level" for name in config.partitions]
    config = composed([*PAPER_CIRCLES, *typed()])
    partitions = {name: build(filter_kwargs(one.partition)) for name, one in zip(names, each, strict=True)}
    given = instantiate_as(config.edges, "edges", SocialEdges)
    collection, tokens, statistics = read(config)
    pairs = relevant_pairs(collection, config, tokens)[: config.documents]
    k, max_size = (max(one.partition[option] for one in each) for option in ("k", "max_size"))
    cache = Cache()  # BERT reads each pair once
    sizes: dict[str, dict[float, list[list[int]]]] = {name: {} for name in partitions}
    with tqdm(total=len(partitions) * len(config.sparsity) * len(pairs), desc="circles", disable=None) as bar:
        for name, circles in partitions.items():
            for sparsity in config.sparsity:
                edges = SocialEdges(dict(given.patterns.items()), given.weights, sparsity)
                builder = GraphBuilder(
                    collection.documents, tokens, statistics, edges, circles, seed=config.seed, cache=cache
                )
                for pair in pairs:
                    sizes[name].setdefault(sparsity, []).append(circle_size(builder([pair])).tolist())
                    bar.update()
    medians = {
        name: {f"{sparsity:g}": np.median(by_turn(some, k), 0).tolist() for sparsity, some in lines.items()}
        for name, lines in sizes.items()
    }
    table = {(name, sparsity): one for name, lines in medians.items() for sparsity, one in lines.items()}
    print(f"median sizes of the first, second, ... circle over {len(pairs)} documents")
    print(pd.DataFrame(table, index=range(1, k + 1)).T.to_string(float_format="%g"))
    numbers = {
        "collection": collection.name, "documents": [pair[2] for pair in pairs],
        "queries": [pair[0] for pair in pairs], "word_pieces": config.document_length, "edges": repr(given),
        "partitions": {name: repr(circles) for name, circles in partitions.items()},
        "k": k, "max_size": max_size, "seed": config.seed, "medians": medians, "sizes": sizes,
    }  # fmt: skip
    return draw_circle_sizes(sizes, max_size), numbers


def by_turn(sizes: Sequence[Sequence[int]], k: int) -> np.ndarray[Any, Any]:
    """Return the size of the first, second, ... k-th circle of each document, 0 where it has fewer: ``[D, k]``."""
    return np.array([[*own[:k], *[0] * (k - len(own))] for own in sizes])


def draw_circle_sizes(sizes: Mapping[str, Mapping[float, Sequence[Sequence[int]]]], max_size: int) -> Figure:
    """Draw the sizes of circles against their turn, a line for each sparsity (Figure 5).

    A panel for each partition; a point is the median over documents, the band holds the middle half of them. A document
    that has fewer circles counts with 0. The paper shows one document.

    Args:
        sizes: name of the partition -> sparsity -> the sizes of each document's circles, as they were found.
        max_size: members of a circle at most: a dashed line.

    Raises:
        InputError: nothing to draw.
    """
    turns = max((len(own) for lines in sizes.values() for each in lines.values() for own in each), default=0)
    if turns == 0:
        raise InputError("there is no circle to draw: no partition, no document, or no friend circle in any of them")
    figure, axes = panels(1, len(sizes), 1.0 + 4.6 * len(sizes), 4.2, sharex=True, sharey=True)
    turn = np.arange(1, turns + 1)
    for place, (name, lines) in zip(axes[0], sizes.items(), strict=True):
        for number, (sparsity, each) in enumerate(lines.items()):
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
            low, middle, high = np.quantile(by_turn(each, turns), (0.25, 0.5, 0.75), 0)
            place.fill_between(turn, low, high, color=style["color"], alpha=0.18, linewidth=0)
            thick = len(lines) - number  # lines that lie on each other are all seen
            place.plot(turn, middle, label=f"{sparsity:g}", gid=f"{name} {sparsity:g}", linewidth=0.5 * thick, **style)
        place.axhline(max_size, color="#666666", linestyle="--", gid="cap")
        place.set_title(name, size=11, parse_math=False, usetex=False)
        place.set_xlabel("circle, in the order in which they are found", size=9)
    axes[0, 0].set_ylabel(f"members (at most {max_size})", size=9)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), title="sparsity", frameon=False, loc="outside right center")
    return figure


# --- Figure 6: a measure by the length of documents -------------------------------------------------------------------


def figure6(config: DictConfig) -> Drawn:
    """Measure finished rows and draw them by the length of what was to be found."""
    collection = instantiate_as(config.data.collection, "data.collection", Collection)
    split = str(config.data.splits.test)
    results, measured = Results(results_folder(config)), {}
    for row in config.rows:
        seeds = []
        for seed, value in results.seeds(row).items():
            if value["collection"] != collection.name:
                other = f"is about {value['collection']}, and the collection is {collection.name}"
                raise InputError(f"{results.folder / f'{row}.{seed}.run.gz'} {other}: run the table again on it")
            judged = {query: collection[split].qrels[query] for query in next(iter(value["measures"].values()))}
            seeds.append(evaluate(judged, results.ranking(f"{row}.{seed}"), [config.measure]).per_query)
        measured[row if value["name"] in measured else value["name"]] = per_query(seeds)[config.measure]
    values = pd.DataFrame(measured)
    if values.isna().any(axis=None):
        raise InputError(f"{', '.join(config.rows)} were measured on different queries: run the table again")
    lengths = lengths_of(values.index, collection, split, Tokens(config.backbone, 1 << 30, cache=Cache.on_disk()))
    values = values.loc[list(lengths)]
    groups = values.groupby(buckets(list(lengths.values()), list(config.bounds)), observed=False)
    means, errors, counts = groups.mean(), groups.sem(), groups.size()
    print(means.assign(queries=counts).to_string(float_format="%.3f"))
    figure, axes = panels(1, 1, max(7.0, 3.0 + 1.7 * len(means)), 4.2)
    means.set_axis([f"{name}\n{count} queries" for name, count in counts.items()]).plot.bar(
        ax=axes[0, 0], yerr=errors.to_numpy().T, rot=0, width=0.8, color=COLOURS, edgecolor="#444444", legend=False,
        error_kw={"elinewidth": 0.8},
    )  # fmt: skip
    axes[0, 0].set_ylabel(config.measure, size=9, parse_math=False)
    axes[0, 0].set_xlabel("word pieces of the relevant document", size=9)
    legend = figure.legend(frameon=False, loc="outside right upper")
    for text in legend.get_texts():
        text.set_parse_math(False)
    note = f"{collection.name}, split {split}, {len(values)} queries; lines: one standard error"
    figure.supxlabel(note, size=8, color="#666666", x=0.02, ha="left", parse_math=False)
    shown = [
        {
            "name": name,
            "queries": list(queries.index),
            "means": queries.mean().dropna().to_dict(),
            "errors": queries.sem().dropna().to_dict(),
        }
        for name, queries in groups
    ]
    return figure, {"collection": collection.name, "split": split, "measure": config.measure, "buckets": shown}


DRAW = {4: figure4, 5: figure5, 6: figure6}


def lengths_of(queries: Sequence[str], collection: Collection, split: str, tokens: Tokens) -> dict[str, int]:
    """Return query -> length of the shortest document that is relevant to it, in word pieces of the whole text.

    A judged document that the collection does not hold has none.
    """
    asked = collection[split]
    there = {query: [d for d in asked.relevant(query) if d in collection.documents] for query in queries}
    ids = sorted({document for documents in there.values() for document in documents})
    length = dict(zip(ids, tokens.lengths(ids, collection.documents), strict=True))
    return {query: min(length[d] for d in documents) for query, documents in there.items() if documents}


def read(config: DictConfig) -> tuple[Collection, Tokens, TermStatistics]:
    """Return a configuration's collection, its word pieces and their statistics."""
    collection = instantiate_as(config.data.collection, "data.collection", Collection)
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


# --- beside tables ----------------------------------------------------------------------------------------------------


def draw_graph(config: DictConfig, path: Path) -> None:
    """Draw the graph of the first test query's best relevant document, or of its first candidate, if it has circles."""
    if config.recipe.circles is None:
        return
    from socialgraph.inspect import draw

    task = load_task(config.data)
    builder = System(config).builder(task)
    builder.keep_edges = True  # a picture shows them
    query_id, scores = next(iter((task.test.candidates or {}).items()))
    relevant = [document for document in scores if document in task.test.relevant(query_id)]
    document, query = [*relevant, *scores][0], task.test.queries[query_id]
    graph = builder([(query_id, query, document)]).to("cpu")[0]
    title = f"How {document} looks to the query \u201c{query}\u201d"
    write_figure(path, draw(graph, builder.tokens.words(graph.input_ids), title=title), 150)


def quality_and_sequences(of: Comparison) -> Figure | None:
    """Draw each measure against the number of sequences that BERT reads, a curve for each strategy through its k.

    The mean number of sequences says where a point stands: a strategy that finds fewer circles than it may stands
    further left. A line that belongs to no curve, such as all windows, is a mark. None where k is not varied.
    """
    strategies: dict[str, list[Line]] = {}
    for line in of.lines:
        options = dict(line.row.beside["options"])
        k = options.pop("k", options.pop("partition.k", None))
        name = label_of(options) or "circles"
        strategies.setdefault(f"{name}, all" if k == "null" else name, []).append(line)
    if not any(len(lines) > 1 for lines in strategies.values()):
        return None
    measures = [name for name in of.measures if name not in ("sequences", "words")]
    high = (len(measures) + 1) // 2
    figure, axes = panels(high, min(2, len(measures)), 4.6 * min(2, len(measures)), 3.2 * high + 0.6, sharex=True)
    for place, measure in zip(axes.flat, measures, strict=False):
        for number, (name, lines) in enumerate(strategies.items()):
            points = sorted((cast(float, line.mean("sequences")), cast(float, line.mean(measure))) for line in lines)
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
            place.plot(*zip(*points, strict=True), label=name, **style)
        place.set_xscale("log", base=2)
        place.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        place.set_title(measure, size=10, parse_math=False)
        place.grid(color="#E5E5E5", linewidth=0.6)
    figure.supxlabel("sequences for each document", size=9)
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure
