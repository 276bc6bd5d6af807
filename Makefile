# One target per act. `make help` lists them. Everything lands under this folder (.venv, target, out), except Debian
# packages, which scripts/packages.sh installs when they are missing and root or sudo is there.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= $(shell nproc)

# Sources of the native module: when none of them changed, setup does nothing.
NATIVE_SOURCES := Cargo.toml Cargo.lock $(shell find crates congestion -type f \
	\( -name '*.rs' -o -name '*.toml' -o -name '*.c' -o -name '*.h' \) -not -path '*/tests/*' 2>/dev/null)

# The clang that makes the BPF objects in the module, none where there is none. Looked for when it is needed, since
# .stamp-tools may have brought it.
CLANG ?= $(shell for c in clang $$(seq -f 'clang-%g' 25 -1 11); do command -v $$c && break; done)

# Versions that the tests were last run with; pip keeps to them.
export PYTHON
export PIP_CONSTRAINT := $(CURDIR)/scripts/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CARGO_BUILD_JOBS := $(JOBS)
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV)/.stamp-native ## build everything that demo and the elephan command need (seconds when nothing changed)

# The packages that are unpacked while the native module is built.
PACKAGES := $(VENV)/.stamp-packages
.PHONY: dev
dev: PACKAGES := $(VENV)/.stamp-dev
dev: $(VENV)/.stamp-native $(VENV)/.stamp-dev ## setup, and what tests and lints need beside it

.PHONY: demo
demo: setup ## mirror a real OLTP trace over 67 ms under four congestion controls; report in out/demo
	$(BIN)/elephan run examples/replicate-oltp.toml --out out/demo
	@echo "Open out/demo/report.html in a browser."

.PHONY: test
test: $(VENV)/.stamp-tools $(VENV)/.stamp-python ## every test and lint; last line: N passed, N failed, N skipped
	@$(BIN)/python scripts/check.py

.PHONY: lint
lint: dev ## formatting and lints only
	@$(BIN)/python scripts/check.py --only lint

.PHONY: golden
golden: dev ## digests of 13 golden records: optimised, with debug assertions, and on aarch64 under qemu-user
	scripts/packages.sh cross
	$(BIN)/python -m tests.determinism.golden

# As in `make soak MINUTES=60`.
MINUTES ?= 10
.PHONY: soak
soak: dev ## scenarios drawn at random, each run in five ways that have to agree; MINUTES=10
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

.PHONY: model
model: dev agent ## copies drawn at random, each held against a model, killed or not; as root; MINUTES=10
	scripts/packages.sh test
	$(BIN)/python -m tests.copy.model --minutes $(MINUTES) --fs tmpfs,ext4,xfs

.PHONY: backup-model
backup-model: dev ## jobs of backup drawn at random, each version held against a model; as root; MINUTES=10
	$(BIN)/python -m tests.backup.model --minutes $(MINUTES)

.PHONY: power-cut
power-cut: dev ## power cuts of all that calls data durable, at every flush and 500 points between; as root; hours
	scripts/packages.sh test
	scripts/packages.sh power-cut
	$(BIN)/python -m tests.power_cut

.PHONY: field
field: dev ## two sites on a path that changes: each page's promises by the command, with longer periods; as root
	scripts/packages.sh test
	ELEPHAN_FIELD=whole $(BIN)/python -m pytest -q tests/field

.PHONY: nightly
nightly: dev ## all searches by random seeds, power cuts, virtual machines, one after the other; as root; MINUTES=60
	scripts/nightly.sh $(MINUTES)

.PHONY: wheel
wheel: $(VENV)/.stamp-tools setup ## manylinux wheels in out/wheel, for aarch64 too, and README's commands from them
	CLANG="$(CLANG)" scripts/wheel.sh

.PHONY: agent
agent: ## the agent for real hosts, static, in target/agent: for this machine and for aarch64 (5 to 10 minutes)
	@echo "elephan: building the agents (5 to 10 minutes; on x86_64 with a cross compiler and qemu-user-static)"
	scripts/packages.sh build
	CLANG="$(CLANG)" scripts/agent.sh

# Crates without I/O: time, sockets and files are not there to be used.
CORES := units congestion link tcp udt wire line-test path-test diagnosis change-detection copy storage sim te spec
.PHONY: wasm
wasm: ## the crates without I/O build for WebAssembly, which has no clock, socket or file
	scripts/packages.sh wasm
	CC_wasm32_unknown_unknown="$(CLANG)" AR_wasm32_unknown_unknown="$$(command -v llvm-ar || command -v ar)" \
	cargo check --quiet --locked --target wasm32-unknown-unknown $(addprefix -p ,$(CORES))

# The version that Cargo.toml declares as the least.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
.PHONY: msrv
msrv: ## build with the least Rust that Cargo.toml declares
	rustup toolchain list | grep -q '^$(MSRV)' || rustup toolchain install $(MSRV) --profile minimal
	cargo +$(MSRV) check --locked --workspace --target-dir target/msrv

