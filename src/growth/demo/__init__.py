"""The demo: a whole cluster in one process, with the real autoscaler in it, at the pace of a person who watches.

    MemoryServer ◄── scheduler, workloads, budgets, nodes: the simulated world's    (`cluster`)
        ▲  ▲ ◄────── Growth as `growth run` runs it, unchanged, and who sells     (`cluster`, `sellers`)
        │  └──────── waves of workload                                             (`scene`, `playing`)
        └─────────── over HTTP on loopback: kubectl, and the live view             (`process`)

May import everything but `cli`; nothing but `cli` imports it.
"""
