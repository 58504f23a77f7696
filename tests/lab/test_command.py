"""Mistakes of a user end in one line, which says what the class said."""

import importlib
import logging
import os
import re
import sys
import types
import warnings

import pytest
from commands import composed_from
from hydra.utils import instantiate
from lab.command import begin, logged
from lab.mistakes import one_line_errors
from lab.recipe import Recipe


def test_an_error_inside_a_class_is_told_whole(tiny_bert):
    config = composed_from("recipe=maxp", f"model.backbone={tiny_bert[0]}", "+recipe.model.depth=3")
    for make in (lambda: instantiate(config.recipe.model), Recipe(config).model):
        with pytest.raises(SystemExit) as stopped, one_line_errors():
            make()
        assert re.match(r"error: .*socialgraph\.nn.*from_backbone.*'depth'", str(stopped.value))
        assert "\n" not in str(stopped.value)


def test_a_warning_is_one_line_and_said_once(caplog):
    usual = warnings.formatwarning
    with warnings.catch_warnings(), logged(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("always")
        for _ in range(2):
            warnings.warn("queries without candidates", UserWarning, stacklevel=1)
    assert [record.getMessage() for record in caplog.records] == ["warning: queries without candidates"]
    assert warnings.formatwarning is usual


@pytest.mark.parametrize(("on_terminal", "told"), [(False, "1"), (True, None)])
def test_bars_are_for_terminals(monkeypatch, on_terminal, told):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr("sys.path", sys.path.copy())
    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: on_terminal))
    begin()
    assert os.environ.get("TQDM_DISABLE") == told


def test_what_compare_is_told_with_commas_reaches_hydra_as_one_option(monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "")  # the command sets it
    monkeypatch.setattr(sys, "argv", ["compare.py", "partition=edge,node", "partition.k=2,4", "--cfg", "job"])
    importlib.import_module("compare").main()
    assert "varied:\n- partition=edge,node\n- partition.k=2,4\n" in capsys.readouterr().out
