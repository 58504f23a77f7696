# The two commands of the README. Each sets up what it needs in a virtual environment of its own.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: help run test lint test-scatter clean

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

run: $(VENV)/.run ## train and compare PARADE and Socialformer on the documentation of Python (about 8 minutes)
	$(BIN)/python experiments/run.py

test: $(VENV)/.test ## all tests
	$(BIN)/python -m pytest

lint: $(VENV)/.test ## style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

test-scatter: $(VENV)/.scatter ## the same results with torch-scatter (builds it once, about 5 minutes)
	$(BIN)/python -m pytest tests/test_scatter.py tests/nn tests/partition tests/edges

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.run: $(VENV)/.venv pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e '.[offline]'
	touch $@

$(VENV)/.test: $(VENV)/.venv pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e '.[offline,partitions,inspect,dev]'
	touch $@

# torch-scatter comes as source and is built against the installed torch; the wheel is kept for the next time, by
# version of torch. (pip's own cache does not tell versions of torch apart, hence --no-cache-dir.)
WHEELS ?= $(HOME)/.cache/socialgraph/wheels
$(VENV)/.scatter: $(VENV)/.test
	$(BIN)/pip install -q -c constraints.txt setuptools wheel
	tag=$$($(BIN)/python -c 'import sys, torch; print(f"{sys.implementation.cache_tag}-torch{torch.__version__}")'); \
	mkdir -p "$(WHEELS)/$$tag"; \
	$(BIN)/pip install -q --no-deps --no-index --find-links "$(WHEELS)/$$tag" torch-scatter 2>/dev/null || { \
	  $(BIN)/pip wheel -q --no-cache-dir --no-build-isolation --no-deps -w "$(WHEELS)/$$tag" torch-scatter==2.1.2 && \
	  $(BIN)/pip install -q --no-deps --no-index --find-links "$(WHEELS)/$$tag" torch-scatter; }
	touch $@

clean: ## remove the virtual environment
	rm -rf $(VENV)
