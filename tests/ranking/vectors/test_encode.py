"""Encoding a collection that is stopped goes on: the store is whole or not there, and no document is read twice."""

import pytest
from full_disk import files_no_larger_than
from power_cut import PowerCut, counted
from test_rerank_stored import MODELS, builder, model_of  # noqa: F401  (a fixture)
from tqdm import tqdm

from socialgraph.data import Document
from socialgraph.errors import InputError, OutputError
from socialgraph.ranking.vectors import encode as module
from socialgraph.ranking.vectors.encode import encode_collection

pytestmark = pytest.mark.filterwarnings("ignore:1 documents have no word piece")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", MODELS)
def test_a_store_is_whole_or_not_there_and_goes_on(builder, tiny_bert, tmp_path, monkeypatch, kind):  # noqa: F811
    monkeypatch.setattr(module, "STEP_SECONDS", 0)
    model, ids = model_of(kind, tiny_bert[0]), list(builder.documents)
    options = {"token_budget": 100, "dtype": "float32", "progress": False}
    encode_collection(model, builder, ids, tmp_path / "undisturbed", **options)
    seen = []
    for after in (0, 2, 1):
        with counted(model, after, "encode") as graphs, pytest.raises(PowerCut):
            encode_collection(model, builder, ids, tmp_path / "out" / "store", **options)
        seen += graphs
        assert [file.name for file in (tmp_path / "out").iterdir()] == ["store.part"]
        with (tmp_path / "out" / "store.part" / "store" / "tokens.npy").open("ab") as file:
            file.write(b"a batch of which half was written")
    with pytest.raises(InputError, match=r"store.part: the journal is of other work: token_budget was 100, is 99"):
        encode_collection(model, builder, ids, tmp_path / "out" / "store", **{**options, "token_budget": 99})
    calm = builder.documents["d9"]
    builder.documents["d9"] = Document("d9", "w1")
    with pytest.raises(InputError, match=r"store.part: the journal is of other work: texts was "):
        encode_collection(model, builder, ids, tmp_path / "out" / "store", **options)
    builder.documents["d9"] = calm
    bars = []
    monkeypatch.setattr(module, "tqdm", lambda **about: bars.append(tqdm(**about)) or bars[-1])
    with counted(model, method="encode") as graphs:
        encode_collection(model, builder, ids, tmp_path / "out" / "store", **{**options, "progress": True})
    assert [(bar.n, bar.total) for bar in bars] == [(len(ids), len(ids))]
    assert [i for graph in seen + graphs for i in graph.document_id] == ids  # each document once
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["store"]
    assert contents(tmp_path / "out" / "store") == contents(tmp_path / "undisturbed")
    (tmp_path / "out" / "store.part").mkdir()  # killed after the very last step
    with pytest.raises(InputError, match="is there already; remove it or choose another folder"):
        encode_collection(model, builder, ["d1"], tmp_path / "out" / "store", progress=False)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["store"]


def test_a_store_that_lost_rows_is_not_gone_on_with(builder, tiny_bert, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(module, "STEP_SECONDS", 0)
    model = model_of("colbert", tiny_bert[0])
    with counted(model, 2, "encode"), pytest.raises(PowerCut):
        encode_collection(model, builder, ["d1", "d2", "d3"], tmp_path / "store", 1, progress=False)
    path = tmp_path / "store.part" / "store" / "tokens.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"tokens.npy: shorter than its journal says; delete the folder"):
        encode_collection(model, builder, ["d1", "d2", "d3"], tmp_path / "store", 1, progress=False)


def test_a_disk_that_fills_up_leaves_a_store_to_go_on_with(builder, tiny_bert, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(module, "STEP_SECONDS", 0)
    model, ids = model_of("colbert", tiny_bert[0]), ["d1", "d2", "d3", "d4"]
    encode_collection(model, builder, ids, tmp_path / "undisturbed", 1, progress=False)
    told = r"tokens.npy: cannot be written .File too large.; what is finished is kept"
    with files_no_larger_than(20_000), pytest.raises(OutputError, match=told):
        encode_collection(model, builder, ids, tmp_path / "store", 1, progress=False)
    with counted(model, method="encode") as graphs:
        encode_collection(model, builder, ids, tmp_path / "store", 1, progress=False)
    assert [graph.document_id for graph in graphs] == [["d3"], ["d4"]]
    assert contents(tmp_path / "store") == contents(tmp_path / "undisturbed")
