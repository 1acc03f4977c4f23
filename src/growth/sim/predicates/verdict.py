"""All rules together."""

from collections.abc import Iterator

from growth.api.pods import Pod
from growth.sim.predicates.among_pods import among_pods
from growth.sim.predicates.hosts import Host, Scene
from growth.sim.predicates.of_volumes import of_volumes
from growth.sim.predicates.on_one_node import on_one_node


def refusals(pod: Pod, host: Host, scene: Scene) -> list[str]:
    """Why kube-scheduler would not bind the pod to the host of the scene; empty: it could.

    Each begins with the rule's name: name, gates, taints, labels, room, ports, volumes, spread, affinity, anti-affinity.
    """
    return list(_refusals(pod, host, scene))


def fits(pod: Pod, host: Host, scene: Scene) -> bool:
    """Whether there is no refusal. The first one decides: rules about other pods, which cost most, are asked last."""
    return next(_refusals(pod, host, scene), None) is None


def _refusals(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    yield from (f"gates: {gate.name}" for gate in pod.spec.scheduling_gates)
    yield from on_one_node(pod, host)
    yield from of_volumes(pod, host, scene)
    yield from among_pods(pod, host, scene)
