"""Forks of the tests' process are seen; programs that subprocess starts are none."""

import os
from pathlib import Path

import children
import pytest

PROGRAM = """
import os, subprocess, sys
import children
children.never_fork()
subprocess.run([sys.executable, "-c", "pass"], check=True)
assert not children.FORKS, children.FORKS
if (child := os.fork()) == 0:
    os._exit(0)
os.waitpid(child, 0)
(where,) = children.FORKS
assert "program.py" in where, where
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_fork_is_seen(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = children.run(tmp_path / "program.py", PYTHONPATH=str(Path(children.__file__).parent))
    assert done.returncode == 0, done.stderr
