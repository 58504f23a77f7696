"""Tables: seeds averaged query by query, tests against one row, columns, and a column of one's own."""

import pytest
import scipy.stats
import torch
from lab.report import Column, Comparison, Line, columns_of, own_interval, page_of, power, values_of
from lab.rows import Row
from omegaconf import OmegaConf

TEST = {"to": ["a"], "measures": ["x"], "level": 0.05}


def compared(*lines, columns=(), clusters=None):
    """A comparison of rows, each with the values of its seeds."""
    made = []
    for name, *seeds in lines:
        runs = [
            {
                "name": name, "parameters": 5_000_000, "training_seconds": 60.0 / (place + 1),
                "seconds_per_document": 0.6, "peak_memory_bytes": None, "clusters": clusters,
                "config": {"recipe": {"document_length": 7}},
                "measures": {"x": {f"q{i}": float(value) for i, value in enumerate(values)}},
            }
            for place, values in enumerate(seeds)
        ]  # fmt: skip
        made.append(Line(Row(name, beside={"paper": {"MRR": 0.5 if name == "b" else None}}), runs))
    report = {"columns": list(columns), "differences": [], "significance": TEST}
    return Comparison(OmegaConf.create({"measures": ["x"], "report": report}), made)


def shout(of):
    """A column of one's own."""
    return [Column("Loud", [line.label.upper() + "|" for line in of.lines])]


def test_seeds_are_averaged_query_by_query_and_significance_is_marked():
    columns = ["model", "length", "measures", "differences", "parameters", "training", "seconds", "memory", "paper"]
    of = compared(
        ("c", (0.1, 0.3, 0.2, 0.2), (0.1, 0.3, 0.2, 0.2)),  # differences -0.1, 0.1, 0, 0: t = 0, p = 1
        ("a", (0.1, 0.2, 0.3, 0.2), (0.3, 0.2, 0.1, 0.2)),  # mean of each query: 0.2
        ("b", (0.9, 0.9, 0.8, 0.8), (0.9, 0.9, 1.0, 0.8)),  # far above
        columns=[*columns, f"{__name__}.shout"],
    )
    assert of.lines[1].values("x") == pytest.approx(dict.fromkeys(["q0", "q1", "q2", "q3"], 0.2))
    assert of.p_values("x")[0] == pytest.approx(1.0)
    assert of.p_values("x")[1] is None
    assert of.marks("x") == ["", "", " †"]
    # 0.875 of 0.2 is 337.5 % more; the seeds' means are 0.85 and 0.9; costs are those of the first seed
    page = page_of(of, columns_of(of))
    assert list(page.iloc[2]) == ["b", "7", "0.8750 ± 0.0354 †", "+337.50", "5.0", "60", "0.6000", "-", "0.5000", "B/"]
    values = values_of(of, columns_of(of))
    assert values["x"][2] == pytest.approx(0.875)
    assert values["sd of x"][2] == pytest.approx(0.05 / 2**0.5)
    assert values["p of x"][1] is None


def test_a_difference_of_the_minimum_is_seen_in_four_comparisons_of_five():
    noise = torch.randn(200, generator=torch.Generator().manual_seed(0))
    noise = ((noise - noise.mean()) / noise.std()).tolist()
    of = compared(*((name, [value * n for n in noise]) for name, value in (("a", 0.0), ("b", 1.0), ("c", 0.1))))
    (none, found, small), (_, needed, enough) = (column.values for column in power(of))
    seen = 1 - scipy.stats.nct.cdf(scipy.stats.t.ppf(0.975, 199), 199, found * 200**0.5)  # in standard errors
    assert seen == pytest.approx(0.8, abs=0.005)
    assert needed == pytest.approx(200 * (found / 0.05) ** 2, abs=1)
    assert small == pytest.approx(found / 10)
    assert (none, enough) == (None, None)  # the reference; a difference that would be seen with fewer queries


def test_questions_about_few_documents_are_counted_by_document():
    """Their t has few degrees of freedom; where there is one document, nothing is tested."""
    values = torch.randn(40, generator=torch.Generator().manual_seed(0)).tolist()
    of = compared(("a", [0.0] * 40), ("b", values), clusters={f"q{n}": f"d{n % 5}" for n in range(40)})
    low, high = of.gains("x")[1].interval
    quantile = scipy.stats.t.ppf(0.975, 4)
    error = (high - low) / 2 / quantile
    assert next(power(of)).values[1] == pytest.approx(error * (quantile + scipy.stats.norm.ppf(0.8)))
    of = compared(("a", [0.0, 0.5]), ("b", [1.0, 0.5]), clusters={"q0": "d", "q1": "d"})
    assert [value for column in (*power(of), *own_interval(of)) for value in column.values] == [None] * 6
    assert of.marks("x") == ["", ""]
