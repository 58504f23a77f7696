import gzip
import os

import pytest

from socialgraph.data.files import atomic_text, atomic_write


def test_atomic_write_makes_folders_and_writes_whole_text(tmp_path):
    path = tmp_path / "a" / "b.txt"
    with atomic_write(path) as file:
        file.write("é\n")
        assert not path.exists()
    assert path.read_bytes() == b"\xc3\xa9\n"
    assert [one.name for one in path.parent.iterdir()] == ["b.txt"]


def test_a_packed_text_has_neither_name_nor_time(tmp_path):
    for name in ("a.txt", "a.txt.gz", "b.txt.gz"):
        with atomic_text(tmp_path / name) as file:
            file.write("é\n")
    packed = (tmp_path / "a.txt.gz").read_bytes()
    assert packed == (tmp_path / "b.txt.gz").read_bytes()
    assert packed[4:8] == bytes(4)  # where the format keeps the time
    assert gzip.decompress(packed) == (tmp_path / "a.txt").read_bytes() == b"\xc3\xa9\n"


def _fail_half_way(path):
    with atomic_write(path, "wb") as file:
        file.write(b"new")
        raise RuntimeError("half way")


def test_atomic_write_keeps_the_old_file_when_the_block_raises(tmp_path):
    path = tmp_path / "b.bin"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="half"):
        _fail_half_way(path)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["b.bin"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_atomic_write_gives_usual_modes_and_keeps_given_ones(tmp_path):
    path = tmp_path / "b.txt"
    before = os.umask(0o022)
    try:
        with atomic_write(path) as file:
            file.write("x")
        assert path.stat().st_mode & 0o777 == 0o644
        path.chmod(0o600)
        with atomic_write(path) as file:
            file.write("y")
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_the_next_who_writes_a_file_removes_what_a_dead_process_has_left_of_it(tmp_path):
    path = tmp_path / "config.yaml"
    living = atomic_write(path)
    living.__enter__().write("of another process")  # which is at it just now
    (tmp_path / ".config.yaml.abcd1234.part").write_text("half")  # of one that was killed
    (tmp_path / ".table.md.abcd1234.part").write_text("half")  # of another file
    with atomic_write(path) as file:
        file.write("whole")
    left = {one.name for one in tmp_path.iterdir()}
    assert ".config.yaml.abcd1234.part" not in left
    assert ".table.md.abcd1234.part" in left
    assert len(left) == 3  # with config.yaml and what the other process is writing
    living.__exit__(None, None, None)
    assert path.read_text() == "of another process"
    assert {one.name for one in tmp_path.iterdir()} == {"config.yaml", ".table.md.abcd1234.part"}
