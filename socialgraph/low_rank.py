"""What training changed in a BERT, small enough to ship: every linear layer's change as a product of two thin matrices.

For a weight W of a linear layer that became W', the change is cut to rank r by its singular values,

    W' - W = U S V^T  ~  (U_r S_r^1/2) (S_r^1/2 V_r^T),

which is the closest matrix of that rank (Eckart and Young, 1936). Each column of the first factor and each row of the
second is rounded to 4 bits, a whole number from -7 to 7 times a scale of its own: in a file of the same size, four
times the rank keeps more of the change than float16's digits do. Biases, layer norms and other small weights are kept
whole, as float16.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from socialgraph.errors import CheckpointError

#: a change with fewer numbers is kept whole
SMALL = 8192


@torch.no_grad()
def cut(before: Mapping[str, Tensor], after: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """Return what :func:`add` needs to come from one checkpoint to, nearly, the other.

    Weights that are equal are left out.

    Args:
        before: weights by name.
        after: the same names and shapes.
        rank: of the change of each large matrix, 1 or more.
    """
    change: dict[str, Tensor] = {}
    for name, value in after.items():
        delta = value.double() - before[name].double()
        if not delta.any():
            continue
        if delta.dim() != 2 or delta.numel() < SMALL or any(size % 2 for size in delta.shape):
            change[f"{name}.change"] = delta.half()
            continue
        u, s, v = torch.linalg.svd(delta, full_matrices=False)
        root = s[:rank].sqrt()  # shared, so that the scales of both factors are alike
        for part, factor in (("out", (u[:, :rank] * root).T), ("in", root[:, None] * v[:rank])):
            change[f"{name}.{part}"], change[f"{name}.{part}_scale"] = rounded(factor)
    return change


@torch.no_grad()
def add(weights: Mapping[str, Tensor], change: Mapping[str, Tensor]) -> None:
    """Add a change to weights, in place.

    Raises:
        CheckpointError: the change is of a weight that is not there, or has another shape.
    """
    for key, value in change.items():
        name, part = key.rsplit(".", 1)
        if part not in ("change", "out"):
            continue
        if name not in weights:
            raise CheckpointError(f"the change is of {name!r}, which the BERT does not have")
        if part == "change":
            delta = value.float()
        else:
            out, into = (unrounded(change[f"{name}.{side}"], change[f"{name}.{side}_scale"]) for side in ("out", "in"))
            delta = out.T @ into
        if delta.shape != weights[name].shape:
            raise CheckpointError(f"the change of {name!r} has the shape {tuple(delta.shape)}, "
                                  f"the BERT's weight {tuple(weights[name].shape)}")  # fmt: skip
        weights[name].add_(delta)


def rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows as 4-bit numbers, two in a byte, and each row's scale.

    Args:
        rows: ``[r, n]``, n even.

    Returns:
        ``[r, n / 2]`` uint8, an even place's number in the lower half of a byte, each with 8 added; and ``[r]``
        float16, the largest absolute value of a row divided by 7.
    """
    scale = (rows.abs().amax(1) / 7).half()
    near = (rows / scale.double().clamp(min=1e-12)[:, None]).round().clamp(-7, 7)
    number = (near + 8).to(torch.uint8)
    return (number[:, ::2] | number[:, 1::2] << 4).contiguous(), scale


def unrounded(packed: Tensor, scale: Tensor) -> Tensor:
    """Return the rows, ``[r, n]`` float32."""
    number = torch.stack([packed & 15, packed >> 4], -1).flatten(1).float() - 8
    return number * scale.float()[:, None]
