"""Graphs for tests of the page of a document."""

from __future__ import annotations

import torch
from torch_geometric.data import Batch

from socialgraph.data import document_graph
from socialgraph.data.circles import compose
from socialgraph.data.graph import connect, gather, weigh
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance, draw_key
from socialgraph.partition import EdgeCircles, Windows

#: texts that a page must show as text
HOSTILE = [
    "<script>window.hacked=1</script>",
    "</script>",
    "<!--<script>",
    "]]>",
    "</textarea>",
    "</style>",
    "<img src=x onerror=window.hacked=1>",
    "<svg/onload=window.hacked=1>",
    "{{7*7}}",
    "{{script}}",
    "\\1 \\g<0>",
    "${window.hacked=1}",
    "javascript:window.hacked=1",
    "' onmouseover='window.hacked=1",
    '" autofocus onfocus="window.hacked=1',
    "&lt;b&gt;&amp;",
    "\u202eright to left",
    "\u200f\u061c",
    "\u2028\u2029",
    "\x00\x1b[31m",
    "\ud800",
    "\U0001f469\u200d\U0001f52c",
    "Z\u0351\u036b\u0343",
    "שלום",
    "",
    "x" * 500,
    "##",
    "##<b>",
    "constructor",
    "__proto__",
]
#: and what would load or run something if it became HTML
ATTACKS = [
    "</script><script>window.hacked=1</script>",
    "<!--<script>window.hacked=1//-->",
    "<a href='javascript:window.hacked=1'>x</a>",
    "<img src=https://example.org/x onerror=window.hacked=1>",
    "\u2028window.hacked=1\u2029",
    "';window.hacked=1;//",
    '";window.hacked=1;//',
    "</title><svg onload=window.hacked=1>",
    "\u202e" + "x" * 100_000,
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<link rel=stylesheet href=//example.org/x.css>",
    "<base href=//example.org>",
    "&#60;script&#62;",
    "\\u003cscript>",
    "<iframe srcdoc='<script>parent.hacked=1</script>'>",
]
TIES = ("static_distance", "static_centrality", "dynamic_distance")


def one(length=70, circles=None, sparsity=0.8, passages=16, seed=0):
    """A graph of random words with everything that the page shows, and the edges that drew it."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 200, (length,), generator=generator)
    tfidf = torch.rand(length, generator=generator, dtype=torch.float64)
    query = ids[[length // 3, length // 2]] if length else torch.tensor([7])
    batch = Batch.from_data_list([document_graph(ids, query, draw_key(seed, query, ids), "q", "d", tfidf=tfidf)])
    patterns = [StaticDistance(), StaticCentrality(), DynamicDistance()]
    edges = SocialEdges(patterns, {"static_distance": 2.0}, sparsity)
    weigh(batch, "dynamic_distance", edges.patterns["dynamic_distance"].weights(batch))
    connect(batch, *edges(batch))
    layout = (batch.edge_index, batch.batch, 1, batch.edge_weight)
    gather(batch, *compose(Windows(passages), circles or EdgeCircles(k=4, max_size=12), *layout))
    return batch[0], edges


def friends_of(graph, node: int) -> dict[int, float]:
    mine = graph.edge_index[0] == node
    return dict(zip(graph.edge_index[1, mine].tolist(), graph.edge_weight[mine].tolist(), strict=True))


def circles_of(graph, node: int) -> list[int]:
    """Numbers of a node's friend circles, from 0."""
    circles = (~graph.passage_mask).nonzero().flatten().tolist()
    mine = graph.circle_index[1, graph.circle_index[0] == node].tolist()
    return [number for number, circle in enumerate(circles) if circle in mine]


def piece(tab, node: int):
    """Return a word of the page in a browser."""
    return tab.locator(f'.text .piece[data-node="{node}"]')
