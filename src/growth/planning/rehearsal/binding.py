"""One pod after the other: which nodes may take it, how they score, and what is bound."""

import dataclasses
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from growth.api import names
from growth.api.placement import PREFER_NO_SCHEDULE
from growth.api.requests import Port
from growth.api.volumes import CSINode
from growth.cluster.shapes import PodShape
from growth.planning.existing import Bools, Existing, Ints, staying
from growth.planning.rehearsal import scores
from growth.planning.rehearsal.books import Books
from growth.planning.rehearsal.kinds import Count, Kind
from growth.planning.rehearsal.tally import Tally, allowed
from growth.planning.taints import tolerates
from growth.planning.topology import Group, Rule

SCORED: Final = ("cpu", "memory")
# From so many nodes on kube-scheduler is content with a share of those that fit: half of all nodes, less the more
# nodes there are, but never less than these.
FEW: Final = 100
LEAST_PERCENT: Final = 5
_NOTHING: Final = np.iinfo(np.int64).min  # every node has it, even one that holds more than it has
_NOBODY: Final = np.iinfo(np.int64).max
# So many nodes are looked at one by one rather than all at once on arrays.
SINGLY: Final = 12


@dataclasses.dataclass(slots=True)
class _Standing:
    """Which nodes have room for a pod of a kind, and their scores for it: as of the first `at` changes."""

    room: Bools
    score: Ints
    at: int

    def copy(self) -> "_Standing":
        return _Standing(self.room.copy(), self.score.copy(), self.at)


class _Seen:
    """What never changes about a kind on these nodes, and `here`: those of the nodes that are ready.

    `firsts` are how it stood at each `save`, and `now` is how it stood when last asked, in the given `round`.
    """

    __slots__ = (
        *("away", "firsts", "here", "liked", "now", "round", "rules", "spreads", "static", "tainted", "tallies"),
        "unlabelled",
    )

    def __init__(
        self,
        static: Bools,
        *,
        liked: Ints | None,
        tainted: Ints | None,
        tallies: Sequence[Tally],
        rules: Sequence[Tally],
        away: Sequence[Tally],
        spreads: Sequence[Tally],
        unlabelled: Bools | None,
    ) -> None:
        self.static = static
        self.here = static
        self.liked = liked
        self.tainted = tainted
        self.tallies = tallies  # those that count the pod
        self.rules, self.away, self.spreads = rules, away, spreads  # those of the kind's fields of these names
        self.unlabelled = unlabelled  # nodes that lack a label of the pod's own wishes to spread
        self.firsts: dict[int, _Standing] = {}
        self.now: _Standing | None = None
        self.round = 0


