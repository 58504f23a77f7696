"""An extension of Griffe: docstrings are written for Sphinx's roles, and MkDocs reads Markdown."""

import re
import sys
from pathlib import Path
from typing import Any

from griffe import Extension, Object

sys.path.insert(0, str(Path(__file__).parent))
import formulas

#: :class:`~package.module.Name`, :func:`name`
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)\.?([\w.]+)`")
INLINE_FORMULA = re.compile(r":math:`([^`]+)`")
#: ".. math:: formula", or the formula in the indented lines below
FORMULA = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +\S.*| *(?=\n\1 +\S)))*)", re.MULTILINE)


def as_markdown(text: str) -> str:
    """Return a docstring with formulas as MathML, and names as links where the site has them."""
    text = FORMULA.sub(lambda found: f"{found[1]}{formulas.block(found[2])}\n", text)
    text = INLINE_FORMULA.sub(lambda found: formulas.inline(found[1]), text)
    return ROLE.sub(_name, text)


def _name(found: re.Match[str]) -> str:
    short, path = found.groups()
    shown = path.rpartition(".")[2] if short else path
    if not path.startswith("socialgraph."):
        return f"`{shown}`"
    return f'<autoref optional identifier="{path}"><code>{shown}</code></autoref>'


class Docstrings(Extension):
    """Rewrites each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Take any module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
