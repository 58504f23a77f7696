"""What was not asked for longest goes first."""

import pickle

import torch

from socialgraph.data.lru_cache import LRUCache


def test_the_one_not_asked_for_longest_goes():
    one = 512 + 80
    cache = LRUCache(3 * one)
    for name in "abc":
        cache.put(name, torch.full((10,), ord(name)))
    assert cache.get("a") is not None
    cache.put("d", torch.zeros(10, dtype=torch.long))
    assert [name for name in "abcd" if cache.get(name) is not None] == ["a", "c", "d"]
    assert (len(cache), cache.used) == (3, 3 * one)
    cache.put("d", torch.zeros(0))  # replaced, not counted twice
    assert cache.used == 2 * one + 512


def test_what_is_larger_than_the_room_is_not_kept():
    cache = LRUCache(600)
    cache.put("a", torch.zeros(1))
    cache.put("large", torch.zeros(1000))
    assert (len(cache), cache.used) == (0, 0)


def test_a_copy_for_a_worker_begins_empty():
    cache = LRUCache(10_000)
    cache.put("a", torch.zeros(1))
    copy = pickle.loads(pickle.dumps(cache))
    assert (copy.size, len(copy), len(cache)) == (10_000, 0, 1)
