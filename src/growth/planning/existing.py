"""Machines that are there or on their way, scanned in numpy: thousands of nodes against one class in a few array steps."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from growth.api import names
from growth.api.placement import Taint, Toleration
from growth.api.requests import Port, host_ports_of, ports_conflict
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import NodeView, Snapshot
from growth.planning.classes import PodClass, Variant
from growth.planning.offerings import Constraint
from growth.planning.rules import Groups, keeps_away_of
from growth.planning.taints import untolerated
from growth.planning.topology import Group, Rule

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

# More pods than any node takes: the room for a class that asks for nothing.
PLENTY = 1 << 40


@dataclasses.dataclass(frozen=True, slots=True)
class _Census:
    """Pods on nodes as rows: on which node, of which shape, how many, and how many of them spreads count."""

    where: Ints
    shape: Ints
    pods: Ints
    staying: Ints
    shapes: int


def staying(node: NodeView) -> Iterable[int]:
    """How many pods of each of its shapes spreads count."""
    uncounted = dict(node.uncounted)
    return (number - uncounted.get(shape, 0) for shape, number in node.pods)


class Existing:
    """The nodes of a snapshot in the order in which they are filled: initialised ones first, then by name.

    `free` is changed as pods are placed; nothing of the snapshot is.
    """

    def __init__(self, snapshot: Snapshot, resources: Sequence[str]) -> None:
        self.nodes = sorted(snapshot.nodes, key=lambda node: (not node.initialized, node.name))
        self.placed: list[list[str]] = [[] for _ in self.nodes]
        self._resources = resources
        self.free = np.array(
            [
                [node.allocatable.get(name, 0) - node.requested.get(name, 0) for name in resources]
                for node in self.nodes
            ],
            dtype=np.int64,
        ).reshape(len(self.nodes), len(resources))
        self._columns: dict[str, tuple[Ints, list[str | None]]] = {}
        codes: dict[tuple[Taint, ...], int] = {}
        self._taint_codes = np.array([codes.setdefault(node.taints, len(codes)) for node in self.nodes], dtype=np.int64)
        self._taint_sets = list(codes)
        self._ports: dict[int, frozenset[Port]] = {}
        self._volumes: dict[int, dict[str, set[str]]] = {}
        self._fresh: dict[int, dict[str, int]] = {}
        self._limits = self._volume_limits(snapshot)
        self._labels = [from_label_names(node.labels) for node in self.nodes]
        self._matches: dict[Constraint, Bools] = {}
        self._counted: dict[Group, Bools] = {}
        self._nowhere: Bools = np.zeros(0, dtype=np.bool_)
        self._by_host: dict[Group, Ints] = {}  # how many pods of a rule each node holds
        self.order: Ints | None = None  # in which nodes are asked, where it is not the order of `nodes`

    def save(self) -> Callable[[], None]:
        """Remembers how the nodes are filled now; the result fills them so again. Rules keep their own counts."""
        placed = [list(pods) for pods in self.placed]
        free = self.free.copy()
        ports, fresh = dict(self._ports), {index: dict(counts) for index, counts in self._fresh.items()}
        by_host = {group: counts.copy() for group, counts in self._by_host.items()}

        def restore() -> None:
            self.placed = [list(pods) for pods in placed]
            self.free = free.copy()
            self._ports = dict(ports)
            self._volumes = {}  # made anew from the snapshot when they are asked for
            self._fresh = {index: dict(counts) for index, counts in fresh.items()}
            self._by_host = {group: counts.copy() for group, counts in by_host.items()}

        return restore

    def keep_for_daemons(self, daemons: Iterable[PodClass]) -> None:
        """Takes off what DaemonSets will take of each node and have not taken yet."""
        total = np.zeros_like(self.free)
        for daemon in daemons:
            here = self.tolerated(daemon.tolerations, soft=False)
            runs = np.zeros(len(self.nodes), dtype=np.bool_)
            for variant in daemon.variants:
                runs |= self.matching(variant.constraint)
            amounts = np.array([daemon.requests.get(name, 0) for name in self._resources], dtype=np.int64)
            total[here & runs] += amounts * len(daemon.pods)
        taken = np.array(
            [[node.daemon_requested.get(name, 0) for name in self._resources] for node in self.nodes], dtype=np.int64
        ).reshape(self.free.shape)
        self.free -= np.maximum(total - taken, 0)

    def _volume_limits(self, snapshot: Snapshot) -> dict[int, dict[str, int]]:
        limits: dict[int, dict[str, int]] = {}
        for index, node in enumerate(self.nodes):
            known = snapshot.volumes.csi_nodes.get(node.name)
            for driver in known.spec.drivers if known else ():
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    limits.setdefault(index, {})[driver.name] = driver.allocatable.count
        return limits

    # -- labels and taints --------------------------------------------------------------------------------------

    def column(self, key: str) -> tuple[Ints, list[str | None]]:
        """For each node the code of its value of the label, and the values by code."""
        known = self._columns.get(key)
        if known is None:
            codes: dict[str | None, int] = {}
            column = np.array(
                [codes.setdefault(labels.get(key), len(codes)) for labels in self._labels], dtype=np.int64
            )
            known = self._columns[key] = (column, list(codes))
        return known

    def matching(self, constraint: Constraint) -> Bools:
        """The nodes whose labels meet the constraint."""
        known = self._matches.get(constraint)
        if known is None:
            known = np.ones(len(self.nodes), dtype=np.bool_)
            for key, requirement in constraint.requirements.items():
                column, values = self.column(key)
                known &= np.array([requirement.meets(value) for value in values], dtype=np.bool_)[column]
            self._matches[constraint] = known
        return known

    def tolerated(self, tolerations: tuple[Toleration, ...], *, soft: bool) -> Bools:
        """The nodes with no taint that keeps the pod away."""
        fine = [untolerated(tolerations, taints, soft=soft) is None for taints in self._taint_sets]
        return np.array(fine, dtype=np.bool_)[self._taint_codes]

    # -- counts of pods that are there ----------------------------------------------------------------------------

    def count(self, groups: Groups) -> None:
        """Fills the counts of every rule from the pods on the nodes, shape by shape and not pod by pod."""
        shapes: dict[PodShape, int] = {}
        of_shape = [shapes.setdefault(shape, len(shapes)) for node in self.nodes for shape, _ in node.pods]
        rows = [len(node.pods) for node in self.nodes]
        census = _Census(
            where=np.repeat(np.arange(len(self.nodes), dtype=np.int64), rows),
            shape=np.array(of_shape, dtype=np.int64),
            pods=np.array([number for node in self.nodes for _, number in node.pods], dtype=np.int64),
            staying=np.array([number for node in self.nodes for number in staying(node)], dtype=np.int64),
            shapes=len(shapes),
        )
        owners: dict[Group, list[int]] = {}
        for shape, code in shapes.items():
            for group in keeps_away_of(shape, groups):
                owners.setdefault(group, []).append(code)
        for group in groups.all:
            if group.rule is Rule.KEEPS_AWAY:
                chosen = owners.get(group, [])
            else:
                chosen = [code for shape, code in shapes.items() if group.selects(shape.namespace, shape.labels)]
            self._fill(group, chosen, census)

    def _fill(self, group: Group, chosen: list[int], census: "_Census") -> None:
        eligible = self._eligible(group)
        column, values = self.column(group.key)
        if group.rule is Rule.SPREAD and not group.by_host:
            group.know(value for value in (values[code] for code in np.unique(column[eligible])) if value is not None)
        if not chosen:
            return
        wanted = np.zeros(census.shapes, dtype=np.bool_)
        wanted[chosen] = True
        rows = wanted[census.shape] & eligible[census.where]
        pods = census.staying if group.rule is Rule.SPREAD else census.pods
        per_node = np.bincount(census.where[rows], weights=pods[rows], minlength=len(self.nodes)).astype(np.int64)
        if group.by_host:
            self._by_host[group] = per_node
            group.total += int(per_node.sum())
            return
        for code, value in enumerate(values):
            number = int(per_node[column == code].sum())
            if value is not None and number:
                group.record(value, number)

    def _eligible(self, group: Group) -> Bools:
        """The nodes that the rule counts."""
        known = self._counted.get(group)
        if known is not None:
            return known
        fine = np.ones(len(self.nodes), dtype=np.bool_)
        if group.filters:
            fine = np.zeros(len(self.nodes), dtype=np.bool_)
            for constraint in group.filters:
                fine |= self.matching(constraint)
        if group.honours_taints:
            fine &= self.tolerated(group.tolerations, soft=False)
        self._counted[group] = fine
        return fine

    # -- room -----------------------------------------------------------------------------------------------------

    def candidates(self, pods: PodClass, variant: Variant) -> Bools:
        """The nodes that labels and taints allow the class."""
        if not self.nodes:
            return self._nowhere
        fine = self.matching(variant.constraint) & self.tolerated(pods.tolerations, soft=variant.soft)
        if pods.places:
            reachable = np.zeros(len(self.nodes), dtype=np.bool_)
            for place in pods.places:
                reachable |= self.matching(place)
            fine &= reachable
        return fine

    def with_room(self, candidates: Bools, pods: PodClass) -> list[int]:
        """Those of the candidates that have room for one pod of the class, in order."""
        fine = candidates.copy()
        for resource, amount in pods.needs:
            fine &= self.free[:, resource] >= amount
        return self._in_order(fine)

    def _in_order(self, fine: Bools) -> list[int]:
        found: Ints = np.flatnonzero(fine) if self.order is None else self.order[fine[self.order]]
        indices: list[int] = found.tolist()
        return indices

    def holding(self, pods: PodClass) -> Bools:
        """The nodes that could hold one pod of the class by labels, taints and room, whatever becomes of its wishes."""
        fine = np.zeros(len(self.nodes), dtype=np.bool_)
        for variant in pods.variants:
            fine |= self.matching(variant.constraint) & self.tolerated(pods.tolerations, soft=variant.soft)
        for resource, amount in pods.needs:
            fine &= self.free[:, resource] >= amount
        return fine

    def first(self, candidates: Bools, pods: PodClass, rules: Iterable[Group], *, room: int = 1) -> int | None:
        """The first of the candidates that has room for so many pods of the class and that the rules allow one."""
        fine = candidates.copy()
        for resource, amount in pods.needs:
            fine &= self.free[:, resource] >= amount * room
        for group in rules:
            fine &= self._allowed(group, selects_itself=pods.selects_itself(group))
        if pods.ports or pods.volumes.attach or pods.volumes.fresh:
            return next((index for index in self._in_order(fine) if self.room(index, pods) >= room), None)
        if self.order is not None:
            return next(iter(self._in_order(fine)), None)
        index = int(fine.argmax()) if len(fine) else 0
        return index if len(fine) and fine[index] else None

    def _allowed(self, group: Group, *, selects_itself: bool) -> Bools:
        """The nodes onto which a rule lets one more pod."""
        column, values = self.column(group.key)
        if group.by_host:
            counts = self._by_host.get(group)
            if counts is None:
                counts = np.zeros(len(self.nodes), dtype=np.int64)
            match group.rule:
                case Rule.SPREAD:
                    fine = counts + selects_itself <= group.max_skew
                case Rule.AFFINITY:
                    fine = (counts > 0) | (group.unmet and selects_itself)
                case _:
                    fine = counts == 0
            named = np.array([value is not None for value in values], dtype=np.bool_)[column]
            return np.where(named, fine, group.tolerates_absence)
        by_value = [
            group.tolerates_absence if value is None else group.allows(value, selects_itself=selects_itself)
            for value in values
        ]
        return np.array(by_value, dtype=np.bool_)[column]

    def room(self, index: int, pods: PodClass) -> int:
        """How many pods of the class the node can still take; 0 or 1 for those with ports."""
        row = self.free[index]
        most = min((int(row[resource]) // amount for resource, amount in pods.needs), default=PLENTY)
        if most <= 0:
            return 0
        if pods.ports and ports_conflict(self._held_ports(index), pods.ports):
            return 0
        if pods.volumes.attach or pods.volumes.fresh:
            most = min(most, self._attachable(index, pods))
        return min(most, 1) if pods.ports else most

    def _held_ports(self, index: int) -> frozenset[Port]:
        held = self._ports.get(index)
        if held is None:
            held = frozenset(port for shape, _ in self.nodes[index].pods for port in host_ports_of(shape.spec))
            self._ports[index] = held
        return held

    def _attachable(self, index: int, pods: PodClass) -> int:
        """For how many pods of the class the node can attach volumes: named ones are shared, fresh ones each pod's own."""
        limits = self._limits.get(index, {})
        held = self._volumes.setdefault(
            index, {driver: set(handles) for driver, handles in self.nodes[index].volumes.items()}
        )
        fresh = self._fresh.setdefault(index, {})
        most = int(PLENTY)
        for driver in {*pods.volumes.attach, *pods.volumes.fresh}:
            if driver in limits:
                more = pods.volumes.attach.get(driver, frozenset())
                if driver not in pods.volumes.fresh and more <= held.get(driver, set()):
                    continue  # all there already: even a node beyond its limit takes the pod
                together = len(held.get(driver, set()) | more)
                left = limits[driver] - together - fresh.get(driver, 0)
                if left < 0:
                    return 0
                if driver in pods.volumes.fresh:
                    most = min(most, left // pods.volumes.fresh[driver])
        return most

    def put(self, index: int, pods: PodClass, keys: Sequence[str]) -> None:
        """Places pods of the class on the node and counts them for every rule."""
        number = len(keys)
        for resource, amount in pods.needs:
            self.free[index, resource] -= amount * number
        if pods.ports:
            self._ports[index] = self._held_ports(index) | pods.ports
        if self._attachable(index, pods):  # makes the books of this node
            for driver, handles in pods.volumes.attach.items():
                self._volumes[index].setdefault(driver, set()).update(handles)
            for driver, count in pods.volumes.fresh.items():
                self._fresh[index][driver] = self._fresh[index].get(driver, 0) + count * number
        self.placed[index].extend(keys)
        for group in (*pods.counted, *pods.keeps_away):
            if not self._eligible(group)[index]:
                continue
            if group.by_host:
                counts = self._by_host.setdefault(group, np.zeros(len(self.nodes), dtype=np.int64))
                counts[index] += number
                group.total += number
            else:
                value = self._labels[index].get(group.key)
                if value is not None:
                    group.record(value, number)


def from_label_names(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Labels by their names of today; where a node has both, the one of today counts."""
    if names.NORMALISED_LABELS.keys().isdisjoint(labels):
        return labels
    return {**{names.NORMALISED_LABELS.get(key, key): value for key, value in labels.items()}, **labels}
