"""One learning rate for BERT, another for what stands on it."""

from __future__ import annotations

import torch

#: how the names of BERT's parameters begin, in every :class:`~socialgraph.nn.BertRanker`; of a
#: :class:`~socialgraph.nn.WholeDocument` all, its head too
BERT = ("embedding.", "layers.", "pooler.", "encoder.")


def set_head_rate(optimizer: torch.optim.Optimizer, model: torch.nn.Module, rate: float) -> None:
    """Cut each of an optimizer's groups in two, BERT's parameters and the others, and give the others their own rate.

    In place, before anything is trained, because the schedule and checkpoints read this list.

    Args:
        optimizer: of the model's parameters.
        model: tells by their names which are BERT's.
        rate: of the others.
    """
    head = {id(parameter) for name, parameter in model.named_parameters() if not name.startswith(BERT)}
    bert, rest = [], []
    for group in optimizer.param_groups:
        bert.append({**group, "params": [p for p in group["params"] if id(p) not in head]})
        rest.append({**group, "params": [p for p in group["params"] if id(p) in head], "lr": rate})
    optimizer.param_groups[:] = [group for group in bert + rest if group["params"]]
