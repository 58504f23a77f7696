"""Two things that pyproject.toml, where all else stands, cannot say.

README.md for the package index, where a link to a file of the repository must be a whole address. And experiments/,
which an installed package has as socialgraph/experiments: ``socialgraph run`` starts the files there.
"""

import re
import tomllib
from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOT = Path(__file__).parent
#: the end of a Markdown link or picture, whose target is neither an address nor a place on the page
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(readme: str, repository: str, tag: str) -> str:
    """Return a README whose links lead to the files as they were at a tag, and whose pictures show."""

    def link(found: re.Match[str]) -> str:
        picture, text, path = found.groups()
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/{tag}/{path})"

    return LINK.sub(link, readme)


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (ROOT / "README.md").read_text("utf-8")
    setup(
        long_description=absolute(text, project["urls"]["Repository"], f"v{project['version']}"),
        long_description_content_type="text/markdown",
        packages=[
            *find_namespace_packages(include=["socialgraph*"]),
            *(f"socialgraph.{name}" for name in find_namespace_packages(include=["experiments", "experiments.lab*"])),
        ],
        package_dir={"socialgraph.experiments": "experiments"},
    )
