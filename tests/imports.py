"""What a file imports."""

import ast
from pathlib import Path


def imported(file: Path) -> set[str]:
    """Return the modules that a file imports, anywhere in it, and ``module.name`` for each name out of one."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute here"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names
