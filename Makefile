# The two commands that a newcomer needs are `make demo` and `make test`.
# Each makes .venv and installs what it needs there, the first time; after that it starts at once.
.PHONY: demo test test-slow check docs bench clean
.NOTPARALLEL:

python := .venv/bin/python
# Idle OpenMP threads would spin and take the cores from the other workers.
export OMP_WAIT_POLICY := passive
# Tests and benchmarks on real corpora find them next to the checkout, unless SIGHTLINE_DATA says where they are.
ifneq ($(wildcard ../shared/data),)
SIGHTLINE_DATA ?= $(abspath ../shared/data)
export SIGHTLINE_DATA
endif

demo: .venv/installed-all
	.venv/bin/sightline demo

test: .venv/installed-test
	OMP_NUM_THREADS=1 $(python) -m pytest -n 2 --dist worksteal

# What takes minutes each, or needs packages with real weights or data sets; tests that lack theirs are skipped.
test-slow: .venv/installed-test
	OMP_NUM_THREADS=2 $(python) -m pytest -m slow

check: .venv/installed-test
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	.venv/bin/lint-imports
	$(python) -m vulture
	.venv/bin/codespell

# The guide as a site, into site/; a warning is an error.
docs: .venv/installed-docs
	$(python) -m zensical build --strict --clean

bench: .venv/installed-bench
	$(python) benchmarks/report.py

clean:
	rm -rf .venv site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# The last part of the name is the extra of pyproject.toml that is installed.
.venv/installed-%: pyproject.toml constraints.txt .ci/install
	bash .ci/install $*
	touch $@
