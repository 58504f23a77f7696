"""The reader as a file that comes along: what training changed in MiniLM, of low rank, and the layer over [CLS]."""

from __future__ import annotations

import hashlib
from pathlib import Path

from safetensors.torch import save_file

from socialgraph import low_rank
from socialgraph.backbone import load_bert
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
    beside = file.with_name(f"{file.name}.part")
    save_file({**change, **score}, beside)
    beside.rename(file)
    return hashlib.sha256(file.read_bytes()).hexdigest()
