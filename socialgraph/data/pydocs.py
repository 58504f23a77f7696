"""`pydocs`, the embedded collection: the documentation of the Python that runs, built on the spot.

Documents are real and long, from a line to many thousand words, and nothing is downloaded:

* one for each module of the standard library: the docstrings of the module (or of all modules of the package,
  tests left out) with the names they belong to. Sources are parsed, never run. Modules written in C are
  imported for their docstrings where that has no side effect (a fixed list).
* one for each chapter of the language reference in `pydoc_data.topics`.

A query is the first sentence of a function's or method's docstring; the one relevant document is its module,
from which that sentence is taken out wherever it stands. The chapters of the language reference are never
relevant. What comes out depends on the version of Python (and, through modules that exist on some platforms
only, on the platform), so the collection's name says the version.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import NamedTuple

from socialgraph.data.collection import Collection, Document, Split, hash_split
from socialgraph.errors import InputError, OptionError

# Modules written in C that only define things when they are imported. Left out: those that touch the terminal
# (readline, curses), open a display (_tkinter), are deprecated or are meant for tests.
_WRITTEN_IN_C = frozenset(  # one string reads better than ninety
    """
    _abc _ast _asyncio _bisect _blake2 _bz2 _codecs _collections _contextvars _csv _ctypes _datetime _decimal
    _elementtree _functools _hashlib _heapq _imp _io _json _locale _lsprof _lzma _md5 _multibytecodec
    _multiprocessing _opcode _operator _pickle _posixshmem _posixsubprocess _queue _random _sha1 _sha2 _sha256
    _sha3 _sha512 _signal _socket _sqlite3 _sre _ssl _stat _statistics _string _struct _symtable _thread
    _tokenize _tracemalloc _typing _uuid _warnings _weakref _winapi _zoneinfo array atexit binascii builtins
    cmath errno faulthandler fcntl gc grp itertools marshal math mmap msvcrt nt posix pwd pyexpat resource
    select sys syslog termios time unicodedata winreg winsound zlib
    """.split()  # noqa: SIM905
)
_TEST_FOLDERS = {"test", "tests", "idle_test", "__pycache__", "site-packages"}
_MIN_DOCUMENT_WORDS = 20  # what is shorter is no document
_WORDS_PER_QUERY = 50  # a short module gives fewer queries, so that taking them out does not empty it
_MAX_QUERY_WORDS = 40
_SENTENCE_END = re.compile(r"[.!?](?=\s+[A-Z(\"'`*]|$)")


# What a module or class written in C holds. Anything else was put there at run time.
_C_MEMBERS = (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)


class _Entry(NamedTuple):
    """A docstring, its paragraphs on one line each."""

    name: str
    is_function: bool
    paragraphs: list[str]


def load_pydocs(
    max_queries: int = 12,
    min_words: int = 5,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
) -> Collection:
    """Build the collection from the running Python's own documentation; takes a few seconds, once a process.

    The sentences of a module are tried in the order of a hash of their function's full name, and the first
    that are fit become its queries: at least `min_words` words with 2 letters together, and at most 40; not
    repeated in any other document; not a call signature. A module gives at most one query for every 50 of its
    words. Query ids are the full names (`shutil.copytree`), document ids are `library/<module>` and
    `reference/<chapter>`. Splits are by module, by a hash of its name (`hash_split`). There are no
    candidates: retrieve them (`retrieve_candidates` keeps documents that are relevant in dev or test out of
    the training candidates).

    Args:
        max_queries: At most so many queries for one module, 1 or more.
        min_words: Shortest query, in words, 4 or more (less is no question).
        shares: Shares of train, dev and test among the modules.

    Raises:
        InputError: This Python has no sources of its standard library.
        OptionError: An option is out of its range.
    """
    if max_queries < 1 or min_words < 4:
        raise OptionError(f"max_queries must be >= 1 and min_words >= 4, got {max_queries} and {min_words}")
    modules = _modules()
    queries = _choose(modules, max_queries, min_words)
    documents = {}
    for module, entries in modules.items():
        text = _without(_text(entries), queries[module].values())
        documents[f"library/{module}"] = Document(f"library/{module}", text, module)
    for topic, paragraphs in _topics().items():
        documents[f"reference/{topic}"] = Document(f"reference/{topic}", "\n".join(paragraphs), topic)
    splits = {}
    for split, part in hash_split(modules, shares).items():
        origin = {query_id: module for module in part for query_id in queries[module]}
        asked = {query_id: queries[module][query_id] for query_id, module in origin.items()}
        splits[split] = Split(asked, {query_id: {f"library/{module}": 1} for query_id, module in origin.items()})
    version = ".".join(map(str, sys.version_info[:3]))
    return Collection(f"pydocs-{version}", documents, splits)


# ---- documents ------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _modules() -> dict[str, list[_Entry]]:
    """Return the docstrings of every top-level module that has enough of them, by name, in sorted order."""
    library = Path(sysconfig.get_path("stdlib"))
    if not (library / "os.py").exists():
        raise InputError(f"{library}: no sources of the standard library here, so pydocs cannot be built")
    modules = {}
    for name in sorted(sys.stdlib_module_names):
        if name == "pydoc_data":
            continue
        if (library / f"{name}.py").is_file():
            entries = list(_parsed(library / f"{name}.py", name))
        elif (library / name).is_dir():
            entries = [entry for file, inner in _package(library / name) for entry in _parsed(file, inner)]
        elif name in _WRITTEN_IN_C:
            entries = list(_imported(name))
        else:
            continue
        if len(_text(entries).split()) >= _MIN_DOCUMENT_WORDS:
            modules[name] = entries
    return modules


def _package(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield (file, dotted module name) of a package in the order of the names, tests left out."""
    modules = []
    for file in folder.rglob("*.py"):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        if not _TEST_FOLDERS & set(parts):
            modules.append((".".join(parts).removesuffix(".__init__"), file))
    for name, file in sorted(modules):
        yield file, name


