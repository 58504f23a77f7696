"""The source loads no pickle and runs no code."""

from __future__ import annotations

import ast
from pathlib import Path

import socialgraph

PACKAGE = Path(socialgraph.__file__).parent
SOURCES = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "experiments").rglob("*.py")]
IMPORTS = {"pickle", "dill", "joblib", "cloudpickle", "marshal", "shelve", "subprocess", "yaml", "pty"}
CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "torch.jit.load", "torch.hub.load", "os.system"}
CALLS |= {"os.popen"}
#: option -> the only value that it may have
OPTIONS = {
    "allow_pickle": "False", "trust_remote_code": "False", "shell": "False", "weights_only": "True",
    "use_safetensors": "True",
}  # fmt: skip


#: makes texts for the reader's training with dpkg-deb, groff and apt-helper, by fixed commands without a shell
RUNS_PROGRAMS = PACKAGE.parent / "experiments" / "lab" / "reader" / "sources.py"


def found(source: str) -> list[str]:
    """Return what a source must not hold, with its line."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        wrong += [f"{node.lineno}: import {name}" for name in names if name.split(".")[0] in IMPORTS]
        if isinstance(node, ast.Call):
            name, options = ast.unparse(node.func), {one.arg: ast.unparse(one.value) for one in node.keywords}
            needed = {"allow_pickle"} if name in ("np.load", "np.save") else set()
            needed |= {"trust_remote_code"} if name.startswith("Auto") and name.endswith(".from_pretrained") else set()
            if name in CALLS or needed - options.keys() or any(options.get(o, v) != v for o, v in OPTIONS.items()):
                wrong.append(f"{node.lineno}: {ast.unparse(node)}")
    return wrong


def test_the_source_loads_no_pickle_and_runs_no_code():
    assert len(SOURCES) > 80
    wrong = {file: found(file.read_text("utf-8")) for file in SOURCES}
    wrong[RUNS_PROGRAMS] = [one for one in wrong[RUNS_PROGRAMS] if not one.endswith("import subprocess")]
    assert {str(file): some for file, some in wrong.items() if some} == {}
