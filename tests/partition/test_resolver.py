"""A partition by name, class or instance."""

import pytest
import torch
from circles import circles_of
from graphs import HARD, random_graph

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


def test_an_unknown_name_is_refused():
    with pytest.raises(OptionError, match="no partition is called 'metiss'; there are node, edge, windows"):
        partition_resolver("metiss")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("name", [name for name in PARTITIONS if not PARTITIONS[name]().sees_graph])
def test_a_gpu_finds_the_same_circles(name):
    graphs = [*HARD.values(), random_graph(90, 0.2, 9), *(random_graph(30, 0.4, [s, 10], "levels") for s in range(30))]
    assert circles_of(partition_resolver(name), graphs, device="cuda") == circles_of(partition_resolver(name), graphs)
