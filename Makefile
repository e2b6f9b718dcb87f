# Each target sets up what it needs, on a machine with nothing but Python 3.11+ and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# At a terminal pip shows its progress.
QUIET  := $(shell test -t 2 || echo -q)
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input $(QUIET)
JOBS   ?= auto
# Steps that do not need each other run side by side.
MAKEFLAGS += -j2
SITE   := $(BIN)/python scripts/site/build.py --generator $(VENV)/docs/bin/zensical

.PHONY: install run test test-all test-extended coverage check format bench bench-smoke matrix examples conformance servers containers docs release-check soak lock clean
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

# A .venv of another Python than the one that was asked for is made anew; without PYTHON=… it stays as it is.
VERSION = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>&1)
ifneq ($(origin PYTHON),file)
ifneq ($(wildcard $(VENV)/.made),)
ifneq ($(call VERSION,$(PYTHON)),$(call VERSION,$(BIN)/python))
.PHONY: $(VENV)/.made
endif
endif
endif

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dragoman needs Python 3.11 or later; this is %s. Say which one to use: make PYTHON=python3.12" % sys.version.split()[0])'
	@echo "Making $(VENV) with Python $(call VERSION,$(PYTHON))"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# With the libraries of model providers, so that a model can be connected at once.
$(VENV)/.run: $(VENV)/.made requirements/models.txt pyproject.toml
	@echo "Installing what dragoman needs to run"
	@$(PIP) install --require-hashes -r requirements/models.txt
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@echo "Installing what the checks and tests need"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.peers: tests/peers/package.json tests/peers/package-lock.json $(VENV)/.dev
	@if command -v npm >/dev/null; then echo "Installing the TypeScript peers"; \
	  cd tests/peers && npm ci --silent --no-audit --no-fund; \
	else echo "Node is not here: the tests against the TypeScript SDK will be skipped, and will say so"; fi
	@touch $@

$(VENV)/.conformance: tests/conformance/package.json tests/conformance/package-lock.json $(VENV)/.dev
	@if command -v npm >/dev/null; then echo "Installing the conformance suite of MCP"; \
	  cd tests/conformance && npm ci --silent --no-audit --no-fund; \
	else echo "Node is not here: the conformance suite of MCP will not be run"; fi
	@touch $@

$(VENV)/.page: scripts/page/package.json scripts/page/package-lock.json $(VENV)/.dev
	@if command -v npm >/dev/null; then echo "Installing what the checks of the page need"; \
	  cd scripts/page && npm ci --silent --no-audit --no-fund; \
	else echo "Node is not here: the JavaScript of the page will not be checked"; fi
	@touch $@

# The reference describes the adapters for LangGraph, so it needs that library.
$(VENV)/.docs: requirements/docs.txt $(VENV)/.dev
	@echo "Installing what the documentation site is built with"
	@$(BIN)/python -m venv $(VENV)/docs
	@$(VENV)/docs/bin/python -m pip --disable-pip-version-check --no-input -q install --require-hashes -r requirements/docs.txt
	@touch $@

$(VENV)/.browser: scripts/browser $(VENV)/.dev
	@scripts/browser
	@touch $@

# After the browser, because only one process at a time may ask for Debian's packages.
$(VENV)/.postgresql: scripts/postgresql $(VENV)/.dev $(VENV)/.browser
	@scripts/postgresql
	@touch $@

# After these, for the same reason.
$(VENV)/.bubblewrap: scripts/bubblewrap $(VENV)/.dev $(VENV)/.postgresql
	@scripts/bubblewrap
	@touch $@

install: $(VENV)/.run ## Set up .venv; the command is then .venv/bin/dragoman

run: $(VENV)/.run ## Serve an agent in a web page and open it: no key, no network; ARGS="--port 9000" has options
	@$(BIN)/dragoman serve $(ARGS)

# What the tests use apart from Python.
TEST_TOOLS := $(VENV)/.dev $(VENV)/.peers .cache/peers/acp-v2/.made $(VENV)/.conformance $(VENV)/.browser $(VENV)/.postgresql $(VENV)/.bubblewrap
PYTEST = $(BIN)/pytest -n $(JOBS) --dist worksteal

test: $(TEST_TOOLS) ## Run the tests, without the extended ones
	@$(PYTEST) -m "not extended"

test-all: $(TEST_TOOLS) ## Run all tests
	@$(PYTEST)

test-extended: $(TEST_TOOLS) ## Run only what "make test" leaves out
	@$(PYTEST) -m extended

coverage: $(TEST_TOOLS) ## Run "make test" and print the line and branch coverage of each package
	@$(BIN)/python scripts/measure_coverage.py

CHECKS := check-types check-style check-imports check-generated check-page check-docs
.PHONY: $(CHECKS)
check: $(CHECKS) ## Format, lint, types, import direction, names, generated code, the page, the documents

