# Two commands matter: `make demo` and `make test`. Each sets up what it needs on a machine with Python >=3.11, pip, make and git.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types imports plane peer joining locks clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

setup: ## .venv with everything that demo and test need
	@tools/setup test

demo: ## see Growth at work; needs no account and no cluster
	@tools/setup demo
	@.venv/bin/growth demo

test: setup lint types imports plane peer joining ## all checks: ruff, mypy, import-linter, pytest on the real control plane
	CI=true .venv/bin/pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

lint: setup
	.venv/bin/ruff check
	.venv/bin/ruff format --check

types: setup
	.venv/bin/mypy

imports: setup
	.venv/bin/lint-imports

plane: setup ## the real control plane for tests, built once into a cache outside the checkout
	@.venv/bin/python -m tools.controlplane build

peer: setup ## Karpenter's own scheduler and KWOK controller for tests and benchmarks, built once into the same cache
	@.venv/bin/python -m bench.peers.karpenter build

joining: setup ## kubeadm's, the kubelet's, k3s' and Talos' own checks of what machines join with, built once into the same cache
	@.venv/bin/python -m tools.joining build

locks: setup ## resolve the locks afresh
	@tools/lock

clean: ## remove what setup made
	rm -rf .venv .uv
