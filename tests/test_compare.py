"""experiments/compare.py: options with several values, runs that are executed once, two levels that train nothing."""

import csv
from pathlib import Path
from statistics import fmean

import pytest
from commands import configured, times
from hydra import compose
from hydra.utils import instantiate
from lab.config import varied_as_one
from lab.levels.runs import baseline_of, level_runs, product_rows
from workshop import MY_MODULE, compare, table

from socialgraph import recipes
from socialgraph.recipes.build import build
from socialgraph.recipes.compose import compose_recipe, filter_kwargs


def test_partitions_side_by_side_once(workshop, capsys):
    typed = ["partition=edge,my_module.Pairs", *workshop]
    folder = compare(*typed)
    first = times(folder)
    assert set(first) == {
        f"partition={row}.0.{end}" for row in ("edge", "my_module.Pairs") for end in ("json", "run.gz")
    }
    edge, pairs = table(folder)
    assert [line["partition"] for line in (edge, pairs)] == ["edge", "my_module.Pairs"]
    assert edge["p of RR@10"] == ""  # the baseline: the first
    assert all(float(line[cost]) > 0 for line in (edge, pairs) for cost in ("s / document", "Training (s)"))
    assert "differs from edge in RR@10 or nDCG@10 (paired t-test" in (folder / "table.md").read_text()

    # nothing again, whatever the others are tested against
    compare(*typed, "baseline=my_module.Pairs")
    assert times(folder) == first
    assert [line["p of RR@10"] == "" for line in table(folder)] == [False, True]

    # a class that was edited is another row, and only it
    Path("my_module.py").write_text(MY_MODULE + "\n# edited\n")
    capsys.readouterr()
    compare(*typed)
    assert "partition=my_module.Pairs.0: changed: sources.my_module.Pairs was " in capsys.readouterr().out
    assert [name for name, time in times(folder).items() if first[name] != time and "Pairs" not in name] == []


def shelf(group):
    return sorted(file.stem for file in (Path(recipes.__file__).parent / group).iterdir())


@pytest.mark.parametrize("name", shelf("edges"))
def test_every_file_of_edges_can_be_made(hydra, name, tiny_bert):
    made = instantiate(compose("config", [f"edges={name}", f"model.backbone={tiny_bert[0]}"]).edges)
    assert type(made).__name__ == ("ReadingOrder" if name == "reading-order" else "SocialEdges")


@pytest.mark.parametrize("name", shelf("partition"))
def test_every_partition_takes_what_a_comparison_gives(hydra, name, caplog):
    made = build(filter_kwargs(compose("config", [f"partition={name}", "++partition.k=3"]).partition))
    assert (made.like if name == "random" else made).k == 3
    assert "left out" not in caplog.text


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("partition=my_modul.Pairs", "partition=my_modul.Pairs: No module named 'my_modul'; is it in this folder"),
        ("partition=my_module.Everybody", "partition=my_module.Everybody: Everybody is no subclass of socialg"),
        ("seed=0,1", "seed is the same for all rows; seeds are averaged, seeds="),
        ("partition.k=2,4,2", "partition.k=2 is compared with itself: type it once"),
        ("baseline=nod", "baseline=nod is not among what is compared: edge; node; random"),
        ("partition.kk=1,2", "partition.kk=1: Could not override 'partition.kk'."),
    ],
)
def test_mistakes(workshop, typed, message, capsys):
    with pytest.raises(SystemExit):
        compare(typed, *workshop)
    assert message in capsys.readouterr().err


def test_what_is_typed_with_commas_is_varied(hydra):
    typed = ["partition=edge", "partition.k=2,4", "data.depth=5", "--cfg", "job", "seeds=[0,1]"]
    *others, varied = varied_as_one(typed)
    assert others == ["data.depth=5", "--cfg", "job", "seeds=[0,1]"]
    assert varied_as_one(["-m", *typed]) == ["-m", *typed]  # a job for each value
    options = list(configured("compare", varied).varied)
    assert options == ["partition=edge", "partition.k=2,4"]
    rows = product_rows(options, [])
    assert [row.overrides for row in rows] == [("partition=edge", "partition.k=2"), ("partition=edge", "partition.k=4")]
    assert [row.label for row in rows] == ["edge, partition.k=2", "edge, partition.k=4"]
    assert rows[0].name == "partition=edge,partition.k=2"


@pytest.mark.parametrize(
    ("named", "label"),
    [
        (None, "edge, partition.k=2"),
        (["windows", None], "windows, partition.k=null"),
        (["edge", 4], "edge, partition.k=4"),
        ([0.5], "random, edges.sparsity=0.5"),
    ],
)
def test_a_baseline_is_named_by_its_values(hydra, named, label):
    beside = ["partition=windows partition.k=null", "partition=random edges.sparsity=0.5"]
    assert baseline_of(product_rows(["partition=edge,windows", "partition.k=2,4"], beside), named).label == label


