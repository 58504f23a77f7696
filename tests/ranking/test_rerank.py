"""Re-ranking: complete, ordered, independent of batches."""

import warnings

import pytest
import torch
from tales import builder_of, random_texts

from socialgraph.data import Cache, Tokens
from socialgraph.edges import DynamicCentrality, DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import CheckpointError, InputError, OptionError, TooLargeError
from socialgraph.nn import MaxP, Socialformer
from socialgraph.partition import NodeCircles, Windows
from socialgraph.ranking import rerank
from socialgraph.ranking.journal import read_journal
from socialgraph.ranking.rerank import LOWEST


@pytest.fixture
def ranker(tiny_bert):
    folder, _ = tiny_bert
    texts = {f"d{i}": text for i, text in enumerate(random_texts([3 + 11 * i for i in range(12)]))} | {"empty": ""}
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality(folder)])
    builder = builder_of(folder, texts, edges, NodeCircles(k=2), Windows(32))
    torch.manual_seed(1)
    model = Socialformer.from_backbone(folder)
    return model, builder, {"q1": "w1 w2", "q2": "w3"}, {q: dict.fromkeys(texts, 1.0) for q in ("q1", "q2")}


def test_every_candidate_gets_its_own_score(ranker):
    model, builder, queries, candidates = ranker
    with pytest.warns(UserWarning, match="1 documents have no word piece and stand last: empty"):
        run = rerank(model, builder, queries, candidates, token_budget=150, progress=False)
    for query_id, scores in run.items():
        assert scores.keys() == candidates[query_id].keys()
        assert list(scores.values()) == sorted(scores.values(), reverse=True)
        lowest, last = [*scores.values()][-2:]
        assert last == lowest - 1
        for document, score in [*scores.items()][:-1]:
            with torch.no_grad():
                alone = model(builder([(query_id, queries[query_id], document)])).item()
            assert score == pytest.approx(alone, abs=1e-5)
    assert not model.training


@pytest.mark.filterwarnings("ignore:1 documents have no word piece")
def test_workers_change_no_score(ranker, tiny_bert, tmp_path):
    model, builder, queries, candidates = ranker
    alone = rerank(model, builder, queries, candidates, token_budget=150, progress=False)
    kept = rerank(model, builder, queries, candidates, token_budget=150, progress=False, workers=2)
    builder.tokens = Tokens(tiny_bert[0], cache=Cache(tmp_path / "cache"))
    builder.cache = Cache()  # each worker weighs by itself
    stored = rerank(model, builder, queries, candidates, token_budget=150, progress=False, workers=2)
    for query_id in queries:
        assert kept[query_id] == alone[query_id]
        assert stored[query_id] == pytest.approx(alone[query_id], abs=1e-5)


@pytest.mark.filterwarnings("ignore:1 documents have no word piece")
def test_a_query_without_word_pieces_keeps_its_order(ranker):
    model, builder, queries, candidates = ranker
    order = {"d3": 3.0, "d1": 2.0, "d2": 1.0}
    with pytest.warns(UserWarning, match="1 queries have no word piece and keep the order of their candidates: q0"):
        run = rerank(model, builder, {"q0": "\u200b", **queries}, {"q0": order, **candidates}, progress=False)
    assert run["q0"] == order
    assert set(run) == {"q0", "q1", "q2"}


@pytest.mark.parametrize("kind", [MaxP, Socialformer])
@pytest.mark.filterwarnings("ignore:2 documents have no word piece")
def test_a_text_without_word_pieces_is_last_whatever_the_model_says_of_it(tiny_bert, kind):
    """A model's score of nothing is that of its biases, and may be above that of a text."""
    builder = builder_of(tiny_bert[0], {"a": "w1", "b": "", "c": "w2 w3", "d": "\u200b"}, passages=Windows(32))
    model = kind.from_backbone(tiny_bert[0])
    for weight in model.parameters():
        weight.data *= -1
    for query in ("w1", "w5"):
        run = rerank(model, builder, {"q": query}, {"q": {"b": 4.0, "d": 3.0, "a": 2.0, "c": 1.0}}, progress=False)
        assert [*run["q"]][2:] == ["b", "d"]
    alone = rerank(model, builder, {"q": "w1"}, {"q": {"b": 2.0, "d": 1.0}}, progress=False)
    assert alone == {"q": {"b": LOWEST, "d": LOWEST}}


