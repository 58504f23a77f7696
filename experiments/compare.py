"""Compare partitions, edges or any options: circles, ranking and cost in one table and one plot.

python experiments/compare.py --help explains the options.
"""

import sys

from lab.command import begin, logged, one_line_errors

begin()

import hydra
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="conf", config_name="compare")
def main(config: DictConfig) -> None:
    """Execute the runs that are not finished, and write table and plot."""
    with one_line_errors(), logged():
        from lab.comparison import Comparison
        from lab.describe import try_graph
        from lab.execute import execute_all
        from lab.plan import composed, named_run, own_options, results_folder, typed_for_rows
        from lab.plots import draw_quality_and_cost
        from lab.product import baseline_of, product_rows, sources
        from lab.report import lines_of, write_table
        from lab.task import Tasks

        rows = product_rows(config.varied, own_options(config))
        baseline, folder = baseline_of(rows, config.baseline), results_folder(config) / config.name
        typed = [f"measures={list(config.measures)}", *config.size.overrides]
        typed += [f"document_length={config.size.compared}", f"++partition.k={config.size.compared_circles}"]
        typed += typed_for_rows()
        runs, tasks = [], Tasks()
        for row in rows:
            for seed in config.seeds:
                one = composed([*typed, *row.overrides, f"seed={seed}"], row.label)
                also = {"sample": config.sample, "sources": sources(one)}
                runs.append(named_run(row, one, folder, also, described=config.sample))
        for run in runs:  # a mistake shows before hours of training
            if run.seed == config.seeds[0]:
                try_graph(run, tasks)
        execute_all(runs, tasks)
        comparison = Comparison(config, lines_of(runs), to=baseline.name)
        write_table(comparison, runs[0].config, folder, "table")
        draw_quality_and_cost(comparison, folder / "quality-and-cost.png")


if __name__ == "__main__":
    from lab.product import as_option

    sys.argv[1:] = as_option(sys.argv[1:])
    main()
