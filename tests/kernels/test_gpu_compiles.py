"""The Triton kernels are compiled for a GPU without one: what the interpreter lets pass, the compiler does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton: pip install 'socialgraph-ir[triton]'")


def test_the_kernels_compile_and_spill_little():
    program = [sys.executable, str(Path(__file__).with_name("compile_for_a_gpu.py"))]
    done = subprocess.run(program, env=os.environ | {"TRITON_INTERPRET": "0"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 17
    assert {name: usage for name, usage in found.items() if usage["STACK"] > 128} == {}
