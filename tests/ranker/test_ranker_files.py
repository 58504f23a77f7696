"""A ranker's folder is whole or refused, names no code that runs, and comes back as it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from commands import write_tales
from full_disk import files_no_larger_than
from safetensors.torch import load_file, save_file

import socialgraph
from socialgraph import Ranker
from socialgraph.data import TrainingGroups, load_folder
from socialgraph.errors import CheckpointError, OutputError
from socialgraph.nn import MaxP
from socialgraph.partition import Whole
from socialgraph.ranker.training import record, with_candidates
from socialgraph.recipes.compose import recipes

TEXTS = ["w1 w2 w3 w9. " * 9, "w4 w5", "w1 w1 w7 w8 " * 20]
FIRST_STAGES = {"bm25", "ql"}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tales")
    write_tales(folder)
    return str(folder / "bert")


def ranker(bert, name="socialformer-edge", *overrides, **options) -> Ranker:
    sizes = {"document_length": 40, "query_length": 8, "window": 16}
    return Ranker.from_recipe(name, *overrides, backbone=bert, **sizes, **options).count(TEXTS)


@pytest.mark.parametrize("name", sorted(set(recipes()) - FIRST_STAGES))
def test_every_recipe_is_saved_and_loaded(bert, name, tmp_path):
    smaller = ["recipe.document_length=40"] + (["recipe.model.passages=2"] if name == "parade-original" else [])
    if name in ("colbert", "parade-original", "keyb-parade5"):
        smaller += ["recipe.passages.size=16"]
    if name == "idcm":
        smaller += ["recipe.passages.size=12"]
    if name in ("keyb-bm25", "keyb-binb"):
        smaller += ["recipe.passages.size=12", "+recipe.model.length=60"]
    one = ranker(bert, name, *smaller)
    one.save_pretrained(tmp_path)
    again = Ranker.from_pretrained(tmp_path)
    assert again.rank("w1 w2", TEXTS) == one.rank("w1 w2", TEXTS)
    again.save_pretrained(tmp_path / "again")  # a folder of a folder is the same
    assert (tmp_path / "ranker.json").read_text() == (tmp_path / "again/ranker.json").read_text()


def test_pair_counts_travel(bert, tmp_path):
    one = ranker(bert, "socialformer", "edges=pmi", "edges.patterns.pmi.least=1").count(TEXTS * 2)
    scores = one.rank("w1 w2", TEXTS)
    one.save_pretrained(tmp_path)
    again = Ranker.from_pretrained(tmp_path)
    assert again.statistics.texts is None
    assert again.rank("w1 w2", TEXTS) == scores


def test_weights_of_patterns_travel(bert, tmp_path):
    one = ranker(bert, "socialformer", "edges=learned", "+edges.patterns.learned.rank=4")
    with torch.no_grad():
        one.parts.edges.patterns["learned"].bias.add_(3.0)
    one.save_pretrained(tmp_path)
    again = Ranker.from_pretrained(tmp_path)
    assert torch.equal(again.parts.edges.patterns["learned"].bias, one.parts.edges.patterns["learned"].bias)
    assert again.rank("w1 w2", TEXTS) == one.rank("w1 w2", TEXTS)


def test_options_of_the_draw_travel(bert, tmp_path):
    one = ranker(bert, "socialformer-edge", "recipe.draws=3", "edges=social", "+edges.draw=expected")
    one.save_pretrained(tmp_path)
    builder = Ranker.from_pretrained(tmp_path).builder({})
    assert (builder.draws, builder.edges.draw) == (3, "expected")
    assert ranker(bert, "maxp", "recipe.draws=3").builder({}).draws == 1, "nothing is drawn for passages"


class Mine(Whole):
    """A user's own class, with an argument and a weight."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("number", torch.tensor([float(width)]))


def test_a_class_of_ones_own_is_taken_only_from_the_user(bert, tmp_path):
    one = ranker(bert, partition=Mine(width=5))
    one.parts.circles.number += 1.0
    one.save_pretrained(tmp_path)
    told = rf"'{Mine.__module__}.Mine' is no class of socialgraph, .* pass it, classes=\[Mine\]"
    with pytest.raises(CheckpointError, match=told):
        Ranker.from_pretrained(tmp_path)
    for classes in ([Mine], [f"{Mine.__module__}.Mine"]):
        again = Ranker.from_pretrained(tmp_path, classes=classes)
        assert (type(again.parts.circles), again.parts.circles.width) == (Mine, 5)
        assert again.parts.circles.number.item() == 6.0
        assert again.rank("w1 w2", TEXTS) == one.rank("w1 w2", TEXTS)


