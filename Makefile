# Every target does its own set-up: on a bare Debian with Python 3.11 and make, `make test` and `make demo` work at once.
#
# Set-up is two stamps whose names carry a hash of what they were made from, so it is re-done when that changes, not when a
# checkout touches a file's time: the pinned packages (pyproject.toml, constraints.txt), and the strict editable install,
# a tree of links under build/ that must be laid anew when a file of the package comes or goes.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The tests start a thousand launchers and workers. Each would compile the package anew where the caller lets nothing be kept.
unexport PYTHONDONTWRITEBYTECODE

# The first Python >= 3.11 that can make a virtual environment; `make PYTHON=...` chooses another.
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 /usr/bin/python3; do \
	$$p -c '$(USABLE)' 2>/dev/null && { command -v $$p; break; }; done)

# torch is pinned here as well as in constraints.txt: only this spelling finds a local CPU build where there is one.
TORCH := torch==2.13.0
EXTRAS := torch,etcd,gpu,metrics,otel,stacks
GROUPS := --group dev --group frameworks

VENV := .venv
BIN := $(VENV)/bin
# A mirror that fails for a moment is asked again, and whoever else installs something is waited for.
AGAIN := "$(CURDIR)/tools/again"
PIP := $(AGAIN) $(BIN)/pip install -qq --disable-pip-version-check --retries 10 --timeout 60 --constraint constraints.txt
# To give an environment a pip of its own takes longer than most of what is installed there.
PIP_OF := $(AGAIN) $(BIN)/pip --python
APT := $(AGAIN) apt-get -qq -o Acquire::Retries=5 -o DPkg::Lock::Timeout=120
ROOMS := core adapters cli inprocess

hash = $(firstword $(shell $(1) | sha256sum))
PINNED := $(call hash,cat pyproject.toml constraints.txt)
PACKAGES_MADE := $(VENV)/made-packages-$(PINNED)
LINKS_MADE := $(VENV)/made-links-$(call hash,{ cat pyproject.toml setup.py; find *.py $(ROOMS) examples -name '*.py' -o -name '*.y*ml' -o -name '*.md' -o -name '*.sh' -o -path '*/web/*' | LC_ALL=C sort; })

# ---------------------------------------------------------------------------------------------------------------- set-up

.PHONY: setup
setup: $(LINKS_MADE)  ## make .venv with the pinned packages, and the package installed so that edits count at once

$(BIN)/pip:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv found; write: apt-get install python3.11-venv" >&2; exit 1; }
	@command -v setpriv >/dev/null || { $(APT) update && $(APT) install -y util-linux; }
	$(PYTHON) -m venv $(VENV)

$(PACKAGES_MADE): | $(BIN)/pip
	$(PIP) $$(grep -E '^(pip|setuptools)==' constraints.txt)
	$(PIP) $(TORCH) --no-build-isolation --config-settings editable_mode=strict --editable '.[$(EXTRAS)]' $(GROUPS)
	@rm -f $(VENV)/made-* && touch $@ $(LINKS_MADE)

$(LINKS_MADE): | $(PACKAGES_MADE)
	@[ -e $@ ] || { $(PIP) --no-deps --no-build-isolation --config-settings editable_mode=strict --editable . && \
	  rm -f $(VENV)/made-links-* && touch $@; }

# The tests start members of their own on loopback. Debian's package would start one as a service, on etcd's own ports: while it
# is installed a policy forbids that, and afterwards the service is disabled.
POLICY := /usr/sbin/policy-rc.d

.PHONY: etcd
etcd:  ## Debian's etcd, if there is none here; its service is not started
	@command -v etcd >/dev/null && command -v etcdctl >/dev/null && exit 0; \
	  [ -e $(POLICY) ] || { printf '#!/bin/sh\nexit 101\n' >$(POLICY) && chmod +x $(POLICY) && ours=1; }; \
	  $(APT) update && DEBIAN_FRONTEND=noninteractive $(APT) install -y etcd-server etcd-client; done=$$?; \
	  [ -z "$$ours" ] || rm -f $(POLICY); \
	  [ $$done = 0 ] && { ! command -v systemctl >/dev/null || systemctl disable --now etcd 2>/dev/null || true; } || \
	  printf '\n*** etcd could not be installed: what needs one will be SKIPPED; write: apt-get install etcd-server etcd-client\n\n' >&2

