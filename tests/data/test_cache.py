"""What was made once is found again by its content, in at most so many bytes; what is damaged or half there is not."""

import os
import pickle
import re
import signal
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from children import fresh
from full_disk import files_no_larger_than

from socialgraph.data import Cache
from socialgraph.data.cache import content_key
from socialgraph.errors import InputError, OutputError


def key(number):
    return content_key(b"%d" % number)


@pytest.fixture(params=["memory", "disk"])
def cache_of(request, tmp_path):
    """What makes a cache of a size, in memory or on disk."""
    return lambda size: Cache(None if request.param == "memory" else tmp_path / "cache", size)


def test_values_are_found_by_their_key(cache_of):
    cache = cache_of(1 << 20)
    values = {key(i): bytes([i]) * i for i in range(200)}
    cache.put(values)
    assert cache.get([*values, key(300)]) == values
    cache.put({key(7): b"another"})  # the first counts
    assert cache.get([key(7)]) == {key(7): values[key(7)]}
    cache.clear()
    assert cache.get(values) == {}
    assert len(cache) == 0


def test_what_was_written_first_goes_first(cache_of):
    cache = cache_of(300_000)
    for number in range(0, 2_000, 10):  # 7 times as much as there is room
        cache.put({key(number + i): bytes(1_000) for i in range(10)})
        assert cache.used() <= cache.size
    kept = [number for number in range(2_000) if cache.get([key(number)])]
    assert kept == list(range(2_000 - len(kept), 2_000))
    assert len(kept) * 1_000 > 0.6 * cache.size
    if cache.path is not None:
        assert cache.path.stat().st_size <= cache.size


def test_many_at_once_and_what_is_too_large_keep_the_limit_too(cache_of):
    cache = cache_of(300_000)
    cache.put({key(number): bytes(1_000) for number in range(2_000)})
    cache.put({key(-1): bytes(400_000)})
    assert cache.used() <= cache.size
    assert cache.get([key(-1)]) == {}
    assert cache.get([key(1_999)])


def test_a_key_counts_where_its_parts_end():
    assert len({content_key(b"ab", b"c"), content_key(b"a", b"bc"), content_key(b"abc"), content_key(b"abc", b"")}) == 4


def test_a_copy_in_memory_begins_empty_and_one_on_disk_shares_the_file(tmp_path):
    memory, disk = Cache(size=9_000), Cache(tmp_path, 10_000_000)
    for cache in (memory, disk):
        cache.put({key(1): b"a"})
    assert pickle.loads(pickle.dumps(memory)).size == 9_000
    assert pickle.loads(pickle.dumps(memory)).get([key(1)]) == {}
    assert pickle.loads(pickle.dumps(disk)).get([key(1)]) == {key(1): b"a"}


def test_threads_share_a_cache(cache_of):
    cache, errors = cache_of(200_000), []

    def work(first):
        try:
            for number in range(first, first + 30):
                cache.put({key(number): b"%d" % number * 50})
                assert cache.get([key(number)])[key(number)] == b"%d" % number * 50
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(30 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def write_for_ever(folder):
    cache, number = Cache(folder), 0
    while True:
        cache.put({key(number + i): b"%d " % (number + i) * 2_000 for i in range(50)})
        number += 50


def test_a_killed_writer_leaves_nothing_that_a_reader_believes(tmp_path):
    for delay in (0.02, 0.06, 0.15):
        child = fresh().Process(target=write_for_ever, args=(tmp_path,))
        child.start()
        reader = Cache(tmp_path)
        before = len(reader)
        while len(reader) <= before and child.is_alive():
            time.sleep(0.005)
        time.sleep(delay)
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert child.exitcode == -signal.SIGKILL
        found = Cache(tmp_path).get(key(number) for number in range(100_000))
        assert len(found) == len(reader) > before
        assert len(found) % 50 == 0  # each transaction is whole
        assert all(found[key(number)] == b"%d " % number * 2_000 for number in range(len(found)))


def test_damaged_values_count_as_missing_and_are_replaced(tmp_path):
    damages = [b"", b"\xff" * 104, "a" * 104]
    for number, value in enumerate(damages):
        Cache(tmp_path).put({key(number): b"whole"})
        with closing(sqlite3.connect(tmp_path / "cache.sqlite")) as file, file:
            file.execute("UPDATE entries SET value = ? WHERE key = ?", (value, key(number)))
        cache = Cache(tmp_path)
        assert cache.get([key(number)]) == {}
        cache.put({key(number): b"new"})
        assert cache.get([key(number)]) == {key(number): b"new"}


DAMAGES = {
    "cut short": lambda raw: raw[:-3_000],
    "garbage": lambda raw: b"no database" * 5_000,
    "another program's": lambda raw: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_one_line_and_is_cleared(damage, tmp_path):
    Cache(tmp_path).put({key(i): b"x" * 3_000 for i in range(50)})
    path = tmp_path / "cache.sqlite"
    path.write_bytes(damage(path.read_bytes()))
    if not path.read_bytes():
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("CREATE TABLE entries (name TEXT)")
    told = ""
    try:
        found = Cache(tmp_path).get([key(i) for i in range(50)])
        assert set(found.values()) <= {b"x" * 3_000}
        assert len(found) < 50
    except InputError as error:
        told = str(error)
    assert bool(told) == (damage is not DAMAGES["cut short"])
    assert re.fullmatch(
        rf"{tmp_path}/cache\.sqlite: damaged \([^\n]*\); socialgraph cache --clear makes it anew|", told
    )
    Cache(tmp_path).clear()
    Cache(tmp_path).put({key(1): b"a"})
    assert Cache(tmp_path).get([key(1)]) == {key(1): b"a"}


def test_a_full_disk_and_a_folder_that_cannot_be_are_one_line(tmp_path):
    told = r"^[^\n]*cache.sqlite: cannot be written \([^\n]*\); free the disk or set SOCIALGRAPH_CACHE to [^\n]*$"
    cache = Cache(tmp_path)
    cache.put({key(1): bytes(100)})
    with files_no_larger_than(100_000), pytest.raises(OutputError, match=told):
        cache.put({key(2): bytes(400_000)})
    assert cache.get([key(1), key(2)]) == {key(1): bytes(100)}
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=told):
        Cache(tmp_path / "file").get([key(1)])


def test_the_environment_says_where_and_how_large(tmp_path, monkeypatch):
    monkeypatch.setenv("SOCIALGRAPH_CACHE", str(tmp_path))
    monkeypatch.setenv("SOCIALGRAPH_CACHE_GB", "0.5")
    assert (Cache.on_disk().path, Cache.on_disk().size) == (tmp_path / "cache.sqlite", 500_000_000)
    assert repr(Cache.on_disk()).startswith(f"{tmp_path}/cache.sqlite: 0 entries, ")
    monkeypatch.setenv("SOCIALGRAPH_CACHE_GB", "much")
    with pytest.raises(InputError, match="SOCIALGRAPH_CACHE_GB must be a number of gigabytes, got 'much'"):
        Cache.on_disk()
