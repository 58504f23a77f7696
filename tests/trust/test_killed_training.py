"""Training killed at random moments ends as if nothing had happened; the long form is the program itself."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_training_killed_four_times_ends_with_the_same_weights_and_log(record_property):
    program = Path(__file__).with_name("kill_training.py")
    done = subprocess.run(
        [sys.executable, str(program), "--kills", "4", "--seed", str(int.from_bytes(os.urandom(2)))],
        capture_output=True, text=True, timeout=1800, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    print(done.stdout)  # seed and moments, where it fails
    assert done.returncode == 0, done.stderr[-3000:]
    assert "4 kills, " in done.stdout
    record_property("told", f"a training: {done.stdout.splitlines()[-1]}")
