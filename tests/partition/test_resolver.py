"""A partition by name, class or instance."""

import pytest
import torch
from circles import circles_of
from graphs import HARD, document, random_graph

from socialgraph.errors import OptionError
from socialgraph.partition import EdgeCircles, NodeCircles, Partition, Windows, partition_resolver
from socialgraph.partition.resolver import PARTITIONS, with_k


class Mine(Partition):
    """A class outside the package."""

    def __init__(self, size=3):
        super().__init__()
        self.size = size


def test_names_classes_and_instances():
    assert isinstance(partition_resolver("edge", k=3), EdgeCircles)
    assert repr(partition_resolver("node", k=3)) == "NodeCircles(k=3, max_size=128, keep='strongest')"
    assert isinstance(partition_resolver("windows"), Windows)
    assert partition_resolver(Mine, size=5).size == 5
    mine = NodeCircles()
    assert partition_resolver(mine) is mine


def test_as_many_circles_as_asked_for_where_a_class_has_a_number():
    assert with_k("edge", 3).k == with_k(EdgeCircles, 3).k == 3
    assert with_k("edge", None).k == EdgeCircles().k
    assert with_k(Mine, 5).size == 3
    mine = NodeCircles()
    assert with_k(mine, 3) is mine


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("metiss", {}, "no partition is called 'metiss'; there are node, edge, windows"),
        ("edge", {"k": 0}, "k, the number of circles, must be at least 1, got 0"),
        ("node", {"max_size": 1}, "max_size must be at least 2, got 1"),
        ("edge", {"keep": "weakest"}, "keep must be one of strongest, first, got 'weakest'"),
        ("metis", {"k": -1}, "k, the number of circles, must be at least 1, got -1"),
        ("windows", {"size": 0}, "size must be at least 1, got 0"),
        ("windows", {"k": 1.5}, "k, the number of windows, must be a whole number of at least 1 or None, got 1.5"),
        ("query-windows", {"beside": 2}, "beside must lie between 0 and 1, got 2"),
        ("louvain", {"resolution": 0.0}, "resolution must be above 0, got 0.0"),
    ],
)
def test_an_unknown_name_or_an_option_out_of_its_range_is_refused(name, options, told):
    with pytest.raises(OptionError, match=told):
        partition_resolver(name, **options)


class Undrawn:
    """A graph whose edges nobody may draw."""

    def __init__(self, length):
        self.batch, self.batch_size, self.graph = torch.zeros(length, dtype=torch.long), 1, document(range(length), [3])

    def edges(self):
        raise AssertionError("an edge was drawn")


@pytest.mark.parametrize("name", [name for name in PARTITIONS if not PARTITIONS[name]().needs_edges])
def test_of_partitions_that_look_at_no_edge_none_is_drawn(name):
    given, partition = Undrawn(40), partition_resolver(name)
    want = partition.gathered(given.batch.new_empty(2, 0), given.batch, 1, None, given.graph)
    assert all(torch.equal(a, b) for a, b in zip(want, partition.from_sampled(given), strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("name", [name for name in PARTITIONS if not PARTITIONS[name]().sees_graph])
def test_a_gpu_finds_the_same_circles(name):
    graphs = [*HARD.values(), random_graph(90, 0.2, 9), *(random_graph(30, 0.4, [s, 10], "levels") for s in range(30))]
    assert circles_of(partition_resolver(name), graphs, device="cuda") == circles_of(partition_resolver(name), graphs)
