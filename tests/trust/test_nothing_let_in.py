"""Nothing is let in: no pickle, no code, no path that leads out, no bomb, no escape on a terminal, no script."""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import pickle
import re
import resource
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from children import fresh
from omegaconf import OmegaConf
from safetensors.torch import load_file, save_file

import socialgraph
from socialgraph import backbone, cli
from socialgraph.data import Document, Tokens, read_run
from socialgraph.data.collection import first_ids
from socialgraph.data.files import MAX_LINE, MAX_RATIO, MAX_UNPACKED, numbered_lines
from socialgraph.data.folder import load_folder
from socialgraph.data.token_store import TokenStore
from socialgraph.data.trec import read_qrels
from socialgraph.errors import CheckpointError, InputError, SocialgraphError, shown
from socialgraph.inspect.report import View, report
from socialgraph.nn import PARADE, Socialformer

PACKAGE = Path(socialgraph.__file__).parent
SOURCES = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "experiments").rglob("*.py")]
POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes, devices and memory are asked of a POSIX system")


class Canary:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def __reduce__(self):
        return open, (self.file, "w")


# ---- the source -----------------------------------------------------------------------------------------

FORBIDDEN_IMPORTS = {
    "pickle",
    "cPickle",
    "dill",
    "joblib",
    "cloudpickle",
    "marshal",
    "shelve",
    "subprocess",
    "yaml",
    "pty",
}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "torch.load", "torch.jit.load", "torch.hub.load", "os.system", "os.popen",
    "pickle.load", "pickle.loads", "yaml.load", "yaml.unsafe_load", "joblib.load", "marshal.loads",
}  # fmt: skip


