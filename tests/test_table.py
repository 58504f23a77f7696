"""experiments/table.py: two finished rows, paired over their queries."""

import json

import pytest
from commands import call
from lab.results import Results
from scipy import stats

OURS = {"a": (1.0, 0.5), "b": (0.5, 0.5), "c": (1.0, 1.0), "d": (0.2, 0.0)}  # query -> of each seed
THEIRS = {"a": 0.5, "b": 0.5, "c": 0.25, "d": 0.2}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of finished rows; the working folder is beside it."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results"
    for seed in (0, 1):
        write(folder, "ours", seed, {query: values[seed] for query, values in OURS.items()}, dict.fromkeys(OURS, 0.9))
    write(folder, "theirs", 0, THEIRS)
    return folder


def write(folder, row, seed, values, mixed=None):
    value = {
        "name": row, "measures": {"RR@10": values}, "config": {"data": {"splits": {"test": "dev"}}},
        "interpolated": {"weight": 0.5, "measures": {"dev": {"RR@10": mixed}}} if mixed else None,
    }  # fmt: skip
    Results(folder).write(f"{row}.{seed}", {query: {"x": one} for query, one in values.items()}, value)


@pytest.fixture
def printed(folder, capsys):
    """Return what runs the command and returns its lines, cell by cell."""

    def run(*typed):
        call("table", f"folder=[{folder}]", "rows=[ours,theirs]", *typed)
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    return run


def expected(queries):
    """What scipy says of some queries."""
    ours, theirs = [sum(OURS[q]) / 2 for q in queries], [THEIRS[q] for q in queries]
    test = stats.ttest_rel(ours, theirs)
    low, high = test.confidence_interval(0.95)
    means = [sum(ours) / len(ours), sum(theirs) / len(theirs)]
    interval = f"{low:+.4f} to {high:+.4f}"
    return [*(f"{mean:.4f}" for mean in means), f"{means[0] - means[1]:+.4f}", interval, f"{test.pvalue:.2g}"]


def test_all_queries_one_seed_and_mixtures(printed):
    header, _, line = printed()
    assert header == ["RR@10", "queries", "ours", "theirs", "difference", "95 % interval", "p"]
    assert line == ["all", "4", *expected("abcd")]
    assert printed("mixed=true")[-1][:4] == ["all", "4", "0.9000", f"{sum(THEIRS.values()) / 4:.4f}"]
    first = [values[0] for values in OURS.values()]
    assert printed("seeds=[0]")[-1][2] == f"{sum(first) / 4:.4f}"


def test_where_rows_know_their_documents_these_are_counted(printed, folder):
    for seed in (0, 1):
        file = folder / f"ours.{seed}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"clusters": dict(a="x", b="x", c="y", d="z")}))
    difference = [sum(OURS[query]) / 2 - THEIRS[query] for query in "abcd"]
    mean = sum(difference) / 4
    off = [difference[0] + difference[1] - 2 * mean, difference[2] - mean, difference[3] - mean]  # of each document
    reach = stats.t.ppf(0.975, 2) * (3 / 2 * sum(e * e for e in off)) ** 0.5 / 4
    assert printed()[2][5] == f"{mean - reach:+.4f} to {mean + reach:+.4f}"


def test_by_where_the_evidence_starts(printed, tmp_path):
    evidence = "qid\tdoc_id\tstart_tok\tend_tok\na\tx\t10\t12\nc\tx\t99\t100\nd\tx\t700\t720\nstranger\tx\t1\t2\n"
    (tmp_path / "evidence.tsv").write_text(evidence)
    _, _, everything, first, second, third = printed("collection=.", "bounds=[100,1000]")
    assert everything == ["all", "4", *expected("abcd")]
    assert first == ["evidence under 100", "2", *expected("ac")]
    assert second == ["evidence 100 to 999", "1", "0.1000", "0.2000", "-", "-", "-"]
    assert third == ["evidence 1,000 and more", "0", "-", "-", "-", "-", "-"]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("rows=[ours,strange]", "there is no finished row 'strange' in"),
        ("seeds=[0,1]", "there is no seed 1 of theirs in"),
        ("rows=[ours,damaged]", "damaged.0.json or its run is missing or damaged"),
        ("measure=P@1", "ours has no measure P@1 in"),
        ("rows=[ours,few]", "2 queries are in one result only: c, d"),
        ("rows=[ours]", "rows must be two"),
        ("collection=.", "has no evidence of any query of ours"),
    ],
)
def test_refusals_take_one_line(printed, folder, typed, message, capsys):
    write(folder, "few", 0, {"a": 1.0, "b": 0.0})
    write(folder, "damaged", 0, THEIRS)
    (folder / "damaged.0.json").write_text((folder / "damaged.0.json").read_text()[:100])
    with pytest.raises(SystemExit):
        printed(typed)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line
