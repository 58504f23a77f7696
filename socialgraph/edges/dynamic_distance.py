"""Dynamic distance: who stands near the query's words is asked often."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from socialgraph.edges.layout import documents, longest, padded
from socialgraph.edges.pattern import Centrality
from socialgraph.errors import OptionError
from socialgraph.query_match import query_match


class DynamicDistance(Centrality):
    r"""P_dd(i, j) = f(w_i w_j) with w the nearness to the query's words (paper, equations 4 and 5).

    .. math:: w_i = \frac{1}{n} \sum_{j=1}^n \frac{1}{1 + |i - pos(t_j^q)| / p}

    over the n positions of the document whose token is one of the query's tokens. Without such a position
    all weights are 0 and the pattern abstains.

    Args:
        p: range of the nearness, in tokens.

    Raises:
        OptionError: p is not positive.
    """

    def __init__(self, p: float = 50.0) -> None:
        super().__init__()
        if not p > 0:
            raise OptionError(f"p must be positive, got {p}")
        self.p = p

    def weights(self, graph: Data) -> Tensor:
        """Return w, from ``input_ids``, ``query_ids`` and ``query_length``: ``[N]`` float64.

        The sum is a convolution. It is taken in whole numbers (multiples of 2^-24), so that the error of the
        fast Fourier transform is rounded away and every device gives the same weights.
        """
        batch, ptr = documents(graph)
        match = query_match(graph, batch)
        width = longest(ptr)
        if width == 0:
            return torch.zeros(0, dtype=torch.float64, device=ptr.device)
        ids, inside = padded(ptr, width)
        heads = (match[ids] & inside).double()
        distance = torch.arange(-width + 1, width, dtype=torch.float64, device=ptr.device).abs()
        # A GPU takes the product with 1 / p for a division by a number that is no tensor of its own.
        kernel = torch.round(2.0**24 / (1.0 + distance / torch.full_like(distance[:1], float(self.p))))
        size = 1 << (2 * width - 2).bit_length()  # what wraps around does not reach the places that are read
        product = torch.fft.irfft(torch.fft.rfft(heads, size) * torch.fft.rfft(kernel, size), size)
        total = torch.round(product[:, width - 1 : 2 * width - 1])[inside]
        matches = scatter(match.double(), batch, dim_size=ptr.numel() - 1).clamp(min=1)
        return total / matches[batch] * 2.0**-24
