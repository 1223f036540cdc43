# Everything a person does here. `make run` and `make test` need Python 3.11 or newer and make, nothing else: they make
# their own environment in .venv. Where a C compiler and Python's headers are present the hot path is compiled as well.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
COMPILED := build/compiled/built
SOURCES := $(shell find broker -name '*.py')
CAN_COMPILE := command -v cc >/dev/null && test -e "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"
FAST := PYTHONPATH=$(CURDIR)/build/compiled

.PHONY: help run test test-interpreted test-compiled sim e2e check format bench docs manifests dashboards charts image lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(COMPILED) ## Start a cluster of three nodes and run the demonstration on real input
	@$(FAST) $(BIN)/python -m disqued.demo $(ARGS)

test: test-interpreted test-compiled ## Run the tests, on the interpreted and on the compiled build

# Tests of what is never compiled, tests whose time goes into real processes, or into many seeds of the simulator (whose
# digests are the same on both builds), run on one build, the one that people run.
ONCE := bench charts cli client cluster console demo docs durability image memory monitoring operator server spark \
  simulation/test_cluster_seeds.py simulation/test_more_cluster_seeds.py simulation/test_rare_states.py

test-interpreted: $(INSTALLED)
	$(BIN)/python -m pytest $(ONCE:%=--ignore=tests/%) $(ARGS)

test-compiled: $(COMPILED)
	$(FAST) $(BIN)/python -m pytest $(ARGS)

SEED ?= 1..50

sim: $(INSTALLED) ## Simulate clusters under faults, a run for each seed (SEED=7, SEED=1..500)
	$(BIN)/python -m disqued.testing.sim --seed $(SEED) $(ARGS)

e2e: $(INSTALLED) ## Test on a real Kubernetes: that of KUBECONFIG, or one that kind makes (e2e/README.md)
	$(BIN)/python e2e/run.py $(ARGS)

check: $(INSTALLED) ## Lint, types, import rules, spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell

format: $(INSTALLED) ## Bring the sources into the house format
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: $(COMPILED) ## Measure beside redis-server, beanstalkd and RabbitMQ (ARGS=--document writes docs/performance.md)
	$(FAST) $(BIN)/python bench/run.py $(ARGS)

docs: $(INSTALLED) ## Write the generated pages of docs/
	$(BIN)/python -m disqued.config.docs > docs/configuration.md
	$(BIN)/python -m disqued.metrics.docs > docs/metrics.md
	$(BIN)/python -m disqued.testing.jobstates > docs/architecture/job-states.md
	$(BIN)/python -m disqued.testing.busdocs > docs/protocol/bus.md
	$(BIN)/python -m disque_operator.schema.docs > docs/disquecluster.md
	$(BIN)/python -m pyspark_disque.docs > docs/spark/options.md

manifests: $(INSTALLED) ## Write the resource definition, and the snapshots of what the operator makes of resources
	$(BIN)/python -m disque_operator.schema > manifests/crd/disqueclusters.yaml
	$(BIN)/python tests/support/manifests.py

dashboards: $(INSTALLED) ## Write the dashboards, the alerts, and what the chart has of them
	$(BIN)/python -m dashboards
	$(BIN)/python -m alerts
	$(BIN)/python charts/generate.py

charts: $(INSTALLED) ## Write what the charts have from the resource definition and from their values
	$(BIN)/python charts/generate.py

TAG ?= dev

image: ## Build the images disqued, disqued-operator and disqued-spark with Docker, Podman or Buildah (TAG=dev)
	@image/build $(TAG) $(ARGS)

lock: ## Resolve the dependencies anew into requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --no-header --extra dev pyproject.toml --output-file requirements.lock

clean: ## Remove what was built
	rm -rf build dist .venv

$(INSTALLED): requirements.lock pyproject.toml
	@echo "Making the environment in .venv (about two minutes, once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# The compiled copy stands apart from the sources, so that both builds can be run and tested side by side. What is never
# compiled is left out of it: it would be a copy that grows old.
$(COMPILED): $(INSTALLED) $(SOURCES)
	@rm -rf build/sdist build/wheel build/compiled
	@mkdir -p build/compiled
	@if $(CAN_COMPILE); then \
	  echo "Compiling the hot path (about three minutes, after changes only)" && \
	  $(BIN)/python -m hatchling build --target sdist --directory build/sdist >build/compile.log 2>&1 && \
	  HATCH_BUILD_HOOKS_ENABLE=1 $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation \
	    --wheel-dir build/wheel build/sdist/*.tar.gz >>build/compile.log 2>&1 && \
	  $(BIN)/python -m pip install --quiet --no-deps --target build/compiled build/wheel/*.whl >>build/compile.log 2>&1 && \
	  rm -rf build/compiled/disque_operator build/compiled/pyspark_disque* build/compiled/pipelines \
	  || { tail -20 build/compile.log; exit 1; }; \
	else \
	  echo "No C compiler with Python's headers here: the broker runs interpreted (slower, otherwise the same)"; \
	fi
	@touch $@
