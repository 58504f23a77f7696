"""Figure 5: how large the first, second, ... circle is, by sparsity, for both partitions.

python experiments/figure5.py --help explains the options.
"""

from __future__ import annotations

import argparse
from typing import Any

from app import begin, one_line_errors
from figures import composed, parser, read, relevant_pairs, social_edges, write_figure

begin()

EXAMPLES = """\
  python experiments/figure5.py
  python experiments/figure5.py --documents 1                         (one document, as in the paper)
  python experiments/figure5.py partition.keep=strongest --sparsity 0.95 0.9
  python experiments/figure5.py data=folder data.path=path/to/collection data.splits.test=test_bal"""

#: the paper's 32 circles of documents of 2,000 tokens; of too many friends the first stay, as in the released code
PAPER = ["document_length=2000", "partition.k=32", "partition.max_size=128", "partition.keep=first"]
#: circles whose median is printed
SHOWN = (1, 4, 8, 12, 16, 24, 32)


def main() -> None:
    """Read the options and draw."""
    options = parser(__doc__, EXAMPLES, "figure5.png")
    what = "how many of the documents that are relevant to test queries (default: %(default)s)"
    options.add_argument("--documents", type=int, default=20, help=what)
    what = "of the graphs (default: 0.99 0.97 0.95 0.93, as in the paper)"
    options.add_argument("--sparsity", type=float, nargs="+", default=[0.99, 0.97, 0.95, 0.93], help=what)
    what = "of the group partition, with commas (default: %(default)s)"
    options.add_argument("--partitions", default="edge,node", help=what)
    chosen = options.parse_args()
    with one_line_errors():
        draw(chosen)


def draw(chosen: argparse.Namespace) -> None:
    """Gather the circles, draw their sizes and print some."""
    from socialgraph.errors import OptionError
    from socialgraph.inspect.circle_sizes import draw_circle_sizes, median_sizes

    if chosen.documents < 1:
        raise OptionError(f"--documents must be at least 1, got {chosen.documents}")
    numbers, sizes = measure(chosen)
    figure = draw_circle_sizes(sizes, numbers["max_size"])
    medians = {
        name: {f"{sparsity:g}": median_sizes(one, numbers["k"]).tolist() for sparsity, one in lines.items()}
        for name, lines in sizes.items()
    }
    turns = [turn for turn in SHOWN if turn <= numbers["k"]]
    print(f"median sizes over {len(numbers['documents'])} documents of circle {' '.join(map(str, turns))}")
    for name, lines in medians.items():
        for sparsity, one in lines.items():
            print(f"{name:12} {sparsity:>5}: {' '.join(f'{one[turn - 1]:g}' for turn in turns)}")
    write_figure(figure, numbers | {"medians": medians, "sizes": sizes}, chosen)


def measure(chosen: argparse.Namespace) -> tuple[dict[str, Any], dict[str, dict[float, list[list[int]]]]]:
    """Return what the sizes depend on, and the sizes by partition, sparsity and document."""
    from rows import partition
    from tqdm import tqdm

    from socialgraph.data import GraphBuilder, WeightCache
    from socialgraph.edges import SocialEdges
    from socialgraph.inspect.circle_sizes import circle_sizes

    config = composed([*PAPER, *chosen.overrides])
    each = {
        f"{name}-level": composed([f"partition={name}", *PAPER, *chosen.overrides]).partition
        for name in chosen.partitions.split(",")
    }
    partitions = {name: partition(one) for name, one in each.items()}
    given = social_edges(config)
    collection, tokens, statistics = read(config)
    pairs = relevant_pairs(collection, config, tokens)[: chosen.documents]
    cache = WeightCache()  # BERT reads each pair once
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
    numbers = {
        "collection": collection.name,
        "documents": [pair[2] for pair in pairs],
        "queries": [pair[0] for pair in pairs],
        "word_pieces": config.document_length,
        "edges": repr(given),
        "partitions": {name: repr(circles) for name, circles in partitions.items()},
        "k": max(one.k for one in each.values()),
        "max_size": max(one.max_size for one in each.values()),
        "seed": config.seed,
    }
    return numbers, sizes


if __name__ == "__main__":
    main()
