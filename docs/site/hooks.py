"""Hooks of MkDocs: the front page is README.md, links to the repository's files lead to the repository."""

import logging
import re
import sys
import tomllib
from pathlib import Path
from posixpath import normpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import formulas

ROOT = Path(__file__).parents[2]
LOG = logging.getLogger("mkdocs.hooks.socialgraph")  # a warning here fails `mkdocs build --strict`

#: the end of a Markdown link: "](../folder/file.py#place)"; a picture's has a "!" before its text
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
FORMULA = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: "::: help rank" stands for what `socialgraph rank --help` prints
HELP = re.compile(r"^::: help ?(\w*)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the addresses from pyproject.toml, their only place."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    config.site_url = urls["Documentation"]
    # not repo_url: the theme would ask GitHub for the number of stars, and pages ask no other server
    config.extra["repository"] = urls["Repository"]
    config.extra["social"] = [{"icon": "fontawesome/brands/github", "link": urls["Repository"], "name": "Repository"}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the front page, and the pictures of pages that lie elsewhere in the repository."""
    readme = LINK.sub(_from_docs, (ROOT / "README.md").read_text())
    files.append(File.generated(config, "index.md", content=readme))
    for page in [file for file in files if file.src_uri.endswith(".md")]:
        for picture, _, target, _ in LINK.findall(page.content_string):
            path = _outside(page.src_uri, target)
            if picture and path and not files.get_file_from_path(f"repository/{path}"):
                files.append(File.generated(config, f"repository/{path}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Send links out of docs/ to the repository; draw formulas; put in what --help prints."""
    home = page.file.src_uri

    def link(found: re.Match[str]) -> str:
        picture, text, target, place = found.groups()
        path = _outside(home, target)
        if path is None:
            return found[0]
        if not (ROOT / path).exists():
            LOG.warning("%s links to %s, which is not in the repository", home, path)
        if picture:
            return f"![{text}]({'../' * home.count('/')}repository/{path})"
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"[{text}]({config.extra['repository']}/{kind}/main/{path}{place or ''})"

    markdown = FORMULA.sub(lambda found: formulas.block(found[1]), markdown)
    return HELP.sub(_help, LINK.sub(link, markdown))


def _from_docs(found: re.Match[str]) -> str:
    """Return a link of README.md as it would be written in docs/."""
    picture, text, target, place = found.groups()
    path = target.removeprefix("docs/") if target.startswith("docs/") else f"../{target}"
    return f"{picture}[{text}]({path}{place or ''})"


def _outside(page: str, target: str) -> str | None:
    """Return the path of a link's target from the repository's root, or None if it lies in docs/."""
    path = normpath(f"docs/{page}/../{target}")
    return None if path.startswith("docs/") else path


def _help(found: re.Match[str]) -> str:
    from socialgraph.cli import parser

    program: Any = parser()
    if found[1]:
        (commands,) = (one for one in program._actions if one.choices)
        program = commands.choices[found[1]]
    return f"```text\n{program.format_help()}```"
