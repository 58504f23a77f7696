"""Pages, circles and a BERT that are made up: a speed does not depend on what is written, and nothing is downloaded."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from torch_geometric.data import Data
from transformers import BertConfig, BertModel, BertTokenizerFast

VOCABULARY = 30522
MEMBERS = 128  # of a circle, and words of a passage


def circles(documents: int, length: int, number: int, device: torch.device | str, seed: int = 0) -> Data:
    """Return what a model reads of some pages: passages of 128 words, and full friend circles of words from all over.

    Args:
        documents: pages.
        length: word pieces of each, a multiple of 128.
        number: friend circles of each.
        device: where they are drawn.
        seed: of the words, members and queries, which have 3 to 9 word pieces.
    """
    draw = torch.Generator(device).manual_seed(seed)
    node = torch.rand(documents, number, length, generator=draw, device=device).argsort(-1)[..., :MEMBERS]
    windows = torch.arange(length, device=device).view(1, -1, MEMBERS).expand(documents, -1, -1)
    members = torch.cat([windows, node.sort(-1).values], 1)  # [B, C, 128]
    members = members + length * torch.arange(documents, device=device)[:, None, None]
    amount = members.size(1)
    leader = members[..., 0].clone()
    leader[:, -number:] = members[:, -number:, MEMBERS // 2]
    query = torch.randint(3, 10, (documents,), generator=draw, device=device)
    words = {"generator": draw, "device": device}
    return Data(
        input_ids=torch.randint(1000, VOCABULARY, (documents * length,), **words),
        query_ids=torch.randint(1000, VOCABULARY, (int(query.sum()),), **words),
        query_length=query,
        circle_index=torch.stack(
            [members.flatten(), torch.arange(documents * amount, device=device).repeat_interleave(MEMBERS)]
        ),
        leader_index=leader.flatten(),
        passage_mask=(torch.arange(amount, device=device) < amount - number).repeat(documents),
        batch=torch.arange(documents, device=device).repeat_interleave(length),
        num_nodes=documents * length,
    )


def words(seed: int = 0) -> list[str]:
    """Return the words that :func:`backbone` knows whole, in no order."""
    draw = random.Random(seed)
    known: set[str] = set()
    while len(known) < VOCABULARY - 1052:  # behind 1,000 special and unused pieces and 52 letters
        known.add("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9))))
    return sorted(known, key=lambda word: draw.random())


def backbone(folder: Path, layers: int = 12, width: int = 768, heads: int = 12) -> str:
    """Write a BERT with random weights and its tokenizer; return its folder."""
    special = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
    vocabulary = [special.get(number, f"[unused{number}]") for number in range(1000)]
    vocabulary += [sign + letter for sign in ("", "##") for letter in "abcdefghijklmnopqrstuvwxyz"]
    vocabulary += [word for word in words() if word not in vocabulary][: VOCABULARY - len(vocabulary)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width,
    )  # fmt: skip
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):  # a GPU draws weights in no time
        bert = BertModel(config, add_pooling_layer=False)
    bert.cpu().save_pretrained(folder, safe_serialization=True)
    return str(folder)


def texts(number: int, length: int, seed: int = 0) -> list[str]:
    """Return texts of so many words of the vocabulary, each a word piece, some words much more frequent than others."""
    draw, known = random.Random(seed), words()
    weights = [1 / (rank + 10) for rank in range(len(known))]
    drawn = draw.choices(known, weights, k=number * length)
    return [" ".join(drawn[i * length : (i + 1) * length]) for i in range(number)]
