"""Folders of models in which one thing is odd: each gives finite scores, or one line that names the folder.

None takes much memory or time, whatever sizes it asks for.
"""

from __future__ import annotations

import re
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from bad_models import folders
from conftest import document_batch
from ledger_of_cases import Ledger, told  # noqa: F401  (a fixture)

from socialgraph import backbone
from socialgraph.edges import DynamicCentrality
from socialgraph.nn import Socialformer


def test_backbones(tiny_bert, tmp_path):
    ledger, good = Ledger("folders of a backbone"), tmp_path / "good"
    counts = {
        "hidden_size": "width", "num_hidden_layers": "layers", "num_attention_heads": "heads", "vocab_size": "words",
        "intermediate_size": "inner width", "max_position_embeddings": "positions", "type_vocab_size": "segments",
        "layer_norm_eps": "epsilon", "hidden_dropout_prob": "dropout", "pad_token_id": "padding",
        "hidden_act": "activation", "model_type": "type", "architectures": "architectures",
        "initializer_range": "spread",
    }  # fmt: skip
    shutil.copytree(tiny_bert[0], good, ignore=lambda *_: ["good"])
    tokens = {"tokenizer.json": [b"", b"{}", b"[]", b"garbage", b"[" * 100_000,
                                 b'{"model": {"type": "WordPiece"}}',
                                 b'{"model": {"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}}']}  # fmt: skip
    batch = document_batch()
    for name, change in _with_files(folders(good, counts), tokens):
        folder = _copy(good, tmp_path / "odd")
        change(folder)

        def do(folder: Path = folder) -> None:
            backbone.locate.cache_clear()
            model = Socialformer.from_backbone(str(folder)).eval()
            assert model(batch).isfinite().all()
            assert DynamicCentrality(str(folder)).weights(batch).isfinite().all()

        _case(ledger, name, do, re.escape(str(folder)) + "|activation|hidden_act")
    ledger.close(at_least=200)


def test_saved_models(tiny_bert, tmp_path):
    ledger, good = Ledger("folders of a model"), tmp_path / "good"
    Socialformer.from_backbone(tiny_bert[0]).save_pretrained(good)
    counts = {key: key for key in (
        "hidden_size", "num_layers", "num_heads", "vocab_size", "intermediate_size", "max_positions", "type_vocab_size",
        "layer_norm_eps", "dropout", "cls_token_id", "sep_token_id", "backbone", "attention", "inter_heads",
        "inter_width", "inter_circle", "inter_shared", "leader", "readout", "reads",
    )}  # fmt: skip
    batch = document_batch()
    for name, change in folders(good, counts):
        folder = _copy(good, tmp_path / "odd")
        change(folder)

        def do(folder: Path = folder) -> None:
            with redirect_stdout(StringIO()):
                model = Socialformer.from_pretrained(folder).eval()
            assert model(batch).isfinite().all()

        _case(ledger, name, do, re.escape(str(folder)) + "|attention|leader")
    ledger.close(at_least=250)


def _case(ledger: Ledger, name: str, do: Callable[[], None], names: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ledger.case(name, do, names, sound=name == "nothing is odd")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown > 200_000:  # KiB
        ledger.wrong.append(f"{name}: took {grown} KiB")


def _copy(good: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(good, to)
    return to


def _with_files(cases: Iterator[tuple[str, Any]], files: dict[str, list[bytes]]) -> Iterator[tuple[str, Any]]:
    yield from cases
    for name, contents in files.items():
        for content in contents:
            yield f"{name}: {content[:40]!r}", lambda folder, n=name, c=content: (folder / n).write_bytes(c)
