"""The package index has another package called socialgraph: no line of ours may install that one."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: an installation of something by name, and the distribution that is named
INSTALL = re.compile(r"""(?:pip|uv|pipx)\S* install [^\n`"]*?(?<![\w./-])(socialgraph(?:-ir)?)(?![\w./-])""")


def texts() -> list[Path]:
    kinds = {".py", ".md", ".yaml", ".yml", ".toml", ".cff"}
    skipped = {".venv", ".venv-lowest", "site", "outputs", ".git"}
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skipped]  # in place: these are not walked through
        found += [Path(folder, name) for name in names if Path(name).suffix in kinds or name == "Makefile"]
    return found


def test_every_install_line_names_our_distribution():
    named = {path: INSTALL.findall(path.read_text()) for path in texts()}
    assert sum(map(len, named.values())) >= 5  # the lines are found at all
    assert {str(path) for path, found in named.items() if "socialgraph" in found} <= {str(Path(__file__))}
    assert 'name = "socialgraph-ir"' in (ROOT / "pyproject.toml").read_text()
