# `make help` lists all targets. Each target sets up what it needs on first use. You need only Python 3.11 and make.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install demo docs test test-slice test-all test-training test-properties test-adapters test-cluster cluster-of-kind test-faults test-faults-local test-stores test-gpu test-scale check format benchmarks benchmarks-cluster constraints release-check clean

# Where this is set, every process compiles MLflow, PyTorch and TensorFlow anew: three to ten seconds each time.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# uv installs from its cache with hard links, so a second set-up takes seconds. uv does not read
# pip's configuration, so we pass on an index that is set there.
INDEX = $(shell $(PYTHON) -m pip config get global.index-url 2>/dev/null || true)
UV_SETTINGS = UV_SYSTEM_CERTS=1 $(if $(INDEX),UV_DEFAULT_INDEX=$(INDEX)) VIRTUAL_ENV=.venv
UV = $(UV_SETTINGS) $(BIN)/uv

help: ## List all targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2}'

.venv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"hera-specon needs Python 3.11 or newer, $(PYTHON) is {sys.version.split()[0]}")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

.venv/.demo-installed: pyproject.toml constraints.txt .venv/bin/uv
	@echo "Installing what the demo needs (MLflow and Hera; PyTorch is not among it) ..."
	$(UV) pip install --constraint constraints.txt --editable .
	@touch $@

