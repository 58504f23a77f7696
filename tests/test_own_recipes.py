"""Recipes and models of one's own, from a folder of one's own and by name."""

import logging
import re
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from socialgraph import Ranker
from socialgraph.described import options_of
from socialgraph.errors import OptionError
from socialgraph.nn import MaxP
from socialgraph.partition import EdgeCircles, Partition
from socialgraph.recipes.build import build
from socialgraph.recipes.compose import compose_recipe, recipes

MINE = f"""
defaults: [/system@_here_, _self_]
name: Mine
model: {{_target_: {__name__}.Mine.from_backbone, backbone: "${{backbone}}", share: 0.25}}
passages: {{_target_: socialgraph.partition.Windows, size: "${{window}}"}}
"""


class Mine(MaxP):
    """A model of the user's own with one option."""

    def __init__(self, share: float = 1.0, **bert):
        super().__init__(**bert)
        self.share = share


class Anything(Partition):
    """Takes any options."""

    def __init__(self, **options):
        super().__init__()


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder of one's own with one recipe."""
    (tmp_path / "my recipes" / "recipe").mkdir(parents=True)
    (tmp_path / "my recipes" / "recipe" / "mine.yaml").write_text(MINE)
    return tmp_path / "my recipes"


def test_a_recipe_in_a_folder_of_ones_own(folder, tiny_bert):
    assert set(recipes(folder)) == {*recipes(), "mine"}
    ranker = Ranker.from_recipe("mine", config_dir=folder, classes=[Mine], backbone=tiny_bert[0], window=16)
    assert isinstance(ranker.model, Mine)
    assert ranker.model.share == 0.25
    assert ranker.parts.passages.size == 16


def test_it_may_be_missing(folder):
    with pytest.raises(OptionError, match="no recipe is called 'min'; did you mean mine"):
        compose_recipe("min", config_dir=folder)
    with pytest.raises(OptionError, match="no recipe is called 'mine'; "):
        compose_recipe("mine")
    with pytest.raises(OptionError, match="is no folder; recipes lie in <config_dir>/recipe"):
        compose_recipe("mine", config_dir=folder / "other")


@pytest.mark.parametrize("place", ["edges", "circles", "passages", "relevance", "model", "inside", "training"])
@pytest.mark.parametrize("named", [False, True])
def test_a_file_imports_no_module_and_runs_no_program(folder, tiny_bert, place, named, tmp_path, monkeypatch):
    """Of what the user has not named nothing is imported; what is named must be of the kind that stands there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "evil.py").write_text("open('imported', 'w')\n\ndef touch(**_):\n    open('ran', 'w')\n")
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    ran = "{_target_: evil.touch}"
    lines = {
        "inside": f"edges: {{_target_: socialgraph.edges.SocialEdges, patterns: {{a: {ran}}}}}",
        "training": "training: {loss: evil.touch, arguments: {}}",
    }
    text = re.sub(f"^{place}:.*", "", MINE, flags=re.M) + lines.get(place, f"{place}: {ran}")
    (folder / "recipe" / "evil.yaml").write_text(text)
    classes = [Mine, "evil.touch"] if named else [Mine]
    told = r"is no (class|EdgeSampler|Partition|Callable|HubRanker|Module)" if named else "because a file says so"
    if named and place == "training":
        return  # a loss is a function, and this one was named
    with pytest.raises(OptionError, match=told):
        Ranker.from_recipe("evil", config_dir=folder, classes=classes, backbone=tiny_bert[0])
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "imported").exists() is named


def test_a_program_that_runs_by_hydra_keeps_its_configuration(tmp_path):
    (tmp_path / "theirs.yaml").write_text("a: 1\n")
    with initialize_config_dir(str(tmp_path), version_base="1.3"):
        assert compose_recipe("maxp")["name"] == "BERT-MaxP"
        with pytest.raises(OptionError):
            compose_recipe("maxp", ["no_such=1"])
        assert compose("theirs") == {"a": 1}


def test_a_model_in_place_of_socialformer(caplog):
    with caplog.at_level(logging.WARNING):
        named = compose_recipe("socialformer", [f"model._target_={__name__}.Mine.from_backbone", "+model.share=0.5"])
    assert named["model"].keys() == {"_target_", "backbone", "share"}
    assert "Mine.from_backbone takes no inter_circle, " in caplog.text
    assert compose_recipe("socialformer")["model"]["leader"] == "central"


def test_a_wrong_option_is_no_default(tiny_bert):
    named = compose_recipe("socialformer", [f"model._target_={__name__}.Mine.from_backbone", "+model.shar=0.5"])
    assert named["model"]["shar"] == 0.5
    with pytest.raises(OptionError, match=r"Mine.from_backbone takes no 'shar'; did you mean share\?"):
        build(named["model"])


def test_options_of_a_class_are_those_that_it_hands_on():
    assert {"share", "dropout", "max_positions", "backbone"} <= set(options_of(Mine))
    assert set(options_of(Mine)) == {*options_of(MaxP), "share"}
    assert options_of(EdgeCircles) == ["k", "max_size", "keep"]
    assert options_of(Anything) is None
