"""Figure 6: how good systems are at short and at long documents, from rows that table1.py and table2.py have finished.

python experiments/figure6.py --help explains the options.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from app import begin, one_line_errors
from figures import composed, parser, write_figure

begin()

EXAMPLES = """\
  python experiments/figure6.py                           (rows of pydocs that come with the project)
  python experiments/figure6.py --rows maxp,parade,socialformer-node,socialformer-edge --measure nDCG@10
  python experiments/figure6.py --bounds 1024 4096 16384
  python experiments/figure6.py data=folder data.path=path/to/collection data.splits.test=test_bal"""

#: the paper's systems and its buckets of lengths
ROWS, BOUNDS = "parade,socialformer-node,socialformer-edge", [512, 1024, 2048]


def main() -> None:
    """Read the options and draw."""
    options = parser(__doc__, EXAMPLES, "figure6.png")
    options.add_argument("--rows", default=ROWS, help="finished rows, with commas (default: %(default)s)")
    options.add_argument("--measure", default="RR@100", help="as ir_measures writes it (default: %(default)s)")
    what = "word pieces at which a new bucket begins (default: 512 1024 2048, as in the paper)"
    options.add_argument("--bounds", type=int, nargs="+", default=BOUNDS, help=what)
    what = "folder of finished rows (default: experiments/results)"
    options.add_argument("--results", default=str(Path(__file__).parent / "results"), help=what)
    chosen = options.parse_args()
    with one_line_errors():
        draw(chosen)


def draw(chosen: argparse.Namespace) -> None:
    """Measure the rows and draw them."""
    from hydra.utils import instantiate
    from omegaconf import OmegaConf
    from results import results_folder

    from socialgraph.data import Tokens
    from socialgraph.inspect.by_length import draw_by_length, measures_by_length

    config = composed(chosen.overrides)
    OmegaConf.set_struct(config, False)
    config.results = chosen.results
    collection = instantiate(config.data.collection)
    qrels = collection[config.data.splits.test].qrels
    measures = {}
    for row in chosen.rows.split(","):
        name, values = measured(results_folder(config), row, chosen.measure, qrels, collection.name)
        measures[row if name in measures else name] = values
    queries = list(values)
    relevant = {query: [document for document, grade in qrels[query].items() if grade > 0] for query in queries}
    named = sorted({document for documents in relevant.values() for document in documents})
    tokens = Tokens(config.backbone, max_document_length=1 << 30)  # whole documents, however much was read of them
    length = dict(zip(named, tokens.lengths(named, collection.documents), strict=True))
    lengths = {query: min(length[document] for document in documents) for query, documents in relevant.items()}
    buckets = measures_by_length(measures, lengths, chosen.bounds)
    split = config.data.splits.test
    note = f"{collection.name}, split {split}, {len(queries)} queries; lines: one standard error"
    figure = draw_by_length(buckets, chosen.measure, note)
    for bucket in buckets:
        means = ", ".join(f"{system} {mean:.3f}" for system, mean in bucket.means.items())
        print(f"{bucket.name:>16}: {len(bucket.queries):4} queries  {means}")
    numbers = {
        "collection": collection.name,
        "split": split,
        "measure": chosen.measure,
        "buckets": [vars(bucket) for bucket in buckets],
    }
    write_figure(figure, numbers, chosen)


def measured(
    folder: Path, row: str, measure: str, qrels: dict[str, dict[str, int]], collection: str
) -> tuple[str, dict[str, float]]:
    """Return a finished row's name, and the measure of each of its queries, the mean over its seeds.

    Raises:
        InputError: no such row, a damaged one, or one about another collection.
    """
    from report import per_query
    from results import read_seeds

    from socialgraph.data import read_run
    from socialgraph.errors import InputError
    from socialgraph.ranking import evaluate

    seeds = []
    for run, value in read_seeds(folder, row).items():
        if value["collection"] != collection:
            other = f"is about {value['collection']}, and the collection is {collection}"
            raise InputError(f"{run} {other}: run the table again on it")
        judged = {query: qrels[query] for query in next(iter(value["measures"].values()))}
        seeds.append({"name": value["name"], "measures": evaluate(judged, read_run(run), [measure]).per_query})
    return seeds[0]["name"], per_query(seeds)[measure]


if __name__ == "__main__":
    main()
