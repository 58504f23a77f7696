"""Socialformer against a plain BERT on the same tokens, and against padded groups: `python benchmarks/exchange.py`.

All read the same circles of the same documents with the same weights in float32:

* packed: our Socialformer, with and without the leaders' talk;
* careful: transformers' BertModel over the circles, sorted by length and padded within batches of a token budget;
* padded: the same over 32 groups of 133 tokens for each document, empty or not, as the released Socialformer does.

Inference and training steps, medians of ROUNDS rounds in turn, peak memory. JSON: benchmarks/results/exchange.json.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise

import torch
from measure import interleaved, medians, peak_memory, ratio, table, write
from torch import Tensor

from socialgraph.backbone import load_bert
from socialgraph.data import GraphBuilder, TermStatistics, Tokens, load_pydocs
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer, circle_sequences
from socialgraph.partition import EdgeCircles, Windows

ROUNDS = 7
GROUPS, WIDTH = 32, 133  # the released code: 16 passages and 16 circles, [CLS] + 3 + 128 + ... tokens each
BUDGET = 8192  # tokens of a careful batch
QUERY = "copy a file"


def main(documents: int = 4, length: int = 2048) -> None:
    """Compare on the first pydocs documents, of their own lengths up to ``length``."""
    collection = load_pydocs()
    tokens = Tokens("minilm", max_document_length=length)
    counts = TermStatistics.count(map(tokens.document, collection.documents.values()), tokens.vocab_size)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()])
    builder = GraphBuilder(collection.documents, tokens, counts, edges, EdgeCircles(k=16), Windows(128))
    names = list(collection.documents)[:: len(collection.documents) // documents][:documents]
    graph = builder([("q", QUERY, name) for name in names])
    packed = Socialformer.from_backbone("minilm", dropout=0.0)
    alone = Socialformer.from_backbone("minilm", dropout=0.0, inter_circle=False)
    bert = load_bert("minilm")
    for module in bert.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    sequences = circle_sequences(graph, packed.cls_token_id, packed.sep_token_id)
    bounds = sequences.ptr.tolist()
    texts = [sequences.token[a:b] for a, b in pairwise(bounds)]
    careful, padded = careful_batches(texts, BUDGET), full_batches(texts, documents * GROUPS)

    def plain(batches: list[tuple[Tensor, Tensor]], train: bool) -> Callable[[], None]:
        def run() -> None:
            for ids, mask in batches:  # a training step goes batch by batch too: gradients add up
                with torch.set_grad_enabled(train):
                    states = bert(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
                if train:
                    states.sum().backward()

        return run

    def ours(model: Socialformer, train: bool) -> Callable[[], None]:
        def run() -> None:
            model.train(train)
            with torch.set_grad_enabled(train):
                scores = model(graph)
            if train:
                scores.sum().backward()

        return run

    names_of = {
        "packed": (ours, packed),
        "packed, no inter-circle": (ours, alone),
        "careful": (plain, careful),
        "padded": (plain, padded),
    }
    result: dict[str, object] = {"documents": documents, "circles": len(texts), "tokens": bounds[-1], "rounds": ROUNDS}
    rows = []
    for kind, train in (("inference", False), ("training step", True)):
        steps = {name: make(what, train) for name, (make, what) in names_of.items()}  # type: ignore[operator]
        seconds = interleaved(steps, ROUNDS)
        memory = {name: peak_memory(run) for name, run in steps.items()}
        middle = medians(seconds)
        result[kind] = {
            "seconds": middle,
            "megabytes": memory,
            "packed over careful": ratio(seconds, "packed", "careful"),
            "no inter-circle over careful": ratio(seconds, "packed, no inter-circle", "careful"),
            "padded over packed": ratio(seconds, "padded", "packed"),
        }
        for name in steps:
            room = "-" if memory[name] is None else f"{memory[name]:.0f}"
            rows.append([f"{kind}: {name}", f"{1e3 * middle[name] / documents:.0f}", room,
                         f"{ratio(seconds, name, 'careful'):.2f}"])  # fmt: skip
    shares = {name: sum(ids.numel() for ids, _ in batches) / bounds[-1] for name, batches in
              (("careful", careful), ("padded", padded))}  # fmt: skip
    result["padding"] = {name: share - 1 for name, share in shares.items()}
    table(["step", "ms per document", "MB more at the peak", "of careful"], rows)
    print(f"\n{documents} documents, {len(texts)} circles, {bounds[-1]} tokens; padding: careful "
          f"{shares['careful'] - 1:.1%}, padded {shares['padded'] - 1:.1%}")  # fmt: skip
    write("exchange", result)


def careful_batches(texts: list[Tensor], budget: int) -> list[tuple[Tensor, Tensor]]:
    """Sort by length and pad within batches of a token budget, as a careful user does."""
    batches, batch = [], []
    for text in sorted(texts, key=len):
        if batch and len(text) * (len(batch) + 1) > budget:
            batches.append(padded_batch(batch, len(batch[-1])))
            batch = []
        batch.append(text)
    return [*batches, padded_batch(batch, len(batch[-1]))]


def full_batches(texts: list[Tensor], amount: int) -> list[tuple[Tensor, Tensor]]:
    """Pad every text to WIDTH and their number to ``amount``, GROUPS in a batch."""
    texts = [text[:WIDTH] for text in texts] + [torch.tensor([101, 102])] * (amount - len(texts))
    return [padded_batch(texts[i : i + GROUPS], WIDTH) for i in range(0, amount, GROUPS)]


def padded_batch(texts: list[Tensor], width: int) -> tuple[Tensor, Tensor]:
    """Return ids and attention mask."""
    ids = torch.zeros(len(texts), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return ids, mask


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
