# make run    sets up what is missing, then starts everything: PostgreSQL, agent, dashboard
# make test   sets up what is missing, then checks and tests everything
#
# A Python of 3.11 or later is all that must be there. PYTHON=… names another one.

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; break; fi; done)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
SOURCES := engine dashboard pages benchmarks tests

.PHONY: setup run test pytest check lint editor format faults soak machine screenshots clean
.DELETE_ON_ERROR:

setup: $(STAMPS)/jars

run: setup
	@exec $(BIN)/highwater start $(ARGS)

test: check
	@$(MAKE) --no-print-directory pytest

# Two processes, each with a server and a Spark of its own; the browser's tests, the longest, begin at once.
# Most of what a JVM of the tests does is to compile itself: the plain compiler takes a third off its processor time.
pytest: export SPARK_SUBMIT_OPTS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
pytest:
	@$(BIN)/python -m pytest --numprocesses 2 --no-loadscope-reorder $(ARGS)

# What takes long: processes are killed at every named point, again and again. `make test` does it once.
SEEDS ?= 20
AGENT_FAULTS := $(addprefix tests/agent/test_,source_faults.py source_load.py control_faults.py killed_procedures.py)
faults: $(STAMPS)/dev
	@HIGHWATER_FAULT_SEEDS=$(SEEDS) $(BIN)/python -m pytest tests/faults $(AGENT_FAULTS) $(ARGS)

# Scans, cleanups, collections and reads of a day, compressed: what grew is printed, and fails.
MINUTES ?= 60
soak: $(STAMPS)/dev
	@$(BIN)/python -m benchmarks.soak --minutes $(MINUTES)

# All that `make test` does before pytest.
check: $(STAMPS)/dev machine lint

lint: $(STAMPS)/dev
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --check --quiet $(SOURCES)
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/bandit --quiet --configfile pyproject.toml --recursive engine dashboard pages benchmarks .ci
	@$(BIN)/lint-imports --no-logo >$(STAMPS)/imports.txt || { cat $(STAMPS)/imports.txt; exit 1; }

# Pictures of every page, light and dark, into docs/images: over a fresh home with a load; some minutes.
screenshots: $(STAMPS)/dev machine
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)

# The console's editor, anew from the versions in its package.json: needs npm, which nothing else does.
editor:
	@cd dashboard/editor && npm ci --silent && npx esbuild exports.js --bundle --minify --format=esm --outfile=codemirror.js && rm -r node_modules

format: $(STAMPS)/dev
	@$(BIN)/ruff check --quiet --fix $(SOURCES)
	@$(BIN)/ruff format --quiet $(SOURCES)

# Chromium for the browser's tests, pgbench for a real load.
machine:
	@.ci/machine

clean:
	rm -rf $(VENV)

$(STAMPS)/venv:
	@$(if $(PYTHON),,echo 'Highwater needs Python 3.11 or later. Install it, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3'; exit 1;) \
	echo "Making $(VENV) with $$($(PYTHON) --version)"; \
	$(PYTHON) .ci/make_venv.py $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/packages: requirements.txt pyproject.toml | $(STAMPS)/venv
	@echo 'Installing the pinned packages'
	@$(PIP) --use-pep517 -r requirements.txt
	@$(PIP) --no-deps --editable .
	@touch $@

$(STAMPS)/jars: $(STAMPS)/packages engine/runtime/jars.py
	@$(BIN)/python -m engine.runtime.java
	@echo "Fetching Delta's jars"
	@$(BIN)/python -m engine.runtime.jars
	@touch $@

$(STAMPS)/dev: $(STAMPS)/jars requirements-dev.txt
	@echo 'Installing the pinned packages of the tests'
	@$(PIP) -r requirements-dev.txt
	@touch $@