@pytest.mark.filterwarnings("ignore:1 documents have no word piece")
def test_several_draws_are_the_mean_over_their_graphs(ranker, tmp_path):
    model, builder, queries, candidates = ranker
    alone = [rerank(model, builder.redrawn(number), queries, candidates, progress=False) for number in range(3)]
    assert len({tuple(run["q1"].values()) for run in alone}) == 3, "each draw is another graph"
    assert alone[0] == rerank(model, builder, queries, candidates, progress=False)
    builder.draws = 3
    mean = rerank(model, builder, queries, candidates, progress=False, journal=tmp_path / "scores")
    for query_id, scores in mean.items():
        assert list(scores.values()) == sorted(scores.values(), reverse=True)
        wanted = {document: sum(run[query_id][document] for run in alone) / 3 for document in scores}
        assert scores == pytest.approx(wanted, abs=1e-6)
    model.forward = lambda graph: pytest.fail("scored again")
    assert rerank(model, builder, queries, candidates, progress=False, journal=tmp_path / "scores") == mean


class Full(torch.nn.Module):
    """Scores documents by their length, as long as they have fewer word pieces together than there is room for."""

    def __init__(self, room, error):
        super().__init__()
        self.room, self.error, self.seen = room, error, []

    def forward(self, graph):
        lengths = torch.bincount(graph.batch, minlength=graph.num_graphs)
        self.seen.append(lengths.tolist())
        if lengths.sum() > self.room:
            raise self.error
        return lengths.float()


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), MemoryError()])
@pytest.mark.parametrize("workers", [0, 1])
def test_where_memory_runs_out_the_budget_is_halved_and_what_is_finished_stands(tiny_bert, tmp_path, error, workers):
    lengths = [90, 80, 20, 20, 20, 20, 20, 20]
    builder = builder_of(tiny_bert[0], random_texts(lengths), passages=Windows(32))
    model, options = Full(100, error), {"token_budget": 100, "progress": False, "workers": workers}
    queries, candidates = {"q": "w1"}, {"q": dict.fromkeys(builder.documents, 1.0)}
    run = rerank(model, builder, queries, candidates, **options)
    assert model.seen == [[90], [80, 20], [20] * 5]
    model.seen.clear()
    model.room = 60
    with pytest.raises(TooLargeError, match=r"document 'd0' for query 'q', 90 word pieces, does not fit .* even alone"):
        rerank(model, builder, queries, candidates, **options)
    model.seen.clear()
    del candidates["q"]["d0"], candidates["q"]["d1"], run["q"]["d0"], run["q"]["d1"]
    with pytest.warns(UserWarning, match="out of memory on a batch of 5 documents: token_budget=50 from here on"):
        assert rerank(model, builder, queries, candidates, **options, journal=tmp_path / "journal") == run
    assert model.seen == [[20] * 5, [20] * 2, [20] * 2, [20], [20]]


def test_bad_candidates_and_budgets(ranker):
    model, builder, queries, _ = ranker
    with pytest.raises(InputError, match=r"re-ranking: candidate 'd99' of query 'q1' is not in the corpus"):
        rerank(model, builder, queries, {"q1": {"d99": 1.0}}, progress=False)
    for budget in (0, "5", 1.5):
        with pytest.raises(OptionError, match=r"token_budget \(batch_size\) must be .*at least 1, got"):
            rerank(model, builder, queries, {}, token_budget=budget)
    with pytest.raises(OptionError, match="workers must be at least 0"):
        rerank(model, builder, queries, {}, workers=-1)
    assert rerank(model, builder, queries, {"unknown": {"d99": 1.0}}, progress=False) == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.filterwarnings("ignore:1 documents have no word piece")
def test_a_score_that_is_no_number_never_leaves(ranker, tmp_path, value):
    model, builder, queries, candidates = ranker
    model.layers[1].key.weight.data[3, 4] = value
    expected = (
        r"the score of document 'd11' for query 'q1' is nan: the weights 'layers.1.key.weight' are not finite; use"
    )
    with pytest.raises(CheckpointError, match=expected):
        rerank(model, builder, queries, candidates, token_budget=1, progress=False, journal=tmp_path / "journal")
    assert read_journal(tmp_path / "journal") == {}
    model.layers[1].key.weight.data[3, 4] = 1.0
    model.register_forward_hook(lambda *inputs: inputs[-1] * 1e38 * 1e38)
    with pytest.raises(CheckpointError, match=r"query 'q1' is -?inf: its weights are too large; use"):
        rerank(model, builder, queries, candidates, token_budget=1, progress=False)


@pytest.mark.parametrize("longest", [32, 33])
def test_a_collection_of_single_passages_is_told(tiny_bert, longest):
    """Where no document has two passages, all rows of a table are equal."""
    texts = {f"d{i}": text for i, text in enumerate(random_texts([*[5] * 99, longest]))}
    builder = builder_of(tiny_bert[0], texts, None, None, Windows(32))
    candidates = {"q": dict.fromkeys(texts, 1.0)}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rerank(MaxP.from_backbone(tiny_bert[0]), builder, {"q": "w1"}, candidates, progress=False)
    single = [str(one.message) for one in told if "passage" in str(one.message)]
    assert bool(single) == (longest == 32)
    assert all(one.startswith("none of 100 documents is longer than one passage of 32 word pieces") for one in single)
