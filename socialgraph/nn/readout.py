"""Leaders' views become one state for each document."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation, AttentionalAggregation
from torch_geometric.nn.resolver import aggregation_resolver
from torch_geometric.utils import cumsum
from torch_geometric.utils.sparse import index2ptr

from socialgraph.errors import OptionError
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.segments import Segments


class Readout(torch.nn.Module):
    """Pools the leaders of each document (paper, equation 11).

    Args:
        pool: "max" (the paper's experiments), "mean", "attention" (a learned gate), "transformer" (see
            :class:`TransformerReadout`), or any other name of PyG's aggregation resolver ("sum", "median", ...). Or one
            of PyG's aggregations, or a module of one's own that is called as they are: of the leaders' states
            ``x [C, E]``, ``index [C]`` (sorted; of each leader its set), ``ptr`` (None, or the bounds of the sets) and
            the number of sets S, none of which is empty, it makes ``[S, E]``.
        layer: a layer of the BERT, whose sizes the pool takes over.

    Raises:
        OptionError: no such pool.
    """

    def __init__(self, pool: str | torch.nn.Module, layer: BertConv) -> None:
        super().__init__()
        self.pool = pool if isinstance(pool, str) else type(pool).__name__
        self.aggregation: torch.nn.Module
        if isinstance(pool, torch.nn.Module):
            self.aggregation = pool
        elif pool == "attention":
            self.aggregation = AttentionalAggregation(torch.nn.Linear(layer.hidden_size, 1))
        elif pool == "transformer":
            self.aggregation = TransformerReadout(layer)
        else:
            try:
                self.aggregation = aggregation_resolver(pool)
            except (ValueError, TypeError) as error:
                message = "try max, mean, attention, transformer, or in a recipe {_target_: my_module.MyAggregation}"
                raise OptionError(f"no readout is called {pool!r}; {message}") from error

    @torch.no_grad()
    def start(self, cls: Tensor) -> None:
        """Begin as PARADE does, where the pool is a transformer: agg is BERT's word embedding of [CLS], ``[E]``."""
        if isinstance(self.aggregation, TransformerReadout):
            self.aggregation.agg.copy_(cls)

    def forward(self, x: Tensor, document: Tensor, documents: Segments) -> Tensor:
        """Return ``[B, E]`` from the leaders' states ``[C, E]``.

        A document without circles has the state 0.

        Args:
            x: states of the leaders, ``[C, E]``.
            document: of each, sorted, ``[C]``.
            documents: the documents among the leaders, B segments.

        Raises:
            OptionError: the pool gives states of another shape.
        """
        x = x.float() if x.is_cuda else x  # a layer leaves half precision there, which is too coarse for sums
        size = documents.ptr.numel() - 1
        if size and documents.narrowest:
            return self._pooled(x, document, documents.ptr, size)
        there = documents.ptr.diff() > 0
        number = (there.cumsum(0) - 1)[document]
        # Pools see no empty sets: a softmax over nothing would not be a number.
        pooled = x.new_zeros(size, x.size(-1))
        if documents.widest:
            amount = int(there.sum())
            pooled[there] = self._pooled(x, number, index2ptr(number, amount), amount)
        return pooled

    def _pooled(self, x: Tensor, document: Tensor, ptr: Tensor, size: int) -> Tensor:
        # with bounds sums are taken in order, which a GPU leaves open otherwise; a CPU has one
        states: Tensor = self.aggregation(x, document, ptr if x.is_cuda else None, size)
        if states.shape != (size, x.size(-1)):
            message = f"{tuple(states.shape)} for {size} documents of width {x.size(-1)}"
            raise OptionError(f"the readout {self.pool} gives {message}; expected {(size, x.size(-1))}")
        return states.to(x.dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pool!r})"


class TransformerReadout(Aggregation):
    """Two BERT layers over [agg; passages]; the state of agg is the document's (Li et al., PARADE, 2020).

    agg is a learned state that is put before the passages. It begins as BERT's word embedding of [CLS] once a model has
    a backbone (:meth:`Readout.start`); the layers are drawn as BERT draws its own. Passages have no positions, as in
    PARADE's released code, where they are an option that is off. Different there: agg begins as the word embedding of
    id 102, which in BERT's vocabulary is [SEP]; 101, [CLS], was meant.

    Args:
        layer: a layer of the BERT, whose sizes are taken over.
        num_layers: how many layers.
    """

    def __init__(self, layer: BertConv, num_layers: int = 2) -> None:
        super().__init__()
        self.agg = torch.nn.Parameter(torch.empty(layer.hidden_size))
        self.layers = torch.nn.ModuleList(
            BertConv(
                layer.hidden_size, layer.num_heads, layer.intermediate_size, layer.dropout.p, layer.output_norm.eps
            )
            for _ in range(num_layers)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw agg and the layers."""
        torch.nn.init.normal_(self.agg, std=0.02)
        for layer in self.layers:
            cast(BertConv, layer).reset_parameters()

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        max_num_elements: int | None = None,
    ) -> Tensor:
        """Return the state of agg for each set of ``x``; ``index`` is sorted and no set is empty."""
        assert index is not None
        assert dim_size is not None
        size = index2ptr(index, dim_size).diff() + 1
        bounds = cumsum(size)
        segments = Segments(bounds)
        states = x.new_empty(x.size(0) + dim_size, x.size(1))
        states[bounds[:-1]] = self.agg.to(x.dtype)
        states[torch.arange(x.size(0), device=x.device) + index + 1] = x
        for layer in self.layers:
            states = cast(BertConv, layer).circles(states, segments)
        return states[bounds[:-1]]
