"""Figure 4: what each pattern makes of one document, and all of them together.

python experiments/figure4.py --help explains the options.
"""

from __future__ import annotations

import argparse

from app import begin, one_line_errors
from figures import composed, parser, read, relevant_pairs, social_edges, write_figure

begin()

EXAMPLES = """\
  python experiments/figure4.py
  python experiments/figure4.py document_length=2000 edges.sparsity=0.93
  python experiments/figure4.py --query "open a file" --document library/pathlib
  python experiments/figure4.py '~edges.patterns.dynamic_centrality' --output three.png
  python experiments/figure4.py data=folder data.path=path/to/collection"""


def main() -> None:
    """Read the options and draw."""
    options = parser(__doc__, EXAMPLES, "figure4.png")
    options.add_argument("--query", help="text of the query; with --document (default: the first test query)")
    options.add_argument("--document", help="id of the document (default: the one that is relevant to it)")
    chosen = options.parse_args()
    with one_line_errors():
        draw(chosen)


def draw(chosen: argparse.Namespace) -> None:
    """Draw the figure."""
    from socialgraph.data import GraphBuilder
    from socialgraph.errors import OptionError
    from socialgraph.inspect.patterns_figure import draw_patterns
    from socialgraph.partition import Whole

    if (chosen.query is None) != (chosen.document is None):
        raise OptionError("--query and --document come together: give both or none")
    config = composed(["edges.sparsity=0.9", *chosen.overrides])  # the paper's, for this figure
    edges = social_edges(config)
    collection, tokens, statistics = read(config)
    if chosen.query is None:
        pair = relevant_pairs(collection, config, tokens)[0]
    else:
        pair = ("query", chosen.query, chosen.document)
    # the figure draws the edges itself, so no circles are gathered
    builder = GraphBuilder(
        collection.documents, tokens, statistics, edges, passages=Whole(), lazy=True, seed=config.seed
    )
    graph = builder([pair])[0]
    figure = draw_patterns(graph, edges, f"{pair[2]} for the query “{pair[1]}”")
    numbers = {
        "collection": collection.name,
        "query_id": pair[0],
        "query": pair[1],
        "document": pair[2],
        "word_pieces": graph.num_nodes,
        "edges": repr(edges),
        "seed": config.seed,
    }
    write_figure(figure, numbers, chosen)


if __name__ == "__main__":
    main()
