# make demo    check a valid and a violated history, write out/demo.html
# make test    all tests, with their total
# make test-databases     the databases that make test does not install: their self-tests, controls, faults and short collections
# make test-certificates  100,000 random certificates of each kind against brute force
# make long    every engine against brute force on a million histories and more (features combined, linearizability, mixed levels,
#              psi, uncertain reads, assumptions, certificates, every back end); make fuzz; 40 kills of each command that resumes:
#              hours
# make fuzz    every reader fuzzed for a minute, guided by the edges of the program that an input reaches, which are told
# make lint    documents wrapped, rustfmt, clippy and rustdoc, warnings denied
# make release the optimised program, in target/release: what was measured; make demo builds a quick one, in target/demo
# make dist    a tarball and a Debian package of the optimised program, in out/dist; make test-dist installs and runs both
#              in a clean Debian (root, debootstrap)
# make package every crate that a user needs as crates.io would get it, built from its own package
# make python  the Python wheel in out/wheels, built with maturin and tested
# make bench   whole checks beside the best peers, the growth to a million transactions, and each phase alone
# make gpu-box all of docs/gpu-box.md on a machine with a GPU: hours, and one archive to send back
# make doc     the API's documentation, in target/doc
# make book    docs/*.md as a book, in target/book; builds mdBook the first time
# make setup   install the system packages that the build lacks (the targets above do it by themselves; make test also
#              installs what its tests start, says so first, and skips loudly what it may not install)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := demo
.PHONY: demo release dist test-dist package python test test-databases test-certificates long fuzz lint bench gpu-box doc book setup

demo: setup
	scripts/demo

test:
	@scripts/setup test
	scripts/test

test-databases:
	@scripts/setup databases
	scripts/test-databases

test-certificates: setup
	KINGSNAKE_LONG=1 cargo test --locked --profile demo -p kingsnake-adya --test random

long: setup fuzz
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-linearizable --test oracle
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-solver --lib -- --include-ignored --nocapture mixed_levels_agree parallel_snapshot_isolation_agrees assum uncertain aggregates proposals weak::tests
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake --test generated_predicates --test combined -- --include-ignored --nocapture
	cargo test --locked -p kingsnake-cli --test seams -- --ignored --nocapture
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-encodings --test levels --test agreement
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-adya --test random
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-watch -- --nocapture
	KINGSNAKE_KILLS=40 cargo test --locked -p kingsnake-cli --test kills -- --nocapture --test-threads=1

fuzz: setup
	KINGSNAKE_FUZZ_SECONDS=$${KINGSNAKE_FUZZ_SECONDS:-60} RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/scripts/with-coverage cargo test --locked --workspace --bin kingsnake --config profile.dev.package.kingsnake-cli.opt-level=1 -- --nocapture no_bytes_make_a_reader_panic

# Clippy and the tests share the dev profile, so that CaDiCaL is built once for both.
lint: setup
	scripts/wrap-docs --check
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p kingsnake-cli --no-default-features -- -D warnings
	cargo clippy --locked -p kingsnake --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

release: setup
	cargo build --locked --release -p kingsnake-cli

dist: setup
	scripts/dist

test-dist:
	scripts/test-dist

# In the order of their dependencies. The laboratory and the benchmarks are for this repository only.
package: setup
	cargo package --locked --workspace --exclude kingsnake-lab --exclude kingsnake-benches $(PACKAGE)

python: setup
	scripts/python --release

bench: setup
	cargo build --locked --release -p kingsnake-cli -p kingsnake-benches
	target/release/speed --growth out/growth
	target/release/speed --weak out/weak
	cargo bench --locked -p kingsnake-benches

gpu-box: setup
	scripts/gpu-box

doc: setup
	cargo doc --locked --workspace --no-deps

book: setup
	scripts/book

setup:
	@scripts/setup demo
