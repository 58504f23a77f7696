"""experiments/difference.py: two finished rows, paired over their queries."""

import importlib
import json
import sys

import pytest
from lab.store import Store
from scipy import stats

from socialgraph.data.files import sha256

OURS = {"a": (1.0, 0.5), "b": (0.5, 0.5), "c": (1.0, 1.0), "d": (0.2, 0.0)}  # query -> of each seed
THEIRS = {"a": 0.5, "b": 0.5, "c": 0.25, "d": 0.2}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of finished rows; the working folder is beside it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results" / "tales" / "test"


@pytest.fixture
def write(folder):
    """Return what writes a finished row."""
    folder.mkdir(parents=True)

    def call(row, seed, values, mixed=None, folder=folder):
        ranking = {query: {"x": value} for query, value in values.items()}
        value = {
            "name": row, "measures": {"RR@10": values},
            "interpolated": {"weight": 0.5, "measures": {"dev": {"RR@10": mixed}}} if mixed else None,
            "config": {"data": {"splits": {"test": "dev"}}},  # as tries have it, whose folder is dev/tries
        }  # fmt: skip
        Store(folder).write(f"{row}.{seed}", ranking, value)

    for seed in (0, 1):
        call("ours", seed, {query: values[seed] for query, values in OURS.items()}, dict.fromkeys(OURS, 0.9))
    call("theirs", 0, THEIRS)
    return call


@pytest.fixture
def printed(folder, monkeypatch, capsys):
    """Return what runs the script and returns its lines, cell by cell."""

    def call(*typed):
        monkeypatch.setattr(sys, "argv", ["difference.py", str(folder), *typed])
        importlib.import_module("difference").main()
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    return call


def expected(queries):
    """What scipy says of some queries."""
    ours, theirs = [sum(OURS[q]) / 2 for q in queries], [THEIRS[q] for q in queries]
    test = stats.ttest_rel(ours, theirs)
    low, high = test.confidence_interval(0.95)
    means = [sum(ours) / len(ours), sum(theirs) / len(theirs)]
    interval = f"{low:+.4f} to {high:+.4f}"
    return [*(f"{mean:.4f}" for mean in means), f"{means[0] - means[1]:+.4f}", interval, f"{test.pvalue:.2g}"]


def test_all_queries(write, printed):
    header, _, line = printed("ours", "theirs")
    assert header == ["RR@10", "queries", "ours", "theirs", "difference", "95 % interval", "p"]
    assert line == ["all", "4", *expected("abcd")]


def test_where_rows_know_their_documents_these_are_counted(write, printed, folder):
    for seed in (0, 1):
        file = folder / f"ours.{seed}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"clusters": dict(a="x", b="x", c="y", d="z")}))
    difference = [sum(OURS[query]) / 2 - THEIRS[query] for query in "abcd"]
    mean = sum(difference) / 4
    off = [difference[0] + difference[1] - 2 * mean, difference[2] - mean, difference[3] - mean]  # of each document
    reach = stats.t.ppf(0.975, 2) * (3 / 2 * sum(e * e for e in off)) ** 0.5 / 4
    assert printed("ours", "theirs")[2][5] == f"{mean - reach:+.4f} to {mean + reach:+.4f}"


def test_by_where_the_evidence_starts(write, printed, tmp_path):
    evidence = "qid\tdoc_id\tstart_tok\tend_tok\na\tx\t10\t12\nc\tx\t99\t100\nd\tx\t700\t720\nstranger\tx\t1\t2\n"
    (tmp_path / "evidence.tsv").write_text(evidence)
    _, _, everything, first, second, third = printed("ours", "theirs", "--evidence", ".", "--bounds", "100", "1000")
    assert everything == ["all", "4", *expected("abcd")]
    assert first == ["evidence under 100", "2", *expected("ac")]
    assert second == ["evidence 100 to 999", "1", "0.1000", "0.2000", "-", "-", "-"]
    assert third == ["evidence 1,000 and more", "0", "-", "-", "-", "-", "-"]


def test_mixed_with_the_first_stage(write, printed):
    line = printed("ours", "theirs", "--mixed")[-1]
    assert line[:4] == ["all", "4", "0.9000", f"{sum(THEIRS.values()) / 4:.4f}"]  # theirs has no mixture


def test_one_seed(write, printed):
    line = printed("ours", "theirs", "--seeds", "0")[-1]
    first = [values[0] for values in OURS.values()]
    assert line[2] == f"{sum(first) / 4:.4f}"
    assert line[-1] == f"{stats.ttest_rel(first, list(THEIRS.values())).pvalue:.2g}"


def test_another_split_too(write, printed, folder):
    more = folder.with_name("test_bal")
    more.mkdir()
    write("ours", 0, {"a": 0.0, "e": 0.25, "f": 1.0}, folder=more)
    write("theirs", 0, {"a": 0.0, "e": 0.5, "f": 0.0}, folder=more)
    line = printed("ours", "theirs", "--seeds", "0", "--also", str(more))[-1]
    ours = [*(values[0] for values in OURS.values()), 0.25, 1.0]  # a query of both splits is that of the first
    theirs = [*THEIRS.values(), 0.5, 0.0]
    assert line[1:4] == ["6", f"{sum(ours) / 6:.4f}", f"{sum(theirs) / 6:.4f}"]
    assert line[-1] == f"{stats.ttest_rel(ours, theirs).pvalue:.2g}"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            ["ours", "strange"],
            "there is no finished row 'strange' in .*; there is: damaged, empty, few, ours, theirs, torn",
        ),
        (["ours", "theirs", "--seeds", "0", "1"], r"theirs has no finished seed 1 in .*; it has 0"),
        (["ours", "damaged"], r"damaged\.0\.json or its run is missing or damaged .*: run the table again"),
        (["ours", "empty"], r"empty\.0\.json or its run is missing or damaged \(KeyError\): run the table again"),
        (["ours", "theirs", "--measure", "P@1"], "ours has no measure P@1 in .*; it has RR@10"),
        (["ours", "few"], "2 queries are in one result only: c, d"),
        (["torn", "ours"], "seeds of torn in .* ranked different queries: run the table again"),
        (["ours", "theirs", "--evidence", "."], r"\. has no evidence of any query of ours: is it the collection\?"),
    ],
)
def test_refusals_take_one_line(write, printed, folder, typed, message):
    write("few", 0, {"a": 1.0, "b": 0.0})
    write("damaged", 0, THEIRS)
    half = (folder / "damaged.0.json").read_text()[:100]
    (folder / "damaged.0.json").write_text(half)
    write("empty", 0, THEIRS)
    (folder / "empty.0.json").write_text(json.dumps({"sha256": sha256(folder / "empty.0.run.gz"), "config": {}}))
    write("torn", 0, {"a": 1.0, "b": 0.0})
    write("torn", 1, {"a": 1.0, "c": 0.0})
    with pytest.raises(SystemExit, match=f"^error: .*{message}") as refused:
        printed(*typed)
    assert "\n" not in str(refused.value)
