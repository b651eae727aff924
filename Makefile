# Everything runs in .venv, which scripts/setup.py creates. It is updated only if pyproject.toml or
# constraints.txt has changed. Choose an interpreter with `make test PYTHON=python3.12`; the default is
# the newest suitable one.

PYTHON ?=
PORT ?= 8787
TEST ?= tests
PYTEST_ARGS ?=
# One process more than there are cores: tests also wait for servers, browsers and databases.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
BENCH ?= compare
BENCH_ARGS ?=
METRICS ?= $(wildcard ../shared/data/*.jsonl)

SETUP = "$(or $(PYTHON),python3)" scripts/setup.py $(if $(PYTHON),--python "$(PYTHON)")
BIN = .venv/bin

# Tests start hundreds of Python processes, which load compiled modules in two thirds of the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-run run demo browser test coverage test-model test-agents lint types fmt docs bench proof torture guard metrics mutants check release clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: ## Install everything for development into .venv
	@$(SETUP) dev

setup-run:
	@$(SETUP) run

run: setup-run ## Start enfold with sample conversations, on http://127.0.0.1:8787 (PORT=8788 takes another)
	@$(BIN)/enfold serve --sample --port $(PORT)

demo: setup-run ## Show what enfold does, in the terminal
	@$(BIN)/enfold demo

browser: ## Install a browser for the tests of the web UI, if the system allows it
	@$(SETUP) browser

test: setup browser ## Run the test suite (TEST=path and PYTEST_ARGS=... select a part)
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS) $(TEST)

coverage: setup browser ## Run the test suite with coverage; takes twice as long
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term $(PYTEST_ARGS) $(TEST)

test-model: ## Run the tests with a small model on this machine
	@$(SETUP) model
	$(BIN)/python -m pytest -m model $(PYTEST_ARGS) $(TEST)

test-agents: setup ## Run real coding agents through enfold, against a scripted provider
	@$(BIN)/python -m scripts.agents
	$(BIN)/python -m pytest -m agents -n 2 $(PYTEST_ARGS) tests/agents

mutants: setup ## Change rules one at a time, and see if the tests notice (a sample, half an hour)
	$(BIN)/python -m scripts.mutants

lint: setup ## Check rules and formatting with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## Check types with mypy
	$(BIN)/mypy

fmt: setup ## Format the code and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## Build the documentation site in build/documentation/site
	$(BIN)/python -m scripts.docs

bench: setup ## Compare with other libraries (BENCH_ARGS=--quick; BENCH="importing counting" runs others)
	@for name in $(BENCH); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py $(BENCH_ARGS) || exit 1; done

proof: setup ## Write the tables and the plot of docs/evaluation.md anew (15 minutes; PROOF_ARGS=--quick only prints)
	$(BIN)/python benchmarks/proof.py $(PROOF_ARGS)

guard: setup ## Check that nothing has become much slower
	$(BIN)/python benchmarks/guard.py

torture: setup ## Kill processes in the middle of their work; nothing may be missing (some minutes)
	$(BIN)/python -m tests.torture $(TORTURE_ARGS)

metrics: setup-run ## Measure the project's goals (METRICS="files" selects conversations)
	@$(BIN)/enfold eval --metrics $(METRICS)

check: lint types test ## Run lint, types and test; required for every change

release: setup ## Build wheel and source archive in dist, and check them in fresh environments
	$(BIN)/python -m scripts.release

clean: ## Remove .venv and all build and cache files
	rm -rf .venv .cache .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist htmlcov
	find src tests scripts benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +
