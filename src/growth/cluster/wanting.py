"""Which pods want a place: not those that are done or going, and none that belongs to its node."""

from typing import Final

from growth.api import names
from growth.cluster.shapes import CachedPod

_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_OF_NODES: Final = frozenset({"DaemonSet", "Node"})  # owners whose pods belong to their node; a Node's are mirrors


def key_of(pod: CachedPod) -> str:
    """As plans and messages name it: namespace/name."""
    return f"{pod.shape.namespace}/{pod.name}"


def is_done(pod: CachedPod) -> bool:
    """Whether the pod has ended for good: it holds nothing any more."""
    return pod.phase in _TERMINAL


def of_daemon_set(pod: CachedPod) -> bool:
    return pod.owner is not None and pod.owner.kind == "DaemonSet"


def is_mirror(pod: CachedPod) -> bool:
    """Whether a kubelet runs it from a file of its own."""
    return names.MIRROR_POD_ANNOTATION in pod.annotations or (pod.owner is not None and pod.owner.kind == "Node")


def movable(pod: CachedPod) -> bool:
    """Whether the pod wants a place of its own: not one that goes, and none that belongs to its node."""
    if pod.deleting is not None or names.MIRROR_POD_ANNOTATION in pod.annotations:
        return False
    return pod.owner is None or pod.owner.kind not in _OF_NODES


def is_placeless(pod: CachedPod) -> bool:
    """Whether the pod is on no node, and neither done nor going."""
    return not pod.node_name and pod.deleting is None and not is_done(pod)


def waits_for(pod: CachedPod) -> str:
    """What a pod without a node waits for before a machine would help it; empty for nothing."""
    if pod.deleting is not None:
        return ""
    gates = pod.shape.spec.scheduling_gates
    if gates:
        return f"scheduling gates: {', '.join(gate.name for gate in gates)}"
    if preempts(pod):
        return f"preemption on node {pod.nominated_node_name}"
    return ""


def preempts(pod: CachedPod) -> bool:
    """Whether kube-scheduler has asked others to go for it. It takes what room comes first, there or elsewhere."""
    return bool(pod.nominated_node_name) and not pod.shape.spec.scheduling_gates


def wants_machine(pod: CachedPod) -> bool:
    """Whether a machine would help the pod now: no node, no gate, no promise of one, and not about to go."""
    return is_placeless(pod) and movable(pod) and not waits_for(pod)
