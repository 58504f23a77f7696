"""A ranker gives the scores of re-ranking, whatever its texts come as, and the same from its folder elsewhere."""

import copy
import pickle

import numpy as np
import pytest
import torch
from commands import write_tales
from safetensors.torch import load_file
from transformers import BertConfig, BertForSequenceClassification

from socialgraph import Ranker
from socialgraph.data import Document, Split, TermStatistics, Tokens, load_folder
from socialgraph.errors import InputError, OptionError, SocialgraphError
from socialgraph.inspect import to_networkx
from socialgraph.partition import EdgeCircles, NodeCircles, Partition
from socialgraph.ranking import Dev, rerank
from socialgraph.recipes.build import Parts, build
from socialgraph.recipes.compose import compose_recipe

TEXTS = ["w1 w2 w3 w9 " * 9, "w4 w5", "", "w1 w1 w7 w8 " * 20, {"title": "w3", "text": "w2"}]
SMALL = {"document_length": 60, "query_length": 8, "window": 16}


@pytest.fixture(scope="module")
def tales(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tales")
    write_tales(folder)
    return folder


@pytest.fixture(scope="module")
def collection(tales):
    return load_folder(tales)


def ranker(tales, name="socialformer-edge", *overrides, **options) -> Ranker:
    return Ranker.from_recipe(name, *overrides, backbone=str(tales / "bert"), **SMALL, **options)


@pytest.mark.parametrize("name", ["maxp", "socialformer-edge"])
def test_scores_are_those_of_rerank(tales, collection, name):
    candidates = {query: dict.fromkeys(collection.documents, 0.0) for query in collection["test"].queries}
    typed = [f"model.backbone={tales / 'bert'}", *(f"{key}={value}" for key, value in SMALL.items())]
    recipe = compose_recipe(name, typed)
    tokens = Tokens(str(tales / "bert"), 60, 8)
    statistics = TermStatistics.of(tokens, collection.documents)
    one = ranker(tales, name)
    torch.manual_seed(0)
    model = build(recipe["model"]).to(one.device)
    builder = Parts.of(recipe).builder(collection.documents, tokens, statistics, device=one.device)
    expected = rerank(model, builder, collection["test"].queries, candidates, 100, progress=False)
    found = one.rank(collection["test"].queries, collection, batch_size=100)
    assert found == {query: list(scores.items()) for query, scores in expected.items()}  # to the last digit, in order


def test_texts_come_as_strings_dicts_documents_or_by_id(tales):
    one = ranker(tales, "maxp")
    ranked = one.rank("w1 w2", TEXTS)
    assert sorted(place for place, _ in ranked) == list(range(len(TEXTS)))
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    by_id = one.rank("w1 w2", {f"text {place}": text for place, text in enumerate(TEXTS)})
    assert [(f"text {place}", score) for place, score in ranked] == by_id
    documents = [Document("x", "w2", "w3") if isinstance(text, dict) else text for text in TEXTS]
    assert one.rank("w1 w2", documents) == ranked
    assert one.rank("w1 w2", TEXTS, top_k=2) == ranked[:2]
    assert one.rank("w1 w2", []) == []


def test_nothing_is_left_of_other_texts_of_the_same_ids(tales):
    one = ranker(tales).count(TEXTS)
    first = dict(one.rank("w1 w2", {"a": TEXTS[0], "b": TEXTS[1]}))
    second = dict(one.rank("w1 w2", {"a": TEXTS[1], "b": TEXTS[0]}))
    assert first["a"] == pytest.approx(second["b"], abs=1e-6) != second["a"]


def test_many_queries(tales):
    one = ranker(tales, "maxp")
    queries = ["w1 w2", "w4", "w1 w2"]
    alone = {query: one.rank(query, TEXTS, batch_size=1) for query in queries}
    assert one.rank(queries, TEXTS, batch_size=1) == [alone[query] for query in queries]
    assert one.rank({"a": "w4"}, TEXTS, batch_size=1) == {"a": alone["w4"]}


def test_predict_scores_pairs_in_their_order(tales):
    one = ranker(tales, "maxp")
    pairs = [(query, TEXTS[place]) for query in ("w1 w2", "w4") for place in (3, 0, 3)]
    scores = one.predict(pairs)
    assert (scores.dtype, scores.shape) == (np.float32, (6,))
    for (query, text), score in zip(pairs, scores, strict=True):
        assert score == pytest.approx(one.rank(query, [text])[0][1], abs=1e-6)
    assert scores[0] == scores[2]
    assert one.predict(pairs[0]) == pytest.approx(scores[0], abs=1e-6)  # one pair: a number
    assert torch.equal(one.predict(pairs, convert_to_tensor=True), torch.from_numpy(scores))
    assert one.predict(pairs, convert_to_numpy=False) == scores.tolist()


@pytest.mark.parametrize(("name", "reads_all"), [("maxp", False), ("socialformer-edge", True), ("keyb-bm25", True)])
def test_a_collection_is_read_as_far_as_scores_need_it(tales, collection, name, reads_all):
    one, read = ranker(tales, name), []
    encode = one.tokens.encoder._encode
    one.tokens.encoder._encode = lambda texts: read.extend(texts) or encode(texts)
    query, *_ = collection["test"].queries
    some = {query: dict.fromkeys(list(collection.documents)[:2], 1.0)}
    few = collection.with_candidates("test", some)
    one.evaluate(few, "test", ["RR@10"])
    documents = {document.full_text for document in collection.documents.values()}
    assert len(documents & set(read)) == (len(documents) if reads_all else 2)


def test_ids_come_back_as_they_were_given(tales):
    one = ranker(tales, "maxp")
    by_name = one.rank("w1 w2", {"101": TEXTS[0], "102": TEXTS[1]}, batch_size=1)
    assert one.rank("w1 w2", {101: TEXTS[0], 102: TEXTS[1]}, batch_size=1) == [(int(k), score) for k, score in by_name]
    assert one.rank({1: "w1 w2"}, {101: TEXTS[0], 102: TEXTS[1]}, batch_size=1)[1] == [
        (int(k), score) for k, score in by_name
    ]
    for query, texts in (("w1", {1: "w1", "1": "w2"}), ({1: "w1", "1": "w2"}, ["w1"])):
        with pytest.raises(InputError, match="the ids 1 and '1' are one as strings"):
            one.rank(query, texts)


PAIRS = r"predict takes pairs, \[\(query, text\), ...\], got "
MISTAKES = {
    "top_k must be a whole number of at least 1 or None, got '2'": lambda one, _: one.rank("w1", TEXTS, top_k="2"),
    r"\(batch_size\) must be a whole number of at least 1": lambda one, _: one.rank("w1", TEXTS, batch_size="5"),
    f"{PAIRS}'a' among them": lambda one, _: one.predict(["a", "b", "c"]),
    f"{PAIRS}'None' among them": lambda one, _: one.predict(None),
    "a text is a string": lambda one, _: one.predict([("w1", 5)]),
    "a query is a string": lambda one, _: one.predict([(5, "w1")]),
    "texts must be a list": lambda one, _: one.rank("w1", 7),
    "a string, or a dict with 'text'": lambda one, _: one.rank("w1", [{"title": "no text"}]),
    "several are a list or a dict, got 'None'": lambda one, _: one.rank(None, TEXTS),
    "device 'cuda:99' cannot be used here": lambda one, _: one.to("cuda:99"),
    "groups \\(size\\) must be a whole number of at least 1": lambda one, tales: one.fit(tales, groups="2"),
    "learning_rate must be a number from 0 to": lambda one, tales: one.fit(tales, learning_rate="high"),
    "trainer: no_such is not supported": lambda one, tales: one.fit(tales, report_to="no_such"),
    "output_dir is called folder here": lambda one, tales: one.fit(tales, output_dir="here"),
    "workers=10000000 hand their batches over": lambda one, tales: one.fit(tales, dataloader_num_workers=10_000_000),
    r"dev must be a Dev, such as Dev\(.*\), got Split": lambda one, tales: one.fit(tales, dev=tales["dev"]),
    "save_steps: nothing is kept without a folder": lambda one, tales: one.fit(tales, save_steps=10),
    "depth must be a whole number of at least 1": lambda one, tales: one.evaluate(tales, depth="5"),
    "has no split 'tests'": lambda one, tales: one.evaluate(tales, "tests"),
    "a cutoff must be at least 1": lambda one, tales: one.evaluate(tales, "test", ["P@0"]),
    "expected a Collection, such as load_folder": lambda one, _: one.fit([("w1", "w2")]),
    "is a folder: give the path of a file": lambda one, _: one.explain("w1", "w1 w2").save("."),
    "no recipe is called 5;": lambda *_: Ranker.from_recipe(5),
    r"no recipe is called 'maxq'; did you mean maxp\?": lambda *_: Ranker.from_recipe("maxq"),
    "bm25 is a first stage and has no model": lambda *_: Ranker.from_recipe("bm25"),
    "recipe maxp has no friend circles": lambda *_: Ranker.from_recipe("maxp", partition="node"),
    "a partition is a name, or a class or an object": lambda *_: Ranker.from_recipe("socialformer", partition=5),
    "seed must be a whole number of at least 0, got None": lambda *_: Ranker.from_recipe("maxp", seed=None),
    "sparsty": lambda *_: Ranker.from_recipe("socialformer", "edges.sparsty=0.9"),
}  # fmt: skip


@pytest.mark.parametrize("told", MISTAKES)
def test_a_mistake_ends_in_one_line(tales, collection, told):
    with pytest.raises(SocialgraphError, match=told) as error:
        MISTAKES[told](ranker(tales, "maxp"), collection)
    assert "\n" not in str(error.value)


def test_a_saved_ranker_may_be_called_as_the_reader_is(tales, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = ranker(tales, "maxp")
    one.save_pretrained("minilm-reader")
    assert Ranker.from_pretrained("minilm-reader").rank("w1 w2", TEXTS) == one.rank("w1 w2", TEXTS)


def test_a_copy_scores_alike(tales, collection):
    one = ranker(tales)
    ranked = one.rank("w1 w2", collection)
    for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert again.rank("w1 w2", collection) == ranked


@pytest.mark.parametrize("name", ["maxp", "longformer"])  # without edges; read along them as a whole
def test_without_friends_there_are_no_circles_to_show(tales, name):
    with pytest.raises(OptionError, match=r"draws no friends, so NodeCircles\(.*\) has nobody to gather"):
        ranker(tales, name).explain("w1 w2", TEXTS[0], beside="node")


class Odd(Partition):
    """Keeps its argument elsewhere."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.wide = width


def test_a_partition_comes_by_name_as_a_class_or_as_an_object(tales):
    assert isinstance(ranker(tales, partition="node").parts.circles, NodeCircles)
    assert ranker(tales, "socialformer-node", "partition=random").recipe["name"] == "Socialformer-random"
    assert ranker(tales, partition=NodeCircles).parts.circles.k == 16
    assert ranker(tales, "socialformer", partition="windows").parts.circles.size == 128
    mine = EdgeCircles(k=3, max_size=9)
    one = ranker(tales, partition=mine)
    assert one.parts.circles is mine
    assert one.recipe["circles"] == {
        "_target_": "socialgraph.partition.EdgeCircles", "k": 3, "max_size": 9, "keep": "strongest"
    }  # fmt: skip
    with pytest.raises(OptionError, match=r"Odd: it does not keep its argument 'width': write self.width = width"):
        ranker(tales, partition=Odd())


def test_document_frequencies_are_asked_for_where_they_count(tales, recwarn):
    ranker(tales, "maxp").rank("w1", TEXTS[:2])
    assert not recwarn
    one = ranker(tales)
    with pytest.warns(UserWarning, match=r"has none yet, so all weigh the same: call ranker.count"):
        one.rank("w1", TEXTS[:2])
    assert one.count(TEXTS[:2]).statistics.size == 2
    recwarn.clear()
    one.rank("w1", TEXTS[:2])
    assert not recwarn


def test_the_graph_goes_to_networkx_and_to_a_page(tales):
    one = ranker(tales).count(TEXTS)
    graph = one.graph("w1 w2", TEXTS[0])
    network = to_networkx(graph, one.words(graph))
    assert network.number_of_nodes() == 36
    assert network.number_of_edges() > 0
    page = one.explain("w1 w2", TEXTS[0])
    assert page.html.startswith("<!DOCTYPE html>") or "<html" in page.html
    # without edges; circles joined; query and circle apart
    read = {"maxp": '"together"', "keyb-bm25": "null", "colbert": '"apart"'}
    for name, given in read.items():
        page = ranker(tales, name).explain("w1 w2", TEXTS[0])
        assert "w9" in page.html
        assert f'"given":{given}' in page.html


def test_it_learns_and_says_so(tales, collection, tmp_path):
    one = ranker(tales, "maxp")
    before = one.predict(("w0 w20 w41", TEXTS[0]))
    one.fit(collection, groups=4, negatives=1, learning_rate=1e-3, per_device_train_batch_size=2, seed=3)
    assert one.predict(("w0 w20 w41", TEXTS[0])) != before
    assert one.statistics.size == 6
    found = one.evaluate(collection, "test", ["RR@10"])
    one.save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "4 groups of a relevant document and 1 other, of" in card
    assert "`seed=3`" in card
    assert f"| RR@10 | {found.mean['RR@10']:.4f} |" in card
    with pytest.raises(OptionError, match="Sentence-MaxP learns nothing"):
        ranker(tales, "sentence-maxp").fit(collection)


@pytest.mark.parametrize("own", [True, False], ids=["its own split", "another split"])
def test_it_is_measured_while_it_learns_and_the_best_is_kept(tales, collection, tmp_path, own, monkeypatch):
    """The split has no candidates: BM25 gives it some. Nothing is said of checkpoints: there is one for each tenth."""
    values, seen = iter([0.1, 0.9, 0.2, 0.3]), []

    def measured(self, model, builder):
        seen.append(self.split.candidates)
        return {"eval_RR@10": next(values)}

    monkeypatch.setattr(Dev, "measure", measured)
    one, dev = ranker(tales, "maxp"), collection["dev"]
    assert not dev.has_candidates
    split = dev if own else Split({f"my-{q}": text for q, text in dev.queries.items()},
                                  {f"my-{q}": grades for q, grades in dev.qrels.items()})  # fmt: skip
    options = {"per_device_train_batch_size": 1, "learning_rate": 1e-3}
    one.fit(collection, groups=4, negatives=1, dev=Dev(split, ["RR@10"]), folder=tmp_path, **options)
    assert one.history["training"]["steps"] == 4
    assert [set(candidates) for candidates in seen] == [set(split.queries)] * 4
    best = load_file(tmp_path / "checkpoint-2" / "model.safetensors")
    assert all(torch.equal(weight.cpu(), best[name]) for name, weight in one.model.state_dict().items())


def test_it_stands_where_a_cross_encoder_stood(tmp_path):
    """The same calls, and the same scores of texts that fit one passage, as sentence-transformers gives."""
    library = pytest.importorskip("sentence_transformers", reason="it comes with the extra offline")
    write_tales(tmp_path)
    torch.manual_seed(1)
    config = BertConfig.from_pretrained(tmp_path / "bert", num_labels=1)
    BertForSequenceClassification(config).save_pretrained(tmp_path / "bert")
    theirs = library.CrossEncoder(str(tmp_path / "bert"), activation_fn=torch.nn.Identity())
    theirs.save_pretrained(str(tmp_path / "saved"))
    ours = Ranker.from_recipe("maxp", backbone=str(tmp_path / "saved"))
    pairs = [("w1 w2", "w1 w2 w3 w9 " * 9), ("w4", "w5"), ("w4", "w1 w7")]
    for model in (theirs, ours):
        model.scores = model.predict(pairs, show_progress_bar=False, convert_to_numpy=True)
    np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-5)
    assert len(set(ours.scores.tolist())) == 3
