"""A model from outside the package is tried before anything is trained."""

import hashlib
from functools import partial
from pathlib import Path

import pytest
import torch
from commands import composed_from, configuration
from lab import execute
from lab.plan import Row, composed, identity, named_run, sources
from lab.recipe import Recipe, check_training
from omegaconf import OmegaConf

from socialgraph.errors import LawError, OptionError
from socialgraph.nn import MaxP
from socialgraph.partition import Windows


class Sociable(MaxP):
    """Looks at the documents beside."""

    def scores(self, graph):
        scores = super().scores(graph)
        return scores - scores.mean()


class Frozen(MaxP):
    """Cannot be trained."""

    def scores(self, graph):
        with torch.no_grad():
            return super().scores(graph)


class Plain(torch.nn.Module):
    """No model of this package's kind."""

    def __init__(self, backbone):
        super().__init__()


def check(tiny_bert, model, *typed):
    typed = [f"model.backbone={tiny_bert[0]}", f"recipe.model._target_={__name__}.{model}", *typed]
    config = composed_from("recipe=maxp", *typed)
    check_training(Recipe(config))


def test_a_broken_model_is_named(tiny_bert):
    with pytest.raises(LawError, match="Sociable breaks the law 'a batch is its documents alone' on the graph"):
        check(tiny_bert, "Sociable.from_backbone")


def test_only_a_model_that_is_trained_needs_gradients(tiny_bert):
    with pytest.raises(LawError, match="Frozen breaks the law 'gradients reach every parameter' on the graph"):
        check(tiny_bert, "Frozen.from_backbone")
    check(tiny_bert, "Frozen.from_backbone", "recipe.training=null")


def test_a_model_of_another_kind_is_refused(tiny_bert):
    with pytest.raises(OptionError, match=r"an instance of a BertRanker or HubRanker, .* got a Plain"):
        check(tiny_bert, "Plain")


def test_options_show_at_once(tiny_bert):
    with pytest.raises(OptionError, match=r"Sociable.from_backbone takes no 'pages'; there are: attention, "):
        check(tiny_bert, "Sociable.from_backbone", "+recipe.model.pages=3")


def test_the_classes_of_a_row_are_tried_once(tiny_bert, tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(execute, "check_training", lambda recipe: tried.append(recipe.name))
    typed = ["recipe=maxp", f"model.backbone={tiny_bert[0]}"]
    with configuration():
        as_it_is, learned = (composed([*typed, f"trainer.groups={groups}"]) for groups in (0, 2))
    execute.check_all([named_run(Row("maxp"), as_it_is, tmp_path, kind="untrained"),
                       named_run(Row("maxp"), learned, tmp_path)])  # fmt: skip
    assert len(tried) == 1


MADE = partial(Windows, 16)


def test_an_edited_model_is_another_run():
    name = f"{__name__}.Sociable.from_backbone"
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    made = f"{__name__}.MADE"  # no class and no function: the file of its module counts
    recipe = {"model": {"_target_": name}, "circles": {"_target_": made}}
    assert sources(OmegaConf.create({"recipe": recipe})) == {name: digest, made: digest}
    own, plain = (composed_from("recipe=maxp", *typed) for typed in ([f"recipe.model._target_={name}"], []))
    assert identity(own)["sources"] == {name: digest}
    assert "sources" not in identity(plain)


@pytest.mark.parametrize("typed", ["model._target_", "edges.patterns.static_distance._target_"])
def test_a_class_that_is_not_there_is_one_line_wherever_it_is_named(typed):
    config = composed_from("recipe=socialformer", f"{typed}=nobody.Mine")
    with pytest.raises(OptionError, match=f"{typed}=nobody.Mine: No module named 'nobody'"):
        sources(config)
