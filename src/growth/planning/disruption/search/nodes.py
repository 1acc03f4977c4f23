"""The nodes of one snapshot with a way back: nodes are taken out and pods put elsewhere, as often as anybody asks.

An overlay is what was changed since a mark; `back` undoes it. Nothing is ever copied whole.
"""

from collections.abc import Callable, Sequence

from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Snapshot
from growth.planning.classes import PodClass, Variant
from growth.planning.existing import Bools, Existing
from growth.planning.rules import Groups, keeps_away_of
from growth.planning.topology import Group, Rule

# Less room than the smallest pod asks for: every pod counts as one.
NONE = -1

Placed = tuple[PodClass, tuple[str, ...]]


class Nodes(Existing):
    """`arrived` are the pods that were put on each node since the beginning."""

    def __init__(self, snapshot: Snapshot, resources: Sequence[str]) -> None:
        super().__init__(snapshot, resources)
        self.arrived: list[list[Placed]] = [[] for _ in self.nodes]
        self._undo: list[Callable[[], None]] = []
        self._hosts: dict[tuple[PodClass, Variant], Bools] = {}
        self._groups: Groups | None = None
        self._counters: dict[PodShape, list[Group]] = {}

    def count(self, groups: Groups) -> None:
        super().count(groups)
        self._groups = groups

    def candidates(self, pods: PodClass, variant: Variant) -> Bools:
        """Asked many times, and never another answer: labels and taints stay as they are."""
        known = self._hosts.get((pods, variant))
        if known is None:
            known = self._hosts[pods, variant] = super().candidates(pods, variant)
        return known

    def mark(self) -> int:
        """Where `back` may lead."""
        return len(self._undo)

    def back(self, mark: int) -> None:
        """Undoes everything since the mark."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def close(self, index: int) -> None:
        """From now on nobody is put on the node; who is there stays."""
        row = self.free[index].copy()
        self.free[index] = NONE

        def undo() -> None:
            self.free[index] = row

        self._undo.append(undo)

    def close_all(self) -> None:
        """From now on nobody is put on any node."""
        free = self.free.copy()
        self.free[:] = NONE

        def undo() -> None:
            self.free[:] = free

        self._undo.append(undo)

    def take_out(self, index: int) -> list[Placed]:
        """The node goes, with all that is counted there; what had arrived on it needs another place."""
        self.close(index)
        gone = self.arrived[index]
        self.arrived[index] = []
        counted = self._counted_on(index, gone)
        for group, number in counted.items():
            self._add(group, index, -number)

        def undo() -> None:
            self.arrived[index] = gone
            for group, number in counted.items():
                self._add(group, index, number)

        self._undo.append(undo)
        return gone

    def put(self, index: int, pods: PodClass, keys: Sequence[str]) -> None:
        number = len(keys)
        ports = self._ports.get(index)
        bound = bool(pods.volumes.attach or pods.volumes.fresh)
        volumes = {driver: set(held) for driver, held in self._volumes.get(index, {}).items()} if bound else None
        fresh = dict(self._fresh.get(index, {})) if bound else None
        super().put(index, pods, keys)
        self.arrived[index].append((pods, tuple(keys)))

        def undo() -> None:
            for resource, amount in pods.needs:
                self.free[index, resource] += amount * number
            del self.placed[index][-number:]
            self.arrived[index].pop()
            if pods.ports:
                if ports is None:
                    del self._ports[index]
                else:
                    self._ports[index] = ports
            if volumes is not None and fresh is not None:
                self._volumes.pop(index, None)
                if volumes:
                    self._volumes[index] = volumes
                self._fresh[index] = fresh
            for group in (*pods.counted, *pods.keeps_away):
                if self._eligible(group)[index]:
                    self._add(group, index, -number)

        self._undo.append(undo)

    def _add(self, group: Group, index: int, number: int) -> None:
        if group.by_host:
            if group in self._by_host:
                self._by_host[group][index] += number
            group.total += number
            return
        value = self._labels[index].get(group.key)
        if value is not None:
            group.record(value, number)

    def _counted_on(self, index: int, arrived: Sequence[Placed]) -> dict[Group, int]:
        """How many pods of the node each rule counts."""
        found: dict[Group, int] = {}
        if self._groups is None or not self._groups.all:
            return found
        for shape, number in self.nodes[index].pods:
            for group in self._counting(shape, self._groups):
                found[group] = found.get(group, 0) + number
        for pods, keys in arrived:
            for group in (*pods.counted, *pods.keeps_away):
                found[group] = found.get(group, 0) + len(keys)
        return {group: number for group, number in found.items() if self._eligible(group)[index]}

    def _counting(self, shape: PodShape, groups: Groups) -> list[Group]:
        known = self._counters.get(shape)
        if known is None:
            own = keeps_away_of(shape, groups)
            known = self._counters[shape] = [
                group
                for group in groups.all
                if (group in own if group.rule is Rule.KEEPS_AWAY else group.selects(shape.namespace, shape.labels))
            ]
        return known
