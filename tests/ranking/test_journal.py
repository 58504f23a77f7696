"""A journal: torn ends are dropped, damage is refused, and numbers come back as they were."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socialgraph.errors import InputError, OutputError
from socialgraph.ranking import journal as module
from socialgraph.ranking.journal import Journal, finished


def test_a_journal_can_be_read_by_others(tmp_path):
    assert finished(tmp_path / "nowhere") == {}
    path = three(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    before = path.read_bytes()
    assert finished(tmp_path) == {0: [0.0, -1e-300], 1: [0.1, -1e-300]}
    assert path.read_bytes() == before


def three(folder):
    with Journal(folder, {"work": "test"}) as journal:
        for number in range(3):
            journal.append(number, [0.1 * number, -1e-300])
    return folder / "finished-0.jsonl"


@pytest.mark.parametrize("cut", [1, 2, 20, 50])
def test_a_torn_end_is_dropped(tmp_path, cut):
    path = three(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with Journal(tmp_path, {"work": "test"}) as journal:
        assert journal.finished == {0: [0.0, -1e-300], 1: [0.1, -1e-300]}
        journal.append(2, [0.2, -1e-300])
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "end", [b"\0" * 40, b"\0" * 40 + b"\n", b'{"batch": 3, "crc32": 0, "result": []}\n', b"{}\n[]\n7\n"]
)
def test_what_a_power_cut_left_is_dropped(tmp_path, end):
    path = three(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + end)
    with Journal(tmp_path, {"work": "test"}) as journal:
        assert sorted(journal.finished) == [0, 1, 2]
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "damage", [(b"0.1", b"0.7"), (b'"batch": 1', b'"batch": 5'), (b'"result"', b'"resu'), (b"{", b"\xff")]
)
def test_damage_in_the_middle_is_refused(tmp_path, damage):
    path = three(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(*damage)
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"finished-0.jsonl:2: damaged; delete the folder or choose another"):
        Journal(tmp_path, {"work": "test"}).__enter__()
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 10**5, "\0"])
def test_a_damaged_beginning_is_refused(tmp_path, text):
    three(tmp_path)
    (tmp_path / "journal.json").write_text(text)
    with pytest.raises(InputError, match=r"journal.json: .*; delete the folder or choose another"):
        Journal(tmp_path, {"work": "test"}).__enter__()
    (tmp_path / "journal.json").unlink()
    with pytest.raises(InputError, match=r"a journal without journal.json"):
        Journal(tmp_path, {"work": "test"}).__enter__()


def test_a_second_run_is_refused(tmp_path):
    with Journal(tmp_path, {"work": "test"}), pytest.raises(OutputError, match="another process writes there"):
        Journal(tmp_path, {"work": "test"}).__enter__()
    with Journal(tmp_path, {"work": "test"}):  # it was let go
        pass


def test_no_folder_keeps_nothing():
    with Journal(None, {}) as journal:
        journal.append(0, [1.0])
        assert journal.finished == {}


@settings(max_examples=30)
@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4), max_size=5))
def test_numbers_come_back_the_same(tmp_path_factory, results):
    folder = tmp_path_factory.mktemp("journal")
    with Journal(folder, {}) as journal:
        for number, result in enumerate(results):
            journal.append(number, result)
    with Journal(folder, {}) as journal:
        assert repr(journal.finished) == repr(dict(enumerate(results)))


def test_only_one_line_a_batch_reaches_the_disk_each_second(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(module.os, "fsync", lambda _: synced.append(1))
    with Journal(tmp_path, {}) as journal:
        synced.clear()
        for number in range(50):
            journal.append(number, [])
        assert len(synced) == 1
        assert len((tmp_path / "finished-0.jsonl").read_text().splitlines()) == 50  # written all the same
    assert len(synced) == 2
