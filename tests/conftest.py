"""A small real BERT, and documents for it, for all tests."""

import gc
import os
import random
import shutil
import sys
from pathlib import Path

import children
import pytest
import torch

if not torch.cuda.is_available():  # before Triton's kernels are imported: its interpreter runs them on the CPU
    os.environ.setdefault("TRITON_INTERPRET", "1")

from hypothesis import settings
from torch_geometric.data import Batch
from transformers import BertConfig, BertModel, BertTokenizerFast

from socialgraph.data.circles import compose
from socialgraph.data.graph import connect, document_graph, gather, weigh
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance, draw_key
from socialgraph.partition import EdgeCircles, Windows

pytest_plugins = ["workshop", "training_task"]  # fixtures for the tests of experiments/, and of training

_BEFORE = {name: os.environ.get(name) for name in ("PYTHONPATH", "TQDM_LEAVE", "TQDM_DISABLE")}

children.never_fork()

# A slow disk is no failure: no case has a deadline (hypothesis's own is 200 ms).
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with collections that lies beside the project; tests that need it are skipped without it."""
    folder = Path(os.environ.get("SOCIALGRAPH_SHARED", Path(__file__).parents[2] / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no collections in {folder} (set SOCIALGRAPH_SHARED)")
    return folder


@pytest.fixture(autouse=True, scope="session")
def _cache(tmp_path_factory):
    """Keep what tests cache out of the user's own folder, also in the programs that they start."""
    os.environ["SOCIALGRAPH_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """Take back what a command does where it is imported: to modules' folders, and for the programs it starts."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name, value in _BEFORE.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture(autouse=True)
def _no_fork():
    """Fail a test that forks: torch may have worked here before, and then it fails by chance (see children.py)."""
    yield
    forks = [*children.FORKS]
    children.FORKS.clear()
    assert not forks, f"the test forked this process, in which torch has worked:\n{forks[0]}"


@pytest.fixture
def tiny_bert(tmp_path) -> tuple[str, BertModel]:
    """A random BERT of 3 layers x 32 with a tokenizer, saved in a folder."""
    return str(tmp_path), write_tiny_bert(tmp_path)


def shaken(model, by=0.1):
    """Move every weight away from its start, so that what starts at 0, 1 or I matters."""
    torch.manual_seed(1)
    for parameter in model.parameters():
        parameter.data += by * torch.randn_like(parameter)
    return model


def assert_backends_agree(make, batch, one, other) -> dict[str, torch.Tensor]:
    """Compare scores and gradients of a model by two backends of attention; return the gradients by name."""
    results = {}
    for backend in (one, other):
        torch.manual_seed(3)
        model = shaken(make(attention=backend, dropout=0.0), by=0.05).train()
        scores = model(batch)
        (scores * torch.arange(1.0, 5.0)).sum().backward()
        results[backend] = scores.detach(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    torch.testing.assert_close(results[one][0], results[other][0], atol=1e-5, rtol=1e-5)
    assert results[one][1].keys() == results[other][1].keys()
    for name, gradient in results[one][1].items():
        torch.testing.assert_close(gradient, results[other][1][name], atol=1e-4, rtol=1e-4, msg=name)
    return results[one][1]


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_tiny_bert(folder: Path, marks=(), words=None, **sizes) -> BertModel:
    """Save a random BERT, of 3 layers x 32 unless told otherwise, and a tokenizer of 200 pieces: marks, w0, w1, ..."""
    torch.manual_seed(0)
    pieces = [*SPECIAL, *marks]
    pieces += words or [f"w{i}" for i in range(200 - len(pieces))]
    write_tokenizer(folder, pieces)
    usual = {
        "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 96,
    }  # fmt: skip
    config = BertConfig(vocab_size=len(pieces), pad_token_id=0, **(usual | sizes))
    bert = BertModel(config, add_pooling_layer=False).eval()
    for name, parameter in bert.named_parameters():
        if "bias" in name:  # zero at birth, which would hide a bias that is not copied
            torch.nn.init.normal_(parameter, std=0.1)
    bert.save_pretrained(folder)
    return bert


def write_tokenizer(folder: Path, pieces) -> None:
    """Save a BERT's tokenizer of these word pieces, the special ones first."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(pieces))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)


def document_batch(lengths=(70, 0, 33, 1), vocabulary=200, passages=16, k=4, max_size=12, seed=0) -> Batch:
    """Return graphs of random documents of these lengths, with passages and edge-level friend circles."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number, length in enumerate(lengths):
        draw = lambda n: torch.randint(5, vocabulary, (n,), generator=generator)  # noqa: E731
        weights = torch.rand(length, generator=generator, dtype=torch.float64)
        ids, query = draw(length), draw(2 + number)
        graphs.append(document_graph(ids, query, draw_key(seed, query, ids), tfidf=weights))
    batch = Batch.from_data_list(graphs)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()], sparsity=0.8)
    weigh(batch, "dynamic_distance", edges.patterns["dynamic_distance"].weights(batch))
    connect(batch, *edges(batch))
    circles = EdgeCircles(k=k, max_size=max_size)
    gather(
        batch,
        *compose(Windows(passages), circles, batch.edge_index, batch.batch, batch.num_graphs, batch.edge_weight),
    )
    return batch


def passage_batch(lengths=(70, 0, 33, 1), partition=Windows(16), **options) -> Batch:  # noqa: B008
    """Return such graphs with nothing but the circles of a partition that looks at no edges."""
    batch = document_batch(lengths, **options)
    gather(batch, *compose(partition, None, batch.edge_index, batch.batch, batch.num_graphs))
    return batch


def pair_inputs(query, text) -> dict[str, torch.Tensor]:
    """Return what transformers takes to read [CLS] query [SEP] text [SEP], both given as lists of ids."""
    ids, types = [2, *query, 3, *text, 3], [0] * (len(query) + 2) + [1] * (len(text) + 1)
    return {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([types])}


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Graphs of 70, 0, 33 and 1 random words."""
    return document_batch()


def pytest_collection_finish():
    """Let Python's garbage collector pass over what was imported: training collects after every run."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Shuffle the tests by the seed in SOCIALGRAPH_ORDER, if there is one: none may depend on another."""
    if seed := os.environ.get("SOCIALGRAPH_ORDER"):
        random.Random(int(seed)).shuffle(items)


@pytest.fixture(scope="module")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if binary is None:
        pytest.skip("no Chromium here (set CHROMIUM to its path)")
    quiet = ("background-networking", "component-update", "sync", "gpu")
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def load(chromium, tmp_path):
    """Open a page from disk; at the end it must not have complained, nor asked for anything but itself."""
    contexts, complaints = [], []

    def opened(text: str, **options):
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        contexts.append(chromium.new_context(**{"viewport": {"width": 1300, "height": 800}, **options}))
        tab = contexts[-1].new_page()
        tab.set_default_timeout(300_000)  # ms; on busy cores a page has taken more than half a minute to load
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda one: None if one.is_navigation_request() else complaints.append(one.url))
        tab.goto(file.as_uri())
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