.PHONY: network
network:  ## iproute2 and iptables, with which tests make hosts of their own
	@command -v ip >/dev/null && command -v iptables >/dev/null || \
	  { $(APT) update && DEBIAN_FRONTEND=noninteractive $(APT) install -y iproute2 iptables; } || \
	  printf '\n*** no ip and iptables: what breaks a network will be SKIPPED; write: apt-get install iproute2 iptables\n\n' >&2

# Neither its daemons nor munge's are started: the tests run daemons of their own.
.PHONY: slurm
slurm: setup network  ## the recipes for Slurm on a cluster of three nodes, on this machine; three minutes
	@command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null || { \
	  [ -e $(POLICY) ] || { printf '#!/bin/sh\nexit 101\n' >$(POLICY) && chmod +x $(POLICY) && ours=1; }; \
	  $(APT) update && DEBIAN_FRONTEND=noninteractive $(APT) install -y --no-install-recommends slurm-wlm slurm-client munge; done=$$?; \
	  [ -z "$$ours" ] || rm -f $(POLICY); [ $$done = 0 ] && { ! command -v systemctl >/dev/null || \
	  systemctl disable --now slurmctld slurmd munge 2>/dev/null || true; }; }
	ELASTIC_SLURM=1 $(BIN)/pytest tests/e2e/test_slurm.py

.PHONY: browser
browser:  ## Debian's Chromium without windows, in which tests look at the web page; 95 MB
	@command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || \
	  { $(APT) update && DEBIAN_FRONTEND=noninteractive $(APT) install -y --no-install-recommends chromium-headless-shell; } || \
	  printf '\n*** no Chromium: what looks at the web page will be SKIPPED; write: apt-get install chromium-headless-shell\n\n' >&2

# Debian's package would start a server. Only the program that checks metrics and rules is taken out of it.
.PHONY: promtool
promtool: setup  ## Prometheus' promtool, with which tests check metrics and alerts; 19 MB
	@command -v promtool >/dev/null || [ -x $(BIN)/promtool ] || { folder=$$(mktemp -d) && \
	  { (cd $$folder && $(APT) update && $(APT) download prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | tar x ./usr/bin/promtool) && \
	  mv $$folder/usr/bin/promtool $(BIN)/promtool; done=$$?; rm -rf $$folder; [ $$done = 0 ]; }; } || \
	  printf '\n*** no promtool: the check of metrics and alerts will be SKIPPED; write: apt-get install prometheus\n\n' >&2

# ---------------------------------------------------------------------------------------------------------------- checks

# Most tests wait, for the leases and deadlines of real processes, so several runners go through them beside each other, and one of
# them computes the property tests meanwhile (tests/runners.py); RUNNERS=0 is pytest as it is.
RUNNERS ?= 4
PYTEST := $(BIN)/pytest --numprocesses=$(RUNNERS)
BEYOND_CORE := $(PYTEST) --ignore=tests/core --durations=25

# A test with the marker `long` is in `test-long` and not in `test`. `test-all` is both in one run: short tests fill the time in which long
# ones wait. It ends with pytest's closing line: the last thing that CI reads.
.PHONY: checks
checks: setup etcd network browser promtool
	@$(MAKE) --jobs=2 --output-sync core-fast lint types imports docs integration-tools test-bytecode

# pytest compiles each test with its assertions spelled out, and keeps that. On a fresh clone all runners would do it at once.
.PHONY: test-bytecode
test-bytecode: setup
	@ls tests/__pycache__/test_style.*-pytest-*.pyc >/dev/null 2>&1 || \
	  $(BIN)/pytest --quiet --collect-only --ignore=tests/core >/dev/null || true

.PHONY: test
test: checks  ## after each change: lint, types, imports, core-fast, docs, then every test that is not long
	$(BEYOND_CORE) -m 'not long'

.PHONY: test-long
test-long: setup etcd network browser promtool integration-tools  ## the long tests: each mutant, larger worlds, real spans, more ways of the same
	$(BEYOND_CORE) -m long

.PHONY: test-all
test-all: checks  ## all that must hold, as CI runs it: test and test-long in one run
	$(BEYOND_CORE)

