"""What a pod takes of a node, as kube-scheduler counts it."""

from collections.abc import Iterable

from growth.api.pods import Container, PodSpec, ResourceRequirements
from growth.units.resources import Amounts, add, amounts, largest

PODS = "pods"


def requests_of(spec: PodSpec) -> dict[str, int]:
    """Amounts by resource, one of `pods` included.

    Containers run together, and sidecars (init containers that stay) beside them; the other init containers run one
    after the other, each beside the sidecars started before it. Pod-level requests stand in for the sum where given, and
    pod-level limits where nobody asks for anything.
    The runtime's overhead comes on top.
    """
    total = _sum(spec.containers)
    if spec.init_containers:
        total = _with_init(total, spec.init_containers)
    if spec.resources is not None:
        whole = amounts(spec.resources.limits) | {name: amount for name, amount in total.items() if amount}
        total = {**total, **whole, **amounts(spec.resources.requests)}
    if spec.overhead:
        total = add(total, amounts(spec.overhead))
    total = {name: amount for name, amount in total.items() if amount > 0}
    total[PODS] = 1
    return total


def _sum(containers: tuple[Container, ...]) -> Amounts:
    if len(containers) == 1:
        return _asked(containers[0].resources)
    return add(*(_asked(container.resources) for container in containers))


def _with_init(running: Amounts, containers: Iterable[Container]) -> Amounts:
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in containers:
        asked = _asked(container.resources)
        if container.restart_policy == "Always":
            sidecars = add(sidecars, asked)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(sidecars, asked))
    return largest(add(running, sidecars), starting)


def _asked(resources: ResourceRequirements) -> Amounts:
    """Requests; a limit without a request counts as one, as the API server fills it in."""
    if not resources.limits:
        return amounts(resources.requests)
    return {**amounts(resources.limits), **amounts(resources.requests)}


Port = tuple[str, int, str]


def host_ports_of(spec: PodSpec) -> frozenset[Port]:
    """(address, port, protocol) that the pod binds on its node; an empty or unspecified address means all of them."""
    found: set[Port] = set()
    for container in _holders(spec):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                address = "" if port.host_ip in {"", "0.0.0.0", "::"} else port.host_ip  # noqa: S104 - compared, not bound
                found.add((address, number, port.protocol or "TCP"))
    return frozenset(found)


def _holders(spec: PodSpec) -> Iterable[Container]:
    yield from spec.containers
    yield from (container for container in spec.init_containers if container.restart_policy == "Always")


def ports_conflict(held: frozenset[Port], wanted: frozenset[Port]) -> bool:
    """Whether one of the wanted ports is taken: same number and protocol, same address or one side binds all."""
    return any(
        number == other_number and protocol == other_protocol and (address == other or not address or not other)
        for address, number, protocol in wanted
        for other, other_number, other_protocol in held
    )
