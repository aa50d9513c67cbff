# Each target does its own set-up, so each works as the first command on a fresh machine.
BIN := .venv/bin
CODE := $(wildcard src tests bench examples)
# What tests keep may lie in memory, where a flush costs nothing: a kill takes nothing that was
# written, and where power is cut the disks are made for it.
MEMORY := $(shell [ -w /dev/shm ] && df -Pk /dev/shm | awk 'NR == 2 && $$4 > 4000000 { print "/dev/shm" }')

.PHONY: help demo test check mutants drill soak bench format clean

help:
	@echo "make demo    an agent is killed a dozen times and continued; then the proof"
	@echo "make test    make check, then every test; ARGS= goes to pytest"
	@echo "make check   format, lint, types, imports: seconds"
	@echo "make mutants plant every fault of tests/mutants; fails where no test notices; ARGS='--only lease' for a part"
	@echo "make drill   3,000 runs of the support example under faults, about ten minutes; renews docs/drill.md"
	@echo "make bench   turns, bytes, restores beside LangGraph and DBOS; ARGS='--quick state' for a part"
	@echo "make soak    crashes, damage and bad input by the million, resumably; writes docs/proof.md"
	@echo "make format  put the code into its one format and fix what can be fixed"
	@echo "make clean   remove .venv and what the tools left behind"

demo: .venv/ready
	$(BIN)/holdfast demo

test: check
	@# Tests start thousands of processes: compiled once, by hash, so that nothing stale is taken.
	$(BIN)/python -m compileall -q --invalidation-mode checked-hash src tests/crash tests/soak
	$(if $(MEMORY),TMPDIR=$(MEMORY)) $(BIN)/pytest --numprocesses=auto --dist=worksteal $(ARGS)

check: .venv/ready
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo

mutants: .venv/ready
	$(BIN)/python -m tests.mutants $(ARGS)

drill: .venv/ready
	rm -f .drill.jsonl
	cd examples && ../$(BIN)/holdfast drill run support:support --scenario support.toml --runs 3000 --workers 16 \
		--seed 2026 --results ../.drill.jsonl $(ARGS)
	$(BIN)/holdfast drill report .drill.jsonl --as markdown > docs/drill.md
	$(BIN)/holdfast drill report .drill.jsonl --as html > docs/drill.html

bench: .venv/ready-bench
	$(BIN)/python -m bench $(ARGS)

soak: .venv/ready
	HOLDFAST_CALLS=100 nice -n 19 $(BIN)/pytest -q tests/crash/test_syscalls.py
	nice -n 19 $(BIN)/python -m tests.soak $(ARGS)

format: .venv/ready
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

clean:
	rm -rf .venv .soak .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/ready: scripts/setup pyproject.toml constraints.txt setup.py $(wildcard src/native/*)
	@sh scripts/setup

.venv/ready-bench: .venv/ready
	@echo "setup: installing the peers that are measured, versions as in constraints.txt"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench --constraint constraints.txt
	@touch $@