.venv/.installed: pyproject.toml constraints.txt .venv/bin/uv
	@echo "Installing everything for development ..."
	$(UV) pip install --constraint constraints.txt --editable '.[pytorch,tensorflow,lightning,huggingface,xgboost,lightgbm,sklearn,stores,dev]'
	@# moto needs older libraries than we have, and tests only talk to it.
	$(UV_SETTINGS) $(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/moto
	$(UV_SETTINGS) $(BIN)/uv pip install --quiet --python .venv/moto/bin/python 'moto[server]==5.2.5'
	@touch $@ .venv/.demo-installed

.venv/.docs-installed: pyproject.toml constraints.txt .venv/bin/uv
	@echo "Installing what builds the site of the pages ..."
	$(UV) pip install --constraint constraints.txt --editable '.[docs]'
	@touch $@

install: .venv/.installed ## Set up .venv with every extra

DEMO := workflows/digits_sweep.py --policy default --policy ahead --policy promote:rungs=best --nodes 4

demo: .venv/.demo-installed ## Train a real sweep under the default scheduler, ahead and promote (five minutes), and open its page
	@mkdir -p .specon
	@echo "Measuring how fast a core of this machine trains, so that each of three runs takes about a minute ..."
	env $$($(BIN)/python -m workflows.jobs.digits --size) \
		$(BIN)/specon run $(DEMO) --fresh --open --json .specon/demo.json

# Two workers for each core, eight at most: most quick tests wait for processes and servers half of their time. A worker takes
# neighbours of a file, which share its fixtures, and helps others once it has none left.
QUICK := -n $(shell $(PYTHON) -c 'import os; print(min(8, 2 * os.cpu_count()))') --dist worksteal \
	--durations=25 --durations-min=5 -m 'not slow and not cluster and not adapter'
# A worker for each core: long tests compute. They are taken one by one, as a few take a hundred times as long as most.
BESIDE := -n logical --maxprocesses 4 --maxschedchunk 1
# What each run of long tests shares; ONLY names a file of those that are to run (make test-slice writes one).
LONG := --durations=25 --durations-min=5 $(if $(ONLY),--only=$(ONLY) --seconds=build/seconds.json)
BUILT_CLUSTER = $(if $(KUBECONFIG),,$(BIN)/python -m tests.cluster build$(if $(HERA_SPECON_CLUSTER_OPTIONAL), || true))
LONG_SUITES ?= test-training test-adapters test-cluster test-faults test-scale

test: .venv/.installed ## Run the quick tests, which take a few seconds each at most
	$(BIN)/pytest $(QUICK)
	@echo "!! not run: long tests, on this machine and on a cluster (make test-slice SLICE=1, to 6)"

test-slice: .venv/.installed ## Run one of the six slices of the long tests: SLICE=3, or now for what this landing has to run
	$(BIN)/python -m tests.rotation choose $(or $(SLICE),now) --into build/slice
	rm -f build/seconds.json
	FAULTS_LOCAL=$$($(BIN)/python -m tests.rotation seeds) $(MAKE) --keep-going $(LONG_SUITES) ONLY=build/slice
	$(MAKE) test-properties FILES="$$($(BIN)/python -m tests.rotation properties $(or $(SLICE),now))"

test-all: ## Run all that CI runs in six landings, and all examples of properties: every test that is there (hours)
	$(MAKE) --keep-going test test-properties $(LONG_SUITES)

test-training: .venv/.installed ## Train whole sweeps on this machine, break them, and run all other long tests that need no cluster
	$(BIN)/pytest $(BESIDE) $(LONG) -m 'slow and not cluster and not adapter' $(if $(TRAINING),-k "$(TRAINING)")

test-properties: .venv/.installed ## Try properties on EXAMPLES (100) percent of the examples that their tests name; make test tries a quarter
	EXAMPLES=$(or $(EXAMPLES),100) $(BIN)/pytest $(QUICK) \
		$(or $(FILES),$$($(BIN)/python -m tests.rotation properties))

test-adapters: .venv/.installed ## Train and move trials with Lightning, Transformers, XGBoost, LightGBM and scikit-learn
	$(BIN)/pytest $(BESIDE) $(LONG) -m adapter

test-cluster: .venv/.installed ## Run the tests on a real Kubernetes: KUBECONFIG's cluster, three nodes here, or named VERSIONS of them
ifdef VERSIONS
	$(BIN)/python -m tests.cluster.version_matrix $(VERSIONS)
else
	$(BUILT_CLUSTER)
	$(BIN)/pytest $(LONG) -m 'cluster and not faults and not scale' $(if $(CLUSTER),-k "$(CLUSTER)")
endif

cluster-of-kind: .venv/.installed ## Make a cluster of kind for these tests, where Docker is; writes kind.kubeconfig
	tests/cluster/kind.sh

test-faults: .venv/.installed ## Break nodes, kubelets, controllers and servers during sweeps on such a cluster (half an hour)
	$(BUILT_CLUSTER)
	$(BIN)/pytest $(LONG) -m faults $(if $(FAULTS),-k "$(FAULTS)")

test-faults-local: .venv/.installed ## Break sweeps on this machine in SEEDS (300) ways: kill whatever runs, turn clocks, fill disks (an hour)
	FAULTS_LOCAL=$(or $(SEEDS),300) $(BIN)/pytest $(BESIDE) -m slow tests/local_faults

test-stores: .venv/.installed ## Try checkpoints on more servers of objects, which are built first, and kill trials in uploads 100 times each
	$(BIN)/python -m tests.mlflow_hooks.more_object_servers
	STORE_KILLS=100 $(BIN)/pytest $(BESIDE) tests/mlflow_hooks/test_object_stores.py tests/mlflow_hooks/test_kills_in_uploads.py \
		tests/mlflow_hooks/test_trainings_in_stores.py tests/mlflow_hooks/test_gangs_in_stores.py

test-gpu: .venv/.installed ## On a machine with a GPU: break trainings off and go on, then measure what hooks cost; leaves build/gpu-CARD.json
	@nvidia-smi --list-gpus 2>/dev/null || echo "!! there is no GPU here: what can run on the CPU does, and says nothing of CUDA (build/gpu-cpu.json)"
	$(BIN)/pytest -m gpu tests/mlflow_hooks
	$(BIN)/python -m benchmarks.hooks_on_gpu

test-scale: .venv/.installed ## Steer simulated trials through a real API server, at a small part of the benchmark's size
	$(BIN)/python -m tests.cluster build
	$(BIN)/pytest $(LONG) -m scale

check: .venv/.installed ## Check lint, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.installed ## Format the code and apply ruff's fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.docs-installed ## Build the pages as a site, in build/site
	$(BIN)/mkdocs build

benchmarks: .venv/.installed ## Measure the cost of hooks, starts and threads, and the accuracy of the shares
	set -e; for file in benchmarks/{hooks,stalls,shares,start_of_a_run,start_of_an_attempt,threads}.py; do echo "== $$file"; $(BIN)/python -m benchmarks.$$(basename $$file .py); done

benchmarks-cluster: .venv/.installed ## Measure moves, a whole sweep and the controller at scale, on clusters on this machine (half an hour)
	set -e; for name in cluster.move cluster.sweep controller_at_scale; do echo "== $$name"; $(BIN)/python -m benchmarks.$$name; done

constraints: .venv/.installed ## Pin all dependencies again (after a change of pyproject.toml)
	$(UV) pip compile --quiet --upgrade --all-extras --no-header --no-annotate --no-emit-package hera-specon-hooks --output-file constraints.txt pyproject.toml

release-check: .venv/.installed ## Say what keeps a release from being made of this commit, and build its files in build/release
	$(UV_SETTINGS) $(BIN)/python -m tests.release check $(if $(TAGGED),--tagged)

clean: ## Remove the environment, caches and the data of runs
	rm -rf .venv .specon .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
