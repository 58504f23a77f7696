"""The study: do friend circles help? Tables 1 and 2 and Figure 6 on real long documents, trained and ranked here.

python experiments/study.py --help explains the options.
"""

from lab.command import begin, command

begin()

from omegaconf import DictConfig


@command("study")
def main(config: DictConfig) -> None:
    """Execute what is not finished, as far as time allows, and write tables and figures."""
    from lab.by_query import write_sections
    from lab.comparison import Comparison
    from lab.execute import check_all, execute_all, log
    from lab.report import lines_of, write_table
    from lab.study import TimeLeft, study_runs, tables_of

    runs = study_runs(config)
    check_all(runs)
    execute_all(runs, TimeLeft(runs, config.minutes).is_enough)
    left = sum(run.finished() is None for run in runs)
    log.info("%d of %d runs are finished%s", len(runs) - left, len(runs), "; call again for the rest" * (left > 0))
    for (folder, split), some in tables_of(runs).items() if config.tables else ():
        one, comparison = some[0].config, Comparison(config, lines_of(some, split=split))
        write_table(comparison, one, folder, "study", write_sections(comparison, one, split, folder))


if __name__ == "__main__":
    main()
