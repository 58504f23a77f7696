"""The files of a build are, byte for byte, those beside the project, but for one that docs/data.md names."""

import shutil

import pytest

from socialgraph.data.sources.make import SOURCES, digest

#: what is beside the project and is not built
OTHERS = {"README.md", "doc_tokens.tsv", "flags.tsv", "official_split.tsv"}


@pytest.mark.parametrize("name", ["fairytale", "covidqa"])
def test_every_file_is_the_one_beside_the_project(shared, tmp_path, name):
    for file in (shared / "data" / name).iterdir():
        if file.name not in OTHERS:
            shutil.copyfile(file, tmp_path / file.name)
    assert digest(tmp_path) == SOURCES[name].digest
