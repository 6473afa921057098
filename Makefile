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

.PHONY: setup run test check lint editor format faults machine clean
.DELETE_ON_ERROR:

setup: $(STAMPS)/jars

run: setup
	@exec $(BIN)/highwater start $(ARGS)

test: check
	@$(BIN)/python -m pytest $(ARGS)

# What takes long: processes are killed at every named point, again and again. `make test` does it once.
SEEDS ?= 20
faults: $(STAMPS)/dev
	@HIGHWATER_FAULT_SEEDS=$(SEEDS) $(BIN)/python -m pytest tests/faults $(ARGS)

# All that `make test` does before pytest.
check: $(STAMPS)/dev machine lint

lint: $(STAMPS)/dev
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --check --quiet $(SOURCES)
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >$(STAMPS)/imports.txt || { cat $(STAMPS)/imports.txt; exit 1; }

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
