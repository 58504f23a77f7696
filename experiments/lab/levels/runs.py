"""Which runs a level of compare.py has, and how its table is made."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

from hydra import compose
from omegaconf import DictConfig, OmegaConf

from lab.levels.reading import READERS, questions
from lab.rows import Row, Run, backbone_name, composed, identity, sources, with_seed
from lab.task import load_task
from lab.typed import key_of, typed
from socialgraph.data import Split
from socialgraph.errors import OptionError

log = logging.getLogger("socialgraph")

#: from cheap to dear
LEVELS = ("evidence", "reading", "training")


def levels_of(config: DictConfig) -> list[str]:
    """Return the levels that are wanted, from cheap to dear.

    Raises:
        OptionError: there is no such level.
    """
    wanted = [config.level] if isinstance(config.level, str) else list(config.level or ())
    if not wanted or not set(wanted) <= set(LEVELS):
        raise OptionError(f"level must be of {', '.join(LEVELS)}, got {config.level}")
    return [level for level in LEVELS if level in wanted]


def can_be_read(level: str, config: DictConfig, run: Run) -> bool:
    """Tell whether a level says anything of a collection: evidence must be known. One that is alone is tried anyway."""
    if level != "evidence" or levels_of(config) == ["evidence"] or load_task(run.config.data).evidence:
        return True
    log.info(
        "%s: where the evidence of questions stands is not known, so that level is left out", run.config.data.label
    )
    return False


def settings_of(config: DictConfig, level: str) -> DictConfig:
    """Return the command's configuration with the measures and the report of a level.

    Measures of a reader that does not read are left out; the first of the others is compared if none is left to be.

    Raises:
        OptionError: no measure is left.
    """
    settings = OmegaConf.create(OmegaConf.to_container(config, resolve=True))
    if level == "training":
        return settings
    own = settings.levels[level]
    settings.report, settings.measures = own.report, own.measures
    if level == "reading":
        silent = READERS.keys() - set(own.readers)
        settings.measures = [name for name in own.measures if not silent & set(name.split())]
        if not settings.measures:
            raise OptionError(f"levels.reading.measures={own.measures}, but levels.reading.readers={own.readers}")
        tested = [name for name in own.report.significance.measures if name in settings.measures]
        settings.report.significance.measures = tested or settings.measures[:1]
    return settings


def level_runs(config: DictConfig, level: str, rows: Sequence[Row], folder: Path) -> list[Run]:
    """Return the runs of a level: every row with every seed."""
    if level == "training":
        asked: dict[str, Any] = {}
        before = [f"document_length={config.size.compared}", f"k={config.size.compared_circles}"]
    else:
        names = ("amount", "skipped", "readers") if level == "reading" else ("amount",)
        asked = {name: OmegaConf.to_container(config.levels[level])[name] for name in names}  # type: ignore[index,call-overload]
        package = compose("options")  # how much a ranker reads, of which training can afford less
        before = [f"document_length={package.document_length}", f"k={package.k}", *config.levels.overrides]
    before += ["++partition.k=${k}"]  # also where a partition's own file has another number
    own = {"varied", "beside", "baseline", "level", "name"}
    before += [one for one in typed() if key_of(one).split(".")[0] not in own]
    runs = []
    for row in rows:
        unseeded = composed([*before, *row.overrides], row.label)
        if level != "training" and unseeded.recipe.circles is None:
            raise OptionError(f"{row.label} has no friend circles to look at: level=training compares systems")
        for one in (with_seed(unseeded, seed) for seed in config.seeds):
            depends = (identity(one) if level == "training" else depends_on(one, level)) | asked
            depends |= {"sources": sources(one)}
            runs.append(Run(row, one, folder, depends, "" if level == "training" else level, level=asked))
    return runs


def depends_on(one: DictConfig, level: str) -> dict[str, Any]:
    """Return what a result of a level that trains nothing depends on."""
    whole = identity(one)
    kept = {key: whole[key] for key in ("data", "query_length", "seed", "backbone")}
    kept["recipe"] = {key: whole["recipe"][key] for key in ("edges", "circles", "passages", "document_length")}
    if level == "reading":
        kept["sentence_backbone"] = backbone_name(one.sentence_backbone)
        kept["bf16"] = None if one.trainer.bf16 == "auto" else one.trainer.bf16  # as the default it is not named
    return kept | {"level": level}


def random_order(run: Run) -> str:
    """Return what a random order gets at the level of reading, in words."""
    chance = random_reciprocal_rank(questions(run, load_task(run.config.data)))
    return f"\nA random order of the candidates has RR@10 {chance:.4f}.\n"


def random_reciprocal_rank(split: Split, cut: int = 10) -> float:
    """Return the mean reciprocal rank of a random order of the candidates, by the chance of each first place.

    With r of n candidates relevant the first of them is at place k with the chance C(n - k, r - 1) / C(n, r).
    """
    values = []
    for query, candidates in (split.candidates or {}).items():
        n, r = len(candidates), len(candidates.keys() & split.relevant(query))
        chances = (comb(n - k, r - 1) / (k * comb(n, r)) for k in range(1, min(cut, n) + 1)) if r else ()
        values.append(sum(chances))
    return fmean(values)
