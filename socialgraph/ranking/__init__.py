"""First stage, training, re-ranking, evaluation.

What trains is imported when it is asked for (PEP 562): the library's trainer is slow to import, and ranking needs none.
"""

from typing import TYPE_CHECKING, Any

from socialgraph.ranking.dev import Dev
from socialgraph.ranking.evaluate import Evaluation, TTest, evaluate, holm, paired_t_test
from socialgraph.ranking.first_stage import BM25, QueryLikelihood, Retriever, retrieve_candidates
from socialgraph.ranking.interpolate import choose_weight, interpolate
from socialgraph.ranking.losses import (
    LOSSES,
    binary_cross_entropy,
    listwise_cross_entropy,
    loss_resolver,
    pairwise_hinge,
    ranknet,
)
from socialgraph.ranking.rerank import rerank

if TYPE_CHECKING:
    from socialgraph.ranking.trainer import train

__all__ = [
    "BM25",
    "LOSSES",
    "Dev",
    "Evaluation",
    "QueryLikelihood",
    "Retriever",
    "TTest",
    "binary_cross_entropy",
    "choose_weight",
    "evaluate",
    "holm",
    "interpolate",
    "listwise_cross_entropy",
    "loss_resolver",
    "paired_t_test",
    "pairwise_hinge",
    "ranknet",
    "rerank",
    "retrieve_candidates",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "train":
        from socialgraph.ranking.trainer import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
