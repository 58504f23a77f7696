"""Sparse transformers: one BERT reads the whole document, along edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import ModuleList
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.errors import InputError
from socialgraph.nn.attention import EDGE_BACKENDS, Attend, edge_attention, hub_attention, masked_attention
from socialgraph.nn.bert_conv import BertConv, draw_linear
from socialgraph.nn.bert_ranker import BertRanker, score_layer


class SparseTransformer(BertRanker):
    """Longformer, LongformerGlobal, QDS-Transformer and BigBird: what differs between them is the edges.

    Nodes are ``[CLS] query [SEP] document [SEP]`` (a joint graph). In every layer a node attends to itself and those
    that an edge leads from; a linear layer makes a score of the last state of [CLS].

    The papers are named where the edges are: :class:`~socialgraph.edges.sparse.LongformerEdges`,
    :class:`~socialgraph.edges.sparse.QDSEdges`, :class:`~socialgraph.edges.sparse.BigBirdEdges`. Taken from them: which
    pairs attend, and Longformer's repeated positions. Different here: the weights begin as the backbone's, without the
    papers' further pre-training on long texts.

    Args:
        own_global: hubs attend with query, key and value projections of their own, which begin as copies (Longformer).
            The graph then says in ``hub_mask`` who is a hub.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`. ``max_positions`` must be at least the longest
            sequence; ``attention`` is a backend of :func:`~socialgraph.nn.masked_attention`.
    """

    attention_backends = EDGE_BACKENDS

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
        everybody = self._layer(to_all, None, hub_mask, ptr)
        source, target = graph.edge_index[:, is_cls[graph.edge_index[1]]]
        to_cls = edge_attention(torch.cat([source, cls]), batch[torch.cat([target, cls])], cls.numel())
        leaders = self._layer(to_cls, cls, hub_mask & is_cls, ptr)

        x = self.embedding(graph.input_ids, node - ptr[batch], graph.segment)
        for number in range(len(self.layers)):
            x = self.call(number, everybody if number < len(self.layers) - 1 else leaders, number, x)
        return self.pooled(x)

    def _layer(
        self, attend: Attend, node: Tensor | None, hub_mask: Tensor, ptr: Tensor
    ) -> Callable[[int, Tensor], Tensor]:
        """Return what makes of a layer's number and states ``[N, E]`` the states of who attends, ``[R, E]``.

        Args:
            attend: the attention of all of them.
            node: who they are, ``[R]``; None for all nodes.
            hub_mask: which nodes attend with heads of their own, ``[N]``.
            ptr: bounds of the documents.
        """
        hub = hub_mask.nonzero().flatten()
        row = hub if node is None else hub_mask[node].nonzero().flatten()
        to_document = hub_attention(hub_mask, ptr)

        def layer(number: int, x: Tensor) -> Tensor:
            def both(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
                states = attend(query, key, value)
                if not self.own_global:
                    return states
                return states.index_put((row,), self.global_heads[number](x, hub, to_document).to(states.dtype))

            return cast(BertConv, self.layers[number]).along(x, both, node)

        return layer


class GlobalHeads(torch.nn.Module):
    r"""Query, key and value by which a layer's hubs attend to their documents.

    .. math:: h_i = \sum_j \mathrm{softmax}_j\Big(\frac{{q'_i}^\top k'_j}{\sqrt d}\Big) v'_j \quad \text{for a hub } i

    with q', k', v' of their own for all nodes; who is no hub attends to hubs by the layer's own q, k and v.
    (Beltagy, Peters and Cohan, "Longformer: The Long-Document Transformer", 2020: two sets of projections.)

    Args:
        layer: the BERT layer whose sizes are taken over.
    """

    def __init__(self, layer: BertConv) -> None:
        super().__init__()
        self.num_heads = layer.num_heads
        self.query = torch.nn.Linear(layer.hidden_size, layer.hidden_size)
        self.key = torch.nn.Linear(layer.hidden_size, layer.hidden_size)
        self.value = torch.nn.Linear(layer.hidden_size, layer.hidden_size)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as BERT does: normal with deviation 0.02, biases 0."""
        for module in (self.query, self.key, self.value):
            draw_linear(module)

    def copy(self, layer: BertConv) -> None:
        """Begin as the layer's own heads."""
        for name, module in self.named_children():
            module.load_state_dict(getattr(layer, name).state_dict())

    def forward(self, x: Tensor, hub: Tensor, attend: Attend) -> Tensor:
        """Return what attention gives the hubs, ``[H, heads, d]``.

        Args:
            x: states of all nodes, ``[N, hidden_size]``.
            hub: which nodes attend, ``[H]``.
            attend: see :func:`~socialgraph.nn.attention.hub_attention`.
        """
        query, key, value = self.query(x[hub]), self.key(x), self.value(x)
        return attend(*(states.unflatten(-1, (self.num_heads, -1)) for states in (query, key, value)))