.PHONY: lint
lint: setup  ## ruff: rules, import order, formatting; each mutant fits the source
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/python tools/mutation.py drift

.PHONY: types
types: setup  ## mypy --strict: the package, then the tests and examples
	$(BIN)/mypy -p elastic
	$(BIN)/mypy setup.py $$(find tests tools property_tests examples benchmarks -name '*.py' 2>/dev/null)

.PHONY: imports
imports: setup  ## import-linter: cli -> adapters -> core, and the core's machines apart
	$(BIN)/lint-imports --no-logo

.PHONY: core-fast
core-fast: setup  ## the core by its own tests: every branch covered
	$(BIN)/coverage run $(BIN)/pytest --quiet tests/core
	$(BIN)/coverage report --fail-under=100

.PHONY: unit
unit: setup etcd  ## every test but those that start launchers (tests/e2e) and the property tests
	$(PYTEST) tests --ignore=tests/e2e

.PHONY: properties
properties: setup  ## the property tests, as `test` runs them: the same examples every time
	$(BIN)/pytest property_tests

# The package needs nothing compiled for one Python, so the other Pythons run it from the same links, without torch: the core;
# what raises into user code, since each Python looks for signals at other places; wrapped calls under
# the launcher; jobs of programs.
GATE_TESTS := $(addprefix tests/adapters/inprocess/,gate/test_gate*.py gate/test_injections.py gate/test_bytecode_progress.py rank/test_deadlines.py)
WRAPPER_TESTS := $(addprefix tests/adapters/inprocess/,wrapper/test_wrapper.py wrapper/test_callables.py beside/test_monitor.py) \
  tests/inprocess/test_callbacks.py tests/e2e/test_inprocess.py tests/e2e/test_inprocess_parameters.py \
  tests/e2e/test_inprocess_stores.py $(addprefix tests/cli/api/,test_job.py test_main_module.py)
OTHER_PYTHONS := 3.12 3.13
PYENV_ROOT ?= $(HOME)/.pyenv

.PHONY: pythons
pythons: setup etcd  ## core, property tests, the wrapper and programs' jobs on Python 3.12 and 3.13, where pyenv has them
	@for version in $(OTHER_PYTHONS); do \
	  python=$$(ls -d $(PYENV_ROOT)/versions/$$version.*/bin/python 2>/dev/null | tail -1); \
	  python=$${python:-$$(command -v /usr/bin/python$$version)}; \
	  if [ -z "$$python" ]; then echo "Python $$version: not here, passed over"; continue; fi; \
	  echo "Python $$version: $$python"; \
	  made=.venvs/$$version/made-$(PINNED); \
	  [ -e $$made ] || { $$python -m venv --clear .venvs/$$version && \
	    pip=".venvs/$$version/bin/pip install -qq --disable-pip-version-check -c constraints.txt" && \
	    $$pip $$(grep '^setuptools==' constraints.txt) hypothesis pytest pytest-timeout && \
	    $$pip --no-build-isolation --config-settings editable_mode=strict --editable '.[etcd]' && touch $$made; } || exit 1; \
	  .venvs/$$version/bin/pytest -q -p no:cacheprovider \
	    $(wildcard tests/core property_tests $(GATE_TESTS) $(WRAPPER_TESTS)) || exit 1; \
	done

# Hugging Face's Trainer and Lightning's come with some 200 MB, too much for each set-up. They are installed beside $(VENV), whose
# packages they use.
LARGE := transformers==5.23.0 pytorch-lightning==2.6.6
FRAMEWORKS_MADE := .venvs/frameworks/made-$(call hash,echo '$(PINNED) $(LARGE)')

.PHONY: frameworks
frameworks: setup  ## trainings of large frameworks, restarted from standbys; their packages go into a .venv of their own
	@[ -e $(FRAMEWORKS_MADE) ] || { $(BIN)/python -m venv --clear .venvs/frameworks && \
	  realpath $(VENV)/lib/python3*/site-packages >$$(echo .venvs/frameworks/lib/python3*/site-packages)/beside.pth && \
	  pip=".venvs/frameworks/bin/pip install -qq --disable-pip-version-check --constraint constraints.txt" && \
	  $$pip $(LARGE) && $$pip --no-deps --no-build-isolation --config-settings editable_mode=strict --editable . && \
	  touch $(FRAMEWORKS_MADE); }
	.venvs/frameworks/bin/python -m pytest -p no:cacheprovider tests/e2e/test_frameworks.py

