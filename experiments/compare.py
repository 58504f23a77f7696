"""Compare partitions, edges or any options in three readings: what circles hold, how they read, how they train.

python experiments/compare.py --help explains the options.
"""

from lab.command import begin, command

begin()

from lab.typed import varied_as_one
from omegaconf import DictConfig


@command("compare", varied_as_one)
def main(config: DictConfig) -> None:
    """Execute the runs that are not finished, level by level, and write the table of each as soon as it is there."""
    from lab.execute import check_rows, run_rows
    from lab.levels.runs import can_be_read, level_runs, levels_of, random_order, settings_of
    from lab.plots import quality_and_sequences
    from lab.report import Comparison, lines_of, write_table
    from lab.results import write_figure
    from lab.rows import baseline_of, check_used, product_rows, results_folder

    from socialgraph.data.files import file_name

    rows = product_rows(config.varied, config.beside)
    baseline, folder = baseline_of(rows, config.baseline), results_folder(config) / file_name(config.name)
    planned = {level: level_runs(config, level, rows, folder) for level in levels_of(config)}
    every = [run for runs in planned.values() for run in runs]
    check_used(every)
    check_rows(every)
    for level, runs in planned.items():
        if not can_be_read(level, config, runs[0]):
            continue
        run_rows(runs)
        comparison = Comparison(settings_of(config, level), lines_of(runs), to=baseline.name)
        place = folder if level == "training" else folder / level
        more = random_order(runs[0]) if level == "reading" else ""
        write_table(comparison, runs[0].config, place, "table", more)
        if level != "training":
            write_figure(place / "quality-and-sequences.png", 130, quality_and_sequences, comparison)


if __name__ == "__main__":
    main()
