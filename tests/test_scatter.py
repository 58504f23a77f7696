"""With torch-scatter PyG's own operations take another road; the results must be the same."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("torch_scatter", reason="torch-scatter is not installed (extra: scatter)")


def results() -> dict[str, torch.Tensor]:
    """Return edges, circles, scores, loss and gradients of fixed documents and a fixed model."""
    from conftest import document_batch

    from socialgraph.nn import Socialformer
    from socialgraph.ranking import listwise_cross_entropy

    batch = document_batch(lengths=(300, 0, 80, 1, 200), seed=3)
    found = {key: batch[key] for key in ("edge_index", "edge_weight", "circle_index", "leader_index")}
    for readout in ("max", "mean", "attention", "transformer"):
        for attention in ("padded", "edges"):
            torch.manual_seed(0)
            model = Socialformer(
                vocab_size=200, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=64, max_positions=96,
                dropout=0.0, readout=readout, attention=attention,
            )  # fmt: skip
            scores = model(batch)
            loss = listwise_cross_entropy(scores, torch.tensor([0, 0, 1, 1, 1]), torch.tensor([1, 0, 1, 0, 0]).bool())
            loss.backward()
            found |= {f"{readout}/{attention}/scores": scores.detach(), f"{readout}/{attention}/loss": loss.detach()}
            for name, parameter in model.named_parameters():
                if parameter.grad is not None:
                    found[f"{readout}/{attention}/{name}"] = parameter.grad
    return found


def test_results_are_the_same_without_torch_scatter(tmp_path):
    import torch_geometric.typing

    assert torch_geometric.typing.WITH_TORCH_SCATTER
    file = tmp_path / "plain.pt"
    code = (
        "import sys, torch; sys.modules['torch_scatter'] = None; "
        f"sys.path[:0] = [{str(Path(__file__).parent)!r}]; import torch_geometric.typing as t; "
        f"assert not t.WITH_TORCH_SCATTER; import pytest; pytest.importorskip = lambda *_, **__: None; "
        f"import test_scatter; torch.save(test_scatter.results(), {str(file)!r})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    plain, mine = torch.load(file, weights_only=True), results()
    assert plain.keys() == mine.keys()
    assert len(plain) > 200
    for name, value in mine.items():
        if value.is_floating_point() and name != "edge_weight":
            torch.testing.assert_close(value, plain[name], atol=1e-5, rtol=1e-4, msg=name)
        else:
            assert torch.equal(value, plain[name]), name
