"""Learned: whom a BERT would look at, as parameters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data

from socialgraph.backbone import load_bert
from socialgraph.edges.affinity import Affinity, fixed
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Pattern
from socialgraph.edges.word_table import WordTable
from socialgraph.errors import OptionError
from socialgraph.kernels import FACTOR_STEP, SUM_STEP


class Learned(Pattern):
    r"""How much two words look at each other in a BERT's first layer; what "much" means can be learned.

    .. math::
        s_{ij} = \frac{1}{H} \sum_h \frac{q_i^h \cdot k_j^h + q_j^h \cdot k_i^h}{2 \sqrt{d}}, \qquad
        P_{ij} = \sigma(a \, s_{ij} + b)

    over the H heads of width d, with the first layer's queries and keys of the words' embeddings. Positions are left
    out: a document has more of them than BERT, and distance is the business of other patterns. Then s is a function of
    two word pieces, :math:`s_{ij} = x_i^T M x_j`, and so of a vector for each: of all

    .. math:: s_{ij} \approx \sum_{r=1}^{rank} e_r \, v_{ir} v_{jr}, \qquad e_r = \pm 1

    it is the one with the least square error over all pairs of the vocabulary.

    Parameters are ``vector`` (v), ``gain`` (a) and ``bias`` (b). The last two start where a s + b has mean -2 and
    standard deviation 2 over the vocabulary's pairs: most words hardly know each other, some know each other well.

    No paper: it shows that a pattern may have parameters. Drawing edges has no gradient, so a ranker's loss does not
    reach them. P itself has one: outside ``torch.no_grad``, ``pattern(graph).pair(i, j)`` can be fitted to pairs that
    ought to meet, or, by way of log P of the edges that were drawn, to a ranker's loss (Ronald J. Williams, "Simple
    statistical gradient-following algorithms for connectionist reinforcement learning", Machine Learning 8, 1992).

    A document of u different word pieces costs O(u^2 rank); with a gradient a pair costs O(rank), and l words
    O(l^2 rank). v is computed once, in double precision; on another machine its last digits may differ.

    Args:
        backbone: name of a BERT, see :func:`socialgraph.backbone.load_bert`.
        rank: numbers for each word piece.

    Raises:
        OptionError: rank < 1, or more than the backbone's hidden size.
        CheckpointError: no such backbone.
    """

    sign: Tensor

    def __init__(self, backbone: str = "minilm", rank: int = 32) -> None:
        super().__init__()
        bert = load_bert(backbone)
        if not 1 <= rank <= bert.config.hidden_size:
            raise OptionError(f"rank must lie between 1 and {bert.config.hidden_size}, got {rank}")
        self.backbone = backbone
        self.rank = rank
        vector, sign, mean, deviation = first_layer(bert, rank)
        self.vector = torch.nn.Parameter(vector.float())
        self.register_buffer("sign", sign)
        self.gain = torch.nn.Parameter(torch.tensor(2.0 / deviation))
        self.bias = torch.nn.Parameter(torch.tensor(-2.0 - 2.0 * mean / deviation))

    def forward(self, graph: Data) -> Affinity:
        """Return P for every document of ``graph``, from ``input_ids``."""
        batch, ptr = documents(graph)

        def attraction(batch: Tensor, ptr: Tensor, input_ids: Tensor) -> Attraction:
            return Attraction(batch, ptr, F.embedding(input_ids, self.vector), self.sign, self.gain, self.bias)

        if torch.is_grad_enabled():
            return attraction(batch, ptr, graph.input_ids)
        return WordTable.of(
            batch, ptr, graph.input_ids, lambda words: attraction(words.document, words.bounds, words.piece).table()
        )


class Attraction(Affinity):
    r"""P = sigmoid(gain * <v_i, e v_j> + bias).

    Rounded as all affinities are, so that P is the same alone, in a batch and on every device, except where a gradient
    is asked for, which rounding would stop.

    Args:
        batch: document of each node, ``[N]``.
        ptr: bounds of the documents, ``[B + 1]``.
        vector: v, ``[N, r]``.
        sign: e, ``[r]``.
        gain: factor.
        bias: summand.
    """

    #: pairs at once; each needs two vectors
    block_size = 1 << 18

    def __init__(self, batch: Tensor, ptr: Tensor, vector: Tensor, sign: Tensor, gain: Tensor, bias: Tensor) -> None:
        super().__init__(batch, ptr)
        self.exact = not torch.is_grad_enabled()
        self.left = fixed(vector, FACTOR_STEP) if self.exact else vector.double()
        self.right = self.left * sign
        self.gain, self.bias = gain * 1.0, bias * 1.0  # of a graph, no longer the parameters

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for the pairs; see :meth:`Affinity.pair`."""
        return self.probability((self.left[i] * self.right[j]).sum(-1))

    def table(self) -> Tensor:
        """Return P of all pairs of each document, the same numbers as :meth:`pair`, row by row, ``[T]``."""
        squares = [
            (self.left[first:last] @ self.right[first:last].T).flatten() for first, last in pairwise(self.ptr.tolist())
        ]
        return self.probability(torch.cat([self.left.new_empty(0), *squares]))

    def probability(self, score: Tensor) -> Tensor:
        """Return the sigmoid."""
        p = torch.sigmoid(self.gain.double() * score + self.bias.double())
        return fixed(p, SUM_STEP) if self.exact else p


@torch.no_grad()
def first_layer(bert: Any, rank: int) -> tuple[Tensor, Tensor, float, float]:
    """Return v ``[V, rank]`` and e ``[rank]``, float64, with the mean and deviation of <v_i, e v_j> over all pairs.

    With x ``[V, h + 1]``, each word's input to the first layer and a 1 for the biases, and x = z r with r symmetric and
    the columns of z orthonormal (up to a factor), x M x^T = z (r M r) z^T: its best approximation of a rank keeps the
    eigenvalues of r M r that are largest in size.
    """
    embeddings, attention = bert.embeddings, bert.encoder.layer[0].attention.self
    word = embeddings.LayerNorm(embeddings.word_embeddings.weight + embeddings.token_type_embeddings.weight[0])
    x = F.pad(word.double(), (0, 1), value=1.0)
    query, key = (torch.cat([w.weight, w.bias[:, None]], 1).double() for w in (attention.query, attention.key))
    heads = bert.config.num_attention_heads
    form = query.T @ key / (heads * (query.size(0) / heads) ** 0.5)
    form = (form + form.T) / 2.0
    size, axes = torch.linalg.eigh(x.T @ x / len(x))
    size = size.clamp(min=1e-9 * float(size[-1])).sqrt()  # LayerNorm leaves a direction empty
    root = (axes * size) @ axes.T
    value, direction = torch.linalg.eigh(root @ form @ root)
    most = value.abs().topk(rank).indices
    vector = x @ ((axes / size) @ axes.T) @ direction[:, most] * value[most].abs().sqrt()
    sign = value[most].sign()
    mean = float((vector.mean(0).square() * sign).sum())
    square = float(((vector.T @ vector / len(x)).square() * sign[:, None] * sign).sum())
    return vector, sign, mean, (square - mean**2) ** 0.5