# TorchX wants older packages than others (urllib3 below 1.27), and SkyPilot brings 460 MB: each has a .venv of its own.
INTEGRATIONS := torchx kubeflow-trainer-api
INTEGRATIONS_PINNED := tools/integrations.txt
INTEGRATIONS_MADE := .venvs/integrations/made-$(call hash,cat $(INTEGRATIONS_PINNED))
SKY := skypilot==0.14.1

.PHONY: integration-tools
integration-tools: setup
	@[ -e $(INTEGRATIONS_MADE) ] || { $(BIN)/python -m venv --clear --without-pip .venvs/integrations && \
	  $(PIP_OF) .venvs/integrations/bin/python install -qq --disable-pip-version-check --retries 10 --timeout 60 \
	  --constraint $(INTEGRATIONS_PINNED) $(INTEGRATIONS) && touch $(INTEGRATIONS_MADE); } || \
	  printf '\n*** no %s: what they say of our examples is SKIPPED\n\n' '$(INTEGRATIONS)' >&2

.PHONY: integrations
integrations: setup integration-tools  ## the examples for TorchX, Kubeflow, SkyPilot, Lightning and accelerate; SkyPilot has 460 MB
	@[ -x .venvs/sky/bin/sky ] || { $(BIN)/python -m venv .venvs/sky && \
	  $(AGAIN) .venvs/sky/bin/pip install -qq --disable-pip-version-check --retries 10 --timeout 60 $(SKY); }
	$(BIN)/pytest tests/examples/test_integrations.py

# Zensical reads what MkDocs reads, whose last release is of 2024, and comes from the authors of its usual theme.
SITE := zensical==0.0.73 mkdocstrings-python==2.0.11
SITE_PYTHON := .venvs/site/bin/python

.PHONY: site-tools
site-tools: setup
	@[ -x .venvs/site/bin/zensical ] || { $(BIN)/python -m venv --without-pip .venvs/site && \
	  $(PIP_OF) $(SITE_PYTHON) install -qq --disable-pip-version-check --retries 10 --timeout 60 $(SITE); } || \
	  printf '\n*** no %s: the documentation site is SKIPPED\n\n' '$(SITE)' >&2

.PHONY: docs
docs: site-tools  ## the documentation site, build/site: no dead link, no page without a place, no name without a reference
	@[ ! -x .venvs/site/bin/zensical ] || $(SITE_PYTHON) tools/docs_site.py

.PHONY: man
man: setup  ## man pages of the commands, build/man: MANPATH=build/man: man elastic-launch
	$(BIN)/python tools/man_pages.py build/man/man1

.PHONY: docs-serve
docs-serve: site-tools  ## the same site on http://localhost:8000
	$(SITE_PYTHON) tools/docs_site.py --serve

RELEASE := build==1.6.1 twine==7.0.0

.PHONY: release
release: setup  ## sdist and wheel -> build/dist, checked, and tried by jobs on each supported Python that is here: some minutes
	@[ -x .venvs/release/bin/twine ] || { $(BIN)/python -m venv .venvs/release && \
	  $(AGAIN) .venvs/release/bin/pip install -qq --disable-pip-version-check --retries 10 --timeout 60 \
	  $(RELEASE) $$(grep '^setuptools==' constraints.txt); }
	.venvs/release/bin/python tools/release.py $$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])') $(TORCH)

# The one target without `setup`: it runs where there is no network, with the Python that has torch (GPU_BY=...).
GPU_BY ?= $(or $(shell command -v python3),$(PYTHON))
.PHONY: gpu
gpu:  ## one NVIDIA GPU under the real command, in 8 minutes; needs torch, pytest and build/gpu-wheels, else says so
	$(GPU_BY) tools/gpu.py

GPU_PYTHON := 3.12
.PHONY: gpu-wheels
gpu-wheels: setup  ## collect what `make gpu` needs for Python $(GPU_PYTHON) into build/gpu-wheels
	$(BIN)/python tools/gpu.py --collect $(GPU_PYTHON)

