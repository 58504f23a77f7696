"""What is built from the sources is, byte for byte, what lies beside the project."""

import pytest

from socialgraph.data.sources.make import SOURCES, content, digests


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_is_the_one_beside_the_project(shared, name):
    folder = shared / "data" / name
    # README.md counts and measures what is in the folder; it is no part of the collection, and is not built
    there = {file.name: content(file) for file in folder.iterdir() if file.name != "README.md"}
    assert there == digests(name)
