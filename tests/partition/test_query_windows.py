"""QueryWindows against BM25 written out, and on documents without a match."""

from collections import Counter

import pytest
import torch
from graphs import document
from torch_geometric.data import Batch

from socialgraph.errors import OptionError
from socialgraph.partition import QueryWindows
from socialgraph.testing import check_partition


def written_out(words, query, idf, k, size, k1, beside):
    """The windows that a reader of the formula would take, as lists of places."""
    windows = [list(range(start, min(start + size, len(words)))) for start in range(0, len(words), size)]

    def score(number):
        tf = Counter(words[i] for i in windows[number])
        for near in (number - 1, number + 1):
            for i in windows[near] if 0 <= near < len(windows) else ():
                tf[words[i]] += beside
        return sum(idf[t] * tf[t] * (k1 + 1) / (tf[t] + k1) for t in set(query) if tf[t])

    best = sorted(range(len(windows)), key=lambda n: (-round(score(n), 9), n))[:k]
    return [windows[n] for n in sorted(best)]


@pytest.mark.parametrize("beside", [0.0, 0.3])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_windows_of_bm25(k, beside):
    generator = torch.Generator().manual_seed(k)
    idf = {word: 0.5 + word % 7 for word in range(10, 60)}
    graphs, expected, start = [], [], 0
    for length, query in ((0, [11]), (50, [12, 17, 17]), (7, [10]), (90, [5]), (64, [20, 21, 22, 23])):
        words = (10 + torch.randint(50, (length,), generator=generator)).tolist()
        count = Counter(words)
        graphs.append(document(words, query, [count[word] * idf[word] for word in words]))
        found = written_out(words, query, idf, k, 8, 0.9, beside)
        expected += [[start + i for i in window] for window in found]
        start += length
    batch = Batch.from_data_list(graphs)
    none = torch.empty(2, 0, dtype=torch.long)
    circles, leader = QueryWindows(k=k, size=8, beside=beside)(none, batch.batch, batch.num_graphs, graph=batch)
    windows = [circles[0, circles[1] == number].tolist() for number in range(leader.numel())]
    assert windows == expected
    assert leader.tolist() == [window[0] for window in expected]


def test_options_and_the_contract():
    check_partition(QueryWindows(k=2, size=5))
    with pytest.raises(OptionError, match="QueryWindows looks at words: hand over the graph"):
        QueryWindows()(torch.empty(2, 0, dtype=torch.long), torch.zeros(3, dtype=torch.long), 1)