@pytest.mark.parametrize("typed", [(), ("k=5",), ("partition.k=6",)])
def test_what_trains_nothing_reads_as_much_as_a_ranker_and_all_partitions_get_as_many_circles(hydra, typed):
    config, wanted = configured("compare", "data.label=x", *typed), compose_recipe("socialformer-edge")
    for level in ("evidence", "reading", "training"):
        runs = level_runs(config, level, product_rows(["partition=edge,windows"], []), Path("x"))
        edge, windows = (run.config.recipe for run in runs)
        assert edge.circles.k == windows.circles.k
        assert not typed or str(edge.circles.k) == typed[0][-1]
        assert (edge.document_length == wanted["document_length"]) is (level != "training")
        assert (edge.circles == wanted["circles"]) is (level != "training" and not typed)


def lines(folder, level):
    with open(folder / level / "table.csv", newline="") as file:
        return {line["partition"]: line for line in csv.DictReader(file)}


def test_two_levels_on_a_collection_with_evidence(tmp_path, tiny_bert, monkeypatch, capsys):
    """Documents of 30 to 170 word pieces; a question is three of them, and its evidence is where they stand."""
    monkeypatch.chdir(tmp_path)
    write_evidence(tmp_path / "wtq")
    typed = [
        "data=wtq", f"data.root={tmp_path}", f"sentence_backbone={tiny_bert[0]}", f"model.backbone={tiny_bert[0]}",
        "document_length=200", "trainer.bf16=false", "data.depth=8", "partition.max_size=8",
    ]  # fmt: skip
    compare("partition=edge,random,windows", *typed, "level=[evidence,reading]")
    folder = tmp_path / "experiments/results/wtq/test_bal/compare"
    evidence, reading = lines(folder, "evidence"), lines(folder, "reading")
    assert list(evidence) == list(reading) == ["edge", "random", "windows"]
    windows = evidence["windows"]
    # the first eight windows of eight words: the answers, of three words, begin at 55, 67, 79 and 91
    assert float(windows["best circle"]) == pytest.approx((2 / 3 + 0 + 0 + 0) / 4)  # at 55, 56 and 57
    assert float(windows["best two"]) == pytest.approx(1 / 4)
    assert float(windows["lift"]) == pytest.approx(fmean([1 - 64 / 110, -64 / 130, -64 / 150, -64 / 170]))
    assert evidence["edge"]["p of lift"] == evidence["edge"]["Δ lift (95 %)"] == ""
    assert float(windows["Δ lift (95 %)"]) == pytest.approx(float(windows["lift"]) - float(evidence["edge"]["lift"]))
    assert [int(float(line["Cache misses"])) > 0 for line in reading.values()] == [True] * 3
    text = capsys.readouterr().out
    assert f"A random order of the candidates has RR@10 {sum(1 / k for k in range(1, 9)) / 8:.4f}" in text
    for name in ("encoder mean", "encoder max", "reader mean", "reader max"):
        assert 1 / 8 <= float(reading["edge"][f"RR@10 {name}"]) <= 1
    alone = [*typed, "level=[reading]", "levels.reading.readers=[reader]", "name=alone"]
    compare("partition=edge,random", *alone)
    for row, line in lines(folder.parent / "alone", "reading").items():
        assert line["RR@10 reader mean"] == reading[row]["RR@10 reader mean"]
        assert float(line["Cache misses"]) == 0
        assert not any("encoder" in heading for heading in line)
    with pytest.raises(SystemExit):
        compare("partition=edge,random", *alone, "levels.reading.measures=[RR@10 encoder max]")
    assert "max'], but what is measured is RR@10 reader mean, " in capsys.readouterr().err


def write_evidence(folder):
    """Write a collection in wtq's form."""
    animals = ["otter", "heron", "badger", "lynx", "newt", "raven", "stoat", "toad"]
    folder.mkdir()
    words = {animal: [f"w{(place * 23 + i * i) % 190}" for i in range(30 + 20 * place)] for place, animal in
             enumerate(animals)}  # fmt: skip
    texts = [f'{{"doc_id": "{animal}", "text": "{" ".join(some)}"}}\n' for animal, some in words.items()]
    (folder / "corpus.jsonl").write_text("".join(texts))
    evidence = ["qid\tdoc_id\tstart_tok\tend_tok"]
    for split, part in {"train": animals[:3], "dev_bal": animals[3:5], "test_bal": animals[4:]}.items():
        starts = {animal: 7 + 12 * animals.index(animal) for animal in part}
        asked = {animal: " ".join(words[animal][start : start + 3]) for animal, start in starts.items()}
        (folder / f"queries.{split}.tsv").write_text("".join(f"{split}-{a}\t{asked[a]}\n" for a in part))
        (folder / f"qrels.{split}.txt").write_text("".join(f"{split}-{a} 0 {a} 1\n" for a in part))
        ranked = (f"{split}-{a} Q0 {d} {i + 1} {9 - i} bm25\n" for a in part for i, d in enumerate(animals))
        (folder / f"run.bm25.{split}.txt").write_text("".join(ranked))
        evidence += [f"{split}-{a}\t{a}\t{start}\t{start + 3}" for a, start in starts.items()]
    (folder / "evidence.tsv").write_text("\n".join(evidence) + "\n")
