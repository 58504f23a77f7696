"""experiments/study.py: rows are run once and in pieces, and the report says what they say."""

import csv
import gzip
import importlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from statistics import fmean, stdev

import pytest
import scipy.stats
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from socialgraph.data import read_run
from socialgraph.errors import InputError, OptionError

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
ANIMALS = ["otter", "heron", "badger", "lynx", "newt", "raven", "stoat", "toad"]
SPLITS = {"train": ANIMALS[:3], "dev_bal": ANIMALS[3:5], "test_bal": ANIMALS[4:], "test": ANIMALS[5:]}
ROWS = "rows=[bm25,parade,socialformer-edge]"


@pytest.fixture
def path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


@pytest.fixture
def budget(tmp_path, tiny_bert, path):
    """Return what is typed so that a study takes seconds: a collection in wtq's form, a BERT of three layers.

    Documents have 30 to 170 word pieces. A question is three of them, and its evidence is where they stand.
    """
    folder = tmp_path / "data" / "wtq"
    folder.mkdir(parents=True)
    evidence, flags, words = ["qid\tdoc_id\tstart_tok\tend_tok"], [], {}
    with gzip.open(folder / "corpus.jsonl.gz", "wt") as corpus:
        for place, animal in enumerate(ANIMALS):
            words[animal] = [f"w{(place * 23 + i * i) % 190}" for i in range(30 + 20 * place)]
            corpus.write(json.dumps({"doc_id": animal, "text": " ".join(words[animal])}) + "\n")
    for split, part in SPLITS.items():
        starts = {animal: 7 + 12 * ANIMALS.index(animal) for animal in part}
        asked = {animal: " ".join(words[animal][start : start + 3]) for animal, start in starts.items()}
        (folder / f"queries.{split}.tsv").write_text("".join(f"{split}-{a}\t{asked[a]}\n" for a in part))
        (folder / f"qrels.{split}.txt").write_text("".join(f"{split}-{a} 0 {a} 1\n" for a in part))
        there = part if split == "train" else ANIMALS
        (folder / f"run.bm25.{split}.txt").write_text(
            "".join(f"{split}-{a} Q0 {d} {i + 1} {9 - i} bm25\n" for a in part for i, d in enumerate(there))
        )
        evidence += [f"{split}-{a}\t{a}\t{start}\t{start + 3}" for a, start in starts.items()]
        flags += [f"{split}-{a}\t{int(a in ('toad', 'newt'))}\t1" for a in part]
    (folder / "evidence.tsv").write_text("\n".join(evidence) + "\n")
    (folder / "flags.tsv").write_text("\n".join(flags) + "\n")
    return [
        f"data_root={tmp_path / 'data'}", f"results={tmp_path / 'results'}", f"work={tmp_path / 'work'}",
        f"backbone={tiny_bert[0]}", "lengths.short=24", "lengths.long=48", "lengths.original=48",
        "lengths.long_circles=2", "window=16", "partition.max_size=8", "trainer.groups=2", "trainer.negatives=1",
        "trainer.bf16=false", "data.depth=8", "warm_up.groups=2", "warm_up.passage=8", "bounds=[48,100]",
    ]  # fmt: skip


def study(*typed):
    from study_plan import read_study
    from study_runs import make_study

    return make_study(read_study(typed))


