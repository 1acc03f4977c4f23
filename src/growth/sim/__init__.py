"""The simulated world: virtual time, faults, a scheduler, kubelets, workloads, invariants.

May import everything; only tests, `growth.cli` and `bench` may import it. Equal seeds give equal traces.

`kernel` is the event loop with virtual time and `process` its crashable processes; `ports`, `wire` and `network` are the
simulated ways outside; `world` plays the rest of a cluster by the rules of `predicates`; `trials` stress single parts.
"""
