"""A collection in the cache: downloaded or from a copy, checked, whole or not there."""

import dataclasses
import functools
import http.server
import tarfile
import threading

import pytest
from excerpts import write_covidqa

from socialgraph.data import load_folder
from socialgraph.data.files import built_folder
from socialgraph.data.sources import fetch, make, make_collection
from socialgraph.data.sources.covidqa import COVIDQA
from socialgraph.errors import InputError, OptionError
from socialgraph.ranking import BM25


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Return an unpacked source of 19 papers; its digests are those of the collection."""
    folder = write_covidqa(tmp_path / "COVID-QA")
    (folder / "README.md").write_text("no file that is read\n")
    known = dataclasses.replace(COVIDQA, digest=fetch.digest(COVIDQA, folder))
    monkeypatch.setitem(make.SOURCES, "covidqa", known)
    built = make_collection("covidqa", BM25(), folder, tmp_path / "first", checked=False)
    monkeypatch.setattr(make, "digests", lambda name: {file.name: make.content(file) for file in built.iterdir()})
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
        monkeypatch.setattr(fetch, "ARCHIVE", f"http://127.0.0.1:{running.server_port}/{{commit}}.tar.gz")
        yield asked
        running.shutdown()


def test_a_copy_is_built_in_the_cache_once(source, tmp_path, caplog):
    folder = make_collection("covidqa", BM25(), source, tmp_path / "cache")
    assert folder == built_folder("covidqa", tmp_path / "cache")
    assert len(load_folder(folder).documents) == 19
    assert [file.name for file in folder.parent.iterdir() if file.name != ".lock"] == ["covidqa"]
    made = folder.stat().st_mtime_ns
    caplog.set_level("INFO")
    make_collection("covidqa", BM25(), tmp_path / "nowhere", tmp_path / "cache")
    assert "it is there" in caplog.text
    assert folder.stat().st_mtime_ns == made


def test_what_a_killed_build_left_is_removed_by_the_next(source, tmp_path, monkeypatch):
    def killed(*_):
        left.extend(path for path in parent.iterdir() if path.is_dir())
        raise KeyboardInterrupt

    left, parent = [], built_folder("covidqa", tmp_path / "cache").parent
    with monkeypatch.context() as patch:
        patch.setattr(make, "write_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            make_collection("covidqa", BM25(), source, tmp_path / "cache")
    (left[0] / "source").mkdir(parents=True)  # as it was when the process was killed
    make_collection("covidqa", BM25(), source, tmp_path / "cache")
    assert [file.name for file in parent.iterdir() if file.name != ".lock"] == ["covidqa"]


def test_a_changed_folder_is_built_anew(source, tmp_path):
    folder = make_collection("covidqa", BM25(), source, tmp_path / "cache")
    good = (folder / "queries.dev.tsv").read_bytes()
    (folder / "queries.dev.tsv").write_text("C018-1\tanother question\n")
    make_collection("covidqa", BM25(), source, tmp_path / "cache")
    assert (folder / "queries.dev.tsv").read_bytes() == good


def test_an_archive_is_downloaded_once_and_only_what_is_read_is_unpacked(server, source, tmp_path, monkeypatch):
    seen = []
    read = make.SOURCES["covidqa"].read

    def watched(folder):
        seen.append(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
        return read(folder)

    monkeypatch.setitem(make.SOURCES, "covidqa", dataclasses.replace(make.SOURCES["covidqa"], read=watched))
    folder = make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert seen == [["LICENSE", "data/question-answering/200423_covidQA.json"]]
    (folder / "NOTICE").unlink()
    make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert len(server) == 1
    archive = next((tmp_path / "cache" / "sources").glob("*.tar.gz"))
    archive.write_bytes(archive.read_bytes()[:200])
    (folder / "NOTICE").unlink()
    with pytest.raises(InputError, match=r"covidqa-fb2eb5e24961\.tar\.gz: damaged, and removed .*; call again"):
        make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert folder.is_dir()  # what was there stays
    make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert len(server) == 2


def test_a_download_that_fails_names_the_way_out(server, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "ARCHIVE", fetch.ARCHIVE.replace("{commit}", "missing"))
    with pytest.raises(InputError, match=r"missing\.tar\.gz cannot be downloaded .*404.*--source FOLDER") as caught:
        make_collection("covidqa", BM25(), cache=tmp_path / "cache")
    assert "\n" not in str(caught.value)


def test_another_source_is_refused(source, tmp_path):
    (source / "LICENSE").write_text("Another licence.\n")
    with pytest.raises(InputError, match=r"not those of https://github.com/deepset-ai/COVID-QA at commit fb2eb5e"):
        make_collection("covidqa", BM25(), source, tmp_path / "cache")
    (source / "LICENSE").unlink()
    with pytest.raises(InputError, match=r"there is no LICENSE; expected an unpacked copy of https://github\.com"):
        make_collection("covidqa", BM25(), source, tmp_path / "cache")
    assert not built_folder("covidqa", tmp_path / "cache").exists()


def test_what_comes_out_otherwise_is_refused_or_kept(source, tmp_path):
    with pytest.raises(InputError, match=r"covidqa: 3 of 14 files did not come out.*run\.bm25\.dev\.txt\.gz") as caught:
        make_collection("covidqa", BM25(k1=2.0), source, tmp_path / "cache")
    assert "--unchecked" in str(caught.value)
    assert not built_folder("covidqa", tmp_path / "cache").exists()
    assert make_collection("covidqa", BM25(k1=2.0), source, tmp_path / "cache", checked=False).is_dir()


def test_a_member_of_an_archive_never_leaves_the_folder(tmp_path):
    bad = tmp_path / "bad.tar.gz"
    (tmp_path / "LICENSE").write_text("x")
    with tarfile.open(bad, "w:gz") as packed:
        for name in ("top/../LICENSE", "top/sub/LICENSE", "/LICENSE", "top/LICENSE"):
            packed.add(tmp_path / "LICENSE", name)
        link = tarfile.TarInfo("top/data/question-answering/200423_covidQA.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    fetch.unpack(COVIDQA, bad, tmp_path / "out" / "in")
    written = [path for path in (tmp_path / "out").rglob("*") if not path.is_dir()]
    assert written == [tmp_path / "out" / "in" / "LICENSE"]


def test_an_unknown_name_and_a_missing_extra(tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="there is no collection 'wikipedia' to build; there are: "):
        make_collection("wikipedia", BM25(), cache=tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(InputError, match=r"pip install 'socialgraph-ir\[data\]'; or --source FOLDER"):
        make_collection("covidqa", BM25(), cache=tmp_path)


def test_every_collection_has_digests_of_its_files():
    for name, source in make.SOURCES.items():
        known = make.digests(name)
        assert {"corpus.jsonl.gz", "evidence.tsv.gz", "LICENSE", "NOTICE", "doc_tokens.tsv"} <= known.keys()
        assert {f"run.bm25.{split}_bal.txt.gz" for split in source.balanced} <= known.keys()
        assert all(len(value) == 64 for value in [source.digest, *known.values()])
        assert len(source.commit) == 40
