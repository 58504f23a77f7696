"""The command ``socialgraph``: rank texts, look at a document, start an experiment.

What is slow to import waits until it is needed.
"""

from __future__ import annotations

import argparse
import io
import re
import runpy
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from socialgraph.errors import InputError, OptionError, SocialgraphError, no_scripting_warning, nobody_reads, shown

#: commands that are a file of experiments/, which reads its own arguments
EXPERIMENTS = {
    "run": "rank with a few systems, untrained and trained; one table",
    "compare": "compare partitions, edges or any options",
    "data": "build a collection from its public source",
}

_ABOUT = """\
Rank long documents, look at their social graphs, and compare systems.

  socialgraph rank --query "copy a file" notes.txt manual.txt
  socialgraph inspect --query "copy a file" --document library/shutil --open
  socialgraph run recipe=bigbird
  socialgraph compare partition=edge,node level=evidence
"""

_RANK = """\
examples:
  # files, best first
  socialgraph rank --query "copy a file with its permissions" notes/*.txt

  # one text in a line, from another program; the three best
  grep -rh copy manuals | socialgraph rank --query "copy a file" --top 3 -

  # a ranker that Ranker.save_pretrained wrote, or one of the hub
  socialgraph rank --query "..." --ranker path/to/ranker notes/*.txt

  # a recipe, untrained
  socialgraph rank --query "..." --recipe sentence-maxp notes/*.txt

In Python: socialgraph.Ranker, see docs/ranker.md.
"""

