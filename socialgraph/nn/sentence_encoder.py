"""The sentence encoder: one vector for the query, one for each passage or circle, and their cosine."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import segment
from torch_geometric.utils.sparse import index2ptr

from socialgraph.backbone import optional_file, read_json
from socialgraph.data.graph import circle_document
from socialgraph.errors import CheckpointError, check_choice
from socialgraph.nn.bert_ranker import BertRanker
from socialgraph.nn.sequences import Sequences, bare_query_sequences, passage_sequences

POOLINGS = ("mean", "max", "cls")
READOUTS = ("max", "mean")
#: sentence-transformers' names of its poolings -> ours; the length of a vector changes no cosine
_MODES = {"mean": "mean", "mean_sqrt_len_tokens": "mean", "max": "max", "cls": "cls"}


class SentenceEncoder(BertRanker):
    r"""Scores a document by the cosines of the query and its passages, or circles: of the best one, or their mean.

    .. math::
        v(t) &= \frac{\mathrm{pool}(\mathrm{BERT}([CLS]\; t\; [SEP]))}{\lVert \cdot \rVert} \\
        s(q, d) &= \max_{c \in d} \langle v(q), v(c) \rangle

    where pool is the mean, or the maximum in each dimension, of the last states of all tokens, or the state of [CLS]:
    as the checkpoint's own files for sentence-transformers say (``modules.json`` and the ``config.json`` of its
    pooling); the mean where it has none. A circle's words stand in document order and are read as a text, so any
    partition can be read without training.

    Reimers and Gurevych, "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks", EMNLP 2019. Different from
    sentence-transformers here: texts are compared by cosine whatever the checkpoint was made for, prompts are not put
    in front of them, and they are read up to the BERT's positions, not cut at ``max_seq_length``.

    Args:
        pooling: "mean", "max" or "cls".
        readout: over a document's passages, "max" or "mean".
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.

    Raises:
        OptionError: an unknown pooling or readout.
    """

    segments = 1

    def __init__(self, pooling: str = "mean", readout: str = "max", **bert: Any) -> None:
        super().__init__(**bert)
        check_choice("pooling", pooling, POOLINGS)
        check_choice("readout", readout, READOUTS)
        self.pooling = pooling
        self.readout = readout

    @classmethod
    def backbone_options(cls, backbone: str) -> dict[str, Any]:
        """Return the arguments of the class that the backbone's files decide, with its pooling.

        Raises:
            CheckpointError: see :func:`sentence_pooling`.
        """
        return {**super().backbone_options(backbone), "pooling": sentence_pooling(backbone)}

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``; without a passage it is -1, the lowest cosine.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names.
        """
        ptr = index2ptr(circle_document(graph), graph.query_length.numel())
        return torch.where(ptr.diff() > 0, segment(self.circle_scores(graph), ptr, reduce=self.readout), -1.0)

    def circle_scores(self, graph: Data) -> Tensor:
        """Return the cosine of each passage or circle and its document's query, ``[C]``.

        Args:
            graph: see :meth:`scores`.
        """
        query = self.vectors(bare_query_sequences(graph, self.cls_token_id, self.sep_token_id))
        circle = self.vectors(passage_sequences(graph, self.cls_token_id, self.sep_token_id))
        return (query[circle_document(graph)] * circle).sum(-1)

    def vectors(self, sequences: Sequences) -> Tensor:
        """Return the vector of each sequence, length 1, ``[C, E]`` float32."""
        if self.pooling == "cls":
            pooled = self.leaders(sequences)
        else:  # in float32: a sum of 500 states is too long for half precision
            pooled = segment(self.states(sequences).float(), sequences.ptr, reduce=self.pooling)
        return F.normalize(pooled.float(), dim=-1)


def sentence_pooling(backbone: str) -> str:
    """Return how a checkpoint's files for sentence-transformers pool a text's states: "mean", "max" or "cls".

    ``modules.json`` names its modules, and the folder of each. A checkpoint without that file is pooled by the mean,
    as sentence-transformers does.

    Raises:
        CheckpointError: the files are broken, or they name a module or a pooling that is not offered.
    """
    file = optional_file(backbone, "modules.json")
    if file is None:
        return "mean"
    modules = {str(module.get("type", "")).rsplit(".", 1)[-1]: module for module in read_json(file, list)}
    odd = sorted(modules.keys() - {"Transformer", "Pooling", "Normalize"})
    if odd:
        raise CheckpointError(f"{backbone}: modules.json names {odd[0]!r}; read are Transformer, Pooling and Normalize")
    folder = modules.get("Pooling", {}).get("path")
    if not isinstance(folder, str) or not re.fullmatch(r"\w[\w-]*", folder):
        raise CheckpointError(f"{backbone}: modules.json names no folder with the Pooling's config.json")
    config = optional_file(backbone, f"{folder}/config.json")
    if config is None:
        raise CheckpointError(f"{backbone}: no {folder}/config.json, which modules.json names")
    mode = pooling_mode(read_json(config))
    if mode not in _MODES:
        reason = f"pooling must be one of {', '.join(_MODES)}, got {mode}"
        raise CheckpointError(f"{backbone}: {folder}/config.json: {reason}")
    return _MODES[mode]


def pooling_mode(config: dict[str, Any]) -> str:
    """Return the pooling that a config names: in one word, or, as before version 6, by a flag for each."""
    if "pooling_mode" in config:
        return str(config["pooling_mode"])
    flags = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    modes = [key.removeprefix("pooling_mode_") for key in flags]
    # all names but the longest end in _token or _tokens there
    names = [key if key in _MODES else re.sub("_tokens?$", "", key) for key in modes]
    return " + ".join(names) if names else "mean"
