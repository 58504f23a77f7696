"""Every command of experiments/ explains itself, with what a user types next."""

import children
import pytest
from commands import EXPERIMENTS

#: what is typed -> what the help says
HELP = {
    "run.py": [
        ", edge, k-core", "recipe=bigbird rows=[bm25,maxp,bigbird]", "data=irds data.id=vaswani",
        "partition=my_module.MyPartition", "socialformer-edge",
    ],
    "compare.py": [
        "partition=node,edge,metis,leiden,my_module.MyPartition", "baseline=edge", "seeds=[0,1,2]", "socialformer-edge",
    ],
    "table.py": ["rows=[parade,socialformer-edge] seeds=[0,1,2]", "size: cpu, gpu", "recipe: bigbird, bm25"],
    "study.py": ["size: cpu", "minutes=10", "collections=[wtq,fairytale]"],
    "figures.py 4": ["python experiments/figures.py 4", "--output"],
    "figures.py 5": ["python experiments/figures.py 5", "--output"],
    "figures.py 6": ["python experiments/figures.py 6", "--output"],
}  # fmt: skip


@pytest.mark.parametrize("typed", HELP)
def test_help_teaches(typed, tmp_path):
    program, *figure = typed.split()
    done = children.run(EXPERIMENTS / program, *figure, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [word for word in HELP[typed] if word not in done.stdout] == []
    assert not list(tmp_path.iterdir())
