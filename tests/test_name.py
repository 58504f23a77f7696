"""The package index has another package called socialgraph: no line of ours may install that one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: an installation of something by name, and the distribution that is named
INSTALL = re.compile(r"""(?:pip|uv|pipx)\S* install [^\n`"]*?(?<![\w./-])(socialgraph(?:-ir)?)(?![\w./-])""")


def texts() -> list[Path]:
    kinds = ("*.py", "*.md", "*.yaml", "*.toml", "*.cff", "Makefile")
    found = [path for kind in kinds for path in ROOT.rglob(kind)]
    return [path for path in found if not {".venv", ".venv-lowest", "outputs"} & set(path.relative_to(ROOT).parts)]


def test_every_install_line_names_our_distribution():
    named = {path: INSTALL.findall(path.read_text()) for path in texts()}
    assert sum(map(len, named.values())) >= 5  # the lines are found at all
    assert {str(path) for path, found in named.items() if "socialgraph" in found} <= {str(Path(__file__))}
    assert 'name = "socialgraph-ir"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("wanted", ["socialgraph[x]", "'socialgraph[x]'", "-U socialgraph"])
def test_the_wrong_name_is_noticed(wanted):
    assert INSTALL.findall(f"pip install {wanted}") == ["socialgraph"]
