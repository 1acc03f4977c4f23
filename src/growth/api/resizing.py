"""What a pod really holds while it is being resized in place."""

from collections.abc import Mapping

import msgspec

from growth.api.meta import ResourceList
from growth.api.pods import Container, ContainerStatus, Pod, PodSpec, ResourceRequirements
from growth.units.resources import amount_of


def current_spec(pod: Pod) -> PodSpec:
    """The spec with each container's requests raised to what the kubelet has granted or still runs with.

    While a resize goes on, a node must hold the larger of the old and the new request; that is what kube-scheduler
    counts. Where nothing differs the very same spec comes back.
    """
    statuses = pod.status.container_statuses
    if not statuses:
        return pod.spec
    by_name = {status.name: status for status in (*statuses, *pod.status.init_container_statuses)}
    containers = tuple(_current(container, by_name) for container in pod.spec.containers)
    inits = tuple(_current(container, by_name) for container in pod.spec.init_containers)
    if containers == pod.spec.containers and inits == pod.spec.init_containers:
        return pod.spec
    return msgspec.structs.replace(pod.spec, containers=containers, init_containers=inits)


def _current(container: Container, statuses: Mapping[str, ContainerStatus]) -> Container:
    status = statuses.get(container.name)
    if status is None:
        return container
    running: ResourceList = status.resources.requests if status.resources else {}
    asked = container.resources.requests
    held = dict(asked)
    for granted in (status.allocated_resources, running):
        for name, quantity in granted.items():
            if name in held and amount_of(name, quantity) > amount_of(name, held[name]):
                held[name] = quantity
    if held == asked:
        return container
    resources = ResourceRequirements(
        requests=held, limits=container.resources.limits, claims=container.resources.claims
    )
    return msgspec.structs.replace(container, resources=resources)
