"""``covidqa``: questions by biomedical experts about 98 scientific papers (COVID-QA, version of 23 April 2020).

The source is one JSON file in SQuAD's format: a paper's whole text, questions, and where each answer starts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from socialgraph.data.collection import Document
from socialgraph.data.sources.source import Contents, Question, Source, one_line, sha1, without_repeats

_FILE = "data/question-answering/200423_covidQA.json"
_NOTICE = """\
Source: https://github.com/deepset-ai/COVID-QA (commit fb2eb5e), data/question-answering/200423_covidQA.json; \
Moeller et al., "COVID-QA", NLP-COVID workshop at ACL 2020.
Licence: Apache License 2.0 (file LICENSE of the source repository, copied here); paper texts from CORD-19 \
(open-access licences of the single papers).
"""


def read(folder: Path) -> Contents:
    """Read the source: papers are C000, C001, ... in its order; a question's id is its paper's and a running number."""
    with open(folder / _FILE, encoding="utf-8") as file:
        papers = [paper["paragraphs"][0] for paper in json.load(file)["data"]]
    documents = {f"C{number:03d}": Document(f"C{number:03d}", paper["context"]) for number, paper in enumerate(papers)}
    asked = []
    for doc_id, paper in zip(documents, papers, strict=True):
        for question in paper["qas"]:
            start = question["answers"][0]["answer_start"]
            # the answer's first character: that is where it starts, and all that is kept of its place
            asked.append(Question("", one_line(question["question"]), doc_id, (start, start + 1)))
    kept = without_repeats(asked, everywhere=True)
    questions = [one._replace(query_id=f"{one.doc_id}-{number}") for number, one in enumerate(kept)]
    return Contents(documents, questions, _splits)


def _splits(lengths: Mapping[str, int]) -> dict[str, str]:
    """Divide the papers by a hash of their ids: on average 30 of 100 to test, 10 to dev."""
    parts = {doc_id: int(sha1(f"cov{doc_id}")[:12], 16) % 100 for doc_id in lengths}
    return {doc_id: "test" if part < 30 else "dev" if part < 40 else "train" for doc_id, part in parts.items()}


COVIDQA = Source(
    name="covidqa",
    repository="deepset-ai/COVID-QA",
    commit="fb2eb5e249618457e5359806601086c635c8eb8f",
    files=("LICENSE", _FILE),
    digest="324ca830512b51901d264be429debf233c9cae5a8494533b40e424422845aec7",
    read=read,
    notice=_NOTICE,
)
