"""Rows of a table, each trained and ranked on the same budget.

python experiments/run.py --help explains the options.
"""

import time
from pathlib import Path

from lab.command import begin, command

STARTED = time.perf_counter()
begin()

from hydra.core.hydra_config import HydraConfig
from lab.typed import spelled_out
from omegaconf import DictConfig, OmegaConf


@command("run", spelled_out)
def main(config: DictConfig) -> None:
    """Execute the rows that are not finished, and write the table of those that are."""
    from lab.execute import check_rows, log, run_rows
    from lab.plots import draw_graph
    from lab.report import Comparison, check_columns, lines_of, write_table
    from lab.results import Results, write_text
    from lab.rows import check_used, results_folder, rows, runs_of

    from socialgraph.ranking import processes

    output = processes.from_first(Path(HydraConfig.get().runtime.output_dir))
    folder = output if config.results is None else results_folder(config)
    place = folder / "runs" if config.results is None else folder
    wanted, known = rows(config)
    finished = Results(place).rows()
    shown = [row for row in known if row in wanted or row.name in finished]
    untrained, runs = runs_of(config, [*shown, *(row for row in wanted if row not in known)], place)
    check_used([run for run in runs if run.row in wanted])
    check_columns(config)
    check_rows([run for run in [*untrained, *runs] if run.row in wanted])
    write_text(output / "config.yaml", OmegaConf.to_yaml(config, resolve=True))
    for some in [untrained, runs] if untrained != runs and untrained else [runs]:
        asked = [run for run in some if run.row in wanted]
        run_rows([asked[-1], *asked[:-1]])  # the last row is often the user's own: a mistake there shows at once
        write_table(Comparison(config, lines_of(some, untrained)), asked[0].config, folder, config.table.name)
    if config.results is None:
        draw_graph(runs[-1].config, folder / "graph.png")
    if config.pack:
        Results(place).pack()
    log.info("done in %.0f s; everything is in %s", time.perf_counter() - STARTED, folder)


if __name__ == "__main__":
    main()
