"""The reader as a file that comes along: what training changed in MiniLM, of low rank, and the layer over [CLS]."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save

from socialgraph import low_rank
from socialgraph.backbone import load_bert
from socialgraph.data.files import atomic_write, sha256
from socialgraph.nn import MaxP
from socialgraph.nn.bert_weights import bert_weights


def publish(model: MaxP, file: Path, rank: int) -> str:
    """Write the file of ``minilm-reader`` and return its sha256, which ``socialgraph/backbone.py`` has to name.

    Args:
        model: the reader.
        file: where to.
        rank: of each linear layer's change.
    """
    after = bert_weights(model.embedding, model.layers)
    before = load_bert("minilm").state_dict()
    change = low_rank.cut(before, {name: after[name].detach() for name in before if name in after}, rank)
    score = {f"score.{name}": value.detach().clone() for name, value in model.score.state_dict().items()}
    with atomic_write(file, "wb") as written:
        written.write(save({**change, **score}))
    return sha256(file)
