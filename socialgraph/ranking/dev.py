"""Measures on a split while a model is trained: which checkpoint is the best, and when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import Split
from socialgraph.errors import OptionError, is_whole
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
        if self.patience is not None and not is_whole(self.patience, 1):
            raise OptionError(f"dev: patience must be 1 or more, or None, got {self.patience}")

    def arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the library's arguments for measuring, over those given: at each checkpoint, and the best is kept.

        Without ``save_steps`` or ``eval_steps`` there are ten in a training. With ``save_strategy="no"`` it is only
        measured, and the weights stay those of the last step.
        """
        how = options.get("save_strategy") or options.get("eval_strategy") or "steps"
        steps = options.get("save_steps") or options.get("eval_steps") or TENTH
        best = {"metric_for_best_model": self.best, "greater_is_better": True, "load_best_model_at_end": how != "no"}
        when = {"save_strategy": how, "eval_strategy": "steps" if how == "no" else how}
        patience = {"restore_callback_states_from_checkpoint": True}  # how long there has been nothing better
        return {**when, "save_steps": steps, "eval_steps": steps, **best, **patience, **options}

    @property
    def best(self) -> str:
        """What the log calls the first measure."""
        return f"eval_{self.measures[0]}"

    def measure(self, model: torch.nn.Module, builder: GraphBuilder) -> dict[str, float]:
        """Return ``eval_<measure>`` -> mean over the judged queries."""
        run = rerank(
            model, builder, self.split.queries, self.split.candidates or {}, self.token_budget, self.bf16,
            progress=False, distributed=True,
        )  # fmt: skip
        return {f"eval_{name}": mean for name, mean in evaluate(self.split.qrels, run, self.measures).mean.items()}
