"""Documents per second from text to score: `python benchmarks/rerank.py [folder of a collection] [recipe ...]`.

Without a folder: pydocs. Our recipes (all with their graphs built from text) beside transformers' LongformerModel and
BigBirdModel of MiniLM's size and a sentence-transformers CrossEncoder doing MaxP over the same windows. Each round
every system re-ranks the same PAIRS pairs from text, without caches; weights do not matter for the time, so those
without a pre-trained form of this size are random. Medians of ROUNDS rounds. JSON: benchmarks/results/rerank.json.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from measure import interleaved, medians, table, write
from sentence_transformers import CrossEncoder
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel

from socialgraph.backbone import load_tokenizer, locate
from socialgraph.data import Collection, GraphBuilder, TermStatistics, Tokens, WeightCache, load_folder, load_pydocs
from socialgraph.ranking import BM25, rerank, retrieve_candidates

ROUNDS = 3
PAIRS = 24
LENGTH = 2048
WINDOW = 128
RECIPES = ["parade-max", "maxp", "socialformer-edge", "socialformer-node", "longformer-global", "bigbird"]
CONF = Path(__file__).parents[1] / "experiments" / "conf"


def main(folder: str | None = None, *recipes: str) -> None:
    """Time all systems on candidates of the test queries, drawn at random."""
    collection = load_folder(folder, candidates="bm25") if folder else load_pydocs()
    if not folder:
        collection = retrieve_candidates(collection, BM25(), 20)
    test = collection["test"]
    pairs = [(query, document) for query, scores in (test.candidates or {}).items() for document in scores]
    pairs = random.Random(0).sample(pairs, PAIRS)
    texts = [(test.queries[query], collection.documents[document].full_text) for query, document in pairs]
    reader = Tokens("minilm", max_document_length=LENGTH)
    words = sum(reader.document(collection.documents[document]).numel() for _, document in pairs)

    systems: dict[str, Callable[[], Any]] = {}
    for name in recipes or RECIPES:
        systems[name] = ours(name, collection, test.queries, pairs)
    systems["HF Longformer"] = longformer(texts)
    systems["HF BigBird"] = bigbird(texts)
    systems["CrossEncoder, MaxP"] = cross_encoder(texts)
    seconds = interleaved(systems, ROUNDS)
    middle = medians(seconds)
    slowest = max(len(name) for name in middle)
    table(
        ["system", "documents / s", "word pieces / s"],
        [
            [n.ljust(slowest), f"{PAIRS / s:.1f}", f"{words / s:,.0f}"]
            for n, s in sorted(middle.items(), key=lambda x: x[1])
        ],
    )
    print(f"\n{collection.name}: {PAIRS} pairs, {words} word pieces of at most {LENGTH} a document")
    write(
        f"rerank-{collection.name.split('-')[0]}",
        {"collection": collection.name, "pairs": PAIRS, "word_pieces": words, "seconds": middle, "rounds": ROUNDS},
    )


def ours(name: str, collection: Collection, queries: dict[str, str], pairs: list[tuple[str, str]]) -> Callable[[], Any]:
    """Return what re-ranks the pairs by a recipe."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", [f"recipe={name}", f"document_length={LENGTH}", "partition.k=16"])
    recipe = config.recipe
    tokens = Tokens("minilm", recipe.document_length, cache_size=1)
    counts = TermStatistics(torch.ones(tokens.vocab_size, dtype=torch.long), 100)  # any counts take the same time
    parts = {part: instantiate(recipe[part], _convert_="all") for part in ("edges", "circles", "passages", "relevance")}
    builder = GraphBuilder(collection.documents, tokens, counts, joint=recipe.joint, cache=WeightCache(0), **parts)
    model = instantiate(recipe.model).eval()
    candidates: dict[str, dict[str, float]] = {}
    for query, document in pairs:
        candidates.setdefault(query, {})[document] = 1.0
    return lambda: rerank(model, builder, queries, candidates, token_budget=8192, progress=False)


def longformer(texts: list[tuple[str, str]]) -> Callable[[], Any]:
    """Return what reads the texts with transformers' Longformer, query tokens global."""
    config = LongformerConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        max_position_embeddings=LENGTH + 66, attention_window=WINDOW, type_vocab_size=2, pad_token_id=0,
    )  # fmt: skip
    model, tokenizer = LongformerModel(config, add_pooling_layer=False).eval(), load_tokenizer("minilm")

    def run(batch: dict[str, torch.Tensor]) -> None:
        hubs = (batch["token_type_ids"] == 0) & (batch["attention_mask"] == 1)
        model(**batch, global_attention_mask=hubs.long())

    return whole(texts, tokenizer, run)


def bigbird(texts: list[tuple[str, str]]) -> Callable[[], Any]:
    """Return what reads the texts with transformers' BigBird, block-sparse."""
    config = BigBirdConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        max_position_embeddings=LENGTH + 64, attention_type="block_sparse", block_size=64, num_random_blocks=3,
        pad_token_id=0,
    )  # fmt: skip
    model, tokenizer = BigBirdModel(config, add_pooling_layer=False).eval(), load_tokenizer("minilm")
    return whole(texts, tokenizer, lambda batch: model(**batch))


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
                          max_length=LENGTH + 64, return_tensors="pt"))  # fmt: skip

    return read


def cross_encoder(texts: list[tuple[str, str]]) -> Callable[[], Any]:
    """Return what scores all windows with a CrossEncoder and takes each document's best."""
    model, tokenizer = CrossEncoder(locate("minilm"), num_labels=1, max_length=512), load_tokenizer("minilm")

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
    main(*sys.argv[1:])
