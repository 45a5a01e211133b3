# Two commands for a fresh machine: `make demo` and `make test`. Everything is installed into .venv from
# hash locks; nothing else on the machine is touched, but for the rule `debian` below.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
# uv installs a lock much faster than pip. Where there is none for the machine, or it reaches no
# index (it does not read pip's settings), pip installs the same lock.
LOCKED = { $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1) || \
	  $(PIP) --require-hashes -r $(1); }
DATA ?=

# Tests run in two processes: each does its linear algebra in one thread.
test audit: export OPENBLAS_NUM_THREADS = 1

.PHONY: demo test suite beside debian types spark lint audit bench docs lock clean

demo: $(VENV)/.run
	@rm -rf demo
	$(BIN)/congenial demo --out demo

test:
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.dev debian
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j 2 beside suite

suite: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not audit and not spark" $(if $(DATA),--shared=$(DATA))

# Tests of the desk use a Chromium of the machine, those of the R package its R. Automatic runs as root
# install Debian's; elsewhere, and where that fails, those tests skip and say why.
debian:
	@if [ "$(CI)" = true ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    ! { command -v chromium && command -v Rscript; } >/dev/null; then \
	  (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	    chromium r-base-core r-cran-jsonlite) >/dev/null 2>&1 || true; fi

# Beside the suite, so that no core waits: Spark's tests mostly wait for Java. They share a process.
beside:
	@$(MAKE) --no-print-directory types
	@$(MAKE) --no-print-directory spark

types: $(VENV)/.dev
	$(BIN)/mypy

spark: $(VENV)/.dev
	$(BIN)/python -m pytest tests/engines -m "spark and not audit" $(if $(DATA),--shared=$(DATA))

# May take two hours on two cores; every test is named as it ends. Its outcome is written into the README and a page whether or not everything passed.
audit: $(VENV)/.audit
	@rm -f .attempts.json
	$(BIN)/python -m pytest -vv -n 2 --dist worksteal -m "audit or attempt" --hypothesis-profile new-every-time --attempts .attempts.json $(if $(DATA),--shared=$(DATA)); \
	  status=$$?; $(BIN)/python docs/audit.py .attempts.json && exit $$status

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

# Not --quiet: it would hide the warnings that --strict counts.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo site/index.html

lint: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "congenial needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --only-binary :all: --require-hashes -r requirements/uv.lock || true

$(VENV)/.run: $(VENV)/bin/python requirements/run.lock pyproject.toml
	$(call LOCKED,requirements/run.lock)
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python requirements/dev.lock pyproject.toml
	$(call LOCKED,requirements/dev.lock)
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.run

$(VENV)/.audit: $(VENV)/.dev requirements/audit.lock
	$(call LOCKED,requirements/audit.lock)
	@touch $@

# Needs `uv`; run after changing dependencies. The locks hold hashes and no addresses.
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet
lock:
	$(LOCK) pyproject.toml requirements/build.in --extra report -o requirements/run.lock
	$(LOCK) pyproject.toml requirements/build.in --all-extras --group dev -c requirements/run.lock -o requirements/dev.lock
	$(LOCK) requirements/audit.in -o requirements/audit.lock
	$(LOCK) requirements/uv.in -o requirements/uv.lock

clean:
	rm -rf $(VENV) demo site .pytest_cache .mypy_cache .ruff_cache
