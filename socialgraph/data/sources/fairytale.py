"""``fairytale``: questions by education experts about one section of a tale (FairytaleQA).

The source has two CSV files for each tale: its sections, and the questions with the sections they were written for.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from socialgraph.data.collection import Document
from socialgraph.data.sources.source import BOUNDS, Contents, Question, Source, bucket, one_line, sha1, without_repeats

_STORIES = "data-by-train-split/section-stories/all"
_QUESTIONS = "data-by-train-split/questions"
_PARTS = ("train", "val", "test")  # the authors' split, which has too few tales for a test by length
_TEST, _DEV = 0.37, 0.09  # shares of each bucket's tales
_NOTICE = """\
Source: https://github.com/uci-soe/FairytaleQAData (commit a24ddc1), Xu et al., \
"Fantastic Questions and Where to Find Them: FairytaleQA", ACL 2022.
Licence: Apache License 2.0 (file LICENSE of the source repository, copied here); tales from Project Gutenberg \
(public domain).
Changes: sections joined to whole tales, questions used as queries, BM25 runs.
"""


def read(folder: Path) -> Contents:
    """Read the source: a tale's id is its file's name; it has no title, which would give the answer away."""
    documents: dict[str, Document] = {}
    questions: list[Question] = []
    for part in _PARTS:
        for file in sorted((folder / _QUESTIONS / part).glob("*-questions.csv")):
            doc_id = file.name.removesuffix("-questions.csv")
            sections = [row["text"] for row in _rows(folder / _STORIES / f"{doc_id}-story.csv")]
            documents[doc_id] = Document(doc_id, "\n".join(sections))
            questions += _questions(doc_id, sections, _rows(file))
    return Contents(dict(sorted(documents.items())), questions, _splits)


def _questions(doc_id: str, sections: list[str], rows: list[dict[str, str]]) -> list[Question]:
    by_id: dict[str, Question] = {}
    for row in rows:
        query_id = f"{doc_id}-{row['question_id']}"
        one = Question(query_id, one_line(row["question"]), doc_id, _place(sections, row["cor_section"]))
        by_id.setdefault(query_id, one)  # an id that comes twice: the first counts
    return without_repeats(by_id.values())


def _rows(file: Path) -> list[dict[str, str]]:
    # Line ends inside a text become \n, of whatever kind they are: some tales have the old Macintosh's.
    with open(file, encoding="utf-8-sig") as lines:
        return list(csv.DictReader(lines))


def _place(sections: list[str], numbers: str) -> tuple[int, int] | None:
    """Return the characters from the first to the last of the sections that ``numbers`` names: ``"2"``, ``"3,5"``.

    Sections are counted from 1 in the order of the file: one tale's numbers have a mistake.
    """
    ends = list(accumulate(len(text) + 1 for text in sections))
    named = [int(number) - 1 for number in re.findall(r"\d+", numbers)]
    within = [row for row in named if 0 <= row < len(sections)]
    if not within:
        return None
    return min(ends[row] - len(sections[row]) - 1 for row in within), max(ends[row] - 1 for row in within)


def _splits(lengths: Mapping[str, int]) -> dict[str, str]:
    """Divide the tales of each bucket of lengths in the order of a hash of their ids: 37 % test, 9 % dev."""
    splits = {}
    for number in range(len(BOUNDS) + 1):
        drawn = sorted((one for one in lengths if bucket(lengths[one]) == number), key=lambda one: sha1(f"ft{one}"))
        test, dev = round(_TEST * len(drawn)), round(_DEV * len(drawn))
        for place, doc_id in enumerate(drawn):
            splits[doc_id] = "test" if place < test else "dev" if place < test + dev else "train"
    return splits


FAIRYTALE = Source(
    name="fairytale",
    repository="uci-soe/FairytaleQAData",
    commit="a24ddc17364666b7c13a425b9970c87368b03417",
    files=("LICENSE", f"{_STORIES}/*.csv", f"{_QUESTIONS}/*/*.csv"),
    digest="43bef48e06a022eb25d2b54b27cde3714755fb0876b1dcd7ba19c310be298c2d",
    read=read,
    notice=_NOTICE,
    balanced={"test": 150},
)