class Binding:
    """Nodes as they become ready and fill up. Of the resources, cpu and memory are those at `scored`."""

    def __init__(
        self,
        nodes: Existing,
        *,
        scored: tuple[int, int],
        placed: Mapping[PodShape, Kind],
        pending: Iterable[Kind],
        csi: Mapping[str, CSINode],
        ports: Mapping[int, frozenset[Port]],
        by_change: bool = True,
    ) -> None:
        self._nodes = nodes
        number = len(nodes.nodes)
        self._free = np.ascontiguousarray(nodes.free.T)
        self._free_of: list[list[int]] = self._free.tolist()  # the same, to be read number by number
        allocatable = np.array(
            [[node.allocatable.get(name, 0) for node in nodes.nodes] for name in SCORED], dtype=np.int64
        ).reshape(2, number)
        asked = allocatable - self._free[list(scored)]
        unsaid = np.zeros_like(asked)
        for at, node in enumerate(nodes.nodes):
            for shape, pods in node.pods:
                for resource in (0, 1):
                    kind = placed[shape]
                    unsaid[resource, at] += (kind.scored[resource] - kind.asked[resource]) * pods
        self._room = scores.Room(allocatable, asked, asked + unsaid, by_change=by_change)
        self._present: Bools = np.zeros(number, dtype=np.bool_)
        self._walk: Ints = np.zeros(0, dtype=np.int64)  # the order of many nodes, two rounds of it
        self._start = 0
        self._books = Books(nodes.nodes, placed, csi, ports)
        self._tallies = {count: Tally(count, nodes) for kind in pending for count in _read(kind)}
        self._drawing = {count for kind in pending for count, _ in kind.pulls}
        if self._tallies:
            self._count(placed)
        self._seen: dict[Kind, _Seen] = {}
        self._leaves: dict[Kind, list[Tally]] = {}  # those that a pod of the kind leaves with its node
        self._changed: list[int] = []  # nodes onto which something was put
        self._round = 0  # how often something saved was restored
        self._saved = itertools.count(1)
        self._mark, self._base = 0, 0  # what was last saved or restored, and how much had changed until then

    def save(self) -> Callable[[], None]:
        """Remembers what is bound and ready now; the result makes it so again."""
        free, present, walk, start = self._free.copy(), self._present.copy(), self._walk, self._start
        free_of = [[*each] for each in self._free_of]
        parts = [self._room.save(), self._books.save(), *(tally.save() for tally in self._tallies.values())]
        changed, mark = tuple(self._changed), next(self._saved)
        self._mark, self._base = mark, len(changed)

        def restore() -> None:
            self._free, self._present, self._walk, self._start = free.copy(), present.copy(), walk, start
            self._free_of = [[*each] for each in free_of]
            for part in parts:
                part()
            for seen in self._seen.values():
                seen.here = seen.static & self._present
            self._changed, self._mark, self._base = list(changed), mark, len(changed)
            self._round += 1

        return restore

    def _count(self, placed: Mapping[PodShape, Kind]) -> None:
        """Counts the pods that are there."""
        read = {shape: self._tallied(kind) for shape, kind in placed.items()}
        for at, node in enumerate(self._nodes.nodes):
            for (shape, pods), stay in zip(node.pods, staying(node), strict=True):
                for tally in read[shape]:
                    tally.add(at, stay if tally.spreads else pods)

    def _tallied(self, kind: Kind) -> list[Tally]:
        return [self._tallies[count] for count in kind.counts if count in self._tallies]

    def arrive(self, nodes: Sequence[int]) -> None:
        """These become ready."""
        self._present[list(nodes)] = True
        for seen in self._seen.values():
            seen.here = seen.static & self._present
        if int(self._present.sum()) >= FEW:
            self._walk = np.tile(_by_zones(self._nodes, self._present), 2)

    def bind(self, kind: Kind) -> int | None:
        """The node that the pod is bound to, by its index; None where no node takes it. Of the best ones it is the first."""
        total = self._scored(kind)
        if total is None:
            return None
        best = int(total.argmax())
        self.put(kind, best)
        return best

    def best(self, kind: Kind) -> list[int] | None:
        """The nodes among which kube-scheduler would draw lots, in order; None where no node takes the pod."""
        total = self._scored(kind)
        if total is None:
            return None
        found: list[int] = np.flatnonzero(total == total.max()).tolist()
        return found

    def _scored(self, kind: Kind) -> Ints | None:
        """The scores of the nodes, -1 of those that may not take the pod; None where none may."""
        seen = self._looked(kind)
        fine = self._fitting(kind, seen)
        if fine is None or not np.logical_or.reduce(fine):
            return None
        if len(self._walk):
            self._look_at_some(fine)
        total = self._standing(kind, seen).score
        if kind.pulls:
            total = total + scores.POD_AFFINITY * self._pulled(kind, fine)
        if kind.spreads:
            total = total + scores.SPREAD * _spread(kind, seen, fine)
        if seen.liked is not None:
            total = total + scores.NODE_AFFINITY * scores.normalised(seen.liked, fine, reverse=False)
        if seen.tainted is not None:
            total = total + scores.TAINTS * scores.normalised(seen.tainted, fine, reverse=True)
        return np.where(fine, total, -1)

    def prepare(self, kinds: Iterable[Kind]) -> None:
        """Looks at all nodes for kinds that will be asked for again and again after a `restore` to what was saved just now."""
        for kind in kinds:
            self._standing(kind, self._looked(kind))

    def takes(self, kind: Kind, node: int) -> bool:
        """Whether the node may take the pod now."""
        fine = self._fitting(kind, self._looked(kind))
        return fine is not None and bool(fine[node])

    def fill(self, nodes: Iterable[int], lines: Mapping[Kind, deque[int]]) -> Iterator[tuple[int, list[int]]]:
        """Binds plain pods to one node after the other in the order of their numbers, as far as they fit there; which of them.

        For pods that every other node refuses: then there is nothing to score. Who is bound leaves the line.
        """
        kinds = [kind for kind, line in lines.items() if line]
        if not kinds:
            return
        needs = np.full((len(self._free), len(kinds)), _NOTHING, dtype=np.int64)
        for number, kind in enumerate(kinds):
            for resource, amount in kind.needs:
                needs[resource, number] = amount
        heads = np.array([lines[kind][0] for kind in kinds], dtype=np.int64)
        opened = np.stack([self._looked(kind).static for kind in kinds])
        for node in nodes:
            bound: list[int] = []
            may = opened[:, node] & (heads < _NOBODY)
            while True:
                may &= (needs <= self._free[:, node, np.newaxis]).all(axis=0)
                first = int(np.where(may, heads, _NOBODY).argmin())
                if not may[first]:
                    break
                line = lines[kinds[first]]
                self.put(kinds[first], node)
                bound.append(line.popleft())
                heads[first] = line[0] if line else _NOBODY
                may[first] = bool(line)
            yield node, bound

    def put(self, kind: Kind, node: int) -> None:
        """Binds a pod of the kind to the node."""
        for resource, amount in kind.needs:
            self._free[resource, node] -= amount
            self._free_of[resource][node] -= amount
        self._room.take(node, kind.asked, kind.scored)
        self._changed.append(node)
        for tally in self._seen[kind].tallies:
            tally.add(node)
        if kind.particular:
            self._books.put(kind, node)

    def leave(self, kind: Kind, node: int) -> None:
        """A pod of the kind is told to leave the node: it counts no more for rules and for those who spread. Until it has
        ended, which takes longer than the others look for their places, it still draws those who like to be near it.
        """
        leaves = self._leaves.get(kind)
        if leaves is None:
            counts = (count for count in kind.counts if count in self._tallies and count not in self._drawing)
            leaves = self._leaves[kind] = [self._tallies[count] for count in counts]
        for tally in leaves:
            tally.add(node, -1)
        if kind.particular:
            self._books.leave(kind)

    # -- filters --------------------------------------------------------------------------------------------------------

    def _looked(self, kind: Kind) -> _Seen:
        seen = self._seen.get(kind)
        if seen is None:
            seen = self._seen[kind] = self._look(kind)
        return seen

    def _look(self, kind: Kind) -> _Seen:
        nodes = self._nodes
        fine: Bools = np.zeros(len(nodes.nodes), dtype=np.bool_)
        for constraint in kind.allowed:
            fine |= nodes.matching(constraint)
        if kind.places:
            reachable = np.zeros(len(nodes.nodes), dtype=np.bool_)
            for place in kind.places:
                reachable |= nodes.matching(place)
            fine &= reachable
        tolerations = kind.shape.spec.tolerations
        fine &= nodes.tolerated(tolerations, soft=False)
        liked: Ints | None = None
        for constraint, weight in kind.preferred:
            worth = nodes.matching(constraint) * weight
            liked = worth if liked is None else liked + worth
        discouraged = [
            sum(taint.effect == PREFER_NO_SCHEDULE and not tolerates(tolerations, taint) for taint in node.taints)
            for node in nodes.nodes
        ]
        seen = _Seen(
            fine,
            liked=liked,
            tainted=np.array(discouraged, dtype=np.int64) if any(discouraged) else None,
            tallies=self._tallied(kind),
            rules=[self._tallies[Count(group)] for group, _ in kind.rules],
            away=[self._tallies[Count(group)] for group in kind.kept_away],
            spreads=[self._tallies[Count(group)] for group in kind.spreads],
            unlabelled=self._unlabelled(kind),
        )
        seen.here = fine & self._present
        return seen

    def _unlabelled(self, kind: Kind) -> Bools | None:
        if not kind.spreads or kind.by_default:
            return None
        found: Bools = ~np.logical_and.reduce([self._tallies[Count(group)].labelled for group in kind.spreads])
        return found

    def _standing(self, kind: Kind, seen: _Seen) -> _Standing:
        """Room and scores as they are now. A pod changes one node; the others stay as they were."""
        if seen.round != self._round:
            seen.round = self._round
            first = seen.firsts.get(self._mark)
            seen.now = None if first is None else first.copy()
        now = seen.now
        changed = self._changed
        if now is None or len(changed) - now.at > SINGLY:
            room: Bools = np.ones(len(self._present), dtype=np.bool_)
            for resource, amount in kind.needs:
                room &= self._free[resource] >= amount
            now = seen.now = _Standing(room, self._room.score(kind.asked, kind.scored), len(changed))
        free = self._free_of
        for node in changed[now.at :]:
            now.room[node] = all(free[resource][node] >= amount for resource, amount in kind.needs)
            now.score[node] = self._room.score_at(node, kind.asked, kind.scored)
        now.at = len(changed)
        if now.at == self._base and self._mark not in seen.firsts:
            seen.firsts[self._mark] = now.copy()
        return now

    def _fitting(self, kind: Kind, seen: _Seen) -> Bools | None:
        """The nodes that may take the pod; None where nothing could help it."""
        if kind.refused or (kind.volumes.alone and not self._books.admits(kind)):
            return None
        fine = seen.here & self._standing(kind, seen).room
        for (group, selects_itself), tally in zip(kind.rules, seen.rules, strict=True):
            unmet = group.rule is Rule.AFFINITY and self._unmet(group)
            fine &= allowed(group, tally, self._present, selects_itself=selects_itself, unmet=unmet)
        for tally in seen.away:
            fine &= tally.at == 0
        if kind.particular:
            for node in np.flatnonzero(fine).tolist():
                fine[node] = self._books.takes(kind, node)
        return fine

    def _unmet(self, group: Group) -> bool:
        return all(self._tallies[Count(each)].total == 0 for each in (group, *group.siblings))

    def _look_at_some(self, fine: Bools) -> None:
        """Leaves only as many of the nodes as kube-scheduler looks for, going on where it stopped the last time."""
        number = len(self._walk) // 2
        percent = max(50 - number // 125, LEAST_PERCENT)
        enough = max(number * percent // 100, FEW)
        turned = self._walk[self._start : self._start + number]
        found = np.cumsum(fine[turned])
        if found[-1] <= enough:
            return
        last = int(np.searchsorted(found, enough))
        fine[turned[last + 1 :]] = False
        self._start = (self._start + last + 1) % number

    # -- scores of wishes -----------------------------------------------------------------------------------------------

    def _pulled(self, kind: Kind, fine: Bools) -> Ints:
        """InterPodAffinity: what the pod prefers of others, and what others prefer of it."""
        raw: Ints = np.zeros(len(fine), dtype=np.int64)
        for count, weight in kind.pulls:
            raw += weight * self._tallies[count].at
        return scores.between(raw, fine)


def _spread(kind: Kind, seen: _Seen, fine: Bools) -> Ints:
    """PodTopologySpread: of the domains those with the fewest of its kind."""
    ignored = seen.unlabelled
    asked = fine if ignored is None else fine & ~ignored
    raw = np.zeros(len(fine), dtype=np.float64)
    for group, tally in zip(kind.spreads, seen.spreads, strict=True):
        domains = int(np.count_nonzero(asked)) if group.key == names.HOSTNAME_LABEL else tally.domains(asked)
        weighed = tally.at * math.log(domains + 2) + (group.max_skew - 1)
        raw += weighed if tally.everywhere else np.where(tally.labelled, weighed, 0.0)
    return scores.evened(raw, fine, ignored)


def _read(kind: Kind) -> Iterable[Count]:
    """The counts that decide about the kind."""
    for group, _ in kind.rules:
        yield Count(group)
        yield from map(Count, group.siblings)
    yield from map(Count, (*kind.kept_away, *kind.spreads))
    yield from (count for count, _ in kind.pulls)


def _by_zones(nodes: Existing, present: Bools) -> Ints:
    """The nodes in the order in which kube-scheduler walks them: one of each zone in turn."""
    zones, _ = nodes.column(names.ZONE_LABEL)
    by_zone: dict[int, list[int]] = {}
    for at in np.flatnonzero(present).tolist():
        by_zone.setdefault(int(zones[at]), []).append(at)
    turns = itertools.zip_longest(*by_zone.values(), fillvalue=-1)
    return np.array([at for turn in turns for at in turn if at >= 0], dtype=np.int64)
