"""Leaders talk across circles."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.segments import Segments


class InterCircle(torch.nn.Module):
    r"""Inter-circle interaction and leader update of one block (paper, section 3.3).

    .. math::
        \{c^{high}_1, \dots\} = \mathrm{Trm}(\{c^{low}_1, \dots\}), \qquad c' = [c^{low}, c^{high}]\, W^C

    over the leaders of all circles and passages of a document. W^C starts as [I, 0]: an untrained model
    scores exactly as BERT on each circle alone, and nothing pre-trained is lost. (The released code starts
    it at random; the paper does not say.)

    Args:
        hidden_size: width E of a state.
        num_heads: heads of the transformer.
        intermediate_size: width of its feed-forward network.
        dropout: see :class:`~socialgraph.nn.BertConv`.
        layer_norm_eps: see :class:`~socialgraph.nn.BertConv`.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        intermediate_size: int,
        dropout: float = 0.1,
        layer_norm_eps: float = 1e-12,
    ) -> None:
        super().__init__()
        self.transformer = BertConv(hidden_size, num_heads, intermediate_size, dropout, layer_norm_eps)
        self.update = torch.nn.Linear(2 * hidden_size, hidden_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the transformer as BERT does and set W^C to [I, 0]."""
        self.transformer.reset_parameters()
        with torch.no_grad():
            self.update.weight.zero_().fill_diagonal_(1.0)

    def forward(self, low: Tensor, ptr: Tensor | Segments, backend: str | None = None) -> tuple[Tensor, Tensor]:
        """Return the leaders' updated states and their high states, each ``[C, E]``.

        Args:
            low: the leaders' states after intra-circle interaction, ``[C, E]``.
            ptr: bounds of the documents among the leaders, ``[B + 1]``, or what is known of them.
            backend: see :func:`~socialgraph.nn.segment_attention`.
        """
        high = self.transformer.circles(low, ptr, backend)
        return self.update(torch.cat([low, high], dim=-1)), high
