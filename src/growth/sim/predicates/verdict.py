"""All rules together."""

from growth.api.pods import Pod
from growth.sim.predicates.among_pods import among_pods
from growth.sim.predicates.hosts import Host, Scene
from growth.sim.predicates.of_volumes import of_volumes
from growth.sim.predicates.on_one_node import on_one_node


def refusals(pod: Pod, host: Host, scene: Scene) -> list[str]:
    """Why kube-scheduler would not bind the pod to the host of the scene; empty: it could.

    Each begins with the rule's name: name, gates, taints, labels, room, ports, volumes, spread, affinity, anti-affinity.
    """
    gates = [f"gates: {gate.name}" for gate in pod.spec.scheduling_gates]
    return [*gates, *on_one_node(pod, host), *of_volumes(pod, host, scene), *among_pods(pod, host, scene)]
