# Everything runs in one virtual environment, .venv, which is made once and works offline from then on.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# nbgrader calls programs of its environment by name
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: setup demo nbgrader-demo test build check bench judge attacks soak lab-smoke clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# Grade the sample class: right, wrong and hostile submissions.
demo: setup
	@rm -rf results/demo
	@$(BIN)/autograder grade examples/submissions/* --jobs 2 --out results/demo || status=$$?; \
	$(BIN)/autograder render results/demo/*.json --format html --out results/demo/report.html && \
	echo "All about each, with bars and messages: results/demo/report.html" && \
	echo "The same at a terminal: $(BIN)/autograder grade examples/submissions/NAME"; \
	exit $${status:-$$?}

# The sample class as an nbgrader course: release, autograde, feedback and gradebook, with nbgrader's own commands.
nbgrader-demo: setup
	OMP_NUM_THREADS=1 $(BIN)/python examples/class/demo.py

test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile tests

# Generate from solutions/ all that students see.
build: setup
	$(BIN)/autograder build

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/autograder build --check

# What grading costs, beside plain nbgrader and otter-grader, which it installs: one table, about half an hour.
bench: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.bench

clean:
	rm -rf .venv results build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The whole judgement of the checks: banks, mutants, seeds, error rates.  `make test` runs a slice of it.
judge: setup
	$(BIN)/autograder authors matrix --out results/matrix.md
	$(BIN)/autograder authors mutants
	$(BIN)/autograder authors audit --right-only --repeats 20
	$(BIN)/autograder authors statistics

# Hostile submissions: none may earn a point, hurt another, or leave anything behind.
attacks: setup
	FAULT_ROUNDS=18 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/attacks tests/test_sandbox.py

# The comparisons of exercises 8, 9 and 10 in small: the reference, synthetic reviews, the tiny encoder.
lab-smoke: setup
	for exercise in ex08 ex09 ex10; do \
	OMP_NUM_THREADS=1 $(BIN)/python -m exercises.kit.lab $$exercise --package solutions --sizes 200 100 200 \
	--seeds 2 --updates 40 --max-lengths 16 32 --out results/lab-smoke/$$exercise || exit 1; done

# A class of 2,000 graded twice, the second time with processes killed at random: the results must be the same.
soak: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.soak --out results/soak.md
