# Everything that a newcomer or a test machine needs, by one word each. The work is in .ci/ and in cargo.

CARGO ?= cargo
OUT ?= out/demo

.PHONY: help demo test bench validate

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build, compare placements on a real trace, say where the report is
	@.ci/install toolchain
	$(CARGO) build --release --locked --package isotherm-cli
	target/release/isotherm compare traces/sqlite-wal-ext4.csv.zst \
	    --placement single,host_gc,epoch --victim greedy,cost_benefit --op 7% \
	    --address compact --repeat 4 --out $(OUT)
	@echo "The report: file://$(CURDIR)/$(OUT)/report.html"

test: ## install what the tests need and run all of them
	@.ci/test

bench: ## ns per host write and per NAND program, beside a bare loop over the same tables
	@.ci/install toolchain
	$(CARGO) bench --locked --workspace

validate: ## compare the simulator with the closed forms, cell by cell
	@.ci/install toolchain
	$(CARGO) run --release --locked --package isotherm-cli -- validate
