"""experiments/data.py builds, data=<name> finds it by itself, and data=hub takes a folder in the hub's layout."""

from pathlib import Path

import children
import pytest
from commands import EXPERIMENTS, composed_from
from excerpts import write_covidqa
from hydra.utils import instantiate

from socialgraph.data.files import built_folder
from socialgraph.errors import InputError


def configured(*overrides):
    return composed_from(*overrides).data


def data(*typed, **environment):
    return children.run(EXPERIMENTS / "data.py", *typed, **environment)


@pytest.mark.parametrize("name", ["wtq", "fairytale", "covidqa"])
def test_a_collection_that_is_not_built_names_the_one_command(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SOCIALGRAPH_CACHE", str(tmp_path))
    with pytest.raises(Exception, match="socialgraph data") as caught:
        instantiate(configured(f"data={name}").collection)
    cause = caught.value.__cause__
    assert isinstance(cause, InputError)
    missing = tmp_path / "collections" / name
    assert str(cause) == f"{missing}: no such folder; to build it, once: socialgraph data {name}"


def test_it_is_looked_for_where_it_is_built(tmp_path, monkeypatch):
    assert configured("data=wtq", "data.root=elsewhere").path == "elsewhere/wtq"
    for variable in ("SOCIALGRAPH_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
        assert Path(configured("data=wtq").path) == built_folder("wtq")
        assert built_folder("wtq").is_relative_to(tmp_path / variable)
        monkeypatch.delenv(variable)


def test_built_from_a_copy_and_found(tmp_path, monkeypatch):
    source = write_covidqa(tmp_path / "COVID-QA")
    refused = data("covidqa", "--source", source, SOCIALGRAPH_CACHE=str(tmp_path))
    assert refused.returncode == 1
    assert "covidqa: the files did not come out as they should; take an unpacked copy of https://git" in refused.stderr
    done = data("covidqa", "--source", source, "--unchecked", SOCIALGRAPH_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "collections" / "covidqa"
    assert done.stdout.splitlines()[-1] == f"covidqa: {folder}; data=covidqa finds it there"
    monkeypatch.setenv("SOCIALGRAPH_CACHE", str(tmp_path))
    collection = instantiate(configured("data=covidqa").collection)
    assert collection.name == "covidqa"
    assert list(collection["dev"].queries) == ["C018-37", "C018-38"]
    assert collection["dev"].has_candidates


def test_what_is_typed_wrong_is_one_line():
    unknown = data("wikipedia")
    assert unknown.returncode == 2
    assert unknown.stderr.splitlines()[-1].startswith("error: the collection must be one of wtq, ")
    assert data("wtq", "covidqa", "--source", ".").stderr.endswith("error: --source is the copy of one collection\n")


def test_the_hub_by_id(tmp_path):
    one = configured("data=hub", "data.id=mteb/scifact", "data.revision=abc")
    assert one.label == "mteb/scifact"
    assert dict(one.collection) == {
        "_target_": "socialgraph.data.load_hub", "dataset_id": "mteb/scifact", "qrels": None, "revision": "abc",
    }  # fmt: skip
