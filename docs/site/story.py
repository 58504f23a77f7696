"""Draw the pictures of docs/paper.md with the library itself: python docs/site/story.py."""

import html
from pathlib import Path

import torch

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens
from socialgraph.data.graph import DocumentGraph
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.partition import EdgeCircles

IMAGES = Path(__file__).parents[1] / "images"
QUERY = "how old is the lighthouse"
TEXT = (
    "the village lies by the sea. its lighthouse was built of stone. boats bring fish each morning. nobody is sure, "
    "but a letter says the tower is three hundred years old."
)
COLOURS = ("#4e79a7", "#e15759", "#b6992d")
ROW, WIDTH, HEIGHT = 8, 86, 62  # words in a line; the place of one


def drawn_graph() -> tuple[DocumentGraph, list[str]]:
    """Return the graph of the text with three circles, and its words."""
    tokens = Tokens("minilm", max_document_length=64)
    documents = {"d": Document("d", TEXT)}
    statistics = TermStatistics.of(tokens, documents)
    patterns = [StaticDistance(p=5), StaticCentrality(), DynamicDistance(p=5), DynamicCentrality("minilm")]
    edges = SocialEdges(patterns, sparsity=0.85)
    builder = GraphBuilder(documents, tokens, statistics, edges, EdgeCircles(k=3, max_size=7), keep_edges=True)
    graph = builder([("q", QUERY, "d")])[0]
    return graph, tokens.words(graph.input_ids)


def centre(node: int) -> tuple[float, float]:
    """Return where a word stands."""
    return (node % ROW + 0.5) * WIDTH, (node // ROW + 0.5) * HEIGHT


def word(x: float, y: float, text: str, fill: str = "#ffffff", ink: str = "#222222", edge: str = "#bbbbbb") -> str:
    """Return a word in its box."""
    return (
        f'<rect x="{x - 40}" y="{y - 15}" width="80" height="30" rx="6" fill="{fill}" stroke="{edge}"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="{ink}">{html.escape(text)}</text>'
    )


def save(name: str, height: float, parts: list[str], about: str) -> None:
    """Write a picture."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {ROW * WIDTH} {height}" role="img" '
        f'font-family="sans-serif" font-size="15"><title>{html.escape(about)}</title>'
        '<rect width="100%" height="100%" rx="8" fill="#fafafa"/>'
    )
    (IMAGES / name).write_text("\n".join([head, *parts, "</svg>"]) + "\n")


def line(start: tuple[float, float], end: tuple[float, float], colour: str, width: float, opacity: float) -> str:
    """Return a friendship: a curve, so that friends in one line of the text do not hide each other's."""
    (x, y), (u, v) = start, end
    bend = 26 if y == v else 0
    return (
        f'<path d="M{x} {y} Q{(x + u) / 2} {(y + v) / 2 - bend} {u} {v}" fill="none" stroke="{colour}" '
        f'stroke-width="{width}" opacity="{opacity}"/>'
    )


def draw_friends(graph: DocumentGraph, words: list[str], asked: torch.Tensor) -> None:
    """Draw who knows whom."""
    pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].t().tolist()
    parts = [line(centre(i), centre(j), "#666666", 1.2, 0.55) for i, j in pairs]
    for node, text in enumerate(words):
        parts.append(word(*centre(node), text, edge="#c0392b" if asked[node] else "#bbbbbb"))
    rows = -(-len(words) // ROW)
    save("story-edges.svg", rows * HEIGHT, parts, "A text of a few words, and a line for each two friends.")


def draw_circles(graph: DocumentGraph, words: list[str]) -> None:
    """Draw who meets in which circle."""
    rows = -(-len(words) // ROW)
    leaders = graph.leader_index.tolist()
    parts = []
    for node, text in enumerate(words):
        inside = graph.circle_index[1, graph.circle_index[0] == node].tolist()
        x, y = centre(node)
        leads = [c for c in inside if leaders[c] == node]
        fill, ink = (COLOURS[leads[0]], "#ffffff") if leads else ("#ffffff", "#222222")
        parts.append(word(x, y, text, fill, ink))
        for place, circle in enumerate(inside):
            left = x - 36 + 25 * place
            parts.append(f'<rect x="{left}" y="{y + 17}" width="22" height="5" rx="2" fill="{COLOURS[circle]}"/>')
    save("story-circles.svg", rows * HEIGHT, parts, "The same text: a bar under each word for each circle it is in.")


def draw_exchange(graph: DocumentGraph, words: list[str]) -> None:
    """Draw who hears whom, and what becomes of it."""
    leaders, circle_of = graph.leader_index.tolist(), graph.circle_index
    at = [(94 + 180 * c, 52.0) for c in range(len(leaders))]
    end = (ROW * WIDTH - 62, 52.0)
    parts = [line(a, b, "#222222", 2, 0.9) for a in at for b in at if a[0] < b[0]]
    parts.append(f'<path d="M{at[-1][0]} 52 H{end[0]}" stroke="#222222" stroke-width="4"/>')
    boxes = [word(*end, "score", "#222222", "#ffffff")]
    boxes.append(f'<text x="{(at[-1][0] + end[0]) / 2}" y="44" text-anchor="middle" fill="#222222">pool</text>')
    for circle, leader in enumerate(leaders):
        members = [node for node in circle_of[0, circle_of[1] == circle].tolist() if node != leader]
        boxes.append(word(*at[circle], words[leader], COLOURS[circle], "#ffffff"))
        for place, node in enumerate(members):
            spot = at[circle][0] - 42 + 84 * (place % 2), 112.0 + 36 * (place // 2)
            parts.append(line(at[circle], spot, COLOURS[circle], 1.5, 0.7))
            boxes.append(word(*spot, words[node], edge=COLOURS[circle]))
    about = "Three circles, their leaders joined by lines, and the score behind them."
    save("story-exchange.svg", 208, [*parts, *boxes], about)


if __name__ == "__main__":
    graph, words = drawn_graph()
    draw_friends(graph, words, torch.isin(graph.input_ids, graph.query_ids))
    draw_circles(graph, words)
    draw_exchange(graph, words)
    print(len(words), graph.num_edges // 2, graph.leader_index.tolist(), words)
