"""JAX takes a GPU's memory when it starts: no import of ours starts it, nor hides it from others."""

import os
import subprocess
import sys

import pytest

OURS = "import socialgraph.ranking, socialgraph.inspect, socialgraph.ranker"
FIRST_OURS = f"{OURS}; import bm25s; assert not bm25s.selection.JAX_IS_AVAILABLE; import jax"
FIRST_JAX = f"import jax; {OURS}; import bm25s; assert bm25s.selection.JAX_IS_AVAILABLE"


@pytest.mark.parametrize("program", [FIRST_OURS, FIRST_JAX], ids=["ours first", "JAX first"])
def test_jax_is_left_alone(tmp_path, program):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("print('started')")
    (tmp_path / "jax" / "lax.py").write_text("def top_k(scores, k):\n    pass")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", f"{program.split(';')[0]}; print('imported'); {program}"],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = ["imported", "started"] if program == FIRST_OURS else ["started", "imported"]
    assert done.stdout.split() == expected
