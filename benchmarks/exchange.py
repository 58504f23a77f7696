"""Socialformer against a plain BERT on the same tokens, and against padded groups: `python benchmarks/exchange.py`.

All read the same circles of the same documents with the same weights:

* packed: our Socialformer, with the leaders' talk and without;
* careful: transformers' BertModel over the circles, sorted by length and padded within batches of a token budget;
* padded: the same over 32 groups of 133 tokens for each document, empty or not, as the released Socialformer does, all
  groups of four documents at once;
* padded, by document: the same, a document at a time, which fits a CPU's cache better;
* matrix products alone: the linear layers of a BERT on these tokens and nothing else: what packed cannot beat but for
  its last layer, of which it computes leaders only.

Inference and training steps, medians of rounds in turn, peak memory. JSON: benchmarks/results/exchange.json
(exchange-<collection>-<lengths>-bf16.json with these options).

With --made-up a GPU by itself, on pages and weights that are made up, so that no files are needed: the forward pass and
the training step in bfloat16 as shares of the device's peak, their errors against float32, what kernels and waits they
consist of, attention by the length of its segments, and dynamic centrality. JSON: exchange-made-up.json.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import pairwise

import made_up_pages
import torch
from made_up_pages import operations
from measure import device, interleaved, medians, parser, peak_memory, ratio, table, write
from torch import Tensor
from torch.nn import functional as F

from socialgraph.backbone import load_bert
from socialgraph.data import GraphBuilder, TermStatistics, Tokens, load_folder, load_pydocs
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer, circle_sequences
from socialgraph.partition import EdgeCircles, Windows

GROUPS, WIDTH = 32, 133  # the released code: 16 passages and 16 circles, [CLS] + 3 + 128 + ... tokens each
BUDGET = 8192  # tokens of a careful batch
QUERY = "copy a file"
INTRA, ALONE, CAREFUL, PADDED, SINGLY, BOUND = (
    "packed", "packed, no inter-circle", "careful", "padded", "padded, by document", "matrix products alone",
)  # fmt: skip


def main() -> None:
    """Compare on documents of their own lengths, spread evenly over the collection."""
    options = parser(__doc__)
    options.add_argument("--folder", help="a folder collection; without it pydocs")
    options.add_argument("--documents", type=int, default=8, help="how many")
    options.add_argument("--length", type=int, default=2048, help="word pieces of a document at most")
    options.add_argument("--shortest", type=int, default=0, help="only documents of so many word pieces or more")
    options.add_argument("--longest", type=int, help="... and so many or fewer")
    options.add_argument("--rounds", type=int, default=5, help="rounds that count")
    options.add_argument("--backbone", default="minilm", help="a BERT: minilm, a hub id or a folder")
    options.add_argument("--bf16", action="store_true", help="bfloat16 autocast for all")
    options.add_argument("--no-training", action="store_true", help="inference only")
    options.add_argument("--peak", type=float, help="TFLOP/s of the device, for the share that is used (H200: 989)")
    options.add_argument("--made-up", action="store_true", help="a GPU by itself, on made-up pages")
    options.add_argument("--small", action="store_true", help="with --made-up: a rehearsal on a CPU")
    args = options.parse_args()
    if args.made_up:
        made_up_pages.main(args.small, args.peak or 989)
        return
    where = device()
    collection = load_folder(args.folder) if args.folder else load_pydocs()
    tokens = Tokens(args.backbone, max_document_length=args.length)
    counts = TermStatistics.of(tokens, collection.documents)
    sizes = {name: tokens.document(text).numel() for name, text in collection.documents.items()}
    names = [name for name, size in sizes.items() if args.shortest <= size <= (args.longest or size)]
    names = names[:: max(1, len(names) // args.documents)][: args.documents]
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()])
    builder = GraphBuilder(collection.documents, tokens, counts, edges, EdgeCircles(k=16), Windows(128), device=where)
    graph = builder([("q", QUERY, name) for name in names])
    packed, alone = (
        Socialformer.from_backbone(args.backbone, dropout=0.0, inter_circle=inter).to(where) for inter in (True, False)
    )
    bert = load_bert(args.backbone).to(where)
    for module in bert.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    sequences = circle_sequences(graph, packed.cls_token_id, packed.sep_token_id)
    bounds = sequences.ptr.tolist()
    texts = [sequences.token[a:b] for a, b in pairwise(bounds)]
    careful = careful_batches(texts, BUDGET)
    padded, singly = (full_batches(texts, len(names) * GROUPS, at_once) for at_once in (4, 1))
    precision = torch.autocast(where.type, torch.bfloat16) if args.bf16 else contextlib.nullcontext()

    def plain(batches: list[tuple[Tensor, Tensor]], train: bool) -> Callable[[], None]:
        def run() -> None:
            for ids, mask in batches:  # a training step goes batch by batch too: gradients add up
                with torch.set_grad_enabled(train), precision:
                    states = bert(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
                if train:
                    states.float().sum().backward()

        return run

    def ours(model: Socialformer, train: bool) -> Callable[[], None]:
        def run() -> None:
            model.train(train)
            with torch.set_grad_enabled(train), precision:
                scores = model(graph)
            if train:
                scores.float().sum().backward()

        return run

    def products(model: Socialformer, train: bool) -> Callable[[], None]:
        narrow = torch.randn(bounds[-1], model.layers[0].hidden_size, device=where)
        wide = torch.randn(bounds[-1], model.layers[0].intermediate_size, device=where)

        def run() -> None:
            with torch.set_grad_enabled(train), precision:
                for layer in model.layers:
                    for linear in (layer.query, layer.key, layer.value, layer.attention_output, layer.intermediate):
                        push(F.linear(narrow.requires_grad_(train), linear.weight, linear.bias))
                    push(F.linear(wide.requires_grad_(train), layer.output.weight, layer.output.bias))

        def push(x: Tensor) -> None:
            if train:
                x.backward(x.detach())

        return run

    systems: dict[str, tuple[Callable, object]] = {
        INTRA: (ours, packed), ALONE: (ours, alone), CAREFUL: (plain, careful),
        PADDED: (plain, padded), SINGLY: (plain, singly), BOUND: (products, packed),
    }  # fmt: skip
    work = operations(packed, sequences.ptr)
    result: dict[str, object] = {
        "documents": len(names), "circles": len(texts), "tokens": bounds[-1], "rounds": args.rounds,
        "backbone": args.backbone, "bf16": args.bf16, "operations of packed, inference": work,
    }  # fmt: skip
    rows = []
    for kind, train in (("inference", False), ("training step", True))[: 1 if args.no_training else 2]:
        steps = {name: make(what, train) for name, (make, what) in systems.items()}
        seconds = interleaved(steps, args.rounds)
        memory = {name: peak_memory(run) for name, run in steps.items()}
        middle = medians(seconds)
        speed = work * (3 if train else 1) / middle[INTRA] / 1e12
        result[kind] = {
            "seconds": middle,
            "megabytes": memory,
            "of careful": {name: ratio(seconds, name, CAREFUL) for name in steps},
            "of packed": {name: ratio(seconds, name, INTRA) for name in steps},
            "TFLOP/s of packed": speed,
            "share of the peak": None if args.peak is None else speed / args.peak,
        }
        for name in steps:
            room = "-" if memory[name] is None else f"{memory[name]:.0f}"
            rows.append([f"{kind}: {name}", f"{1e3 * middle[name] / len(names):.0f}", room,
                         f"{ratio(seconds, name, CAREFUL):.2f}", f"{ratio(seconds, name, INTRA):.2f}"])  # fmt: skip
        print(f"{kind}: packed computes {speed:.3g} TFLOP/s" + (f", {speed / args.peak:.0%}" if args.peak else ""))
    shares = {name: sum(ids.numel() for ids, _ in batches) / bounds[-1] for name, batches in
              (("careful", careful), ("padded", padded))}  # fmt: skip
    result["padding"] = {name: share - 1 for name, share in shares.items()}
    table(["step", "ms per document", "MB more at the peak", "of careful", "of packed"], rows)
    print(f"\n{len(names)} documents, {len(texts)} circles, {bounds[-1]} tokens; padding: careful "
          f"{shares['careful'] - 1:.1%}, padded {shares['padded'] - 1:.1%}")  # fmt: skip
    lengths = f"-{args.shortest}-{args.longest or args.length}" if args.shortest or args.longest else ""
    label = "exchange" + ("-wtq" if args.folder else "") + lengths + ("-bf16" if args.bf16 else "")
    write(label, result)


def careful_batches(texts: list[Tensor], budget: int) -> list[tuple[Tensor, Tensor]]:
    """Sort by length and pad within batches of a token budget, as a careful user does."""
    batches, batch = [], []
    for text in sorted(texts, key=len):
        if batch and len(text) * (len(batch) + 1) > budget:
            batches.append(padded_batch(batch, len(batch[-1])))
            batch = []
        batch.append(text)
    return [*batches, padded_batch(batch, len(batch[-1]))]


def full_batches(texts: list[Tensor], amount: int, documents: int) -> list[tuple[Tensor, Tensor]]:
    """Pad every text to WIDTH and their number to ``amount``, the groups of some documents in a batch."""
    nothing = [torch.tensor([101, 102], device=texts[0].device)] * (amount - len(texts))
    texts = [text[:WIDTH] for text in texts] + nothing
    step = documents * GROUPS
    return [padded_batch(texts[i : i + step], WIDTH) for i in range(0, amount, step)]


def padded_batch(texts: list[Tensor], width: int) -> tuple[Tensor, Tensor]:
    """Return ids and attention mask."""
    ids = texts[0].new_zeros(len(texts), width)
    mask = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return ids, mask


if __name__ == "__main__":
    main()
