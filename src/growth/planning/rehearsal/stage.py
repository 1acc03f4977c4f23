"""The stage of a rehearsal: pods in the order of the queue, machines that become ready, and who is bound where."""

import copy
import dataclasses
import enum
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final

import numpy as np

from growth.api import names
from growth.api.meta import ObjectMeta
from growth.api.requests import PODS, Port
from growth.api.volumes import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from growth.cluster.shapes import PodShape, Shapes
from growth.cluster.snapshot import Demand, NodeView, PoolView, Snapshot, VolumesView
from growth.planning.classes import Compiler
from growth.planning.existing import Existing
from growth.planning.offerings import Constraints
from growth.planning.plan import PlannedClaim
from growth.planning.rehearsal.binding import SCORED, Binding
from growth.planning.rehearsal.kinds import Kind, Kinds
from growth.planning.rules import Groups

# No node that is there has such a name, and all that are to be bought come after them.
PLANNED: Final = "~planned-"


class Arrival(enum.StrEnum):
    """When what is bought becomes ready: all of it at the same moment, or each after the pods have tried the ones before
    it; or before the first of the pods comes.
    """

    AT_ONCE = "at once"
    ONE_BY_ONE = "one by one"
    BEFOREHAND = "beforehand"


@dataclasses.dataclass(frozen=True, slots=True)
class Rehearsal:
    """Who was bound where, as it happened: (pod, node's name or the claim's index); `left` are the pods that were not."""

    order: tuple[tuple[str, str | int], ...]
    left: tuple[str, ...]


