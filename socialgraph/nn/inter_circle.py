"""Leaders talk across circles."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from socialgraph.errors import OptionError, check_choice
from socialgraph.nn.attention import complete_edges
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.segments import Segments

UPDATES = ("low", "near", "random")

#: of "near": what the high state adds to each entry of the low one at the start, where the high one's are about 1
NEAR = 0.05


class InterCircle(torch.nn.Module):
    r"""Inter-circle interaction and leader update of one block (paper, section 3.3).

    .. math::
        \{c^{high}_1, \dots\} = \mathrm{Trm}(\{c^{low}_1, \dots\}), \qquad c' = [c^{low}, c^{high}]\, W^C

    over the leaders of all circles and passages of a document. The paper does not say how W^C starts.

    Args:
        hidden_size: width E of a state.
        num_heads: heads of the transformer.
        intermediate_size: width of its feed-forward network.
        dropout: see :class:`~socialgraph.nn.BertConv`.
        layer_norm_eps: see :class:`~socialgraph.nn.BertConv`.
        update: how W^C starts. "low": as [I, 0], so that an untrained model scores exactly as BERT on each circle
            alone, and nothing pre-trained is lost; in the first step of training the transformer then has no gradient,
            only W^C does. "near": as [I, R] with R drawn from N(0, 0.05^2 / E), which lets a twentieth of the high
            state in, so that the transformer learns from the first step on. "random": as any linear layer of torch
            (released code).
        transformer: a module in Trm's place: of the leaders' states ``x [C, E]`` and ``edge_index [2, F]``, all pairs
            of leaders of a document, it makes their high states ``[C, E]``, as PyG's convolutions do. It is copied,
            with its weights.

    Raises:
        OptionError: an unknown start.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        intermediate_size: int,
        dropout: float = 0.1,
        layer_norm_eps: float = 1e-12,
        update: str = "low",
        transformer: torch.nn.Module | None = None,
    ) -> None:
        super().__init__()
        check_choice("update", update, UPDATES)
        self.start = update
        self.transformer: torch.nn.Module = copy.deepcopy(transformer) if transformer is not None else BertConv(
            hidden_size, num_heads, intermediate_size, dropout, layer_norm_eps
        )  # fmt: skip
        self.update = torch.nn.Linear(2 * hidden_size, hidden_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the transformer as BERT does, if it is BERT's, and start W^C."""
        if isinstance(self.transformer, BertConv):
            self.transformer.reset_parameters()
        if self.start == "random":
            self.update.reset_parameters()
            return
        with torch.no_grad():
            self.update.weight.zero_().fill_diagonal_(1.0)
            if self.start == "near":
                width = self.update.out_features
                self.update.weight[:, width:].normal_(std=NEAR / width**0.5)

    def forward(self, low: Tensor, ptr: Tensor | Segments, backend: str | None = None) -> tuple[Tensor, Tensor]:
        """Return the leaders' updated states and their high states, each ``[C, E]``.

        Args:
            low: the leaders' states after intra-circle interaction, ``[C, E]``.
            ptr: bounds of the documents among the leaders, ``[B + 1]``, or what is known of them.
            backend: see :func:`~socialgraph.nn.segment_attention`.

        Raises:
            OptionError: a module of one's own gives states of another shape.
        """
        if isinstance(self.transformer, BertConv):
            high = self.transformer.circles(low, ptr, backend)
        else:
            high = self.transformer(low, complete_edges(ptr.ptr if isinstance(ptr, Segments) else ptr))
            if high.shape != low.shape:
                message = f"{tuple(high.shape)} for the states of leaders {tuple(low.shape)}; it must keep the shape"
                raise OptionError(f"{type(self.transformer).__name__} gives {message}")
        return self.update(torch.cat([low, high], dim=-1)), high
