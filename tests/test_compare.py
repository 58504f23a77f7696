"""experiments/compare.py: options with several values, runs that are executed once, circles beside measures."""

import json
from pathlib import Path

import pytest
from commands import configuration, configured, times
from hydra import compose
from hydra.utils import instantiate
from lab.comparison import Comparison, Line
from lab.levels.runs import level_runs
from lab.overrides import as_option
from lab.plots import apart
from lab.product import product_rows
from lab.report import Report
from workshop import MY_MODULE, compare, table

from socialgraph import recipes
from socialgraph.recipes.build import build
from socialgraph.recipes.compose import compose_recipe, taken


def test_partitions_side_by_side_once(workshop, caplog):
    caplog.set_level("INFO")
    typed = ["partition=edge,node,my_module.Pairs", *workshop]
    folder = compare(*typed)
    first = times(folder)
    rows = ("edge", "node", "my_module.Pairs")
    assert set(first) == {f"partition={row}.0.{end}" for row in rows for end in ("json", "run.gz")}
    edge, node, pairs = table(folder)
    assert [line["partition"] for line in (edge, node, pairs)] == list(rows)
    # the statistics are those of the class: one circle, of the first two of 48 nodes
    assert [float(pairs[f"median {name}"]) for name in ("circles", "circle_size_mean", "overlap")] == [1, 2, 1]
    assert float(pairs["median nodes_kept"]) == float(pairs["median reach_mean"]) == pytest.approx(2 / 48)
    assert float(edge["median circles"]) == 4  # size.compared_circles
    assert float(node["median overlap"]) == 1  # nodes are not shared
    assert edge["median density"] == node["median density"] == pairs["median density"]  # the same graphs
    assert edge["p of RR@10"] == ""  # the baseline: the first
    values = json.loads((folder / "partition=edge.0.json").read_text())
    assert float(edge["nDCG@10"]) == pytest.approx(sum(values["measures"]["nDCG@10"].values()) / 7)
    assert len(values["statistics"]["circles"]) == 5
    for line in (edge, node, pairs):
        assert 0 <= float(line["RR@10"]) <= 1
        assert all(float(line[cost]) > 0 for cost in ("s / document", "Graph (s)", "Training (s)"))
    text = (folder / "table.md").read_text()
    assert text.startswith("| partition | circles | size | nodes kept | edges kept | overlap | reach | query kept | ")
    assert "differs from edge in RR@10 or nDCG@10 (paired t-test" in text
    assert (folder / "quality-and-cost.png").read_bytes().startswith(b"\x89PNG")

    # nothing again, whatever the others are tested against
    compare(*typed, "baseline=node")
    assert times(folder) == first
    assert [line["p of RR@10"] == "" for line in table(folder)] == [False, True, False]

    # a class that was edited is another row, and only it
    (Path("my_module.py")).write_text(MY_MODULE + "\n# edited\n")
    caplog.clear()
    compare(*typed)
    assert "partition=my_module.Pairs.0: changed: sources.my_module.Pairs was " in caplog.text
    assert [name for name, time in times(folder).items() if first[name] != time and "Pairs" not in name] == []


def test_edges_and_options_are_axes_too(workshop):
    folder = compare("edges=my_module.Everybody", "edges.sparsity=0.6,0.9", "seeds=[0,1]", *workshop)
    lines = table(folder)
    assert [(line["edges"], line["edges.sparsity"]) for line in lines] == [
        ("my_module.Everybody", "0.6"), ("my_module.Everybody", "0.9"),
    ]  # fmt: skip
    for line in lines:
        assert float(line["median density"]) == pytest.approx(1 - float(line["edges.sparsity"]), abs=0.05)
        assert float(line["sd of RR@10"]) >= 0
    assert len(times(folder)) == 2 * 2 * 2
    assert " ± " in (folder / "table.md").read_text()
    (line,) = table(compare("edges=my_module.Chain", "name=chain", *workshop))
    assert float(line["median degree_mean"]) == pytest.approx(2 * 47 / 48)


def test_sentences_bring_their_own_edges(hydra):
    config = compose("config", ["partition=sentences"])
    assert config.edges._target_ == "socialgraph.edges.ReadingOrder"
    assert compose("config", ["partition=sentences", "edges=social"]).edges._target_ == "socialgraph.edges.SocialEdges"


def shelf(group):
    return sorted(file.stem for file in (Path(recipes.__file__).parent / group).iterdir())


@pytest.mark.parametrize("name", shelf("edges"))
def test_every_file_of_edges_can_be_made(hydra, name, tiny_bert):
    made = instantiate(compose("config", [f"edges={name}", f"model.backbone={tiny_bert[0]}"]).edges)
    assert type(made).__name__ == ("ReadingOrder" if name == "reading-order" else "SocialEdges")


