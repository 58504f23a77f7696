"""experiments/lab/warm_up.py and pack.py: what a study makes before it trains, and takes along."""

import tarfile

import pytest
from safetensors import safe_open
from studies import ANIMALS, ROWS, planned, study, value_of

from socialgraph.data import read_run
from socialgraph.errors import InputError


def test_passages_begin_where_questions_are_asked(tmp_path, budget):
    from lab.evidence import Evidence, read_evidence
    from lab.warm_up import passages

    from socialgraph.data import load_folder

    folder = tmp_path / "data" / "wtq"
    collection = load_folder(folder)
    evidence = read_evidence(folder)
    backbone = budget[3].removeprefix("model.backbone=")
    found = passages(collection, "train", evidence, backbone, 8)
    words = {animal: collection.documents[animal].text.split() for animal in ANIMALS[:3]}
    assert {one.doc_id: one.text for one in found.documents.values()} == {
        f"{animal}@{7 + 12 * place}": " ".join(words[animal][7 + 12 * place :][:8])
        for place, animal in enumerate(ANIMALS[:3])
    }
    split = found["train"]
    assert split.qrels["train-heron"] == {"heron@19": 1}
    assert set(split.candidates["train-heron"]) == {"otter@7", "badger@31"}
    with pytest.raises(InputError, match="starts at 99, behind its 30 pieces"):
        passages(collection, "train", {"train-otter": Evidence("otter", 99, 100)}, backbone, 8)
    with pytest.raises(InputError, match=r"wtq: no training question has evidence: warm_up\.groups=0 goes without"):
        passages(collection, "train", {}, backbone, 8)


def test_parts_share_a_warm_up(path):
    def warmed(*typed, data="wtq"):
        (run, *_) = [run for run in planned(*typed) if run.config.data.label == data and run.row.name == "parade"]
        return run.warm_up.identity

    wanted = warmed()
    assert warmed("part=tries") == warmed("data.queries.test=3", "measures=[AP]") == wanted
    assert wanted != warmed("part=tales", data="fairytale")
    assert wanted != warmed("warm_up.groups=3")
    assert planned("warm_up.groups=0")[0].warm_up is None


def test_a_pack_holds_all_that_is_needed(budget, tmp_path):
    file = tmp_path / "study.tar.xz"
    study(*budget, ROWS, "data.depth=3", f"pack={file}")
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "there")
    with safe_open(tmp_path / "there" / "backbone" / "model.safetensors", "pt") as weights:
        assert {str(weights.get_tensor(key).dtype) for key in weights.keys()} == {"torch.float16"}  # noqa: SIM118
    run = read_run(tmp_path / "there" / "data" / "wtq" / "run.bm25.test_bal.txt")
    assert list(run["test_bal-toad"]) == ANIMALS[:3]
    there = [f"data_root={tmp_path / 'there' / 'data'}", f"model.backbone={tmp_path / 'there' / 'backbone'}"]
    rest = [one for one in budget if one.split("=")[0] not in ("data_root", "model.backbone")]
    study(*there, *rest, "rows=[bm25,parade]", "data.depth=3")
    folder = tmp_path / "results" / "wtq" / "test_bal"
    assert value_of(folder, "parade")["config"]["recipe"]["model"]["backbone"] == "warmed up"
    assert len(read_run(folder / "parade.0.run.gz")["test_bal-toad"]) == 3
