"""A collection in the cache: downloaded or from a copy, checked, whole or not there."""

import dataclasses
import functools
import http.server
import shutil
import tarfile
import threading

import pytest
from excerpts import write_covidqa

from socialgraph.data import load_folder
from socialgraph.data.files import built_folder
from socialgraph.data.sources import make, make_collection
from socialgraph.data.sources.covidqa import COVIDQA
from socialgraph.errors import InputError, OptionError
from socialgraph.ranking import BM25


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Return an unpacked source of 19 papers; the digest is that of the collection that is built of it."""
    folder = write_covidqa(tmp_path / "COVID-QA")
    (folder / "README.md").write_text("no file that is read\n")
    built = make_collection("covidqa", BM25(), folder, tmp_path / "first", checked=False)
    monkeypatch.setitem(make.SOURCES, "covidqa", dataclasses.replace(COVIDQA, digest=make.digest(built)))
    return folder


@pytest.fixture
def server(source, tmp_path, monkeypatch):
    """Serve the source's archive as GitHub makes it; return the list of what was asked for."""
    pytest.importorskip("pooch", reason="the extra 'data' is not installed")
    asked = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            asked.append(self.path)

    root = tmp_path / "served"
    root.mkdir()
    with tarfile.open(root / f"{COVIDQA.commit}.tar.gz", "w:gz") as packed:
        packed.add(source, f"COVID-QA-{COVIDQA.commit}")
    handler = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.setattr(make, "ARCHIVE", f"http://127.0.0.1:{running.server_port}/{{commit}}.tar.gz")
        yield asked
        running.shutdown()


def test_a_copy_is_built_in_the_cache_once_and_anew_when_it_was_changed(source, tmp_path, caplog):
    folder = make_collection("covidqa", BM25(), source, tmp_path / "cache")
    assert folder == built_folder("covidqa", tmp_path / "cache")
    assert len(load_folder(folder).documents) == 19
    made, good = folder.stat().st_mtime_ns, (folder / "queries.dev.tsv").read_bytes()
    caplog.set_level("INFO")
    make_collection("covidqa", BM25(), tmp_path / "nowhere", tmp_path / "cache")
    assert "it is there" in caplog.text
    assert folder.stat().st_mtime_ns == made
    (folder / "queries.dev.tsv").write_text("C018-1\tanother question\n")
    make_collection("covidqa", BM25(), source, tmp_path / "cache")
    assert (folder / "queries.dev.tsv").read_bytes() == good


def test_what_a_killed_build_left_is_removed_by_the_next(source, tmp_path):
    parent = built_folder("covidqa", tmp_path / "cache").parent
    (parent / ".covidqa.part" / "source").mkdir(parents=True)
    make_collection("covidqa", BM25(), source, tmp_path / "cache")
    assert [file.name for file in parent.iterdir() if file.name != ".lock"] == ["covidqa"]


def test_an_archive_is_downloaded_once_and_a_damaged_one_is_removed(server, tmp_path):
    folder = make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    shutil.rmtree(folder)
    make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert len(server) == 1
    archive = next((tmp_path / "cache" / "sources").glob("*.tar.gz"))
    archive.write_bytes(archive.read_bytes()[:200])
    shutil.rmtree(folder)
    with pytest.raises(InputError, match=r"covidqa-fb2eb5e24961\.tar\.gz: damaged, and removed .*; call again"):
        make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert not folder.exists()
    make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert len(server) == 2


def test_a_download_that_fails_names_the_way_out(server, tmp_path, monkeypatch):
    monkeypatch.setattr(make, "ARCHIVE", make.ARCHIVE.replace("{commit}", "missing"))
    with pytest.raises(InputError, match=r"missing\.tar\.gz cannot be downloaded .*404.*--source FOLDER") as caught:
        make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert "\n" not in str(caught.value)


def test_another_source_is_refused_and_what_comes_out_otherwise_may_be_kept(source, tmp_path):
    told = r"covidqa: the files did not come out.*https://github.com/deepset-ai/COVID-QA at commit fb2eb5e.*--unchecked"
    with pytest.raises(InputError, match=told):
        make_collection("covidqa", BM25(k1=2.0), source, tmp_path / "cache")
    assert not built_folder("covidqa", tmp_path / "cache").exists()
    assert make_collection("covidqa", BM25(k1=2.0), source, tmp_path / "cache", checked=False).is_dir()
    (source / "LICENSE").unlink()
    with pytest.raises(InputError, match=r"there is no LICENSE; expected an unpacked copy of https://github\.com"):
        make_collection("covidqa", BM25(), source, tmp_path / "other")


def test_a_member_of_an_archive_never_leaves_the_folder(tmp_path):
    bad = tmp_path / "bad.tar.gz"
    (tmp_path / "LICENSE").write_text("x")
    with tarfile.open(bad, "w:gz") as packed:
        for name in ("top/../LICENSE", "top/sub/LICENSE", "/LICENSE", "top/LICENSE"):
            packed.add(tmp_path / "LICENSE", name)
        link = tarfile.TarInfo("top/data/question-answering/200423_covidQA.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    make._unpack(COVIDQA, bad, tmp_path / "out" / "in")
    written = [path for path in (tmp_path / "out").rglob("*") if not path.is_dir()]
    assert written == [tmp_path / "out" / "in" / "LICENSE"]


def test_an_unknown_name_and_a_missing_extra(tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="the collection must be one of wtq, fairytale, covidqa, got 'wikipedia'"):
        make_collection("wikipedia", BM25(), cache=tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(InputError, match=r"pip install 'socialgraph-ir\[data\]'; or --source FOLDER"):
        make_collection("covidqa", BM25(), cache=tmp_path)
