# make help lists what can be made. Everything is set up on first use; nothing is needed but Python 3.11 and make.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install demo test test-fast test-cluster test-faults test-scale check format report benchmarks benchmarks-cluster constraints clean

# Where this is set, every process compiles MLflow, PyTorch and TensorFlow anew: three to ten seconds each time.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# uv installs from its cache with hard links, so setting up again takes seconds. It does not read
# pip's configuration: an index set there is handed on.
INDEX = $(shell $(PYTHON) -m pip config get global.index-url 2>/dev/null || true)
UV = UV_SYSTEM_CERTS=1 $(if $(INDEX),UV_DEFAULT_INDEX=$(INDEX)) VIRTUAL_ENV=.venv $(BIN)/uv

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  \033[36m%-12s\033[0m %s\n", $$1, $$2}'

.venv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"hera-specon needs Python 3.11 or newer, $(PYTHON) is {sys.version.split()[0]}")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

.venv/.demo-installed: pyproject.toml constraints.txt .venv/bin/uv
	@echo "Installing what the demo needs (PyTorch and MLflow; several GB where no CPU build is at hand) ..."
	$(UV) pip install --constraint constraints.txt --editable '.[pytorch]'
	@touch $@

.venv/.installed: pyproject.toml constraints.txt .venv/bin/uv
	@echo "Installing everything, for development ..."
	$(UV) pip install --constraint constraints.txt --editable '.[pytorch,tensorflow,dev]'
	@touch $@ .venv/.demo-installed

install: .venv/.installed ## Set up .venv with every extra

# Trials of a minute or two need intervals of seconds. Over so short a time the noise of a validation loss is a few
# per cent of all that is gained, hence the greater of the thesis's two usual alphas.
demo: .venv/.demo-installed ## Watch a real sweep under the default scheduler, then under SpeCon with FlowCon
	@mkdir -p .specon
	$(BIN)/specon run workflows/demo.py --policy default --policy specon:interval=5,alpha=0.05+flowcon:interval=5 \
	  --nodes 4 --fresh --json .specon/demo.json

# A worker for each core, four at most. Workers take tests one by one, as a few take a thousand times as long as most.
BESIDE := -n logical --maxprocesses 4 --maxschedchunk 1

test: .venv/.installed ## Run every test that this machine can hold
	$(BIN)/pytest $(BESIDE)

test-fast: .venv/.installed ## Run the tests that take less than a few seconds each
	$(BIN)/pytest $(BESIDE) -m 'not slow and not cluster'

test-cluster: .venv/.installed ## Run the tests on a real Kubernetes: one of three nodes made here, or KUBECONFIG's
	$(if $(KUBECONFIG),,$(BIN)/python -m tests.cluster build$(if $(HERA_SPECON_CLUSTER_OPTIONAL), || true))
	$(BIN)/pytest -m 'cluster and not faults and not scale'

test-faults: .venv/.installed ## Lose nodes, kubelets, controllers, servers in the middle of sweeps on such a cluster (half an hour)
	$(if $(KUBECONFIG),,$(BIN)/python -m tests.cluster build$(if $(HERA_SPECON_CLUSTER_OPTIONAL), || true))
	$(BIN)/pytest -m faults $(if $(FAULTS),-k "$(FAULTS)")

test-scale: .venv/.installed ## Steer simulated trials through a real API server, a small part of what the benchmark does
	$(BIN)/python -m tests.cluster build
	$(BIN)/pytest -m scale

check: .venv/.installed ## Lint, check types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.installed ## Format the code and mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmarks: .venv/.installed ## Measure the cost of the hooks, of a start, and how true the shares are
	set -e; for file in benchmarks/{hooks,shares,start_of_an_attempt}.py; do echo "== $$file"; $(BIN)/python -m benchmarks.$$(basename $$file .py); done

benchmarks-cluster: .venv/.installed ## Measure moves, a whole sweep and the controller at scale on clusters made here (half an hour)
	set -e; for name in cluster.move cluster.sweep controller_at_scale; do echo "== $$name"; $(BIN)/python -m benchmarks.$$name; done

constraints: .venv/.installed ## Pin anew what is installed (after changing pyproject.toml)
	$(UV) pip compile --quiet --upgrade --all-extras --no-header --no-annotate --output-file constraints.txt pyproject.toml

clean: ## Remove the environment and what runs left behind
	rm -rf .venv .specon .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
