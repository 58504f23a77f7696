"""The levels of compare.py: their numbers written out, scores that are kept, and the tables."""

import csv
import itertools
from statistics import fmean
from types import SimpleNamespace

import pytest
import scipy.stats
import torch
from commands import call, composed_from
from lab import execute
from lab.columns import interval_columns, own_interval_columns, power_columns
from lab.comparison import Comparison, Line
from lab.levels import reading
from lab.levels.evidence import measures
from lab.levels.runs import depends_on, random_reciprocal_rank
from lab.levels.scores import KeptScores, content
from lab.overrides import as_option
from lab.plan import Row
from omegaconf import OmegaConf
from torch_geometric.data import Batch

from socialgraph.data import Split
from socialgraph.data.graph import gather
from socialgraph.partition import Partition, RandomCircles, Whole, Windows
from socialgraph.ranking import differences
from socialgraph.testing.documents import document


def batch_of(sizes, partition: Partition | None = None, query=(13,), step=7):
    """A batch of documents of these sizes with the circles of a partition; with step 0 all begin alike."""
    graphs = [document([10 + (step * n + i * i) % 50 for i in range(size)], list(query), [1.0] * size)
              for n, size in enumerate(sizes)]  # fmt: skip
    batch = Batch.from_data_list(graphs)
    circles, leader = (partition or Windows(8))(torch.empty(2, 0, dtype=torch.long), batch.batch, batch.num_graphs)
    gather(batch, circles, leader, torch.ones_like(leader, dtype=torch.bool))
    return batch


def written_out(length, circles, start, end):
    """The measures of one document, by their definitions."""
    evidence = set(range(start, min(end, length)))
    union = set().union(*map(set, circles)) if circles else set()
    most = sorted(circles, key=lambda circle: -len(evidence & set(circle)))  # of equals the first
    held = [len(evidence & set().union(*most[:amount])) for amount in (1, 2)]
    runs = sum(sum(i - 1 not in circle for i in circle) for circle in map(set, circles))
    members = sum(map(len, circles))
    return {
        "lift": len(union & evidence) / len(evidence) - len(union) / length,
        "best circle": held[0] / len(evidence),
        "best two": held[1] / len(evidence),
        "run": members / max(1, runs),
        "sequences": len(circles),
        "words": members,
    }


@pytest.mark.parametrize("partition", [Windows(8, k=3), Whole(), Windows(5), RandomCircles(Windows(9, k=4), seed=3)])
def test_what_circles_hold(partition):
    sizes, places = (40, 9, 64, 1, 30), [(3, 12), (0, 4), (50, 90), (0, 1), (25, 28)]
    batch = batch_of(sizes, partition)
    found = measures(batch, torch.tensor(places))
    start = 0
    for number, (size, place) in enumerate(zip(sizes, places, strict=True)):
        mine = (batch.batch[batch.leader_index] == number).nonzero().flatten().tolist()
        circles = [(batch.circle_index[0, batch.circle_index[1] == c] - start).tolist() for c in mine]
        for name, value in written_out(size, circles, *place).items():
            assert float(found[name][number]) == pytest.approx(value, abs=1e-6), (number, name)
        start += size