def evil(folder):
    """Return descriptions that must make nothing: code, and classes of the package that write files or are large."""
    names = [
        "evil.Module", "os.system", "socialgraph.data.load_pydocs", "socialgraph.recipes.classes.imported",
        "socialgraph.partition.Windows.__init__",
    ]  # fmt: skip
    large = {"_target_": "socialgraph.nn.MaxP", "vocab_size": 10**7}
    return [
        *({"_target_": name} for name in names),
        {"_target_": "socialgraph.data.Cache", "folder": str(folder / "made")},
        large,
        {"_target_": "socialgraph.partition.RandomCircles", "like": large},
        {"_target_": "socialgraph.edges.SocialEdges", "patterns": {"a": large}},
    ]


@pytest.fixture(scope="module")
def saved(bert, tmp_path_factory) -> Path:
    return ranker(bert).save_pretrained(tmp_path_factory.mktemp("saved"))


@pytest.fixture
def changed(saved, tmp_path):
    """Return a function that loads the ranker with another ranker.json."""

    def load(change):
        for file in saved.iterdir():
            if file.name != "ranker.json" and not (tmp_path / file.name).exists():
                (tmp_path / file.name).symlink_to(file)
        about = json.loads((saved / "ranker.json").read_text())
        change(about)
        (tmp_path / "ranker.json").write_text(json.dumps(about))
        return Ranker.from_pretrained(tmp_path)

    return load


@pytest.mark.parametrize("number", range(9))
def test_a_file_makes_nothing_but_the_parts_of_a_ranker(changed, number, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Module: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(MaxP, "__init__", lambda *_, **__: pytest.fail("a model was made"))
    spec = evil(tmp_path)[number]
    for place in ("circles", "passages", "edges", "relevance"):
        with pytest.raises(CheckpointError, match=" is no "):
            changed(lambda about, place=place: about["recipe"].update({place: spec}))
    with pytest.raises(CheckpointError, match=" is no "):
        changed(lambda about: about["recipe"]["edges"]["patterns"].update(more=spec))
    about = json.loads((tmp_path / "config.json").read_text()) | {"readout": spec}
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(about))
    with pytest.raises(CheckpointError, match=" is no "):
        changed(lambda about: None)
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "made").exists()
    assert "evil" not in sys.modules


