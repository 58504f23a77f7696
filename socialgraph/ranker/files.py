"""A ranker's folder: what is written there, and what is read of it. JSON and safetensors only, and no code."""

from __future__ import annotations

import copy
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file

from socialgraph.backbone import check_finite, load_bert, load_tokenizer, quiet, read_json
from socialgraph.data import TermStatistics, Tokens
from socialgraph.data.files import atomic_folder
from socialgraph.data.statistics import PairCounts
from socialgraph.described import Known, name_of
from socialgraph.edges import DynamicCentrality
from socialgraph.errors import CheckpointError, OptionError, first_line
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.ranker.card import card
from socialgraph.ranker.training import public_options
from socialgraph.recipes.build import PARTS, Parts
from socialgraph.recipes.classes import imported

FORMAT = 1
#: what a folder holds, beside the model's own config.json and model.safetensors, and the card
ABOUT, STATISTICS, WEIGHTS, TOKENIZER, BACKBONES = (
    "ranker.json", "statistics.safetensors", "parts.safetensors", "tokenizer", "backbones"
)  # fmt: skip
#: of the pair counts, beside the document frequencies
PAIR_PARTS = ("key", "count", "frequency")
#: classes that ask a backbone for its word pieces, and not for its BERT
_WORDS_ONLY = ("socialgraph.edges.ReadingOrder", "socialgraph.edges.QDSEdges", "socialgraph.edges.SentenceHubs")
#: all that is fetched from the hub
_FETCHED = [
    "config.json", "model.safetensors", ABOUT, STATISTICS, WEIGHTS, f"{TOKENIZER}/*.json", f"{TOKENIZER}/*.txt",
    f"{BACKBONES}/*/*.json", f"{BACKBONES}/*/*.txt", f"{BACKBONES}/*/*.safetensors",
]  # fmt: skip


class Contents(NamedTuple):
    """What a ranker is made of, see :class:`~socialgraph.Ranker`."""

    recipe: dict[str, Any]
    parts: Parts
    model: HubRanker
    tokens: Tokens
    statistics: TermStatistics
    history: dict[str, Any]


def save(contents: Contents, folder: Path, name: str = "") -> Path:
    """Write a ranker: as a whole, or what was there stays.

    Args:
        contents: what is written.
        folder: where.
        name: its id on the hub, if it has one, for the card.

    Raises:
        OutputError: the folder cannot be written.
        OptionError: a value of the recipe, or of the model, that no file can hold.
    """
    model = getattr(contents.model, "_orig_mod", contents.model)  # of torch.compile
    recipe, backbones = portable(contents.recipe)
    about = {
        "format": FORMAT, "model": name_of(type(model)), "recipe": recipe, "history": contents.history,
        "documents": contents.statistics.size,
    }  # fmt: skip
    try:
        text = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise OptionError(f"{recipe['name']}: a value of the recipe cannot be saved ({first_line(error)})") from error
    config: dict[str, Any] = {**(model._hub_mixin_config or {})}  # type: ignore[dict-item]
    if isinstance(config.get("backbone"), str):
        config["backbone"] = public_name(config["backbone"])
    with atomic_folder(folder, last=ABOUT) as beside:
        model.save_pretrained(beside, config=config)
        _save_tokenizer(contents.tokens.tokenizer, beside / TOKENIZER)
        for place, (backbone, words_only) in backbones.items():
            _save_backbone(backbone, words_only, beside / place)
        save_file(_statistics_tensors(contents.statistics), beside / STATISTICS)
        save_file(part_weights(contents.parts), beside / WEIGHTS)
        (beside / "README.md").write_text(card(recipe, model, contents.history, name), "utf-8")
        (beside / ABOUT).write_text(text, "utf-8")
    return folder


def push(contents: Contents, repo_id: str, private: bool | None, options: Mapping[str, Any]) -> str:
    """Save a ranker as a repository of the hub; return its address."""
    from huggingface_hub import HfApi

    api = HfApi()
    with tempfile.TemporaryDirectory() as place:
        save(contents, Path(place), repo_id)
        address = str(api.create_repo(repo_id, private=private, exist_ok=True))
        api.upload_folder(repo_id=repo_id, folder_path=place, **options)
    return address


