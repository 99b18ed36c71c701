# Every target does its own set-up: a fresh machine needs Python 3.11 or newer, make and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-lowest check bench format clean

demo: $(STAMP)  ## the whole way on a synthetic city
	$(BIN)/attnmove demo -o demo
	@echo 'attnmove is $(BIN)/attnmove here'

test: $(STAMP)  ## every test; those that need ../shared or Java say so and skip
	$(BIN)/python -m pytest

check: $(STAMP)  ## format, lint, types, layers
	$(BIN)/ruff format --check src tests experiments benchmarks
	$(BIN)/ruff check src tests experiments benchmarks
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py tests/test_surface.py -k "not in_the_order"

bench: $(STAMP)  ## points a second beside pandas; about two minutes
	$(BIN)/attnmove bench prepare

test-lowest:  ## every test on the oldest versions pyproject.toml admits
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet -e '.[dev]' -c .ci/lowest.txt
	$(VENV)-lowest/bin/python -m pytest

format: $(STAMP)
	$(BIN)/ruff format src tests experiments benchmarks
	$(BIN)/ruff check --fix src tests experiments benchmarks

clean:
	rm -rf $(VENV) $(VENV)-lowest demo

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@
