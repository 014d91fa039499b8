# Each of these works on a fresh clone; the scripts do not need make.
.PHONY: help setup check test test-replicas sweep bench bench-peers run demo

help:
	@echo "make setup   create .venv"
	@echo "make check   lint, format, types, imports"
	@echo "make test    the test suite"
	@echo "make test-replicas  what takes real replicas that are killed, in minutes of its own"
	@echo "make sweep   published stdio servers behind one gateway (docs/testing.md)"
	@echo "make bench   the benchmark (docs/performance.md)"
	@echo "make bench-peers  the same load on other gateways"
	@echo "make simulate  a thousand replicas on one store (docs/sizing.md)"
	@echo "make run     the gateway with config/gateway.yaml"
	@echo "make demo    a legacy server, the gateway in front of it, and calls to paste"

setup:
	@sh scripts/setup

check:
	@sh scripts/check

test:
	@sh scripts/test

test-replicas:
	@sh scripts/test-replicas

sweep:
	@sh scripts/sweep

bench: setup
	@sh scripts/bench

bench-peers: setup
	@sh scripts/bench-peers

simulate: setup
	@sh scripts/simulate

run:
	@sh scripts/run

demo:
	@sh scripts/demo
