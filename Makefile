# Needs Python 3.11 (or newer, below 3.14), pip and make; everything else goes into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
STAMP := $(VENV)/.installed

.PHONY: nets demo test quick lint format coverage soak sbom docs clean

# What the program needs, then what its tests need: a first try waits for the first alone.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(BIN)/python -m compileall -q sacro_deltab  # also where Python may not write bytecode: start-up takes half
	touch $(READY)

$(STAMP): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,crate,dask,parquet,accounting,office]'
	touch $(STAMP)

demo: $(READY)
	rm -rf outputs outputs-inputs
	$(BIN)/sacro-deltab demo --out outputs

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not soak'

lint: $(STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP)
	$(BIN)/python -m ruff format .

# Within a minute: form, imports, and the tests of every floor that need no session.
QUICK := tests/base tests/desk tests/outputs tests/test_architecture.py tests/cohort/test_cohort_reading.py \
  tests/ledger/test_trust.py tests/ledger/test_ledger_numbers.py tests/model/test_brain_age_cases.py \
  tests/privacy/test_accounting.py tests/rules/test_engine.py tests/rules/test_forms.py tests/rules/test_rule_limits.py \
  tests/rules/test_rule_views.py tests/screening/test_readers.py tests/session/test_judge_steps.py \
  tests/tables/test_rounding.py tests/tables/test_table_bounds.py

quick: $(STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not soak' $(QUICK)

coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not soak' --cov --cov-report=term:skip-covered

soak: $(STAMP)
	$(BIN)/python -m pytest -m soak

sbom: $(STAMP)
	mkdir -p dist
	$(BIN)/python tools/sbom.py > dist/sbom.json

# The site, into dist/site: every tutorial is run, links and anchors are checked, nothing is fetched from elsewhere.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(BIN)/python -m mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) outputs outputs-inputs dist build

# What the reading not taken of each decision does to the simulated sessions of fixtures/replay (half a minute).
readings: $(STAMP)
	$(BIN)/sacro-deltab rules book --readings fixtures/replay --json > readings.tmp
	mv readings.tmp rules/deltab-disclosure/readings.json
	$(BIN)/sacro-deltab rules book --readings fixtures/replay --out docs/decisions.md

nets: $(STAMP)
	$(BIN)/python tests/nets/nets.py
