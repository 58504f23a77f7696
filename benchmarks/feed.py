"""What share of its time the model waits for data: `python benchmarks/feed.py`.

Training steps (a group of 1 + 3 documents) and re-ranking batches (4,096 word pieces at most) of the pydocs collection
run PASSES times over in one process, each time under all conditions in turn; the table has medians. Stages of the
feed add up to the waiting where no worker helps. Workers hold PREFETCHED batches each when the model begins; those are
not counted, and as many follow the last one that is, so that the workers are at work all the time. The JSON with
machine and versions goes to benchmarks/results/feed.json.
"""

import statistics
import tempfile
import time
from collections import defaultdict
from itertools import cycle, islice

import torch
from measure import parser, table, write
from tqdm import tqdm

from socialgraph.data import Cache, GraphBuilder, TermStatistics, Tokens, TrainingGroups, load_pydocs
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import Socialformer
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import BM25, listwise_cross_entropy, retrieve_candidates
from socialgraph.ranking.rerank import ahead, batches

PASSES = 3
BATCHES = 3
BUDGET = 4096
PREFETCHED = 2  # what torch's DataLoader has in stock for each worker
STAGES = ("texts", "dynamic centrality", "edges and circles")


def main() -> None:
    """Time every stage under every condition."""
    options = parser(__doc__)
    options.add_argument("--length", type=int, default=512, help="word pieces of a document at most")
    options.add_argument("--workers", type=int, default=2, help="processes that build graphs ahead of the model")
    args = options.parse_args()
    length, workers = args.length, args.workers
    device = "cuda" if torch.cuda.is_available() else "cpu"
    collection = retrieve_candidates(load_pydocs(), BM25(), 20)
    folder = tempfile.TemporaryDirectory()
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality("minilm")])
    kept_pieces = Tokens("minilm", length, cache=Cache(folder.name))
    ids, seconds = list(collection.documents), {}
    for what in ("tokenise", "read"):
        began = time.perf_counter()
        kept_pieces.documents(ids, collection.documents)
        seconds[what] = time.perf_counter() - began
    began = time.perf_counter()
    counts = TermStatistics.of(kept_pieces, collection.documents)
    assert counts.size == len(ids)
    seconds["count"] = time.perf_counter() - began

    def builder(tokens: Tokens, cache: Cache) -> GraphBuilder:
        passages, circles = Windows(128), EdgeCircles(k=max(1, length // 128))
        return GraphBuilder(collection.documents, tokens, counts, edges, circles, passages, device=device, cache=cache)

    nothing, kept = Cache(size=0), Cache()
    conditions = {
        "nothing kept": (builder(Tokens("minilm", length, cache=nothing), nothing), 0),
        "word pieces": (builder(kept_pieces, nothing), 0),
        f"word pieces, {workers} workers": (builder(kept_pieces, nothing), workers),
        "word pieces and weights": (builder(kept_pieces, kept), 0),
        f"word pieces and weights, {workers} workers": (builder(kept_pieces, kept), workers),
    }
    model = Socialformer.from_backbone("minilm").to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    work = {"training": training(collection), "re-ranking": reranking(collection, kept_pieces)}

    def step(kind: str, graph: object) -> None:
        model.train(kind == "training")
        if kind == "training":
            group, relevant = (torch.tensor(x, device=device) for x in ([0, 0, 0, 0], [True, False, False, False]))
            model(graph, lambda scores: listwise_cross_entropy(scores, group, relevant)).backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with torch.inference_mode():
                model(graph).tolist()
        if device == "cuda":
            torch.cuda.synchronize()

    times: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in tqdm(range(PASSES + 1), desc="passes"):  # the first one warms up, and fills the cache
        for kind, items in work.items():
            for condition, (feed, helpers) in conditions.items():
                stages, restore = watched(feed)
                stock = PREFETCHED * helpers
                waiting, graphs = [], ahead(feed, list(islice(cycle(items), stock + BATCHES + stock)), helpers)
                now = time.perf_counter()
                for graph in graphs:
                    ready = time.perf_counter()
                    step(kind, graph)
                    done = time.perf_counter()
                    waiting.append((ready - now, done - ready))
                    now = done
                restore()
                if number == 0:
                    continue
                found = times[kind, condition]
                for wait, computed in waiting[stock : stock + BATCHES]:
                    found["waiting"].append(wait)
                    found["model"].append(computed)
                for stage, seconds in stages.items() if not helpers else ():
                    found[stage] += seconds
    result: dict[str, dict[str, dict[str, float]]] = {}
    rows = []
    for (kind, condition), found in times.items():
        row = {name: 1e3 * statistics.median(values) for name, values in found.items()}
        row["share"] = sum(found["waiting"]) / (sum(found["waiting"]) + sum(found["model"]))
        row["in all"] = 1e3 * (sum(found["waiting"]) + sum(found["model"])) / len(found["waiting"])
        result.setdefault(kind, {})[condition] = row
        cells = [f"{row[name]:.1f}" if name in row else "" for name in (*STAGES, "model", "waiting", "in all")]
        rows.append([f"{kind}: {condition}", *cells, f"{row['share']:.1%}"])
    print(f"\nSocialformer (MiniLM), documents of {length} word pieces, {device}, float32")
    print("median ms a batch; in all: the mean of waiting and model")
    table(["kept", *STAGES, "model", "waiting", "in all", "share"], rows)
    characters = sum(len(document.full_text) for document in collection.documents.values())
    cache = {
        "documents": len(ids), "characters": characters, "bytes": kept_pieces.cache.used(),
        **{f"{what} seconds": value for what, value in seconds.items()},
    }  # fmt: skip
    print(f"\ncache: {cache}")
    folder.cleanup()
    about = {"length": length, "passes": PASSES, "batches": BATCHES, "token budget": BUDGET}
    write("feed", {"milliseconds": result, "cache": cache, **about})


def training(collection):
    """Return the pairs of some training steps."""
    groups = TrainingGroups(collection["train"], BATCHES, negatives=3)
    return [[(group.query_id, group.query, document) for document in group.document_ids] for group in groups]


def reranking(collection, tokens):
    """Return the pairs of some re-ranking batches, longest documents first."""
    split = collection["test"]
    pairs = [(query_id, split.queries[query_id], document) for query_id in split.queries
             for document in split.candidates[query_id]]  # fmt: skip
    lengths = dict(
        zip(collection.documents, tokens.lengths(list(collection.documents), collection.documents), strict=True)
    )
    pairs.sort(key=lambda pair: -lengths[pair[2]])
    return list(islice(batches(pairs, lambda pair: lengths[pair[2]], BUDGET), BATCHES))


def watched(builder):
    """Note how long each stage of a builder takes; return the notes, and what ends it."""
    stages = {stage: [] for stage in STAGES}
    read, draw, weighed = builder.read, builder.draw, builder.weighed

    def noted(stage, function):
        def call(*arguments):
            began = time.perf_counter()
            found = function(*arguments)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            stages[stage].append(time.perf_counter() - began)
            return found

        return call

    def drawn(batch):
        began = time.perf_counter()
        graph = draw(batch)
        stages["edges and circles"].append(time.perf_counter() - began - stages["dynamic centrality"][-1])
        return graph

    builder.read, builder.draw = noted("texts", read), drawn
    builder.weighed = noted("dynamic centrality", weighed)

    def restore():
        del builder.read, builder.draw, builder.weighed

    return stages, restore


if __name__ == "__main__":
    main()
