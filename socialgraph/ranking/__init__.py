"""Who wins: first stage, training, re-ranking, measures, significance."""

from socialgraph.ranking.evaluate import Evaluation, TTest, evaluate, paired_t_test
from socialgraph.ranking.first_stage import BM25, QueryLikelihood, Retriever, retrieve_candidates
from socialgraph.ranking.interpolate import choose_weight, interpolate
from socialgraph.ranking.listwise import listwise_cross_entropy
from socialgraph.ranking.rerank import rerank
from socialgraph.ranking.train import RankingTrainer, train

__all__ = [
    "BM25",
    "Evaluation",
    "QueryLikelihood",
    "RankingTrainer",
    "Retriever",
    "TTest",
    "choose_weight",
    "evaluate",
    "interpolate",
    "listwise_cross_entropy",
    "paired_t_test",
    "rerank",
    "retrieve_candidates",
    "train",
]
