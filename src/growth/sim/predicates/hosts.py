"""What the rules look at: nodes with the pods on them, and the objects of the cluster that pods refer to."""

import dataclasses
import functools
from collections.abc import Mapping

from growth.api.nodes import Node
from growth.api.placement import Taint
from growth.api.pods import Container, Pod, PodSpec
from growth.api.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from growth.units.resources import Amounts, add, amounts, largest

POD_LEVEL = frozenset({"cpu", "memory"})  # resources that a pod may ask for as a whole; huge pages too


@dataclasses.dataclass(slots=True)
class Host:
    """A node and its pods. `volume_limits` are by CSI driver; `attached` are volumes that no listed pod accounts for.

    `uncounted` are pods that take room and ports, and that rules about other pods do not see.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    allocatable: Amounts = dataclasses.field(default_factory=dict)
    unschedulable: bool = False
    volume_limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    attached: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    pods: list[Pod] = dataclasses.field(default_factory=list)
    uncounted: list[Pod] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, node: Node, csi: CSINode | None = None) -> "Host":
        """A node as the API server describes it, without pods."""
        limits = {
            driver.name: driver.allocatable.count
            for driver in (csi.spec.drivers if csi else ())
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        return cls(
            name=node.metadata.name,
            labels=node.metadata.labels,
            taints=node.spec.taints,
            allocatable=amounts(node.status.allocatable),
            unschedulable=node.spec.unschedulable,
            volume_limits=limits,
        )


@dataclasses.dataclass(slots=True)
class Scene:
    """Everything that decides about one pod: all nodes, the namespaces' labels, and volumes.

    Claims are by (namespace, name), volumes and classes by name.
    """

    hosts: list[Host]
    namespaces: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    claims: Mapping[tuple[str, str], PersistentVolumeClaim] = dataclasses.field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, StorageClass] = dataclasses.field(default_factory=dict)


def requests(spec: PodSpec) -> dict[str, int]:
    """What the pod takes of a node; `pods: 1` included, zeros left out.

    Containers and sidecars run at the same time. Before that init containers run one by one, each beside the sidecars
    that were started before it. What the pod asks for as a whole takes the sum's place. Overhead is added at the end.
    """
    return dict(_requests(id(spec), _Held(spec)))


class _Held:
    """Keeps a spec alive while its amounts are remembered, so that its identity is not given to another."""

    __slots__ = ("spec",)

    def __init__(self, spec: PodSpec) -> None:
        self.spec = spec

    def __hash__(self) -> int:
        return id(self.spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.spec is self.spec


@functools.lru_cache(maxsize=65536)
def _requests(_: int, held: _Held) -> Mapping[str, int]:
    spec = held.spec
    together = [_of(container) for container in spec.containers]
    sidecars: list[Amounts] = []
    moments: list[Amounts] = []
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            sidecars.append(_of(container))
            moments.append(add(*sidecars))
        else:
            moments.append(add(*sidecars, _of(container)))
    effective = largest(add(*together, *sidecars), *moments)
    total = dict(effective)
    if spec.resources is not None:
        whole = {
            **amounts(spec.resources.limits),
            **{name: amount for name, amount in effective.items() if amount},
            **amounts(spec.resources.requests),
        }
        total.update({name: amount for name, amount in whole.items() if _pod_level(name)})
    total = add(total, amounts(spec.overhead))
    return {"pods": 1, **{name: amount for name, amount in total.items() if amount > 0}}


def _pod_level(name: str) -> bool:
    return name in POD_LEVEL or name.startswith("hugepages-")


def _of(container: Container) -> Amounts:
    """A limit without a request is a request: API servers write it down so."""
    return {**amounts(container.resources.limits), **amounts(container.resources.requests)}