def load(name: str | Any, classes: Sequence[type | str], download: Mapping[str, Any]) -> Contents:
    """Return what a ranker's folder, or repository of the hub, holds.

    Raises:
        CheckpointError: no whole ranker is there, or it needs a class that is not among ``classes``.
    """
    own: list[Any] = [imported(one) if isinstance(one, str) else one for one in classes]
    folder = Path(name)
    if not folder.is_dir():
        folder = _fetched(str(name), download)
    if not (folder / ABOUT).is_file():
        told = "a ranker is saved by Ranker.save_pretrained; a BERT becomes one by Ranker.from_recipe('maxp', backbone="
        raise CheckpointError(f"{name}: no {ABOUT}, so no whole ranker: {told}{str(name)!r})")
    about = read_json(folder / ABOUT)
    try:
        if about["format"] != FORMAT:
            raise OptionError(f"format {about['format']!r:.20}, this version reads {FORMAT}; update socialgraph-ir")
        recipe = with_backbones(about["recipe"], folder)
        kind = Known(own, HubRanker)(about["model"])
        if not issubclass(kind, HubRanker):  # one of the user's own
            raise OptionError(f"{about['model']!r:.200} is no HubRanker")
        parts = Parts.of(recipe, classes=own)
        tokens = Tokens(str(folder / TOKENIZER), recipe["document_length"], recipe["query_length"])
        history, documents = dict(about["history"]), int(about["documents"])
        _ = str(recipe["name"]), int(recipe["seed"]), recipe["training"], recipe["stages"]
    except CheckpointError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        what = f"{str(error)[:80]} is missing" if isinstance(error, KeyError) else first_line(error)
        raise CheckpointError(f"{folder / ABOUT}: {what}") from error
    load_part_weights(parts, folder / WEIGHTS)
    model = kind.from_pretrained(folder, classes=own)
    words = getattr(getattr(model, "embedding", None), "word", None)
    if isinstance(words, torch.nn.Embedding) and tokens.vocab_size > words.num_embeddings:
        told = f"the tokenizer has {tokens.vocab_size} words, the model knows {words.num_embeddings} of them"
        raise CheckpointError(f"{folder}: {told}")
    statistics = _statistics(folder / STATISTICS, tokens.vocab_size, documents)
    return Contents(recipe, parts, model, tokens, statistics, history)


def _fetched(name: str, download: Mapping[str, Any]) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=_FETCHED, **download))
    except Exception as error:  # the hub has errors of its own
        raise CheckpointError(f"{name}: no folder, and not to be had from the hub ({first_line(error)})") from error


def public_name(backbone: str) -> str:
    """Return the name of a backbone as others may see it: of a folder of this machine the last part."""
    is_folder = Path(backbone).is_dir() or Path(backbone).is_absolute()
    return Path(backbone).resolve().name if is_folder else backbone


def tables(spec: Any) -> Iterator[dict[str, Any]]:
    """Yield each description of an object in a recipe's values."""
    if isinstance(spec, dict):
        if "_target_" in spec:
            yield spec
        for value in spec.values():
            yield from tables(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from tables(value)


def portable(recipe: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[str, bool]]]:
    """Return a recipe as others may see it, whose parts take their backbones from the folder, and what goes where.

    Returns:
        The recipe, and for each folder the backbone's name, and whether its word pieces are enough.
    """
    kept: dict[str, Any] = copy.deepcopy(dict(recipe))
    if isinstance(name := kept["model"].get("backbone"), str):
        kept["model"]["backbone"] = public_name(name)
    if kept["training"] is not None:
        kept["training"]["arguments"] = public_options(kept["training"].get("arguments") or {})
    places: dict[str, str] = {}
    backbones: dict[str, tuple[str, bool]] = {}
    for part in PARTS:
        for table in tables(kept[part]):
            if isinstance(name := table.get("backbone"), str):
                place = places.setdefault(name, f"{BACKBONES}/{len(places)}")
                words_only = table["_target_"] in _WORDS_ONLY
                backbones[place] = name, words_only and backbones.get(place, (name, True))[1]
                table["backbone"] = place
    return kept, backbones