def _parsed(file: Path, module: str) -> Iterator[_Entry]:
    """Yield the docstrings of a source file without running it."""
    try:
        with tokenize.open(file) as source:
            tree = ast.parse(source.read())
    except (SyntaxError, UnicodeDecodeError, OSError):
        return  # not Python of this version: some distributions ship such files
    if paragraphs := _paragraphs(ast.get_docstring(tree)):
        yield _Entry(module, False, paragraphs)
    yield from _inside(tree.body, module)


def _inside(body: Iterable[ast.AST], prefix: str) -> Iterator[_Entry]:
    """Yield the docstrings of classes and functions, in source order; also below `if`, `try` and `with`."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{node.name}"
            if paragraphs := _paragraphs(ast.get_docstring(node)):
                yield _Entry(name, not isinstance(node, ast.ClassDef), paragraphs)
            if isinstance(node, ast.ClassDef):
                yield from _inside(node.body, name)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            for field in ("body", "handlers", "orelse", "finalbody"):
                yield from _inside(getattr(node, field, ()), prefix)


def _imported(name: str) -> Iterator[_Entry]:
    """Yield the docstrings of a module written in C."""
    if importlib.util.find_spec(name) is None:
        return
    try:
        module = importlib.import_module(name)
    except ImportError:
        return  # known to this Python but not built on this machine
    if paragraphs := _paragraphs(module.__doc__):
        yield _Entry(name, False, paragraphs)
    yield from _members(module, name)


def _members(owner: ModuleType | type, prefix: str) -> Iterator[_Entry]:
    inherited = {getattr(object, name).__doc__ for name in dir(object)}
    for name, value in sorted(vars(owner).items()):
        is_class = isinstance(value, type)
        if not is_class and not isinstance(value, _C_MEMBERS):
            continue
        if f"__{name}__" in vars(owner):
            continue  # a hook (sys.excepthook): programs replace it, its original has the other name
        doc = getattr(value, "__doc__", None)
        elsewhere = is_class and value.__module__ not in (getattr(owner, "__name__", ""), prefix.lstrip("_"))
        if elsewhere or (isinstance(owner, type) and (is_class or doc in inherited)):
            continue  # belongs to another module, or is what every object has
        if paragraphs := _paragraphs(doc if isinstance(doc, str) else None):
            yield _Entry(f"{prefix}.{name}", not is_class and callable(value), paragraphs)
        if is_class:
            yield from _members(value, f"{prefix}.{name}")


def _topics() -> dict[str, list[str]]:
    """Return the paragraphs of every chapter of the language reference."""
    from pydoc_data.topics import topics

    return {
        "-".join(name.split()): _paragraphs(text)
        for name, text in sorted(topics.items())
        if len(text.split()) >= _MIN_DOCUMENT_WORDS
    }


def _paragraphs(text: str | None) -> list[str]:
    """Return the paragraphs, each on one line, so that a sentence broken over lines is one string."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text or "").strip())
    return [" ".join(block.split()) for block in blocks if block.strip()]


