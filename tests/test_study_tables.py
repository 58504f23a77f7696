"""What a study leaves on disk: runs, tables and figures."""

import csv
import json
from statistics import fmean, stdev

import pytest
import scipy.stats
import torch
from commands import times
from lab.by_query import in_figure
from lab.plan import backbone_name
from studies import ANIMALS, ROWS, study, value_of

from socialgraph.data import read_run


def test_a_study_is_done_in_pieces_and_reported(budget, tmp_path, caplog):
    caplog.set_level("INFO")
    seeds = "seeds=[0,1]"
    study(*budget, ROWS, seeds, "minutes=0", "tables=false")  # nothing fits
    assert "bm25.0 would not end within 0 minutes" in caplog.text
    assert "0 of 6 runs are finished; call again for the rest" in caplog.text
    folder = tmp_path / "results" / "wtq" / "test_bal"
    assert not folder.exists()

    # a first piece: one seed
    study(*budget, ROWS, "seeds=[0]")
    before = times(folder)
    assert set(times(folder.parent / "test")) == set(before)
    assert set(before) == files_of(0)

    # the second piece goes on, in another place; nothing is trained twice
    (tmp_path / "data").rename(tmp_path / "moved")
    budget[0] = f"data_root={tmp_path / 'moved'}"
    caplog.clear()
    study(*budget, ROWS, seeds, "minutes=60")
    after = times(folder)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == files_of(1)
    assert "6 of 6 runs are finished" in caplog.text
    parade = value_of(folder, "parade", 1)
    assert parade["config"]["recipe"]["document_length"] == 48
    assert parade["config"]["recipe"]["model"]["backbone"] == backbone_name(str(tmp_path))
    assert parade["seconds"] > parade["training_seconds"] > 0
    assert str(tmp_path) not in json.dumps(parade["config"])
    assert {query.split("-")[0] for query in read_run(folder.parent / "test" / "parade.1.run.gz")} == {"test"}

    check_table(folder)
    check_buckets(folder)


def files_of(seed):
    return {f"{row}.{seed}.{end}" for row in ("bm25", "parade", "socialformer-edge") for end in ("json", "run.gz")}


def means_of(folder):
    """Reciprocal ranks of each row, seed and query, from the run files alone; and their means over the seeds."""
    queries = [f"test_bal-{animal}" for animal in ANIMALS[4:]]
    relevant = dict(zip(queries, ANIMALS[4:], strict=True))

    def reciprocal(row, seed):
        run = read_run(folder / f"{row}.{seed}.run.gz")
        order = {query: sorted(run[query], key=lambda d, query=query: (-run[query][d], d)) for query in queries}
        return {query: 1 / (1 + order[query].index(relevant[query])) for query in queries}

    found = {row: [reciprocal(row, seed) for seed in (0, 1)] for row in ("bm25", "parade", "socialformer-edge")}
    mean = {row: {q: fmean(one[q] for one in seeds) for q in queries} for row, seeds in found.items()}
    return queries, relevant, found, mean


def check_table(folder):
    """The table, beside what is computed here from the run files."""
    queries, _, found, mean = means_of(folder)
    with open(folder / "study.csv", newline="") as file:
        table = {line["Row"]: line for line in csv.DictReader(file)}
    assert list(table) == ["bm25", "parade", "socialformer-edge"]
    p_values = []
    for row, line in table.items():
        assert float(line["RR@10"]) == pytest.approx(fmean(mean[row].values()))
        assert float(line["sd of RR@10"]) == pytest.approx(stdev(fmean(one.values()) for one in found[row]))
        if row != "parade":
            difference = [mean[row][q] - mean["parade"][q] for q in queries]
            p_values.append(scipy.stats.ttest_1samp(difference, 0).pvalue if len(set(difference)) > 1 else 1.0)
            wide = scipy.stats.t.ppf(0.975, len(difference) - 1) * stdev(difference) / len(difference) ** 0.5
            interval = [float(line[bound]) for bound in ("Low of Δ", "High of Δ")]
            assert interval == pytest.approx([fmean(difference) - wide, fmean(difference) + wide])
    low, high = sorted(p_values)
    holm = {p: min(1, 2 * low) if p == low else max(min(1, 2 * low), high) for p in p_values}
    for row, p in zip(("bm25", "socialformer-edge"), p_values, strict=True):
        assert float(table[row]["p of RR@10"]) == pytest.approx(holm[p])
    assert table["parade"]["p of RR@10"] == ""
    assert (table["parade"]["paper: MRR@100"], table["bm25"]["Doc. length"]) == ("0.4386", "")
    threads = torch.get_num_threads()
    assert table["parade"]["Device"] == ("CPU, 1 thread" if threads == 1 else f"CPU, {threads} threads")
    assert table["bm25"]["Device"] == ""
    assert (table["parade"]["Steps"], float(table["parade"]["Training pieces (M)"])) == ("1", 2 * 2 * 48 / 1e6)
    assert float(table["parade"]["+ BM25: RR@10"]) == pytest.approx(
        fmean(
            fmean(value_of(folder, "parade", seed)["interpolated"]["measures"]["test_bal"]["RR@10"].values())
            for seed in (0, 1)
        )
    )


