"""Documents per second from text to score: `python benchmarks/rerank.py`.

Our recipes (all with their graphs built from text) beside

* padded groups: the Socialformer's own graphs and circles, read by transformers' BertModel with the same weights as 32
  groups of 133 tokens for each document, empty or not, as the released Socialformer does, four documents at a time;
* transformers' LongformerModel and BigBirdModel of MiniLM's size;
* a sentence-transformers CrossEncoder doing MaxP over the same windows.

Each round every system re-ranks the same pairs from text, without caches; weights do not matter for the time, so those
without a pre-trained form of this size are random. All of them, and our graphs, are on the GPU if there is one. Medians
of rounds in turn, in float32 unless --bf16. JSON: benchmarks/results/rerank-<collection>-<lengths>.json.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any

import torch
from exchange import GROUPS, full_batches
from measure import device, interleaved, medians, parser, ratio, table, write
from sentence_transformers import CrossEncoder
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel

from socialgraph.backbone import load_bert, load_tokenizer, locate
from socialgraph.data import Cache, Collection, GraphBuilder, TermStatistics, Tokens, load_folder, load_pydocs
from socialgraph.nn import circle_sequences
from socialgraph.ranking import rerank
from socialgraph.recipes.build import Parts, build
from socialgraph.recipes.compose import compose_recipe

LENGTH = 2048
WINDOW = 128
BUDGET = 8192
SOCIAL = "socialformer-edge"
PADDED = "padded groups"
RECIPES = ["parade-max", "maxp", SOCIAL, "socialformer-node", "longformer-global", "bigbird"]
WHERE = device()


def main() -> None:
    """Time all systems on documents of the whole collection, drawn at random, each with a random test query."""
    options = parser(__doc__)
    options.add_argument("recipe", nargs="*", default=RECIPES, help="of socialgraph/recipes/recipe")
    options.add_argument("--folder", help="a folder collection; without it pydocs")
    options.add_argument("--pairs", type=int, default=24, help="pairs of a query and a document")
    options.add_argument("--shortest", type=int, default=1, help="word pieces of a document at least")
    options.add_argument("--longest", type=int, help="... and at most; all documents are cut at 2,048")
    options.add_argument("--rounds", type=int, default=3, help="rounds that count")
    options.add_argument("--bf16", action="store_true", help="bfloat16 autocast for all")
    args = options.parse_args()
    collection = load_folder(args.folder, candidates=None) if args.folder else load_pydocs()
    test = collection["test"]
    reader = Tokens("minilm", max_document_length=LENGTH)
    draw = random.Random(0)
    names, queries = list(collection.documents), list(test.queries)
    draw.shuffle(names)
    sizes = ((name, reader.document(collection.documents[name]).numel()) for name in names)
    fitting = (name for name, size in sizes if args.shortest <= size <= (args.longest or size))
    pairs = [(draw.choice(queries), name) for name in islice(fitting, args.pairs)]
    texts = [(test.queries[query], collection.documents[document].full_text) for query, document in pairs]
    words = sum(reader.document(collection.documents[document]).numel() for _, document in pairs)

    systems: dict[str, Callable[[], Any]] = {}
    for name in args.recipe:
        systems[name] = ours(name, collection, test.queries, pairs, args.bf16)
    systems[PADDED] = padded(collection, test.queries, pairs)
    systems["HF Longformer"] = longformer(texts)
    systems["HF BigBird"] = bigbird(texts, args.bf16)
    systems["CrossEncoder, MaxP"] = cross_encoder(texts)

    def precise(run: Callable[[], Any]) -> Callable[[], Any]:
        def again() -> None:
            with torch.autocast(WHERE.type, torch.bfloat16) if args.bf16 else contextlib.nullcontext():
                run()

        return again

    seconds = interleaved({name: precise(run) for name, run in systems.items()}, args.rounds)
    middle = medians(seconds)
    slowest = max(len(name) for name in middle)
    compared = SOCIAL if SOCIAL in systems else next(iter(systems))
    times = {name: ratio(seconds, name, compared) for name in systems}
    table(
        ["system", "documents / s", "word pieces / s", f"times the seconds of {compared}"],
        [
            [n.ljust(slowest), f"{len(pairs) / s:.2f}", f"{words / s:,.0f}", f"{times[n]:.2f}"]
            for n, s in sorted(middle.items(), key=lambda x: x[1])
        ],
    )
    lengths = f"{args.shortest}-{args.longest or LENGTH}"
    print(f"\n{collection.name}: {len(pairs)} pairs, {words} word pieces; documents of {lengths}, cut at {LENGTH}")
    label = f"rerank-{'wtq' if args.folder else 'pydocs'}-{lengths}" + ("-bf16" if args.bf16 else "")
    figures = {
        "collection": collection.name, "pairs": len(pairs), "word_pieces": words, "lengths": lengths,
        "bf16": args.bf16, "rounds": args.rounds, "seconds": middle, f"seconds over {compared}": times,
    }  # fmt: skip
    write(label, figures)


def recipe_of(name: str) -> Any:
    """Return a recipe, composed for long documents."""
    return compose_recipe(name, [f"document_length={LENGTH}", "partition.k=16"])


def builder_of(recipe: Any, collection: Collection) -> GraphBuilder:
    """Return what builds a recipe's graphs from text; nothing is kept between calls."""
    tokens = Tokens("minilm", recipe["document_length"], cache=Cache(size=0))
    counts = TermStatistics(torch.ones(tokens.vocab_size, dtype=torch.long), 100)  # any counts take the same time
    return Parts.of(recipe).builder(collection.documents, tokens, counts, cache=Cache(size=0), device=WHERE)


