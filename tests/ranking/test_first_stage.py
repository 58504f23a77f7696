import re

import numpy as np
import pytest

from socialgraph.data.collection import Collection, Document, Split
from socialgraph.data.folder import load_folder
from socialgraph.errors import InputError, OptionError
from socialgraph.ranking.evaluate import evaluate
from socialgraph.ranking.first_stage import BM25, QueryLikelihood, retrieve_candidates

RETRIEVERS = [BM25(), BM25(k1=0.9, b=0.4), QueryLikelihood(), QueryLikelihood(mu=5)]
VOCABULARY = ["apple", "banana", "cherry", "grape", "lemon", "melon", "olive", "peach", "plum", "quince"]


def documents(count=60, seed=0):
    """Documents of random fruit, some of them without any."""
    draw = np.random.default_rng(seed)
    made = {}
    for number in draw.permutation(count):
        words = draw.choice(VOCABULARY, size=draw.integers(0, 12), p=np.arange(10, 0, -1) / 55)
        name = f"d{number:03d}"
        made[name] = Document(name, " ".join(words[1:]), " ".join(words[:1]))
    return made


def words(text):
    """The same words that the retrievers see: none of the fruit is a stop word; stems differ as words do."""
    return re.findall(r"\w\w+", text)


def bm25(query, documents, k1, b):
    tokens = {name: words(one.full_text) for name, one in documents.items()}
    mean = sum(map(len, tokens.values())) / len(tokens)
    scores = dict.fromkeys(tokens, 0.0)
    for word in words(query):
        df = sum(word in one for one in tokens.values())
        idf = np.log(1 + (len(tokens) - df + 0.5) / (df + 0.5))
        for name, one in tokens.items():
            tf = one.count(word)
            scores[name] += idf * tf / (tf + k1 * (1 - b + b * len(one) / mean))
    return {name: score for name, score in scores.items() if score > 0}


def likelihood(query, documents, mu):
    tokens = {name: words(one.full_text) for name, one in documents.items()}
    collection = [word for one in tokens.values() for word in one]
    scores = {}
    for name, one in tokens.items():
        if set(one) & set(words(query)):
            scores[name] = 0.0
            for word in words(query):
                p = collection.count(word) / len(collection)
                if p:
                    scores[name] += np.log((one.count(word) + mu * p) / (len(one) + mu))
    return scores


@pytest.mark.parametrize("retriever", RETRIEVERS, ids=repr)
@pytest.mark.parametrize("query", ["apple", "banana banana peach unheard"])
def test_scores_are_the_formulas(retriever, query):
    corpus = documents()
    run = retriever.fit(corpus).retrieve({"q": query}, k=1000)["q"]
    if isinstance(retriever, BM25):
        expected = bm25(query, corpus, retriever.k1, retriever.b)
    else:
        expected = likelihood(query, corpus, retriever.mu)
    assert run == pytest.approx(expected, rel=1e-5)
    assert list(run) == sorted(run, key=lambda name: (-run[name], name))


@pytest.mark.parametrize("retriever", RETRIEVERS, ids=repr)
def test_the_best_k_are_the_head_of_the_whole_list_with_ties_by_id(retriever):
    corpus = documents(200)  # short documents of few words: many ties
    queries = {f"q{k}": " ".join(VOCABULARY[k : k + 2]) for k in range(8)}
    whole = retriever.fit(corpus).retrieve(queries, k=1000)
    ties = 0
    for k in (1, 2, 7, 30):
        for query_id, scores in retriever.retrieve(queries, k=k).items():
            assert list(scores.items()) == list(whole[query_id].items())[:k]
            ties += list(whole[query_id].values())[k - 1 : k + 1].count(list(scores.values())[-1]) > 1
    assert ties  # the cut fell among equals somewhere


@pytest.mark.parametrize("retriever", RETRIEVERS[::2], ids=repr)
def test_excluded_documents_stay_out_and_scores_stay(retriever):
    corpus = documents()
    whole = retriever.fit(corpus).retrieve({"q": "apple"}, k=1000)["q"]
    excluded = set(list(whole)[:5])
    rest = retriever.retrieve({"q": "apple"}, k=1000, exclude=excluded)["q"]
    assert rest == {name: score for name, score in whole.items() if name not in excluded}
    with pytest.warns(UserWarning, match="1 queries match no document: q"):
        assert retriever.retrieve({"q": "apple"}, exclude=whole) == {}


def test_words_are_stemmed_lowered_and_stopped():
    corpus = {"a": Document("a", "The RUNNING dogs", "Titles"), "b": Document("b", "of the and")}
    run = BM25().fit(corpus).retrieve({"q1": "dog runs", "q2": "title"})
    assert {query_id: list(scores) for query_id, scores in run.items()} == {"q1": ["a"], "q2": ["a"]}


def test_bad_options_and_corpora():
    with pytest.raises(OptionError, match="call fit"):
        BM25().retrieve({"q": "apple"})
    with pytest.raises(OptionError, match="k must be at least 1"):
        BM25().fit(documents()).retrieve({"q": "apple"}, k=0)
    for made in (lambda: BM25(k1=-1), lambda: BM25(b=1.5), lambda: QueryLikelihood(mu=0)):
        with pytest.raises(OptionError):
            made()
    for corpus in ({}, {"a": Document("a", "of the")}):
        with pytest.raises(InputError, match=f"{len(corpus)} documents, and none of them has a word"):
            BM25().fit(corpus)


