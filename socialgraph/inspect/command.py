"""``socialgraph inspect``: one HTML page about a query and a document."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Any, cast

from socialgraph import nn
from socialgraph.backbone import READER
from socialgraph.data import (
    Cache,
    Collection,
    Document,
    GraphBuilder,
    TermStatistics,
    Tokens,
    load_folder,
    load_irds,
    load_pydocs,
)
from socialgraph.data.evidence import evidence_nodes
from socialgraph.data.texts import as_document
from socialgraph.edges import EdgeSampler, Pattern, SocialEdges
from socialgraph.errors import InputError, OptionError, shown
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.inspect.networkx import node_weights
from socialgraph.inspect.page import page_of
from socialgraph.inspect.report import View
from socialgraph.partition import Blocks, Partition, Windows
from socialgraph.partition.resolver import with_k
from socialgraph.recipes.build import build
from socialgraph.recipes.classes import imported
from socialgraph.recipes.compose import compose_recipe
from socialgraph.recipes.typed import quoted


def write(options: argparse.Namespace) -> Path:
    """Write the page that the options describe and return its path."""
    # first what may be mistyped, then what takes time
    circles = {name: partition(name, options.k) for name in names(options.partition)}
    model = None if options.model is None else load_model(options.model, options.model_class)
    backbone = options.backbone or (model and model.backbone) or READER
    drawn = {name: edges_of(options.edges, one, options.sparsity, backbone) for name, one in circles.items()}
    mine = None if options.file is None else text_file(options.file)
    print(f"reading {options.collection} ...", file=sys.stderr, flush=True)
    texts = collection(options.collection)
    document = mine or one_document(texts, options.document)
    tokens = Tokens(backbone, options.length, cache=Cache.on_disk())
    statistics = TermStatistics.of(tokens, texts.documents)
    name, same = as_document(document)  # named by what it says, as Ranker does: the coins depend on it
    print(f"drawing {shown(document.doc_id)} ...", file=sys.stderr, flush=True)
    cache, views = Cache(), []
    for called, one in circles.items():
        passages, more = Windows(options.window), {"seed": options.seed, "cache": cache}
        builder = GraphBuilder({name: same}, tokens, statistics, drawn[called], one, passages, keep_edges=True, **more)
        graph = builder([(options.query, options.query, name)])[0]
        graph.document_id = document.doc_id
        score, without = (None, {}) if model is None else scores_without(model, graph)
        views.append(View(graph, called, score, without))
    # Blocks cut the text and are no look at the social graph: beside others they stand with the friends of those.
    social = next((name for name, one in drawn.items() if isinstance(one, SocialEdges)), None)
    source = next((view.graph for view in views if view.name == social), views[0].graph)
    for view in views:
        for part in ("edge_index", "edge_weight", *node_weights(source)):
            view.graph[part] = source[part]
    edges = cast(SocialEdges, drawn[social]) if social else None
    evidence = None if mine else known_evidence(options.query, document, texts, tokens.tokenizer, options.collection)
    return page_of(views, options.query, document, tokens, model, edges, evidence).save(options.output)


def names(typed: str) -> list[str]:
    """Return the partitions that are to stand side by side.

    Raises:
        OptionError: none, more than two, or twice the same.
    """
    chosen = typed.split(",")
    if len(chosen) > 2 or len(set(chosen)) < len(chosen) or not all(chosen):
        raise OptionError(f"--partition takes one partition or two different ones, such as edge,node; got {typed!r}")
    return chosen


def partition(name: str, k: int) -> Partition:
    """Return the partition that a name or a dotted path means, with ``k`` circles where it takes a ``k``.

    Raises:
        OptionError: there is none.
    """
    return with_k(own(name, Partition, option="--partition ") if "." in name else name, k)


def edges_of(name: str | None, circles: Partition, sparsity: float | None, backbone: str) -> EdgeSampler:
    """Return what draws the edges: a name of the shelf, or a pattern or a sampler by its dotted path.

    Args:
        name: None: the social graph; for blocks, which cut the text, its reading order.
        circles: the partition that reads them.
        sparsity: share of pairs that are no friends, where the edges take it; None: the edges' own.
        backbone: where they ask a BERT.

    Raises:
        OptionError: there is none.
    """
    if name is not None and "." in name:
        own(name, Pattern, EdgeSampler, option="--edges ")
        made = build({"_target_": name})
        if not isinstance(made, Pattern):
            return cast(EdgeSampler, made)
        return SocialEdges([made]) if sparsity is None else SocialEdges([made], sparsity=sparsity)
    chosen = name or ("reading-order" if isinstance(circles, Blocks) else "social")
    spec = compose_recipe("socialformer", [f"edges={quoted(chosen)}", f"model.backbone={quoted(backbone)}"])["edges"]
    made = build(spec | {"sparsity": sparsity} if sparsity is not None and "sparsity" in spec else spec)
    return cast(EdgeSampler, made)


def own(name: str, *kinds: type, option: str) -> Any:
    """Return a class of the user's own, see :func:`imported`; the current folder is looked through for it alone.

    Raises:
        OptionError: there is none, or it is of another kind.
    """
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return imported(name, *kinds, option=option)
    finally:
        sys.path.remove(here)


def known_evidence(
    query: str, document: Document, texts: Collection, tokenizer: Any, folder: str
) -> tuple[int, int] | None:
    """Return the nodes that hold the answer to a query of the collection, by the query's text; None: nobody knows."""
    asked = [name for split in texts.splits.values() for name, text in split.queries.items() if text == query]
    if not asked or folder.startswith("irds:"):
        return None
    place = None if folder == "pydocs" else folder
    nodes = (evidence_nodes(name, document, tokenizer, place) for name in asked)
    return next((one for one in nodes if one is not None), None)


def collection(name: str) -> Collection:
    """Return the collection: pydocs, one of ir_datasets (``irds:ID``), or a folder.

    Raises:
        InputError: it cannot be read.
    """
    if name == "pydocs":
        return load_pydocs()
    return load_irds(name.removeprefix("irds:"), shares=None) if name.startswith("irds:") else load_folder(name)


def text_file(path: Path) -> Document:
    """Return a text file as a document.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        return Document(path.name, path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error


def one_document(texts: Collection, name: str) -> Document:
    """Return the document of that id.

    Raises:
        InputError: there is none.
    """
    if name not in texts.documents:
        # The ids of a large collection are not searched.
        ids = list(texts.documents) if isinstance(texts.documents, dict) else []
        near = [one for one in ids if name in one] or difflib.get_close_matches(name, ids)
        hint = f"; did you mean {', '.join(near[:3])}?" if near else ""
        raise InputError(f"{texts.name} has no document {name!r}{hint}")
    return texts.documents[name]


def load_model(folder: str, name: str) -> nn.BertRanker:
    """Return a saved model, in evaluation mode. Every weight must be there.

    Raises:
        OptionError: no such class.
        CheckpointError: no such model.
    """
    kind = getattr(nn, name, None)
    if not (isinstance(kind, type) and issubclass(kind, nn.BertRanker)):
        raise OptionError(f"--model-class: socialgraph.nn has no model {name!r}")
    return kind.from_pretrained(folder).eval()
