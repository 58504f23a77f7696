"""Folders with the mistakes that people make: what is wrong is said before anything is ranked, in one line each."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from commands import composed_from
from lab.task import load_task
from ledger_of_cases import Ledger, as_error, told  # noqa: F401  (a fixture)
from odd_folders import CASES, GOOD, Odd

from socialgraph.ranking import evaluate


def written(folder: Path, odd: Odd) -> Path:
    folder.mkdir()
    for name, content in (GOOD | odd.files).items():
        if content is not None:
            (folder / name).write_bytes(content)
    return folder


def loaded(folder: Path, odd: Odd) -> None:
    """Load the folder as all commands do, and measure its candidates."""
    with as_error():
        task = load_task(composed_from("data=folder", f"data.path={folder}", *odd.typed).data)
        _, split = task.dev, task.test
    assert 0 <= evaluate(split.qrels, split.candidates, ["RR@10"]).mean["RR@10"] <= 1


def test_odd_folders(tmp_path):
    ledger = Ledger("folders with mistakes")
    for number, (name, odd) in enumerate(CASES.items()):
        folder, said = written(tmp_path / str(number), odd), []

        def do(folder: Path = folder, odd: Odd = odd, said: list[str] = said) -> None:
            try:
                with warnings.catch_warnings(record=True) as warned:
                    warnings.simplefilter("always")
                    loaded(folder, odd)
            finally:
                said += [str(one.message) for one in warned if issubclass(one.category, UserWarning)]
            assert odd.error is None, "nobody has noticed"

        ledger.case(name, do, odd.error or "nothing", sound=odd.error is None)
        if odd.warning and not any(re.search(odd.warning, one) for one in said):
            ledger.wrong.append(f"{name}: no warning {odd.warning!r}, but {said}")
        if odd.warning is None and odd.error is None and said:
            ledger.wrong.append(f"{name}: a warning of what is right: {said}")
    ledger.close(at_least=30)
