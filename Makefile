# What a person does here. `make` alone lists it. Nothing below needs root.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PREFIX ?= $(HOME)/.local
PROFILE ?= release
ARGS ?=
PACKAGE_ARGS ?=
SOAK_ROUNDS ?= 200
SOAK_SEEDS ?= 100000
SOAK_HISTORIES ?= 20000
SOAK_SERVERS ?= 2000
SOAK_IDLE_S ?= 600

BIN := $(or $(CARGO_TARGET_DIR),target)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))

.PHONY: help run build runai ui ui-dev ui-check ui-test ui-shots need-node test lint bench gpu-check soak install package \
  package-test record need kube-assets

help: ## List what can be done
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20
	@echo
	@echo "  make run ARGS=\"--nodes 2x2x16GiB\"   passes arguments to \`elastane up\`"
	@echo "  make bench ARGS=\"--only ui\"         prints one part of the measurements"
	@echo "  make install PREFIX=DIR             installs into DIR/bin (default: ~/.local/bin)"

need:
	@if ! command -v cargo > /dev/null; then \
	  echo "missing: a Rust toolchain (1.94 or newer); https://rustup.rs installs one without root" >&2; \
	  exit 1; fi
	@if ! command -v cc > /dev/null; then \
	  echo "missing: a C compiler, called cc (SQLite is built from source); on Debian: the package gcc" >&2; \
	  exit 1; fi

build: need
	@cargo build --locked --profile $(PROFILE) --package elastane-cli --bins

runai: need ## Build the client alone, without any part of the server
	@cargo build --locked --profile $(PROFILE) --package elastane-cli --no-default-features --bin runai

# Vite starts on no earlier one. Who does not change the interface needs none: its built files are in
# the repository.
need-node:
	@if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 12) ? 0 : 1)' \
	    2> /dev/null; then \
	  echo "missing: Node.js 22.12 or newer (found: $$(node --version 2> /dev/null || echo none))" >&2; exit 1; fi
	@if [ ! -e ui/node_modules/.package-lock.json ] || [ ui/package-lock.json -nt ui/node_modules/.package-lock.json ]; then \
	  cd ui && npm ci --ignore-scripts --no-audit --no-fund; fi

ui: need-node ## Build the web interface into crates/ui-dist/dist (needs Node.js)
	@cd ui && npm run --silent build

ui-dev: need-node ## Show the web interface of ui/ on port 5173, with a server at ELASTANE_URL
	@cd ui && npm run --silent dev

ui-check: need-node ## Check types, lints, format and units of the web interface
	@cd ui && npm run --silent check

ui-test: need-node $(if $(PROGRAMS),,build) ## Test the web interface in a browser (needs chromium-headless-shell)
	@cd ui && ELASTANE_BIN="$(abspath $(or $(PROGRAMS),$(BIN)))" npm run --silent browser

ui-shots: need-node $(if $(PROGRAMS),,build) ## Take a picture of every page, light, dark and phone, into ui/shots
	@cd ui && ELASTANE_BIN="$(abspath $(or $(PROGRAMS),$(BIN)))" npm run --silent shots

run: build ## Build what is missing and start the product
	@if [ "$$(command -v runai || true)" = "" ]; then \
	  echo "In a second terminal, for \`runai\` and \`elastane\`:"; \
	  echo "  export PATH=\"$$(cd $(BIN) && pwd):\$$PATH\"        (or once: make install)"; echo; fi
	@exec $(BIN)/elastane up $(ARGS)

# Lint and test share one compilation: that of the tests, by clippy's compiler where it is there.
ifneq ($(shell command -v clippy-driver),)
lint test: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
lint test: export CLIPPY_ARGS := -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
endif

test: need ## Run every test, the walk-throughs included
	cargo xtask tidy
	@cargo xtask test $(ARGS); status=$$?; \
	echo "  the crash tests ran their short form; \`make soak\` runs $(SOAK_ROUNDS) rounds and $(SOAK_SEEDS) seeds"; \
	exit $$status

