"""The command ``socialgraph``: quick where nothing is computed, one line for a mistake, and the scores of a Ranker."""

import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from commands import write_tales

import socialgraph
from socialgraph import Ranker
from socialgraph.cli import EXPERIMENTS, main, parser, texts_of
from socialgraph.data import Cache

TEXTS = {"a.txt": "w1 w2 w3", "b.txt": "w4 w5\nw6", "c.txt": "w7"}


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder with texts and a ranker; the program runs in it."""
    monkeypatch.chdir(tmp_path)
    write_tales(tmp_path)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    Path("latin1.txt").write_bytes(b"caf\xe9")
    Ranker.from_recipe("maxp", backbone="bert", document_length=50).save_pretrained("ranker")


def test_files_are_ranked_as_by_a_ranker(world, capsys, monkeypatch):
    expected = Ranker.from_pretrained("ranker").rank("w1 w4", TEXTS)
    main(["rank", "--query", "w1 w4", "--ranker", "ranker", *TEXTS])
    assert capsys.readouterr().out == "".join(f"{score:.4f}\t{name}\n" for name, score in expected)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"w1 w2 w3\nw7\n")))
    main(["rank", "--query", "w1 w4", "--ranker", "ranker", "--top", "1", "-"])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split("\t")[1] in ("line 1", "line 2")
    expected = Ranker.from_recipe("maxp", backbone="bert").rank("w1 w4", TEXTS)
    main(["rank", "--query", "w1 w4", "--recipe", "maxp", "--backbone", "bert", *TEXTS])
    assert capsys.readouterr().out == "".join(f"{score:.4f}\t{name}\n" for name, score in expected)


@pytest.mark.parametrize("end", ["\u2028", "\x0c", "\x85", "\r"])
def test_nothing_but_a_line_feed_ends_a_text_of_the_standard_input(end, monkeypatch):
    given = f"one{end}still one\r\n\ntwo".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert texts_of(["-"]) == {"line 1": f"one{end}still one", "line 2": "", "line 3": "two"}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert texts_of(["-"]) == {}


def test_a_name_that_the_outputs_encoding_lacks_is_escaped(world):
    Path("naïve-文.txt").write_text("w1")
    program = "from socialgraph.cli import main; main(['rank', '--query', 'w1', '--ranker', 'ranker', 'naïve-文.txt'])"
    ascii_only = environment() | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=ascii_only, check=True)
    assert done.stdout.decode("ascii").endswith("\tna\\xefve-\\u6587.txt\n")


def test_a_warning_is_one_line(world, capsys, monkeypatch):
    def show(*warning):
        print(warnings.formatwarning(*warning[:4]), end="", file=sys.stderr)

    Path("empty.txt").write_text("")
    monkeypatch.setattr(warnings, "showwarning", show)  # pytest would keep them for itself
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main(["rank", "--query", "w1", "--ranker", "ranker", "a.txt", "empty.txt"])
        main(["rank", "--query", "", "--ranker", "ranker", "a.txt"])
    told = [line for line in capsys.readouterr().err.splitlines() if "loading PyTorch" not in line]
    assert "warning: 1 documents have no word piece and stand last: empty.txt" in told
    assert "warning: 1 queries have no word piece and keep the order of their candidates: ''" in told
    assert all(line.startswith("warning: ") for line in told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a.txt", "none.txt"], "error: none.txt: No such file"),
        (["latin1.txt"], "error: latin1.txt: not UTF-8 text"),
        (["a.txt", "--ranker", "bert"], "error: bert: no ranker.json"),
        (["a.txt", "--top", "0"], "error: top_k must be at least 1"),
        (["a.txt", "--backbone", "bert"], "error: --backbone is that of a recipe"),
    ],
)
def test_mistakes_take_one_line(world, arguments, told):
    with pytest.raises(SystemExit) as stopped:
        main(["rank", "--query", "w1", *(["--ranker", "ranker"] if "--ranker" not in arguments else []), *arguments])
    assert str(stopped.value).startswith(told)
    assert "\n" not in str(stopped.value)


def test_ctrl_c_ends_in_one_line(world, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Ranker, "rank", interrupted)
    with pytest.raises(SystemExit) as stopped:
        main(["rank", "--query", "w1", "--ranker", "ranker", "a.txt"])
    assert stopped.value.code == 130
    assert capsys.readouterr().err.splitlines()[-1] == "error: stopped; the same command begins again"


def test_help_lists_every_option(capsys):
    main([])
    assert "socialgraph rank --query" in capsys.readouterr().out
    (commands,) = (action.choices for action in parser()._actions if action.choices)
    assert set(commands) == {"rank", "inspect", "cache", "run", "compare", "data"}
    for name, command in commands.items():
        if name in EXPERIMENTS:  # tests/test_wheel.py: they explain themselves
            continue
        with pytest.raises(SystemExit) as stopped:
            main([name, "--help"])
        assert stopped.value.code == 0
        told = capsys.readouterr().out
        for action in command._actions:
            assert all(option in told for option in action.option_strings)
            assert action.help
        assert told.count(f"socialgraph {name} --query") >= 3 or name == "cache"
    main(["--version"])
    assert capsys.readouterr().out.strip() == socialgraph.__version__


def test_the_cache_says_how_large_it_is_and_is_cleared(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SOCIALGRAPH_CACHE", str(tmp_path))
    Cache.on_disk().put({b"key": bytes(50_000)})
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "unpacked.jsonl").write_text("{}")
    (tmp_path / "collections").mkdir()
    main(["cache"])
    told = capsys.readouterr().out
    assert re.fullmatch(rf"{tmp_path}/cache.sqlite: 1 entries, 6\d,\d{{3}} of 20,000,000,000 bytes\n", told)
    main(["cache", "--clear"])
    assert "0 entries" in capsys.readouterr().out
    assert (tmp_path / "cache.sqlite").stat().st_size < 20_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache.sqlite", "collections"]


@pytest.mark.parametrize(
    "code",
    [
        "import socialgraph; dir(socialgraph)",
        "from socialgraph.cli import main; main([])",
        "import contextlib\nfrom socialgraph.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['rank', '--query', 'a', 'no such file'])",
    ],
)  # fmt: skip
def test_nothing_slow_is_imported_for_help_and_mistakes(code):
    program = f"{code}\nimport sys\nprint([name for name in ('torch', 'transformers', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_ranking_imports_neither_the_trainer_nor_what_draws():
    slow = {"transformers.trainer", "matplotlib", "scipy.stats", "ir_measures"}
    program = f"import sys, socialgraph.ranker\nprint(sorted(set(sys.modules) & {slow!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize(("arguments", "ends"), [([], 0), (["run", "--help"], 1)])
def test_it_ends_quietly_where_nobody_reads_on(arguments, ends, tmp_path):
    """As with ``socialgraph run --help | head``."""
    program = f"from socialgraph.cli import main; main({arguments!r})"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, text=True,
        env=environment(), cwd=tmp_path)  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (ends, "")


def environment():
    return os.environ | {"PYTHONPATH": str(Path(socialgraph.__file__).parents[1])}
