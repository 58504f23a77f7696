"""What every recipe must do, whatever it is: one suite over all files of socialgraph/recipes/recipe."""

import re
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from conftest import write_tiny_bert

from socialgraph.data import Document, TermStatistics, Tokens
from socialgraph.ranking import LOSSES, rerank
from socialgraph.recipes.build import Parts, build
from socialgraph.recipes.compose import compose_recipe
from socialgraph.recipes.compose import recipes as all_recipes

RECIPES = all_recipes()
FIRST_STAGES = ["bm25", "ql"]
MODELS = [name for name in RECIPES if name not in FIRST_STAGES]
LIMIT = 150  # word pieces that are read of a document

WORDS = [
    "river", "otter", "heron", "badger", "lynx", "newt", "raven", "stone", "moss", "fern", "tide", "cliff", "cave",
    "fog", "storm", "shore", "reed", "pond", "trout", "vole", "near", "the",
]  # fmt: skip


def text(seed: int, length: int) -> str:
    """Return words in sentences of unequal length."""
    draw = torch.Generator().manual_seed(seed)
    words = [WORDS[i] for i in torch.randint(len(WORDS), (length,), generator=draw).tolist()]
    marks = torch.randint(9, (length,), generator=draw).tolist()
    return " ".join(word + {0: ".", 1: ",", 2: "?"}.get(mark, "") for word, mark in zip(words, marks, strict=True))


TEXTS = {
    "long": text(1, 110), "other": text(2, 80), "short": text(3, 30), "beyond": text(4, 400),
    "one": "otter", "empty": "", "hollow": " \n ",
}  # fmt: skip
FOUR = ["long", "other", "short", "beyond"]
QUERY = "otter near the river"


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    """A random BERT of 2 layers x 32 with 512 positions, and a tokenizer that knows words and punctuation."""
    folder = tmp_path_factory.mktemp("backbone")
    marks = ["[unused0]", "[unused1]", ".", ",", "?", "!"]
    write_tiny_bert(folder, marks, WORDS, num_hidden_layers=2, max_position_embeddings=512, initializer_range=0.2)
    return str(folder)


#: so that a document of LIMIT word pieces has more passages than such a model reads
SMALLER = {
    "idcm": ["recipe.passages.size=12", "recipe.passages.before=3", "recipe.passages.after=3"],
    "parade-original": ["recipe.passages.size=20", "recipe.passages.after=5", "recipe.model.passages=5"],
    "keyb-parade5": ["recipe.passages.size=20", "recipe.passages.after=5"],
    "keyb-bm25": ["+recipe.model.length=90"],
    "keyb-binb": ["+recipe.model.length=90"],
}


class Recipe:
    """A recipe of the configuration, put together for the tiny BERT."""

    def __init__(
        self,
        name: str,
        backbone: str,
        overrides: Sequence[str] = ("~edges.patterns.dynamic_centrality",),
        device: torch.device | str = "cpu",
    ) -> None:
        overrides = [
            f"model.backbone={backbone}", f"sentence_backbone={backbone}",
            f"long_backbone={backbone}", "window=16", "partition.k=3", "query_length=8",
            f"recipe.document_length={LIMIT}", *SMALLER.get(name, []), *overrides,
        ]  # fmt: skip
        self.config = compose_recipe(name, overrides)
        torch.manual_seed(0)
        self.model = build({**self.config["model"], "dropout": 0.0}).eval()
        for parameter in self.model.parameters():
            parameter.data += 0.02 * torch.randn_like(parameter)  # so that what starts at 0, 1 or I matters
        self.model.to(device)
        documents = {name: Document(name, words) for name, words in TEXTS.items()}
        self.tokens = Tokens(backbone, LIMIT, 8)
        statistics = TermStatistics.of(self.tokens, documents)
        self.builder = Parts.of(self.config).builder(documents, self.tokens, statistics, device=device)

    def graph(self, *documents: str):
        return self.builder([("q", QUERY, document) for document in documents])

    def scores(self, *documents: str) -> torch.Tensor:
        with torch.no_grad():
            return self.model(self.graph(*documents))


@pytest.fixture(scope="module")
def recipes(backbone):
    """Recipes by name; each is put together once, so a test must leave its weights alone."""
    made: dict[str, Recipe] = {}
    return lambda name: made.setdefault(name, made.get(name) or Recipe(name, backbone))


def objective(scores: torch.Tensor) -> torch.Tensor:
    relevant = torch.tensor([True, False, False, False], device=scores.device)
    return LOSSES["listwise"](scores.float(), torch.zeros(4, dtype=torch.long, device=scores.device), relevant)


