"""Given candidates for MS MARCO documents: by name, by count, and no others."""

import gzip

import pytest
from test_irds import ask, unpacked

from socialgraph.data import Collection, Document, Split, load_msmarco, msmarco, write_run
from socialgraph.errors import InputError

DOCUMENTS = {f"D{n}": Document(f"D{n}", f"text {n}") for n in range(120)}
SPLITS = {"train": ["1", "2"], "dev": ["3"], "test": ["4", "5"]}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of three runs, and a collection whose splits they belong to."""
    collection = Collection(
        "documents",
        DOCUMENTS,
        {name: Split({q: f"query {q}" for q in ids}, {q: {"D7": 1} for q in ids}) for name, ids in SPLITS.items()},
    )
    monkeypatch.setattr(msmarco, "load_irds", lambda test, dev, train: collection)
    for name, split in (("ance.train.trec", "train"), ("ance.dl2019.trec", "dev"), ("ance.dev.trec", "test")):
        ids = [*SPLITS[split], "another"]
        write_run(tmp_path / name, {q: {f"D{n}": float(-n) for n in range(120)} for q in ids})
    return tmp_path


def test_the_first_100_of_every_query_of_the_split(runs):
    (runs / "ance.train.trec.gz").write_bytes(gzip.compress((runs / "ance.train.trec").read_bytes()))
    (runs / "ance.train.trec").unlink()
    collection = load_msmarco(runs)
    assert "not read yet" in repr(collection)
    for name, ids in SPLITS.items():
        split = collection[name]
        assert list(split.candidates) == list(split.queries) == ids
        assert all(list(scores) == [f"D{n}" for n in range(100)] for scores in split.candidates.values())
        assert split.qrels[ids[0]] == {"D7": 1}


def test_a_run_that_is_not_there_is_named_with_what_to_do(runs):
    (runs / "ance.dev.trec").unlink()
    with pytest.raises(InputError, match=r"no ance\.dev\.trec or ance\.dev\.trec\.gz, the candidates by ANCE"):
        load_msmarco(runs)
    with pytest.raises(InputError, match=r"a split must be one of msmarco-document/train, .*, got 'vaswani'"):
        load_msmarco(runs, test="vaswani")


def test_a_run_that_lacks_queries_is_refused_and_one_with_few_documents_is_told_of(runs):
    write_run(runs / "ance.dev.trec", {"4": {"D1": 1.0}})
    with pytest.raises(InputError, match=r"ance\.dev\.trec: it has 1 of the 2 queries of its split, missing are 5"):
        _ = load_msmarco(runs)["test"].candidates
    write_run(runs / "ance.dev.trec", {"4": {"D1": 1.0}, "5": {f"D{n}": 1.0 for n in range(100)}})
    with pytest.warns(UserWarning, match="1 of 2 queries have fewer than 100 documents: 4"):
        assert len(load_msmarco(runs)["test"].candidates["4"]) == 1


def test_the_miniature_of_the_real_files(shared, tmp_path):
    """ir_datasets' own formats: the runs are its scoreddocs, upside down."""
    home = unpacked(shared, "irds_home_mini", tmp_path)
    found = ask(
        home,
        f"""
from socialgraph.data import load_msmarco, write_run
from socialgraph.data.msmarco import RUNS
warnings.simplefilter("ignore")
for name, file in RUNS.items():
    given = load_irds(name, shares=None)["test"].candidates
    turned = {{q: {{d: -s for d, s in scores.items()}} for q, scores in given.items()}}
    write_run({str(tmp_path)!r} + "/" + file, turned)
collection = load_msmarco({str(tmp_path)!r}, test="msmarco-document/trec-dl-2019/judged", dev="msmarco-document/dev")
found["sizes"] = sizes(collection)
found["candidates"] = {{name: len(split.candidates) for name, split in collection.splits.items()}}
collection.check()
theirs = load_irds("msmarco-document/trec-dl-2019/judged", shares=None)["test"].candidates["121"]
found["turned"] = list(collection["test"].candidates["121"]) == sorted(theirs, key=lambda d: (theirs[d], d))
""",
    )
    assert found["sizes"] == {"train": [104, 104], "dev": [16, 16], "test": [40, 40]}
    assert found["candidates"] == {"train": 104, "dev": 16, "test": 40}
    assert found["turned"]
