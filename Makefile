# Each of these works on a fresh clone; the scripts do not need make.
.PHONY: help setup check test bench bench-peers run demo

help:
	@echo "make setup   create .venv"
	@echo "make check   lint, format, types, imports"
	@echo "make test    the whole test suite"
	@echo "make bench   the benchmark (docs/performance.md)"
	@echo "make bench-peers  the same load on other gateways"
	@echo "make run     the gateway with config/gateway.yaml"
	@echo "make demo    a legacy server, the gateway in front of it, and calls to paste"

setup:
	@sh scripts/setup

check:
	@sh scripts/check

test:
	@sh scripts/test

bench: setup
	@sh scripts/bench

bench-peers: setup
	@sh scripts/bench-peers

run:
	@sh scripts/run

demo:
	@sh scripts/demo