def test_retrieve_candidates_fills_what_is_missing_and_keeps_held_out_documents_from_train():
    corpus = documents()
    ranking = list(BM25().fit(corpus).retrieve({"q": "apple"}, k=1000)["q"])
    given = {"c": {ranking[0]: 1.0}}
    collection = Collection(
        "fruit",
        corpus,
        {
            "train": Split({"a": "apple"}, {"a": {ranking[0]: 1, ranking[2]: 1}}),
            "dev": Split({"b": "apple"}, {"b": {ranking[0]: 1, ranking[1]: 0}}),
            "test": Split({"c": "apple"}, {"c": {ranking[3]: 2}}, given),
        },
    )
    filled = retrieve_candidates(collection, BM25(), depth=10)
    assert list(filled["dev"].candidates["b"]) == ranking[:10]
    assert list(filled["train"].candidates["a"]) == [one for one in ranking if one not in ranking[0:4:3]][:10]
    assert filled["test"].candidates is given
    assert not collection["train"].has_candidates
    some = retrieve_candidates(collection, BM25(), depth=3, splits=["dev"])
    assert [name for name, split in some.splits.items() if split.has_candidates] == ["dev", "test"]
    with pytest.raises(InputError, match="no split 'nope'"):
        retrieve_candidates(collection, BM25(), splits=["nope"])

    class NeverFitted(BM25):
        def fit(self, documents):
            raise AssertionError("nothing is missing")

    assert retrieve_candidates(filled, NeverFitted()) is filled


def test_bm25_gives_the_run_that_comes_with_wtq(shared, tmp_path):
    collection = load_folder(shared / "data" / "wtq", cache=tmp_path)
    split = collection["test_bal"]
    run = BM25().fit(collection.documents).retrieve(split.queries, k=100)
    for query_id, scores in split.candidates.items():
        assert list(run[query_id])[:10] == list(scores)[:10]
    assert evaluate(split.qrels, run).mean["RR@10"] == pytest.approx(0.562, abs=5e-4)


WORDLESS = {"stop words": "the of and to", "points": "?! ...", "emoji": "😀👩‍🔬", "unknown": "zyzzyva", "blank": " "}


def fruit(queries):
    qrels = {query_id: {"d000": 1} for query_id in queries}
    return Collection("fruit", documents(), {"test": Split(queries, qrels)})


@pytest.mark.parametrize("retriever", RETRIEVERS[::2], ids=repr)
@pytest.mark.filterwarnings("ignore:5 queries match no document")
def test_queries_without_a_match_are_counted_once_and_measured_as_zero(retriever):
    with pytest.warns(UserWarning, match="5 queries match no document: stop words, points, emoji, ") as told:
        found = retrieve_candidates(fruit({**WORDLESS, "good": "apple"}), retriever)["test"]
    assert len(told) == 1
    assert list(found.candidates) == ["good"]
    means = evaluate(found.qrels, found.candidates, ["R@100"])
    assert {query_id for query_id, value in means.per_query["R@100"].items() if value > 0} <= {"good"}
    assert len(means.per_query["R@100"]) == 6
    with pytest.raises(InputError, match="collection fruit, split test: none of the 5 queries shares a word"):
        retrieve_candidates(fruit(WORDLESS), retriever)


def test_scores_of_a_first_stage_that_are_not_finite_are_refused():
    class Odd(BM25):
        def retrieve(self, queries, k=100, exclude=frozenset()):
            return {"q": {"d000": float("nan")}}

    with pytest.raises(InputError, match="split test: the score of document 'd000' for query 'q' is nan"):
        retrieve_candidates(fruit({"q": "apple"}), Odd())


@pytest.mark.parametrize("retriever", RETRIEVERS[::2], ids=repr)
def test_scores_of_some_documents_are_those_of_the_whole_list(retriever):
    corpus = documents(200)
    retriever.fit(corpus)
    for query in ("apple banana", "unheard", "the of"):
        some = [*list(corpus)[::7], "nowhere"]
        whole = retriever.retrieve({"q": query}, k=1000).get("q", {})
        expected = {doc_id: score for doc_id, score in whole.items() if doc_id in some}
        assert list(retriever.score(query, some).items()) == list(expected.items())
        assert retriever.score(query, ["nowhere"]) == retriever.score(query, []) == {}
    with pytest.raises(OptionError, match="call fit"):
        type(retriever)().score("apple", ["d000"])


@pytest.mark.parametrize("option", [None, False])
def test_a_query_that_is_a_document_does_not_find_itself(option):
    """As in ArguAna: it would always be the best. The list is as long as without."""
    corpus = documents() | {"an-apple": Document("an-apple", "apple banana")}
    split = Split({"an-apple": "apple banana"}, {"an-apple": {"d000": 1}})
    collection = Collection("fruit", corpus, {"test": split}, option)
    if option is None:
        with pytest.warns(UserWarning, match="split test: 1 queries are documents themselves, .*: an-apple$"):
            found = retrieve_candidates(collection, BM25(), depth=5)
    else:
        found = retrieve_candidates(collection, BM25(), depth=5)
    whole = list(BM25().fit(corpus).retrieve(split.queries, k=6)["an-apple"])
    assert whole[0] == "an-apple"
    wanted = whole[1:] if option is None else whole[:5]
    assert list(found["test"].candidates["an-apple"]) == wanted