check-types: $(VENV)/.dev
	@$(BIN)/basedpyright

check-style: $(VENV)/.dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

check-imports: $(VENV)/.dev
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check_names.py

check-generated: $(VENV)/.dev
	@$(BIN)/python scripts/generate_types.py --check
	@$(BIN)/python scripts/generate_page_types.py --check
	@$(BIN)/python scripts/generate_profile_schema.py --check
	@$(BIN)/python scripts/generate_later_fields.py --check

check-page: $(VENV)/.page
	@scripts/page/check

check-docs: $(VENV)/.docs
	@$(SITE)

format: $(VENV)/.dev ## Format the code and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.cache/bench/.made: requirements/run.txt pyproject.toml
	@echo "Installing dragoman by itself, as a user has it"
	@$(PYTHON) -m venv .cache/bench
	@.cache/bench/bin/python -m pip --disable-pip-version-check --no-input -q install --require-hashes -r requirements/run.txt
	@.cache/bench/bin/python -m pip --disable-pip-version-check --no-input -q install --no-build-isolation --no-deps -e .
	@touch $@

.cache/peers/fast-agent/.made: OLDEST = 12
.cache/peers/%/.made: requirements/bench-%.txt bench/install
	@PYTHON=$(PYTHON) bench/install $* $(OLDEST)
	@touch $@

BENCH_PEERS := $(patsubst requirements/bench-%.txt,.cache/peers/%/.made,$(wildcard requirements/bench-*.txt))

bench: $(VENV)/.dev $(VENV)/.peers .cache/bench/.made $(BENCH_PEERS) ## Measure against the peers, and write docs/performance.md; PARTS="log replay"
	@$(BIN)/python -m bench $(PARTS) --json bench/results.json
	@$(BIN)/python -m bench.page

bench-smoke: $(TEST_TOOLS) ## Run each benchmark once, as small as it can be
	@$(BIN)/python -m bench --smoke

.cache/peers/.matrix: bench/matrix/install bench/matrix/package.json bench/matrix/package-lock.json bench/matrix/registry.json $(VENV)/.dev
	@bench/matrix/install
	@touch $@

matrix: $(VENV)/.peers $(BENCH_PEERS) .cache/peers/.matrix ## Check every agent that installs here
	@$(BIN)/python -m bench.matrix

examples: $(VENV)/.dev ## Run the examples for Inspect and harbor with the real libraries
	@PYTHON=$(PYTHON) examples/evals/check

$(VENV)/.servers: tests/real_servers/package.json tests/real_servers/package-lock.json requirements/servers.txt $(VENV)/.dev $(VENV)/.peers
	@if command -v npm >/dev/null; then echo "Installing real MCP servers"; \
	  (cd tests/real_servers && npm ci --silent --no-audit --no-fund); \
	else echo "Node is not here: the MCP servers of npm will not be tried"; fi
	@$(BIN)/python -m venv $(VENV)/servers
	@$(VENV)/servers/bin/pip install -q --require-hashes -r requirements/servers.txt
	@touch $@

servers: $(VENV)/.servers ## Try our MCP client with real servers of npm and PyPI
	@$(BIN)/python -m tests.real_servers

docs: $(VENV)/.docs ## Build the documentation as a site, build/site/index.html, searchable without a server
	@$(SITE)
	@echo "Open build/site/index.html"

release-check: $(VENV)/.dev ## Build what is published, check it, and try the wheel with every Python that is here; TAG=v0.1.0
	@rm -rf dist
	@$(BIN)/python scripts/release/check.py --release $(if $(TAG),--tag $(TAG))
	@for python in $$(scripts/release/pythons); do $$python scripts/release/try_wheel.py dist/*.whl || exit 1; done

conformance: $(VENV)/.conformance ## Run the official conformance suite of MCP for clients
	@$(BIN)/python -m tests.conformance

containers: $(VENV)/.dev ## Run the files of deploy/ and --run-in docker:IMAGE with podman (Linux, root; installs it on Debian)
	@$(BIN)/python -m tests.containers

soak: $(VENV)/.dev $(VENV)/.peers $(VENV)/.browser $(VENV)/.postgresql ## The long fuzz and kill loops
	@DRAGOMAN_SOAK=1 $(BIN)/pytest -n 0 -m soak --timeout 3600
	@$(BIN)/python -m tests.fuzz --seconds 300

lock: ## Pin the dependencies anew (needs uv)
	@scripts/lock

clean: ## Remove what was made
	@rm -rf $(VENV) tests/peers/node_modules tests/conformance/node_modules tests/real_servers/node_modules scripts/page/node_modules dist build .pytest_cache .ruff_cache .hypothesis
