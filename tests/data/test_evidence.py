"""socialgraph.data.evidence: where a question's answer stands."""

import pytest

from socialgraph.data import Document, Tokens
from socialgraph.data.evidence import Evidence, evidence_nodes, read_evidence
from socialgraph.errors import InputError

HEADING = "qid\tdoc_id\tstart_tok\tend_tok\n"


@pytest.mark.parametrize("line", ["q\t\t3\t4", "q\td\t-3\t4", "q\td\t4\t4", "q1\td\t3\t4"])
def test_a_line_that_is_not_what_it_should_be_is_named(tmp_path, line):
    (tmp_path / "evidence.tsv").write_text(f"{HEADING}q1\td\t3\t4\n{line}\n")
    with pytest.raises(InputError, match=r"evidence\.tsv:3: expected a query that is new, a document, and two whole"):
        read_evidence(tmp_path)


def test_the_real_tables(shared):
    for name, count in (("wtq", 21962), ("fairytale", 10562)):
        assert len(read_evidence(shared / "data" / name)) == count


def test_a_place_in_the_text_is_behind_the_title_in_the_document(tiny_bert):
    tokens, document = Tokens(tiny_bert[0], max_document_length=4), Document("d", "w1 w2 w3 w4 w5", "w9 w8 w7")
    place = Evidence("d", 1, 3).in_full_text(document, tokens)
    whole = Tokens(tiny_bert[0]).document(document)
    assert tokens.words(whole[place.start : place.end]) == ["w2", "w3"]
    assert tokens.whole_length(document.full_text) == whole.numel() == 8
    assert Evidence("d", 1, 3).in_full_text(Document("d", document.text), tokens) == Evidence("d", 1, 3)


def test_the_evidence_of_a_folder_is_found_for_any_tokenizer(tmp_path):
    text = "Once upon a time a dog barked. The answer is unbelievable weather. The end."
    document = Document("d", text, "A title of five words")
    tokens = Tokens("minilm")
    start = len(tokens.tokenizer(text[: text.index("The answer")], add_special_tokens=False)["input_ids"])
    size = len(tokens.tokenizer("The answer is unbelievable weather", add_special_tokens=False)["input_ids"])
    (tmp_path / "evidence.tsv").write_text(f"{HEADING}q\td\t{start}\t{start + size}\n")
    ids = tokens.document(document)
    first, last = evidence_nodes("q", document, tokens.tokenizer, tmp_path)
    assert tokens.tokenizer.decode(ids[first:last]) == "the answer is unbelievable weather"
    assert evidence_nodes("q2", document, tokens.tokenizer, tmp_path) is None
    assert evidence_nodes("q", Document("other", text), tokens.tokenizer, tmp_path) is None
    docs = Document("library/m", "m.first\nOne thing.\nm.second\nWhat is asked for.\nm.third\nMore.", "m")
    first, last = evidence_nodes("m.second", docs, tokens.tokenizer)
    assert tokens.tokenizer.decode(tokens.document(docs)[first:last]) == "m. second what is asked for."
