"""BERT's input embedding over packed sequences."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.errors import InputError


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
