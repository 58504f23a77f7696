"""IDCM: a small model chooses the chunks that BERT reads."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import segment, to_dense_batch
from torch_geometric.utils.sparse import index2ptr

from socialgraph.data.graph import circle_document
from socialgraph.errors import check_choice, check_whole
from socialgraph.nn.bert_ranker import BertRanker, score_layer
from socialgraph.nn.hub_ranker import Objective, evaluating
from socialgraph.nn.selection import best, select
from socialgraph.ranks import ranks

#: what the kernel of exact matches reads, and how wide it is on words (K-NRM)
EXACT = ("words", "states")
EXACT_SIGMA = 1e-3


class IDCM(BertRanker):
    r"""A cascade inside each document: a small model (:class:`ESM`) ranks the chunks, BERT reads the best n of them.

    .. math:: s(d) = \sum_{r=1}^{n} w_r\, s_{(r)}

    with s_(1), s_(2), ... BERT's scores of the chunks that it read, best first, and learned weights w, which start at
    1. A rank that a document does not have counts 0, so the score of a document without chunks is 0.

    Hofstätter, Mitra, Zamani, Craswell and Hanbury, "Intra-Document Cascading: Learning to Select Passages for Neural
    Document Ranking", SIGIR 2021. Taken from it: both models, the weighted ranks, and three stages of training:

    - "passage": BERT learns to score one chunk of each document, the one with the highest ``circle_score``, or the
      first where the graph has none. (The paper trains on MS MARCO's passages, which have judgements of their own.)
    - "document": BERT reads all chunks, and the best n count.
    - "selection": BERT and weights stay as they are; the small model learns BERT's order (:func:`order_loss`). There is
      no judgement in it: the objective that ``forward`` is given is not used.

    Different here: any BERT with segments instead of DistilBERT, and the small model sees the word embeddings without
    positions. Circles of the graph are the chunks; the paper's have 50 tokens and 7 more that are read along on each
    side.

    Args:
        chunks: n, how many chunks of a document go through BERT.
        kernels: of the small model.
        conv_width: tokens that the small model's convolution sees at a time.
        exact: what the small model's kernel of exact matches reads, "words" or "states", see :class:`ESM`.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.

    Raises:
        OptionError: an option out of its range.
    """

    stages = ("passage", "document", "selection")

    def __init__(
        self, chunks: int = 4, kernels: int = 11, conv_width: int = 3, exact: str = "words", **bert: Any
    ) -> None:
        super().__init__(**bert)
        check_whole("chunks", chunks, 1)
        self.chunks = chunks
        self.esm = ESM(self.hidden_size, kernels, conv_width, exact)
        self.score = score_layer(self.hidden_size)
        self.weights = torch.nn.Parameter(torch.ones(chunks))

    def forward(self, graph: Data, objective: Objective | None = None) -> Tensor:
        """Return the score of each document, ``[B]``, by the cascade; or the loss of the stage.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names.
            objective: makes a loss of scores.
        """
        if objective is None:
            return self.scores(graph)
        if self.stage == "passage":
            return objective(self.passages(graph))
        if self.stage == "document":
            return objective(self.documents(graph))
        return order_loss(self.promise(graph), self._settled(graph), circle_document(graph), self.chunks)

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``: the small model chooses, BERT judges."""
        with torch.no_grad():  # a choice has no gradient
            promise = self.promise(graph)
        return self.documents(select(graph, best(promise, circle_document(graph), self.chunks)))

    def documents(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``, where BERT reads all chunks."""
        return self._ranked(self.judge(graph), graph, self.weights)

    def passages(self, graph: Data) -> Tensor:
        """Return BERT's score of one chunk of each document, ``[B]``."""
        first = getattr(graph, "circle_score", None)
        first = torch.zeros_like(graph.leader_index) if first is None else first
        graph = select(graph, best(first, circle_document(graph), 1))
        return self._ranked(self.judge(graph), graph, torch.ones_like(self.weights[:1]))

    def judge(self, graph: Data) -> Tensor:
        """Return BERT's score of each chunk, read with the query, ``[C]``."""
        return self.circle_scores(graph).float()

    def promise(self, graph: Data) -> Tensor:
        """Return the small model's score of each chunk, ``[C]``. BERT's embeddings get no gradient from it."""
        if graph.leader_index.numel() == 0:
            return self.esm.score.bias[:0]
        node, circle = graph.circle_index
        query = torch.repeat_interleave(graph.query_length)
        words = self.embedding.word.weight.detach()
        score: Tensor = self.esm(
            *to_dense_batch(F.embedding(graph.query_ids, words), query, batch_size=graph.query_length.numel()),
            *to_dense_batch(F.embedding(graph.input_ids[node], words), circle, batch_size=graph.leader_index.numel()),
            circle_document(graph),
        )
        return score

    def _settled(self, graph: Data) -> Tensor:
        """Return BERT's scores as they are: without dropout and without gradient, ``[C]``."""
        with evaluating(self):
            return self.judge(graph)

    def _ranked(self, score: Tensor, graph: Data, weights: Tensor) -> Tensor:
        """Return the weighted sum of the best scores of each document, ``[B]``."""
        document = circle_document(graph)
        rank = ranks(score.detach(), document)
        read = rank < weights.numel()
        return segment(weights[rank[read]] * score[read], index2ptr(document[read], graph.query_length.numel()))


class ESM(torch.nn.Module):
    r"""How well a chunk and a query match, by words in their context: IDCM's efficient student model.

    .. math::
        h_t &= \mathrm{ReLU}\Big(b + \sum_{o=0}^{width-1} W_o x_{t+o}\Big) \\
        K_k(q_i) &= \sum_{j \in chunk} \exp\Big(-\frac{(\cos(h_i, h_j) - \mu_k)^2}{2 \sigma_k^2}\Big) \\
        s &= v^\top \sum_{i \in query} \log \max(K(q_i), 10^{-4}) + c

    Query and chunk are convolved apart, with 0 behind their ends. Hofstätter et al., SIGIR 2021, where it is called CK;
    the kernels are those of Xiong, Dai, Callan, Liu and Power, "End-to-End Neural Ad-hoc Ranking with Kernel Pooling",
    SIGIR 2017: one for exact matches (mu 1, sigma 1e-3), and one for each of equal parts of [-1, 1] (of 11 kernels: mu
    0.9, 0.7, ..., -0.9, sigma 0.1).

    K-NRM's exact matches are those of words. States of a convolution are equal only where the words that follow are,
    too; there a sigma of 1e-3 finds next to nothing. So the kernel of exact matches reads the words' own embeddings
    here. With ``exact="states"`` it reads states like all others and has their sigma, as in IDCM's released code.

    Different here: the released code has a learned factor a for each kernel, :math:`\log \max(a K, 10^{-4})`. As long
    as a K is above the floor it moves all chunks of a document alike; below, it would move the floor.

    It is computed in float32, because half precision does not tell exact matches from others.

    Args:
        width: of an embedding, and of a state h.
        kernels: at least 2.
        conv_width: tokens that the convolution sees at a time.
        exact: what the kernel of exact matches reads, "words" or "states".

    Raises:
        OptionError: an option out of its range.
    """

    mu: Tensor
    sigma: Tensor

    def __init__(self, width: int, kernels: int = 11, conv_width: int = 3, exact: str = "words") -> None:
        super().__init__()
        check_choice("exact", exact, EXACT)
        check_whole("kernels", kernels, 2)
        check_whole("conv_width", conv_width, 1)
        self.conv_width = conv_width
        self.exact = exact
        self.conv = torch.nn.Conv1d(width, width, conv_width)
        self.score = torch.nn.Linear(kernels, 1)
        step = 2 / (kernels - 1)
        self.register_buffer(
            "mu", torch.tensor([1.0, *(1 - (k + 0.5) * step for k in range(kernels - 1))]), persistent=False
        )
        narrow = EXACT_SIGMA if exact == "words" else step / 2
        self.register_buffer("sigma", torch.tensor([narrow, *[step / 2] * (kernels - 1)]), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights; those of the kernels small, because logarithms over a whole query are large."""
        self.conv.reset_parameters()
        torch.nn.init.uniform_(self.score.weight, -0.01, 0.01)
        torch.nn.init.zeros_(self.score.bias)

    def forward(self, query: Tensor, in_query: Tensor, chunk: Tensor, in_chunk: Tensor, document: Tensor) -> Tensor:
        """Return the score of each chunk, ``[C]``.

        Args:
            query: embeddings of each document's query, ``[B, Q, width]``, 0 where ``in_query`` is False.
            in_query: what is a token and not padding, ``[B, Q]`` bool.
            chunk: embeddings of each chunk, ``[C, W, width]``, 0 where ``in_chunk`` is False.
            in_chunk: what is a token and not padding, ``[C, W]`` bool.
            document: of each chunk, ``[C]``.
        """
        with torch.autocast(query.device.type, enabled=False):
            cosine = self.context(query)[document] @ self.context(chunk).transpose(1, 2)  # [C, Q, W]
            same = cosine
            if self.exact == "words":
                same = F.normalize(query.float(), dim=-1)[document] @ F.normalize(chunk.float(), dim=-1).transpose(1, 2)
            here = in_query[document]
            features = [
                (torch.exp(-((read - mu) ** 2) / (2 * sigma**2)) * in_chunk[:, None]).sum(-1)  # [C, Q]
                for read, mu, sigma in zip([same, *[cosine] * (len(self.mu) - 1)], self.mu, self.sigma, strict=True)
            ]
            logarithm = torch.stack(features, -1).clamp(min=1e-4).log() * here.unsqueeze(-1)
            score: Tensor = self.score(logarithm.sum(1))
        return score.squeeze(-1)

    def context(self, x: Tensor) -> Tensor:
        """Return states of length 1 (or 0, where ReLU leaves nothing) from embeddings; both ``[S, W, width]``."""
        x = F.pad(x.float().transpose(1, 2), (0, self.conv_width - 1))
        return F.normalize(F.relu(self.conv(x)).transpose(1, 2), dim=-1)

    def __repr__(self) -> str:
        about = f"kernels={len(self.mu)}, conv_width={self.conv_width}, exact={self.exact!r}"
        return f"{type(self).__name__}({self.conv.in_channels}, {about})"


def order_loss(score: Tensor, target: Tensor, document: Tensor, amount: int) -> Tensor:
    r"""Return what it costs that ``score`` has another order than the best of ``target``: NDCG-Loss2.

    .. math::
        L^d = \sum_{i, j: y_i > y_j} \delta_{ij} \, |G_i - G_j| \log_2\big(1 + \exp(-(s_i - s_j))\big), \quad
        G_i = \frac{2^{y_i} - 1}{\mathrm{maxDCG}}, \quad
        \delta_{ij} = \Big|\frac{1}{D_{|\rho_i - \rho_j|}} - \frac{1}{D_{|\rho_i - \rho_j| + 1}}\Big|

    with :math:`D_k = \log_2(1 + k)` and :math:`\rho` the ranks by ``score``. The n best by ``target`` have the gains
    y = n, n - 1, ..., 1, all others 0. The mean is taken over the documents with more than n chunks: the others have no
    choice. Where there is none the loss is 0.

    Wang, Li, Golbandi, Bendersky and Najork, "The LambdaLoss Framework for Ranking Metric Optimization", CIKM 2018; the
    gains are IDCM's.

    Args:
        score: what learns, ``[C]``.
        target: what is learned, ``[C]``; ties go to the first.
        document: of each chunk, sorted, ``[C]``.
        amount: n.
    """
    size = torch.bincount(document)
    chosen = size > amount
    order = ranks(target, document)
    gain = (amount - order).clamp(min=0)
    # All pairs that count have one of the n best: a row for each place among them, a column for each chunk.
    place = torch.arange(amount, device=score.device)
    first = size.cumsum(0) - size
    by_order = torch.empty_like(order)
    by_order[first[document] + order] = torch.arange(order.numel(), device=score.device)
    winner = by_order[(first[document] + place[:, None]).clamp(max=max(order.numel() - 1, 0))]  # [n, C]
    row, column = (chosen[document] & (gain < amount - place[:, None])).nonzero().unbind(1)
    better, worse = winner[row, column], column

    rank = ranks(score.detach(), document)
    apart = (rank[better] - rank[worse]).abs()
    delta = 1 / torch.log2(1.0 + apart) - 1 / torch.log2(2.0 + apart)
    ideal = sum((2**y - 1) / math.log2(amount - y + 2) for y in range(1, amount + 1))
    weight = delta * (2.0 ** gain[better] - 2.0 ** gain[worse]) / ideal
    loss = weight * F.softplus(score[worse] - score[better]) / math.log(2)
    return loss.sum() / chosen.sum().clamp(min=1)
