"""A page is kept whole, and in a notebook it stands in a frame that it cannot leave."""

import html
import re

import pytest

from socialgraph.errors import OutputError
from socialgraph.inspect.page import Page

HOSTILE = """<!DOCTYPE html><script>parent.document.title = "mine"</script>"></iframe><img src=x onerror='alert(1)'>"""


def test_it_is_saved_as_it_is(tmp_path):
    path = Page(HOSTILE).save(tmp_path / "a" / "page.html")
    assert path.read_text("utf-8") == HOSTILE


def test_a_folder_is_no_file_to_save_it_to(tmp_path):
    with pytest.raises(OutputError, match="is a folder: give the path of a file in it") as refused:
        Page(HOSTILE).save(tmp_path)
    assert "\n" not in str(refused.value)
    assert not [*tmp_path.iterdir()]


def test_a_notebook_shows_it_in_a_frame_of_its_own():
    shown = Page(HOSTILE)._repr_html_()
    frame = re.fullmatch(r'<iframe srcdoc="([^"<>]*)" sandbox="allow-scripts" style="[^"<>]*"></iframe>', shown)
    assert frame, shown
    assert html.unescape(frame[1]) == HOSTILE
    assert "allow-same-origin" not in shown


def test_its_repr_is_short():
    assert repr(Page(HOSTILE)) == "Page()"
