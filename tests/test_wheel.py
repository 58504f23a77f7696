"""The wheel holds all that the package reads, and nothing else; the package index takes it and the sources."""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from commands import WORDS, typed_for_tales, write_tales

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


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder in which pip has installed the wheel, without what it depends on."""
    place = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", place, wheel]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture
def called(installed, tmp_path, monkeypatch):
    """What calls the installed command ``socialgraph`` in a folder without a repository."""
    monkeypatch.chdir(tmp_path)

    def call(*typed):
        program = [sys.executable, installed / "bin" / "socialgraph", *typed]
        environment = os.environ | {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(program, capture_output=True, text=True, env=environment)

    return call


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    def files(folder, pattern="*"):
        found = (ROOT / folder).rglob(pattern)
        return {str(file.relative_to(ROOT)) for file in found if file.is_file() and "__pycache__" not in file.parts}

    experiments = files("experiments", "*.py") | files("experiments/conf")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == files("socialgraph") | {f"socialgraph/{name}" for name in experiments}


def test_a_wheel_of_the_sources_is_the_same(made, wheel, tmp_path):
    """What installers build where they take the source distribution."""
    (sources,) = made.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        archive.extractall(tmp_path, filter="data")
    (place,) = tmp_path.iterdir()
    code = "from setuptools.build_meta import build_wheel as build; build('made')"
    done = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (again,) = (place / "made").glob("*.whl")
    here, there = zipfile.ZipFile(wheel), zipfile.ZipFile(again)
    assert {one.filename: one.CRC for one in here.infolist()} == {one.filename: one.CRC for one in there.infolist()}


def test_no_wheel_is_published_without_a_public_address(tmp_path):
    """The addresses in README on the package index would lead to whoever takes that name."""
    for name in ("Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    text = (ROOT / "pyproject.toml").read_text()
    owner = re.search(r'Repository = "https://github.com/([\w-]+)/', text)[1]
    for name, ends in (("OWNER", 2), ("somebody", 0)):
        (tmp_path / "pyproject.toml").write_text(text.replace(owner, name))
        done = subprocess.run(["make", "-s", "address"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout.count("\n")) == (ends, bool(ends)), done.stderr
    assert "write who has the repository for OWNER" in (ROOT / "Makefile").read_text()
    assert "dist: address" in (ROOT / "Makefile").read_text()


def test_it_works_without_the_repository(installed, tmp_path):
    code = (
        "import socialgraph\nfrom socialgraph import Ranker\nprint(socialgraph.__file__)\n"
        "print(Ranker.from_recipe('socialformer-node', partition='metis', document_length=99))"
    )
    program = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(installed)!r})\n{code}"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file, ranker = done.stdout.splitlines()
    assert Path(file).is_relative_to(installed)
    assert "Metis(k=8, max_size=128, seed=0)" in ranker


@pytest.mark.parametrize("command", ["run", "compare"])
def test_its_experiments_explain_themselves(called, command, tmp_path):
    there = called(command, "--help")
    assert (there.returncode, there.stderr) == (0, "")
    words = ("partition: beside-windows, edge", "socialformer-edge", f"{command}.py partition=")
    assert [word for word in words if word not in there.stdout] == []
    wrong = called(command, "sed=1")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: Could not override 'sed'.")
    assert not list(tmp_path.iterdir())


def files_of(folder):
    """All files of a folder but compiled code, which Python and numba keep beside it where they can."""
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_its_experiments_write_where_they_are_called(called, installed, tmp_path):
    tales = tmp_path / "tales"
    write_tales(tales)
    (tales / "evidence.tsv").write_text(
        "qid\tdoc_id\tstart_tok\tend_tok\n" + "".join(f"q-{word}\t{word}\t4\t8\n" for word in WORDS)
    )
    before = files_of(installed)
    typed = [*typed_for_tales(tales), "document_length=64"]
    ran = called("run", *typed, "rows=[bm25,socialformer-node]", "hydra.run.dir=out")
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert (tmp_path / "out" / "table.md").read_text() in ran.stdout
    assert "| Socialformer-node | " in ran.stdout
    compared = called(
        "compare", *(one for one in typed if "window=" not in one), "level=evidence", "partition=edge,node"
    )
    assert compared.returncode == 0, compared.stderr[-2000:]
    table = (tmp_path / "experiments" / "results" / "tales" / "test" / "compare" / "evidence" / "table.md").read_text()
    assert [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:3] == ["edge", "node"]
    assert files_of(installed) == before


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
