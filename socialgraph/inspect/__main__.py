"""Write one HTML page about a query and a document: ``python -m socialgraph.inspect``, or ``socialgraph-inspect``."""

from __future__ import annotations

import argparse
import difflib
import importlib
import inspect
import sys
import webbrowser
from collections.abc import Sequence
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
from socialgraph.data.collection import shown
from socialgraph.data.files import MAX_LINE, atomic_write, plain_file
from socialgraph.edges import (
    DynamicCentrality,
    DynamicDistance,
    ReadingOrder,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
)
from socialgraph.errors import InputError, OptionError, SocialgraphError
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.inspect.report import report
from socialgraph.partition import Blocks, Partition, Windows, partition_resolver

EXAMPLES = """\
examples:
  # a document of the built-in collection (the documentation of this Python)
  socialgraph-inspect --query "copy a file with its permissions" --document library/shutil --open

  # a text of your own, the paper's other partition, eight circles
  socialgraph-inspect --query "what is a social graph" --file notes.txt --partition node -k 8

  # other collections: any of ir_datasets, or a folder with corpus.jsonl and queries.<split>.tsv
  socialgraph-inspect --query "measurement of plasma" --document 42 --collection irds:vaswani
  socialgraph-inspect --query "..." --document D7 --collection my/collection --output D7.html

  # a partition of your own, from my_module.py in this folder
  socialgraph-inspect --query "..." --document library/shutil --partition my_module.MyPartition

  # what each circle is worth to a model that `make run` trained
  socialgraph-inspect --query "..." --document library/shutil --model outputs/.../models/Socialformer-edge

The page is one file that opens without network. docs/report.md says how to read it.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; mistakes that a user can make become one line and exit status 1."""
    options = parser().parse_args(arguments)
    try:
        path = write(options)
    except SocialgraphError as error:
        sys.exit(f"error: {shown(str(error))}")
    except OSError as error:
        sys.exit(shown(f"error: {error.filename or options.output}: {error.strerror or error}"))
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB); open it in a browser")
    if options.open:
        webbrowser.open(path.as_uri())


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(
        "socialgraph-inspect",
        description="Draw a document's social graph for a query and write it as one HTML page: the text with its "
        "circles, every word's friends, statistics, and what each circle is worth to a model.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("--query", required=True, metavar="TEXT", help="the query's text")
    document = result.add_mutually_exclusive_group(required=True)
    document.add_argument("--document", metavar="ID", help="id of a document of the collection")
    document.add_argument("--file", type=Path, metavar="PATH", help="a text file (UTF-8) instead of a document")
    add("--collection", default="pydocs", metavar="NAME",
        help="pydocs, irds:ID or a folder; its documents tell how common each word is (default: pydocs)")  # fmt: skip
    add("--output", type=Path, default=Path("report.html"), metavar="PATH", help="default: report.html")
    add("--length", type=int, default=2048, help="word pieces of the document that are read (default: 2048)")
    add("--partition", default="edge", metavar="NAME",
        help="a name such as edge, node, metis, or module.Class of your own (default: edge)")  # fmt: skip
    add("-k", type=int, default=16, help="number of circles (default: 16)")
    add("--sparsity", type=float, default=0.93, help="share of pairs that are no friends (default: 0.93)")
    add("--window", type=int, default=128, help="word pieces of a passage (default: 128)")
    add("--backbone", help="BERT of tokenizer and dynamic centrality (default: the model's, else minilm)")
    add("--model", metavar="FOLDER", help="a model that save_pretrained wrote: scores with and without each circle")
    add("--model-class", default="Socialformer", metavar="NAME", help="its class in socialgraph.nn "
        "(default: Socialformer)")  # fmt: skip
    add("--seed", type=int, default=0, help="of the coins that draw the edges (default: 0)")
    add("--open", action="store_true", help="open the page in the browser")
    return result


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


if __name__ == "__main__":
    main()