def centrality(about):
    return about["recipe"]["edges"]["patterns"]["dynamic_centrality"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a: a.update(format=2), "format 2, this version reads 1"),
        (lambda a: a.update(model="socialgraph.partition.Windows"), "is no HubRanker"),
        (lambda a: a.update(recipe=[]), "ranker.json: "),
        (lambda a: a.update(model="socialgraph.nn.MaxP"), "not a saved MaxP"),
        (lambda a: a["recipe"].pop("joint"), "'joint' is missing"),
        (lambda a: a["recipe"].update(document_length=0), "lengths must be at least 1"),
        (lambda a: a["recipe"].update(query_length="8"), "lengths must be at least 1, and whole"),
        (lambda a: a["recipe"]["circles"].update(k=-1), "k, the number of circles, must be at least 1"),
        (lambda a: a["recipe"]["circles"].update(depth=1), "socialgraph.partition.EdgeCircles: .*'depth'"),
        (lambda a: a["recipe"].update(circles={"_target_": "socialgraph.edges.Uniform"}), "Uniform' is no Partition"),
        (lambda a: centrality(a).update(backbone="user/evil"), "no backbone of"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_refused_in_one_line(changed, change, told):
    with pytest.raises(CheckpointError, match=told) as error:
        changed(change)
    assert "\n" not in str(error.value)


def test_folders_that_are_not_whole_are_refused(saved, tmp_path):
    with pytest.raises(CheckpointError, match=r"no ranker.json, so no whole ranker: .* Ranker.from_recipe\('maxp'"):
        Ranker.from_pretrained(tmp_path)
    for name in ("model.safetensors", "statistics.safetensors", "parts.safetensors", "tokenizer", "backbones"):
        half = tmp_path / f"without-{name}"
        half.mkdir()
        for file in saved.iterdir():
            if file.name != name:
                (half / file.name).symlink_to(file)
        with pytest.raises(CheckpointError):
            Ranker.from_pretrained(half)
    wrong = load_file(saved / "statistics.safetensors")["document_frequency"]
    (half / "statistics.safetensors").unlink()
    (half / "backbones").symlink_to(saved / "backbones")
    save_file({"document_frequency": wrong[:-1].clone()}, half / "statistics.safetensors")
    with pytest.raises(CheckpointError, match="expected a whole number for each of 200 word pieces"):
        Ranker.from_pretrained(half)


def test_another_process_gives_the_same_bits(bert, tmp_path):
    """It needs nothing outside of the folder, and not what puts recipes together."""
    one = ranker(bert)
    one.save_pretrained(tmp_path)
    code = (
        "import sys\nsys.modules.update(hydra=None, omegaconf=None)\nfrom socialgraph import Ranker\n"
        f"print(Ranker.from_pretrained({str(tmp_path)!r}).rank('w1 w2', {TEXTS!r}))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(socialgraph.__file__).parents[1])}
    Path(bert).rename(f"{bert}.gone")
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    finally:
        Path(f"{bert}.gone").rename(bert)
    assert done.stdout == f"{one.rank('w1 w2', TEXTS)}\n", done.stderr


def test_neither_keys_nor_folders_of_this_machine_are_written(bert, tmp_path):
    """What is pushed to the hub names what others need, and nothing else."""
    one = ranker(bert, "socialformer-edge", "+training.arguments.logging_dir=/home/me")
    collection = with_candidates(load_folder(Path(bert).parent), ["train"], 3)
    options = {"hub_token": "hf_secret", "learning_rate": 0.5}
    told = record(collection, TrainingGroups(collection["train"], 1), "listwise", options, [{"step": 2}])
    one.history = {"training": told}
    one.save_pretrained(tmp_path / "saved")
    files = [file for file in (tmp_path / "saved").rglob("*") if file.is_file()]
    assert len(files) > 9
    for secret in ("hf_secret", "/home/me", str(Path(bert).parent)):
        assert [file.name for file in files if secret.encode() in file.read_bytes()] == [], secret
    assert "`learning_rate=0.5`" in (tmp_path / "saved" / "README.md").read_text()
    assert Ranker.from_pretrained(tmp_path / "saved").recipe["model"]["backbone"] == "bert"


def test_a_full_disk_leaves_the_ranker_that_was_there(bert, tmp_path):
    good = ranker(bert, "maxp")
    folder = good.save_pretrained(tmp_path / "saved")
    (folder / "notes.txt").write_text("mine")
    other = ranker(bert, "maxp", seed=1)
    with files_no_larger_than(50_000), pytest.raises(OutputError, match=r"saved: cannot be written .*; free the disk"):
        other.save_pretrained(folder)
    assert Ranker.from_pretrained(folder).rank("w1 w2", TEXTS) == good.rank("w1 w2", TEXTS)
    other.save_pretrained(folder)
    assert Ranker.from_pretrained(folder).rank("w1 w2", TEXTS) == other.rank("w1 w2", TEXTS)
    assert (folder / "notes.txt").read_text() == "mine"
    assert not [*folder.glob(".*")]
    for place in (tmp_path / "new", folder / "notes.txt"):  # on the full disk, and on a file
        with files_no_larger_than(50_000), pytest.raises(OutputError, match=f"{place.name}: cannot be written"):
            other.save_pretrained(place)
    assert not (tmp_path / "new").exists()


class Twice(MaxP):
    """Uses one layer twice, under two names."""

    def __init__(self, **bert):
        super().__init__(**bert)
        self.layers[1] = self.layers[0]
        self.again = self.score


def test_a_model_with_one_layer_under_two_names_comes_back(bert, tmp_path):
    model = Twice.from_backbone(bert)
    model.save_pretrained(tmp_path)
    again = Twice.from_pretrained(tmp_path)
    assert again.layers[1] is again.layers[0]
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())
    mine = ranker(bert, "maxp", f"model._target_={__name__}.Twice.from_backbone")
    mine.save_pretrained(tmp_path / "ranker")
    again = Ranker.from_pretrained(tmp_path / "ranker", classes=[Twice])
    assert again.rank("w1 w2", TEXTS) == mine.rank("w1 w2", TEXTS)


def test_a_compiled_ranker_comes_back(bert, tmp_path):
    one = ranker(bert, "maxp")
    scores = one.rank("w1 w2", TEXTS)
    one.model.layers[1] = torch.compile(one.model.layers[1])
    one.model = torch.compile(one.model)
    one.save_pretrained(tmp_path)
    assert Ranker.from_pretrained(tmp_path).rank("w1 w2", TEXTS) == scores


def test_it_is_pushed_as_it_is_saved(bert, monkeypatch, tmp_path):
    """The hub itself is left out: what would be sent is a folder that can be loaded."""
    sent = {}

    def upload(self, repo_id, folder_path, **options):
        sent[repo_id] = Ranker.from_pretrained(folder_path), options, Path(folder_path, "README.md").read_text()

    monkeypatch.setattr("huggingface_hub.HfApi.create_repo", lambda self, repo_id, **options: f"hub/{repo_id}")
    monkeypatch.setattr("huggingface_hub.HfApi.upload_folder", upload)
    one = ranker(bert, "maxp")
    assert one.push_to_hub("me/mine", commit_message="first") == "hub/me/mine"
    again, options, told = sent["me/mine"]
    assert 'Ranker.from_pretrained("me/mine")' in told
    assert options == {"commit_message": "first"}
    assert again.rank("w1 w2", TEXTS) == one.rank("w1 w2", TEXTS)