def with_backbones(recipe: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the recipe whose parts take their backbones from this folder, and from nowhere else.

    Raises:
        CheckpointError: one is to come from elsewhere.
    """
    for part in PARTS:
        for table in tables(recipe[part]):
            if (name := table.get("backbone")) is not None:
                if not isinstance(name, str) or not re.fullmatch(rf"{BACKBONES}/\d+", name):
                    told = f"{str(name)[:80]!r} is no backbone of this folder"
                    raise CheckpointError(f"{folder / ABOUT}: {told}; nothing else is loaded")
                table["backbone"] = str(folder / name)
    return recipe


def _save_backbone(name: str, words_only: bool, folder: Path) -> None:
    _save_tokenizer(load_tokenizer(name), folder)
    if not words_only:
        with quiet():
            load_bert(name).save_pretrained(folder)


def _save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Save a tokenizer without the place on this machine from which it came."""
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.init_kwargs.pop("name_or_path", None)
    tokenizer.name_or_path = ""
    tokenizer.save_pretrained(folder)


def part_weights(parts: Parts) -> dict[str, torch.Tensor]:
    """Return the weights of edges and partitions by name; a BERT that does not learn comes with its backbone."""
    weights = {}
    for name, module in parts.modules().items():
        frozen = [f"{inside}." if inside else "" for inside, one in module.named_modules()
                  if isinstance(one, DynamicCentrality)]  # fmt: skip
        for key, value in module.state_dict().items():
            if not key.startswith(tuple(frozen)):
                weights[f"{name}.{key}"] = value.detach().cpu().contiguous().clone()
    return weights


def load_part_weights(parts: Parts, file: Path) -> None:
    """Load what :func:`part_weights` gave.

    Raises:
        CheckpointError: weights are missing, of other parts, of another shape, or not finite.
    """
    stored = _tensors(file)
    if odd := sorted(part_weights(parts).keys() ^ stored.keys()):
        raise CheckpointError(f"{file}: does not fit the recipe: {odd[0]!r} is missing or left over")
    for name, module in parts.modules().items():
        mine = {key.removeprefix(f"{name}."): value for key, value in stored.items() if key.startswith(f"{name}.")}
        try:
            module.load_state_dict(mine, strict=False)  # without those of a BERT that comes with its backbone
        except RuntimeError as error:  # of another shape
            raise CheckpointError(f"{file}: {' '.join(str(error).split())[:300]}") from error
        check_finite(str(file), module)


def _tensors(file: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(file)
    except Exception as error:  # missing, or damaged: SafetensorError is an Exception and no more
        raise CheckpointError(f"{file}: no whole safetensors file ({first_line(error)})") from error


def _statistics_tensors(statistics: TermStatistics) -> dict[str, torch.Tensor]:
    """Return document frequencies, and the pair counts that were asked for: ``pairs.<window>.<least>.<part>``."""
    tensors = {"document_frequency": statistics.document_frequency.cpu()}
    for (window, least), counts in statistics.counted.items():
        for part in PAIR_PARTS:
            tensors[f"pairs.{window}.{least}.{part}"] = getattr(counts, part).cpu()
    return tensors


def _statistics(file: Path, vocabulary: int, documents: int) -> TermStatistics:
    """Return the document frequencies and pair counts.

    Raises:
        CheckpointError: they are not those of so many word pieces.
    """
    tensors = _tensors(file)
    frequency = tensors.pop("document_frequency", torch.empty(0))
    if frequency.shape != (vocabulary,) or frequency.dtype != torch.int64:
        raise CheckpointError(f"{file}: expected a whole number for each of {vocabulary} word pieces")
    statistics = TermStatistics(frequency, documents)
    for name in sorted({name.rpartition(".")[0] for name in tensors}):
        try:
            _, window, least = name.split(".")
            counts = PairCounts(*(tensors[f"{name}.{part}"] for part in PAIR_PARTS))
            statistics.counted[int(window), int(least)] = counts
        except (KeyError, ValueError) as error:
            raise CheckpointError(f"{file}: {name or 'a tensor'} is no whole count of pairs") from error
    return statistics
