# Needs Python 3.11 (or newer, below 3.14), pip and make; everything else goes into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: nets demo test lint soak sbom docs clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,crate,dask,parquet,accounting]'
	$(BIN)/python -m compileall -q sacro_deltab  # also where Python may not write bytecode: start-up takes half
	touch $(STAMP)

demo: $(STAMP)
	rm -rf outputs outputs-inputs
	$(BIN)/sacro-deltab demo --out outputs

test: $(STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not soak'

lint: $(STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-cache

soak: $(STAMP)
	$(BIN)/python -m pytest -m soak

sbom: $(STAMP)
	mkdir -p dist
	$(BIN)/python tools/sbom.py > dist/sbom.json

clean:
	rm -rf $(VENV) outputs outputs-inputs dist build

nets: $(STAMP)
	$(BIN)/python tests/nets/nets.py
