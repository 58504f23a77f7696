"""``socialgraph inspect``: one HTML page about a query and a document."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Any

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
from socialgraph.inspect.report import View, page_of
from socialgraph.partition import Blocks, Partition, Windows
from socialgraph.partition.resolver import with_k
from socialgraph.recipes.build import build
from socialgraph.recipes.classes import imported
from socialgraph.recipes.compose import compose_recipe
from socialgraph.recipes.typed import quoted


def write(options: argparse.Namespace) -> Path:
    """Write the page that the options describe and return its path.

    Raises:
        SocialgraphError: what was typed, or a file, is not as it should be.
    """
    # first what may be mistyped, then what takes time
    names = options.partition.split(",")
    if len(names) > 2 or len(set(names)) < len(names) or not all(names):
        typed = f"got {options.partition!r}"
        raise OptionError(f"--partition takes one partition or two different ones, such as edge,node; {typed}")
    partitions = {name: partition(name, options.k) for name in names}
    model = None if options.model is None else load_model(options.model, options.model_class)
    backbone = options.backbone or (model and model.backbone) or READER
    samplers = {name: edges_of(options, one, backbone) for name, one in partitions.items()}
    mine = None if options.file is None else text_file(options.file)
    print(f"reading {options.collection} ...", file=sys.stderr, flush=True)
    texts = collection(options.collection)
    document = mine or one_document(texts, options.document)
    tokens = Tokens(backbone, options.length, cache=Cache.on_disk())
    statistics = TermStatistics.of(tokens, texts.documents)
    key, same = as_document(document)  # named by what it says, as Ranker does: its edges depend on it
    print(f"drawing {shown(document.doc_id)} ...", file=sys.stderr, flush=True)
    cache, views = Cache(), []
    for name, circles in partitions.items():
        builder = GraphBuilder(
            {key: same}, tokens, statistics, samplers[name], circles, Windows(options.window),
            keep_edges=True, seed=options.seed, cache=cache,
        )  # fmt: skip
        graph = builder([(options.query, options.query, key)])[0]
        graph.document_id = document.doc_id
        score, without = (None, None) if model is None else scores_without(model, graph)
        views.append(View(graph, name, score, without))
    # Blocks cut the text and have no social graph: beside other circles they stand with the friends of those.
    social = {name: one for name, one in samplers.items() if isinstance(one, SocialEdges)}
    source = next((view.graph for view in views if view.name in social), views[0].graph)
    for view in views:
        for part in ("edge_index", "edge_weight", *node_weights(source)):
            view.graph[part] = source[part]
    evidence = None if mine else known_evidence(options.query, document, texts, tokens.tokenizer, options.collection)
    edges = next(iter(social.values()), None)
    return page_of(views, options.query, document, tokens, model, edges, evidence).save(options.output)


def partition(name: str, k: int) -> Partition:
    """Return the partition that a name or a dotted path means, with ``k`` circles where it takes a ``k``."""
    return with_k(own(name, Partition, option="--partition ") if "." in name else name, k)


def edges_of(options: argparse.Namespace, circles: Partition, backbone: str) -> EdgeSampler:
    """Return what draws the edges of a partition: a name of the shelf, or a dotted path of a pattern or a sampler.

    By default the social graph, or, of blocks, which cut the text, its reading order.
    """
    name, sparsity = options.edges, options.sparsity
    if name is not None and "." in name:
        own(name, Pattern, EdgeSampler, option="--edges ")
        made: Any = build({"_target_": name})
        if isinstance(made, Pattern):
            made = SocialEdges([made]) if sparsity is None else SocialEdges([made], sparsity=sparsity)
        return made
    name = name or ("reading-order" if isinstance(circles, Blocks) else "social")
    spec = compose_recipe("socialformer", [f"edges={quoted(name)}", f"model.backbone={quoted(backbone)}"])["edges"]
    made = build(spec | {"sparsity": sparsity} if sparsity is not None and "sparsity" in spec else spec)
    return made


def own(name: str, *kinds: type, option: str) -> Any:
    """Return a class of the user's own, see :func:`imported`; the current folder is looked through for it alone."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return imported(name, *kinds, option=option)
    finally:
        sys.path.remove(here)


def collection(name: str) -> Collection:
    """Return the collection: pydocs, one of ir_datasets (``irds:ID``), or a folder."""
    if name == "pydocs":
        return load_pydocs()
    return load_irds(name.removeprefix("irds:"), shares=None) if name.startswith("irds:") else load_folder(name)


def text_file(path: Path) -> Document:
    """Return a text file as a document."""
    try:
        return Document(path.name, path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error


def one_document(texts: Collection, name: str) -> Document:
    """Return the document of that id."""
    if name in texts.documents:
        return texts.documents[name]
    # the ids of a large collection are not searched
    ids = list(texts.documents) if isinstance(texts.documents, dict) else []
    near = [one for one in ids if name in one] or difflib.get_close_matches(name, ids)
    hint = f"; did you mean {', '.join(near[:3])}?" if near else ""
    raise InputError(f"{texts.name} has no document {name!r}{hint}")


def load_model(folder: str, name: str) -> nn.BertRanker:
    """Return a saved model, in evaluation mode."""
    kind = getattr(nn, name, None)
    if not (isinstance(kind, type) and issubclass(kind, nn.BertRanker)):
        raise OptionError(f"--model-class: socialgraph.nn has no model {name!r}")
    return kind.from_pretrained(folder).eval()


def known_evidence(
    query: str, document: Document, texts: Collection, tokenizer: Any, folder: str
) -> tuple[int, int] | None:
    """Return the nodes that hold the answer to a query of the collection, by the query's text; None: not known."""
    if folder.startswith("irds:"):
        return None
    asked = [name for split in texts.splits.values() for name, text in split.queries.items() if text == query]
    nodes = (evidence_nodes(name, document, tokenizer, None if folder == "pydocs" else folder) for name in asked)
    return next((one for one in nodes if one is not None), None)
