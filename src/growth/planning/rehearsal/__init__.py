"""The rehearsal: where kube-scheduler would bind the pods of a plan, and which of them it would leave over.

kube-scheduler binds pods, not Growth, and it spreads where a plan packs; a machine more or less is decided here. This is
a fast and deterministic model of kube-scheduler 1.36 with its default profile. Its filters are the facts that planning
plans with (labels, taints, room, ports, volumes, rules among pods); its scores are NodeResourcesFit (LeastAllocated),
NodeResourcesBalancedAllocation, PodTopologySpread, InterPodAffinity, NodeAffinity and TaintToleration with the weights and
the integer arithmetic of the original. Before 1.36 NodeResourcesBalancedAllocation scored the balance that a node would
have, and not what the pod changes: `Stage.before_1_36` plays that.

What it does not know:

- kube-scheduler draws lots among nodes of equal score; here the first one wins, existing nodes by name, then planned ones
  in their order.
- Services and owners are not part of a pod's shape. The system's default spread is given to pods of ReplicaSets and
  StatefulSets, recognised by the labels that their controllers set.
- Images (ImageLocality), preemption, nominated nodes and batches of equal pods.
"""

from growth.planning.rehearsal.stage import Arrival, Rehearsal, Stage, machine, planned_name

__all__ = ["Arrival", "Rehearsal", "Stage", "machine", "planned_name"]
