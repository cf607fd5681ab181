# Two commands do everything: `make reproduce` and `make test`. Both set up .venv first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BFCL_EVAL := bfcl-eval==2026.3.23

.PHONY: setup reproduce study test lint types contract unit clean

setup: $(STAMP)

# bfcl-eval pins a hundred packages that its data does not need, hence --no-deps.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "toolpick needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(BFCL_EVAL)
	touch $(STAMP)

reproduce: setup
	$(BIN)/python -m experiments.reproduce

# Every named experiment; stopped and started again, it goes on.
study: setup
	$(BIN)/python -m experiments.study

test: lint types contract unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/pyright --pythonpath $(BIN)/python

contract: setup
	$(BIN)/lint-imports

unit: setup
	$(BIN)/python -m pytest -n 2

clean:
	rm -rf $(VENV) outputs
