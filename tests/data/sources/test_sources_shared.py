"""The files of a build are, byte for byte, those beside the project, but for one that docs/data.md names."""

import pytest

from socialgraph.data.sources.make import SOURCES, content, digests


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_but_one_is_the_one_beside_the_project(shared, name):
    folder = shared / "data" / name
    # README.md counts and measures what is in the folder; it is no part of the collection, and is not built
    there = {file.name: content(file) for file in folder.iterdir() if file.name != "README.md"}
    wanted = digests(name)
    assert there.keys() == wanted.keys()
    differ = {file for file in there if there[file] != wanted[file]}
    assert differ == ({"run.bm25.train.txt.gz"} if name == "wtq" else set())
