"""Compare partitions, edges or any options in three readings: what circles hold, how they read, how they train.

python experiments/compare.py --help explains the options.
"""

from lab.command import begin, command

begin()

from lab.config import varied_as_one
from omegaconf import DictConfig


@command("compare", varied_as_one)
def main(config: DictConfig) -> None:
    """Execute the runs that are not finished, level by level, and write the table of each as soon as it is there."""
    from lab.execute import check_rows, log, run_rows, train_and_rank
    from lab.figures import quality_and_sequences
    from lab.levels import evidence, reading
    from lab.levels.runs import baseline_of, level_runs, levels_of, product_rows
    from lab.report import Comparison, lines_of, write_table
    from lab.results import write_figure
    from lab.rows import check_used, results_folder
    from lab.task import load_task

    from socialgraph.data.files import file_name

    work = {"evidence": evidence.look, "reading": reading.read, "training": train_and_rank}
    rows = product_rows(config.varied, config.beside)
    baseline, folder = baseline_of(rows, config.baseline), results_folder(config) / file_name(config.name)
    planned = {level: level_runs(config, level, rows, folder) for level in levels_of(config)}
    every = [run for runs in planned.values() for run in runs]
    check_used(every)
    check_rows(every)
    for level, runs in planned.items():
        if level == "evidence" and len(planned) > 1 and not load_task(runs[0].config.data).evidence:
            log.info("%s: where the evidence of questions stands is not known: level left out", config.data.label)
            continue
        run_rows(runs, work[level])
        settings = config if level == "training" else config.levels[level]
        comparison = Comparison(settings, lines_of(runs), to=baseline.name)
        place = folder if level == "training" else folder / level
        more = reading.random_order(runs[0]) if level == "reading" else ""
        write_table(comparison, runs[0].config, place, "table", more)
        if level != "training" and (figure := quality_and_sequences(comparison)):
            write_figure(place / "quality-and-sequences.png", figure)


if __name__ == "__main__":
    main()
