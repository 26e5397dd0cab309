# Everything runs in .venv, which is built when it is missing and renewed when pyproject.toml changes.
.DEFAULT_GOAL := help
.PHONY: help demo reproduce-smoke test test-slow test-lowest docs docs-check lint format bench bench-large clean
MAKEFLAGS += --no-print-directory

VENV := .venv
STAMP := $(VENV)/.installed
BIN := $(VENV)/bin
# A pyenv shim can exist without working, so ask the interpreter itself.
BASE_PYTHON ?= $(shell python3.11 -c "print('python3.11')" 2>/dev/null || echo python3)

# An environment belongs to the folder it was built in: after a move, or without its Python, it is built anew.
ifneq ($(wildcard $(STAMP)),)
  ifneq ($(shell cat $(STAMP)):$(shell $(BIN)/python -c "print('works')" 2>/dev/null),$(CURDIR):works)
    $(shell rm -f $(STAMP))
  endif
endif

help:  ## show the commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(STAMP)  ## plain training and crust on digits with wrong labels, side by side (under 3 minutes)
	@$(BIN)/crust demo $(ARGS)

reproduce-smoke: $(STAMP)  ## every table and figure of the paper in small, to see that all of it runs (under 10 minutes)
	@rm -rf runs/reproduce-smoke
	@$(BIN)/crust reproduce all --scale smoke -o runs/reproduce-smoke $(ARGS)

# Two processes of one thread each; one that is done early takes over tests of the other. JOBS=1: this process alone.
JOBS ?= 2
test: lint  ## lint, types, fast tests of the code, on two cores (under 10 minutes)
	@$(if $(filter-out 1,$(JOBS)),OMP_NUM_THREADS=1) $(BIN)/python -m pytest \
	  $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist worksteal) $(ARGS)

test-slow: $(STAMP)  ## tests that take minutes, or the network
	@$(BIN)/python -m pytest -m slow $(ARGS)

# torch and what is built for it stay as they are: their old builds bring another CUDA each.
NEWER := torch tensorboard torchvision timm ray apricot-select submodlib-py mkdocs-material mkdocstrings
LOWEST := .venv-lowest
test-lowest:  ## the fast tests with the lowest versions of what crust needs, in .venv-lowest
	@test -d $(LOWEST) || $(BASE_PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install -qq --disable-pip-version-check uv
	@python3 tools/lowest_versions.py $(addprefix --keep ,$(NEWER)) > $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/uv pip install -q --python $(LOWEST)/bin/python -c $(LOWEST)/lowest.txt -e '.[plot,dev]'
	@$(LOWEST)/bin/python -m pytest $(ARGS)

docs-check: $(STAMP)  ## the pages, the README and what they conclude say what the result lines in results/ say
	@$(BIN)/python -m pytest results $(ARGS)

docs: $(VENV)/.docs  ## the documentation site, in site/; broken links are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "look at: site/index.html; with search: $(BIN)/python -m http.server -b 127.0.0.1 -d site"

lint: $(STAMP)  ## ruff and mypy
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "not formatted: run make format"; exit 1; }
	@$(BIN)/mypy --no-error-summary

format: $(STAMP)  ## bring all files into form
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format

bench: $(STAMP)  ## speed and memory beside the peers
	@$(BIN)/python -m benchmarks.startup
	@$(BIN)/python -m benchmarks.selection $(ARGS)
	@$(BIN)/python -m benchmarks.training
	@$(BIN)/python -m benchmarks.theory --small

bench-large: $(STAMP)  ## the same for a million points, training at scale, and the spectrum of ResNet-32 on CIFAR-10 (CRUST_DATA)
	@$(BIN)/python -m benchmarks.selection --large $(ARGS)
	@$(BIN)/python -m benchmarks.scale --large
	@$(BIN)/python -m benchmarks.ranks
	@for case in exact groups files; do $(BIN)/python -m benchmarks.embeddings $$case || exit 1; done
	@$(BIN)/python -m benchmarks.theory --only ResNet-32 --output benchmarks/results/theory-large.json

clean:  ## remove what make has built
	@rm -rf $(VENV) site build dist demo-output .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The stamp goes first and comes back last: an installation that was cut off has none, and is built anew.
# One pip command for all, so that torch and torchvision are chosen as a pair.
$(STAMP): pyproject.toml
	@if [ -f $@ ]; then echo "pyproject.toml has changed: renewing $(VENV)"; rm -f $@; else \
	  echo "building $(VENV) with $$($(BASE_PYTHON) --version); the first time takes some minutes"; \
	  $(BASE_PYTHON) -m venv --clear $(VENV); fi
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[vision,plot,ray,dev,bench]'
	@printf '%s' '$(CURDIR)' > $@

$(VENV)/.docs: $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[docs]'
	@touch $@
