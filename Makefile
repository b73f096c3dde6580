# Every target makes the environment it needs, once. PYTHON=... names the interpreter to stand on; one that
# already has torch is used with it, and then only what it lacks is fetched.
.DEFAULT_GOAL := help
.PHONY: gpu-bench-peer-131k gpu-bench-peer-524k gpu-bench-links help set-up lab test test-trainer soak-trainer \
	e2e-tools e2e soak check fix goldens image locks bench gpu-bench clean .venv .venv-lab

BASE := $(firstword $(foreach python,$(or $(PYTHON),python3 python3.12 python3.11),\
	$(shell $(python) -c 'import sys; sys.version_info[:2] in ((3, 11), (3, 12)) and print("$(python)")' 2>/dev/null)))
SET_UP = @$(if $(BASE),,echo "no Python 3.11 or 3.12$(if $(PYTHON), at $(PYTHON)); install one of them" >&2; exit 1;) \
	$(BASE) -m tools.set_up
LAB_MARKS := torch or browser or lab
E2E_MARKS := e2e or soak

help:  ## what can be asked of make
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 16

set-up: .venv  ## only the environment of the program and the command line

lab: .venv-lab  ## set up, run the default experiment on this machine, write one report
	@./topo lab

test: .venv  ## the fast tests: neither torch nor a cloud
	.venv/bin/python -m pytest -q -n 2 -m "not ($(LAB_MARKS) or $(E2E_MARKS))"

test-trainer: .venv-lab  ## the tests of trainer, lab and pages: torch, namespaces, chromium
	$(SET_UP) lab --python "$(PYTHON)" --also pytest hypothesis
	.venv-lab/bin/python -m pytest -q -m "$(LAB_MARKS)"

soak-trainer: .venv-lab  ## a run killed at random steps against an undisturbed one: SOAK_ROUNDS=20, SOAK_SEED=N repeats
	$(SET_UP) lab --python "$(PYTHON)" --also pytest hypothesis
	SOAK_ROUNDS=$${SOAK_ROUNDS:-20} .venv-lab/bin/python -m pytest -q -s tests/trainer/test_resume.py -k killed

e2e-tools: .venv  ## build the real programs of the proof: Go, ten minutes once, then nothing
	@.venv/bin/python -m tests.e2e.tools

e2e: .venv .venv-lab e2e-tools  ## `pulumi up` to trained pods to `pulumi destroy`: real engine and controllers, no cloud
	.venv/bin/python -m pytest -q tests/e2e -m "e2e and not soak" -n 2 --dist loadfile --no-loadscope-reorder --durations=15

soak: .venv e2e-tools  ## ups and destroys refused, interrupted, killed: SOAK_ROUNDS=100, SOAK_SEED=N repeats a walk
	.venv/bin/python -m pytest -q tests/e2e -m soak

check: .venv  ## lint, format and types
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

fix: .venv  ## what ruff can mend by itself
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

goldens: .venv  ## rewrite goldens and snapshots; the diff says what changed
	.venv/bin/python -m tests.goldens
	.venv/bin/python -m tests.snapshots

image:  ## build and push the trainer's image: REGISTRY=host/repository, IMAGE_BASE=another base, by digest
	@$(BASE) -m tools.image --registry "$(REGISTRY)" --base "$(IMAGE_BASE)"

locks: .venv  ## resolve the requirements anew
	$(BASE) -m tools.locks

bench: .venv .venv-lab  ## print the figures that the project promises about itself
	@.venv/bin/python -m tools.bench

gpu-bench: gpu-bench-peer-131k gpu-bench-peer-524k gpu-bench-links  ## on GPUs: ratios against torchtitan and between links

gpu-bench-peer-131k: .venv-lab  # equal to 131k tokens a step on four GPUs
	@.venv-lab/bin/python -m tools.gpu_bench peer --tokens-per-gpu 32768

gpu-bench-peer-524k: .venv-lab
	@.venv-lab/bin/python -m tools.gpu_bench peer --tokens-per-gpu 131072

gpu-bench-links: .venv-lab
	@.venv-lab/bin/python -m tools.gpu_bench links --tokens-per-gpu 131072

clean:  ## remove the environments, caches and lab records
	rm -rf .venv .venv-lab build lab-out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv:
	$(SET_UP) program --python "$(PYTHON)"

.venv-lab:
	$(SET_UP) lab --python "$(PYTHON)"
