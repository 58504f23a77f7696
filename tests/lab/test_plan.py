"""experiments/lab/plan.py: what a result depends on."""

import shutil

from lab.plan import backbone_name, composed, identity


def moved(places):
    """What depends on a cache and a backbone: the same, wherever they lie."""
    root, backbone = places
    typed = ["data=wtq", f"data.root={root}", f"backbone={backbone}", "recipe=maxp"]
    return identity(composed(typed))


def test_what_a_run_depends_on_has_no_place(hydra, tiny_bert, tmp_path):
    one, two = (shutil.copytree(tiny_bert[0], tmp_path / name / "bert") for name in ("one", "two"))
    there, elsewhere = moved((tmp_path / "one", one)), moved((tmp_path / "two", two))
    assert there == elsewhere
    assert str(tmp_path) not in str(there)
    assert there["data"]["collection"]["path"] == "wtq"
    assert there["backbone"] == there["recipe"]["model"]["backbone"] == backbone_name(str(one))
    assert identity(composed(["data=fairytale"]))["data"]["collection"]["path"] == "fairytale"
    # a folder of the user's own is told by its place alone
    own = [identity(composed(["data=folder", f"data.path={tmp_path / name}"])) for name in ("one", "two")]
    assert own[0] != own[1]


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


def test_a_first_stage_has_no_backbone(hydra):
    one, two = (identity(composed(["recipe=bm25", f"backbone={name}"])) for name in ("minilm", "minilm-reader"))
    assert one == two
