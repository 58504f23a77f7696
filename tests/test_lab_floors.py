"""experiments/lab/: modules import one another in one direction, and no module imports a command."""

from graphlib import TopologicalSorter
from pathlib import Path

from imports import imported

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
COMMANDS = {file.stem for file in EXPERIMENTS.glob("*.py")}


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
    for file in (EXPERIMENTS.parent / "socialgraph").rglob("*.py"):
        assert not any(name.split(".")[0] in {"lab", "experiments"} for name in imported(file)), file


def test_a_command_is_short():
    for name in COMMANDS:
        assert len((EXPERIMENTS / f"{name}.py").read_text().splitlines()) < 60, name


def test_production_knows_no_tests_and_no_private_part_of_hydra():
    for file in EXPERIMENTS.rglob("*.py"):
        names = imported(file)
        assert not any(name.startswith(("socialgraph.testing", "hydra._internal")) for name in names), file
