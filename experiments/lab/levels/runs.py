"""Which runs a level of compare.py has, and how its table is made."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

from hydra import compose
from omegaconf import DictConfig, OmegaConf

from lab.by_query import write_sections
from lab.comparison import Comparison
from lab.levels.reading import READERS, questions
from lab.options.commands import Level
from lab.plan import Row, Run, backbone_name, composed, identity, sources, typed_for_rows, with_seed
from lab.task import task_of, test_split
from socialgraph.data import Split
from socialgraph.errors import OptionError

log = logging.getLogger("socialgraph")


def levels_of(config: DictConfig) -> list[str]:
    """Return the levels that are wanted, from cheap to dear."""
    wanted = [config.level] if isinstance(config.level, str) else config.level
    return [level for level in get_args(Level) if level in wanted]


def can_be_read(level: str, config: DictConfig, run: Run) -> bool:
    """Tell whether a level says anything of a collection: evidence must be known. One that is alone is tried anyway."""
    if level != "evidence" or levels_of(config) == ["evidence"]:
        return True
    known = bool(task_of(run.config).evidence)
    if not known:
        label = run.config.data.label
        log.info("%s: where the evidence of questions stands is not known, so that level is left out", label)
    return known


def settings_of(config: DictConfig, level: str) -> DictConfig:
    """Return the command's configuration with the measures and the report of a level.

    Measures of a reader that does not read are left out; the first of the others is compared if none is left to be.

    Raises:
        OptionError: no measure is left.
    """
    own = config.levels.get(level, {})
    settings = OmegaConf.merge(config, {key: own[key] for key in ("measures", "report") if key in own})
    if "readers" in own:
        silent = READERS.keys() - set(own.readers)

        def read(names: Sequence[str]) -> list[str]:
            return [name for name in names if not silent & set(name.split())]

        if not (measures := read(settings.measures)):
            typed = f"levels.reading.measures={list(settings.measures)}"
            raise OptionError(f"{typed}, but levels.reading.readers={list(own.readers)}")
        significance = settings.report.significance
        settings.measures, significance.measures = measures, read(significance.measures) or measures[:1]
    return settings


def level_runs(config: DictConfig, level: str, rows: Sequence[Row], folder: Path) -> list[Run]:
    """Return the runs of a level: every row with every seed."""
    training = level == "training"
    before = list(config.size.overrides)
    if training:
        before += [f"document_length={config.size.compared}", f"k={config.size.compared_circles}"]
    else:
        package = compose("options")  # how much a ranker reads, of which training can afford less
        before += [f"document_length={package.document_length}", f"k={package.k}", *config.levels.overrides]
    before += ["++partition.k=${k}", *typed_for_rows(config)]  # also where a partition's own file has another number
    own = {"sample": config.sample} if training else OmegaConf.to_container(config.levels[level])
    asked = {key: own[key] for key in ("sample", "amount", "skipped", "readers") if key in own}
    runs = []
    for row in rows:
        unseeded = composed([*before, *row.overrides], row.label)
        if not training and unseeded.recipe.circles is None:
            raise OptionError(f"{row.label} has no friend circles to look at: level=training compares systems")
        for one in (with_seed(unseeded, seed) for seed in config.seeds):
            depends = (identity(one) if training else depends_on(one, level)) | asked | {"sources": sources(one)}
            split, kind = test_split(one.data), "" if training else level
            runs.append(Run(row, one, {split: folder}, {split: depends}, kind=kind, asked=asked))
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


def sections(level: str, comparison: Comparison, run: Run, folder: Path) -> str:
    """Return what stands below the table of a level: its first measure by length and by where the evidence starts."""
    if level == "training" or not comparison.lines:
        return ""
    by_query = write_sections(comparison, run.config, test_split(run.config.data), folder)
    if level == "evidence":
        return by_query
    return f"\n{random_order(run)}\n{by_query}"


def random_order(run: Run) -> str:
    """Return what a random order gets at the level of reading, in words."""
    chance = random_reciprocal_rank(questions(run, task_of(run.config)))
    return f"A random order of the candidates has RR@10 {chance:.4f}."


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
