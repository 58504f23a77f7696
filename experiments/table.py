"""Table 1, all systems on one budget beside the papers' own figures, and Table 2, what each pattern adds.

python experiments/table.py --help explains the options.
"""

from lab.command import begin, command

begin()

from omegaconf import DictConfig


@command("table")
def main(config: DictConfig) -> None:
    """Execute the runs that are not finished, and write the table of those that are."""
    from lab.comparison import Comparison
    from lab.execute import check_all, execute_all
    from lab.plan import composed, named_run, results_folder, selected, table_rows, typed_for_rows, with_seed
    from lab.report import lines_of, write_table
    from lab.store import Store

    folder, rows, runs = results_folder(config), table_rows(config), []
    typed = typed_for_rows(config)
    wanted, there = selected(rows, config.rows, config.table.name), Store(folder).rows()
    for row in rows:
        if row in wanted or row.name in there:
            one = composed([*config.size.overrides, *row.overrides, *typed], row.name)
            options = {"folder": folder, "keep_model": config.keep_models}
            runs += [named_run(row, with_seed(one, seed), **options) for seed in config.seeds]
    chosen = [run for run in runs if run.row in wanted]
    check_all(chosen)
    execute_all(chosen)
    write_table(Comparison(config, lines_of(runs)), runs[0].config, folder, config.table.name)
    if config.pack:
        Store(folder).pack()


if __name__ == "__main__":
    main()