class Stage:
    """A snapshot and its pending pods, compiled once; `rehearse` may be called for many plans and changes nothing here.

    The queue is by priority, then in the order of the demands. Pods that no plan could place are in it too: what they
    find room on, they take. `spread_by_default` False: kube-scheduler's profile has no default spread, as clusters may set it.
    """

    def __init__(self, snapshot: Snapshot, demands: Sequence[Demand], *, spread_by_default: bool = True) -> None:
        self._snapshot = snapshot
        self._constraints = Constraints()
        groups = Groups(snapshot.namespaces, self._constraints)
        compiler = _compiler(snapshot, self._constraints, groups)
        drafts = compiler.drafts(demands)
        # DaemonSet pods are not steered by topology: their rules are registered apart.
        apart = _compiler(snapshot, self._constraints, Groups(snapshot.namespaces, self._constraints))
        daemons = apart.drafts(_samples(snapshot))
        asked = (name for draft, _ in (*drafts, *daemons) for name in draft.requests)
        self._resources = tuple(dict.fromkeys((PODS, *SCORED, *asked)))
        self._daemons = apart.classes(daemons, self._resources)
        kinds = Kinds(groups, self._constraints, snapshot.namespaces, spread_by_default=spread_by_default)
        for draft, _ in drafts:
            filters = tuple(dict.fromkeys(each.constraint for each in draft.variants))
            kinds.hear(draft.shape, () if self._constraints.none in filters else filters)
        there = dict.fromkeys(shape for node in snapshot.nodes for shape, _ in node.pods)
        for shape in there:
            kinds.hear(shape)
        self._placed: dict[PodShape, Kind] = {shape: kinds.placed(shape) for shape in there}
        by_shape = {draft.shape: kinds.pending(draft, self._resources) for draft, _ in drafts}
        self._kinds = tuple(by_shape.values())
        self._by_shape = by_shape
        self._queue = self._queued(demands)
        self._there = tuple(sorted(snapshot.nodes, key=lambda node: (not node.initialized, node.name)))
        self._by_change = True
        self._moving: Set[str] = frozenset()
        self._scenes = _Scenes()

    def queued(self, demands: Sequence[Demand], *, moving: Set[str] = frozenset()) -> "Stage":
        """The same stage with its pods in another order; nothing is compiled anew.

        `moving` are the pods whose order is another one each time: those in front of them are rehearsed once.
        """
        other = copy.copy(self)
        other._queue = self._queued(demands)  # noqa: SLF001 - our own copy
        other._moving = moving  # noqa: SLF001 - the same
        return other

    def before_1_36(self) -> "Stage":
        """The same stage with an older kube-scheduler, which weighs the balance of nodes differently; nothing is compiled anew."""
        other = copy.copy(self)
        other._by_change = False  # noqa: SLF001 - our own copy
        other._scenes = _Scenes()  # noqa: SLF001 - and books of its own
        return other

    def _queued(self, demands: Iterable[Demand]) -> tuple[tuple[str, Kind], ...]:
        # Sorting is stable: among equals the order of the demands stays.
        waiting = sorted(demands, key=lambda demand: -(demand.shape.spec.priority or 0))
        return tuple((demand.key, self._by_shape[demand.shape]) for demand in waiting)

    @property
    def spreads_by_default(self) -> bool:
        """Whether some of its pods have only kube-scheduler's default spread."""
        return any(kind.by_default for kind in self._kinds)

    def rehearse(
        self,
        claims: Sequence[PlannedClaim],
        arrival: Arrival = Arrival.AT_ONCE,
        *,
        turns: Sequence[Mapping[str, str]] = (),
        told: bool = False,
    ) -> Rehearsal:
        """The pods bound with these machines bought. Claims are known by their index.

        `turns` are pods of the queue that still run, by key, and on which node: they count there until their turn comes, and
        come after all others. `told`: each pod of a claim is nominated for its machine before that is ready.
        """
        views, limits = self._scenes.machines_of(claims, self._snapshot.pools)
        meant = {key: number for number, claim in enumerate(claims) for key in claim.pods} if told else {}
        return self.rehearse_nodes(views, arrival, volume_limits=limits, turns=turns, meant=meant)

    def rehearse_nodes(
        self,
        machines: Sequence[NodeView],
        arrival: Arrival = Arrival.AT_ONCE,
        *,
        volume_limits: Mapping[str, Mapping[str, int]] | None = None,
        turns: Sequence[Mapping[str, str]] = (),
        meant: Mapping[str, int] = MappingProxyType({}),
    ) -> Rehearsal:
        """The same with machines as they will be: empty, with all labels; what DaemonSets take is taken off here.

        Machines are known by their index, whatever their name; `volume_limits` are by name and CSI driver. `meant` are the
        machines that pods are nominated for.
        """
        index = {machine.name: number for number, machine in enumerate(machines)}
        # Planned ones come after those that are there, and in their own order.
        coming = tuple(
            dataclasses.replace(machine, name=planned_name(number), initialized=False)
            for number, machine in enumerate(machines)
        )
        limits = {planned_name(index[name]): many for name, many in (volume_limits or {}).items() if many}
        scene = self._scenes.last(coming, limits)
        if scene is None:
            scene = self._scenes.keep(coming, limits, self._scene(coming, limits))
        nodes, binding, place = scene.nodes, scene.binding, scene.place
        order: list[tuple[str, str | int]] = []
        running = {key for turn in turns for key in turn}
        pending = [each for each in self._queue if each[0] not in running]
        arrivals = iter(_arrivals(nodes, arrival))
        if self._moving:
            # Who is in front of them all is bound as the last time.
            started, pending = self._started(scene, arrival, next(arrivals), pending)
            order = started.order
            pending = self._bind_turns(scene, pending, order, turns, started)
            turns = ()
        else:
            scene.clear()
        for batch in arrivals:
            binding.arrive(batch)
            if meant:
                here = {place[nodes[at].name]: at for at in batch}
                told = {key: here[number] for key, number in meant.items() if number in here}
                pending = self._bind_told(scene, pending, order, told)
                continue
            pending = self._bind_turns(scene, pending, order, turns)
            turns = ()
            if arrival is Arrival.ONE_BY_ONE and all(kind.plain for kind in self._kinds):
                break
        # Plain pods that still wait were refused by every machine so far, and those refuse them for ever.
        lines: dict[Kind, deque[int]] = {}
        for number, (_, kind) in enumerate(pending):
            lines.setdefault(kind, deque()).append(number)
        for at, bound in binding.fill((at for (at,) in arrivals), lines):
            order.extend((pending[each][0], place[nodes[at].name]) for each in bound)
        waiting = {number for line in lines.values() for number in line}
        pending = [each for number, each in enumerate(pending) if number in waiting]
        return Rehearsal(tuple(order), tuple(key for key, _ in pending))

    def follow(self, told: Callable[[str, tuple[str, ...]], str]) -> None:
        """Goes through the queue once on the nodes that are there, where somebody else decides.

        `told` gets each pod and the nodes among which lots would be drawn, none where no node takes it; it says the
        node that the pod is on now, or nothing.
        """
        nodes, binding = self._opened(self._snapshot.nodes, self._snapshot.volumes)
        binding.arrive(range(len(nodes)))
        index = {node.name: at for at, node in enumerate(nodes)}
        for key, kind in self._queue:
            best = binding.best(kind) or []
            where = told(key, tuple(nodes[at].name for at in best))
            if where:
                binding.put(kind, index[where])

    def _scene(self, coming: Sequence[NodeView], limits: Mapping[str, Mapping[str, int]]) -> "_Scene":
        volumes = self._snapshot.volumes
        if limits:
            csi = {name: _csi_node(name, many) for name, many in limits.items()}
            volumes = dataclasses.replace(volumes, csi_nodes={**volumes.csi_nodes, **csi})
        nodes, binding = self._opened((*self._there, *coming), volumes)
        place: dict[str, str | int] = {node.name: node.name for node in self._there}
        place.update({machine.name: number for number, machine in enumerate(coming)})
        return _Scene(nodes, binding, place, binding.save())

    def _opened(self, nodes: Sequence[NodeView], volumes: VolumesView) -> tuple[Sequence[NodeView], Binding]:
        """The nodes in the order in which ties go, and the books of what is bound there."""
        found = Existing(dataclasses.replace(self._snapshot, nodes=tuple(nodes), volumes=volumes), self._resources)
        found.keep_for_daemons(self._daemons)
        binding = Binding(
            found,
            scored=(self._resources.index("cpu"), self._resources.index("memory")),
            placed=self._placed,
            pending=self._kinds,
            csi=volumes.csi_nodes,
            ports=self._daemon_ports(found),
            by_change=self._by_change,
        )
        return found.nodes, binding

    def _daemon_ports(self, nodes: Existing) -> dict[int, frozenset[Port]]:
        """The ports that DaemonSets will bind on machines that are to be bought; on nodes that are there they have."""
        taken: dict[int, frozenset[Port]] = {}
        for daemon in self._daemons:
            if not daemon.ports:
                continue
            runs = nodes.tolerated(daemon.tolerations, soft=False)
            runs &= np.logical_or.reduce([nodes.matching(variant.constraint) for variant in daemon.variants])
            for at in np.flatnonzero(runs).tolist():
                if nodes.nodes[at].name.startswith(PLANNED):
                    taken[at] = taken.get(at, frozenset()) | daemon.ports
        return taken

    def _leaving(
        self, binding: Binding, turns: Sequence[Mapping[str, str]], nodes: Sequence[NodeView]
    ) -> Iterator[list[tuple[str, Kind]]]:
        """Takes the pods of each turn off the nodes on which they run; in the order of the queue."""
        if not turns:
            return
        index = {node.name: at for at, node in enumerate(nodes)}
        turn_of = {key: number for number, turn in enumerate(turns) for key in turn}
        leaving: list[list[tuple[str, Kind]]] = [[] for _ in turns]
        for key, kind in self._queue:
            if key in turn_of:
                leaving[turn_of[key]].append((key, kind))
        for turn, pods in zip(turns, leaving, strict=True):
            for key, kind in pods:
                binding.leave(kind, index[turn[key]])
            yield pods

    def _bind_told(
        self,
        scene: "_Scene",
        pending: list[tuple[str, Kind]],
        order: list[tuple[str, str | int]],
        told: Mapping[str, int],
    ) -> list[tuple[str, Kind]]:
        """Tries everybody where some are nominated for nodes that have just become ready.

        kube-scheduler asks the nominated node first, and keeps its room from all whose priority is not higher. So of one
        priority those go first who are nominated.
        """
        binding, nodes, place = scene.binding, scene.nodes, scene.place
        left: list[tuple[str, Kind]] = []
        for _, level in itertools.groupby(pending, key=lambda each: each[1].shape.spec.priority or 0):
            waiting = []
            for key, kind in level:
                at = told.get(key)
                if at is not None and binding.takes(kind, at):
                    binding.put(kind, at)
                    order.append((key, place[nodes[at].name]))
                else:
                    waiting.append((key, kind))
            left += self._bind(scene, waiting, order)
        return left

    def _bind_turns(
        self,
        scene: "_Scene",
        pending: list[tuple[str, Kind]],
        order: list[tuple[str, str | int]],
        turns: Sequence[Mapping[str, str]],
        started: "_Round | None" = None,
    ) -> list[tuple[str, Kind]]:
        """Tries everybody, and with each turn those who leave then; who is still left."""
        pending = self._bind(scene, pending, order, started)
        for leaving in self._leaving(scene.binding, turns, scene.nodes):
            pending = self._bind(scene, [*pending, *leaving], order)
        return pending

    def _started(
        self, scene: "_Scene", arrival: Arrival, batch: Sequence[int], pending: list[tuple[str, Kind]]
    ) -> tuple["_Round", list[tuple[str, Kind]]]:
        """The first nodes are ready and those were tried whom none of the moving pods precedes; and who is still to be tried."""
        front = tuple(itertools.takewhile(lambda each: each[0] not in self._moving, pending))
        rest = pending[len(front) :]
        mark = scene.mark
        if mark is not None and (mark.arrival, mark.front) == (arrival, front):
            mark.again()
            return mark.round.copy(), rest
        scene.clear()
        scene.binding.arrive(batch)
        first = _Round()
        _try(scene, front, first)
        again = scene.binding.save()
        scene.binding.prepare({kind for _, kind in rest})
        scene.mark = _Mark(arrival, front, first.copy(), again)
        return first, rest

    def _bind(
        self,
        scene: "_Scene",
        pending: list[tuple[str, Kind]],
        order: list[tuple[str, str | int]],
        started: "_Round | None" = None,
    ) -> list[tuple[str, Kind]]:
        """Tries everybody in order, and those again for whom somebody who came later made room; who is still left.

        `started` is the first round, where others were tried already.
        """
        trying = started or _Round(order, begun=len(order))
        while True:
            _try(scene, pending, trying)
            pending = trying.left
            if not pending or len(order) == trying.begun or not any(kind.lapses for kind in trying.refused):
                return pending
            trying = _Round(order, begun=len(order))