def check_buckets(folder):
    """Tables and figures by a property of the query."""
    queries, relevant, _, mean = means_of(folder)
    lengths = {q: 30 + 20 * ANIMALS.index(relevant[q]) for q in queries}  # 110, 130, 150, 170
    starts = {q: 7 + 12 * ANIMALS.index(relevant[q]) for q in queries}  # 55, 67, 79, 91
    anchored = {q: relevant[q] in ("toad", "newt") for q in queries}
    groups = {
        ("by-length", "100 and more"): [q for q in queries if lengths[q] >= 100],
        ("by-evidence", "48 to 99"): [q for q in queries if 48 <= starts[q] < 100],
        ("by-anchor", "not anchored"): [q for q in queries if not anchored[q]],
        ("by-anchor", "anchored"): [q for q in queries if anchored[q]],
    }
    with open(folder / "buckets.csv", newline="") as file:
        buckets = list(csv.DictReader(file))
    assert {(line["By"], line["Bucket"]) for line in buckets} == set(groups)
    assert len(buckets) == 3 * len(groups)
    label = {"BM25": "bm25", "PARADE": "parade", "Socialformer-edge": "socialformer-edge"}
    for line in buckets:
        inside = groups[line["By"], line["Bucket"]]
        assert int(line["Queries"]) == len(inside) > 0
        assert float(line["RR@10"]) == pytest.approx(fmean(mean[label[line["Model"]]][q] for q in inside))
    text = (folder / "study.md").read_text()
    assert len((folder.parent / "test" / "study.md").read_text()) > 1000
    rows_of = [line for line in text.splitlines() if line.startswith("| PARADE ")]
    assert [line.count("|") for line in rows_of[1:]] == [5, 5, 4]
    assert f"{fmean(mean['parade'].values()):.4f} ± " in rows_of[0]
    for name in ("by-length", "by-evidence", "by-anchor"):
        assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_later_seeds_find_the_attention_that_others_have_computed(budget, tmp_path, monkeypatch):
    from socialgraph.edges import DynamicCentrality

    computed, weights = [], DynamicCentrality.weights
    monkeypatch.setattr(
        DynamicCentrality, "weights", lambda self, batch: (computed.append(batch.num_graphs), weights(self, batch))[1]
    )

    def pairs(*typed):
        computed.clear()
        study(*budget, "rows=[socialformer-edge]", *typed)
        return sum(computed)

    kept, folder = tmp_path / "work" / "weights" / "weights.sqlite", tmp_path / "results" / "wtq" / "test"
    first = pairs("seeds=[0]")
    assert not kept.exists()  # a first seed has its times in the table
    second = pairs("seeds=[1]")
    assert kept.exists()
    assert first > 0
    assert second > 0
    run = (folder / "socialformer-edge.1.run.gz").read_bytes()
    (folder / "socialformer-edge.1.json").unlink()
    assert pairs("seeds=[1]") == 0
    assert (folder / "socialformer-edge.1.run.gz").read_bytes() == run


def test_questions_whose_page_is_no_candidate_can_be_left_out(budget, tmp_path):
    """Of the four pages that questions are about two are among the first six candidates."""
    study(*budget, "data.depth=6", "+data.queries.found=true", "rows=[parade]")
    folder = tmp_path / "results" / "wtq" / "test_bal"
    assert set(value_of(folder, "parade")["measures"]["RR@10"]) == {"test_bal-newt", "test_bal-raven"}
    assert len(read_run(folder / "parade.0.run.gz")["test_bal-newt"]) == 6
    text = (folder / "study.md").read_text()
    assert "2 queries, their first 6 candidates at most, the relevant one among them, the same for all" in text


def test_a_figure_has_all_systems_or_of_many_the_chosen_ones():
    names = {row: row.upper() for row in "abcdefghi"}
    few = dict(list(names.items())[:8])
    assert in_figure(few, ["b", "a"]) == list("ABCDEFGH")
    assert in_figure(names, ["i", "z", "b"]) == ["B", "I"]  # in the table's order
    assert in_figure(names, ["i"]) == list("ABCDEFGH")  # one alone is no comparison
