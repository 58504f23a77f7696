"""Options as one types them to Hydra. Nothing slow to import: a command begins with it."""

import re
from collections.abc import Iterable
from typing import Any

from socialgraph.errors import OptionError


def quoted(value: object) -> str:
    """Return a value as Hydra's command line takes it, whatever is in it; only a text is quoted."""
    if not isinstance(value, str):
        return "null" if value is None else str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def refuse_empty_tables(typed: Iterable[str], config: Any) -> None:
    """Refuse ``edges.patterns={}``: Hydra merges a table into the one that is there, and nothing is changed.

    Args:
        typed: options.
        config: a ``DictConfig``, what they compose to.

    Raises:
        OptionError: there is such an option; says how entries are taken out.
    """
    from omegaconf import DictConfig, OmegaConf

    for one in typed:
        match = re.fullmatch(r"\+*([\w.]+)=\s*\{\s*\}\s*", one)
        there = OmegaConf.select(config, match[1]) if match else None
        if match and isinstance(there, DictConfig) and there:
            entry = next((key for key in map(str, there) if not key.startswith("_")), "...")
            what = f"{match[1]}={{}} changes nothing: a table is merged into the one that is there"
            raise OptionError(f"{what}. An entry is taken out by its name, ~{match[1]}.{entry}")