@dataclasses.dataclass(slots=True, eq=False)
class _Round:
    """Everybody is tried once: who was bound where, now and before; which kinds were refused, and who is left."""

    order: list[tuple[str, str | int]] = dataclasses.field(default_factory=list)
    refused: set[Kind] = dataclasses.field(default_factory=set)
    left: list[tuple[str, Kind]] = dataclasses.field(default_factory=list)
    begun: int = 0  # how many were bound before

    def copy(self) -> "_Round":
        return _Round([*self.order], {*self.refused}, [*self.left], self.begun)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Mark:
    """Where a rehearsal may begin: some machines are ready, and those in front have been tried. `again` makes it so."""

    arrival: Arrival
    front: tuple[tuple[str, Kind], ...]
    round: _Round
    again: Callable[[], None]


@dataclasses.dataclass(slots=True, eq=False)
class _Scene:
    """The nodes with some machines bought, in the order in which ties go. `clear` takes off what was bound there since."""

    nodes: Sequence[NodeView]
    binding: Binding
    place: Mapping[str, str | int]
    clear: Callable[[], None]
    mark: _Mark | None = None


def _try(scene: _Scene, pods: Iterable[tuple[str, Kind]], trying: _Round) -> None:
    """Tries each of the pods once."""
    for key, kind in pods:
        node = None if kind in trying.refused else scene.binding.bind(kind)
        if node is None:
            # Room only gets less, so whoever is like it need not ask again.
            trying.refused.add(kind)
            trying.left.append((key, kind))
        else:
            trying.order.append((key, scene.place[scene.nodes[node].name]))


