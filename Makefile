# The commands of the project; `make help` lists them. They need Python 3.11 or newer and make. `make run` makes a small
# environment in build/run, everything else a complete one in .venv. Compiling needs a C compiler and Python's headers.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
RUN := build/run
COMPILED := build/compiled/built
SOURCES := $(shell find broker -name '*.py')
CAN_COMPILE := command -v cc >/dev/null && test -e "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"
FAST := PYTHONPATH=$(CURDIR)/build/compiled
IS_COMPILED = $(MAKE) --question $(COMPILED) >/dev/null 2>&1
NEW_ENOUGH := $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is required: make PYTHON=python3.12")'
INSTALL := -m pip --disable-pip-version-check --quiet --quiet install
# These flags let the C compiler inline the functions of the compiled module into each other.
CFLAGS := -fno-semantic-interposition -fvisibility=hidden
TOOK = echo "… done in $$(($$(date +%s) - began)) s"

.PHONY: help run build test test-interpreted sim raftsim fuzz e2e check format bench docs manifests transcripts dashboards charts image dist lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(RUN)/installed ## Start a cluster of three nodes and run the demonstration on real input
	@if $(IS_COMPILED); then \
	  $(FAST) $(RUN)/bin/python -m disqued.demo $(ARGS); \
	else \
	  echo "Running the interpreted build. \`make build\` compiles the hot path, for several times the throughput."; \
	  $(RUN)/bin/python -m disqued.demo $(ARGS); \
	fi

build: $(COMPILED) ## Compile the hot path, which `make run`, the tests and the benchmarks then use

test: $(COMPILED) ## Run the tests, on the compiled build if there is a C compiler
	@$(FAST) $(BIN)/python -m pytest $(ARGS)

# The other tests test modules that are never compiled, spend their time in other processes, or run many seeds of the
# simulator, whose digests are the same on both builds. Only here, the simulator runs with functions replaced.
ONCE := backup bench charts cli client cluster console demo docs durability image memory monitoring operator release \
  server spark tls compat/test_redis_py.py compat/test_redis_tools.py examples suites kombu_transport celery_adapter \
  dramatiq_adapter
SEEDS := $(filter-out %/test_mutations.py %/test_transitions.py,$(wildcard tests/simulation/test_*.py))

test-interpreted: $(INSTALLED) ## Run the tests of what is compiled on the interpreted build
	@$(BIN)/python -m pytest $(ONCE:%=--ignore=tests/%) $(SEEDS:%=--ignore=%) $(ARGS)

sim: $(INSTALLED) ## Simulate clusters under faults with new seeds each day, or with given ones (SEED=7, SEED=1..500)
	@if $(IS_COMPILED); then export $(FAST); fi; $(BIN)/python -m disqued.testing.sim $(if $(SEED),--seed $(SEED)) $(ARGS)

raftsim: $(INSTALLED) ## Simulate Raft groups under faults with given seeds (SEED=0..9999), or with the first thousand
	@if $(IS_COMPILED); then export $(FAST); fi; $(BIN)/python -m disqued.testing.raftsim $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz: $(COMPILED) ## Send hostile input to the ports and files of a node (fuzz/README.md)
	$(FAST) $(BIN)/python -m fuzz $(ARGS)

e2e: $(INSTALLED) ## Run the end-to-end tests on the cluster of KUBECONFIG, or on one that kind creates (e2e/README.md)
	$(BIN)/python e2e/run.py $(ARGS)

check: $(INSTALLED) ## Check style, types, import rules, spelling, phrases and the version
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell
	$(BIN)/python docs/language/check.py
	$(BIN)/python -m release.version

format: $(INSTALLED) ## Format the sources
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: $(COMPILED) ## Compare with redis-server, beanstalkd and RabbitMQ (ARGS=--document writes docs/performance.md)
	$(FAST) $(BIN)/python bench/run.py $(ARGS)

docs: $(INSTALLED) ## Write the generated pages of docs
	$(BIN)/python -m docs.generate