_INSPECT = """\
examples:
  # a document of the built-in collection (the documentation of this Python)
  socialgraph inspect --query "copy a file with its permissions" --document library/shutil --open

  # a text of your own, the paper's other partition, sixteen circles
  socialgraph inspect --query "what is a social graph" --file notes.txt --partition node -k 16

  # other collections: any of ir_datasets, or a folder with corpus.jsonl and queries.<split>.tsv
  socialgraph inspect --query "coronavirus origin" --document ug7v899j --collection irds:cord19/fulltext/trec-covid
  socialgraph inspect --query "..." --document D7 --collection my/collection --output D7.html

  # two partitions side by side
  socialgraph inspect --query "..." --document library/shutil --partition edge,node

  # a partition and a pattern of your own, from my_module.py in this folder
  socialgraph inspect --query "..." --document library/shutil --partition my_module.MyPartition --edges my_module.Mine

  # what each circle is worth to a model that `make run` trained
  socialgraph inspect --query "..." --document library/shutil --model outputs/.../runs/models/socialformer.0

The page is one file that opens without network. docs/report.md says how to read it.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; mistakes that a user can make become one line and exit status 1."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal or a pipe, whose encoding may lack what a name holds
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments and arguments[0] in EXPERIMENTS:
        return _experiment(arguments[0], arguments[1:])
    options = parser().parse_args(arguments)
    try:
        with _short_warnings():
            options.run(options)
        sys.stdout.flush()
    except SocialgraphError as error:
        _stop(str(error))
    except KeyboardInterrupt as error:
        print(shown(f"error: {str(error) or 'stopped; the same command begins again'}"), file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        nobody_reads()
    except OSError as error:
        _stop(f"{error.filename or getattr(options, 'output', '')}: {error.strerror or error}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    kind = argparse.RawDescriptionHelpFormatter
    result = argparse.ArgumentParser("socialgraph", description=_ABOUT, formatter_class=kind)
    result.add_argument("--version", action="store_true", help="print the version")
    result.set_defaults(run=_version_or_help)
    commands = result.add_subparsers(title="commands", metavar="COMMAND")
    _add_rank(
        commands.add_parser("rank", help="order texts for a query", epilog=_RANK, formatter_class=kind,
            description="Print the score and name of each text, best first.")
    )  # fmt: skip
    _add_inspect(
        commands.add_parser("inspect", help="draw a document's social graph", epilog=_INSPECT, formatter_class=kind,
            description="Draw a document's social graph for a query and write it as one HTML page: the text with its "
            "circles, every word's friends, statistics, and what each circle is worth to a model.")
    )  # fmt: skip
    cache = commands.add_parser("cache", help="say where word pieces and weights are kept, or forget them",
        description="Say where word pieces and weights are kept for the next time, and how large that is.")  # fmt: skip
    cache.add_argument("--clear", action="store_true", help="forget them, and the unpacked copies of packed corpora")
    cache.set_defaults(run=_cache)
    for name, text in EXPERIMENTS.items():
        commands.add_parser(name, help=text, add_help=False)  # main() starts it: its options are not read here
    return result


def _add_rank(result: argparse.ArgumentParser) -> None:
    add = result.add_argument
    add("texts", nargs="+", metavar="FILE", help="text files (UTF-8); - for lines of the standard input, each a text")
    add("--query", required=True, metavar="TEXT", help="the query's text")
    which = result.add_mutually_exclusive_group()
    which.add_argument("--ranker", default="minilm-reader", metavar="NAME",
        help="a folder, a hub id, or minilm-reader, which comes along (default)")  # fmt: skip
    which.add_argument("--recipe", metavar="NAME",
        help="an untrained system, as Ranker.from_recipe puts it together, such as sentence-maxp")  # fmt: skip
    add("--backbone", metavar="NAME", help="of a recipe: a BERT, a folder or a hub id (default: the recipe's own)")
    add("--top", type=int, metavar="N", help="print the best N only")
    add("--batch-size", type=int, default=16_384, metavar="N",
        help="word pieces of texts that are scored together (default: 16384)")  # fmt: skip
    result.set_defaults(run=_rank)


def _add_inspect(result: argparse.ArgumentParser) -> None:
    add = result.add_argument
    add("--query", required=True, metavar="TEXT", help="the query's text")
    document = result.add_mutually_exclusive_group(required=True)
    document.add_argument("--document", metavar="ID", help="id of a document of the collection")
    document.add_argument("--file", type=Path, metavar="PATH", help="a text file (UTF-8) instead of a document")
    add("--collection", default="pydocs", metavar="NAME",
        help="pydocs, irds:ID or a folder; its documents tell how common each word is (default: pydocs)")  # fmt: skip
    add("--output", type=Path, default=Path("report.html"), metavar="PATH", help="default: report.html")
    shipped = _shipped()
    for name, kind, text in (
        (["--length"], "document_length", "word pieces of the document that are read"),
        (["-k"], "k", "number of circles"),
        (["--window"], "window", "word pieces of a passage"),
        (["--seed"], "seed", "of the draws of edges"),
    ):
        add(*name, type=int, default=shipped[kind], help=f"{text} (default: {shipped[kind]})")
    add("--partition", default="edge", metavar="NAME",
        help="a name such as edge, node, metis, or module.Class of your own; two with a comma stand side by side "
        "(default: edge)")  # fmt: skip
    add("--edges", metavar="NAME",
        help="a name such as social, random, nearby, or module.Class of your own, a pattern or a sampler "
        "(default: social; for sentences reading-order)")  # fmt: skip
    add("--sparsity", type=float, help="share of pairs that are no friends (default: the edges' own, 0.93)")
    add("--backbone", help="BERT of tokenizer and dynamic centrality (default: the model's, else minilm-reader)")
    add("--model", metavar="FOLDER", help="a model that save_pretrained wrote: scores with and without each circle")
    add("--model-class", default="Socialformer", metavar="NAME", help="its class in socialgraph.nn "
        "(default: Socialformer)")  # fmt: skip
    add("--open", action="store_true", help="open the page in the browser")
    result.set_defaults(run=_inspect)


def _shipped() -> dict[str, int]:
    """Return how much a recipe reads where nobody says otherwise: the numbers of recipes/options.yaml.

    Hydra, which puts recipes together, would take longer than all of ``--help``.
    """
    text = (Path(__file__).parent / "recipes" / "options.yaml").read_text("utf-8")
    return {name: int(number) for name, number in re.findall(r"^(\w+): (\d+)\b", text, re.MULTILINE)}


def _version_or_help(options: argparse.Namespace) -> None:
    from socialgraph import __version__

    print(__version__) if options.version else parser().print_help()


def _rank(options: argparse.Namespace) -> None:
    texts = texts_of(options.texts)  # first what may be mistyped, then what takes time
    if options.backbone is not None and options.recipe is None:
        raise OptionError("--backbone is that of a recipe, and a saved ranker has its own: give --recipe NAME, too")
    _loading()
    from socialgraph import Ranker

    if options.recipe is None:
        ranker = Ranker.from_pretrained(options.ranker)
    else:
        ranker = Ranker.from_recipe(options.recipe, backbone=options.backbone)
    bar = sys.stderr.isatty()
    for name, score in ranker.rank(options.query, texts, options.top, options.batch_size, progress=bar):
        print(f"{score:.4f}\t{shown(name)}")


def texts_of(names: Sequence[str]) -> dict[str, str]:
    r"""Return texts by the name of their file, or by their line of the standard input, which ends with \n or \r\n.

    Raises:
        InputError: a file is not UTF-8.
    """
    texts: dict[str, str] = {}
    for name in names:
        try:
            if name == "-":
                text = sys.stdin.buffer.read().decode("utf-8")
                lines = text.removesuffix("\n").split("\n") if text else []
                texts |= {f"line {number}": line.removesuffix("\r") for number, line in enumerate(lines, 1)}
            else:
                texts[name] = Path(name).read_text("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    return texts


def _inspect(options: argparse.Namespace) -> None:
    _loading()
    with no_scripting_warning():
        from socialgraph.inspect.command import write

    path = write(options)
    print(f"{shown(str(path))} ({path.stat().st_size / 1e6:.1f} MB); open it in a browser")
    if options.open:
        import webbrowser

        webbrowser.open(path.as_uri())


def _cache(options: argparse.Namespace) -> None:
    from socialgraph.data.cache import Cache
    from socialgraph.data.files import cache_folder

    cache = Cache.on_disk()
    if options.clear:
        cache.clear()
        shutil.rmtree(cache_folder() / "corpus", ignore_errors=True)
    print(shown(repr(cache)))


def _experiment(name: str, arguments: Sequence[str]) -> None:
    """Do what ``python experiments/<name>.py`` does in a checkout: the file is the main program, in this folder."""
    beside = Path(__file__).parent / "experiments"  # of an installed package; a checkout has it one floor up
    folder = beside if beside.is_dir() else Path(__file__).parents[1] / "experiments"
    sys.argv = [str(folder / f"{name}.py"), *arguments]
    sys.path.insert(0, str(folder))
    runpy.run_path(sys.argv[0], run_name="__main__")


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Say a warning in one line: which of our files has noticed it is nothing to a user."""
    usual, warnings.formatwarning = warnings.formatwarning, lambda message, *_: f"{shown(f'warning: {message}')}\n"
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _loading() -> None:
    print("socialgraph: loading PyTorch and transformers ...", file=sys.stderr, flush=True)


def _stop(message: str) -> None:
    sys.exit(shown(f"error: {message}"))