def offences(source: str) -> list[str]:
    """Return what a source must not hold, with its line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [f"{node.lineno}: import {name}" for name in names if name.split(".")[0] in FORBIDDEN_IMPORTS]
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if name in FORBIDDEN_CALLS:
            found.append(f"{node.lineno}: {name}")
        if name in ("np.load", "np.save", "numpy.load") and options.get("allow_pickle") != "False":
            found.append(f"{node.lineno}: {name} without allow_pickle=False")
        found += [
            f"{node.lineno}: {name} with {option}={options[option]}"
            for option, allowed in (("trust_remote_code", "False"), ("shell", "False"), ("weights_only", "True"),
                                    ("use_safetensors", "True"))
            if options.get(option, allowed) != allowed
        ]  # fmt: skip
        if name.startswith("Auto") and name.endswith(".from_pretrained") and "trust_remote_code" not in options:
            found.append(f"{node.lineno}: {name} without trust_remote_code=False")
    return found


def test_the_source_loads_no_pickle_and_runs_no_code():
    assert len(SOURCES) > 80
    assert {str(file): found for file in SOURCES if (found := offences(file.read_text("utf-8")))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import pickle", "from pickle import loads", "import yaml", "torch.load(f)", "torch.load(f, weights_only=True)",
        "eval('1')", "np.load(f)", "np.load(f, allow_pickle=True)", "A.from_pretrained(x, trust_remote_code=True)",
        "AutoTokenizer.from_pretrained(x)", "import subprocess", "run(x, shell=True)", "os.system(x)",
        "m.from_pretrained(x, use_safetensors=False)",
    ],
)  # fmt: skip
def test_the_look_at_the_source_sees(line):
    assert offences(line) != []


# ---- models ---------------------------------------------------------------------------------------------


def pickles(folder: Path, canary: Path) -> None:
    """Put pickles of every name beside a model."""
    raw = pickle.dumps(Canary(canary))
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin", "model.pkl", "model.ckpt",
    "vocab.pkl",
                 "adapter_model.bin", "pytorch_model.bin", "flax_model.msgpack", "tf_model.h5"):  # fmt: skip
        (folder / name).write_bytes(raw)


def test_the_canary_sings(tmp_path):
    pickle.loads(pickle.dumps(Canary(tmp_path / "sang"))).close()
    assert (tmp_path / "sang").exists()


def test_pickles_are_never_loaded(tiny_bert, tmp_path):
    """Beside safetensors they are not looked at; instead of safetensors they are refused, with what to do."""
    sang = tmp_path / "sang"
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
        with pytest.raises(CheckpointError, match=r"is a pickle.*convert it") as caught:
            load(str(folder))
        assert "\n" not in str(caught.value)
        torch.save(Canary(sang), folder / "model.safetensors")  # a zip with a pickle
        with pytest.raises(CheckpointError, match="no whole safetensors file"):
            load(str(folder))
        (folder / "model.safetensors").write_bytes(pickle.dumps(Canary(sang)))
        with pytest.raises(CheckpointError, match="no whole safetensors file"):
            load(str(folder))
        (folder / "model.safetensors").write_bytes(good)
        load(str(folder))
    assert not sang.exists()


@pytest.mark.parametrize(
    "shard", ["pytorch_model.bin", "../model.safetensors", "/etc/passwd", "a/b.safetensors", 5, ""]
)
def test_an_index_names_safetensors_in_its_folder_only(tiny_bert, tmp_path, shard):
    bert = Path(tiny_bert[0])
    pickles(bert, tmp_path / "sang")
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
    table[names[0]] = shard
    index.write_text(json.dumps({"metadata": {}, "weight_map": table}))
    with pytest.raises(CheckpointError, match="must name safetensors files in this folder"):
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
    # what else a config may ask of the library
    values = json.loads((bert / "config.json").read_text())
    values |= {"attn_implementation": "somebody/kernel", "_attn_implementation": "somebody/kernel",
    "quantization_config": None,
               "transformers_weights": "pytorch_model.bin", "dtype": "float16", "torch_dtype": "float16"}  # fmt: skip
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
    (bert / "config.json").write_text(json.dumps({**values, "model_type": "mine"}))
    with pytest.raises(CheckpointError, match="must be a BERT, this is a 'mine'"):
        backbone.load_bert(str(bert))
    (bert / "config.json").write_text(json.dumps({**values, "quantization_config": {"quant_method": "torchao"}}))
    with pytest.raises(CheckpointError, match="quantised"):
        backbone.load_bert(str(bert))
    assert not ran.exists()


@pytest.mark.parametrize(
    ("key", "value", "load"),
    [
        ("hidden_size", 10**9, "bert"), ("vocab_size", 10**12, "bert"), ("num_hidden_layers", 10**9, "bert"),
        ("max_position_embeddings", 10**11, "bert"), ("intermediate_size", 10**10, "bert"),
        ("hidden_size", 10**9, "model"), ("vocab_size", 2**31 - 1, "model"), ("num_layers", 10**9, "model"),
        ("max_positions", 2**31 - 1, "model"), ("intermediate_size", 2**31 - 1, "model"), ("inter_width", 2**31 - 1,
        "model"),
    ],
)  # fmt: skip
def test_absurd_sizes_take_neither_memory_nor_time(tiny_bert, tmp_path, key, value, load):
    folder = Path(tiny_bert[0])
    if load == "model":
        folder = tmp_path / "saved"
        Socialformer.from_backbone(tiny_bert[0]).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {key: value}))
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(CheckpointError) as caught:
        backbone.load_bert(str(folder)) if load == "bert" else Socialformer.from_pretrained(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    assert time.process_time() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_numbers_of_a_store_are_no_objects(tiny_bert, tmp_path):
    documents = {"d": Document("d", "w1 w2"), "e": Document("e", "w3")}
    tokens = Tokens.stored(documents, tiny_bert[0], 10, cache=tmp_path / "cache")
    folder = tokens.store.folder
    tokens.store.document_frequency(10)
    for name in ("keys.npy", "starts.npy", "lengths.npy", "frequency-10.safetensors"):
        file = folder / name
        good = file.read_bytes()
        file.write_bytes(_object_array(tmp_path / "sang"))
        with pytest.raises(InputError, match=r"token store|frequency-10\.safetensors"):
            TokenStore(folder).document_frequency(10)
        file.write_bytes(good)
    with pytest.raises(ValueError, match="allow_pickle"):
        np.load(io.BytesIO(_object_array(tmp_path / "sang")), allow_pickle=False)
    assert not (tmp_path / "sang").exists()


def _object_array(canary: Path) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([Canary(canary)], dtype=object), allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.mkdir ['{}']", "!!python/object/new:os.mkdir ['{}']",
                                 "!!python/name:os.mkdir", "!!python/module:os"])  # fmt: skip
def test_a_yaml_makes_no_objects(tmp_path, tag):
    (tmp_path / "config.yaml").write_text("a: " + tag.format(tmp_path / "made"))
    with pytest.raises(Exception, match="could not determine a constructor"):
        OmegaConf.load(tmp_path / "config.yaml")
    assert not (tmp_path / "made").exists()


# ---- files of a collection ------------------------------------------------------------------------------

FILES = {
    "corpus.jsonl": '{"doc_id": "d1", "text": "w1"}\n',
    "queries.test.tsv": "q1\tw1\n",
    "qrels.test.txt": "q1 0 d1 1\n",
    "run.bm25.test.txt": "q1 Q0 d1 1 1.0 t\n",
}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "collection"
    path.mkdir()
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


def everything(folder: Path, cache: Path | None = None) -> object:
    return load_folder(folder, cache=cache or folder.parent / "cache")["test"].candidates


@POSIX
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_plain_file_is_refused(folder, name):
    """At once: to open a pipe would wait for ever, and a device would never end."""
    everything(folder)
    file = folder / name
    for make in (os.mkfifo, os.mkdir, lambda f: os.symlink(f, f), lambda f: os.symlink("nowhere", f)):
        for other in (file, folder / f"{name}.gz"):
            if other.suffix == ".gz" and name.endswith("tsv"):
                continue
            file.unlink()
            make(other)
            with pytest.raises(InputError, match=r"plain file|cannot be read|no such file"):
                everything(folder)
            other.rmdir() if other.is_dir() else other.unlink()
            file.write_text(FILES[name])
    for device in ("/dev/zero", "/dev/stdin", "/dev/random"):
        file.unlink()
        file.symlink_to(device)
        with pytest.raises(InputError, match=r"leads out|plain file"):
            everything(folder)
    for read in (read_run, read_qrels, lambda path: list(numbered_lines(path))):
        with pytest.raises(InputError, match="plain file"):
            read("/dev/zero")


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "..", ".", "", "a/b", "x\0", "bm25\n", "C:\\x", "\x1b[31m", "~"]
)
def test_names_of_runs_cannot_leave_the_folder(folder, name):
    (folder.parent / "run.x.test.txt").write_text(FILES["run.bm25.test.txt"])
    with pytest.raises(InputError, match="the name of a run") as caught:
        load_folder(folder, candidates=name)
    assert str(caught.value).isprintable()


def test_ids_name_no_files(tiny_bert, tmp_path):
    """Ids that are paths, through all that is written: caches, stores, runs, a page."""
    ids = ["../../escaped", "/tmp/escaped", "..", "~/escaped", "a/b/../../../../escaped"]
    folder = tmp_path / "deep" / "deeper" / "collection"
    folder.mkdir(parents=True)
    lines = [json.dumps({"doc_id": one, "text": "w1 w2 " * 10, "title": one}) for one in ids]
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "queries.test.tsv").write_text("../../q\tw1\n")
    before = {path for path in tmp_path.rglob("*") if "escaped" in path.name}
    arguments = ["--query", "w1", "--collection", str(folder), "--backbone", tiny_bert[0], "--window", "16", "--output"]
    for one in ids:
        cli.main(["inspect", *arguments, str(folder / "page.html"), "--document", one])
    everywhere = {path for path in tmp_path.rglob("*") if "escaped" in path.name or path.name == "q"}
    assert everywhere == before == set()
    assert {path.name for path in folder.iterdir()} == {"corpus.jsonl.gz", "queries.test.tsv", "page.html"}
    assert not Path("/tmp/escaped").exists()


def _grown(path: str, kind: str, answer) -> None:
    # In a process of its own: how much memory reading took, and what came of it.
    start = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    try:
        reader = {
            "folder": lambda: everything(Path(path)),
            "run": lambda: read_run(path),
            "qrels": lambda: read_qrels(path),
        }
        reader[kind]()
        text = "read"
    except SocialgraphError as error:
        text = f"{type(error).__name__}: {error}"
    answer.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - start, text))


def _bomb(line: bytes, size: int) -> bytes:
    """Return gzip data that unpack to about ``size`` bytes of this line, again and again."""
    block = gzip.compress(line * max(1, (8 << 20) // len(line)), 9)
    return block * (size // (max(1, (8 << 20) // len(line)) * len(line)))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of Linux")
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl.gz", _bomb(bytes(1 << 20), 2 << 30),
        rf"corpus\.jsonl\.gz:1: the line is longer than {MAX_LINE >> 20} MiB"),
        ("corpus.jsonl.gz", _bomb(b" " * 1023 + b"\n", 2 << 30),
        r"corpus\.jsonl\.gz:\d+: unpacks to more than \d+ MiB"),
        ("corpus.jsonl", 300 << 20, r"corpus\.jsonl:1: the line is longer"),
        ("queries.test.tsv", 300 << 20, r"queries\.test\.tsv:1: the line is longer"),
        ("qrels.test.txt", 300 << 20, r"qrels\.test\.txt:1: the line is longer"),
        ("run.bm25.test.txt.gz", _bomb(bytes(1 << 20), 2 << 30), r"run\.bm25\.test\.txt\.gz:1: the line is longer"),
        ("qrels.test.txt.gz", _bomb(b"q 0 d 1\n", 2 << 30), "'d' is judged twice"),
    ],
)  # fmt: skip
def test_bombs_and_long_lines_end_in_an_error_not_in_swap(folder, name, content, message):
    (folder / name.removesuffix(".gz")).unlink()
    if isinstance(content, int):
        with open(folder / name, "wb") as file:
            file.truncate(content)  # of nothing but NULs, and no room on the disk
    else:
        assert len(content) < 20 << 20
        (folder / name).write_bytes(content)
    context = fresh()
    answer = context.SimpleQueue()
    process = context.Process(target=_grown, args=(str(folder), "folder", answer))
    process.start()
    grown, text = answer.get()
    process.join(60)
    assert process.exitcode == 0
    assert text.startswith("InputError")
    assert re.search(message, text), text
    assert grown < 150 << 20
    assert not [path for path in (folder.parent / "cache").rglob("*") if path.is_file()]


def test_a_large_collection_of_text_is_no_bomb():
    """Text packs 3 to 10 times; a bomb about 1,000 times. What is small may pack as it likes."""
    text = (PACKAGE / "data" / "pydocs.py").read_bytes() * 3
    assert len(text) / len(gzip.compress(text)) < MAX_RATIO / 5
    assert MAX_UNPACKED >= 16 * MAX_LINE


# ---- terminals and pages --------------------------------------------------------------------------------

ESCAPE = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202eturned"


def test_no_escape_reaches_the_terminal(tiny_bert, tmp_path, capfd, caplog):
    assert shown(ESCAPE).isprintable()
    assert shown("Müller 文 😀 'quoted'") == "Müller 文 😀 'quoted'"
    assert first_ids([ESCAPE, "b"]).isprintable()
    folder = tmp_path / "collection"
    folder.mkdir()
    turned = "d\u202e1"  # an id may hold what turns the direction, but no control character
    corpus = [{"doc_id": turned, "text": ESCAPE, "title": ESCAPE}, {"doc_id": "d\u200f2", "text": ""}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.test.tsv").write_bytes(f"q\u202e1\t{ESCAPE}\n".encode())
    (folder / "qrels.test.txt").write_bytes(b"q9\xe2\x80\xae 0 d9 1\n")
    arguments = ["--query", ESCAPE, "--collection", str(folder), "--backbone", tiny_bert[0], "--window", "16",
                 "--output", str(tmp_path / "page.html"), "--document"]  # fmt: skip
    with pytest.warns(UserWarning) as warned:  # noqa: PT030
        cli.main(["inspect", *arguments, turned])
    texts = [str(one.message) for one in warned if one.category is UserWarning]
    assert len(texts) >= 2
    with pytest.raises(SystemExit) as stopped, pytest.warns(UserWarning):  # noqa: PT030
        cli.main(["inspect", *arguments, ESCAPE])
    out, err = capfd.readouterr()
    for text in (*texts, str(stopped.value), caplog.text, out, err):
        assert not {c for c in text if not c.isprintable()} - {"\n", "\r", "\t"}, repr(text)
    page = (tmp_path / "page.html").read_text()
    assert not set(page) & set("\x1b\x07\x9b\u202e")


def test_a_page_with_hostile_names_runs_nothing_in_a_browser(tiny_bert, tmp_path):
    """Names of patterns and statistics, ids, query and words, all at once, in a real browser."""
    from conftest import document_batch

    playwright = pytest.importorskip("playwright.sync_api")
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium (set CHROMIUM to its path)")
    attacks = [
        "</script><script>window.hacked=1</script>", "<!--<script>window.hacked=1//-->", "javascript:window.hacked=1",
        "<a href='javascript:window.hacked=1'>x</a>", "<img src=https://example.org/x onerror=window.hacked=1>",
        "\u2028window.hacked=1\u2029", "';window.hacked=1;//", '";window.hacked=1;//',
        "</title><svg onload=window.hacked=1>",
        "\u202e" + "x" * 100_000, "<meta http-equiv=refresh content='0;url=https://example.org'>", "\x00\x1b\x08\ud800",
        "<link rel=stylesheet href=//example.org/x.css>", "<base href=//example.org>", "&#60;script&#62;", "]]>",
        "\\u003cscript>",
        "<iframe srcdoc='<script>parent.hacked=1</script>'>",
    ]  # fmt: skip
    pages = []
    for attack in attacks:
        graph = document_batch(lengths=(len(attacks),))[0]
        graph.document_id, graph.query_id = attack, attack
        pages.append(
            report(View(graph, attack, 1.0, {0: 0.5}, {attack: attack, "b": [attack]}), attacks, attack)
        )
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = chromium.new_page()
        asked: list[str] = []
        complaints: list[str] = []
        elements = (
            "document.querySelectorAll('a, img, iframe, svg:not(.strip), link, base, form, meta, script, style').length"
        )
        (tmp_path / "clean.html").write_text(
            report(View(document_batch(lengths=(18,))[0], "", 1.0, {0: 0.5}, {"a": "b", "c": "d"}), ["a"] * 18, "a")
        )
        tab.goto((tmp_path / "clean.html").as_uri())
        clean = tab.evaluate(elements)
        tab.on("request", lambda one: asked.append(one.url))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda one: complaints.append(one.message))
        for number, page in enumerate(pages):
            file = tmp_path / f"page{number}.html"
            file.write_text(page, encoding="utf-8")
            tab.goto(file.as_uri())
            tab.locator(".text .piece").nth(0).hover()
            tab.locator(".text .piece").nth(number).click()
            assert tab.locator(".text .piece").count() == len(attacks)
            assert tab.evaluate("window.hacked") is None
            assert tab.evaluate(elements) == clean
        chromium.close()
    assert asked == [(tmp_path / f"page{number}.html").as_uri() for number in range(len(pages))]
    assert complaints == []


def test_a_model_of_another_class_is_refused(tiny_bert, tmp_path):
    PARADE.from_backbone(tiny_bert[0]).save_pretrained(tmp_path / "saved")
    with pytest.raises(CheckpointError, match="not a saved Socialformer"):
        Socialformer.from_pretrained(tmp_path / "saved")
