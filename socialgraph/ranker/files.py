"""A ranker's folder: what is written there, and what is read of it. JSON and safetensors only, and no code."""

from __future__ import annotations

import copy
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file

from socialgraph.backbone import load_bert, load_tokenizer, quiet
from socialgraph.data import PairCounts, TermStatistics, Tokens
from socialgraph.data.files import atomic_write, share
from socialgraph.edges import DynamicCentrality
from socialgraph.errors import CheckpointError, OptionError, OutputError, first_line, is_whole
from socialgraph.model_files import check_finite, read_json
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.ranker.card import card
from socialgraph.recipes.build import PARTS, Parts
from socialgraph.recipes.classes import Known, name_of

if TYPE_CHECKING:
    from socialgraph.ranker import Ranker

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


def save(ranker: Ranker, folder: Path, name: str = "") -> Path:
    """Write a ranker; ``ranker.json`` comes last, so a folder without it is not whole.

    Args:
        ranker: what is written.
        folder: where.
        name: its id on the hub, if it has one, for the card.

    Raises:
        OutputError: the folder cannot be written.
    """
    recipe, backbones = without_backbones(ranker.recipe)
    about = {
        "format": FORMAT, "model": name_of(type(ranker.model)), "recipe": recipe, "history": ranker.history,
        "documents": ranker.statistics.size,
    }  # fmt: skip
    try:
        text = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        raise OptionError(f"{recipe['name']}: a value of the recipe cannot be saved ({first_line(error)})") from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ABOUT).unlink(missing_ok=True)
        ranker.model.save_pretrained(folder)
        ranker.tokens.tokenizer.save_pretrained(folder / TOKENIZER)
        for place, (name, words_only) in backbones.items():
            _save_backbone(name, words_only, folder / place)
        save_file(_statistics_tensors(ranker.statistics), folder / STATISTICS)
        save_file(part_weights(ranker.parts), folder / WEIGHTS)
        for place in (".", *(place for place, (_, words_only) in backbones.items() if not words_only)):
            share(folder / place / "model.safetensors")
        share(folder / STATISTICS)
        share(folder / WEIGHTS)
        (folder / "README.md").write_text(card(ranker.recipe, ranker.model, ranker.history, name), "utf-8")
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror or first_line(error)})") from error
    with atomic_write(folder / ABOUT) as file:
        file.write(text)
    return folder


def push(ranker: Ranker, repo_id: str, private: bool | None, options: Mapping[str, Any]) -> str:
    """Save a ranker as a repository of the hub; return its address."""
    from huggingface_hub import HfApi

    api = HfApi()
    with tempfile.TemporaryDirectory() as place:
        save(ranker, Path(place), repo_id)
        address = str(api.create_repo(repo_id, private=private, exist_ok=True))
        api.upload_folder(repo_id=repo_id, folder_path=place, **options)
    return address