manifests: $(INSTALLED) ## Write the resource definition and the snapshots of the objects that the operator creates
	$(BIN)/python -m disque_operator.schema manifests/crd
	$(BIN)/python tests/support/manifests.py

transcripts: $(INSTALLED) ## Rewrite the transcripts of clusters (tests/transcripts); review the difference
	$(BIN)/python -m disqued.testing.transcript --write tests/transcripts/*.txt

dashboards: $(INSTALLED) ## Write the dashboards, the alerting rules and their copies in the chart
	$(BIN)/python -m dashboards
	$(BIN)/python -m dashboards.alerts
	$(BIN)/python charts/generate.py

charts: $(INSTALLED) ## Write the generated files of the charts
	$(BIN)/python charts/generate.py

TAG ?= dev

image: ## Build the images disqued, disqued-operator and disqued-spark with Docker, Podman or Buildah (TAG=dev)
	@image/build $(TAG) $(ARGS)

dist: $(INSTALLED) ## Build the files of a release: package, charts, manifests, checksums
	$(BIN)/python -m release.dist

RESOLVE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-annotate --no-header

lock: $(INSTALLED) ## Upgrade all dependencies in requirements.lock and requirements-run.lock
	$(RESOLVE) --upgrade --extra backup --extra celery --extra cli --extra dramatiq --extra operator --extra report --group dev pyproject.toml --output-file requirements.lock
	$(RESOLVE) --constraint requirements.lock --extra cli --group run pyproject.toml --output-file requirements-run.lock

clean: ## Remove the environments and everything that was built
	rm -rf build dist .venv

$(INSTALLED): requirements.lock pyproject.toml
	@$(NEW_ENOUGH)
	@began=$$(date +%s); echo "Creating the environment for development in .venv (about two minutes, once)" && \
	$(PYTHON) -m venv --clear .venv && \
	$(BIN)/python $(INSTALL) --require-hashes --requirement requirements.lock && \
	$(BIN)/python $(INSTALL) --no-deps --no-build-isolation --editable . && \
	touch $@ && $(TOOK)

$(RUN)/installed: requirements-run.lock pyproject.toml
	@$(NEW_ENOUGH)
	@began=$$(date +%s); echo "Installing the server and the command line in $(RUN) (about 15 seconds, once)" && \
	$(PYTHON) -m venv --clear $(RUN) && \
	$(RUN)/bin/python $(INSTALL) --require-hashes --requirement requirements-run.lock && \
	$(RUN)/bin/python $(INSTALL) --no-deps --no-build-isolation --editable . && \
	touch $@ && $(TOOK)

# The compiled copy is separate from the sources, so that both builds can run side by side. The packages that are never
# compiled are removed from it: the ones in the sources are used.
$(COMPILED): $(INSTALLED) $(SOURCES)
	@rm -rf build/sdist build/wheel build/compiled
	@mkdir -p build/compiled
	@touch build/began
	@if $(CAN_COMPILE); then \
	  began=$$(date +%s); echo "Compiling the hot path (about ten minutes, once and after changes)" && \
	  $(BIN)/python -m hatchling build --target sdist --directory build/sdist >build/compile.log 2>&1 && \
	  CFLAGS="$(CFLAGS)" HATCH_BUILD_HOOKS_ENABLE=1 $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation \
	    --wheel-dir build/wheel build/sdist/*.tar.gz >>build/compile.log 2>&1 && \
	  $(BIN)/python -m pip install --quiet --no-deps --target build/compiled build/wheel/*.whl >>build/compile.log 2>&1 && \
	  rm -rf build/compiled/disque_operator build/compiled/pyspark_disque* build/compiled/pipelines && \
	  $(TOOK) \
	  || { tail -20 build/compile.log; exit 1; }; \
	else \
	  echo "No C compiler or no Python headers found: the broker runs interpreted, which is slower"; \
	fi
	@touch -r build/began $@ # what is edited meanwhile is not in it