def test_random_members_have_no_lift_and_whole_documents_none():
    sizes = range(200, 320)
    places = torch.tensor([[size // 2, size // 2 + 40] for size in sizes])
    for partition, tolerance in ((RandomCircles(Windows(16, k=3)), 0.03), (Whole(), 1e-6)):
        assert abs(float(measures(batch_of(sizes, partition), places)["lift"].mean())) < tolerance
    start = torch.zeros_like(places)
    start[:, 1] = 48
    assert (measures(batch_of(sizes, Windows(16, k=3)), start)["lift"] > 0.7).all()


def test_equal_sequences_are_read_once(tmp_path):
    def length(graph):
        return torch.bincount(graph.circle_index[1], minlength=graph.leader_index.numel()).float()

    few, many = batch_of((40, 24), Windows(8, k=2)), batch_of((40, 24), Windows(8))
    scores = KeptScores(tmp_path / "kept.safetensors", length)
    assert scores(few).tolist() == [8.0] * 4
    assert (scores.new, scores(many).tolist()) == (4, [8.0] * 8)
    assert scores.new == 8
    assert torch.equal(content(many)[[0, 1, 5, 6]], content(few))
    assert not torch.isin(content(batch_of((40, 24), Windows(8), query=(14,))), content(many)).any()
    assert not torch.isin(content(batch_of((40, 24), Windows(7))), content(many)).any()
    scores.save()
    again = KeptScores(tmp_path / "kept.safetensors", lambda graph: pytest.fail("everything is known"))
    assert torch.equal(again(many), scores(many))
    other = KeptScores(tmp_path / "other.safetensors", length)
    assert other(batch_of((40, 40), Windows(8), step=0)).tolist() == [8.0] * 10  # one document, twice
    assert other.new == 5
    (tmp_path / "kept.safetensors").write_bytes(b"damaged")
    assert KeptScores(tmp_path / "kept.safetensors", length)(few).tolist() == [8.0] * 4


def test_a_random_order():
    def split(n, relevant):
        names = [f"d{i}" for i in range(n)]
        return Split({"q": "?"}, {"q": {f"d{i}": 1 for i in range(relevant)}}, {"q": dict.fromkeys(names, 1.0)})

    for n, relevant, cut in ((5, 1, 10), (6, 2, 10), (6, 2, 3), (4, 4, 10)):
        orders = itertools.permutations(range(n))
        firsts = [min(place for place, d in enumerate(order, 1) if d < relevant) for order in orders]
        expected = fmean(1 / place if place <= cut else 0.0 for place in firsts)
        assert random_reciprocal_rank(split(n, relevant), cut) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [*execute.LEVELS, ""])
def test_what_is_born_at_random_is_so_by_the_seed_alone(kind, monkeypatch):
    born = []

    def made(recipe):
        born.append(torch.rand(3).tolist())
        raise InterruptedError

    monkeypatch.setattr(execute, "Recipe", made)
    monkeypatch.setattr(execute, "task_of", lambda config: None)
    run = SimpleNamespace(config=SimpleNamespace(seed=5, recipe=None), kind=kind)
    for _ in range(2):
        with pytest.raises(InterruptedError):
            execute.carry_out(run, None)
    assert born[0] == born[1]


def test_what_a_reading_depends_on():
    typed = ["partition=edge", "recipe.passages=null"]
    plain = depends_on(composed_from(*typed), "reading")
    assert not differences(plain, depends_on(composed_from(*typed, "trainer.bf16=auto"), "reading"))
    half = depends_on(composed_from(*typed, "trainer.bf16=true"), "reading")
    assert differences(plain, half) == ["bf16 was None, is True"]
    passages = depends_on(composed_from("partition=edge"), "reading")
    assert [one.split(" was ")[0] for one in differences(plain, passages)] == ["recipe.passages"]


class Tables:
    """What stands in the tables of a comparison's levels."""

    def __init__(self, folder):
        self.folder = folder

    def __getitem__(self, level):
        with open(self.folder / level, newline="") as file:
            return {line["partition"]: line for line in csv.DictReader(file)}


def test_two_levels_on_a_collection_with_evidence(budget, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    where = [f"data.root={tmp_path / 'data'}", f"sentence_backbone={budget[3].split('=')[1]}"]
    kept = [one for one in budget if one.split("=")[0] in ("model.backbone", "window", "partition.max_size")]
    typed = ["data=wtq", "data.splits.test=test_bal", "document_length=200", "trainer.bf16=false", "data.depth=8",
             "bounds=[48,100]", *where, *kept]  # fmt: skip
    call("compare", *as_option(["partition=edge,random,windows", *typed]))
    tables = Tables(tmp_path / "experiments/results/wtq/test_bal/compare")
    evidence, reading, both = tables["evidence/table.csv"], tables["reading/table.csv"], tables["summary.csv"]
    assert list(evidence) == list(reading) == list(both) == ["edge", "random", "windows"]
    windows = evidence["windows"]
    # the first eight windows of eight words: the answers, of three words, begin at 55, 67, 79 and 91
    assert float(windows["best circle"]) == pytest.approx((2 / 3 + 0 + 0 + 0) / 4)  # at 55, 56 and 57
    assert float(windows["best two"]) == pytest.approx(1 / 4)
    assert float(windows["lift"]) == pytest.approx(fmean([1 - 64 / 110, -64 / 130, -64 / 150, -64 / 170]))
    assert evidence["edge"]["p of lift"] == both["edge"]["p of lift"] == evidence["edge"]["Δ lift"] == ""
    assert float(windows["Δ lift"]) == pytest.approx(float(windows["lift"]) - float(evidence["edge"]["lift"]))
    for row in both:
        for name in ("lift", "sequences", "words", "Low of Δ", "p of lift", "Could show"):
            assert both[row][name] == evidence[row][name]
        for name in ("RR@10 encoder mean", "p of RR@10 encoder mean", "RR@10 reader mean", "Circles (s)"):
            assert both[row][name] == reading[row][name]
        assert both[row]["Could show (reading)"] == reading[row]["Could show"]
    assert [int(float(line["Read anew"])) > 0 for line in reading.values()] == [True] * 3
    text = capsys.readouterr().out
    headings = ["| partition | lift |", "| partition | RR@10 encoder mean |", "| partition | lift | sequences |"]
    assert sorted(map(text.index, headings)) == list(map(text.index, headings))
    assert f"A random order of the candidates has RR@10 {sum(1 / k for k in range(1, 9)) / 8:.4f}" in text
    for name in ("encoder mean", "encoder max", "reader mean", "reader max"):
        assert 1 / 8 <= float(reading["edge"][f"RR@10 {name}"]) <= 1
    folder = tables.folder
    times = {file: file.stat().st_mtime_ns for file in folder.glob("*.json")}
    assert len(times) == 6
    call("compare", *as_option(["partition=edge,random,windows", *typed]))
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*.json")} == times
    alone = ["partition=edge,random", *typed, "level=reading", "levels.reading.readers=[reader]", "name=alone"]
    call("compare", *as_option(alone))
    for row, line in Tables(folder.parent / "alone")["reading/table.csv"].items():
        assert line["RR@10 reader mean"] == reading[row]["RR@10 reader mean"]
        assert float(line["Read anew"]) == 0
        assert not any("encoder" in heading for heading in line)

    call("compare", *as_option([*alone, "levels.reading.measures=[RR@10 reader max,sequences]"]))
    for line in Tables(folder.parent / "alone")["reading/table.csv"].values():  # the first one is compared, and tested
        assert {"Δ RR@10 reader max", "p of RR@10 reader max"} <= line.keys()
        assert "p of RR@10 reader mean" not in line

    nothing_left = ["levels.reading.measures=[RR@10 encoder max]"]
    with pytest.raises(SystemExit, match=r"RR@10 encoder max'\], but levels.reading.readers=\['reader'\]"):
        call("compare", *as_option([*alone, *nothing_left]))


def test_what_a_table_of_questions_about_few_documents_could_show():
    """It is the documents that are counted: their t has few degrees of freedom."""
    config = OmegaConf.create({"measures": ["x"], "report": {"significance": {"to": ["a"], "measures": ["x"]}}})
    clusters = {f"q{n}": f"d{n % 5}" for n in range(40)}
    values = torch.randn(40, generator=torch.Generator().manual_seed(0)).tolist()
    runs = ({"name": name, "measures": {"x": dict(zip(clusters, some, strict=True))}, "clusters": clusters}
            for name, some in (("a", [0.0] * 40), ("b", values)))  # fmt: skip
    of = Comparison(config, [Line(Row(run["name"]), [run]) for run in runs])
    low, high = of.gain(of.lines[1]).interval
    quantile = scipy.stats.t.ppf(0.975, 4)
    error = (high - low) / 2 / quantile
    assert power_columns(of)[0].value(of.lines[1]) == pytest.approx(error * (quantile + scipy.stats.norm.ppf(0.8)))


def test_a_document_without_a_circle_comes_last():
    score, document = torch.tensor([-3.0, -1.0, -5.0]), torch.tensor([0, 0, 2])
    assert reading.pool(score, document, 3, "mean").tolist() == [-2.0, -1e4, -5.0]
    assert reading.pool(score, document, 3, "max").tolist() == [-1.0, -1e4, -5.0]


def test_questions_about_one_document_are_not_tested():
    """There is a table of them; a test would need another document."""
    test = {"to": ["a"], "measures": ["x"], "level": 0.05}
    config = OmegaConf.create({"measures": ["x"], "report": {"significance": test}})
    runs = ({"name": name, "measures": {"x": {"q1": value, "q2": 0.5}}, "clusters": {"q1": "d", "q2": "d"}}
            for name, value in (("a", 0.0), ("b", 1.0)))  # fmt: skip
    of = Comparison(config, [Line(Row(run["name"]), [run]) for run in runs])
    columns = [*power_columns(of), *interval_columns(of), *own_interval_columns(of)]
    assert [column.value(line) for column in columns for line in of.lines] == [None] * 12
    assert of.p_value(of.lines[1], "x") is None
    assert not of.is_marked(of.lines[1], "x")


def test_what_a_table_could_show():
    """A difference of that size is seen in four comparisons of five."""
    test = {"to": ["a"], "measures": ["x"], "level": 0.05}
    config = OmegaConf.create({"measures": ["x"], "report": {"significance": test}})
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(200, generator=generator)
    noise = ((noise - noise.mean()) / noise.std()).tolist()
    lines = [
        Line(Row(name), [{"name": name, "measures": {"x": {f"q{i}": value * n for i, n in enumerate(noise)}}}])
        for name, value in (("a", 0.0), ("b", 1.0), ("c", 0.1))
    ]
    least, needed = power_columns(Comparison(config, lines))
    found = least.value(lines[1])
    shift = found * 200**0.5  # in standard errors
    seen = 1 - scipy.stats.nct.cdf(scipy.stats.t.ppf(0.975, 199), 199, shift)
    assert seen == pytest.approx(0.8, abs=0.005)
    assert needed.value(lines[1]) == pytest.approx(200 * (found / 0.05) ** 2, abs=1)
    assert least.value(lines[0]) is None
    assert least.value(lines[2]) == pytest.approx(found / 10)
    assert needed.value(lines[2]) is None  # what one cares about would be seen with fewer
