"""Mistakes of a user end in one line, which says what the class said."""

import logging
import os
import re
import sys
import types
import warnings

import pytest
from commands import EXPERIMENTS
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


def composed(*overrides):
    with initialize_config_dir(str(EXPERIMENTS / "conf"), version_base="1.3"):
        return compose("config", list(overrides))


def test_an_error_inside_a_class_is_told_whole(tiny_bert):
    from lab.mistakes import one_line_errors
    from lab.recipe import Recipe

    config = composed("recipe=maxp", f"model.backbone={tiny_bert[0]}", "+recipe.model.depth=3")
    for make in (lambda: instantiate(config.recipe.model), Recipe(config.recipe).model):
        with pytest.raises(SystemExit) as stopped, one_line_errors():
            make()
        assert re.match(r"error: .*socialgraph\.nn.*from_backbone.*'depth'", str(stopped.value))
        assert "\n" not in str(stopped.value)
    config = composed("++recipe.circles._target_=no_such_module.Nope")
    told = r"error: recipe\.circles\._target_=no_such_module\.Nope: No module named"
    with pytest.raises(SystemExit, match=told), one_line_errors():
        Recipe(config.recipe)


def test_a_warning_is_one_line_and_said_once(caplog):
    from lab.command import logged

    usual = warnings.formatwarning
    with warnings.catch_warnings(), logged(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("always")
        for _ in range(2):
            warnings.warn("queries without candidates", UserWarning, stacklevel=1)
    assert [record.getMessage() for record in caplog.records] == ["warning: queries without candidates"]
    assert warnings.formatwarning is usual


@pytest.mark.parametrize(("on_terminal", "told"), [(False, "1"), (True, None)])
def test_bars_are_for_terminals(monkeypatch, on_terminal, told):
    from lab.command import begin

    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr("sys.path", sys.path.copy())
    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: on_terminal))
    begin()
    assert os.environ.get("TQDM_DISABLE") == told
