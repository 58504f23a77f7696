"""PARADE: passages, read apart and pooled."""

from __future__ import annotations

from typing import Any

from socialgraph.nn.socialformer import Socialformer


class PARADE(Socialformer):
    """Passages read with the query, their [CLS] states pooled, one score (Li et al., 2020).

    It is a Socialformer without friend circles (the graph holds passages only) and without inter-circle interaction;
    ``readout`` "max", "mean" and "attention" are the paper's variants. Differences from the paper: BERT starts
    from the backbone as it is, not from one fine-tuned on MS MARCO passages, and the windows (128 tokens without
    overlap by default, as in Socialformer's experiments) are those of the graph.

    Args:
        options: as :class:`~socialgraph.nn.Socialformer`, without ``inter_circle``.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "inter_circle": False})
