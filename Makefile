# The two commands of the README. Each sets up what it needs in a virtual environment of its own.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: help run test test-trust lint docs dist wheel address test-scatter test-lowest clean

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

run: $(VENV)/.run ## rank the documentation of Python with six systems, nothing trained (ten minutes on two busy cores)
	$(BIN)/python experiments/run.py

# one thread for each worker: several workers on the same cores would wait for each other
TESTS := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal
test: $(VENV)/.test ## all tests but those of test-trust
	$(TESTS) --ignore=tests/trust

test-trust: $(VENV)/.test ## what may go wrong: kills, little memory, wrong input, other processes, processors and devices
	$(TESTS) tests/trust

lint: $(VENV)/.test ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

# the notebooks are executed on the way, and what they show is tested; nothing is downloaded
docs: $(VENV)/.test ## the documentation site, in site/ (about 2 minutes)
	HF_HUB_OFFLINE=1 NO_MKDOCS_2_WARNING=1 PYTHONWARNINGS="ignore:IProgress not found" $(BIN)/mkdocs build --strict
	$(BIN)/python -m pytest -q tests/test_notebooks.py

wheel: $(VENV)/.test ## wheel and source distribution, in dist/, checked for the package index
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

dist: address wheel ## the same for publishing: refuses while pyproject.toml has no public address

address:
	@! grep -q '^Repository = .*OWNER' pyproject.toml || { \
	  echo "pyproject.toml: Repository and Documentation have no public address yet: write who has the repository for OWNER"; \
	  exit 1; }

# what calls PyG's scatter, segment or softmax, which take another road there
SCATTERED := tests/test_scatter.py tests/data/test_relevance.py tests/ranking/test_losses.py \
  $(addprefix tests/edges/,test_affinity.py test_dynamic_centrality.py test_patterns.py test_word_table.py) \
  $(addprefix tests/partition/,test_friend_circles.py test_query_windows.py) \
  $(addprefix tests/nn/,test_attention.py test_icli.py test_idcm.py test_late_interaction.py test_maxp.py \
    test_sentence_encoder.py test_sparse_transformer.py)
test-scatter: $(VENV)/.scatter ## the same results with torch-scatter (builds it once, about 5 minutes)
	$(TESTS) $(SCATTERED)

# where another library does the work: transformers, its Trainer, PyG, numba, METIS, igraph, scikit-learn, datasets,
# ir_datasets, bm25s, ir_measures, networkx, PyTerrier, pandas, Hydra
LOWEST := tests/kernels/test_cpu.py tests/inspect/test_networkx.py tests/ranker/test_ranker_files.py \
  $(addprefix tests/nn/,test_bert_weights.py test_socialformer.py test_sparse_transformer.py test_whole_document.py) \
  $(addprefix tests/partition/,test_metis.py test_modularity.py test_spectral.py) \
  $(addprefix tests/data/,test_graph.py test_hub.py test_irds.py test_tokens.py) \
  $(addprefix tests/ranking/,test_checkpoints.py test_evaluate.py test_first_stage.py test_trainer.py) \
  tests/test_options.py tests/test_pyterrier.py tests/test_run.py tests/test_table.py
test-lowest: $(VENV)-lowest/.test ## a part of the tests with the lowest versions that pyproject.toml allows
	$(subst $(BIN),$(VENV)-lowest/bin,$(TESTS)) $(LOWEST)

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.run: $(VENV)/.venv pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e '.[offline]'
	touch $@

$(VENV)/.test: $(VENV)/.venv pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e '.[offline,partitions,data,hub,pyterrier,docs,dev]'
	touch $@

# PyTorch is the one of constraints.txt unless you say otherwise: its lower bound has no small build for CPUs
# (make test-lowest TORCH=2.11.0 takes several GB).
TORCH ?= $(shell sed -n 's/^torch==//p' constraints.txt)
$(VENV)-lowest/.test: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-lowest
	grep -oE '"[A-Za-z0-9-]+>=[0-9.]+"' pyproject.toml | tr -d '"' | sed 's/>=/==/' | grep -vE '^(torch|setuptools)==' \
	  > $(VENV)-lowest/lowest.txt
	echo "torch==$(TORCH)" >> $(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/pip install -q -c $(VENV)-lowest/lowest.txt -e '.[offline,partitions,data,hub,pyterrier,dev]'
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
	rm -rf $(VENV) $(VENV)-lowest
