"""``wtq``: crowd workers' questions about one table of a Wikipedia page (WikiTableQuestions 1.0.2).

The source has pages of 2014 as HTML, each with a JSON file that says which page it is and which of its tables is meant
(two tables of one page are two such pairs), and tab-separated questions with the table they are about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from socialgraph.data.collection import Document
from socialgraph.data.sources.source import Contents, Question, Source, one_line, without_repeats
from socialgraph.data.sources.wikipedia import PageText, page_text

_DEV, _TEST = "random-split-1-dev", "pristine-unseen-tables"
_ASKED = ("training", "pristine-seen-tables", _TEST)
_FEWEST = 3  # words of a question
_NOTICE = """\
Source: https://github.com/ppasupat/WikiTableQuestions (commit 7d455a5a), Pasupat and Liang, \
"Compositional Semantic Parsing on Semi-Structured Tables", ACL 2015.
Licence: Creative Commons Attribution-ShareAlike 4.0 (file LICENSE of the source repository, copied here). \
Page text is Wikipedia content by its contributors (CC BY-SA 3.0);
the page id is doc_id without the leading W (https://en.wikipedia.org/?curid=ID) and the revision used is in pages.tsv.
Changes: HTML converted to plain text, questions joined to whole pages, new splits, BM25 runs.
"""


def read(folder: Path) -> Contents:
    """Read the source: a page's id is W and Wikipedia's number."""
    documents: dict[str, Document] = {}
    pages: dict[str, PageText] = {}
    tables: dict[str, tuple[str, int]] = {}  # context -> page, number of the table
    about = ""
    for file in sorted((folder / "page").glob("*/*.json"), key=lambda file: file.relative_to(folder).as_posix()):
        about_table = json.loads(file.read_text(encoding="utf-8"))
        doc_id = f"W{about_table['id']}"
        tables[_context(file)] = doc_id, about_table["tableIndex"]
        if doc_id not in documents:
            pages[doc_id] = page_text(file.with_suffix(".html").read_text(encoding="utf-8"))
            documents[doc_id] = Document(doc_id, pages[doc_id].text, about_table["title"])
            about += f"{doc_id}\t{about_table['revision']}\t{about_table['title']}\n"
    asked = {part: _rows(folder / "data" / f"{part}.tsv") for part in (*_ASKED, _DEV)}
    questions = []
    for query_id, text, context in (row for part in _ASKED for row in asked[part]):
        doc_id, number = tables[context]
        if len(text.split()) >= _FEWEST:
            questions.append(Question(query_id, text, doc_id, pages[doc_id].place(number)))
    held = {part: {tables[context][0] for _, _, context in asked[part]} for part in (_DEV, _TEST)}
    return Contents(
        dict(sorted(documents.items())), without_repeats(questions), partial(_splits, held), {"pages.tsv": about}
    )


def _context(file: Path) -> str:
    """Return what questions call the table of `page/200-page/1.json`: `csv/200-csv/1.csv`."""
    return f"csv/{file.parent.name.removesuffix('-page')}-csv/{file.stem}.csv"


def _rows(file: Path) -> list[tuple[str, str, str]]:
    """Return id, question and table of each row."""
    with open(file, encoding="utf-8", newline="\n") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][1:]
    return [(row[0], one_line(_unescaped(row[1])), row[2]) for row in rows]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "p": "|"}.get(match[1], match[1]), text)


def _splits(held: Mapping[str, set[str]], lengths: Mapping[str, int]) -> dict[str, str]:
    """Return the split of each page: it goes where any of its questions is, to test before dev before train."""
    return {
        doc_id: "test" if doc_id in held[_TEST] else "dev" if doc_id in held[_DEV] else "train" for doc_id in lengths
    }


WTQ = Source(
    name="wtq",
    repository="ppasupat/WikiTableQuestions",
    commit="7d455a5a707b96341ef72aff9428749d443d8aa9",
    files=("LICENSE", "page/*/*.html", "page/*/*.json", *(f"data/{part}.tsv" for part in (*_ASKED, _DEV))),
    digest="c02332ba2b1f4965a5a817d26a983c54736147f6ca1509af08c5ef76137b1864",
    read=read,
    notice=_NOTICE,
    balanced={"dev": 60, "test": 150},
    only_found=True,
)