def times(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*.*.json")}


def test_a_study_is_done_in_pieces_and_reported(budget, tmp_path, caplog):
    caplog.set_level("INFO")
    seeds = "seeds=[0,1]"
    assert study(*budget, ROWS, seeds, "minutes=0") == {}  # nothing fits
    assert "bm25.0 would not end within 0 minutes" in caplog.text
    assert "0 of 6 rows are finished; call again for the rest" in caplog.text
    folder = tmp_path / "results" / "wtq" / "test_bal"
    assert not folder.exists()

    # a first piece: one seed
    first = study(*budget, ROWS, "seeds=[0]")
    assert set(first) == {("wtq", "test_bal"), ("wtq", "test")}
    assert set(first["wtq", "test"]) == {"bm25", "parade", "socialformer-edge"}
    before = times(folder)
    assert set(before) == {"bm25.0.json", "parade.0.json", "socialformer-edge.0.json"}
    warm = tmp_path / "work" / "warm" / "cpu" / "wtq"
    learned = json.loads((warm / "warm_up.json").read_text())
    assert learned["config"]["trainer"]["groups"] == 2
    assert load_file(warm / "score.safetensors")["weight"].any()
    made = (warm / "warm_up.json").stat().st_mtime_ns

    # the second piece goes on, in another place; nothing is trained twice
    (tmp_path / "data").rename(tmp_path / "moved")
    budget[0] = f"data_root={tmp_path / 'moved'}"
    caplog.clear()
    rows = study(*budget, ROWS, seeds, "minutes=60")["wtq", "test_bal"]
    after = times(folder)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"bm25.1.json", "parade.1.json", "socialformer-edge.1.json"}
    assert (warm / "warm_up.json").stat().st_mtime_ns == made
    assert "6 of 6 rows are finished" in caplog.text
    parade = rows["parade"][1]
    assert parade["config"]["recipe"]["document_length"] == 48
    assert parade["config"]["recipe"]["model"]["backbone"] == "warmed up"
    assert parade["seconds"] > parade["training_seconds"] > 0
    assert str(tmp_path) not in json.dumps(parade["config"])
    assert {query.split("-")[0] for query in read_run(folder.parent / "test" / "parade.1.run.gz")} == {"test"}

    check_report(folder, rows)

    # what is damaged or changed is run again, and nothing else
    (folder / "parade.1.run.gz").write_bytes(b"")
    study(*budget, ROWS, seeds, "edges.sparsity=0.5")
    changed = {name for name, time in times(folder).items() if time != after[name]}
    assert changed == {"parade.1.json", "socialformer-edge.0.json", "socialformer-edge.1.json"}


def check_report(folder, rows):
    """The tables and figures, beside what is computed here from the run files alone."""
    queries = [f"test_bal-{animal}" for animal in ANIMALS[4:]]
    relevant = dict(zip(queries, ANIMALS[4:], strict=True))

    def reciprocal(row, seed):
        run = read_run(folder / f"{row}.{seed}.run.gz")
        order = {query: sorted(run[query], key=lambda d, query=query: (-run[query][d], d)) for query in queries}
        return {query: 1 / (1 + order[query].index(relevant[query])) for query in queries}

    found = {row: [reciprocal(row, seed) for seed in (0, 1)] for row in rows}
    mean = {row: {q: fmean(one[q] for one in seeds) for q in queries} for row, seeds in found.items()}
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
        fmean(fmean(one["interpolated"]["measures"]["test_bal"]["RR@10"].values()) for one in rows["parade"])
    )

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
    assert [line.count("|") for line in rows_of] == [24, 5, 5, 4]
    assert f"{fmean(mean['parade'].values()):.4f} ± " in rows_of[0]
    for name in ("by-length", "by-evidence", "by-anchor"):
        assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_tries_are_run_on_dev_only(budget, tmp_path):
    typed = [*budget, "part=tries", "data=[wtq]", "rows=[parade,led-by-cls]", "warm_up.groups=0"]
    found = study(*typed)["wtq", "dev_bal"]
    assert found["led-by-cls"][0]["config"]["recipe"]["model"]["leader"] == "cls"
    folder = tmp_path / "results" / "wtq" / "dev_bal" / "tries"
    for row in ("parade", "led-by-cls"):
        assert set(read_run(folder / f"{row}.0.run.gz")) == {f"dev_bal-{animal}" for animal in SPLITS["dev_bal"]}
    assert "| [CLS] is used to sum up a passage, a word is not |" in (folder / "study.md").read_text()
    assert not (tmp_path / "results" / "wtq" / "test_bal").exists()


def test_later_seeds_and_tries_find_the_attention_that_others_have_computed(budget, tmp_path, monkeypatch):
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
    tries = ["part=tries", "data=[wtq]"]
    assert pairs(*tries, "rows=[as-it-stands,led-by-cls]") <= 4 * 2  # the training groups of another seed
    assert pairs(*tries, "rows=[mean]") == 0


def test_tries_are_measured_where_systems_can_differ(budget, tmp_path):
    """One of the two dev pages is among its first four candidates: the question about the other is left out."""
    found = study(*budget, "data.depth=4", "part=tries", "data=[wtq]", "rows=[parade]")["wtq", "dev_bal"]["parade"]
    assert set(found[0]["measures"]["RR@10"]) == {"dev_bal-lynx"}
    folder = tmp_path / "results" / "wtq" / "dev_bal" / "tries"
    assert len(read_run(folder / "parade.0.run.gz")["dev_bal-lynx"]) == 4
    text = (folder / "study.md").read_text()
    assert "1 queries, their first 4 candidates at most, and among them the relevant one, the same for all" in text


