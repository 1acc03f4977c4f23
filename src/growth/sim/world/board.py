"""The cluster as a scheduler sees it: nodes with the pods on them, kept change by change.

`growth.sim.predicates` decides; this remembers. What one node alone says to a kind of pod (`Shape`) is asked once until
something changes on that node, and what all nodes together say is asked again whenever anything changed.
"""

import dataclasses
from collections.abc import Iterator

import msgspec

from growth.api.pods import Pod
from growth.sim.predicates import Host, Scene, requests
from growth.sim.predicates.among_pods import Among, required_anti_affinity
from growth.sim.predicates.of_volumes import of_volumes
from growth.sim.predicates.on_one_node import on_one_node
from growth.units.resources import Amounts


@dataclasses.dataclass(slots=True)
class Place(Host):
    """A node with its pods, and what they take. `version` changes whenever anything here does."""

    taken: dict[str, int] = dataclasses.field(default_factory=dict)
    version: int = 0
    static: int = 0
    """As `version`, but not for pods that come and go."""

    def put(self, pod: Pod) -> None:
        self.pods.append(pod)
        self._book(pod, 1)

    def take(self, uid: str) -> None:
        for at, pod in enumerate(self.pods):
            if pod.metadata.uid == uid:
                del self.pods[at]
                self._book(pod, -1)
                return

    def _book(self, pod: Pod, sign: int) -> None:
        for name, amount in requests(pod.spec).items():
            self.taken[name] = self.taken.get(name, 0) + sign * amount

    def lacks(self, wanted: Amounts) -> list[str]:
        """The rule of room, by the books."""
        return [
            f"room: {name} needs {amount}, free {self.allocatable.get(name, 0) - self.taken.get(name, 0)}"
            for name, amount in wanted.items()
            if amount > self.allocatable.get(name, 0) - self.taken.get(name, 0)
        ]


class Shape:
    """Pods that no rule tells apart: equal but for their names. `verdicts` are by node, with the version they hold for."""

    __slots__ = ("among", "local", "refused", "sample", "statics", "verdicts", "wanted")

    def __init__(self, sample: Pod) -> None:
        self.sample = sample
        self.wanted = requests(sample.spec)
        affinity = sample.spec.affinity
        # Whether a pod elsewhere can make room for one of these here: then every binding may change the answer.
        self.among = bool(
            sample.spec.topology_spread_constraints
            or (affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity))
        )
        # Whether one node's answer depends on that node and its pods alone.
        self.local = not sample.spec.volumes
        self.statics: dict[str, tuple[int, list[str]]] = {}
        self.verdicts: dict[str, tuple[int, list[str]]] = {}
        self.refused: tuple[tuple[int, int], str] | None = None
        """A message that holds as long as the board's versions are these."""


