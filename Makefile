# Everything that a newcomer or a test machine needs, by one word each. The work is in .ci/ and in cargo.

CARGO ?= cargo
OUT ?= out/demo
MINUTES ?= 60

.PHONY: help demo test system soak bench validate figures format wheel dist docs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build, compare placements on a real trace, say where the report is
	@.ci/install toolchain
	$(CARGO) build --release --locked --package isotherm-cli
	target/release/isotherm compare traces/sqlite-wal-ext4.csv.zst \
	    --placement single,epoch,isotherm --victim greedy,cost_benefit,isotherm --spare 7% \
	    --address compact --precondition trace --out $(OUT)
	@echo "The report: file://$(CURDIR)/$(OUT)/report.html"

test: ## install what the tests need and run all of them
	@.ci/test

system: ## run what needs more time or software: fuzzing, the oldest compiler, a fresh machine
	@.ci/system

soak: ## look for rare failures for MINUTES (60): properties from new seeds, and fuzzing; then drives and file systems that are killed and cut
	@.ci/soak $(MINUTES)
	@.ci/soak-drive
	$(CARGO) build --release --locked --package isotherm-cli
	@.ci/soak-sfs 100
	@ISOTHERM_SOAK=1 $(CARGO) test --locked --package isotherm-fs --test integration -- --nocapture log:: crash::after_every_two
	@.ci/large-sfs
	@.ci/memory-sfs
	@.ci/posix-suite --long

wheel: ## the Python package, as a wheel for any Linux of the last ten years (manylinux2014) and as sources, in dist/
	@.ci/wheel

dist: ## a static binary with its manual pages, completions and licences, in dist/
	@.ci/dist

docs: ## the documentation as a site, in book/
	@.ci/book

format: ## format every Rust file
	@.ci/format

figures: ## run every experiment; write experiments/README.md and its pictures
	@.ci/figures

bench: ## ns per host write and per NAND program, beside a bare loop over the same tables
	@.ci/install toolchain
	$(CARGO) bench --locked --workspace
	@.ci/bench-drive
	@.ci/bench-sfs

validate: ## compare the simulator with the closed forms, cell by cell
	@.ci/install toolchain
	$(CARGO) run --release --locked --package isotherm-cli -- validate
