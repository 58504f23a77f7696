"""Rows of a table, each trained and ranked on the same budget.

python experiments/run.py --help explains the options.
"""

import time
from pathlib import Path

from lab.command import begin, command

STARTED = time.perf_counter()
begin()

from hydra.core.hydra_config import HydraConfig
from lab.config import spelled_out
from omegaconf import DictConfig, OmegaConf


@command("run", spelled_out)
def main(config: DictConfig) -> None:
    """Execute the rows that are not finished, and write the table of those that are."""
    from lab.execute import check_rows, log, run_rows
    from lab.report import Comparison, check_columns, lines_of, write_table
    from lab.results import Results, write_text
    from lab.rows import plan, results_folder

    from socialgraph.ranking import processes

    output = processes.from_first(Path(HydraConfig.get().runtime.output_dir))
    folder = output if config.results is None else results_folder(config)
    place = folder / "runs" if config.results is None else folder
    stages = plan(config, place)
    check_columns(config)
    check_rows([run for _, asked in stages for run in asked])
    write_text(output / "config.yaml", OmegaConf.to_yaml(config, resolve=True))
    for runs, asked in stages:
        run_rows(asked)  # a finished row is read from its JSON
        lines = lines_of(runs, stages[0][0] if config.untrained else ())
        write_table(Comparison(config, lines), runs[0].config, folder, config.table.name)
    if config.results is None and processes.is_first():
        from lab.figures import draw_graph

        draw_graph(asked[0].config, folder / "graph.png")
    if config.pack:
        Results(place).pack()
    log.info("done in %.0f s; everything is in %s", time.perf_counter() - STARTED, folder)


if __name__ == "__main__":
    main()
