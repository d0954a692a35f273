# Slipway's commands for people and for CI. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
BIN := .venv/bin
ENVIRONMENT := deploy/environment
REQUIREMENTS := deploy/requirements

# Options of `slipway up`, such as UP_ARGS="--port 9000", and of pytest, such as PYTEST_ARGS="-k claim".
UP_ARGS ?=
# Three processes for two cores: half of the suite's time is spent waiting for programs that it has started.
PYTEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder
BENCH_ARGS ?=

# The checkers import the settings, which want an address and keys; nothing connects with these.
CHECK_ENV := DATABASE_URL=postgresql:///unused SLIPWAY_SECRET_KEY=only-for-the-checkers \
	SLIPWAY_ENCRYPTION_KEYS=check:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=

.PHONY: help up test lint format dev screenshots soak bench lock clean

help: ## List all targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

up: ## Set up and start Slipway on this machine; Ctrl-C stops it
	@$(ENVIRONMENT) console terraform
	@exec $(BIN)/slipway up --with-parent $(UP_ARGS)

test: ## Set up, lint, and run the whole suite
	@$(ENVIRONMENT) dev embedded-terraform browser emulators
	@$(MAKE) lint
	@$(BIN)/pytest $(PYTEST_ARGS)

lint: ## Check style, types, import rules and migrations
	@$(ENVIRONMENT) dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/djangofmt --quiet --check templates
	@$(CHECK_ENV) $(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.migrations_check

format: ## Rewrite the sources in the project's style
	@$(ENVIRONMENT) dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/djangofmt --quiet templates

dev: ## Set up the development environment in .venv
	@$(ENVIRONMENT) dev

screenshots: ## Take the README's pictures again, from the real product
	@$(ENVIRONMENT) dev terraform browser
	@$(BIN)/python -m tests.journeys.screenshots

soak: ## The long forms: a console away for a whole minute, and the long model test
	@$(ENVIRONMENT) dev embedded-terraform
	@SOAK=1 $(BIN)/pytest tests/chaos/runner -k whole_minute
	@LONG_MODEL_TEST=1 $(BIN)/pytest tests/concurrency/test_model.py --timeout 3600

bench: ## Measure against the raw limits and a peer; exit code 1 when a target is missed
	@$(ENVIRONMENT) dev embedded-terraform bench
	@$(BIN)/python -m bench $(BENCH_ARGS)

lock: ## Compile the hashed requirement files again from pyproject.toml
	@deploy/requirements/lock

clean: ## Remove the environment and all caches (never the data directory)
	@rm -rf .venv .venv.lock .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist test-results
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