def test_costs_are_those_of_the_first_seed(budget, tmp_path):
    for seed, seconds in ((0, 100.0), (1, 7.0)):
        study(*budget, "rows=[parade]", f"seeds=[{seed}]", "warm_up.groups=0")
        for split in ("test", "test_bal"):
            file = tmp_path / "results" / "wtq" / split / f"parade.{seed}.json"
            value = json.loads(file.read_text())
            value["training_seconds"], value["seconds_per_document"] = seconds, seconds / 10
            file.write_text(json.dumps(value))
    study(*budget, "rows=[parade]", "seeds=[0,1]", "warm_up.groups=0", "minutes=0")
    with open(tmp_path / "results" / "wtq" / "test" / "study.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["Seeds"], line["Training (s)"], line["s / document"]) == ("2", "100.0", "10.0")


def test_two_processes_write_the_study_of_one(budget, tiny_bert, tmp_path):
    """torchrun: the same warm-up, runs and tables' measures; without dropout two draw nothing that one would not."""
    rows = ["rows=[bm25,parade,socialformer-edge]", "+trainer.arguments.gradient_accumulation_steps=2"]
    rows += ["trainer.groups=8", "data.queries.test=2", "data.queries.dev=2", "warm_up.groups=8"]
    bert = shutil.copytree(tiny_bert[0], tmp_path / "bert")
    bert_config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps(bert_config | {"hidden_dropout_prob": 0.0}))
    rows += [f"backbone={bert}"]
    rest = [one for one in budget if one.split("=")[0] not in ("backbone", "results", "work")]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    for name, how in (("one", []), ("two", torchrun)):
        typed = [*rest, *rows, f"results={tmp_path / name}", f"work={tmp_path / name / 'work'}"]
        done = subprocess.run(
            [sys.executable, *how, str(EXPERIMENTS / "study.py"), *typed], cwd=tmp_path, capture_output=True,
            text=True, timeout=600, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.count("# wtq, split test:") == 1
        assert done.stderr.count("3 of 3 rows are finished") == 1
    warm = [load_file(tmp_path / n / "work" / "warm" / "cpu" / "wtq" / "model.safetensors") for n in ("one", "two")]
    assert [key for key, value in warm[0].items() if not torch.equal(value, warm[1][key])] == []
    for split in ("test", "test_bal"):
        one, two = (tmp_path / name / "wtq" / split for name in ("one", "two"))
        assert len(list(one.glob("*.run.gz"))) == 3
        for run in one.glob("*.run.gz"):
            assert run.read_bytes() == (two / run.name).read_bytes(), run.name
        assert (one / "buckets.csv").read_text() == (two / "buckets.csv").read_text()


def test_passages_begin_where_questions_are_asked(tmp_path, budget):
    from evidence import Evidence, read_evidence
    from study_warm_up import passages

    from socialgraph.data import load_folder

    folder = tmp_path / "data" / "wtq"
    collection = load_folder(folder)
    evidence = read_evidence(folder)
    backbone = budget[3].removeprefix("backbone=")
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


@pytest.mark.parametrize(("size", "part"), [("cpu", "all"), ("gpu", "all"), ("cpu", "tries"), ("gpu", "tries")])
def test_every_cell_is_something_to_run(path, size, part):
    from study_plan import read_study
    from study_runs import identity

    plan = read_study([f"size={size}", f"part={part}"])
    assert len(plan.cells) == len(set(plan.cells))
    seen = {}
    for cell in plan.cells:
        if cell.seed == 0 and cell.data == "wtq":
            wanted = json.dumps(identity(plan, cell, plan.compose(cell, "warmed up"), "test_bal"))
            assert wanted not in seen, f"{cell.name} is the same as {seen[wanted]}"
            seen[wanted] = cell.name
            assert "../shared" not in wanted
    if part == "all":
        assert len(seen) == 25 + 8 - 2  # two of Table 2 are in Table 1
        assert {cell.data for cell in plan.cells} == {"wtq", "fairytale"}


def test_what_the_tries_have_chosen_is_a_part(path):
    from study_plan import read_study

    plan = read_study(["part=past", "parts.past.rows=[k-core,led-by-cls]", "parts.past.data=[wtq]"])
    assert [cell.entry.row for cell in plan.cells] == ["k-core", "led-by-cls"]
    assert {cell.entry.group for cell in plan.cells} == {"Past the paper"}
    one = plan.compose(plan.cells[0], "warmed up")
    assert list(one.data.splits.test) == ["test_bal", "test"]
    tried = read_study(["part=tries", "rows=[k-core]"])
    reading = tried.compose(tried.cells[0], "warmed up")
    for part in ("recipe", "trainer"):  # test is ranked by what dev has chosen, a reading
        assert one[part] == reading[part]
    assert reading.recipe.passages is None
    assert reading.trainer.arguments.learning_rate == 0.0


def test_a_figure_has_all_systems_or_of_many_the_chosen_ones(path):
    in_figure = importlib.import_module("study_report").in_figure
    names = {row: row.upper() for row in "abcdefghi"}
    few = dict(list(names.items())[:8])
    assert in_figure(few, ["b", "a"]) == list("ABCDEFGH")
    assert in_figure(names, ["i", "z", "b"]) == ["B", "I"]  # in the table's order
    assert in_figure(names, ["i"]) == list("ABCDEFGH")  # one alone is no comparison


def test_what_is_confirmed_is_asked_of_questions_that_no_row_has_ranked(budget, tmp_path):
    """A question of ``test`` that is in ``test_bal`` too is left out; the table stands beside those of other parts."""
    from study_plan import read_study

    (past, confirm) = (read_study([f"part={part}"]).cells for part in ("past", "confirm"))
    assert {cell.entry.row for cell in past} | {"bm25"} <= {cell.entry.row for cell in confirm}
    one = read_study(["part=confirm"]).compose(confirm[1], "warmed up")
    assert (list(one.data.splits.test), one.data.queries.outside) == (["test"], "test_bal")

    data = tmp_path / "data" / "wtq"
    for file in ("queries.{}.tsv", "qrels.{}.txt", "run.bm25.{}.txt"):
        lines = (data / file.format("dev_bal")).read_text().splitlines(keepends=True)
        with open(data / file.format("test_bal"), "a") as both:
            both.writelines(line for line in lines if line.startswith("dev_bal-lynx"))
    rows = ["part=all", "rows=[parade,untrained-circles,untrained-passages]", "data=[wtq]", "warm_up.groups=0"]
    where = ["parts.past.data=[fairytale]", "parts.confirm.data=[wtq]"]
    asked = ["parts.confirm.overrides=['data.splits.test=[dev_bal]','+data.queries.outside=test_bal']"]
    found = study(*budget, *rows, *where, *asked)
    assert set(found) == {("wtq", "test_bal"), ("wtq", "test"), ("wtq", "dev_bal")}
    assert set(found["wtq", "dev_bal"]) == {"untrained-circles", "untrained-passages"}
    for row in found["wtq", "dev_bal"].values():
        assert set(row[0]["measures"]["RR@10"]) == {"dev_bal-newt"}
    text = (tmp_path / "results" / "wtq" / "dev_bal" / "study.md").read_text()
    assert "1 queries, none of them in test_bal, their first 8 candidates at most, the same for all rows" in text
    assert "Δ RR@10 vs untrained-circles %" in text  # no row is called parade there
    assert (tmp_path / "results" / "wtq" / "dev_bal" / "by-evidence.png").exists()
    assert "Δ RR@10 vs PARADE %" in (tmp_path / "results" / "wtq" / "test_bal" / "study.md").read_text()


def test_parts_share_a_warm_up(path):
    from study_plan import read_study
    from study_runs import warm_up_identity

    plans = [read_study([]), read_study(["part=tries"]), read_study(["data.queries.test=3", "measures=[AP]"])]
    wanted = warm_up_identity(plans[0], "wtq")
    assert [warm_up_identity(plan, "wtq") for plan in plans] == [wanted] * 3
    assert wanted != warm_up_identity(plans[0], "fairytale")
    assert wanted != warm_up_identity(read_study(["warm_up.groups=3"]), "wtq")


def test_the_core(path):
    from study_plan import read_study

    plan = read_study(["size=gpu"])
    assert [cell.seed for cell in plan.cells] == [0] * 9 + [1] * 9 + [2] * 9
    rows = [
        "bm25", "firstp", "maxp", "parade", "longformer-global", "bigbird", "socialformer-node", "socialformer-edge",
        "random-edges",
    ]  # fmt: skip
    assert [cell.entry.row for cell in plan.cells] == rows * 3
    one = plan.compose(plan.cells[-1], "warmed up")
    assert (one.recipe.document_length, one.partition.k, one.seed) == (2048, 16, 2)
    assert list(one.recipe.edges.patterns) == ["uniform"]
    assert list(one.data.splits.test) == ["test_bal", "test"]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            ["part=past", "parts.past.rows=[]"],
            r"part=past has no rows yet: name some of tries.yaml, parts\.past\.rows=\[\.\.\.\]",
        ),
        (["size=tpu"], "size must be one of cpu, gpu, got 'tpu'"),
        (["part=cor"], "part must be one of core, tales, rest, past, confirm, all, tries, got 'cor'"),
        (["rows=[bm26]"], r"part=core has no 'bm26' for rows; there are: bm25, firstp, "),
        (["data=[pydocs]"], r"part=core has no 'pydocs' for data; there are: wtq"),
        (["rows"], "an option is written key=value"),
    ],
)
def test_options_that_do_not_exist(path, typed, message):
    from study_plan import read_study

    with pytest.raises(OptionError, match=message):
        read_study(typed)


