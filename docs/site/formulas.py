"""Formulas as MathML, which browsers draw by themselves: no script, nothing from another server."""

from latex2mathml.converter import convert


def block(latex: str) -> str:
    """Return a formula that has lines of its own; it scrolls where the page is narrow."""
    latex = " ".join(latex.split())
    if "&" in latex:
        latex = rf"\begin{{align*}}{latex}\end{{align*}}"
    return f'<div class="formula">{convert(latex, display="block")}</div>'


def inline(latex: str) -> str:
    """Return a formula in a line of text."""
    return convert(" ".join(latex.split()))
