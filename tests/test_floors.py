"""Imports go one way: no folder imports from a floor above it, nor lab/ in a circle, nor anything a command."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import socialgraph

PACKAGE = Path(socialgraph.__file__).parent
EXPERIMENTS = PACKAGE.parent / "experiments"
COMMANDS = {file.stem for file in EXPERIMENTS.glob("*.py")}
#: folder -> what it may import of this package
MAY_IMPORT = {
    "kernels": set(),
    "partition": {"errors", "contracts", "described", "kernels", "query_match", "ranks"},
    "edges": {"errors", "contracts", "described", "backbone", "kernels", "query_match", "ranks"},
    "data": {"errors", "contracts", "lexical", "backbone", "edges", "partition"},
    "nn": {"errors", "described", "backbone", "kernels", "data", "ranks"},
    "ranking": {"errors", "described", "lexical", "backbone", "data", "edges", "partition", "nn"},
    "inspect": {"errors", "lexical", "backbone", "query_match", "data", "edges", "partition", "nn", "recipes"},
    "testing": {"errors", "contracts", "data", "edges", "partition", "nn"},
    "recipes": {"errors", "described", "data", "edges", "partition"},
    "ranker": {
        "errors", "described", "backbone", "data", "edges", "partition", "nn", "ranking", "recipes", "inspect",
    },
}  # fmt: skip


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


def imported_rooms(file: Path) -> set[str]:
    """Return the top-level rooms of this package that a file imports."""
    return {name.split(".")[1] for name in imported(file) if name.startswith("socialgraph.")}


def test_every_arrow_points_down():
    folders = {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))}
    assert folders == set(MAY_IMPORT)
    seen = 0
    for folder, allowed in MAY_IMPORT.items():
        for file in (PACKAGE / folder).rglob("*.py"):
            rooms = imported_rooms(file) - {folder}
            seen += len(rooms)
            assert rooms <= allowed, f"{file.relative_to(PACKAGE)} imports {sorted(rooms - allowed)}"
    assert seen > 20


def module(file: Path) -> str:
    """Return a file's name as it is imported."""
    return ".".join(file.relative_to(EXPERIMENTS).with_suffix("").parts).removesuffix(".__init__")


def test_lab_has_no_circle():
    files = {module(file): file for file in (EXPERIMENTS / "lab").rglob("*.py")}
    arrows = {name: imported(file) & files.keys() for name, file in files.items()}
    assert sum(map(len, arrows.values())) > 20
    order = list(TopologicalSorter(arrows).static_order())  # raises CycleError where there is one
    places = [order.index(f"lab.{name}") for name in ("results", "rows", "execute")]
    assert places == sorted(places)  # a store knows nothing of what is executed


def test_nothing_below_imports_a_command():
    for file in (EXPERIMENTS / "lab").rglob("*.py"):
        assert not {name.split(".")[0] for name in imported(file)} & COMMANDS, file
    for file in PACKAGE.rglob("*.py"):
        assert not any(name.split(".")[0] in {"lab", "experiments"} for name in imported(file)), file


def test_production_knows_no_tests_and_no_private_part_of_hydra():
    for file in EXPERIMENTS.rglob("*.py"):
        names = imported(file)
        assert not any(name.startswith(("socialgraph.testing", "hydra._internal")) for name in names), file