_Machines = tuple[Sequence[NodeView], Mapping[str, Mapping[str, int]]]


class _Scenes:
    """The scene that was last played on: the next rehearsal is often of the same machines, with the pods in another order."""

    def __init__(self) -> None:
        self._known: tuple[Sequence[NodeView], Mapping[str, Mapping[str, int]], _Scene] | None = None
        self._machines: tuple[tuple[PlannedClaim, ...], _Machines] = ((), ((), {}))

    def machines_of(self, claims: Sequence[PlannedClaim], pools: Iterable[PoolView]) -> "_Machines":
        """What the claims are expected to become, and the volumes that each can attach."""
        if claims is not self._machines[0]:
            by_ref = {pool.ref: pool for pool in pools}
            views = tuple(machine(each, by_ref[each.pool], planned_name(number)) for number, each in enumerate(claims))
            pairs = zip(views, claims, strict=True)
            limits = {view.name: _volume_limits(each, by_ref[each.pool]) for view, each in pairs}
            self._machines = (tuple(claims), (views, limits))  # a tuple is its own, and cannot change
        return self._machines[1]

    def last(self, coming: Sequence[NodeView], limits: Mapping[str, Mapping[str, int]]) -> _Scene | None:
        """The last scene, as it was left, if it was of these machines."""
        return None if self._known is None or self._known[:2] != (coming, limits) else self._known[2]

    def keep(self, coming: Sequence[NodeView], limits: Mapping[str, Mapping[str, int]], scene: _Scene) -> _Scene:
        self._known = (coming, limits, scene)
        return scene