def _text(entries: Iterable[_Entry]) -> str:
    return "\n".join("\n".join([entry.name, *entry.paragraphs]) for entry in entries)


# ---- queries --------------------------------------------------------------------------------------------


def _choose(modules: dict[str, list[_Entry]], max_queries: int, min_words: int) -> dict[str, dict[str, str]]:
    """Return query id -> sentence for each module."""
    candidates = {module: _candidates(entries, min_words) for module, entries in modules.items()}
    texts = {f"library/{module}": _folded(_text(entries)) for module, entries in modules.items()}
    texts |= {f"reference/{topic}": _folded("\n".join(paragraphs)) for topic, paragraphs in _topics().items()}
    holders = _holders([s for sentences in candidates.values() for s in sentences.values()], texts)
    chosen: dict[str, dict[str, str]] = {}
    for module, sentences in candidates.items():
        limit = min(max_queries, len(texts[f"library/{module}"].split()) // _WORDS_PER_QUERY)
        by_text: dict[str, str] = {}  # folded sentence -> the first that says it
        for query_id in sorted(sentences, key=lambda name: hashlib.sha256(name.encode()).digest()):
            if len(by_text) < limit and holders[sentences[query_id]] == {f"library/{module}"}:
                by_text.setdefault(_folded(sentences[query_id]), query_id)
        chosen[module] = {query_id: sentences[query_id] for query_id in sorted(by_text.values())}
    return chosen


def _candidates(entries: Iterable[_Entry], min_words: int) -> dict[str, str]:
    """Return function -> first sentence, where that sentence can be a query."""
    sentences: dict[str, str] = {}
    for name, is_function, paragraphs in entries:
        if not is_function or name in sentences:
            continue  # a name can be defined twice (a property's setter): the first counts
        end = _SENTENCE_END.search(paragraphs[0])
        sentence = paragraphs[0][: end.start() if end else None].strip().rstrip(".:;!?,")
        words = [word for word in sentence.split() if re.search(r"[^\W\d_]{2}", word)]
        is_prose = sentence[:1].isalpha() and "->" not in sentence and ">>>" not in sentence
        is_call = re.match(r"[\w.]+\(", sentence) is not None
        if len(words) >= min_words and len(sentence.split()) <= _MAX_QUERY_WORDS and is_prose and not is_call:
            sentences[name] = sentence
    return sentences


def _holders(sentences: Iterable[str], texts: dict[str, str]) -> dict[str, set[str]]:
    """Return for each sentence the documents that hold it, upper and lower case alike.

    One pass over all words looks for the sentences' first four words; only where these stand is the whole
    compared.
    """
    by_head: dict[tuple[str, ...], list[str]] = {}
    for sentence in sentences:
        by_head.setdefault(tuple(_words(_folded(sentence))[:4]), []).append(sentence)
    holders: dict[str, set[str]] = {sentence: set() for alike in by_head.values() for sentence in alike}
    for doc_id, text in texts.items():
        words = _words(text)
        for head in set(zip(words, words[1:], words[2:], words[3:], strict=False)) & by_head.keys():
            for sentence in by_head[head]:
                if _folded(sentence) in text:
                    holders[sentence].add(doc_id)
    return holders


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _folded(text: str) -> str:
    return " ".join(text.split()).lower()


def _without(text: str, sentences: Iterable[str]) -> str:
    """Return the text without these sentences, in upper and lower case alike."""
    # The longest first: it may hold a shorter one.
    for sentence in sorted(sentences, key=lambda one: (-len(one), one)):
        pattern = re.compile(r"\s+".join(map(re.escape, sentence.split())), re.IGNORECASE)
        while pattern.search(text):  # again, as taking one out can join its neighbours into another
            text = pattern.sub("", text)
    # The stop of a sentence that is gone goes too.
    lines = (re.sub(r"^[\s.,:;!?]+", "", line) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
