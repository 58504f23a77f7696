"""Documentation that the reader never sees, as a collection to test on.

Questions are titles or headings, which are taken out of the text wherever they stand; the relevant document is the page
they came from.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from lab.reader.sources import Page

from socialgraph.data import Collection, Document, Split


def collection_of(name: str, pages: Iterable[Page], titles: bool, each: int = 2) -> Collection:
    """Return pages as a collection with one split, "test".

    Args:
        name: of the collection.
        pages: its documents.
        titles: ask the titles of pages; else headings of sections, those of the longest ones of each page.
        each: at most so many headings of a page.
    """
    pages = list(pages)
    count = Counter(heading for page in pages for heading in {page.title, *(s.heading for s in page.sections)})
    asked: dict[str, tuple[int, str]] = {}
    for number, page in enumerate(pages):
        by_length = sorted(page.sections, key=lambda section: -len(section.text))
        some = [page.title] if titles else [s.heading for s in by_length if len(s.text) > 300]
        fit = [one for one in some if 3 <= len(one.split()) <= 25 and count[one] <= (2 if titles else 1)]
        for one in fit[:each]:
            asked.setdefault(one, (number, f"{name}-{len(asked)}"))
    documents = {}
    for number, page in enumerate(pages):
        lines = [line for s in page.sections for line in (s.heading, *s.text.split("\n")) if line]
        kept = [line for line in lines if re.sub(r"^[A-Z\d]*\d[.\d]* ", "", line.strip()) not in asked]
        documents[f"{name}/{number}"] = Document(f"{name}/{number}", "\n".join(kept))
    queries = {query_id: text for text, (_, query_id) in asked.items()}
    qrels = {query_id: {f"{name}/{number}": 1} for number, query_id in asked.values()}
    return Collection(name, documents, {"test": Split(queries, qrels)})


def write_collection(collection: Collection, folder: Path) -> None:
    """Write a collection of one split as :func:`~socialgraph.data.load_folder` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    split = collection["test"]
    texts = ({"doc_id": one.doc_id, "text": one.text} for one in collection.documents.values())
    (folder / "corpus.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    (folder / "queries.test.tsv").write_text("".join(f"{q}\t{text}\n" for q, text in split.queries.items()))
    lines = (f"{q} 0 {d} {grade}\n" for q, some in split.qrels.items() for d, grade in some.items())
    (folder / "qrels.test.txt").write_text("".join(lines))