def load(name: str | Any, classes: Sequence[type | str], download: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what :class:`~socialgraph.Ranker` is made of.

    Raises:
        CheckpointError: no whole ranker is there, or it needs a class that is not among ``classes``.
    """
    folder = Path(name)
    if not folder.is_dir():
        folder = _fetched(str(name), download)
    if not (folder / ABOUT).is_file():
        told = "a ranker is saved by Ranker.save_pretrained; a BERT becomes one by Ranker.from_recipe('maxp', backbone="
        raise CheckpointError(f"{name}: no {ABOUT}, so no whole ranker: {told}{str(name)!r})")
    about = read_json(folder / ABOUT)
    if about.get("format") != FORMAT:
        told = f"format {str(about.get('format'))[:20]!r}, this version reads {FORMAT}"
        raise CheckpointError(f"{folder / ABOUT}: {told}; update socialgraph-ir")
    recipe = with_backbones(_checked(folder, about), folder)
    find = Known(classes)
    try:
        parts = Parts.of(recipe, find)
        kind = find(str(about.get("model")))
        tokens = Tokens(str(folder / TOKENIZER), recipe["document_length"], recipe["query_length"])
    except (OptionError, RecursionError) as error:
        raise CheckpointError(f"{folder / ABOUT}: {first_line(error)}") from error
    if not (isinstance(kind, type) and issubclass(kind, HubRanker)):
        raise CheckpointError(f"{folder / ABOUT}: {str(about['model'])[:80]!r} is no model")
    load_part_weights(parts, folder / WEIGHTS)
    model = kind.from_pretrained(folder)
    words = getattr(getattr(model, "embedding", None), "word", None)
    if isinstance(words, torch.nn.Embedding) and tokens.vocab_size > words.num_embeddings:
        told = f"the tokenizer has {tokens.vocab_size} words, the model knows {words.num_embeddings} of them"
        raise CheckpointError(f"{folder}: {told}")
    statistics = _statistics(folder / STATISTICS, tokens.vocab_size, about["documents"])
    return recipe, parts, model, tokens, statistics, about["history"]


def _fetched(name: str, download: Mapping[str, Any]) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=_FETCHED, **download))
    except Exception as error:  # the hub has errors of its own
        raise CheckpointError(f"{name}: no folder, and not to be had from the hub ({first_line(error)})") from error


def _checked(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe, with values of the types that it must have."""
    recipe = about.get("recipe")
    if not isinstance(recipe, dict) or not isinstance(about.get("history"), dict):
        raise CheckpointError(f"{folder / ABOUT}: 'recipe' and 'history' must be objects")
    wanted: dict[str, Any] = {
        "name": str, "joint": bool, "document_length": int, "query_length": int, "seed": int, "model": dict | None,
        "training": dict | None, "stages": dict | None, **dict.fromkeys(PARTS, dict | None),
    }  # fmt: skip
    for key, kind in wanted.items():
        if key not in recipe or not isinstance(recipe[key], kind) or (kind is int and not is_whole(recipe[key], 0)):
            raise CheckpointError(f"{folder / ABOUT}: recipe.{key} is missing, or not what it must be")
    if not is_whole(about.get("documents"), 0):
        raise CheckpointError(f"{folder / ABOUT}: 'documents' must be a whole number from 0")
    return recipe


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


def without_backbones(recipe: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[str, bool]]]:
    """Return a recipe whose parts take their backbones from the folder, and what goes where.

    Returns:
        The recipe, and for each folder the backbone's name, and whether its word pieces are enough.
    """
    kept: dict[str, Any] = copy.deepcopy(dict(recipe))
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
    tokenizer = load_tokenizer(name)  # all is read before anything is written: it may be the same folder
    bert = None if words_only else load_bert(name)
    tokenizer.save_pretrained(folder)
    if bert is not None:
        with quiet():
            bert.save_pretrained(folder)


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
    wanted, stored = part_weights(parts), _tensors(file)
    if odd := sorted(wanted.keys() ^ stored.keys()):
        raise CheckpointError(f"{file}: does not fit the recipe: {odd[0]!r} is missing or left over")
    for key, value in wanted.items():
        if stored[key].shape != value.shape or stored[key].dtype != value.dtype:
            got, expected = (f"{tuple(one.shape)} {one.dtype}" for one in (stored[key], value))
            raise CheckpointError(f"{file}: {key!r} is {got}, expected {expected}")
    for name, module in parts.modules().items():
        mine = {key.removeprefix(f"{name}."): value for key, value in stored.items() if key.startswith(f"{name}.")}
        module.load_state_dict(mine, strict=False)
        check_finite(str(file), module)


def _tensors(file: Path) -> dict[str, torch.Tensor]:
    if not file.is_file():
        raise CheckpointError(f"{file.parent}: no {file.name}")
    try:
        return load_file(file)
    except Exception as error:  # SafetensorError is an Exception and no more
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
        CheckpointError: they are not those of so many word pieces and documents.
    """
    tensors = _tensors(file)
    frequency = tensors.pop("document_frequency", None)
    if frequency is None or frequency.shape != (vocabulary,) or frequency.dtype != torch.int64:
        raise CheckpointError(f"{file}: expected a whole number for each of {vocabulary} word pieces")
    if frequency.numel() and (int(frequency.min()) < 0 or int(frequency.max()) > documents):
        raise CheckpointError(f"{file}: document frequencies must lie from 0 to {documents}, the number of documents")
    statistics = TermStatistics(frequency, documents)
    for name in sorted({name.rpartition(".")[0] for name in tensors}):
        asked = re.fullmatch(r"pairs\.(\d+)\.(\d+)", name)
        parts = [tensors.get(f"{name}.{part}", torch.empty(0)) for part in PAIR_PARTS]
        key, count, neighbours = parts
        shapes = key.shape == count.shape == key.shape[:1] and neighbours.shape == (vocabulary,)
        if not asked or not shapes or any(x.dtype != torch.int64 for x in parts) or bool((key.diff() <= 0).any()):
            raise CheckpointError(f"{file}: {name or 'a tensor'} is no count of pairs of {vocabulary} word pieces")
        statistics.counted[int(asked[1]), int(asked[2])] = PairCounts(key, count, neighbours)
    return statistics
