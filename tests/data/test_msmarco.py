"""Given candidates for MS MARCO documents: by name, by count, and no others."""

import gzip

import pytest

from socialgraph.data import Collection, Document, Split, load_msmarco, msmarco, write_run
from socialgraph.errors import InputError

DOCUMENTS = {f"D{n}": Document(f"D{n}", f"text {n}") for n in range(120)}
SPLITS = {"train": ["1", "2"], "dev": ["3"], "test": ["4", "5"]}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of three runs, and a collection whose splits they belong to."""
    splits = {name: Split({q: f"query {q}" for q in ids}, {q: {"D7": 1} for q in ids}) for name, ids in SPLITS.items()}

    def load_irds(test, dev, train):
        assert [test, dev, train] == [f"msmarco-document/{one}" for one in ("dev", "trec-dl-2019/judged", "train")]
        return Collection("documents", DOCUMENTS, splits)

    monkeypatch.setattr(msmarco, "load_irds", load_irds)
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


def test_runs_that_miss_lack_queries_or_are_short_are_told_of(runs):
    with pytest.raises(InputError, match=r"a split must be one of msmarco-document/train, .*, got 'vaswani'"):
        load_msmarco(runs, test="vaswani")
    write_run(runs / "ance.dev.trec", {"4": {"D1": 1.0}})
    with pytest.raises(InputError, match=r"ance\.dev\.trec: it has 1 of the 2 queries of its split, missing are 5"):
        _ = load_msmarco(runs)["test"].candidates
    write_run(runs / "ance.dev.trec", {"4": {"D1": 1.0}, "5": {f"D{n}": 1.0 for n in range(100)}})
    with pytest.warns(UserWarning, match="1 of 2 queries have fewer than 100 documents: 4"):
        assert len(load_msmarco(runs)["test"].candidates["4"]) == 1
    (runs / "ance.dev.trec").unlink()
    with pytest.raises(InputError, match=r"no ance\.dev\.trec or ance\.dev\.trec\.gz, the candidates by ANCE"):
        load_msmarco(runs)
