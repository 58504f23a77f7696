"""Dynamic centrality: whom BERT looks at when it reads the query."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import cumsum, segment
from torch_geometric.utils.sparse import index2ptr

from socialgraph.backbone import has_bfloat16, load_bert, special_tokens
from socialgraph.edges.layout import documents, positions
from socialgraph.edges.pattern import Centrality
from socialgraph.errors import OptionError, check_choice, check_whole
from socialgraph.ranks import ranks

MODES = ("attention", "cosine")


class DynamicCentrality(Centrality):
    r"""P_dc(i, j) = f(w_i w_j) with w from BERT's [CLS] attention (paper, equations 6 and 7).

    1. Every token's weight is the cosine between its word embedding and the mean of the query's word
       embeddings. Negative cosines count as 0.
    2. The most relevant tokens, as many of the top 512 as fit beside the query in BERT's positions, go through BERT
       in document order, as ``[CLS] query [SEP] rel_1 ... rel_n [SEP]``.
    3. The attention that [CLS] pays them in the last layer (mean over heads) replaces their cosines. Where the
       query alone fills BERT's positions, the cosines stay.

    The paper does not say how the two scales meet (attention near 0.02, cosines near 0.08). As in the released code
    the attention is rescaled, so that its sum equals the sum of the cosines that it replaces.

    The BERT is a frozen copy of the backbone as it was before training: graphs do not drift while a model
    trains, and weights computed once can be kept. They may differ in the last digits between devices and batches.

    Args:
        backbone: name of a BERT (see :func:`socialgraph.backbone.load_bert`) with its tokenizer.
        mode: "attention" as above; "cosine" stops after step 1, which is cheaper and not the paper's.
        top: how many tokens go through BERT at most.
        bf16: read in bfloat16, which is faster where the hardware has it; "auto": only there; None: only on a GPU,
            where float32 takes nearly as long as the ranking model. Not the paper's, which says nothing of it: the
            weights are then slightly other ones, and about one edge in 2,000 is.

    Raises:
        OptionError: an unknown mode, top < 1, or bf16 none of True, False, "auto" and None.
        CheckpointError: no such backbone.
    """

    costly = True

    def __init__(
        self,
        backbone: str = "minilm",
        mode: str = "attention",
        top: int = 512,
        bf16: bool | Literal["auto"] | None = None,
    ) -> None:
        super().__init__()
        check_choice("mode", mode, MODES)
        check_whole("top", top, 1)
        if not isinstance(bf16, bool) and bf16 not in ("auto", None):
            raise OptionError(f"bf16 must be True, False, 'auto' or None, got {bf16!r}")
        self.backbone = backbone
        self.mode = mode
        self.top = top
        self._bf16 = bf16
        self.cls, self.sep = special_tokens(backbone)
        bert = load_bert(backbone, segments=2)
        # Of the last layer only the attention's queries and keys are needed.
        self.last = bert.encoder.layer[-1].attention.self
        bert.encoder.layer = bert.encoder.layer[:-1]
        self.bert = bert.eval().requires_grad_(False)
        self.last.requires_grad_(False)

    @property
    def bf16(self) -> bool:
        """Whether BERT reads in bfloat16 on the device where it is."""
        if isinstance(self._bf16, bool):
            return self._bf16
        device = self.last.key.weight.device
        return (self._bf16 == "auto" or device.type == "cuda") and has_bfloat16(device)

    def train(self, mode: bool = True) -> DynamicCentrality:
        """Stay in evaluation mode: what weighs does not learn, and dropout would make weights random."""
        return super().train(False)

    @torch.no_grad()
    def weights(self, graph: Data) -> Tensor:
        """Return the weights from ``input_ids``, ``query_ids`` and ``query_length``: ``[N]`` float32."""
        batch, ptr = documents(graph)
        cosine = self.cosines(graph, batch).clamp(min=0)
        if self.mode == "cosine" or cosine.numel() == 0:
            return cosine
        room = self.bert.config.max_position_embeddings - 3 - graph.query_length
        best = (ranks(cosine, batch) < room.clamp(max=self.top)[batch]).nonzero().flatten()
        if best.numel() == 0:
            return cosine
        attention = self.attention(graph, best, batch, ptr)
        # segment by segment, because a GPU adds what is scattered in any order
        bounds = index2ptr(batch[best], ptr.numel() - 1)
        replaced, total = (segment(x, bounds)[batch[best]] for x in (cosine[best], attention))
        return cosine.index_put((best,), attention * replaced / total)

    def cosines(self, graph: Data, batch: Tensor) -> Tensor:
        """Return each token's cosine with its query in the word embedding space, ``[N]``."""
        words = self.bert.embeddings.word_embeddings.weight
        query = F.normalize(segment(words[graph.query_ids], cumsum(graph.query_length), reduce="mean"), dim=-1)
        if words.is_cuda:  # one product for the vocabulary, so that no token's embedding is copied
            return (F.normalize(words, dim=-1) @ query.T)[graph.input_ids, batch]
        return (F.normalize(words[graph.input_ids], dim=-1) * query[batch]).sum(-1)

    def attention(self, graph: Data, best: Tensor, batch: Tensor, ptr: Tensor) -> Tensor:
        """Return the last layer's [CLS] attention at the tokens ``best`` (sorted node ids), ``[len(best)]``."""
        config, device = self.bert.config, ptr.device
        chosen = torch.bincount(batch[best], minlength=ptr.numel() - 1)
        asked = chosen > 0  # only these documents go through BERT; row[d] is the row of document d
        row, size = asked.cumsum(0) - 1, int(asked.sum())
        owner = torch.repeat_interleave(graph.query_length)
        query_place = 1 + positions(owner, cumsum(graph.query_length))
        place = positions(batch[best], cumsum(chosen)) + (graph.query_length + 2)[batch[best]]
        first = graph.query_length[asked] + 2  # the place of the first relevant token
        length = first + chosen[asked] + 1
        document, in_row = torch.arange(size, device=device), asked[owner]
        ids = torch.full((size, int(length.max())), config.pad_token_id, device=device)
        ids[:, 0] = self.cls
        ids[row[owner[in_row]], query_place[in_row]] = graph.query_ids[in_row]
        ids[document, first - 1] = self.sep
        ids[row[batch[best]], place] = graph.input_ids[best]
        ids[document, length - 1] = self.sep
        column = torch.arange(ids.size(1), device=device)
        inside = column < length[:, None]
        heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        types = (column >= first[:, None]).long()
        with torch.autocast(device.type, torch.bfloat16, enabled=self.bf16):
            if device.type == "cuda" and self.bf16 and config.hidden_act == "gelu":
                hidden = self.read_packed(ids, inside, types, torch.bfloat16)
            else:
                hidden = self.bert(input_ids=ids, attention_mask=inside.long(), token_type_ids=types).last_hidden_state
            query = self.last.query(hidden[:, 0]).view(size, heads, width)
            keys = self.last.key(hidden).view(size, -1, heads, width)
        logits = torch.einsum("bhd,bshd->bhs", query.float(), keys.float()) / width**0.5
        attention = logits.masked_fill(~inside[:, None], -torch.inf).softmax(-1).mean(1)
        return attention[row[batch[best]], place]

    def read_packed(self, ids: Tensor, inside: Tensor, types: Tensor, kind: torch.dtype) -> Tensor:
        """Return BERT's states but the last layer's, ``[B, L, E]``, by the kernels of the ranking models' layers.

        Args:
            ids: word pieces, ``[B, L]``.
            inside: which places are no padding, ``[B, L]``; one row has none.
            types: segment of each, ``[B, L]``.
            kind: of the states.
        """
        from socialgraph.kernels.bert_layer import attend, transform  # Triton comes with PyTorch for GPUs alone

        eps, heads = self.bert.config.layer_norm_eps, self.bert.config.num_attention_heads
        place, ptr = inside.flatten().nonzero().flatten(), cumsum(inside.sum(1))
        x = self.bert.embeddings(input_ids=ids, token_type_ids=types).flatten(0, 1)[place].to(kind)
        for layer in self.bert.encoder.layer:
            own, after = layer.attention.self, layer.attention.output
            parts = (after.dense, after.LayerNorm, layer.intermediate.dense, layer.output.dense, layer.output.LayerNorm)
            asking, others = (
                [weight for part in some for weight in (part.weight, part.bias)]
                for some in ((own.query, own.key, own.value), parts)
            )
            x = transform(*attend(x, heads, ptr, ids.size(1), asking), others, (eps, eps))
        return x.new_zeros(ids.numel(), x.size(1)).index_copy_(0, place, x).view(*ids.shape, -1)
