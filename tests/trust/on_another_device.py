"""Recipes, edges and partitions on a GPU, beside the CPU: prints check -> what differs, as JSON.

Arguments are the folder of a backbone and checks: ``recipe=NAME``, ``edges=NAME``, ``partition=NAME``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from test_recipes import FOUR, QUERY, Recipe, objective
from torch import Tensor

from socialgraph.ranking import rerank

DEVICE = torch.device("cuda")


def both(name: str, backbone: str, *overrides: str) -> tuple[Recipe, Recipe]:
    """Return a recipe on the CPU, and on the device."""
    return Recipe(name, backbone, overrides), Recipe(name, backbone, overrides, DEVICE)


def of_recipe(backbone: str, recipe: str) -> list[str]:
    """Return which graphs, scores and gradients differ, and what is not on the device."""
    made = both(recipe, backbone)
    graphs = [one.graph(*FOUR) for one in made]
    found = of_graphs(*graphs)
    scores = [one.model(graph) for one, graph in zip(made, graphs, strict=True)]
    found += different("scores", *scores)
    for score in scores:
        objective(score).backward()
    gradients = [{key: p.grad for key, p in one.model.named_parameters()} for one in made]
    for key, gradient in gradients[0].items():
        found += different(f"gradient of {key}", gradient, gradients[1][key])
    queries, candidates = {"q": QUERY}, {"q": dict.fromkeys(FOUR, 1.0)}
    runs = [rerank(one.model, one.builder, queries, candidates, 200, progress=False)["q"] for one in made]
    here, there = (torch.tensor([run[document] for document in FOUR]) for run in runs)
    return found + different("re-ranked", here, there.to(DEVICE))


def of_circles(backbone: str, edges: str = "social", partition: str = "edge") -> list[str]:
    """Return which graphs differ, with and without their edges."""
    made = both("socialformer", backbone, f"edges={edges}", f"partition={partition}")
    found = of_graphs(*(recipe.graph(*FOUR) for recipe in made))
    for recipe in made:
        recipe.builder.keep_edges = True
    return found + of_graphs(*(recipe.graph(*FOUR) for recipe in made))


def of_graphs(here, there) -> list[str]:
    """Return the attributes of two batches that differ."""
    if set(here.keys()) != set(there.keys()):
        return [f"attributes {sorted(set(here.keys()) ^ set(there.keys()))}"]
    return [line for key, value in here if isinstance(value, Tensor) for line in different(key, value, there[key])]


def different(name: str, here: Tensor | None, there: Tensor | None) -> list[str]:
    """Return the name, and how, if two tensors differ or the second is on the CPU."""
    if here is None or there is None:
        return [] if here is there else [f"{name}: there is one of two"]
    if there.device.type != DEVICE.type:
        return [f"{name} is on the CPU"]
    there = there.detach().cpu()
    if here.shape != there.shape or not torch.allclose(here.detach().double(), there.double(), atol=1e-5):
        return [f"{name} differs"]
    return []


def told(check: Callable[..., list[str]], *args: str, **kwargs: str) -> str:
    """Return what a check found, in a line."""
    try:
        return "; ".join(check(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(backbone: str, *checks: str) -> None:
    """Check everything."""
    torch.set_num_threads(1)
    found = {}
    for check in checks:
        kind, _, name = check.partition("=")
        of_kind = of_recipe if kind == "recipe" else of_circles
        found[check] = told(of_kind, backbone, **{kind: name})
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