EVIDENCE = "qid\tdoc_id\tstart_tok\tend_tok\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("evidence.tsv", "qid\tdoc\n", r":1: expected the header qid doc_id start_tok end_tok, got 'qid doc'"),
        ("evidence.tsv", EVIDENCE + "q\td\t3\n", r":2: expected 4 columns, got 3 in 'q d 3'"),
        ("evidence.tsv", EVIDENCE + "q\t\t3\t4\n", r":2: expected 4 columns, got 4 in 'q  3 4'"),
        ("evidence.tsv", EVIDENCE + "q\td\t-3\t4\n", r":2: expected a whole number of 0 or more, got '-3'"),
        ("evidence.tsv", EVIDENCE + "q\td\t4\t4\n", r":2: the evidence must end after it starts, got 4 to 4"),
        ("evidence.tsv", EVIDENCE + "q\td\t3\t4\nq\td\t3\t4\n", r":3: query 'q' comes twice"),
        ("flags.tsv", "q\t1\t1\nq\t2\t1\n", r":2: expected 0 or 1 in the second column, got '2'"),
        ("flags.tsv", "q\t1\t1\nq\t0\t1\n", r":2: query 'q' comes twice"),
        ("flags.tsv", "q\t1\tfirst\n", r":1: expected a whole number of 0 or more, got 'first'"),
    ],
)
def test_tables_that_are_not_what_they_should_be(path, tmp_path, name, text, message):
    from evidence import read_evidence, read_flags

    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name + message):
        (read_evidence if name.startswith("evidence") else read_flags)(tmp_path)


