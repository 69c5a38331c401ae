# SPDX-License-Identifier: Apache-2.0
# Everything a newcomer or the CI needs. The environment is .venv; after `make build` (which `make
# demo` and `make test` imply) the command is .venv/bin/penstock.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell .ci/python)
BIN := .venv/bin
RUST := $(shell find crates core -type f -not -path '*/target/*' 2>/dev/null) Cargo.toml Cargo.lock
C := $(shell find core bpf -name '*.[ch]' -not -name 'vmlinux*' 2>/dev/null)

# The crates that bind to Python use this one, in every target, or each would build them anew.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export UV_PYTHON_DOWNLOADS := never

.PHONY: help demo test build lint format bench crosscheck clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Build, run the demo, and say where its report is
	@$(BIN)/penstock demo

test: build lint ## Check everything: format, lint, types, Rust tests, Python tests
	@echo "== Rust tests"
	@cargo test --workspace --quiet
	@echo "== Python tests, and the command line end to end"
	@$(BIN)/pytest --quiet

build: .venv/.built ## Build the simulator and the command .venv/bin/penstock

.venv/.tools: pyproject.toml uv.lock .ci/prerequisites
	@echo "== Python environment"
	@PYTHON="$(PYTHON)" .ci/prerequisites
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/pip install --quiet "$$(grep -o 'uv==[0-9.]*' pyproject.toml)"
	@$(BIN)/uv sync --quiet --frozen --no-install-project
	@touch $@

.venv/.built: .venv/.tools $(RUST)
	@echo "== Simulator (about a minute when new)"
	@# Offline: what it needs is in place, in the locked versions.
	@UV_OFFLINE=1 $(BIN)/maturin develop --profile module --uv --quiet >.venv/build.log 2>&1 || \
		{ cat .venv/build.log; exit 1; }
	@touch $@

lint: .venv/.tools ## Check format, lint and types, and change nothing
	@echo "== Rust: rustfmt, clippy"
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --quiet -- -D warnings
	@echo "== C: clang-format"
	@$(if $(C),$(BIN)/clang-format --dry-run -Werror $(C))
	@echo "== Python: ruff, mypy"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy

format: .venv/.tools ## Format Rust, C and Python
	@cargo fmt --all
	@$(if $(C),$(BIN)/clang-format -i $(C))
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

bench: build ## Measure the simulator's speed and memory beside its peers
	@echo "== Simulator without Python (about two minutes when new)"
	@cargo build --release --quiet --package penstock-sim --example hops
	@$(BIN)/python bench/bench.py

crosscheck: build ## Compare the simulator with ns-2 (installed by apt where allowed)
	@NEED=ns2 PYTHON="$(PYTHON)" .ci/prerequisites
	@$(BIN)/python crosscheck/crosscheck.py

clean: ## Remove what was built, and .venv; runs/ stays
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis target
