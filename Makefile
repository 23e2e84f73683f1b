# make demo    check a valid and a violated history, write out/demo.html
# make test    all tests, with their total
# make test-certificates  100,000 random certificates of each kind against brute force
# make long    every engine against brute force on a million histories and more (linearizability, mixed levels, psi, uncertain
#              reads, assumptions, certificates, every back end): hours
# make lint    documents wrapped, rustfmt, clippy and rustdoc, warnings denied
# make release the program with all that is on by default, all of it optimised, in target/release
# make python  the Python wheel in out/wheels, built with maturin and tested
# make bench   whole checks beside the best peers, the growth to a million transactions, and each phase alone
# make doc     the API's documentation, in target/doc
# make setup   install the system packages that the build lacks (the targets above do it by themselves; make test also
#              installs what its tests start, says so first, and skips loudly what it may not install)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := demo
.PHONY: demo release python test test-certificates long lint bench doc setup

demo: setup
	scripts/demo

test:
	@scripts/setup test
	scripts/test

test-certificates: setup
	KINGSNAKE_LONG=1 cargo test --locked --release -p kingsnake-adya --test random

long: setup
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-linearizable --test oracle
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-solver --lib -- --nocapture mixed_levels_agree parallel_snapshot_isolation_agrees assum uncertain aggregates proposals weak::tests
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake --test generated_predicates -- --nocapture
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-encodings --test levels --test agreement
	KINGSNAKE_LONG=1 cargo test --locked -p kingsnake-adya --test random

# Clippy and the tests share the dev profile, so that CaDiCaL is built once for both.
lint: setup
	scripts/wrap-docs --check
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p kingsnake-cli --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

release: setup
	cargo build --config .cargo/optimised.toml --locked --release -p kingsnake-cli

python: setup
	scripts/python --release

bench: setup
	cargo build --config .cargo/optimised.toml --locked --release -p kingsnake-cli -p kingsnake-benches
	target/release/speed --growth out/growth
	target/release/speed --weak out/weak
	cargo bench --config .cargo/optimised.toml --locked -p kingsnake-benches

doc: setup
	cargo doc --locked --workspace --no-deps

setup:
	@scripts/setup demo
