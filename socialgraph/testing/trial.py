"""What all checks share: whatever a class raises becomes one line, and a document has one answer in any company."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from socialgraph.contracts import Violation
from socialgraph.errors import FROM_OUTSIDE, ContractError, raised
from socialgraph.testing.graphs import together

Subject = TypeVar("Subject", bound=torch.nn.Module)
Answer = TypeVar("Answer")
#: raises a violation, where there is one
Refuse = Callable[[Violation | None], None]


@contextmanager
def trial(subject: Subject, where: str) -> Iterator[tuple[Subject, Refuse]]:
    """Give a copy of what is checked, and what refuses it, for one graph.

    Args:
        subject: the partition, pattern or model.
        where: name of the graph.

    Raises:
        ContractError: it cannot be copied, or raises something.
    """

    def refuse(violation: Violation | None) -> None:
        if violation:
            raise ContractError(subject, violation.contract, where, violation.text)

    contract = "it can be copied"
    try:
        one = copy.deepcopy(subject)
        contract = "every graph gets an answer"
        yield one, refuse
    except (ContractError, *FROM_OUTSIDE):
        raise
    except BaseException as error:  # whatever the subject raises, the message says where
        raise ContractError(subject, contract, where, raised(subject, error)) from error


def _random_states() -> dict[str, object]:
    numpy = str(np.random.get_state(legacy=False)["state"])
    return {"torch": torch.get_rng_state().tolist(), "numpy": numpy, "random": random.getstate()}


def unnamed_argument(subject: object) -> Violation | None:
    """Return what ``repr`` leaves out of the constructor's arguments: scores are kept by what a class prints."""
    text = repr(subject)
    for name, parameter in inspect.signature(type(subject)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        wanted = f"{name}={getattr(subject, name)!r}" if hasattr(subject, name) else f"{name}="
        if wanted not in text:
            return Violation("repr names every argument", f"repr must say {wanted!r}, got {text!r}")
    return None


def check_answers(
    subject: torch.nn.Module,
    ask: Callable[[Batch], Sequence[Answer]],
    graph: Batch,
    difference: Callable[[Answer, Answer, str], str | None],
    refuse: Refuse,
) -> Sequence[Answer]:
    """Return the answers for a batch, if each document has the same one whenever and in whatever company it is asked.

    Args:
        subject: is switched to ``eval()`` on the way.
        ask: returns an answer for each document.
        graph: the batch; it must stay as it is.
        difference: says how two answers differ, the second of which was given in a way that has a name; or nothing.
        refuse: raises a violation.
    """
    before = {key: value.clone() for key, value in tensors(graph).items()}
    first = ask(graph)
    after = tensors(graph)
    for key, value in before.items():
        if key not in after or not torch.equal(value.nan_to_num(), after[key].nan_to_num()):
            refuse(Violation("inputs stay as they are", f"graph.{key} is another after the call"))
    documents, device = graph.to_data_list(), graph.input_ids.device
    states = _random_states()
    again = ask(graph)  # what a library does when it is first imported is done
    for name, state in _random_states().items():
        if state != states[name]:
            advice = "make one of your own"
            refuse(Violation("global random generators stay as they are", f"it uses or seeds that of {name}; {advice}"))
    alone = [ask(together([one], device))[0] for one in documents]
    turned = ask(together(documents[::-1], device))[::-1]
    subject.eval()
    for contract, answers, how in (
        ("the same graph gets the same answer", again, "when asked again"),
        ("a batch is its documents alone", alone, "alone"),
        ("the order of documents does not matter", turned, "in a batch turned around"),
        ("training and ranking get the same answer", ask(graph), "after eval()"),
    ):
        for number, (one, other) in enumerate(zip(first, answers, strict=True)):
            if what := difference(one, other, how):
                refuse(Violation(contract, f"document {number}: {what}"))
    return first


def tensors(graph: Data) -> dict[str, Tensor]:
    """Return the tensors of a graph and of its statistics, which all graphs of a collection share."""
    found = {key: value for key, value in graph.to_dict().items() if isinstance(value, Tensor)}
    for name in ("document_frequency", "idf"):
        found[f"statistics.{name}"] = getattr(graph.statistics, name)
    return found
