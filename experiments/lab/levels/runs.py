"""What compare.py compares: rows from options with several values, and the runs of each level."""

from __future__ import annotations

import itertools
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from hydra import compose
from omegaconf import DictConfig, OmegaConf
from torch_geometric.data import Batch
from tqdm import tqdm

from lab.config import Options, key_of, label_of, parsed, spelled_out, typed
from lab.rows import Row, Run, backbone_name, composed, identity, sources, with_seed
from socialgraph.data import GraphBuilder
from socialgraph.data.batches import batches
from socialgraph.errors import OptionError

log = logging.getLogger("socialgraph")

#: from cheap to dear
LEVELS = ("evidence", "reading", "training")
#: a query's id and text, and a candidate's id
Pair = tuple[str, str, str]


def product_rows(varied: Sequence[str], beside: Sequence[str]) -> list[Row]:
    """Return all combinations of the values of some options, and those of each list of options beside them.

    Raises:
        OptionError: a row that comes twice, or an option that is the same for all rows.
    """
    found = [row for options in (varied, *(one.split() for one in beside)) for row in combinations(options)]
    names = [row.name for row in found]
    for row in found:
        if names.count(row.name) > 1:
            raise OptionError(f"{row.label} is compared with itself: type it once")
    return found


def combinations(varied: Sequence[str]) -> list[Row]:
    """Return a row for each combination of the values, those of the last option changing fastest."""
    known, each = {option.name for option in fields(Options)}, []
    for one in map(parsed, varied):
        key = one.get_key_element()
        name = key.lstrip("+~")
        if name == "seed" or (name.split(".")[0] not in known and not name.startswith("size.")):
            raise OptionError(f"{name} is the same for all rows; seeds are averaged, seeds=[0,1,2]")
        several = one.is_sweep_override()
        values = map(str, one.sweep_string_iterator()) if several else [one.get_value_element_as_str()]
        each.append([(key, value) for value in values])
    result = []
    for pairs in itertools.product(*each):
        values = {key.lstrip("+"): value for key, value in pairs}
        name = re.sub(r"[^\w.,=-]+", "-", ",".join(f"{key}={value}" for key, value in values.items()))
        overrides = tuple(one for key, value in pairs for one in spelled_out([f"{key}={value}"]))
        result.append(Row(name, overrides, label_of(values), beside={"options": values}))
    return result


def baseline_of(compared: Sequence[Row], named: Any) -> Row:
    """Return the first row that has all the values that the baseline names; the first one for None.

    Raises:
        OptionError: there is none.
    """
    some = [] if named is None else [named] if isinstance(named, str | int | float) else named
    values = {"null" if value is None else str(value) for value in some}
    for row in compared:
        if values <= set(row.beside["options"].values()):
            return row
    raise OptionError(f"baseline={named} is not among what is compared: {'; '.join(row.label for row in compared)}")


def levels_of(config: DictConfig) -> list[str]:
    """Return the levels that are wanted, from cheap to dear.

    Raises:
        OptionError: there is no such level.
    """
    wanted = [config.level] if isinstance(config.level, str) else list(config.level or ())
    if not wanted or not set(wanted) <= set(LEVELS):
        raise OptionError(f"level must be of {', '.join(LEVELS)}, got {config.level}")
    return [level for level in LEVELS if level in wanted]


def level_runs(config: DictConfig, level: str, rows: Sequence[Row], folder: Path) -> list[Run]:
    """Return the runs of a level: every row with every seed."""
    if level == "training":
        before = [f"document_length={config.size.compared}", f"k={config.size.compared_circles}"]
    else:
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
            depends = identity(one) if level == "training" else depends_on(one, level)
            kind = "" if level == "training" else level
            runs.append(Run(row, one, folder, depends | {"sources": sources(one)}, kind))
    return runs


def depends_on(one: DictConfig, level: str) -> dict[str, Any]:
    """Return what a result of a level that trains nothing depends on."""
    whole = identity(one)
    kept = {key: whole[key] for key in ("data", "query_length", "seed", "backbone")}
    kept["recipe"] = {key: whole["recipe"][key] for key in ("edges", "circles", "passages", "document_length")}
    asked = ["amount"]
    if level == "reading":
        asked += ["skipped", "readers"]
        kept["sentence_backbone"] = backbone_name(one.sentence_backbone)
        kept["bf16"] = None if one.trainer.bf16 == "auto" else one.trainer.bf16  # as the default it is not named
    options: Mapping[str, Any] = OmegaConf.to_container(one.levels[level])  # type: ignore[assignment]
    return kept | {"level": level} | {name: options[name] for name in asked}


# --- graphs with their circles ----------------------------------------------------------------------------------------


def built(
    builder: GraphBuilder, pairs: Sequence[Pair], token_budget: int, title: str, spent: dict[str, float]
) -> Iterator[tuple[list[Pair], Batch]]:
    """Yield all pairs and their graphs, the longest documents first, as many at once as the word pieces allow.

    ``spent["graph"]`` grows by the seconds of edges and circles, without what BERT reads for the edges.
    """
    documents = [document for _, _, document in pairs]
    length = dict(zip(documents, builder.tokens.lengths(documents, builder.documents), strict=True))
    ordered = sorted(pairs, key=lambda pair: -length[pair[2]])
    with tqdm(total=len(pairs), desc=title, unit="doc", leave=False, disable=None) as bar:
        for batch in batches(ordered, lambda pair: length[pair[2]], token_budget):
            weighed = builder.weighed(builder.read(batch))
            with timed(spent, "graph"):
                graph = builder.draw(weighed)
            yield batch, graph
            bar.update(len(batch))


@contextmanager
def timed(spent: dict[str, float], name: str) -> Iterator[None]:
    """Add the seconds of a block, the GPU's work included, to those of a name."""
    began = time.perf_counter()
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    spent[name] = spent.get(name, 0.0) + time.perf_counter() - began
