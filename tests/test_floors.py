"""Data flows one way: no folder imports from a floor above it."""

from pathlib import Path

from imports import imported

import socialgraph

PACKAGE = Path(socialgraph.__file__).parent
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
