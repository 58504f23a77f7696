"""Layers of one's own in a Socialformer: what leaders exchange, and how they are pooled."""

from itertools import pairwise

import pytest
import torch
from conftest import document_batch, shaken
from torch_geometric.nn import GATConv, SoftmaxAggregation

from socialgraph import Ranker
from socialgraph.errors import CheckpointError, OptionError
from socialgraph.nn import Socialformer
from socialgraph.nn.sequences import circle_sequences

TEXTS = ["w1 w2 w3 w9. " * 9, "w4 w5", "w1 w1 w7 w8 " * 20]


class LeaderGAT(torch.nn.Module):
    """Graph attention over the leaders of a document."""

    def __init__(self, channels: int = 32, heads: int = 4):
        super().__init__()
        self.channels, self.heads = channels, heads
        self.conv = GATConv(channels, channels // heads, heads)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class Mean(torch.nn.Module):
    """The mean of the leaders, called as PyG's aggregations are."""

    def forward(self, x, index, ptr, size):
        return torch.stack([x[index == number].mean(0) for number in range(size)])


class First(Mean):
    """Gives too little."""

    def forward(self, x, index, ptr, size):
        return super().forward(x, index, ptr, size)[:, :1]


def test_a_convolution_takes_the_place_of_the_inter_circle_transformer(tiny_bert):
    """High states are what the convolution makes of each document's leaders alone, in each block a copy of it."""
    batch = document_batch()
    model = shaken(Socialformer.from_backbone(tiny_bert[0], inter=LeaderGAT(), readout="mean").eval())
    assert len({id(one.transformer) for one in model.inter}) == len(model.layers) == 3
    leaders = []
    for one in model.inter:
        one.register_forward_hook(lambda _, inputs, outputs: leaders.append((inputs[0], *outputs)))
    with torch.no_grad():
        model(batch)
        bounds = circle_sequences(batch, 2, 3).document_ptr.tolist()
        for one, (low, updated, high) in zip(model.inter, leaders, strict=True):
            for first, last in pairwise(bounds):
                pairs = torch.cartesian_prod(torch.arange(last - first), torch.arange(last - first)).T
                if last > first:
                    expected = one.transformer.conv(low[first:last], pairs)
                    torch.testing.assert_close(high[first:last], expected, atol=1e-5, rtol=1e-4)
            weight = one.update.weight
            torch.testing.assert_close(updated, torch.cat([low, high], -1) @ weight.T, atol=1e-5, rtol=1e-4)


def test_it_is_saved_with_its_options_and_loaded_with_its_class(tiny_bert, tmp_path):
    batch = document_batch()
    model = shaken(Socialformer.from_backbone(tiny_bert[0], inter=LeaderGAT(heads=2), readout=Mean()).eval())
    model.save_pretrained(tmp_path / "saved")
    again = Socialformer.from_pretrained(tmp_path / "saved", classes=[LeaderGAT, Mean])
    assert again.inter[0].transformer.heads == 2
    with torch.no_grad():
        assert torch.equal(again(batch), model(batch))
    with pytest.raises(CheckpointError, match=r"LeaderGAT' is no class .* pass it, classes=\[LeaderGAT\]"):
        Socialformer.from_pretrained(tmp_path / "saved", classes=[Mean])
    model = Socialformer.from_backbone(tiny_bert[0], inter=GATConv(32, 8, 4))
    with pytest.raises(OptionError, match=r"GATConv: it does not keep its argument '\w+': write self"):
        model.save_pretrained(tmp_path / "bare")


def test_a_recipe_names_them(tiny_bert, tmp_path):
    """Those of PyG itself as well: what the recipe says is written."""
    inter = "+model.inter={_target_: torch_geometric.nn.GATConv, in_channels: 32, out_channels: 8, heads: 4}"
    readout = "model.readout={_target_: torch_geometric.nn.SoftmaxAggregation, learn: true}"
    names = [f"{__name__}.LeaderGAT", f"{__name__}.Mean"]
    own = [f"+model.inter={{_target_: {names[0]}, heads: 2}}", f"model.readout={{_target_: {names[1]}}}"]
    sizes = {"backbone": tiny_bert[0], "document_length": 40, "query_length": 8, "window": 16}
    for typed, classes in (([inter, readout], [GATConv, SoftmaxAggregation]), (own, names)):
        one = Ranker.from_recipe("socialformer-edge", *typed, **sizes).count(TEXTS)
        assert isinstance(one.model.inter[0].transformer, GATConv | LeaderGAT)
        one.save_pretrained(tmp_path / "saved")
        again = Ranker.from_pretrained(tmp_path / "saved", classes=classes)
        assert again.rank("w1 w2", TEXTS) == one.rank("w1 w2", TEXTS)


def test_what_does_not_fit_is_refused(tiny_bert):
    def made(**options):
        return Socialformer.from_backbone(tiny_bert[0], **options)

    for options, told in (
        ({"inter": LeaderGAT(), "inter_circle": False}, "inter=LeaderGAT needs inter_circle=True"),
        ({"inter": LeaderGAT(), "inter_heads": 2}, "inter_heads is of the transformer that inter=LeaderGAT replaces"),
    ):
        with pytest.raises(OptionError, match=told):
            made(**options)
    for options, told in (
        ({"inter": GATConv(32, 8, 2)}, r"GATConv gives \(\d+, 16\) for the states of leaders \(\d+, 32\)"),
        ({"readout": First()}, r"the readout First gives \(\d+, 1\) for \d+ documents of width 32"),
    ):
        with pytest.raises(OptionError, match=told):
            made(**options)(document_batch())
