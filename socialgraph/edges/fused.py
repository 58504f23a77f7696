"""How far coins lie above their thresholds, block by block: as torch does it, or in one fused kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from socialgraph.edges.coins import COIN_SIDES, finish


def coin_distances(
    lower: Tensor, higher: Tensor, gain: Tensor, near: Tensor, row: Tensor, column: Tensor,
    left: list[Tensor], right: list[Tensor],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return how far coins lie above their thresholds, about, and each row's smallest distance, above or below.

    ``[D, R, C]`` float32, negative for friends, and ``[D, R]``.

    Args:
        lower: hashes of the lower ends, ``[D, R]``; :func:`socialgraph.edges.coins.node_hashes`.
        higher: hashes of the higher ends, ``[D, C]``.
        gain: factor of the kernel, ``[D]``.
        near: the kernel at the distances of the pairs, ``[R, C]``.
        row: what a lower end adds, ``[D, R]``.
        column: what a higher end adds, ``[D, C]``.
        left: factors of the lower ends, each ``[D, R]``.
        right: factors of the higher ends, each ``[D, C]``.
    """
    coin = finish(lower[:, :, None] + higher[:, None, :])
    threshold = torch.addcmul(column[:, None], gain[:, None, None], near).add_(row[:, :, None])
    for x, y in zip(left, right, strict=True):
        threshold.addcmul_(x[:, :, None], y[:, None])
    distance = coin.float().sub_(threshold)
    return distance, torch.abs(distance, out=threshold).amin(2)  # written over: fresh memory costs more than this


@cache
def fused(device: torch.device, terms: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return :func:`coin_distances` as one kernel: Triton on a GPU, C++ on a CPU.

    It is tried on random numbers first. Where it cannot be compiled, or does not do the same, a warning says so and
    :func:`coin_distances` itself is returned: the edges are the same.

    Args:
        device: where the kernel runs.
        terms: number of factors of a node, ``len(left)``.
    """
    kernel = torch.compile(coin_distances, dynamic=True)
    draw = torch.Generator().manual_seed(0)
    documents, rows, columns = 2, 33, 150

    def random(*shape: int) -> Tensor:
        return torch.rand(shape, generator=draw).to(device)

    def hashes(*shape: int) -> Tensor:
        return torch.randint(-(1 << 31), 1 << 31, shape, generator=draw).int().to(device)

    example = (
        hashes(documents, rows), hashes(documents, columns), random(documents), random(rows, columns),
        COIN_SIDES * random(documents, rows), COIN_SIDES * random(documents, columns),
        [1024.0 * random(documents, rows) for _ in range(terms)],
        [1024.0 * random(documents, columns) for _ in range(terms)],
    )  # fmt: skip
    try:
        out = kernel(*example)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever a compiler may say
        why = str(error).strip().split("\n")[0] or type(error).__name__
    else:
        # Sums are rounded in another order. A wrong coin is off by millions.
        if all(torch.allclose(x, y, rtol=0.0, atol=64.0) for x, y in zip(out, coin_distances(*example), strict=True)):
            return kernel
        why = "it does not do what its parts do"
    warnings.warn(f"coins are tossed without a fused kernel, which is slower ({why})", stacklevel=2)
    return coin_distances
