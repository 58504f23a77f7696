"""Measures on a split while a model is trained: which checkpoint is the best, and when to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import Split
from socialgraph.errors import check_whole
from socialgraph.ranking.evaluate import evaluate, parse_measures
from socialgraph.ranking.rerank import rerank

#: of a training's steps, from one checkpoint to the next
TENTH = 0.1


@dataclass(frozen=True)
class Dev:
    """What is measured while a model is trained, and what follows from it.

    Args:
        split: queries, judgements and candidates, which are re-ranked each time. :meth:`socialgraph.Ranker.fit` gives
            candidates of BM25 to a split that has none.
        measures: names as in :func:`~socialgraph.ranking.evaluate`; the first says which checkpoint is the best.
        patience: stop after so many measurements in a row without a better one; None: never.
        token_budget: see :func:`~socialgraph.ranking.rerank`.
        bf16: compute in bfloat16 where it is safe.

    Raises:
        OptionError: no measure or one that cannot be computed, or patience below 1.
    """

    split: Split
    measures: Sequence[str] = ("nDCG@10",)
    patience: int | None = None
    token_budget: int = 16_384
    bf16: bool = False

    def __post_init__(self) -> None:
        parse_measures(self.measures)
        check_whole("dev: patience", self.patience, 1, or_none=True)

    def arguments(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the library's arguments for measuring, under those given: at each checkpoint, and the best is kept."""
        steps = options.get("save_steps", TENTH)
        return {
            "save_strategy": "steps", "save_steps": steps, "eval_strategy": "steps", "eval_steps": steps,
            "metric_for_best_model": f"eval_{self.measures[0]}", "greater_is_better": True,
            "load_best_model_at_end": True,
            "restore_callback_states_from_checkpoint": True,  # how long there has been nothing better
            **options,
        }  # fmt: skip

    def measure(self, model: torch.nn.Module, builder: GraphBuilder) -> dict[str, float]:
        """Return ``eval_<measure>`` -> mean over the judged queries."""
        run = rerank(
            model, builder, self.split.queries, self.split.candidates or {}, self.token_budget, self.bf16,
            progress=False, distributed=True,
        )  # fmt: skip
        return {f"eval_{name}": mean for name, mean in evaluate(self.split.qrels, run, self.measures).mean.items()}
