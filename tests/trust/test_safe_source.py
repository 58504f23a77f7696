"""The source loads no pickle and runs no code."""

from __future__ import annotations

import ast
from pathlib import Path

import socialgraph

PACKAGE = Path(socialgraph.__file__).parent
SOURCES = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "experiments").rglob("*.py")]

FORBIDDEN_IMPORTS = {
    "pickle", "cPickle", "dill", "joblib", "cloudpickle", "marshal", "shelve", "subprocess", "yaml", "pty",
}  # fmt: skip
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "torch.load", "torch.jit.load", "torch.hub.load", "os.system", "os.popen",
    "pickle.load", "pickle.loads", "yaml.load", "yaml.unsafe_load", "joblib.load", "marshal.loads",
}  # fmt: skip


def offences(source: str) -> list[str]:
    """Return what a source must not hold, with its line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [f"{node.lineno}: import {name}" for name in names if name.split(".")[0] in FORBIDDEN_IMPORTS]
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if name in FORBIDDEN_CALLS:
            found.append(f"{node.lineno}: {name}")
        if name in ("np.load", "np.save", "numpy.load") and options.get("allow_pickle") != "False":
            found.append(f"{node.lineno}: {name} without allow_pickle=False")
        found += [
            f"{node.lineno}: {name} with {option}={options[option]}"
            for option, allowed in (("trust_remote_code", "False"), ("shell", "False"), ("weights_only", "True"),
                                    ("use_safetensors", "True"))
            if options.get(option, allowed) != allowed
        ]  # fmt: skip
        if name.startswith("Auto") and name.endswith(".from_pretrained") and "trust_remote_code" not in options:
            found.append(f"{node.lineno}: {name} without trust_remote_code=False")
    return found


def test_the_source_loads_no_pickle_and_runs_no_code():
    assert len(SOURCES) > 80
    assert {str(file): found for file in SOURCES if (found := offences(file.read_text("utf-8")))} == {}
