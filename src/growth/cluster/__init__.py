"""The in-memory view of the cluster, fed by watches; hands out immutable snapshots.

May import providers' types, kube, api. `growth.cluster.snapshot` imports `growth.api` and `growth.units` only, because
planning reads it.
"""
