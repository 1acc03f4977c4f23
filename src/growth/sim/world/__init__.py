"""The parts of a cluster that Growth does not play: a scheduler, controllers of workloads, kubelets.

May import what `growth.sim` may import. Each part speaks to the server through `kube.Api` alone, follows it by informers
as the real ones do, and leaves decisions about placement to `growth.sim.predicates`. They are not Growth: they run
outside its process and survive its crashes.
"""
