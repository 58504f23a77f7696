"""BERT in pieces: its input embedding, and one layer as a graph convolution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import softmax

from socialgraph.errors import InputError, OptionError, check_whole
from socialgraph.nn.attention import Attend, segment_attention, sorted_edge_attention
from socialgraph.nn.segments import Segments

#: numbers of the widest states that fit in a CPU's last cache, with room for the others
CACHE = 3 << 20


class BertConv(MessagePassing):
    r"""A BERT layer over a graph: attention along edges, then the feed-forward network.

    .. math::
        a_i &= \mathrm{LN}\Big(x_i + W_o \sum_{j \in N(i)}
               \mathrm{softmax}_j\Big(\frac{q_i^\top k_j}{\sqrt d}\Big) v_j\Big) \\
        x'_i &= \mathrm{LN}\big(a_i + W_2\, \mathrm{gelu}(W_1 a_i)\big)

    (Devlin et al., 2019; names of the parts as in their checkpoint.) A node sees itself only through a
    self-loop. Over complete circles :meth:`circles` computes the same without the edges.

    On a GPU in half precision, by autocast or its own, states stay in half precision between layers, and kernels of
    :mod:`socialgraph.kernels.bert_layer` compute the layer; where no gradient is asked for, gelu is by tanh there.

    Args:
        hidden_size: width of a state, a multiple of ``num_heads``.
        num_heads: attention heads.
        intermediate_size: width of the feed-forward network.
        dropout: of the two outputs that are added to the residual; attention itself has none.
        layer_norm_eps: epsilon of the layer norms.

    Raises:
        OptionError: no heads, heads that do not divide the width, or no inner width.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        intermediate_size: int,
        dropout: float = 0.1,
        layer_norm_eps: float = 1e-12,
    ) -> None:
        super().__init__(aggr="add", node_dim=0)
        check_whole("num_heads", num_heads, 1)
        check_whole("intermediate_size", intermediate_size, 1)
        if hidden_size % num_heads:
            raise OptionError(f"{num_heads} heads do not divide the hidden size {hidden_size}")
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.intermediate_size = intermediate_size
        self.query = torch.nn.Linear(hidden_size, hidden_size)
        self.key = torch.nn.Linear(hidden_size, hidden_size)
        self.value = torch.nn.Linear(hidden_size, hidden_size)
        self.attention_output = torch.nn.Linear(hidden_size, hidden_size)
        self.attention_norm = torch.nn.LayerNorm(hidden_size, eps=layer_norm_eps)
        self.intermediate = torch.nn.Linear(hidden_size, intermediate_size)
        self.output = torch.nn.Linear(intermediate_size, hidden_size)
        self.output_norm = torch.nn.LayerNorm(hidden_size, eps=layer_norm_eps)
        self.dropout = torch.nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as BERT does: normal with deviation 0.02, biases 0."""
        for module in self.children():
            if isinstance(module, torch.nn.Linear):
                draw_linear(module)
            elif isinstance(module, torch.nn.LayerNorm):
                module.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Compute the layer over edges: exact and explainable, the reference.

        Args:
            x: states, ``[N, hidden_size]``.
            edge_index: from source (who is attended to) to target (who attends), ``[2, E]``.
        """
        query, key, value = self._heads(x)
        heard = self.propagate(edge_index, query=query, key=key, value=value, size=(x.size(0), x.size(0)))
        return self._transform(x, heard.flatten(1))

    def circles(self, x: Tensor, ptr: Tensor | Segments, backend: str | None = None) -> Tensor:
        """Compute the layer over complete circles, one after the other in ``x``.

        Args:
            x: states of all circles, ``[T, hidden_size]``.
            ptr: bounds of the circles, ``[C + 1]``, or what is known of them.
            backend: see :func:`~socialgraph.nn.segment_attention`.
        """
        segments = ptr if isinstance(ptr, Segments) else Segments(ptr)
        if backend is None and is_half_on_gpu(x):
            return self._in_half(x, segments)
        if x.is_cuda:
            return self._circles(x, segments, backend)
        # On a CPU the states of some circles stay in its cache: a fifth faster than all at once.
        parts = segments.parts(max(1, CACHE // self.intermediate_size))
        if len(parts) < 2:
            return self._circles(x, segments, backend)
        rows = torch.split(x, [amount for amount, _ in parts])  # not slices: each one's gradient would be as long as x
        return torch.cat([self._circles(some, part, backend) for some, (_, part) in zip(rows, parts, strict=True)])

    def leaders(self, x: Tensor, ptr: Tensor | Segments, leader: Tensor) -> Tensor:
        """Compute the layer over complete circles for one member of each: O(T) instead of O(sum of squares).

        Args:
            x: states of all circles, ``[T, hidden_size]``.
            ptr: bounds of the circles, ``[C + 1]``, or what is known of them; none is empty.
            leader: the row of ``x`` that is wanted from each circle, ``[C]``.

        Returns:
            The rows ``leader`` of what :meth:`circles` returns, ``[C, hidden_size]``.
        """
        segments = ptr if isinstance(ptr, Segments) else Segments(ptr)
        if is_half_on_gpu(x):
            return self._in_half(x, segments, leader)
        everybody = torch.arange(x.size(0), device=x.device)
        return self.along(x, sorted_edge_attention(everybody, segments.ptr), leader)

    def along(self, x: Tensor, attend: Attend, rows: Tensor | None = None) -> Tensor:
        """Compute the layer with any attention.

        Args:
            x: states, ``[N, hidden_size]``.
            attend: ``(query [R, heads, d], key [N, heads, d], value [N, heads, d]) -> [R, heads, d]``, such as
                :func:`~socialgraph.nn.masked_attention` gives.
            rows: the rows of ``x`` that attend, ``[R]``; all of them by default.

        Returns:
            Their states, ``[R, hidden_size]``.
        """
        listener = x if rows is None else x[rows]
        shape = (-1, self.num_heads, self.hidden_size // self.num_heads)
        heard_of = converted(x)
        query, key, value = (
            m(s).view(shape) for m, s in ((self.query, listener), (self.key, heard_of), (self.value, heard_of))
        )
        return self._transform(listener, attend(query, key, value).flatten(1))

    def message(self, query_i: Tensor, key_j: Tensor, value_j: Tensor, index: Tensor, size_i: int | None) -> Tensor:
        """Return what each edge brings: the source's value times the target's attention."""
        # in float32, because half precision would lose the small terms of the sums
        logits = (query_i.float() * key_j.float()).sum(-1) / query_i.size(-1) ** 0.5
        return softmax(logits, index, num_nodes=size_i).unsqueeze(-1) * value_j.float()

    def _circles(self, x: Tensor, segments: Segments, backend: str | None) -> Tensor:
        query, key, value = self._heads(x)
        return self._transform(x, segment_attention(query, key, value, segments, backend).flatten(1))

    def _heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shape, x = (-1, self.num_heads, self.hidden_size // self.num_heads), converted(x)
        return self.query(x).view(shape), self.key(x).view(shape), self.value(x).view(shape)

    def _in_half(self, x: Tensor, segments: Segments, rows: Tensor | None = None) -> Tensor:
        from socialgraph.kernels.bert_layer import attend  # Triton comes with PyTorch for GPUs alone

        parts = (self.query, self.key, self.value)
        weights = [weight for part in parts for weight in (part.weight, part.bias)]
        listener, heard = attend(converted(x), self.num_heads, segments.ptr, segments.widest, weights, rows)
        return self._transform(listener, heard)

    def _transform(self, x: Tensor, heard: Tensor) -> Tensor:
        if is_half_on_gpu(x):
            from socialgraph.kernels.bert_layer import transform

            norms = (self.attention_norm, self.output_norm)
            parts = (self.attention_output, norms[0], self.intermediate, self.output, norms[1])
            weights = [weight for part in parts for weight in (part.weight, part.bias)]
            dropout = self.dropout.p if self.training else 0.0
            x = converted(x)
            return transform(x, heard.to(x.dtype), weights, (norms[0].eps, norms[1].eps), dropout)
        x = self.attention_norm(x + self.dropout(self.attention_output(heard)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.hidden_size}, {self.num_heads}, {self.intermediate_size})"


class BertEmbedding(torch.nn.Module):
    """Sum of word, position and segment embeddings, normalised.

    Args:
        vocab_size: number of word pieces.
        max_positions: longest sequence.
        type_vocab_size: number of segments; 0 is the query, 1 the document.
        hidden_size: width of a state.
        dropout: of the result.
        layer_norm_eps: epsilon of the layer norm.
    """

    def __init__(
        self,
        vocab_size: int,
        max_positions: int,
        type_vocab_size: int,
        hidden_size: int,
        dropout: float = 0.1,
        layer_norm_eps: float = 1e-12,
    ) -> None:
        super().__init__()
        self.word = torch.nn.Embedding(vocab_size, hidden_size)
        self.position = torch.nn.Embedding(max_positions, hidden_size)
        self.segment = torch.nn.Embedding(type_vocab_size, hidden_size)
        self.norm = torch.nn.LayerNorm(hidden_size, eps=layer_norm_eps)
        self.dropout = torch.nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as BERT does."""
        for table in (self.word, self.position, self.segment):
            torch.nn.init.normal_(table.weight, std=0.02)
        self.norm.reset_parameters()

    def forward(self, token: Tensor, position: Tensor, segment: Tensor, positions: int | None = None) -> Tensor:
        """Return the first states, ``[T, hidden_size]``.

        Args:
            token: word pieces, ``[T]``.
            position: of each in its sequence, ``[T]``.
            segment: of each, ``[T]``.
            positions: the highest position and 1; None asks the device.

        Raises:
            InputError: a sequence is longer than BERT's positions.
        """
        longest = positions
        if longest is None:
            longest = int(position.max()) + 1 if position.numel() else 0
        if longest > self.position.num_embeddings:
            raise InputError(
                f"a sequence takes {longest} positions, this BERT reads {self.position.num_embeddings}; "
                "make circles, windows or queries shorter, or raise max_positions"
            )
        if self.word.weight.is_cuda and torch.is_autocast_enabled("cuda") and not torch.is_grad_enabled():
            from socialgraph.kernels.passes import embed  # Triton comes with PyTorch for GPUs alone

            tables = (self.word.weight, self.position.weight, self.segment.weight)
            kind = torch.get_autocast_dtype("cuda")
            x = embed((token, position, segment), tables, self.norm.weight, self.norm.bias, self.norm.eps, kind)
            return self.dropout(x)
        return self.dropout(self.norm(self.word(token) + self.position(position) + self.segment(segment)))


def draw_linear(layer: torch.nn.Linear) -> torch.nn.Linear:
    """Draw a layer's weights as BERT does, normal with deviation 0.02, biases 0, and return it."""
    torch.nn.init.normal_(layer.weight, std=0.02)
    if layer.bias is not None:
        torch.nn.init.zeros_(layer.bias)
    return layer


def converted(x: Tensor) -> Tensor:
    """Return states as autocast's linear layers read them, so that several layers do not convert them each."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


def is_half_on_gpu(x: Tensor) -> bool:
    """Return whether linear layers read these states on a GPU and in half precision."""
    half = (torch.float16, torch.bfloat16)
    return x.is_cuda and (torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype) in half
