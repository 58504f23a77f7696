"""Pictures beside tables: which lines make a curve."""

from lab import results
from lab.plots import curves, quality_and_sequences
from lab.report import Comparison, Line
from lab.results import write_figure
from lab.rows import Row
from omegaconf import OmegaConf

CONFIG = OmegaConf.create({"measures": ["RR@10", "sequences"], "report": {"significance": {"to": ["other"]}}})


def line(options, value, sequences):
    row = Row(",".join(f"{key}={one}" for key, one in options.items()), (), beside={"options": options})
    return Line(row, [{"measures": {"RR@10": {"q": value}, "sequences": {"q": sequences}}}])


def comparison(lines):
    return Comparison(CONFIG, lines)


def test_lines_that_differ_in_k_alone_make_a_curve():
    lines = [
        line({"partition": name, "edges.sparsity": sparsity, "partition.k": k}, 0.5, float(k))
        for name in ("edge", "my.Own")
        for sparsity in ("0.9", "0.95")
        for k in ("2", "4")
    ]
    found = curves(comparison(lines))
    assert {name: [one.row.name for one in group] for name, group in found.items()} == {
        f"{name}, edges.sparsity={sparsity}": [
            f"partition={name},edges.sparsity={sparsity},partition.k={k}" for k in (2, 4)
        ]
        for name in ("edge", "my.Own")
        for sparsity in ("0.9", "0.95")
    }


def test_k_alone_makes_one_curve(tmp_path):
    of = comparison([line({"partition.k": k}, 0.5, float(k)) for k in ("2", "4")])
    assert list(curves(of)) == ["circles"]
    write_figure(tmp_path / "drawn.png", 100, quality_and_sequences, of)
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")


def test_what_belongs_to_no_curve_is_a_mark():
    lines = [line({"partition": "edge", "partition.k": k}, 0.5, float(k)) for k in ("2", "4")]
    of = comparison([*lines, line({"partition": "windows", "partition.k": "null"}, 0.9, 32.0)])
    assert list(curves(of)) == ["edge"]
    curve, mark = quality_and_sequences(of).axes[0].lines
    assert (curve.get_xydata().tolist(), mark.get_xydata().tolist()) == ([[2, 0.5], [4, 0.5]], [[32, 0.9]])
    assert mark.get_linestyle() == "None"


def test_nothing_is_drawn_where_k_is_not_varied(tmp_path):
    one_k = [line({"partition": name, "partition.k": "4"}, 0.5, 4.0) for name in ("edge", "node")]
    none = [line({"partition": name}, 0.5, 4.0) for name in ("edge", "node")]
    for lines in (one_k, none, []):
        assert curves(comparison(lines)) == {}
        write_figure(tmp_path / "drawn.png", 100, quality_and_sequences, comparison(lines))
    assert not list(tmp_path.iterdir())


def test_the_first_process_alone_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(results.processes, "is_first", lambda: False)
    write_figure(tmp_path / "drawn.png", 100, lambda: 1 / 0)
    assert not list(tmp_path.iterdir())
