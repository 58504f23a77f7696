"""Documentation as pages with headings: from Debian packages, from wheels, and from Debian's list of packages.

Each function reads files that apt and pip have downloaded, and nothing is executed:

* :func:`html_pages`, of a Debian package with documentation in HTML;
* :func:`manual_pages`, of a Debian package, formatted by groff;
* :func:`docstring_pages`, of a wheel: one page for each module;
* :func:`description_pages`, of an index of packages ("Translation-en").
"""

from __future__ import annotations

import ast
import gzip
import html
import io
import re
import subprocess
import tarfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: what of an HTML page is no text, where its headings begin and end, where lines end, and any tag
HIDDEN = re.compile(r"<(script|style|nav|header|footer|head|form|button|svg)\b.*?</\1>|<!--.*?-->", re.S | re.I)
HEADING = re.compile(r"<(/?)h[1-6]\b[^>]*>", re.I)
BLOCK = re.compile(r"</?(?:p|div|li|tr|dt|dd|pre|br|table|ul|ol|section|td|th|blockquote)\b[^>]*>", re.I)
TAG = re.compile(r"<[^>]+>")
#: files of a wheel that are not read
UNREAD = re.compile(r"(^|/)(tests?|testing|_vendor|vendored|migrations)/|/test_")
#: a line that stands on more pages of a source is decoration, too
OFTEN = 20
#: marks around a heading
BEGIN, END = "\ue000", "\ue001"
#: characters of a page that are read
LONGEST = 60_000


@dataclass
class Section:
    """A heading, which may be empty, and the text below it."""

    heading: str
    text: str


@dataclass
class Page:
    """A document: its title and its sections."""

    name: str
    title: str
    sections: list[Section] = field(default_factory=list)


def deb_files(deb: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of the files of a Debian package whose path matches."""
    process = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE)
    with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
        for member in archive:
            if member.isfile() and member.size < 4_000_000 and re.search(pattern, member.name):
                file = archive.extractfile(member)
                assert file is not None  # a regular file
                yield member.name, file.read()
    process.wait()


def html_pages(deb: Path) -> list[Page]:
    """Return the pages of a Debian package's HTML files."""
    pages, seen = [], set[int]()
    for path, content in deb_files(deb, r"\.html?(\.gz)?$"):
        if re.search(r"/(?!en\b)[a-z]{2}(-[A-Z]{2})?/", path):
            continue  # in another language
        content = gzip.decompress(content) if path.endswith(".gz") else content
        text = marked_html(content)
        if len(text) > 200 and hash(text) not in seen:
            seen.add(hash(text))
            pages.append(divided(path, text))
    return without_repetitions(pages)


def marked_html(content: bytes) -> str:
    """Return the text of an HTML page, a line for each block, with marks around each heading."""
    text = HIDDEN.sub(" ", content.decode("utf-8", "replace"))
    text = HEADING.sub(lambda found: END if found[1] else BEGIN, text)
    return html.unescape(TAG.sub("", BLOCK.sub("\n", text)))


def divided(name: str, text: str) -> Page:
    """Return a marked text as a page."""
    before, *parts = re.sub(r"[^\S\n]+", " ", text[:LONGEST]).split(BEGIN)
    sections = [Section("", before)]
    for part in parts:
        heading, _, below = part.partition(END)
        heading = " ".join(heading.replace("¶", " ").split())[:200]
        sections.append(Section(re.sub(r"^[A-Z\d]*\d[.\d]* ", "", heading), below))  # without its number
    return Page(name, "", sections)


def without_repetitions(pages: list[Page]) -> list[Page]:
    """Return pages without empty lines, and without the lines and headings that stand on many of them."""
    headings = Counter(heading for page in pages for heading in {section.heading for section in page.sections})
    decoration = {heading for heading, often in headings.items() if heading and often > max(OFTEN, len(pages) / 2)}
    for page in pages:
        page.sections = [section for section in page.sections if section.heading not in decoration]
        page.title = next((s.heading for s in page.sections if s.heading), "")
    count = Counter[str]()
    lines = [[[line.strip() for line in s.text.split("\n")] for s in page.sections] for page in pages]
    for page in lines:
        count.update({line for section in page for line in section if len(line) < 300})
    for page, sections in zip(pages, lines, strict=True):
        for section, there in zip(page.sections, sections, strict=True):
            section.text = "\n".join(line for line in there if line and count[line] <= OFTEN)
        page.sections = [section for section in page.sections if section.text]
    return [page for page in pages if sum(len(section.text) for section in page.sections) > 200]


def manual_pages(deb: Path) -> Iterator[Page]:
    """Yield a Debian package's manual pages; a title is the one line of "NAME", which is not in the text."""
    for path, content in deb_files(deb, r"/man/man[1-8]/[^/]+\.gz$"):
        source = gzip.decompress(content)
        if len(source) < 1500 or source.startswith(b".so"):
            continue
        command = ["groff", "-mandoc", "-Tascii", "-P-cbou", "-rLL=200n"]
        text = subprocess.run(command, input=source, capture_output=True, timeout=60).stdout.decode("ascii", "replace")
        parts = re.split(r"^([A-Z][^\n]*)\n", text, flags=re.M)
        sections = [Section(h.strip(), re.sub(r"\s+", " ", t)) for h, t in zip(parts[1::2], parts[2::2], strict=True)]
        about = next((section.text for section in sections if section.heading == "NAME"), "")
        _, dash, title = about.partition(" - ")
        kept = [section for section in sections[1:] if section.heading != "NAME" and section.text]
        if dash and kept:
            yield Page(path, title.strip(), kept)


def docstring_pages(wheel: Path) -> Iterator[Page]:
    """Yield the modules of a wheel: each docstring is a section, and its first sentence the heading."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py") and not UNREAD.search(name):
                page = module_page(name, archive.read(name).decode("utf-8", "replace"))
                if page.sections:
                    yield page


def module_page(name: str, source: str) -> Page:
    """Return the docstrings of a module."""
    page = Page(name, name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    if len(source) > 1_500_000 or ('"""' not in source and "'''" not in source):
        return page
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return page
    nodes: list[tuple[str, ast.AST]] = [("", tree)]
    for inside, node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text and len(text) > 40:
                first, _, rest = text.partition("\n\n")
                own = f"{inside}\n" if inside else ""
                if not rest.strip():
                    first, _, rest = text.partition(". ")
                page.sections.append(Section(" ".join(first.split())[:300], own + rest.strip()))
        if isinstance(node, ast.Module | ast.ClassDef):
            named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            nodes += [(f"{inside}.{n.name}".strip("."), n) for n in node.body if isinstance(n, named)]
    return page


def description_pages(index: Iterable[str]) -> Iterator[Page]:
    """Yield what the lines of a file "Translation-en" say of each package: its one line is the title."""
    package, short, long = "", "", list[str]()
    seen = set[str]()
    for line in [*index, "Package: "]:
        if line.startswith("Package: "):
            text = "\n".join(long).replace("\n.\n", "\n")
            if short and len(text) > 150 and text not in seen:
                seen.add(text)
                yield Page(package, short, [Section(short, f"{package}\n{text}")])
            package, short, long = line[9:].strip(), "", []
        elif line.startswith("Description-en: "):
            short = line[16:].strip()
        elif line.startswith(" "):
            long.append(line.strip())


def read_lz4(file: Path) -> io.StringIO:
    """Return the lines of a list that apt keeps compressed."""
    return io.StringIO(
        subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", str(file)], capture_output=True).stdout.decode()
    )