class Board:
    """Nodes by name. `grown` changes when something may have made room, `version` when anything changed."""

    def __init__(self) -> None:
        self.scene = Scene(hosts=[])
        self.places: dict[str, Place] = {}
        self.grown = 0
        self.version = 0
        self._on: dict[str, tuple[str, Pod]] = {}  # by the pod's uid: where it is booked
        self._homeless: dict[str, dict[str, Pod]] = {}  # bound to nodes that are not there (yet): by node, by uid
        self._barring = 0
        self._shapes: dict[bytes, Shape] = {}
        self._shape_of: dict[str, Shape] = {}  # by the pod's uid

    # Nodes and pods come and go.

    def set_node(self, host: Host) -> None:
        old = self.places.get(host.name)
        place = Place(
            name=host.name,
            labels=host.labels,
            taints=host.taints,
            allocatable=host.allocatable,
            unschedulable=host.unschedulable,
            volume_limits=host.volume_limits,
        )
        if old is not None:
            place.pods, place.taken = old.pods, old.taken
            place.version, place.static = old.version + 1, old.static
            if _same(old, place):
                return
            place.static += 1
        else:
            place.version = place.static = self.version + 1  # a later node of the same name is another
        self.places[host.name] = place
        if old is None:
            for pod in self._homeless.pop(host.name, {}).values():
                self._put(pod, place)
        self._relist()

    def remove_node(self, name: str) -> None:
        place = self.places.pop(name, None)
        if place is None:
            return
        for pod in place.pods:
            self._barring -= bool(required_anti_affinity(pod))
            self._on.pop(pod.metadata.uid, None)
            self._homeless.setdefault(name, {})[pod.metadata.uid] = pod
        self._relist()

    def _relist(self) -> None:
        self.scene.hosts = [*self.places.values()]
        self.changed()

    def changed(self) -> None:
        """Something may have made room, volumes and namespaces included."""
        self.grown += 1
        self.version += 1

    def put(self, pod: Pod, node: str) -> None:
        """The pod is on the node, or is about to be; said again, what it says now counts."""
        uid = pod.metadata.uid
        known = self._on.get(uid)
        if known is not None and known[0] == node and _alike(known[1], pod):
            return
        self.drop(uid)
        place = self.places.get(node)
        if place is None:
            self._homeless.setdefault(node, {})[uid] = pod
        else:
            self._put(pod, place)
            self.version += 1

    def _put(self, pod: Pod, place: Place) -> None:
        place.put(pod)
        place.version += 1
        self._on[pod.metadata.uid] = (place.name, pod)
        self._barring += bool(required_anti_affinity(pod))

    def drop(self, uid: str) -> None:
        """The pod takes no room any more."""
        known = self._on.pop(uid, None)
        if known is not None:
            node, pod = known
            place = self.places[node]
            place.take(uid)
            place.version += 1
            self._barring -= bool(required_anti_affinity(pod))
            self.changed()
            return
        for waiting in self._homeless.values():
            waiting.pop(uid, None)

    # Questions.

    def shape(self, pod: Pod) -> Shape:
        """What the pod is like; pods with volumes of their own are like no other."""
        uid = pod.metadata.uid
        found = self._shape_of.get(uid)
        if found is None:
            own = uid if any(volume.ephemeral for volume in pod.spec.volumes) else ""
            key = msgspec.json.encode((own, pod.metadata.namespace, pod.metadata.labels, pod.spec))
            found = self._shapes.get(key)
            if found is None:
                found = self._shapes[key] = Shape(pod)
            self._shape_of[uid] = found
        return found

    def forget(self, uid: str) -> None:
        """The pod is gone for good."""
        self._shape_of.pop(uid, None)

    def verdicts(self, pod: Pod, shape: Shape) -> Iterator[tuple[Place, list[str]]]:
        """Each node with what it has against the pod. Rules about other pods are asked where all others agree."""
        among = Among(pod, self.scene) if shape.among or self._barring else None
        for place in self.places.values():
            found = self._alone(pod, shape, place)
            if not found and among is not None:
                found = list(among.refusals(place))
            yield place, found

    def _alone(self, pod: Pod, shape: Shape, place: Place) -> list[str]:
        known = shape.verdicts.get(place.name)
        if known is not None and known[0] == place.version and shape.local:
            return known[1]
        found = self._static(pod, shape, place) or place.lacks(shape.wanted)
        if not found and (place.pods or not shape.local):
            found = [*_ports(pod, place), *([] if shape.local else of_volumes(pod, place, self.scene))]
        shape.verdicts[place.name] = (place.version, found)
        return found

    def _static(self, pod: Pod, shape: Shape, place: Place) -> list[str]:
        """What the node says whatever pods are on it."""
        known = shape.statics.get(place.name)
        if known is not None and known[0] == place.static:
            return known[1]
        empty = Host(
            name=place.name, labels=place.labels, taints=place.taints, allocatable={}, unschedulable=place.unschedulable
        )
        found = [each for each in on_one_node(pod, empty) if not each.startswith("room: ")]
        shape.statics[place.name] = (place.static, found)
        return found


def _ports(pod: Pod, place: Place) -> Iterator[str]:
    return (each for each in on_one_node(pod, place) if each.startswith("ports: ")) if _binds(pod) else iter(())


def _binds(pod: Pod) -> bool:
    spec = pod.spec
    return any(container.ports for container in (*spec.containers, *spec.init_containers))


def _same(old: Place, new: Place) -> bool:
    return (old.labels, old.taints, old.allocatable, old.unschedulable, old.volume_limits) == (
        new.labels,
        new.taints,
        new.allocatable,
        new.unschedulable,
        new.volume_limits,
    )


def _alike(old: Pod, new: Pod) -> bool:
    """Whether the rules see no difference: a pod that is being deleted is counted by fewer of them."""
    return (
        old.metadata.labels == new.metadata.labels
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and (old.spec is new.spec or requests(old.spec) == requests(new.spec))
    )
