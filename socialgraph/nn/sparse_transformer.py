"""Sparse transformers: one BERT reads the whole document, along edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import ModuleList
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.errors import InputError
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.bert_ranker import BertRanker, score_layer
from socialgraph.nn.global_heads import GlobalHeads
from socialgraph.nn.masked_attention import (
    BACKENDS,
    Attend,
    hub_attention,
    listening_along,
    masked_attention,
)


@dataclass(frozen=True)
class Listeners:
    """Who listens in a layer, and how.

    Attributes:
        attend: the attention of all of them.
        node: who they are, ``[R]``; None for all nodes.
        hub: nodes that hear with heads of their own, ``[H]``.
        hub_row: where these stand among the listeners, ``[H]``.
        hub_attend: their attention.
    """

    attend: Attend
    node: Tensor | None
    hub: Tensor
    hub_row: Tensor
    hub_attend: Attend


class SparseTransformer(BertRanker):
    """Longformer, LongformerGlobal, QDS-Transformer and BigBird: what differs between them is the edges.

    Nodes are ``[CLS] query [SEP] document [SEP]`` (a joint graph). In every layer a node hears itself and those that
    an edge leads from; a linear layer makes a score of the last state of [CLS].

    The papers are named where the edges are: :class:`~socialgraph.edges.longformer.LongformerEdges`,
    :class:`~socialgraph.edges.qds.QDSEdges`, :class:`~socialgraph.edges.bigbird.BigBirdEdges`. Taken from them: which
    pairs attend, and Longformer's repeated positions. Different here: the weights begin as the backbone's, without the
    papers' further pre-training on long texts.

    Args:
        own_global: hubs hear with query, key and value projections of their own, which begin as copies (Longformer).
            The graph then says in ``hub_mask`` who is a hub.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`. ``max_positions`` must be at least the longest
            sequence; ``attention`` is a backend of :func:`~socialgraph.nn.masked_attention.masked_attention`.
    """

    attention_backends = BACKENDS

    def __init__(self, own_global: bool = False, **bert: Any) -> None:
        super().__init__(**bert)
        layers = cast("list[BertConv]", list(self.layers))
        self.own_global = own_global
        self.global_heads = ModuleList(GlobalHeads(layer) for layer in layers if own_global)
        self.score = score_layer(self.hidden_size)

    def start(self) -> None:
        """Begin the hubs' heads as copies."""
        for heads, layer in zip(self.global_heads, self.layers, strict=False):
            cast(GlobalHeads, heads).copy(cast(BertConv, layer))

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``.

        Args:
            graph: with ``input_ids``, ``segment``, ``query_length``, ``edge_index``, and ``hub_mask`` for own_global.

        Raises:
            InputError: a sequence is longer than the positions, or own_global without ``hub_mask``.
            OptionError: an unknown attention backend.
        """
        score: Tensor = self.score(self.documents(graph))
        return score.squeeze(-1)

    def documents(self, graph: Data) -> Tensor:
        """Return the last state of each document's [CLS], pooled, ``[B, E]``; the last layer computes no other."""
        if self.own_global and "hub_mask" not in graph:
            raise InputError("own_global=True needs hub_mask in the graph; take edges that say who is a hub")
        batch = getattr(graph, "batch", None)
        batch = torch.zeros_like(graph.input_ids) if batch is None else batch
        node = torch.arange(batch.numel(), device=batch.device)
        ptr = cumsum(torch.bincount(batch, minlength=graph.query_length.numel()))
        cls = ptr[:-1]
        is_cls = torch.zeros_like(batch, dtype=torch.bool).index_fill(0, cls, True)
        hub_mask = graph.hub_mask if self.own_global else torch.zeros_like(is_cls)
        width = self.hidden_size // cast(BertConv, self.layers[0]).num_heads
        to_all = masked_attention(graph.edge_index, ptr, self.attention, width)
        everybody = self._listeners(to_all, None, hub_mask, ptr)
        heard, listener = graph.edge_index[:, is_cls[graph.edge_index[1]]]
        to_cls = listening_along(torch.cat([heard, cls]), batch[torch.cat([listener, cls])], cls.numel())
        leaders = self._listeners(to_cls, cls, hub_mask & is_cls, ptr)

        x = self.embedding(graph.input_ids, node - ptr[batch], graph.segment)
        for number in range(len(self.layers)):
            x = self.call(number, self._layer, number, x, everybody if number < len(self.layers) - 1 else leaders)
        return self.pooled(x)

    def _listeners(self, attend: Attend, node: Tensor | None, hub_mask: Tensor, ptr: Tensor) -> Listeners:
        hub = hub_mask.nonzero().flatten()
        row = hub if node is None else hub_mask[node].nonzero().flatten()
        return Listeners(attend, node, hub, row, hub_attention(hub_mask, ptr))

    def _layer(self, number: int, x: Tensor, listeners: Listeners) -> Tensor:
        """Return the states of who listens after layer ``number``, ``[R, E]``."""

        def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            heard = listeners.attend(query, key, value)
            if not self.own_global:
                return heard
            own = self.global_heads[number](x, listeners.hub, listeners.hub_attend)
            return heard.index_put((listeners.hub_row,), own.to(heard.dtype))

        return cast(BertConv, self.layers[number]).along(x, attend, listeners.node)