lint: need ## Check formatting, lints, the rules of the code base, and dependencies
	@for part in fmt clippy; do \
	  if ! cargo $$part --version > /dev/null 2>&1; then \
	    echo "missing: cargo $$part; \`rustup component add rustfmt clippy\` installs it" >&2; exit 1; fi; \
	done
	cargo fmt --all --check
	cargo test --locked --workspace --all-targets --no-run
	cargo xtask tidy
	@if $(MAKE) --no-print-directory need-node > /dev/null 2>&1; then \
	  echo "make ui-check"; $(MAKE) --no-print-directory ui-check; \
	elif [ "$${ELASTANE_REQUIRE_UI:-}" = 1 ]; then \
	  $(MAKE) --no-print-directory need-node; \
	else \
	  echo "skipped: the sources of the web interface (no Node.js 22.12 or newer)"; \
	fi
	@if ! command -v cargo-deny > /dev/null; then \
	  echo "skipped: licences, bans, advisories (no cargo-deny; \`cargo install --locked cargo-deny\`)"; \
	else \
	  echo "cargo deny check licenses bans sources"; \
	  cargo deny --log-level error check licenses bans sources; \
	  if cargo deny fetch db > /dev/null 2>&1; then \
	    echo "cargo deny check advisories"; \
	    cargo deny --log-level error --offline check advisories; \
	  else \
	    echo "skipped: advisories (their database cannot be fetched from here)"; \
	  fi; \
	fi

kube-assets: ## Build etcd and the API server of Kubernetes, which tests start (needs Go)
	@./kube/assets/build.sh

bench: build ## Measure the built binaries, and decisions on large clusters
	@cargo xtask bench --bin $(BIN) $(ARGS)
ifeq ($(ARGS),)
	@cargo bench --locked --quiet --package elastane-benchmarks --bench decide --bench pack --bench exact --bench loads \
	  --bench elasticity --bench fairness
	@ELASTANE_BENCH_NODES=$${ELASTANE_BENCH_NODES:-500} \
	  cargo bench --locked --quiet --package elastane-benchmarks --bench different
endif

gpu-check: need ## Try the libraries of GPU fractions on the real GPU of this machine
	@cargo bench --locked --quiet --package elastane-fraction-libs --bench gpu_check -- $(ARGS)

soak: need ## Run 100,000 random histories, 200 rounds of kills, jobs of all forms, and leave ports idle
	ELASTANE_SEEDS=$(SOAK_SEEDS) \
	  cargo test --release --locked --package elastane-sim --test it -- chaos --nocapture
	PROPTEST_CASES=$(SOAK_HISTORIES) \
	  cargo test --locked --package elastane-sched --features kai --test it -- histories properties oracle grow_back
	ELASTANE_SEEDS=$(SOAK_SERVERS) cargo test --locked --package elastane-elastane advice
	ELASTANE_SOAK_ROUNDS=$(SOAK_ROUNDS) ELASTANE_SOAK_IDLE_S=$(SOAK_IDLE_S) \
	  cargo test --locked --package elastane-cli --test system -- crash counting idle published_forms --nocapture

install: build ## Put the binaries on the PATH
	@install -d "$(PREFIX)/bin"
	@install -m 755 $(BIN)/elastane $(BIN)/runai $(BIN)/elasticdl "$(PREFIX)/bin"
	@$(BIN)/elastane man "$(PREFIX)/share/man/man1"
	@$(BIN)/elasticdl man "$(PREFIX)/share/man/man1"
	@echo "installed elastane, runai and elasticdl in $(PREFIX)/bin, their manual pages in $(PREFIX)/share/man"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; \
	  *) echo "which is not on your PATH; add it: export PATH=\"$(PREFIX)/bin:\$$PATH\"";; esac

package: need ## Build a Debian package, a static runai and a container image in target/packages
	@cargo xtask package $(PACKAGE_ARGS)

package-test: need ## Install, upgrade, remove and purge them on a fresh Debian, and run the image (root)
	@cargo xtask package-test $(PACKAGE_ARGS)

record: build ## Record the picture of a terminal in the README again
	@cargo xtask record --bin $(BIN)