def planned_name(number: int) -> str:
    """The name of a planned machine; names sort as numbers do."""
    return f"{PLANNED}{number:06}"


def machine(claim: PlannedClaim, pool: PoolView, name: str) -> NodeView:
    """The machine that a claim is expected to become, empty."""
    kind = next((kind for kind in pool.instance_types if kind.name == claim.instance_type), None)
    return NodeView(
        name=name,
        labels={**claim.labels, names.HOSTNAME_LABEL: name},
        taints=pool.taints,
        allocatable=kind.allocatable if kind is not None else {},
        initialized=False,
        pool=claim.pool,
        price=claim.price,
    )


def _volume_limits(claim: PlannedClaim, pool: PoolView) -> Mapping[str, int]:
    return next((kind.volume_limits for kind in pool.instance_types if kind.name == claim.instance_type), {})


def _csi_node(name: str, limits: Mapping[str, int]) -> CSINode:
    drivers = tuple(
        CSINodeDriver(name=driver, allocatable=VolumeNodeResources(count=count)) for driver, count in limits.items()
    )
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))


def _arrivals(nodes: Sequence[NodeView], arrival: Arrival) -> Iterable[list[int]]:
    """Nodes by their index, in batches that become ready together; what is ready now comes first."""

    def ready(node: NodeView) -> bool:
        return node.initialized or (arrival is Arrival.BEFOREHAND and node.name.startswith(PLANNED))

    yield [at for at, node in enumerate(nodes) if ready(node)]
    coming = [at for at, node in enumerate(nodes) if not ready(node)]
    if arrival is Arrival.ONE_BY_ONE:
        yield from ([at] for at in coming)
    else:
        yield coming


def _compiler(snapshot: Snapshot, constraints: Constraints, groups: Groups) -> Compiler:
    # Preferences are scores here, not rules that are given up one by one.
    return Compiler(snapshot, constraints, groups, respect_preferences=False, soft_taints=False)


def _samples(snapshot: Snapshot) -> list[Demand]:
    shapes = Shapes()
    return [Demand(f"{pod.metadata.namespace}/{pod.metadata.name}", shapes.shape(pod)) for pod in snapshot.daemons]
