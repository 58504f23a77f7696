"""A system in one object, a recipe with its statistics, tokenizer and weights: it ranks, learns, explains, is saved."""

from socialgraph.ranker.ranker import Ranker

__all__ = ["Ranker"]
