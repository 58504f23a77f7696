"""Options and overrides that are odd: numbers out of every range, and what may be typed on a command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bad_input import INF, NAN

#: numbers that are out of every range, or at its end
NUMBERS = (-1, 0, 10**9, 10**18, 10**30, -(10**30), 0.5, -0.5, 1e308, 1e-320, NAN, INF, -INF)


def options() -> Iterator[tuple[str, str, Callable[[str], Any]]]:
    """Yield name, option, and a call that makes something of a number, for every number and every class.

    The call gets a folder with a BERT. What it returns may be a pattern, edges, a partition, or anything else.
    """
    from socialgraph import edges, partition
    from socialgraph.data import Document, Tokens, TrainingGroups
    from socialgraph.data.collection import Split, hash_split
    from socialgraph.ranking import BM25, QueryLikelihood
    from socialgraph.ranking.evaluate import holm
    from socialgraph.ranking.interpolate import interpolate

    documents = {f"d{i}": Document(f"d{i}", f"w{i} w1") for i in range(5)}
    split = Split({"q": "w1"}, {"q": {"d1": 1}}, {"q": {f"d{i}": float(i) for i in range(5)}})
    social = edges.SocialEdges
    made: dict[tuple[str, str], Callable[[str, Any], Any]] = {
        ("StaticDistance", "p"): lambda _, x: edges.StaticDistance(p=x),
        ("DynamicDistance", "p"): lambda _, x: edges.DynamicDistance(p=x),
        ("SocialEdges", "sparsity"): lambda _, x: social([edges.StaticDistance()], sparsity=x),
        ("SocialEdges", "weights"): lambda _, x: social([edges.StaticDistance()], {"static_distance": x}),
        ("Kleinberg", "r"): lambda _, x: edges.Kleinberg(x),
        ("WattsStrogatz", "neighbours"): lambda _, x: edges.WattsStrogatz(x),
        ("WattsStrogatz", "rewire"): lambda _, x: edges.WattsStrogatz(rewire=x),
        ("Nearby", "width"): lambda _, x: edges.Nearby(x),
        ("EdgeCircles", "k"): lambda _, x: partition.EdgeCircles(k=x),
        ("EdgeCircles", "max_size"): lambda _, x: partition.EdgeCircles(max_size=x),
        ("NodeCircles", "k"): lambda _, x: partition.NodeCircles(k=x),
        ("Blocks", "size"): lambda _, x: partition.Blocks(x),
        ("Blocks", "segment"): lambda _, x: partition.Blocks(segment=x),
        ("Blocks", "forced"): lambda _, x: partition.Blocks(forced=x),
        ("KCore", "k"): lambda _, x: partition.KCore(k=x),
        ("KCore", "max_size"): lambda _, x: partition.KCore(max_size=x),
        ("Sentences", "size"): lambda _, x: partition.Sentences(x),
        ("Windows", "size"): lambda _, x: partition.Windows(x),
        ("Windows", "before"): lambda _, x: partition.Windows(16, before=x),
        ("Windows", "after"): lambda _, x: partition.Windows(16, after=x),
        ("Tokens", "max_document_length"): lambda bert, x: Tokens(bert, x),
        ("Tokens", "max_query_length"): lambda bert, x: Tokens(bert, 10, x),
        ("TrainingGroups", "size"): lambda _, x: TrainingGroups(split, x, 2),
        ("TrainingGroups", "negatives"): lambda _, x: TrainingGroups(split, 2, x),
        ("BM25", "k1"): lambda _, x: BM25(k1=x).fit(documents).retrieve({"q": "w1"}),
        ("BM25", "b"): lambda _, x: BM25(b=x).fit(documents).retrieve({"q": "w1"}),
        ("BM25", "k"): lambda _, x: BM25().fit(documents).retrieve({"q": "w1"}, x),
        ("QueryLikelihood", "mu"): lambda _, x: QueryLikelihood(x).fit(documents).retrieve({"q": "w1"}),
        ("hash_split", "shares"): lambda _, x: hash_split(["a"], [x, 0.5, 0.5 - x]),
        ("interpolate", "weight"): lambda _, x: interpolate({"q": {"d": 1.0}}, {"q": {"d": 2.0}}, x),
        ("interpolate", "score"): lambda _, x: interpolate({"q": {"d": x, "e": 0.0}}, {"q": {"d": 2.0}}, 0.5),
        ("holm", "p"): lambda _, x: holm([0.5, x]),
    }  # fmt: skip
    for (kind, option), make in made.items():
        for number in NUMBERS:
            yield f"{kind}({option}={number!r})", option, lambda bert, make=make, number=number: make(bert, number)


#: overrides as they are typed; nothing is wrong with the last
CONFIGS = (
    "edges.sparsity=2", "edges.sparsity=nan", "edges.sparsity=many", "edges.sparsity=null", "edges.sparsity=[0.9]",
    "edges.sparsty=0.9", "+edges.density=0.1", "edges.weights.static_distance=0.3",
    "+edges.weights.static_distance=nan", "+edges.weights.nobody=1", "+edges.weights.static_distance=much",
    "edges.patterns={}", "edges.patterns=null", "edges.patterns.static_distance.p=0", "edges=nobody",
    "edges._target_=socialgraph.edges.Nobody", "edges._target_=no_such_module.X", "edges._target_=json.loads",
    "edges._target_=''", "edges._target_=null", "edges._target_=5", "partition.k=0", "partition.k=1.5",
    "partition.k=null", "partition.k=[4]", "partition.k=1000000000000000000000000000000", "partition.keep=weakest",
    "partition._target_=builtins.dict", "partition._target_=os.getcwd", "window=-1", "window=null", "window=${nobody}",
    "window=${window}", "document_length=${query_length} query_length=${document_length}", "window=${oc.env:NOBODY}",
    "window=${", "window", "window==1", "++++", "~nobody", "~edges.patterns", "recipe@baseline=nobody", "'\x00=1'",
    "window=!!python/object/apply:os.system", "edges.weights={a:{b:{c:1}}}",
    "edges.patterns.dynamic_centrality.backbone=/nowhere", "window=99999999999999999999", "edges.sparsity=0.93",
)  # fmt: skip
