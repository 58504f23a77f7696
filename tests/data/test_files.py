"""A file appears whole or not at all."""

import gzip
import os

import pytest

from socialgraph.data.files import atomic_write


def test_text_is_written_whole_in_folders_that_are_made(tmp_path):
    path = tmp_path / "a" / "b.txt"
    with atomic_write(path) as file:
        file.write("é\n")
        assert not path.exists()
    assert path.read_bytes() == b"\xc3\xa9\n"
    assert [one.name for one in path.parent.iterdir()] == ["b.txt"]


def test_a_packed_text_has_neither_name_nor_time(tmp_path):
    for name in ("a.txt.gz", "b.txt.gz"):
        with atomic_write(tmp_path / name) as file:
            file.write("é\n")
    packed = (tmp_path / "a.txt.gz").read_bytes()
    assert packed == (tmp_path / "b.txt.gz").read_bytes()
    assert packed[4:8] == bytes(4)  # where the format keeps the time
    assert gzip.decompress(packed) == b"\xc3\xa9\n"


@pytest.mark.parametrize(("name", "mode", "new"), [("b.bin", "wb", b"new"), ("b.txt.gz", "w", "new")])
def test_the_old_file_stays_when_the_block_raises(tmp_path, name, mode, new):
    path = tmp_path / name
    path.write_bytes(b"old")

    def fail_half_way():
        with atomic_write(path, mode) as file:
            file.write(new)
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half"):
        fail_half_way()
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_a_new_file_has_the_usual_mode_and_an_old_one_its_own(tmp_path):
    path = tmp_path / "b.txt"
    before = os.umask(0o022)
    try:
        for text, wanted in (("x", 0o644), ("y", 0o600)):
            if path.exists():
                path.chmod(wanted)
            with atomic_write(path) as file:
                file.write(text)
            assert path.stat().st_mode & 0o777 == wanted
    finally:
        os.umask(before)