.PHONY: bench
bench: setup ## speed against ns-2, ns-3 and a bare skeleton; writes docs/results/performance.md
	$(BIN)/python -m evaluation.performance

.PHONY: peers
peers: ## install the simulators that bench and fidelity compare with (Debian's ns2 and libns3-dev)
	scripts/packages.sh peers

.PHONY: netem
netem: dev ## tests of path.emulator = "netem" in a virtual machine whose kernel has it (this one may not): minutes
	scripts/packages.sh netem
	scripts/netem.sh

.PHONY: modules
modules: dev ## Linux's own congestion controls beside ours, call by call and in a virtual machine, resumed; hours
	scripts/packages.sh modules
	$(BIN)/python -m evaluation.fidelity.modules.calls
	$(BIN)/python -m evaluation.fidelity.modules

.PHONY: fc
fc: dev ## Linux's own Fibre Channel stack, in virtual machines, through gateways: minutes
	scripts/packages.sh netem
	scripts/fc.sh

.PHONY: fidelity
fidelity: setup ## against Mathis, Padhye, ns-2 and the Linux kernel's numbers; writes docs/results/fidelity.md
	$(BIN)/python -m evaluation.fidelity

.PHONY: backend
backend: setup ## measure the kernel backend for docs/results/fidelity.md, as root: hours the first time
	$(BIN)/python -m evaluation.fidelity.backend

.PHONY: policed
policed: setup ## flows behind a policer, simulated and on this kernel, as root; writes docs/results/policed.md
	$(BIN)/python -m evaluation.policed

.PHONY: cc
cc: setup ## what each congestion control does; writes docs/results/congestion-control.md
	$(BIN)/python -m evaluation.congestion_control

.PHONY: detection
detection: setup ## how well the manager tells elephants from mice; writes docs/results/detection.md
	$(BIN)/python -m evaluation.detection

.PHONY: mitigation
mitigation: setup ## what a move costs with each mitigation; writes docs/results/mitigation.md
	$(BIN)/python -m evaluation.mitigation

.PHONY: gateways
gateways: setup ## what distance, loss and neighbours do to Fibre Channel frames; writes docs/results/gateways.md
	$(BIN)/python -m evaluation.gateways

.PHONY: docs
docs: dev ## write what is generated from the code: scenario schema and reference, metrics, types of a run
	$(BIN)/python scripts/run_spec_types.py --write
	$(BIN)/python -m elephan.scenario.schema --write
	$(BIN)/python -m elephan.scenario.reference --write
	$(BIN)/python -m elephan.backup.reference --write
	$(BIN)/python -m elephan.monitor.reference --write
	$(BIN)/python -m elephan.report.metrics --write

.PHONY: clean
clean: ## remove everything that was built (stored results stay)
	rm -rf $(VENV) target out elephan/_native*.so .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up, in steps that each leave a stamp. A changed input runs its step again and those after it.

$(VENV)/.stamp-python: scripts/packages.sh
	scripts/packages.sh build
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) maturin
	touch $@

# Of packages only what is used is compiled, when it is used first: the rest would be 25 s.
PIP := $(BIN)/pip install --quiet --no-compile
REQUIREMENTS := pyproject.toml scripts/constraints.txt scripts/requirements.py
$(VENV)/.stamp-packages: $(VENV)/.stamp-python $(REQUIREMENTS)
	@$(BIN)/python scripts/requirements.py >$@.txt && $(PIP) -r $@.txt
	touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-packages
	@$(BIN)/python scripts/requirements.py dev >$@.txt && $(PIP) -r $@.txt
	touch $@

$(VENV)/.clang: FORCE
	@mkdir -p $(VENV) && echo "$(CLANG)" | cmp -s - $@ || echo "$(CLANG)" >$@

.PHONY: FORCE
FORCE:

MATURIN := VIRTUAL_ENV=$(CURDIR)/$(VENV) PIP_QUIET=1 CLANG="$(CLANG)" $(BIN)/maturin develop --quiet --release
$(VENV)/.stamp-native: $(VENV)/.stamp-python $(REQUIREMENTS) $(VENV)/.clang $(NATIVE_SOURCES)
	@echo "elephan: building the native module and installing Python packages (about three minutes on two cores)"
	@$(MAKE) $(PACKAGES) & packages=$$!; $(MATURIN) --skip-install; built=$$?; wait $$packages && exit $$built
	@# With all packages there it installs the command.
	@$(MATURIN)
	@# So that the first commands do not compile it, nor all of them where Python may not write.
	$(BIN)/python -m compileall -q elephan
	$(BIN)/python -c "import alembic, matplotlib.pyplot, pandas, pyarrow.parquet, scipy.stats, typer"
	touch $@

$(VENV)/.stamp-tools: scripts/packages.sh
	scripts/packages.sh test
	mkdir -p $(VENV) && touch $@