.PHONY: nightly
nightly: setup  ## the property tests with fresh examples, ten times as many
	HYPOTHESIS_PROFILE=nightly $(BIN)/pytest --timeout=0 property_tests

SOAK_STEPS ?= 100000000
SOAK_CALL_STEPS ?= 10000000
SOAK_FAULTS ?= 1000
SOAK_REGISTER_FAULTS ?= 500
SOAK_INJECTIONS ?= 150000
SOAK_RESTARTS ?= 10000

.PHONY: soak
soak: setup etcd network  ## 3,000 real faults, 10^5 injections, 10^8 simulated steps, fresh properties, all mutants: hours; logs/ keeps it
	@mkdir -p logs
	ELASTIC_CHAOS_STEPS=$(SOAK_FAULTS) $(BIN)/pytest --timeout=0 tests/e2e/test_random_faults.py 2>&1 \
	  | tee logs/chaos-$$(date -u +%Y%m%dT%H%M%SZ).log
	$(MAKE) frameworks 2>&1 | tee logs/frameworks-$$(date -u +%Y%m%dT%H%M%SZ).log
	ELASTIC_REGISTER_STEPS=$(SOAK_REGISTER_FAULTS) $(BIN)/pytest --timeout=0 tests/adapters/store/test_linearizable.py 2>&1 \
	  | tee logs/register-$$(date -u +%Y%m%dT%H%M%SZ).log
	$(BIN)/python tools/volume.py --steps=$(SOAK_STEPS) --calls-steps=$(SOAK_CALL_STEPS) 2>&1 \
	  | tee logs/simulate-$$(date -u +%Y%m%dT%H%M%SZ).log
	ELASTIC_SIMULATED_NODES=1024 $(BIN)/pytest --timeout=0 property_tests/test_large_worlds.py 2>&1 \
	  | tee logs/large-$$(date -u +%Y%m%dT%H%M%SZ).log
	ELASTIC_INJECTIONS=$(SOAK_INJECTIONS) ELASTIC_GATE_STRIDE=1 $(BIN)/pytest --timeout=0 \
	  $(GATE_TESTS) 2>&1 \
	  | tee logs/gate-$$(date -u +%Y%m%dT%H%M%SZ).log
	ELASTIC_RESTARTS=$(SOAK_RESTARTS) ELASTIC_GLOO_RESTARTS=500 $(BIN)/pytest --timeout=0 -s tests/e2e/test_many_restarts.py 2>&1 \
	  | tee logs/restarts-$$(date -u +%Y%m%dT%H%M%SZ).log
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest --timeout=0 -s property_tests tests/adapters/workers/watch/test_stack_soak.py 2>&1 | tee logs/soak-$$(date -u +%Y%m%dT%H%M%SZ).log
	$(MAKE) mutants

.PHONY: mutants
mutants: setup  ## bugs put into the core on purpose: each must be found by chance, and each small change noticed; an hour
	$(BIN)/python tools/mutation.py search
	$(BIN)/python tools/cosmic.py

# ------------------------------------------------------------------------------------------------------------------ show

.PHONY: demo
demo: setup  ## train on two nodes, kill a worker, then a node, bring it back: about a minute
	@$(BIN)/python examples/digits/demo.py

.PHONY: demo-inprocess
demo-inprocess: setup  ## train with an error, a hang, a NaN and a SIGKILL that cost no restart: about a minute
	@$(BIN)/python examples/digits/inprocess_demo.py

.PHONY: pictures
pictures: setup  ## make the pictures of README.md again, from real runs: about a minute and a half
	$(BIN)/python tools/pictures.py

.PHONY: bench
bench: setup etcd  ## the benchmarks beside torchrun: about 40 minutes; single ones as benchmarks/README.md says
	$(BIN)/python benchmarks/core_edit.py
	$(BIN)/python benchmarks/simulator.py
	$(BIN)/python benchmarks/launch.py
	$(BIN)/python benchmarks/nodes.py
	$(BIN)/python benchmarks/rendezvous.py

.PHONY: parity
parity: setup  ## the same command lines under torchrun and elastic launch: each difference has a reason; some minutes
	$(BIN)/python benchmarks/parity.py

.PHONY: clean
clean:  ## remove all that make made, .venv too
	rm -rf $(VENV) .venvs build *.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find $(ROOMS) tests tools property_tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help
help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
