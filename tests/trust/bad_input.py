"""Cases of bad input: texts, and the files of a collection. Others: bad_options.py, bad_models.py.

Every case is a name and what to do. What must come of it is said in ``test_bad_input.py``: a result, or one of the
project's own errors.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

NAN, INF = math.nan, math.inf

#: texts that no program expects, by name. A lone surrogate cannot be written to a file.
TEXTS = {
    "empty": "",
    "unicode blanks": "\u00a0\u2003\u3000",
    "line ends": "w1\u2028w2\u2029w3\u0085w4",
    "controls": "".join(map(chr, [*range(1, 9), 11, 12, *range(14, 32), *range(127, 160)])),
    "escape sequences": "\x1b[31mw1\x1b]0;title\x07\x1b[2J",
    "direction overrides": "\u202ew1 w2\u202c\u2066\u2069\u200f\u061cשלום عليكم",
    "only emoji": "😀👩‍🔬🏳️‍🌈" * 50,
    "stacked accents": "w1" + "\u0301" * 500,
    "zero widths": "w\u200b1\u200c\u200d\ufeffw2",
    "non-characters": "\ue000\ufffe\uffff\U0010ffff\ufffd w1",
    "a word of 1 MB": "a" * 1_000_000,
    "a million words": "w7 " * 333_333,
    "special tokens": "[CLS] w1 [SEP] w2 [MASK] [PAD] [UNK]",
    "markup": "<script>alert(1)</script> & \" ' </textarea>",
    "format strings": "%s %n {0} {{x}} ${y} $(z) `id` \\u0000",
}
SURROGATES = {"a lone high surrogate": "w1 \ud800 w2", "a pair the wrong way": "\ude00\ud83d"}

IDS = {
    **{name: text for name, text in TEXTS.items() if len(text) < 10_000},
    "a path that leaves": "../../../../etc/passwd",
    "two dots": "..",
    "an option": "--help",
    "5,000 letters": "d" * 5000,
    "a number": "007",
    "a hidden id": "\u200b",
}


class Case(NamedTuple):
    """A name, and the files of a collection that are other than those of :data:`COLLECTION`; None takes one away."""

    name: str
    files: dict[str, bytes | None]


def line(**entry: object) -> bytes:
    """Return a line of a corpus, with the characters themselves in it."""
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


GOOD = [{"doc_id": f"d{i}", "title": "w1", "text": " ".join(f"w{(7 * i + j) % 60}" for j in range(10 + 25 * i))}
        for i in range(4)]  # fmt: skip
COLLECTION = {
    "corpus.jsonl": b"".join(line(**entry) for entry in GOOD),
    "queries.test.tsv": b"q1\tw1 w2\nq2\tw30 w31\n",
    "qrels.test.txt": b"q1 0 d1 1\nq2 0 d2 2\n",
    "run.bm25.test.txt": b"".join(b"q%d Q0 d%d %d %d.5 t\n" % (q, d, d + 1, 9 - d) for q in (1, 2) for d in range(3)),
}
CORPUS, QUERIES, QRELS, RUN = COLLECTION


def collections() -> Iterator[Case]:
    """Yield folders of a collection in which one thing is odd."""
    yield Case("nothing is odd", {})
    for name, text in TEXTS.items():
        for key in ("text", "title"):
            yield Case(f"{key}: {name}", {CORPUS: COLLECTION[CORPUS] + line(**{**GOOD[1], "doc_id": "odd", key: text}),
                                          RUN: COLLECTION[RUN] + b"q1 Q0 odd 9 1.0 t\n"})  # fmt: skip
        yield Case(f"query: {name}", {QUERIES: COLLECTION[QUERIES] + b"odd\t" + text.encode() + b"\n",
                                      RUN: COLLECTION[RUN] + b"odd Q0 d1 9 1.0 t\nodd Q0 d0 9 0.5 t\n"})  # fmt: skip
    for name, text in IDS.items():
        odd = text.encode()
        yield Case(f"document id: {name}", {CORPUS: COLLECTION[CORPUS] + line(doc_id=text, text="w1 w2 w3"),
                                            QRELS: COLLECTION[QRELS] + b"q1 0 " + odd + b" 1\n",
                                            RUN: COLLECTION[RUN] + b"q1 Q0 " + odd + b" 9 1.0 t\n"})  # fmt: skip
        yield Case(f"query id: {name}", {QUERIES: COLLECTION[QUERIES] + odd + b"\tw1 w2\n",
                                         RUN: COLLECTION[RUN] + odd + b" Q0 d0 9 1.0 t\n"})  # fmt: skip
        yield Case(f"judgement: {name}", {QRELS: COLLECTION[QRELS] + b"q1 0 " + odd + b" 1\n"})
        yield Case(f"candidate: {name}", {RUN: COLLECTION[RUN] + b"q1 Q0 " + odd + b" 9 1.0 t\n"})
    for name, raw in _corpus_lines().items():
        yield Case(f"corpus line: {name}", {CORPUS: COLLECTION[CORPUS] + raw + b"\n"})
    for file, lines in _lines().items():
        for name, raw in lines.items():
            yield Case(f"{file}: {name}", {file: COLLECTION[file] + raw + b"\n"})
    for file, content in COLLECTION.items():
        yield from _whole_files(file, content)
    for name, text in {"stop words": "the of and to", "points": "?! ...", "emoji": "😀👩‍🔬"}.items():
        asked = b"odd\t" + text.encode() + b"\n"
        yield Case(f"a query of {name} without candidates", {QUERIES: COLLECTION[QUERIES] + asked})
        yield Case(f"only a query of {name}", {QUERIES: asked, QRELS: b"odd 0 d1 1\n", RUN: b"odd Q0 d1 1 1.0 t\n"})
        yield Case(f"only a query of {name}, no candidates", {QUERIES: asked, QRELS: b"odd 0 d1 1\n"})
    yield Case("grades below 0 alone", {QRELS: b"q1 0 d1 -1\nq1 0 d2 -2\nq2 0 d2 -1000\n"})
    yield Case("a split called ..", {"queries....tsv": COLLECTION[QUERIES]})
    yield Case("a split with an escape", {"queries.\x1b[31m.tsv": COLLECTION[QUERIES]})
    yield Case("a run called with a line end", {RUN: None, "run.\n.test.txt": COLLECTION[RUN]})


def _corpus_lines() -> dict[str, bytes]:
    deep = 100_000
    return {
        "blank": b"", "a number": b"4", "a list": b'["d9", "w1"]', "cut": b'{"doc_id": "d9", "text": "w',
        "two objects": line(doc_id="d8", text="a").strip() + line(doc_id="d9", text="b").strip(),
        "lists 10^5 deep": b"[" * deep + b"]" * deep,
        "deep in a field": b'{"doc_id": "d9", "text": ' + b"[" * deep + b"]" * deep + b"}",
        "deep in an unknown field": b'{"doc_id": "d9", "text": "w1", "more": ' + b"[" * 400 + b"]" * 400 + b"}",
        "a number of 10,000 digits": b'{"doc_id": ' + b"9" * 10_000 + b', "text": "w1"}',
        "no id": b'{"text": "w1"}', "another key": b'{"id": "d9", "contents": "w1"}',
        "many other keys": json.dumps({f"key{i}": i for i in range(5000)}).encode(),
        "a key of 1 MB": json.dumps({"k" * 1_000_000: 1}).encode(),
        "text null": b'{"doc_id": "d9", "text": null}', "text NaN": b'{"doc_id": "d9", "text": NaN}',
        "id true": b'{"doc_id": true, "text": "w1"}', "id twice": line(doc_id="d1", text="w1").strip(),
        "a lone surrogate in the id": rb'{"doc_id": "\udfff", "text": "w1"}',
        "a lone surrogate in the title": rb'{"doc_id": "d9", "text": "w1", "title": "\udc80"}',
        "a pair, escaped": rb'{"doc_id": "d9", "text": "\ud83d\ude00 w1"}',
        "NUL in the id, escaped": rb'{"doc_id": "d\u00009", "text": "w1"}',
        "latin-1": '{"doc_id": "d9", "text": "é"}'.encode("latin-1"),
        "surrogates as bytes": b'{"doc_id": "d9", "text": "\xed\xa0\x80"}', "bytes of a pickle": b"\x80\x04\x95\x00.",
    }  # fmt: skip


def _lines() -> dict[str, dict[str, bytes]]:
    numbers = {"nan": b"nan", "-inf": b"-Infinity", "1e999": b"1e999", "hexadecimal": b"0x10",
               "Arabic digits": "١٢".encode(), "underscores": b"1_000", "5,000 digits": b"9" * 5000, "a comma": b"1,5",
               "beyond 64 bits": b"99999999999999999999", "tiny": b"1e-320", "minus": b"-1"}  # fmt: skip
    return {
        QUERIES: {
            "blank": b"", "no id": b"\tw1", "three columns": b"q9\tw1\tw2", "twice": b"q1\tw1",
            "not UTF-8": b"q9\t\xff\xfe", "100,000 tabs": b"\t" * 100_000, "a carriage return inside": b"q9\tw1\rw2",
        },
        QRELS: {
            "blank": b"", "three columns": b"q1 0 d0", "100,000 columns": b"q1 " * 100_000, "twice": b"q1 0 d1 0",
            "unknown document": b"q1 0 d9 1", "unknown query": b"q9 0 d1 1", "not UTF-8": b"q1 0 \xff 1",
            **{f"grade {name}": b"q1 0 d0 " + number for name, number in numbers.items()},
        },
        RUN: {
            "blank": b"", "five columns": b"q1 Q0 d1 1 1.0", "twice": b"q1 Q0 d1 9 0.5 t",
            "unknown document": b"q1 Q0 d9 9 0.5 t", "unknown query": b"q9 Q0 d1 9 0.5 t",
            **{f"rank {name}": b"q1 Q0 d3 " + number + b" 0.5 t" for name, number in numbers.items()},
            **{f"score {name}": b"q1 Q0 d3 9 " + number + b" t" for name, number in numbers.items()},
        },
    }  # fmt: skip


def _whole_files(file: str, content: bytes) -> Iterator[Case]:
    odd = {
        "empty": b"", "only blanks": b"  \n\t\n", "no line end at the end": content.rstrip(b"\n"),
        "two byte order marks": b"\xef\xbb\xbf" * 2 + content, "CRLF": content.replace(b"\n", b"\r\n"),
        "CR": content.replace(b"\n", b"\r"), "UTF-16": content.decode().encode("utf-16"),
        "random bytes": np.random.default_rng(0).bytes(5000), "10,000 NULs": bytes(10_000),
        "cut in the middle": content[: len(content) // 2], "twice": content + content,
        "packed, but not called so": gzip.compress(content),
    }  # fmt: skip
    for name, raw in odd.items():
        yield Case(f"{file}: {name}", {file: raw})
    if file == QUERIES:
        return
    packed = gzip.compress(content)
    gzipped = {
        "packed": packed, "packed twice": gzip.compress(packed), "packed, cut": packed[:-5], "packed, empty": b"",
        "packed, a bit turned": packed[:14] + bytes([packed[14] ^ 4]) + packed[15:],
        "packed, then garbage": packed + b"garbage", "packed, one long line": gzip.compress(bytes(40 << 20), 1),
    }  # fmt: skip
    for name, raw in gzipped.items():
        yield Case(f"{file}: {name}", {file: None, f"{file}.gz": raw})
