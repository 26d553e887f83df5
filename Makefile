# The verbs of the book; `make help` lists them.
PYTHON ?= python3
PY := .venv/bin/python
BOX_PYTHON ?= 3.12
ARCHIVE ?= recordings.tar.gz
# Two processes share the tests, a file at a time, the longest first; TESTS="--weekly" for all.
SHARED := -n 2 --dist loadgroup --no-loadscope-reorder $(TESTS)
.DEFAULT_GOAL := help
.PHONY: help book test check lab notebooks serve doctor bench record record-bundle record-import lock drift \
  drift-run drift-history clean setup setup-dev

help:  ## list the verbs
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' Makefile

setup:
	@$(PYTHON) scripts/bootstrap.py requirements.txt

setup-dev:
	@$(PYTHON) scripts/bootstrap.py requirements-dev.txt --browser

book: setup  ## set up, execute what changed, build _build/html; WATCH=1 builds after each edit
	@$(PY) -m insidetorch build $(if $(WATCH),--watch)

test: setup-dev  ## set up, build, run all tests, the site in a real browser too
	@$(PY) -m insidetorch build
	@$(PY) -m pytest -q $(SHARED)

check: setup-dev  ## lint, types, spelling and unit tests, in a minute
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-logo
	@.venv/bin/codespell
	@.venv/bin/zizmor --offline --quiet .github/workflows
	@$(PY) -m pytest -q $(SHARED) -m "not slow and not site"

lab: setup-dev  ## JupyterLab; a double click opens a chapter as a notebook
	@$(PY) -m insidetorch lab

notebooks: book  ## the chapters as .ipynb files that install what they need, in _build/notebooks
	@$(PY) -m insidetorch notebooks

serve:  ## show the built book on localhost
	@$(PY) -m insidetorch serve

doctor: setup  ## what this machine can show, and what is lost where something is missing
	@$(PY) -m insidetorch doctor

bench: setup  ## time this build beside stock jupyter-book; WHOLE=1 on the book itself too
	@$(PY) scripts/bench.py $(if $(WHOLE),--whole)

record: setup  ## record the CUDA cells on this machine's GPU; CHAPTERS="a b" for some
	@$(PY) -m insidetorch record $(CHAPTERS)

record-bundle: setup  ## one archive that records on a GPU box without a network; BOX_PYTHON=3.12
	@$(PY) -m insidetorch record-bundle --python $(BOX_PYTHON)

record-import: setup  ## check and unpack what the box sent back; ARCHIVE=recordings.tar.gz
	@$(PY) -m insidetorch record-import $(ARCHIVE)

lock: setup  ## read how the anchors differ from anchors.lock, and accept them
	@$(PY) -m insidetorch lock

drift: setup  ## compare the anchors with another release: make drift TORCH=2.15.0
	@$(PY) -m insidetorch drift $(TORCH)

drift-run: setup  ## execute the book on another release: make drift-run TORCH=2.15.0
	@$(PY) -m insidetorch drift-run $(TORCH) --store

drift-history: setup  ## trace the anchors: make drift-history TORCH="2.6.0 2.15.0"
	@$(PY) -m insidetorch drift-history $(TORCH)

clean:  ## remove what was built; the environment stays
	@if [ -x $(PY) ]; then $(PY) -m insidetorch clean; else rm -rf _build; fi
