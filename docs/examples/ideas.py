"""Two ideas for choosing what BERT reads of a long document, tried in docs/compare.md. Neither is in the package.

    PYTHONPATH=docs/examples python experiments/compare.py partition=query-windows,ideas.Cover partition.k=1,2,4

Each is a partition by the public contract (docs/your-own-partition.md).
"""

import torch
from torch_geometric.utils import cumsum, scatter

from socialgraph.partition import EdgeCircles, Partition, Windows
from socialgraph.partition.ties import pair_hash, strongest_first
from socialgraph.query_match import query_match


def numbered(group, size):
    """Return the number of each item within its group, from 0; ``group`` is sorted, ``size`` the number of groups."""
    return torch.arange(group.numel(), device=group.device) - cumsum(torch.bincount(group, minlength=size))[group]


def only(circles, leader, keep):
    """Return the circles that are to be kept, numbered anew."""
    node, circle = circles
    inside = keep[circle]
    return torch.stack([node[inside], (keep.cumsum(0) - 1)[circle[inside]]]), leader[keep]


class Cover(Partition):
    """Windows that cover the query's words together: a word that one of them has counts less in the next.

    A set of windows S has BM25's score of its words, f(S) = sum of idf_t n_t (k1 + 1) / (n_t + k1) over the query's
    words, n_t of them in S. f is submodular, and k times the window that adds most is taken, which is within 1 - 1/e of
    the best k (Nemhauser, Wolsey and Fisher, Mathematical Programming 14, 1978). Windows begin every ``step`` word
    pieces and do not overlap; with step = max_size they are those of :class:`QueryWindows`, and the first is the same.
    """

    by_place = True

    def __init__(self, k=4, max_size=128, step=128, k1=0.9):
        super().__init__()
        self.k, self.max_size, self.step, self.k1 = k, max_size, min(step, max_size), k1
        self.windows = Windows(self.step, after=max_size - self.step)

    def forward(self, edge_index, batch, batch_size, edge_weight=None, graph=None):
        """Return the circles of every document; see :meth:`Partition.forward`."""
        circles, leader = self.windows(edge_index, batch, batch_size)
        document, number = batch[leader], leader.numel()
        window, word, times, idf = self.matches(graph, batch, circles)
        covered = torch.zeros_like(idf)  # how often the chosen windows have each word of each query
        keep, free = torch.zeros_like(leader, dtype=torch.bool), torch.ones_like(leader, dtype=torch.bool)
        for _ in range(self.k):
            before = covered[word]
            gain = idf[word] * (self.saturated(before + times) - self.saturated(before))
            gain = scatter(gain, window, dim_size=number, reduce="sum").masked_fill(~free, -1.0)
            most = scatter(gain, document, dim_size=batch_size, reduce="max")
            best = (free & (gain == most[document])).nonzero().flatten()
            first = best[numbered(document[best], batch_size) == 0]  # one of each document that has any left
            keep[first] = True
            chosen = torch.full_like(most, -1, dtype=torch.long).index_copy_(0, document[first], first)[document]
            free &= (chosen < 0) | ((leader - leader[chosen]).abs() >= self.max_size)
            now = torch.isin(window, first)
            covered = covered.index_add(0, word[now], times[now])  # a window has each word once
        return only(circles, leader, keep)

    def from_sampled(self, graph):
        """Return the same, with no more edges drawn than are looked at."""
        return self.forward(graph.batch.new_empty(2, 0), graph.batch, graph.batch_size, graph=graph.graph)

    def saturated(self, times):
        """Return the weight of a word that occurs so often."""
        return times * (self.k1 + 1) / (times + self.k1)

    def matches(self, graph, batch, circles):
        """Return window, word and count of each pair that occurs, and the idf of each word.

        A word is a word piece of one document's query, so that two documents have none in common.
        """
        node, window = circles
        match = query_match(graph, batch).nonzero().flatten()
        vocabulary = int(graph.input_ids.max()) + 1 if graph.input_ids.numel() else 1
        words, at, everywhere = torch.unique(
            batch[match] * vocabulary + graph.input_ids[match], return_inverse=True, return_counts=True
        )
        idf = torch.zeros(words.numel(), dtype=torch.float64, device=batch.device)
        idf[at] = graph.tfidf[match].double() / everywhere[at]  # the same for all occurrences
        word = torch.full_like(batch, -1).index_copy_(0, match, at)[node]
        window, word = window[word >= 0], word[word >= 0]
        pair, times = torch.unique(window * max(words.numel(), 1) + word, return_counts=True)
        return pair // max(words.numel(), 1), pair % max(words.numel(), 1), times.double(), idf


class FriendSpans(Partition):
    """Edge-level circles whose members bring the words around them: spans of text instead of lone words.

    Every word of the document counts the members of the circle near it, those at a distance d of at most 2 ``reach``
    2 reach + 1 - d times. The circle keeps its size, its leader, and the words that count most; a hash of the pair
    breaks ties.
    """

    def __init__(self, k=4, max_size=128, reach=8):
        super().__init__()
        self.k, self.max_size, self.reach = k, max_size, reach
        self.circles = EdgeCircles(k, max_size)

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        """Return the circles of every document; see :meth:`Partition.forward`."""
        return self.spans(self.circles(edge_index, batch, batch_size, edge_weight), batch, batch_size)

    def from_sampled(self, graph):
        """Return the same, with no more edges drawn than are looked at."""
        return self.spans(self.circles.from_sampled(graph), graph.batch, graph.batch_size)

    def spans(self, circles, batch, batch_size):
        """Return the circles with whole spans instead of lone members."""
        (member, its_circle), leader = circles
        size = torch.bincount(its_circle, minlength=leader.numel())
        ptr = cumsum(torch.bincount(batch, minlength=batch_size))
        # For each circle all words of its document, one circle behind the other.
        length = ptr.diff()[batch[leader]]
        begin = cumsum(length)
        circle = torch.repeat_interleave(length)
        place = torch.arange(circle.numel(), device=batch.device) - begin[circle]
        node = ptr[batch[leader]][circle] + place
        near = torch.zeros_like(circle)
        near[begin[its_circle] + member - ptr[batch[member]]] = 1
        low = begin[circle] + (place - self.reach).clamp(min=0)
        high = begin[circle] + torch.minimum(place + self.reach + 1, length[circle])
        for _ in range(2):  # the members within reach, and of these sums again those within reach
            total = cumsum(near)
            near = total[high] - total[low]
        near[node == leader[circle]] = near.max() + 1 if near.numel() else 0
        order = strongest_first(near, pair_hash(place, (leader - ptr[batch[leader]])[circle]))
        order = order[torch.argsort(circle[order], stable=True)]
        stays = order[numbered(circle[order], leader.numel()) < size[circle[order]]].sort().values
        return torch.stack([node[stays], circle[stays]]), leader
