"""The wheel holds all that the package reads, and nothing else; the package index takes it and the sources."""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a wheel and a source distribution of what git knows: building leaves files behind."""
    pytest.importorskip("setuptools", minversion="77", reason="both are built by setuptools")
    place = tmp_path_factory.mktemp("sources")
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("needs a checkout: git says which files are the project's")
    for name in listed.stdout.splitlines():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    for kind in ("sdist", "wheel"):
        code = f"from setuptools.build_meta import build_{kind} as build; build('made')"
        done = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    return place / "made"


@pytest.fixture(scope="module")
def wheel(made):
    (file,) = made.glob("*.whl")
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


def test_the_readme_on_the_package_index_leads_somewhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        readme = email.message_from_bytes(archive.read(name)).get_payload()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    here = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    there = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(here) == len(there) > 10
    for before, after in zip(here, there, strict=True):
        if before.startswith(("https://", "#")):
            assert after == before
            continue
        assert (ROOT / before.partition("#")[0]).exists(), f"README.md links to {before}"
        kind = "raw" if before.endswith(".png") else "blob"
        assert after == f"{project['urls']['Repository']}/{kind}/v{project['version']}/{before}"


def test_the_package_index_takes_both(made):
    pytest.importorskip("twine", reason="twine checks what is published")
    files = sorted(map(str, made.iterdir()))
    assert [file.endswith((".whl", ".tar.gz")) for file in files] == [True, True]
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_sources_bring_what_explains_and_cites_them(made):
    (file,) = made.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("CITATION.cff", "CHANGELOG.md", "mkdocs.yml", "docs/study.md", "docs/site/hooks.py", "Makefile",
                 "experiments/conf/run.yaml", "tests/conftest.py", "constraints.txt"):  # fmt: skip
        assert name in inside
