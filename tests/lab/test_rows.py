"""experiments/lab/rows.py: what a result depends on."""

import hashlib
import shutil
from functools import partial
from pathlib import Path

import pytest
from commands import configured
from lab.rows import backbone_name, composed, identity, rows, sources
from omegaconf import OmegaConf

from socialgraph.errors import OptionError
from socialgraph.nn import MaxP
from socialgraph.partition import Windows


class Own(MaxP):
    """A model from outside the package."""


MADE = partial(Windows, 16)


@pytest.fixture
def depends(hydra):
    """Return what gives the identity of what is typed."""
    configured("run")
    return lambda *typed: identity(composed(typed))


def test_what_a_run_depends_on_has_no_place(depends, tiny_bert, tmp_path):
    places = [(tmp_path / name, shutil.copytree(tiny_bert[0], tmp_path / name / "bert")) for name in ("one", "two")]
    there, elsewhere = (
        depends("data=wtq", f"data.root={root}", f"backbone={backbone}", "recipe=maxp") for root, backbone in places
    )
    assert there == elsewhere
    assert str(tmp_path) not in str(there)
    assert there["data"]["collection"]["path"] == "wtq"
    assert there["backbone"] == there["recipe"]["model"]["backbone"] == backbone_name(str(places[0][1]))
    # a folder of the user's own is told by its place alone
    own = [depends("data=folder", f"data.path={tmp_path / name}") for name in ("one", "two")]
    assert own[0] != own[1]
    # how fast it is, and how a split is typed, are no part of it
    assert depends("trainer.save_every=0") == depends()
    assert depends("data.splits.test=2019") == depends("data.splits.test='2019'")
    assert depends("recipe=bm25", "backbone=minilm") == depends("recipe=bm25", "backbone=minilm-reader")


def test_another_backbone_in_the_same_folder_is_another(tiny_bert, tmp_path, monkeypatch):
    bert = shutil.copytree(tiny_bert[0], tmp_path / "bert")
    before = backbone_name(str(bert))
    (bert / "notes.md").write_text("nobody reads this")
    backbone_name.cache_clear()
    assert backbone_name(str(bert)) == before
    weights = bert / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    backbone_name.cache_clear()
    assert backbone_name(str(bert)) != before
    assert backbone_name("bert-base-uncased") == "bert-base-uncased"
    # the package's own are meant by their names, even beside a folder that is called like one
    monkeypatch.chdir(tmp_path)
    bert.rename("minilm")
    backbone_name.cache_clear()
    assert backbone_name("minilm") == "minilm"
    assert backbone_name("./minilm").startswith("minilm ")


def test_an_edited_class_is_another_run():
    name, made = f"{__name__}.Own.from_backbone", f"{__name__}.MADE"
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    recipe = {"model": {"_target_": name}, "circles": {"_target_": made}, "training": {"loss": f"{__name__}.loss"}}
    assert sources(OmegaConf.create({"recipe": recipe})) == {name: digest, made: digest, f"{__name__}.loss": digest}


def loss(scores):
    """A loss of one's own."""
    return scores.sum()


def test_a_class_of_ones_own_must_be_there_and_typed(hydra):
    typed = ["recipe=socialformer", "edges.patterns.static_distance._target_=nobody.Mine"]
    configured("run", *typed)
    with pytest.raises(OptionError, match=r"nobody\.Mine: No module named 'nobody'"):
        identity(composed(typed))
    configured("run")  # a table's file may say so, the user has not
    with pytest.raises(OptionError, match=r"row: nobody\.Mine is not imported because a file says so: say classes="):
        composed(typed, "row")


@pytest.mark.parametrize("table", ["table1", "table2", "whole-documents", "trained"])
@pytest.mark.parametrize("size", ["cpu", "gpu"])
def test_every_row_of_a_table_is_a_system_of_its_own(hydra, table, size):
    config, seen = configured("run", f"table={table}", f"size={size}"), []
    _, known = rows(config)
    for row in known:
        one = identity(composed([f"table={table}", f"size={size}", *row.overrides]))
        if "short" in row.name or row.name == "firstp":
            assert one["recipe"]["document_length"] == config.size.short
        if one["recipe"]["circles"]:  # the paper has one k
            assert one["recipe"]["circles"]["k"] == config.size.long_circles
        assert one["recipe"] not in seen, f"{row.name} is the same as another row"
        seen.append(one["recipe"])
    assert len(seen) == {"table1": 28, "table2": 9, "whole-documents": 9, "trained": 7}[table]
    assert {one.to for one in config.report.differences} <= {row.name for row in known}
