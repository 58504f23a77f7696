"""``socialgraph inspect``: one HTML page about a query and a document."""

from __future__ import annotations

import argparse
import difflib
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from socialgraph import nn
from socialgraph.data import (
    Collection,
    Document,
    GraphBuilder,
    TermStatistics,
    Tokens,
    load_folder,
    load_irds,
    load_pydocs,
)
from socialgraph.data.files import MAX_LINE, atomic_write, plain_file
from socialgraph.edges import (
    DynamicCentrality,
    DynamicDistance,
    ReadingOrder,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
)
from socialgraph.errors import InputError, OptionError, shown
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.inspect.report import report
from socialgraph.partition import Blocks, Partition, Windows, partition_resolver


def write(options: argparse.Namespace) -> Path:
    """Write the page that the options describe and return its path."""
    circles = partition(options.partition, options.k)  # first what may be mistyped, then what takes time
    model = None if options.model is None else load_model(options.model, options.model_class)
    backbone = options.backbone or (model and model.backbone) or "minilm"
    edges: SocialEdges | ReadingOrder
    if isinstance(circles, Blocks):
        edges = ReadingOrder(backbone)  # blocks cut the text, not the social graph
    else:
        patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality(backbone)]
        edges = SocialEdges(patterns, sparsity=options.sparsity)
    mine = None if options.file is None else text_file(options.file)
    print(f"reading {options.collection} ...", file=sys.stderr, flush=True)
    texts = collection(options.collection)
    document = mine or one_document(texts, options.document)
    tokens = Tokens.stored(texts.documents, backbone, options.length)
    statistics = TermStatistics.of(tokens, texts.documents)
    tokens.store = None  # the document is read as it is now, under whatever id
    documents = {document.doc_id: document}
    builder = GraphBuilder(
        documents, tokens, statistics, edges, circles, Windows(options.window), keep_edges=True, seed=options.seed
    )
    print(f"drawing {shown(document.doc_id)} ...", file=sys.stderr, flush=True)
    graph = builder([("query", options.query, document.doc_id)])[0]
    score, without = (None, None) if model is None else scores_without(model, graph)
    social = edges if isinstance(edges, SocialEdges) else None
    words = tokens.words(graph.input_ids)
    text = report(graph, words, options.query, social, score, without)
    with atomic_write(options.output) as file:
        file.write(text)
    return Path(options.output).resolve()


def partition(name: str, k: int) -> Partition:
    """Return the partition that a name or a dotted path means, with ``k`` circles where it takes a ``k``.

    Raises:
        OptionError: there is none.
    """
    kind: Any = name
    if "." in name:
        module, _, attribute = name.rpartition(".")
        sys.path.insert(0, str(Path.cwd()))
        try:
            kind = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise OptionError(f"--partition {name}: {error}") from error
        finally:
            sys.path.remove(str(Path.cwd()))
        if not (isinstance(kind, type) and issubclass(kind, Partition)):
            raise OptionError(f"--partition {name}: expected a subclass of socialgraph.partition.Partition")
    found = kind if isinstance(kind, type) else type(partition_resolver(name))
    return partition_resolver(kind, **({"k": k} if "k" in inspect.signature(found).parameters else {}))


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
        InputError: it is no plain file, too large, or not UTF-8.
    """
    if path.exists():
        plain_file(path)
        if path.stat().st_size > MAX_LINE:
            raise InputError(f"{path}: longer than {MAX_LINE >> 20} MiB; cut it")
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
