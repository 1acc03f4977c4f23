"""What nodes must be asked about one by one: host ports, volumes to attach, and claims that admit one pod."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from growth.api.requests import Port, ports_conflict
from growth.api.volumes import CSINode
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import NodeView
from growth.planning.rehearsal.kinds import Kind


class Books:
    """Ports and volumes of each node, by its index."""

    def __init__(
        self,
        nodes: Iterable[NodeView],
        placed: Mapping[PodShape, Kind],
        csi: Mapping[str, CSINode],
        ports: Mapping[int, frozenset[Port]],
    ) -> None:
        """`ports` are taken beside those of the pods that are there."""
        self._ports: dict[int, frozenset[Port]] = dict(ports)
        self._attached: dict[int, dict[str, set[str]]] = {}
        self._fresh: dict[tuple[int, str], int] = {}
        self._limits: dict[int, dict[str, int]] = {}
        self._in_use: set[tuple[str, str]] = set()
        for at, node in enumerate(nodes):
            held = [placed[shape].ports for shape, _ in node.pods if placed[shape].ports]
            if held:
                self._ports[at] = self._ports.get(at, frozenset()).union(*held)
            if node.volumes:
                self._attached[at] = {driver: set(handles) for driver, handles in node.volumes.items()}
            for shape, _ in node.pods:
                self._in_use.update(_claims_of(shape))
            if node.name in csi:
                self._limits[at] = {
                    driver.name: driver.allocatable.count
                    for driver in csi[node.name].spec.drivers
                    if driver.allocatable is not None and driver.allocatable.count is not None
                }

    def save(self) -> Callable[[], None]:
        """Remembers what is written; the result makes it so again."""
        ports, fresh, in_use = dict(self._ports), dict(self._fresh), frozenset(self._in_use)
        attached = {at: {driver: frozenset(held) for driver, held in own.items()} for at, own in self._attached.items()}

        def restore() -> None:
            self._ports, self._fresh, self._in_use = dict(ports), dict(fresh), set(in_use)
            self._attached = {at: {driver: set(held) for driver, held in own.items()} for at, own in attached.items()}

        return restore

    def admits(self, kind: Kind) -> bool:
        """Whether no other pod uses a claim that is for one pod alone."""
        return not (kind.volumes.alone & self._in_use)

    def takes(self, kind: Kind, node: int) -> bool:
        """Whether the node has the pod's ports free and can attach its volumes."""
        if kind.ports and ports_conflict(self._ports.get(node, frozenset()), kind.ports):
            return False
        limits = self._limits.get(node)
        if limits is None:
            return True
        attached = self._attached.get(node, {})
        for driver in {*kind.volumes.attach, *kind.volumes.fresh}:
            if driver not in limits:
                continue
            held = attached.get(driver, set())
            wanted = kind.volumes.attach.get(driver, frozenset())
            fresh = kind.volumes.fresh.get(driver, 0)
            if not fresh and wanted <= held:
                continue  # all there already: even a node beyond its limit takes the pod
            if len(held | wanted) + self._fresh.get((node, driver), 0) + fresh > limits[driver]:
                return False
        return True

    def put(self, kind: Kind, node: int) -> None:
        if kind.ports:
            self._ports[node] = self._ports.get(node, frozenset()) | kind.ports
        for driver, handles in kind.volumes.attach.items():
            self._attached.setdefault(node, {}).setdefault(driver, set()).update(handles)
        for driver, count in kind.volumes.fresh.items():
            self._fresh[node, driver] = self._fresh.get((node, driver), 0) + count
        self._in_use.update(_claims_of(kind.shape))

    def leave(self, kind: Kind) -> None:
        """Its claims are no longer in use."""
        self._in_use.difference_update(_claims_of(kind.shape))


def _claims_of(shape: PodShape) -> Iterator[tuple[str, str]]:
    for volume in shape.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield shape.namespace, volume.persistent_volume_claim.claim_name
