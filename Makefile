# One word per task. Everything runs in a private .venv that scripts/setup.py makes; it does nothing
# while pyproject.toml and constraints.txt are the ones it installed. Choose an interpreter with
# `make test PYTHON=python3.12`, otherwise the newest suitable one is found.

PYTHON ?=
TEST ?= tests
PYTEST_ARGS ?=
BENCH ?= compare
METRICS ?= $(wildcard ../shared/data/*.jsonl)

SETUP = "$(or $(PYTHON),python3)" scripts/setup.py $(if $(PYTHON),--python "$(PYTHON)")
BIN = .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup setup-run run demo browser test coverage test-model lint types fmt docs bench metrics check clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## Make .venv with everything that development needs
	@$(SETUP) dev

setup-run:
	@$(SETUP) run

run: setup-run ## Start enfold with a sample conversation, on http://127.0.0.1:8787
	@$(BIN)/enfold serve --sample

demo: setup-run ## Show in the terminal what enfold does
	@$(BIN)/enfold demo

browser: ## Get a browser for the tests of the web UI, where the system allows it
	@$(SETUP) browser

test: setup browser ## The whole test suite (TEST=path and PYTEST_ARGS=... narrow it)
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS) $(TEST)

coverage: setup browser ## The same, and which lines no test runs; half as quick
	$(BIN)/python -m pytest -n auto --cov --cov-report=term $(PYTEST_ARGS) $(TEST)

test-model: ## The tests that ask a real, small model on this machine
	@$(SETUP) model
	$(BIN)/python -m pytest -m model $(PYTEST_ARGS) $(TEST)

lint: setup ## Rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy, strict
	$(BIN)/mypy

fmt: setup ## Put in order what ruff can: formatting, imports, simple rules
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## The documentation site, in build/documentation/site
	$(BIN)/python -m scripts.docs

bench: setup ## Measure beside the peers (BENCH="importing counting" chooses other scripts)
	@for name in $(BENCH); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

metrics: setup-run ## The project's figures beside their goals (METRICS="files" chooses others)
	@$(BIN)/enfold eval --metrics $(METRICS)

check: lint types test ## lint + types + test: what every change passes

clean: ## Remove .venv and everything that tools left behind
	rm -rf .venv .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist htmlcov
	find src tests scripts benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +
