"""What the figures' scripts share: their options, the collection, and pairs of queries and relevant documents."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # --help answers without loading PyTorch
    from matplotlib.figure import Figure
    from omegaconf import DictConfig

    from socialgraph.data import Collection, TermStatistics, Tokens
    from socialgraph.edges import SocialEdges


def parser(text: str | None, examples: str, output: str) -> argparse.ArgumentParser:
    """Return the options that all figures have.

    Args:
        text: the script's own docstring.
        examples: what one might type.
        output: where the picture goes if nobody says otherwise.
    """
    result = argparse.ArgumentParser(
        description=(text or "").split("\n\n")[0],
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="options of run.py, see its --help")
    what = "the picture (.png, .svg, .pdf); its numbers go beside it as .json (default: %(default)s)"
    result.add_argument("--output", type=Path, default=Path(output), help=what)
    result.add_argument("--dpi", type=int, default=100, help="pixels for each inch (default: %(default)s)")
    return result


def write_figure(figure: Figure, numbers: dict[str, Any], chosen: argparse.Namespace) -> None:
    """Write a picture and its numbers, each whole or not at all."""
    from files import versions, write_json

    from socialgraph.data.files import atomic_write
    from socialgraph.errors import OptionError

    kind = chosen.output.suffix[1:]
    if kind not in ("png", "svg", "pdf"):
        raise OptionError(f"--output must end in .png, .svg or .pdf, got {chosen.output}")
    with atomic_write(chosen.output, "wb") as file:
        figure.savefig(file, format=kind, dpi=chosen.dpi)
    write_json(chosen.output.with_suffix(".json"), numbers | {"versions": versions()})
    print(f"written: {chosen.output} and {chosen.output.with_suffix('.json')}")


def composed(overrides: Sequence[str]) -> DictConfig:
    """Return the configuration of run.py with these overrides; of two on the same matter the last one counts."""
    from hydra import compose, initialize_config_dir
    from tables import latest

    with initialize_config_dir(str(Path(__file__).resolve().parent / "conf"), version_base="1.3"):
        return compose("config", latest(list(overrides)))


def social_edges(config: DictConfig) -> SocialEdges:
    """Return the edges of a configuration.

    Raises:
        OptionError: edges that have no patterns.
    """
    from hydra.utils import instantiate

    from socialgraph.edges import SocialEdges
    from socialgraph.errors import OptionError

    edges = instantiate(config.edges, _convert_="all")
    if not isinstance(edges, SocialEdges):
        raise OptionError(f"the figure needs SocialEdges, which have patterns, got {type(edges).__name__}")
    return edges


def read(config: DictConfig) -> tuple[Collection, Tokens, TermStatistics]:
    """Return a configuration's collection, its word pieces and their statistics."""
    from hydra.utils import instantiate

    from socialgraph.data import TermStatistics, Tokens

    collection = instantiate(config.data.collection)
    tokens = Tokens.stored(collection.documents, config.backbone, config.document_length, config.query_length)
    return collection, tokens, TermStatistics.of(tokens, collection.documents)


def relevant_pairs(collection: Collection, config: DictConfig, tokens: Tokens) -> list[tuple[str, str, str]]:
    """Return test queries with a document that they should find: ``(query id, query, document id)``.

    Only documents that have all the word pieces that are read, each once; in the order of the queries' hashes.

    Raises:
        InputError: there is none.
    """
    from socialgraph.data.collection import hash_fraction
    from socialgraph.errors import InputError

    split = collection[config.data.splits.test]
    first: dict[str, str] = {}  # document -> query
    for query in sorted(split.queries, key=hash_fraction):
        for document, grade in split.qrels.get(query, {}).items():
            if grade > 0:
                first.setdefault(document, query)
    lengths = tokens.lengths(list(first), collection.documents)
    pairs = [
        (query, split.queries[query], document)
        for (document, query), length in zip(first.items(), lengths, strict=True)
        if length == tokens.max_document_length
    ]
    if not pairs:
        raise InputError(
            f"no relevant document of {collection.name}, split {config.data.splits.test}, has "
            f"{tokens.max_document_length} word pieces: choose a smaller document_length"
        )
    return pairs
