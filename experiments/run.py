"""The main job: a few systems, each alone and with BM25, first without any training, then fine-tuned; one table.

python experiments/run.py --help explains the options.
"""

import time
from pathlib import Path

from lab.command import begin, command

STARTED = time.perf_counter()
begin()

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf


@command("run")
def main(config: DictConfig) -> None:
    """Rank with every row as it is, then train and rank again; what is finished in the folder is not done again."""
    from lab.comparison import Comparison
    from lab.execute import check_all, execute_all, find_training, learns, log, not_finished
    from lab.files import write_text
    from lab.plan import Row, composed, named_run, typed_for_rows
    from lab.plots import draw_graph
    from lab.report import lines_of, write_table

    from socialgraph.data.files import file_name
    from socialgraph.ranking import processes

    folder = processes.from_first(Path(HydraConfig.get().runtime.output_dir))
    write_text(folder / "config.yaml", OmegaConf.to_yaml(config, resolve=True))
    chosen = HydraConfig.get().runtime.choices  # what is typed comes later, and counts
    typed = [f"edges={chosen.edges}", f"trainer={chosen.trainer}", *typed_for_rows(config)]
    untrained, trained = [], []
    for name, *options in {row.split()[0]: row.split() for row in config.rows}.values():
        learned = composed([*typed, f"recipe={name}", *options], name)
        as_it_is = composed([*typed, f"recipe={name}", *options, "trainer.groups=0"], name)
        places = {"folder": folder / "runs", "weights": folder / ".weights" / file_name(name)}
        runs = [named_run(Row(name), as_it_is, **places, kind="untrained")]
        runs += [named_run(Row(name), learned, **places, keep_model=True)] if learns(learned) else []
        untrained.append(runs[0])
        trained.append(runs[-1])
    check_all([*untrained, *trained])
    find_training(not_finished(trained))
    for runs in (untrained, trained) if trained != untrained else (untrained,):
        execute_all(runs)
        write_table(Comparison(config, lines_of(runs, untrained)), runs[0].config, folder, "table")
    draw_graph(trained[-1], folder / "graph.png")
    log.info("done in %.0f s; everything is in %s", time.perf_counter() - STARTED, folder)


if __name__ == "__main__":
    main()