def test_the_real_tables(path, shared):
    from evidence import read_evidence, read_flags

    for name, count in (("wtq", 21962), ("fairytale", 10562)):
        assert len(read_evidence(shared / "data" / name)) == count
    flags = read_flags(shared / "data" / "wtq")
    assert (len(flags), sum(flags.values())) == (22027, 8985)


def test_a_pack_holds_all_that_is_needed(budget, tmp_path):
    from study_pack import pack
    from study_plan import read_study

    file = tmp_path / "study.tar.xz"
    pack(read_study([*budget, ROWS, "data.depth=3"]), file)
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "there")
    with safe_open(tmp_path / "there" / "backbone" / "model.safetensors", "pt") as weights:
        assert {str(weights.get_tensor(key).dtype) for key in weights.keys()} == {"torch.float16"}  # noqa: SIM118
    run = read_run(tmp_path / "there" / "data" / "wtq" / "run.bm25.test_bal.txt")
    assert list(run["test_bal-toad"]) == ANIMALS[:3]
    there = [f"data_root={tmp_path / 'there' / 'data'}", f"backbone={tmp_path / 'there' / 'backbone'}"]
    rest = [one for one in budget if one.split("=")[0] not in ("data_root", "backbone")]
    rows = study(*there, *rest, "rows=[bm25,parade]", "data.depth=3")["wtq", "test_bal"]
    assert rows["parade"][0]["config"]["recipe"]["model"]["backbone"] == "warmed up"
    assert len(read_run(tmp_path / "results" / "wtq" / "test_bal" / "parade.0.run.gz")["test_bal-toad"]) == 3


def test_the_command(budget, tmp_path, monkeypatch):
    def call(*typed):
        command = [sys.executable, str(EXPERIMENTS / "study.py"), *typed]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    done = call("--help")
    for words in ("size: cpu", "minutes=10", "part=tries", "--pack"):
        assert words in done.stdout
    done = call(*budget, "rows=[bm25]")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "| BM25 | - | 1 | " in done.stdout
    assert "1 of 1 rows are finished" in done.stderr
    for typed, message in (
        ("rows=[bm26]", "error: part=core has no 'bm26' for rows; there are: bm25, firstp, "),
        ("minute=10", "error: Could not override 'minute'"),
    ):
        monkeypatch.setattr(sys, "argv", ["study.py", *budget, typed])
        with pytest.raises(SystemExit, match=message):
            importlib.import_module("study").main()
