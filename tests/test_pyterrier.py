"""A ranker in PyTerrier's pipelines and experiments, with the real library."""

import pytest
from commands import write_tales

from socialgraph import Ranker
from socialgraph.data import load_folder
from socialgraph.errors import InputError
from socialgraph.ranking import rerank

pt = pytest.importorskip("pyterrier", reason="PyTerrier comes with the extra pyterrier")
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tales")
    write_tales(folder)
    collection = load_folder(folder)
    ranker = Ranker.from_recipe("socialformer-edge", backbone=str(folder / "bert"), document_length=50, window=16)
    return ranker.count(collection), collection


@pytest.fixture(scope="module")
def candidates(world):
    _, collection = world
    rows = [
        {"qid": qid, "query": query, "docno": one.doc_id, "text": one.full_text, "score": 1.0, "rank": 0, "mine": 7}
        for qid, query in collection["test"].queries.items()
        for one in collection.documents.values()
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def reranker(world):
    from socialgraph.pyterrier import SocialgraphReranker

    return SocialgraphReranker(world[0])


def test_scores_are_those_of_rerank(world, candidates, reranker):
    ranker, collection = world
    queries = collection["test"].queries
    wanted = {query: dict.fromkeys(collection.documents, 0.0) for query in queries}
    expected = rerank(ranker.model, ranker.builder(collection), queries, wanted, progress=False)
    found = reranker(candidates)
    assert len(found) == len(candidates)
    for row in found.itertuples():
        assert row.score == expected[row.qid][row.docno]
        assert row.rank == list(expected[row.qid]).index(row.docno)
        assert row.mine == 7  # other columns stay


def test_it_runs_in_a_pipeline_and_an_experiment(world, candidates, reranker):
    _, collection = world
    queries = collection["test"].queries
    topics = pd.DataFrame([{"qid": qid, "query": query} for qid, query in queries.items()])
    judged = [(qid, one, grade) for qid, grades in collection["test"].qrels.items() for one, grade in grades.items()]
    qrels = pd.DataFrame(judged, columns=["qid", "docno", "label"])
    first = pt.Transformer.from_df(candidates)
    systems = {"as it is": first, "again": first >> reranker, "two": (first >> reranker) % 2}
    table = pt.Experiment(list(systems.values()), topics, qrels, ["recip_rank", "ndcg_cut_10"], names=list(systems))
    assert list(table["name"]) == list(systems)
    assert table[["recip_rank", "ndcg_cut_10"]].notna().all(axis=None)
    assert len(((first >> reranker) % 2)(topics)) == 2 * len(queries)
    assert any(set(columns) == {"qid", "docno", "query", "text"} for columns in pt.inspect.transformer_inputs(reranker))


def test_no_rows_and_two_texts(candidates, reranker):
    empty = reranker(candidates.iloc[:0])
    assert len(empty) == 0
    assert {"score", "rank"} <= set(empty.columns)
    twice = pd.concat([candidates.head(1), candidates.head(1).assign(text="another")])
    with pytest.raises(InputError, match="has two texts"):
        reranker(twice)


@pytest.mark.parametrize(
    ("column", "value"), [("text", None), ("query", float("nan")), ("text", b"w1"), ("text", pd.NA)]
)
def test_what_is_no_text_is_refused_with_qid_and_docno(candidates, reranker, column, value):
    frame = candidates.head(3).astype({column: object}).reset_index(drop=True)
    frame.at[1, column] = value
    qid, docno = frame.loc[1, "qid"], frame.loc[1, "docno"]
    with pytest.raises(InputError, match=f"^qid {qid!r}, docno {docno!r}: {column!r} must be a string, got "):
        reranker(frame)
