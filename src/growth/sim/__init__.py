"""The simulated world: virtual time, faults, a scheduler, kubelets, workloads, invariants.

May import everything; only tests, `growth.cli` and `bench` may import it. Equal seeds give equal traces.
"""
