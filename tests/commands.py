"""The commands of experiments/, called in this process, and a small collection and BERT for them."""

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path

import lab  # noqa: F401  it tells Hydra where the recipes are
from conftest import write_tiny_bert
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from tales import write_collection

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
WORDS = [f"w{number}" for number in range(6)]


def configured(command, *typed):
    """Return the configuration of a command; Hydra must be initialized."""
    config = compose(command, list(typed), return_hydra_config=True)
    HydraConfig.instance().set_config(config)
    return OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])


@contextmanager
def configuration():
    """Let Hydra find the configuration of experiments/."""
    with initialize_config_dir(str(EXPERIMENTS / "conf"), version_base="1.3"):
        yield


def composed_from(*typed, name="config"):
    """Return the configuration that options compose to."""
    with configuration():
        return compose(name, list(typed))


def call(command, *typed):
    """Do what ``python experiments/<command>.py`` does; folders that it makes go to the working folder."""
    before, sys.argv = sys.argv, [str(EXPERIMENTS / f"{command}.py"), *typed]
    try:
        importlib.import_module(command).main()
    finally:
        sys.argv = before


def times(folder):
    """Return when each file of a finished run was written: ROW.SEED.json and ROW.SEED.run.gz."""
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("[!.]*.*.*")}


def write_tales(folder):
    """Write a small BERT and a collection of six documents."""
    write_tiny_bert(folder / "bert")
    texts = {
        word: " ".join(f"{word} w{20 + (7 * place + 3 * number) % 90}" for number in range(30))
        for place, word in enumerate(WORDS)
    }
    queries = {word: f"{word} w20 w41" for word in WORDS}
    write_collection(folder, texts, queries, train=WORDS[:3], dev=WORDS[2:4], test=WORDS[3:])


def typed_for_tales(folder):
    """Return what a user types to rank it."""
    return [
        "data=folder", f"data.path={folder}", "data.label=tales", f"model.backbone={folder / 'bert'}", "window=32",
        "trainer.groups=1", "trainer.negatives=1", "trainer.bf16=false",
    ]  # fmt: skip