def ours(
    name: str, collection: Collection, queries: dict[str, str], pairs: list[tuple[str, str]], bf16: bool
) -> Callable[[], Any]:
    """Return what re-ranks the pairs by a recipe; whether in bfloat16 :func:`rerank` decides, not who calls it."""
    recipe = recipe_of(name)
    builder, model = builder_of(recipe, collection), build(recipe["model"]).eval().to(WHERE)
    candidates: dict[str, dict[str, float]] = {}
    for query, document in pairs:
        candidates.setdefault(query, {})[document] = 1.0
    return lambda: rerank(model, builder, queries, candidates, token_budget=BUDGET, bf16=bf16, progress=False)


def padded(collection: Collection, queries: dict[str, str], pairs: list[tuple[str, str]]) -> Callable[[], Any]:
    """Return what reads the Socialformer's circles as padded groups, all documents' graphs built four at a time."""
    builder, bert = builder_of(recipe_of(SOCIAL), collection), load_bert("minilm").eval().to(WHERE)
    cls, sep = builder.tokens.special

    @torch.inference_mode()
    def read() -> None:
        for start in range(0, len(pairs), 4):
            part = pairs[start : start + 4]
            graph = builder([(query, queries[query], document) for query, document in part])
            sequences = circle_sequences(graph, cls, sep)
            texts = [sequences.token[a:b] for a, b in pairwise(sequences.ptr.tolist())]
            for ids, mask in full_batches(texts, len(part) * GROUPS, len(part)):
                bert(input_ids=ids, attention_mask=mask)

    return read


def longformer(texts: list[tuple[str, str]]) -> Callable[[], Any]:
    """Return what reads the texts with transformers' Longformer, query tokens global."""
    config = LongformerConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        max_position_embeddings=LENGTH + 66, attention_window=WINDOW, type_vocab_size=2, pad_token_id=0,
    )  # fmt: skip
    model, tokenizer = LongformerModel(config, add_pooling_layer=False).eval().to(WHERE), load_tokenizer("minilm")

    def run(batch: dict[str, torch.Tensor]) -> None:
        hubs = (batch["token_type_ids"] == 0) & (batch["attention_mask"] == 1)
        model(**batch, global_attention_mask=hubs.long())

    return whole(texts, tokenizer, run)


def bigbird(texts: list[tuple[str, str]], bf16: bool) -> Callable[[], Any]:
    """Return what reads the texts with transformers' BigBird, block-sparse."""
    config = BigBirdConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        max_position_embeddings=LENGTH + 64, attention_type="block_sparse", block_size=64, num_random_blocks=3,
        pad_token_id=0,
    )  # fmt: skip
    model, tokenizer = BigBirdModel(config, add_pooling_layer=False).eval().to(WHERE), load_tokenizer("minilm")
    if bf16:
        model.to(torch.bfloat16)  # it cannot run in autocast: it scatters states of one type into those of another

    def run(batch: dict[str, torch.Tensor]) -> None:
        with torch.autocast(WHERE.type, enabled=False):
            model(**batch)

    return whole(texts, tokenizer, run)


def whole(
    texts: list[tuple[str, str]], tokenizer: Any, run: Callable[[dict[str, torch.Tensor]], Any]
) -> Callable[[], Any]:
    """Return what tokenises the texts, longest first, and reads them in batches of four."""

    @torch.inference_mode()
    def read() -> None:
        ordered = sorted(texts, key=lambda pair: -len(pair[1]))
        for start in range(0, len(ordered), 4):
            queries, documents = zip(*ordered[start : start + 4], strict=True)
            run(tokenizer(list(queries), list(documents), padding=True, truncation="only_second",
                          max_length=LENGTH + 64, return_tensors="pt").to(WHERE))  # fmt: skip

    return read


def cross_encoder(texts: list[tuple[str, str]]) -> Callable[[], Any]:
    """Return what scores all windows with a CrossEncoder and takes each document's best."""
    model = CrossEncoder(locate("minilm"), num_labels=1, max_length=512, device=str(WHERE))
    tokenizer = load_tokenizer("minilm")

    def read() -> list[float]:
        cut, owner = [], []
        for number, (query, text) in enumerate(texts):
            spans = tokenizer(
                text, add_special_tokens=False, return_offsets_mapping=True, truncation=True, max_length=LENGTH
            )["offset_mapping"]
            for first in range(0, len(spans), WINDOW):
                part = spans[first : first + WINDOW]
                cut.append((query, text[part[0][0] : part[-1][1]]))
                owner.append(number)
        scores = model.predict(cut, batch_size=64, show_progress_bar=False)
        return [max(s for s, o in zip(scores, owner, strict=True) if o == number) for number in set(owner)]

    return read


if __name__ == "__main__":
    main()