@pytest.mark.parametrize("name", MODELS)
def test_a_document_has_one_score_whatever_computes_it(recipes, name):
    """Alone, in any batch, by re-ranking, and about the same in bfloat16."""
    recipe = recipes(name)
    scores = recipe.scores(*TEXTS)
    assert scores.shape == (len(TEXTS),)
    assert scores.isfinite().all()
    assert scores[: len(FOUR) + 1].unique().numel() == len(FOUR) + 1  # different texts, different scores
    assert scores[-2].item() == pytest.approx(scores[-1].item(), abs=1e-6)  # empty documents share one
    torch.testing.assert_close(recipe.scores(*reversed(TEXTS)).flip(0), scores, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.cat([recipe.scores(one) for one in TEXTS]), scores, atol=1e-5, rtol=0)
    run = rerank(recipe.model, recipe.builder, {"q": QUERY}, {"q": dict.fromkeys(FOUR, 1.0)}, 200, progress=False)
    of_four = dict(zip(TEXTS, scores.tolist(), strict=True))
    assert run["q"] == pytest.approx({one: of_four[one] for one in FOUR}, abs=1e-5)
    assert list(run["q"]) == sorted(FOUR, key=lambda document: -run["q"][document])
    with torch.autocast("cpu", torch.bfloat16):
        rough = recipe.scores(*FOUR)
    if name in ("colbert", "sentence-maxp", "sentence-circles"):  # similarities of vectors, not of a linear layer
        assert rough.dtype == torch.float32
    # what is selected may change with the last digits, so only the size of the scores is compared
    exact = scores[: len(FOUR)]
    assert (rough - exact).abs().max() < 0.1 + 0.2 * exact.abs().max()


@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_lowers_the_loss(backbone, name):
    recipe = Recipe(name, backbone)
    graph = recipe.graph(*FOUR)
    for stage in recipe.model.stages:
        recipe.model.enter(stage)
        recipe.model.train()
        before = recipe.model(graph, objective)
        recipe.model.zero_grad()
        before.backward()
        gradients = [p.grad for p in recipe.model.parameters() if p.grad is not None]
        length = torch.stack([g.pow(2).sum() for g in gradients]).sum().sqrt()
        assert length > 0
        with torch.no_grad():
            for parameter in recipe.model.parameters():
                if parameter.grad is not None:
                    parameter -= 0.01 * parameter.grad / length
            after = recipe.model(graph, objective)
        with torch.autocast("cpu", torch.bfloat16):
            recipe.model(graph, objective).backward()
        assert all(p.grad.isfinite().all() for p in recipe.model.parameters() if p.grad is not None)
        if stage != "selection":  # IDCM's, which jumps where ranks change; test_idcm.py shows that it learns
            assert after < before


@pytest.mark.parametrize("name", MODELS)
def test_gradient_checkpointing_changes_nothing(backbone, name):
    gradients, calls = [], []
    for enabled in (False, True):
        recipe = Recipe(name, backbone)
        recipe.model.train()
        recipe.model.enter(recipe.model.stages[0])
        if enabled:
            recipe.model.gradient_checkpointing_enable()
        calls.append(Counter())
        for key, module in recipe.model.named_modules():
            if re.fullmatch(r"layers\.\d+\.attention_norm|encoder\..*\.attention\.output\.LayerNorm", key):
                module.register_forward_hook(lambda *_, key=key, seen=calls[-1]: seen.update([key]))
        recipe.model(recipe.graph(*FOUR), objective).backward()
        gradients.append({n: p.grad for n, p in recipe.model.named_parameters() if p.grad is not None})
    assert len(calls[0]) == 2  # layers
    assert all(calls[1][key] > amount for key, amount in calls[0].items())  # what is checkpointed is computed twice
    assert gradients[0].keys() == gradients[1].keys()
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][key], atol=1e-5, rtol=1e-4, msg=key)


@pytest.mark.parametrize("name", ["longformer-global", "qds"])
def test_global_tokens_have_projections_of_their_own(backbone, name):
    recipe = Recipe(name, backbone)
    before = recipe.scores(*FOUR)
    with torch.no_grad():
        for heads in recipe.model.global_heads:
            heads.value.weight.neg_()
    assert (recipe.scores(*FOUR) - before).abs().min() > 1e-4


def test_parade_of_its_own_paper_reads_beginning_end_and_some_between(backbone):
    recipe = Recipe("parade-original", backbone, ["recipe.model.passages=4"])
    seen = []
    recipe.model.readout.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1]))
    whole = recipe.graph("beyond")
    recipe.scores("beyond", "one")
    assert whole.num_circles == 8  # of 20 words each; the recipe's limit stands here for the document's end
    assert torch.bincount(seen[0]).tolist() == [4, 1]
    chance = whole.circle_score  # the highest are read
    assert chance[[0, 7]].tolist() == [2, 2]
    assert chance[1:7].max() < 1
    assert chance[1:7].unique().numel() == 6
    config = compose_recipe("parade-original")
    passages = config["passages"]
    assert (config["model"]["passages"], passages["size"], passages["after"]) == (16, 200, 25)
    assert config["document_length"] > 50_000


@pytest.mark.parametrize("name", FIRST_STAGES)
def test_first_stages_rank_the_same_documents(name, backbone):
    documents = {name: Document(name, words) for name, words in TEXTS.items()}
    run = build(compose_recipe(name)["first_stage"]).fit(documents).retrieve({"q": QUERY}, 10)
    assert set(run["q"]) <= set(TEXTS) - {"empty", "hollow"}
    assert "one" in run["q"]


def test_keyb_maxp_is_maxp_over_fewer_windows(recipes, backbone):
    every, one = (Recipe("keyb-maxp", backbone, [f"recipe.passages.k={k}"]).scores(*TEXTS) for k in (100, 1))
    torch.testing.assert_close(every, recipes("maxp").scores(*TEXTS))
    assert (one < every + 1e-5).all()
    assert (one < every - 1e-3).any()