@pytest.mark.parametrize("name", shelf("partition"))
def test_every_partition_takes_what_a_comparison_gives(hydra, name, caplog):
    config = compose("config", [f"partition={name}", "++partition.k=3"])
    made = build(taken(config.partition))
    assert (made.like if name == "random" else made).k == 3
    assert "left out" not in caplog.text


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("partition=xyz", "no partition is called 'xyz'; there are: beside-windows, edge, "),
        ("edges=socal,random", "no edges are called 'socal'; did you mean social?"),
        ("recipe=bigbrd,qds", "no recipe is called 'bigbrd'; did you mean bigbird?"),
        ("partition=my_modul.Pairs", "partition=my_modul.Pairs: No module named 'my_modul'; is it in this folder"),
        ("partition=my_module.Pair", "partition=my_module.Pair: my_module has no Pair; did you mean Pairs?"),
        (
            "partition=my_module.OneCircle",
            r"OneCircle\(k=\d+\) breaks the law .* on the graph 'batch of unequal documents': ",
        ),
        ("partition=my_module.Everybody", "partition=my_module.Everybody: Everybody is no subclass of socialg"),
        ("edges=my_module.a_function", "edges=my_module.a_function: a_function is no subclass of socialgr"),
        ("seed=0,1", r"seeds are averaged, not compared: write seeds=\[0,1,2\]"),
        ("baseline=edge,node", r"baseline is the same for all rows; a list is written baseline=\[...\]"),
        ("partition.k=2,4,2", "partition.k=2 is compared with itself: type it once"),
        ("beside=['partition=node']", "node is compared with itself: type it once"),
        ("baseline=nod", "baseline=nod is not among what is compared: edge; node; random"),
        ("partition.kk=1,2", r"partition.kk=1: no option is called partition.kk; did you mean partition.k\?"),
    ],
)
def test_mistakes(workshop, typed, message):
    with pytest.raises(SystemExit, match="^error: " + message):
        compare(typed, *workshop)


def test_what_is_typed_with_commas_is_varied(hydra):
    typed = ["partition=edge", "partition.k=2,4", "data.depth=5", "--cfg", "job", "seeds=[0,1]"]
    *others, varied = as_option(typed)
    assert others == ["data.depth=5", "--cfg", "job", "seeds=[0,1]"]
    options = list(configured("compare", varied).varied)
    assert options == ["partition=edge", "partition.k=2,4"]
    rows = product_rows(options, [])
    assert [row.overrides for row in rows] == [("partition=edge", "partition.k=2"), ("partition=edge", "partition.k=4")]
    assert [row.label for row in rows] == ["edge, partition.k=2", "edge, partition.k=4"]
    assert rows[0].name == "partition=edge,partition.k=2"


def test_what_trains_nothing_reads_as_much_as_a_ranker(hydra):
    config = configured("compare", "data.label=x")
    wanted = compose_recipe("socialformer-edge")
    for level, same in (("evidence", True), ("reading", True), ("training", False)):
        (run,) = level_runs(config, level, product_rows(["partition=edge"], []), Path("x"))
        found = {key: run.config.recipe[key] for key in ("document_length", "circles", "edges")}
        assert (found == {key: wanted[key] for key in found}) is same


@pytest.mark.parametrize("level", ["evidence", "training"])
def test_a_partition_with_a_number_of_its_own_gets_as_many_circles_as_the_others(level, tmp_path):
    (tmp_path / "partition").mkdir()
    (tmp_path / "partition" / "mine.yaml").write_text("_target_: socialgraph.partition.NodeCircles\nk: 3\n")
    for typed, expected in (((), None), (("k=5",), 5), (("partition.k=6",), 6)):
        with configuration(tmp_path):
            config = configured("compare", "data.label=x", *typed)
            runs = level_runs(config, level, product_rows(["partition=edge,mine"], []), Path("x"))
        edge, mine = (run.config.recipe.circles.k for run in runs)
        assert edge == mine != 3
        assert expected in (None, mine)


def test_circles_and_costs_in_a_table(hydra):
    config = configured("compare", "data.label=x", "measures=[RR@10]")

    def run(*values, circles=(4.0, 6.0, None)):
        return {
            "parameters": 5_000_000, "training_seconds": 60.0, "seconds_per_document": 0.5,
            "graph_seconds_per_document": 0.125, "peak_memory_bytes": None, "statistics": {"circles": list(circles)},
            "measures": {"RR@10": {f"q{i}": v for i, v in enumerate(values)}},
        }  # fmt: skip

    runs = [[run(0.1, 0.2, 0.3, 0.2), run(0.3, 0.2, 0.1, 0.2)],
            [run(0.9, 0.9, 0.8, 0.8), run(0.9, 0.9, 1.0, 0.8, circles=(7.0,))]]  # fmt: skip
    rows = product_rows(["model.inter_circle=true,false"], [])
    comparison = Comparison(config, [Line(*one) for one in zip(rows, runs, strict=True)], to=rows[0].name)
    first, second = Report(comparison).markdown().splitlines()[2:4]
    assert first.startswith("| True | 5 | ")  # median of 4, 6, 4, 6
    assert second.startswith("| False | 6 | ")  # median of 4, 6, 7
    assert second.endswith("| 0.8750 ± 0.0354 † | 5.0 | 60 | 0.5000 | 0.1250 | - |")  # means of the seeds: 0.85, 0.9
    assert apart([0.2, 0.5, 0.5, 0.5]) == pytest.approx([0.2, 0.445, 0.5, 0.555])
    assert apart([0.99, 0.99]) == pytest.approx([0.945, 1.0])
