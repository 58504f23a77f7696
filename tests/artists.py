"""What stands in a figure of matplotlib."""

import io

import matplotlib as mpl
import pytest

#: for a module whose figures must raise no warning of matplotlib, nor of a letter that no font has
no_warnings = pytest.mark.filterwarnings("error:::matplotlib", "error:Glyph")


def find(figure, gid):
    return figure.findobj(lambda artist: artist.get_gid() == gid)


def one(figure, gid):
    (artist,) = find(figure, gid)
    return artist


def texts(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


def render(figure, kind="png"):
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=40)
    assert kind != "png" or file.getvalue()[:4] == b"\x89PNG"
