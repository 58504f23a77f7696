"""Compare partitions, edges or any options in three readings: what circles hold, how they read, how they train.

python experiments/compare.py --help explains the options.
"""

from lab.command import begin, command

begin()

from lab.overrides import as_option
from omegaconf import DictConfig


@command("compare", as_option)
def main(config: DictConfig) -> None:
    """Execute the runs that are not finished, level by level, and write the table of each as soon as it is there."""
    from lab.comparison import Comparison
    from lab.describe import try_graph
    from lab.execute import check_all, execute_all
    from lab.files import write_figure
    from lab.levels.runs import can_be_read, level_runs, levels_of, sections, settings_of
    from lab.levels.summary import write_summary
    from lab.plan import own_options, results_folder
    from lab.plots import quality_and_cost, quality_and_sequences
    from lab.product import baseline_of, compared_rows
    from lab.report import lines_of, write_table

    from socialgraph.data.files import file_name

    fixed = own_options(config)
    rows = compared_rows(config.varied, config.beside, fixed)
    baseline, folder = baseline_of(rows, config.baseline), results_folder(config) / file_name(config.name)
    planned = {level: level_runs(config, level, rows, folder) for level in levels_of(config)}
    check_all([run for runs in planned.values() for run in runs])
    finished = {}
    for level, runs in planned.items():
        if not can_be_read(level, config, runs[0]):
            continue
        for run in runs:  # a mistake shows before hours of training
            if level == "training" and run.config.seed == config.seeds[0]:
                try_graph(run)
        execute_all(runs)
        comparison = Comparison(settings_of(config, level), lines_of(runs), to=baseline.name)
        place = folder if level == "training" else folder / level
        write_table(comparison, runs[0].config, place, "table", sections(level, comparison, runs[0], place))
        if level == "training":
            write_figure(folder / "quality-and-cost.png", 150, quality_and_cost, comparison)
        else:
            write_figure(place / "quality-and-sequences.png", 130, quality_and_sequences, comparison)
            finished[level] = comparison
            write_summary(finished, runs[0], folder)


if __name__ == "__main__":
    main()
