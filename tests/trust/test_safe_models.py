"""A model's folder and a cache run nothing: no pickle, no code."""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from socialgraph import backbone
from socialgraph.data import Cache, Document, TermStatistics, Tokens
from socialgraph.errors import CheckpointError
from socialgraph.nn import Socialformer


class Canary:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def __reduce__(self):
        return open, (self.file, "w")


def pickles(folder: Path, canary: Path) -> None:
    """Put pickles of every name beside a model."""
    raw = pickle.dumps(Canary(canary))
    for name in ("training_args.bin", "model.pkl", "vocab.pkl", "adapter_model.bin", "pytorch_model.bin"):
        (folder / name).write_bytes(raw)


def test_pickles_are_never_loaded(tiny_bert, tmp_path):
    """Beside safetensors they are not looked at; instead of safetensors they are refused, with what to do."""
    sang = tmp_path / "sang"
    pickle.loads(pickle.dumps(Canary(sang))).close()  # it does what a pickle may do
    sang.unlink()
    bert, saved = tmp_path / "bert", tmp_path / "saved"
    shutil.copytree(tiny_bert[0], bert, ignore=shutil.ignore_patterns("bert", "saved"))
    Socialformer.from_backbone(tiny_bert[0]).save_pretrained(saved)
    for folder in (bert, saved):
        pickles(folder, sang)
    (bert / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "/nowhere", "peft_type": "LORA"}))
    backbone.load_bert(str(bert))
    backbone.load_tokenizer(str(bert))
    Socialformer.from_pretrained(saved)
    for folder, load in ((bert, backbone.load_bert), (saved, Socialformer.from_pretrained)):
        good = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").unlink()
        with pytest.raises(CheckpointError, match=r"[Nn]o (such )?file.*model.safetensors") as caught:
            load(str(folder))
        assert "\n" not in str(caught.value)
        torch.save(Canary(sang), folder / "model.safetensors")  # a zip with a pickle
        for content in ((folder / "model.safetensors").read_bytes(), pickle.dumps(Canary(sang)), good[:-1], b""):
            (folder / "model.safetensors").write_bytes(content)
            with pytest.raises(CheckpointError, match=r"header|does not hold"):
                load(str(folder))
        (folder / "model.safetensors").write_bytes(good)
        load(str(folder))
    assert not sang.exists()


def test_shards_are_safetensors(tiny_bert, tmp_path):
    bert = Path(tiny_bert[0])
    weights = load_file(bert / "model.safetensors")
    (bert / "model.safetensors").unlink()
    names = list(weights)
    for number in (1, 2):
        part = {name: weights[name] for name in names[number - 1 :: 2]}
        save_file(part, bert / f"model-{number}-of-2.safetensors", metadata={"format": "pt"})
    table = {name: f"model-{place % 2 + 1}-of-2.safetensors" for place, name in enumerate(names)}
    index = bert / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": table}))
    found = backbone.load_bert(str(bert)).state_dict()
    assert all(torch.equal(found[name], weight) for name, weight in weights.items())
    pickles(bert, tmp_path / "sang")
    for shard in ("pytorch_model.bin", "/etc/passwd", 5):
        index.write_text(json.dumps({"metadata": {}, "weight_map": table | {names[0]: shard}}))
        with pytest.raises(CheckpointError, match="only safetensors are loaded, no pickle"):
            backbone.load_bert(str(bert))
    assert not (tmp_path / "sang").exists()


def test_code_beside_a_model_never_runs(tiny_bert, tmp_path):
    bert, saved, ran = Path(tiny_bert[0]), tmp_path / "saved", tmp_path / "ran"
    Socialformer.from_backbone(tiny_bert[0]).save_pretrained(saved)
    want = backbone.load_bert(str(bert)).state_dict()
    code = f"open({str(ran)!r}, 'w')\nfrom transformers import *\nclass C(BertConfig): pass\nclass M(BertModel): pass\n"
    code += "class T(BertTokenizerFast): pass\n"
    for folder in (bert, saved):
        for name in ("mine.py", "modeling_bert.py", "__init__.py"):
            (folder / name).write_text(code)
        for file in ("config.json", "tokenizer_config.json"):
            values = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
            values["auto_map"] = {"AutoConfig": "mine.C", "AutoModel": "mine.M", "AutoTokenizer": ["mine.T", "mine.T"]}
            values["trust_remote_code"] = True
            (folder / file).write_text(json.dumps(values))
    values = json.loads((bert / "config.json").read_text())  # what else a config may ask of the library
    values |= {
        "attn_implementation": "somebody/kernel",
        "transformers_weights": "pytorch_model.bin",
        "dtype": "float16",
    }
    (bert / "config.json").write_text(json.dumps(values))
    model = backbone.load_bert(str(bert))
    assert type(model).__module__ == "transformers.models.bert.modeling_bert"
    assert model.config._attn_implementation == "sdpa"
    assert all(torch.equal(value, want[name]) for name, value in model.state_dict().items())
    try:
        tokenizer = backbone.load_tokenizer(str(bert))
    except CheckpointError:
        pass  # to refuse is as good
    else:
        assert type(tokenizer).__module__.startswith("transformers.")
    with pytest.raises(CheckpointError, match="unexpected keyword argument 'auto_map'"):
        Socialformer.from_pretrained(saved)
    assert not ran.exists()


def test_a_cache_opens_no_pickle(tiny_bert, tmp_path):
    documents = {"d": Document("d", "w1 w2"), "e": Document("e", "w3")}

    def ask():
        tokens = Tokens(tiny_bert[0], 10, cache=Cache(tmp_path / "cache"))
        return TermStatistics.of(tokens, documents).size, tokens.documents(["d", "e"], documents)

    ask()
    raw = pickle.dumps(Canary(tmp_path / "sang"))
    with closing(sqlite3.connect(tmp_path / "cache" / "cache.sqlite")) as file, file:
        changed = file.execute("UPDATE entries SET value = ?", (zlib.crc32(raw).to_bytes(4, "little") + raw,))
        assert changed.rowcount == 3
    with pytest.raises(Exception, match=r"header|buffer|HeaderTooLarge"):
        ask()
    assert not (tmp_path / "sang").exists()
