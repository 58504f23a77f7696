"""Heads of their own for the hubs."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.masked_attention import Attend


class GlobalHeads(torch.nn.Module):
    r"""Query, key and value by which a layer's hubs hear their documents.

    .. math:: h_i = \sum_j \mathrm{softmax}_j\Big(\frac{{q'_i}^\top k'_j}{\sqrt d}\Big) v'_j \quad \text{for a hub } i

    with q', k', v' of their own for whom is heard as well; who is no hub hears hubs by the layer's own q, k and v.
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
            torch.nn.init.normal_(module.weight, std=0.02)
            torch.nn.init.zeros_(module.bias)

    def copy(self, layer: BertConv) -> None:
        """Begin as the layer's own heads."""
        for name, module in self.named_children():
            module.load_state_dict(getattr(layer, name).state_dict())

    def forward(self, x: Tensor, hub: Tensor, attend: Attend) -> Tensor:
        """Return what the hubs hear, ``[H, heads, d]``.

        Args:
            x: states of all nodes, ``[N, hidden_size]``.
            hub: which nodes listen, ``[H]``.
            attend: see :func:`~socialgraph.nn.masked_attention.hub_attention`.
        """
        query, key, value = self.query(x[hub]), self.key(x), self.value(x)
        return attend(*(states.unflatten(-1, (self.num_heads, -1)) for states in (query, key, value)))
