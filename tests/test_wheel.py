"""The wheel holds all that the package reads, and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of a copy of the sources: building leaves files behind."""
    pytest.importorskip("setuptools", minversion="77", reason="a wheel is built by setuptools")
    place = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    shutil.copytree(ROOT / "socialgraph", place / "socialgraph", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, "made"], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (file,) = (place / "made").glob("*.whl")
    return file


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    files = (file for file in (ROOT / "socialgraph").rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == {str(file.relative_to(ROOT)) for file in files}


def test_it_works_without_the_repository(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    code = (
        "import socialgraph\nfrom socialgraph import Ranker\nprint(socialgraph.__file__)\n"
        "print(Ranker.from_recipe('socialformer-node', partition='metis', document_length=99))"
    )
    program = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r})\n{code}"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file, ranker = done.stdout.splitlines()
    assert Path(file).is_relative_to(tmp_path)
    assert "Metis(k=4, max_size=128, seed=0)" in ranker
