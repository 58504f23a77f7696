"""Datasets in BEIR's and MTEB's layout, from folders: the library reads them as it reads those of the hub."""

import json
import pickle

import pytest

from socialgraph.data import Document, load_hub
from socialgraph.errors import InputError

datasets = pytest.importorskip("datasets", reason="the extra 'hub' is not installed")

CORPUS = [
    {"_id": "d1", "title": "Otters", "text": "An otter eats fish."},
    {"_id": "d2", "title": "", "text": "A heron waits."},
    {"_id": "d3", "title": None, "text": "Newts sleep."},
]
QUERIES = [{"_id": "q1", "text": "what do  otters eat"}, {"_id": "q2", "text": "who waits"}, {"_id": "q3", "text": "w"}]


def judged(*rows):
    return [{"query-id": query, "corpus-id": document, "score": score} for query, document, score in rows]


QRELS = {"train": judged(("q1", "d1", 1)), "test": judged(("q2", "d2", 2), ("q2", "d3", 0))}


@pytest.fixture(autouse=True)
def _no_network(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")


def write(folder, configs, kind="jsonl"):
    """Write configuration -> split -> rows as a dataset's repository: its files, and the card that names them."""
    card = ["---", "configs:"]
    for config, splits in configs.items():
        card += [f"- config_name: {config}", "  data_files:"]
        for split, rows in splits.items():
            file = folder / config / f"{split}.{kind}"
            file.parent.mkdir(parents=True, exist_ok=True)
            if kind == "parquet":
                datasets.Dataset.from_list(rows).to_parquet(str(file))
            else:
                file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            card += [f"  - split: {split}", f"    path: {config}/{split}.{kind}"]
    (folder / "README.md").write_text("\n".join([*card, "---", ""]))
    return str(folder)


def pack(folder, corpus=CORPUS, queries=QUERIES, qrels=QRELS, heading="query-id\tcorpus-id\tscore"):
    """Write a folder as BEIR's archives have it."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({**row, "metadata": {}}) + "\n" for row in rows))
    for split, rows in qrels.items():
        lines = ["\t".join(map(str, row.values())) for row in rows]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join([heading, *lines, ""]))
    return str(folder)


@pytest.fixture(params=["mteb-qrels", "mteb-default", "parquet", "beir", "beir-packed"])
def layout(request, tmp_path):
    if request.param == "beir-packed":
        return pack(tmp_path / "animals")
    texts = {"corpus": {"corpus": CORPUS}, "queries": {"queries": QUERIES}}
    if request.param in ("mteb-qrels", "parquet"):
        kind = "parquet" if request.param == "parquet" else "jsonl"
        return write(tmp_path / "animals", {**texts, "qrels": QRELS}, kind)
    if request.param == "mteb-default":
        return write(tmp_path / "animals", {"default": QRELS, **texts})
    write(tmp_path / "animals-qrels", {"default": QRELS})
    return write(tmp_path / "animals", texts)


def test_every_layout_is_the_same_collection(layout):
    collection = load_hub(layout)
    assert collection.name == "animals"
    assert list(collection.documents) == ["d1", "d2", "d3"]
    texts = [Document("d1", "An otter eats fish.", "Otters"), Document("d2", "A heron waits.")]
    assert list(collection.documents.values()) == [*texts, Document("d3", "Newts sleep.")]
    assert set(collection.splits) == {"train", "test"}
    assert collection["train"].queries == {"q1": "what do otters eat"}
    assert collection["test"].queries == {"q2": "who waits"}
    assert collection["train"].qrels == {"q1": {"d1": 1}}
    assert collection["test"].qrels == {"q2": {"d2": 2, "d3": 0}}
    assert not collection["test"].has_candidates
    copy = pickle.loads(pickle.dumps(collection.documents))
    assert copy["d2"] == collection.documents["d2"]
    assert copy.identity() == collection.documents.identity()


def test_judgements_without_a_heading_are_named(tmp_path):
    with pytest.raises(InputError, match=r"train.tsv:1: expected the heading query-id, corpus-id, score"):
        load_hub(pack(tmp_path / "animals", heading="q1\t0\td1\t1"))


def test_test_alone_is_divided_or_kept(tmp_path):
    asked = [{"_id": f"q{n}", "text": f"question {n}"} for n in range(40)]
    qrels = {"test": judged(*((f"q{n}", "d1", 1) for n in range(40)))}
    folder = write(tmp_path / "one", {"corpus": {"corpus": CORPUS}, "queries": {"queries": asked}, "qrels": qrels})
    parts = load_hub(folder).splits
    assert list(parts) == ["train", "dev", "test"]
    assert sum(len(split.queries) for split in parts.values()) == 40
    assert all(split.qrels.keys() == split.queries.keys() and split.queries for split in parts.values())
    assert list(load_hub(folder, shares=None).splits) == ["test"]


def test_validation_is_dev_and_judgements_may_have_a_name_of_their_own(tmp_path):
    folder = write(tmp_path / "one", {"corpus": {"train": CORPUS}, "queries": {"train": QUERIES}})
    other = write(tmp_path / "two", {"default": {"validation": QRELS["train"], "test": QRELS["test"]}})
    assert set(load_hub(folder, qrels=other).splits) == {"dev", "test"}


def test_what_misses_is_left_out_with_a_warning(tmp_path):
    asked = [*QUERIES, {"_id": "q4", "text": " "}]
    configs = {"corpus": {"corpus": CORPUS}, "queries": {"queries": asked}}
    folder = write(tmp_path / "one", {**configs, "qrels": {"test": judged(("q1", "d9", 1), ("q1", "d1", 1))}})
    with (
        pytest.warns(UserWarning, match="1 queries are empty and left out: q4"),
        pytest.warns(UserWarning, match="1 judgements are on documents that the corpus lacks and are left out: d9"),
    ):
        found = load_hub(folder, shares=None)
    assert found["test"].qrels == {"q1": {"d1": 1}}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"corpus": None}, "there is no configuration 'corpus', only queries, qrels; expected BEIR's or MTEB's layout"),
        ({"corpus": {"a": CORPUS, "b": CORPUS}}, "corpus: expected one split, got a, b"),
        ({"corpus": {"corpus": [*CORPUS, CORPUS[0]]}}, "corpus.jsonl:4: document id 'd1' comes twice"),
        (
            {"corpus": {"corpus": [{"name": "d1", "text": "x"}]}},
            "corpus.jsonl:1: the key 'doc_id' is missing; there are: 'name', 'text'",
        ),
        ({"queries": {"queries": [QUERIES[0]] * 2}}, "queries.jsonl:2: query id 'q1' comes twice"),
        (
            {"qrels": {"test": judged(("q2", "d2", 2), ("q2", "d3", 0.5))}},
            "qrels/test.jsonl:2: a grade must be a whole number from -1000 to 1000",
        ),
        ({"qrels": {"extra": QRELS["test"]}}, "the judgements have no split train, dev or test, only extra"),
    ],
)
def test_another_layout_is_refused_in_one_line(tmp_path, changed, told):
    configs = {"corpus": {"corpus": CORPUS}, "queries": {"queries": QUERIES}, "qrels": QRELS} | changed
    folder = write(tmp_path / "one", {name: splits for name, splits in configs.items() if splits})
    with pytest.raises(InputError, match=told) as caught:
        load_hub(folder)
    assert "\n" not in str(caught.value)


def test_the_library_is_an_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(InputError, match=r"need the extra: pip install 'socialgraph-ir\[hub\]'"):
        load_hub("mteb/scifact")
    with pytest.raises(InputError, match=r"^/nothing/here: no such folder$"):
        load_hub("/nothing/here")


@pytest.fixture(params=["jsonl", "packed"])
def odd(request, tmp_path):
    """Write a collection whose texts look like something else, as files of lines."""

    def write_odd(corpus, queries=QUERIES, qrels=QRELS["test"]):
        if request.param == "packed":
            return pack(tmp_path / "packed", corpus, queries, {"test": qrels})
        configs = {"corpus": {"corpus": corpus}, "queries": {"queries": queries}, "qrels": {"test": list(qrels)}}
        return write(tmp_path / "jsonl", configs)

    return write_odd


def test_texts_that_look_like_dates_or_numbers_are_texts(odd):
    corpus = [{"_id": "1912-04-14", "title": "1912-04-14", "text": "1912-04-15T02:20:00"},
              {"_id": "007", "title": "1.50", "text": "1e5"}, {"_id": "NA", "text": "w"}]  # fmt: skip
    queries = [{"_id": "2001-01-01", "text": "2001-01-01"}, {"_id": "0001", "text": "true"}]
    qrels = judged(("2001-01-01", "1912-04-14", 1), ("0001", "007", 1), ("0001", "NA", 1))
    found = load_hub(odd(corpus, queries, qrels), shares=None)
    assert list(found.documents.values()) == [
        Document("1912-04-14", "1912-04-15T02:20:00", "1912-04-14"),
        Document("007", "1e5", "1.50"),
        Document("NA", "w"),
    ]
    assert found["test"].queries == {"2001-01-01": "2001-01-01", "0001": "true"}
    assert found["test"].qrels == {"2001-01-01": {"1912-04-14": 1}, "0001": {"007": 1, "NA": 1}}


def test_quotes_are_text(odd):
    corpus = [{"_id": '"d1"', "text": 'an "odd" text'}, {"_id": 'd"2', "text": '"'}, {"_id": "d3", "text": "'"}]
    queries = [{"_id": '"q0"', "text": '"quoted"'}, {"_id": '"q1', "text": "opened"}, {"_id": 'q2"', "text": "closed"}]
    qrels = judged(('"q0"', '"d1"', 1), ('"q1', 'd"2', 2), ("q3", "d3", 1), ('q2"', "d3", 1))
    found = load_hub(odd(corpus, queries, qrels), shares=None)["test"]
    assert found.qrels == {'"q0"': {'"d1"': 1}, '"q1': {'d"2': 2}, 'q2"': {"d3": 1}}
    assert found.queries == {'"q0"': '"quoted"', '"q1': "opened", 'q2"': "closed"}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"_id": "d", "text": 5}, r"corpus\.jsonl:2: 'text' must be a string, got int '5'"),
        ({"_id": "d", "text": "x", "title": 1912}, r"corpus\.jsonl:2: 'title' must be a string, got int '1912'"),
        ({"_id": 7, "text": "x"}, r"corpus\.jsonl:2: '_id' must be a string, got int '7'"),
        ({"_id": "d", "text": ["x"]}, r"corpus\.jsonl:2: 'text' must be a string, got list"),
    ],
)
def test_what_is_no_text_is_named_with_file_and_line_and_never_the_hub(odd, entry, told):
    with pytest.raises(InputError, match=told) as caught:
        load_hub(odd([CORPUS[0], entry]))
    assert "Hub" not in str(caught.value)


def test_a_pair_may_be_judged_twice_alike_and_never_otherwise(odd):
    qrels = judged(("q1", "d1", 1), ("q1", "d1", 1))
    assert load_hub(odd(CORPUS, qrels=qrels), shares=None)["test"].qrels == {"q1": {"d1": 1}}
    qrels = judged(("q1", "d1", 1), ("q1", "d1", 0))
    with pytest.raises(
        InputError, match=r"test\.(tsv|jsonl):[23]: document 'd1' is judged twice for query 'q1': 1 and 0"
    ):
        load_hub(odd(CORPUS, qrels=qrels))
