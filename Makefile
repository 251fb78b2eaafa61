# The commands of this repository. Each sets up what it needs by itself (see scripts/).

ARGS   ?=
# Of the model check, in each of its two tests.
SIM_STEPS ?= 20000000
TARGET := $(or $(CARGO_TARGET_DIR),target)
# What `bursar version` names; empty outside of a repository.
COMMIT = $(shell git rev-parse --short=12 HEAD 2>/dev/null)
install uninstall install-user uninstall-user: export TARGET := $(TARGET)
# The cmake that scripts/setup-native.sh may have put there.
export PATH := $(CURDIR)/.cache/tools/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo demo-fleet build release lint fmt docs tidy-report test test-all torture leases faults defences fuzz bench bench-quick bench-compare bench-baseline bench-ledger bench-fleet bench-translate soak install uninstall install-user uninstall-user deb tarball container test-clients test-package test-release test-page clean-tools

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build, then show bursar at work on its sandbox (ARGS=--once to stop after the story)
	@scripts/demo.sh $(ARGS)

demo-fleet: ## build, then show three machines with one account and one cap: killed, offline, copied, and the books
	@scripts/demo-fleet.sh

build: ## build with the dev profile
	@scripts/setup-native.sh
	cargo build --workspace --locked

release: ## build what `make install` installs
	@scripts/setup-native.sh
	BURSAR_COMMIT=$(COMMIT) cargo build --workspace --locked --release

lint: ## layout, clippy with warnings denied, licences, bans, advisories
	@scripts/lint.sh

fmt: ## lay out the source
	cargo fmt --all

docs: ## write the pages of docs/ that are made from the code
	@scripts/setup-native.sh
	BURSAR_WRITE_DOCS=1 cargo test --workspace --locked --lib the_page_of

tidy-report: ## lines, files, circles of files, type names that stand twice
	@scripts/setup-native.sh
	cargo test --workspace --locked --test it tidy::rooms::report -- --ignored --nocapture

test: ## everything CI runs: layout, clippy, Rust tests, systemd unit, OpenAI SDKs, promtool
	@scripts/test.sh

test-all: ## test, with the slow tests, the real client programs, the page in Chromium, a real Prometheus, reference scorers, the supply chain, the demos of a release build and the packages
	@scripts/setup-native.sh
	@scripts/deny.sh
	cargo check --workspace --locked --no-default-features
	cargo build --workspace --locked --release
	$(TARGET)/release/bursar demo --once
	$(TARGET)/release/bursar demo --compare --once
	@IGNORED=1 scripts/test.sh
	@scripts/package.sh deb tarball
	@REUSE=1 scripts/test-package.sh
	@REUSE=1 scripts/test-release.sh

torture: ## a thousand kills, every call to the disk failing, 2000 power cuts, 20 million steps of the model check
	@scripts/setup-native.sh
	BURSAR_KILLS=1000 cargo test --workspace --locked --test it crash::
	BURSAR_DISK=all cargo test --workspace --locked --test it disk::
	BURSAR_CUTS=2000 cargo test --workspace --locked --test it power::
	BURSAR_SIM_STEPS=$(SIM_STEPS) cargo test --workspace --locked --lib simulation::

leases: ## 10,000 runs of the model of shared caps, and one with 10,000 bursars
	@scripts/setup-native.sh
	BURSAR_LEASE_RUNS=10000 cargo test --workspace --locked --release --lib no_shared_cap_is_exceeded
	BURSAR_LEASE_RUNS=1 BURSAR_LEASE_HOLDERS=10000 cargo test --workspace --locked --release --lib no_shared_cap_is_exceeded

faults: ## plant faults one after the other, and say which test catches each (N=3,7 for some)
	@scripts/setup-native.sh
	scripts/planted-faults.py $(if $(N),--only $(N))

defences: ## take the defences of docs/threats.md out, and say which case sees each (ROWS=3,7 for some)
	@scripts/setup-native.sh
	scripts/defences.py $(if $(ROWS),--only $(ROWS))

fuzz: ## each fuzz target for ten minutes (SECONDS_EACH=600)
	@scripts/fuzz.sh

bench: ## own time, memory and stream delay against a bare pingora, nginx and HAProxy; writes docs/benchmarks.md
	@scripts/bench.sh full $(ARGS)

bench-quick: ## some rows of it in two minutes, without a verdict
	@scripts/bench.sh quick $(ARGS)

bench-compare: ## all of it, and what moved since benches/baseline.json
	@scripts/bench.sh compare $(ARGS)

bench-baseline: ## all of it, kept as the next baseline
	@scripts/bench.sh baseline $(ARGS)

soak: ## 30 minutes at 500 requests a second: what grows, and what it costs at the end (MINUTES=5 for less)
	@MINUTES=$(or $(MINUTES),30) scripts/bench.sh soak $(ARGS)

bench-ledger: ## time, memory and room of a long ledger (ENTRIES=10000000); fails where `bursar line` takes more than 20 ms of a million
	@scripts/setup-native.sh
	cargo bench --workspace --locked --bench ledger -- $(or $(ENTRIES),1000000)

bench-fleet: ## 200 bursars at one PostgreSQL for ten minutes, directly and by pgbouncer: what a visit and a line cost (MINUTES=1 for less)
	@scripts/setup-native.sh
	@scripts/setup-postgresql.sh
	BURSAR_FLEET_MINUTES=$(or $(MINUTES),10) cargo test --workspace --locked --test it fleet::load:: -- --ignored --nocapture --test-threads=1

bench-translate: ## CPU of a translated request and its answer, by size; fails above 1 ms for 100 KB
	@scripts/setup-native.sh
	cargo bench --workspace --locked --bench translate

install: ## install what the package bursar holds (PREFIX, DESTDIR: scripts/install.sh); build with `make release` first
	@scripts/install.sh install

uninstall: ## take away what `make install` installed; configuration, key and ledger stay
	@scripts/install.sh uninstall

install-user: ## the same for one user, without root, below ~/.local, with a service of the user's own systemd
	@scripts/install.sh install-user

uninstall-user: ## take away what `make install-user` installed; configuration, key and ledger stay
	@scripts/install.sh uninstall-user

deb: ## two Debian packages, daemon and sandbox, in .cache/package/out
	@scripts/package.sh deb

tarball: ## a tarball of programs that start on glibc 2.31 or newer, with its checksum
	@scripts/package.sh tarball

container: ## a container image from the tarball, where podman or docker and the base image are at hand
	@scripts/package.sh tarball container

test-package: ## the packages in a booted systemd: install, use, upgrade, remove, purge (root)
	@scripts/test-package.sh

test-release: ## the tarball in an empty directory and on Debian 11, `cargo install`, the container image
	@scripts/test-release.sh

test-clients: ## Codex, Claude Code and the other programs of docs/clients.md, through bursar on the sandbox (root)
	@scripts/setup-native.sh
	@scripts/test-clients.sh

test-page: ## the status page in Chromium, with axe-core; screenshots in .cache/page
	@scripts/test-page.sh

clean-tools: ## remove what the set-up put below .cache, tests/sdk/node, tests/clients and tests/browser
	rm -rf .cache tests/sdk/node/node_modules tests/clients/node_modules tests/browser/node_modules
