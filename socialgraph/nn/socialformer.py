"""Socialformer: friend circles that talk inside and across."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Data

from socialgraph.errors import OptionError, check_choice, check_whole
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.bert_ranker import BertRanker, score_layer
from socialgraph.nn.inter_circle import InterCircle
from socialgraph.nn.readout import Readout
from socialgraph.nn.sequences import LEADERS, POSITIONS, Sequences, circle_sequences

READS = ("updated", "high")


class Socialformer(BertRanker):
    """Scores documents through their circles (Zhou, Dou, Yuan, Ma, WWW 2022, sections 3.3 and 3.4).

    L blocks, as many as the BERT has layers. In each, the tokens of every circle and passage talk with the
    query and each other (:class:`~socialgraph.nn.BertConv`), then the leaders of a document talk with each
    other and are updated (:class:`~socialgraph.nn.InterCircle`). The leaders of the last block are pooled
    and a linear layer gives the score.

    A token that belongs to two circles has two states, which never merge: only leaders carry news across.
    A document without tokens has no circle; its pooled state is 0 and its score is the linear layer's bias.

    The released code puts BERT's pooler, tanh(W h + b), behind the leaders before they are pooled; here ``pooler=True``
    does. Where the backbone is a cross-encoder, it is on, and the linear layer is its classifier: before training, with
    ``readout="mean"`` and leaders that are [CLS], a document's score is the mean of the scores that the cross-encoder
    gives its circles and passages.

    Args:
        inter_circle: False leaves the leaders' talk out (an ablation).
        inter_heads: heads of the inter-circle transformer; as the BERT by default.
        inter_width: width of its feed-forward network; as the BERT by default.
        inter_shared: True: one inter-circle transformer and W^C for all blocks; False: one for each.
        inter: a module in place of the inter-circle transformer, such as a convolution of PyG: of the leaders' states
            ``x [C, E]`` and ``edge_index``, all pairs of leaders of a document, it makes ``[C, E]``. Each block has a
            copy; W^C stays.
        leader: "central": the central token leads a friend circle (paper); "cls": its [CLS] does (released
            code). Passages are led by their [CLS].
        readout: see :class:`~socialgraph.nn.Readout`.
        reads: "updated": the readout pools [low, high] W^C of the last block, so that an untrained model is
            BERT on each circle; "high": it pools the high states, as the paper's equation 11 is written.
        update: how W^C starts, see :class:`~socialgraph.nn.InterCircle`.
        positions: places of a circle's members, see :func:`~socialgraph.nn.circle_sequences`.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.

    Raises:
        OptionError: an option out of its range.
    """

    def __init__(
        self,
        inter_circle: bool = True,
        inter_heads: int | None = None,
        inter_width: int | None = None,
        inter_shared: bool = False,
        inter: Module | None = None,
        leader: str = "central",
        readout: str | Module = "max",
        reads: str = "updated",
        update: str = "low",
        positions: str = "packed",
        **bert: Any,
    ) -> None:
        super().__init__(**bert)
        check_choice("leader", leader, LEADERS)
        check_choice("positions", positions, POSITIONS)
        check_choice("reads", reads, READS)
        if reads == "high" and not inter_circle:
            raise OptionError("reads='high' needs inter_circle=True: without it there are no high states")
        for name, number in (("inter_heads", inter_heads), ("inter_width", inter_width)):
            check_whole(name, number, 1, or_none=True)
            if number is not None and inter is not None:
                raise OptionError(f"{name} is of the transformer that inter={type(inter).__name__} replaces")
        if inter is not None and not inter_circle:
            raise OptionError(f"inter={type(inter).__name__} needs inter_circle=True")
        layer: BertConv = self.layers[0]  # type: ignore[assignment]
        self.inter_shared = inter_shared
        self.leader = leader
        self.positions = positions
        self.reads = reads
        self.inter = ModuleList(
            InterCircle(
                layer.hidden_size,
                layer.num_heads if inter_heads is None else inter_heads,
                inter_width or layer.intermediate_size,
                layer.dropout.p,
                layer.output_norm.eps,
                update,
                inter,
            )
            for _ in range((1 if inter_shared else len(self.layers)) if inter_circle else 0)
        )
        if reads == "high" and not inter_shared:  # nothing reads what the last block makes of low and high states
            self.inter[-1].update.requires_grad_(False)
        self.readout = Readout(readout, layer)
        self.score = score_layer(self.hidden_size)

    def start(self) -> None:
        """Begin the readout's own state as BERT's [CLS]."""
        self.readout.start(self.embedding.word.weight[self.cls_token_id])

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names.
        """
        score: Tensor = self.score(self.documents(graph))
        return score.squeeze(-1)

    def documents(self, graph: Data) -> Tensor:
        """Return the pooled state of each document, ``[B, E]``: the document embedding of equation 11."""
        sequences = circle_sequences(graph, self.cls_token_id, self.sep_token_id, self.leader, self.positions)
        x = self.embedding(sequences.token, sequences.position, sequences.segment, sequences.positions)
        view = x[sequences.leader]
        for number, intra in enumerate(self.layers):
            inter = self.inter[0 if self.inter_shared else number] if len(self.inter) else None
            x, view = self.call(number, self._block, intra, inter, x, sequences, number == len(self.layers) - 1)
        pooled: Tensor = self.readout(self.pooled(view), sequences.document, sequences.document_segments)
        return pooled

    def _block(
        self, intra: BertConv, inter: InterCircle | None, x: Tensor, sequences: Sequences, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Return all states after one block, ``[T, E]``, and what the readout would see of the leaders, ``[C, E]``.

        After the last block only the leaders are read, so only they are computed and ``x`` stays as it was.
        """
        if last:
            low = intra.leaders(x, sequences.segments, sequences.leader)
        else:
            x = intra.circles(x, sequences.segments, self.attention)
            low = x.index_select(0, sequences.leader)  # whose gradient needs no sorting, as that of x[...] does
        if inter is None:
            return x, low
        updated, high = inter(low, sequences.document_segments, self.attention)
        view = updated if self.reads == "updated" else high
        # in place: nothing that is computed before reads these states again, and a copy is as long as all of them
        return x if last else x.index_put_((sequences.leader,), updated.to(x.dtype)), view
