"""A training step where memory may run out: the batch is halved, and the halves again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from socialgraph.data.groups import Group, GroupCollator
from socialgraph.errors import TooLargeError
from socialgraph.ranking import processes
from socialgraph.ranking.memory import free, if_it_fits, is_out_of_memory

Step = Callable[[torch.nn.Module, dict[str, Any]], Tensor]
"""Adds the gradients of a batch to a model's and returns the loss."""


def collated(collator: GroupCollator, groups: Sequence[Group]) -> dict[str, Any]:
    """Return what a collator makes of groups; where memory runs out, ``groups`` and None for the ``graph``.

    The step then builds them in halves.
    """
    built = if_it_fits(collator, groups)
    return {"graph": None, "groups": [tuple(group) for group in groups]} if built is None else built


class HalvedStep:
    """Takes a training step with a batch; where memory runs out with its halves, warning once.

    Gradients are those of the whole batch up to rounding: each part gets ``share``, its share of the batch's groups,
    by which its loss has to be multiplied. Several processes cannot halve, because each step waits for all of them.

    Args:
        step: takes a step with what fits.
        collator: builds the parts.
    """

    def __init__(self, step: Step, collator: GroupCollator) -> None:
        self.step = step
        self.collator = collator
        self.warned = False

    def __call__(self, model: torch.nn.Module, inputs: dict[str, Any]) -> Tensor:
        """Add the batch's gradients to the model's and return its loss.

        Raises:
            TooLargeError: a group does not fit even alone, or the batch does not and there are several processes.
        """
        groups = [Group(*group) for group in inputs["groups"]]
        if processes.count() > 1:  # they have hooks on their gradients, and never try again
            loss = self._if_it_fits(model, inputs, groups)
            assert loss is not None
            return loss
        return self._part(model, inputs, groups, len(groups))

    def _part(self, model: torch.nn.Module, inputs: dict[str, Any], groups: list[Group], whole: int) -> Tensor:
        # A step that fails half-way has added some gradients and not others. So those of earlier batches of an
        # accumulation wait aside, and what the failed step left can be thrown away.
        waiting = [(parameter, parameter.grad) for parameter in model.parameters() if parameter.grad is not None]
        model.zero_grad()
        loss = self._if_it_fits(model, {**inputs, "share": len(groups) / whole}, groups)
        if loss is None:
            model.zero_grad()
            inputs.clear()  # the batch's graphs, which the caller holds too
            free()
            self._warn(len(groups))
            middle = (len(groups) + 1) // 2
            halves = [groups[:middle], groups[middle:]]
            loss = torch.stack([self._part(model, collated(self.collator, half), half, whole) for half in halves]).sum()
        for parameter, gradient in waiting:
            parameter.grad = gradient if parameter.grad is None else gradient.add_(parameter.grad)
        return loss

    def _if_it_fits(self, model: torch.nn.Module, inputs: dict[str, Any], groups: list[Group]) -> Tensor | None:
        """Return the loss of a step, None where memory runs out and the groups can be halved.

        A function of its own: an error holds the tensors of all frames that it passed, and must be gone before the
        halves are tried.
        """
        try:
            return self.step(model, inputs)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if len(groups) == 1 or processes.count() > 1:
                raise self._too_large(groups) from error
        return None

    def _warn(self, groups: int) -> None:
        if self.warned:
            return
        self.warned = True
        warnings.warn(
            f"out of memory on a batch of {groups} groups: halved; per_device_train_batch_size={groups // 2} and "
            "gradient_accumulation_steps twice as high would avoid it",
            stacklevel=2,
        )

    def _too_large(self, groups: list[Group]) -> TooLargeError:
        if len(groups) > 1:
            return TooLargeError(
                f"out of memory on a batch of {len(groups)} groups, and several processes cannot halve it; "
                f"use per_device_train_batch_size={len(groups) // 2}, gradient_accumulation_steps twice as high"
            )
        (query_id, _, documents), builder = groups[0], self.collator.builder
        length, longest = max(zip(builder.tokens.lengths(documents, builder.documents), documents, strict=True))
        return TooLargeError(
            f"query {query_id!r}: its {len(documents)} documents do not fit in memory even alone; the longest, "
            f"{longest!r}, has {length} word pieces; lower document_length or the group's negatives"
        )
