"""What the draw costs a ranking: `python benchmarks/draws.py FOLDER`.

Questions of a collection's dev split, those of the lowest hash with a relevant document among the first CANDIDATES of
BM25, ranked by the paper's recipe as the reader leaves it, untrained: by DRAWS graphs of each pair, one by one; by the
mean score of four and of all of them; and by the graph of the pairs of highest probability. Told are RR@10; its paired
difference from one draw (each question's mean over the draws); how far a document's score moves from draw to draw,
beside how far the documents of a question lie apart; and how often another document comes first than in the mean of
all. JSON: benchmarks/results/draws-<collection>.json.
"""

from __future__ import annotations

import statistics
import time
from itertools import islice
from pathlib import Path

from measure import parser, table, write

from socialgraph import Ranker
from socialgraph.data import load_folder
from socialgraph.data.collection import Run, hash_fraction, ranked
from socialgraph.ranking import evaluate, paired_t_test, rerank
from socialgraph.ranking.rerank import mean_run

RECIPE = ("socialformer-edge", "edges=social-bf16")
CANDIDATES = 4
DRAWS = 8


def main() -> None:
    """Rank, measure, print and write."""
    options = parser(__doc__)
    options.add_argument("folder", type=Path, help="of a collection with candidates")
    options.add_argument("overrides", nargs="*", default=[], help="options of the recipe, such as recipe.passages=null")
    options.add_argument("--questions", type=int, default=100, help="questions of dev")
    options.add_argument("--length", type=int, default=1024, help="word pieces of a document")
    args = options.parse_args()
    collection = load_folder(args.folder)
    dev = collection["dev"]
    first = {query: ranked(scores)[:CANDIDATES] for query, scores in (dev.candidates or {}).items()}
    asked = (
        query for query in sorted(first, key=hash_fraction) if any(one in dev.relevant(query) for one in first[query])
    )
    queries = {query: dev.queries[query] for query in islice(asked, args.questions)}
    candidates: Run = {query: {one: (dev.candidates or {})[query][one] for one in first[query]} for query in queries}

    random, expected = (
        Ranker.from_recipe(*RECIPE, *args.overrides, *own, document_length=args.length)
        for own in ((), ("+edges.draw=expected",))
    )
    expected.cache = random.cache  # the weights of words are the same
    builder = random.builder(collection)
    builder.draw(builder.read([(query, queries[query], one) for query in list(queries)[:1] for one in first[query]]))
    draws, seconds = [], []
    for number in range(DRAWS):
        began = time.perf_counter()
        draws.append(rerank(random.model, builder.redrawn(number), queries, candidates, bf16=True))
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    sure = rerank(expected.model, expected.builder(collection), queries, candidates, bf16=True)
    seconds.append(time.perf_counter() - began)

    def reciprocal_ranks(run: Run) -> dict[str, float]:
        return evaluate({query: dev.qrels[query] for query in queries}, run, ["RR@10"]).per_query["RR@10"]

    each = [reciprocal_ranks(run) for run in draws]
    one = {query: statistics.fmean(values[query] for values in each) for query in queries}
    whole = mean_run(draws)
    systems = {
        "the mean of draws 1 to 4": reciprocal_ranks(mean_run(draws[:4])),
        "the mean of draws 5 to 8": reciprocal_ranks(mean_run(draws[4:])),
        "the mean of all 8": reciprocal_ranks(whole),
        "expected": reciprocal_ranks(sure),
    }
    moves = [statistics.stdev(run[query][name] for run in draws) for query in queries for name in first[query]]
    apart = [statistics.stdev(whole[query].values()) for query in queries]
    changes = [ranked(run[query])[0] != ranked(whole[query])[0] for run in draws for query in queries]
    means = [statistics.fmean(values.values()) for values in each]
    figures = {
        "a document's score, standard deviation over draws": statistics.fmean(moves),
        "a question's documents, standard deviation of their scores": statistics.fmean(apart),
        "another document comes first": statistics.fmean(changes),
        "RR@10 of each draw": means,
        "seconds of each draw, and of expected": seconds,
    }
    rows = [["one draw", f"{statistics.fmean(means):.4f} ({min(means):.4f} to {max(means):.4f})", "-", "-"]]
    for name, values in systems.items():
        test = paired_t_test(values, one)
        figures[name] = [statistics.fmean(values.values()), test.difference, *test.interval, test.p_value]
        low, high = test.interval
        shown = f"{test.difference:+.4f} [{low:+.4f}, {high:+.4f}]"
        rows.append([name, f"{statistics.fmean(values.values()):.4f}", shown, f"{test.p_value:.2f}"])
    table(["", "RR@10", "from one draw", "p"], rows)
    for name, value in list(figures.items())[:3]:
        print(f"{name}: {value:.3f}")
    about = {"overrides": args.overrides, "questions": len(queries), "length": args.length, "candidates": CANDIDATES}
    write(f"draws-{args.folder.name}", {**about, "figures": figures})


if __name__ == "__main__":
    main()
