"""experiments/study.py: which runs it has, and the command."""

import json
import shutil

import children
from commands import EXPERIMENTS
from studies import planned


def test_every_run_is_something_to_do():
    """With the sizes of a CPU; test_tables.py tries the same rows with both."""
    seen = {}
    for run in planned("rows=null", "collections=[wtq]"):
        wanted = json.dumps(next(iter(run.identities.values())))
        assert wanted not in seen, f"{run.name} is the same as {seen[wanted]}"
        seen[wanted] = run.name
        assert str(run.config.data.root) not in wanted
    assert len(seen) == 28 + 9 - 3  # three of Table 2 are in Table 1
    both = planned("rows=[bm25]", "collections=[wtq,fairytale]")
    assert [run.config.data.label for run in both] == ["wtq", "fairytale"]


def test_the_core():
    runs = planned("size=gpu", "seeds=[0,1,2]")
    assert [run.config.seed for run in runs] == [0] * 9 + [1] * 9 + [2] * 9
    rows = [
        "bm25", "firstp", "maxp", "parade", "longformer-global", "bigbird", "socialformer-node", "socialformer-edge",
        "random-edges",
    ]  # fmt: skip
    assert [run.row.name for run in runs] == rows * 3
    one = runs[-1].config
    assert (one.recipe.document_length, one.partition.k, one.seed) == (2048, 16, 2)
    assert list(one.recipe.edges.patterns) == ["uniform"]
    assert list(one.data.splits.test) == ["test_bal", "test"]


def test_two_processes_write_the_study_of_one(budget, tiny_bert, tmp_path):
    """As torchrun starts them: the same runs and measures; without dropout two draw nothing that one would not."""
    rows = ["rows=[bm25,parade,socialformer-edge]", "+trainer.arguments.gradient_accumulation_steps=2"]
    rows += ["trainer.groups=8", "data.queries.test=2", "data.queries.dev=2"]
    bert = shutil.copytree(tiny_bert[0], tmp_path / "bert")
    bert_config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps(bert_config | {"hidden_dropout_prob": 0.0}))
    rows += [f"model.backbone={bert}"]
    rest = [one for one in budget if one.split("=")[0] not in ("model.backbone", "results", "work")]
    for count, name in enumerate(("one", "two"), start=1):
        typed = [*rest, *rows, f"results={tmp_path / name}", f"work={tmp_path / name / 'work'}"]
        typed += [f"hydra.run.dir={tmp_path / name / 'out'}"]
        done = children.run_together(count, EXPERIMENTS / "study.py", *typed, cwd=tmp_path)
        assert [one.returncode for one in done] == [0] * count, [one.stderr[-3000:] for one in done]
        said = "".join(one.stdout for one in done)
        assert said.count("wtq, split test:") == said.count("3 of 3 runs are finished") == 1
        assert "| BM25 | - | 1 | " in said
    for split in ("test", "test_bal"):
        one, two = (tmp_path / name / "wtq" / split for name in ("one", "two"))
        assert len(list(one.glob("*.run.gz"))) == 3
        for run in one.glob("*.run.gz"):
            assert run.read_bytes() == (two / run.name).read_bytes(), run.name
        assert (one / "buckets.csv").read_text() == (two / "buckets.csv").read_text()
