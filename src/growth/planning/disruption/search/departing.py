"""Nodes that go, and whom kube-scheduler would leave without a place: what we plan, it binds, and it spreads where we pack."""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand, NodeView
from growth.planning.disruption.buffering import holding, taken_by_daemons, without_room
from growth.planning.disruption.model import Situation
from growth.planning.disruption.search.orders import lots, orders
from growth.planning.disruption.search.turns import Leaving, Turns
from growth.planning.occupants import DISRUPTED
from growth.planning.plan import PlannedClaim
from growth.planning.rehearsal import Arrival, Rehearsal, Stage, machine, planned_name

# Which defaults kube-scheduler's profile has, and whether it is older than 1.36, nobody tells us: moves of so few pods must
# do with and without them, and with both. More pods are spread by their number alone.
ANY_PROFILE: Final = 100
# As few are also tried in orders that are drawn by lot, so many pods in all of these together: a second's work at most.
LOTS: Final = 400


def left_over(
    situation: Situation,
    *,
    gone: Iterable[str],
    evicted: Sequence[Demand],
    claims: Sequence[PlannedClaim],
    waiting: frozenset[str],
) -> list[str]:
    """The pods that would have no place, asked once; see `Departure`."""
    return Departure(situation, gone=gone, evicted=evicted, claims=claims).left_over(evicted, waiting)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One kube-scheduler, with or without its default spread and before 1.36 or not, and how the pods leave."""

    by_default: bool = True
    older: bool = False
    leaving: Leaving = Leaving.AT_ONCE


class Departure:
    """Some nodes gone and some machines bought, which are up before anybody leaves: who would have no place?

    That is asked for one order of the evicted pods after the other, and compiled once.
    """

    def __init__(
        self,
        situation: Situation,
        *,
        gone: Iterable[str],
        evicted: Sequence[Demand],
        claims: Sequence[PlannedClaim],
    ) -> None:
        names = frozenset(gone)
        spread = any(demand.shape.spec.topology_spread_constraints for demand in (*situation.demands, *evicted))
        self._situation = situation
        self._gone = names
        self._evicted = evicted
        self._own = frozenset(demand.key for demand in evicted)
        self._claims = tuple(claims)
        self._nodes = tuple(_without(names, situation.snapshot.nodes, drained=spread))
        self._demands = (*situation.waiting, *evicted)
        # Until they are gone nodes on their way out are places to those who spread, whoever has them ended; and machines that
        # come are none until they are there.
        now = spread and bool(evicted) and situation.unsettled
        self._standing = tuple(_without(names, situation.standing, drained=True)) if now else ()
        self._any_profile = 0 < len(evicted) <= ANY_PROFILE
        # Who has yet to leave counts where it is; to pods that look at no others it is all the same.
        counted = spread or any(demand.shape.spec.affinity is not None for demand in evicted)
        self._turns = Turns(situation, gone=names, evicted=evicted if counted and self._any_profile else ())
        self._fine: set[tuple[frozenset[str], tuple[tuple[PodShape, str], ...]]] = set()
        self._stages: dict[object, Stage] = {}
        self._buffers: dict[object, list[str]] = {}
        self.crowded = False  # of those who wait somebody took room when last somebody else was left over

    def in_any_order(self, waiting: frozenset[str]) -> Iterator[list[str]]:
        """`left_over` for one order of the evicted pods after the other. Of few pods there are more, drawn by lot: in each of
        these they leave in one way, first in turns.
        """
        for queue in orders(self._evicted):
            yield self.left_over(queue, waiting)
        if not self._any_profile:
            return
        leaving = itertools.cycle(sorted({way.leaving for way in self._ways}, reverse=True))
        for queue in lots(self._evicted, LOTS // len(self._evicted)):
            one = next(leaving)
            ways = (way for way in self._ways if way.leaving is one)
            yield next(filter(None, (self._beside(waiting, self._left(way, queue)) for way in ways)), [])

    def left_over(self, evicted: Sequence[Demand], waiting: frozenset[str]) -> list[str]:
        """The pods without a place if the evicted come back in this order, with and without kube-scheduler's defaults, with
        one before 1.36, and whether they leave at once or in turns.

        `waiting` are pods that have none now either, for whom somebody else buys machines; but what they find room on they
        take.
        """
        # Pods of one shape on one node are alike: who of them comes first decides nothing.
        known = (waiting, tuple((demand.shape, self._turns.nodes.get(demand.key, "")) for demand in evicted))
        if known in self._fine:
            return []
        # It is one rehearsal, and where much is under way it says no most often.
        found = self._left_now(evicted)
        if not waiting.issuperset(found):
            self.crowded = True  # nothing is to be bought for it: it is over when those nodes are gone, or there
            return [key for key in found if key not in waiting]
        for way in self._ways:
            if left := self._beside(waiting, self._left(way, evicted)):
                return left
        self._fine.add(known)
        return []

    def _beside(self, waiting: frozenset[str], found: Sequence[str]) -> list[str]:
        if waiting.issuperset(found):
            return []
        self.crowded = not waiting.issubset(found)
        return [key for key in found if key not in waiting]

    def _left_now(self, evicted: Sequence[Demand]) -> list[str]:
        """Who of the evicted has no place while the nodes that are on their way out still stand, with those who run there, and
        who waits for machines that are not up may take what there is.
        """
        if not self._standing:
            return []
        stage = self._as_now.queued((*self._situation.adrift, *evicted), moving=self._own)
        return [key for key in stage.rehearse(self._claims, Arrival.BEFOREHAND).left if key in self._own]

    @functools.cached_property
    def _ways(self) -> tuple[_Way, ...]:
        """Each profile and each age of kube-scheduler, with all pods gone at once and, where that matters, in turns."""
        profiles = [_Way()]
        if self._any_profile:
            profiles.append(_Way(older=True))
            if self._stage(_Way()).spreads_by_default:
                profiles += [_Way(by_default=False), _Way(by_default=False, older=True)]
        leaving = Leaving if self._turns.nodes else (Leaving.AT_ONCE,)
        return tuple(dataclasses.replace(each, leaving=one) for one in leaving for each in profiles)

    @functools.cached_property
    def _as_now(self) -> Stage:
        return self._compiled(self._standing, by_default=True)

    def _stage(self, way: _Way) -> Stage:
        """Those who leave in turns leave the same nodes."""
        key = (way.by_default, way.older, way.leaving is Leaving.AT_ONCE)
        known = self._stages.get(key)
        if known is None:
            if way.older:
                known = self._stage(dataclasses.replace(way, older=False)).before_1_36()
            else:
                nodes = self._nodes if way.leaving is Leaving.AT_ONCE else self._before_they_leave
                known = self._compiled(nodes, by_default=way.by_default)
            self._stages[key] = known
        return known

    @functools.cached_property
    def _before_they_leave(self) -> tuple[NodeView, ...]:
        there = self._turns.there()
        return tuple(
            dataclasses.replace(node, pods=tuple(there[node.name].items())) if node.name in there else node
            for node in _without(self._gone, self._situation.snapshot.nodes, drained=True)
        )

    def _compiled(self, nodes: tuple[NodeView, ...], *, by_default: bool) -> Stage:
        after = dataclasses.replace(self._situation.snapshot, nodes=nodes)
        return Stage(after, self._demands, spread_by_default=by_default)

    def _left(self, way: _Way, evicted: Sequence[Demand]) -> list[str]:
        """Everybody who is left over, and the pods of buffers that have no room beside those who are bound."""
        queue = (*self._situation.waiting, *evicted)
        stage = self._stage(way).queued(queue, moving=self._own)
        bound = stage.rehearse(self._claims, Arrival.BEFOREHAND, turns=self._turns.of(evicted, way.leaving))
        if not self._situation.buffered:
            return [*bound.left]
        shapes = {each.key: each.shape for each in queue}
        held = collections.Counter((place, shapes[key]) for key, place in bound.order)
        alike = frozenset(held.items())
        if alike not in self._buffers:
            full = _full(self._situation, self._nodes, self._claims, queue, bound)
            self._buffers[alike] = without_room(self._situation.snapshot, full, self._situation.of_buffers)
        return [*bound.left, *self._buffers[alike]]


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """Who would have no place in the first order in which somebody has none; whether pods that wait have taken room; and
    how many orders were looked at.
    """

    left: Sequence[str]
    crowded: bool
    orders: int


class Answers:
    """Of one situation: ways to look for moves come by the same ones again, and each is rehearsed once."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._known: dict[tuple[frozenset[str], tuple[str, ...]], list[tuple[Sequence[PlannedClaim], Answer]]] = {}
        self._anyway: dict[frozenset[str], frozenset[str]] = {}

    def anyway(self, waiting: frozenset[str]) -> frozenset[str]:
        """These and whoever else has no place if nothing is moved."""
        known = self._anyway.get(waiting)
        if known is None:
            left = left_over(self._situation, gone=(), evicted=(), claims=(), waiting=waiting)
            known = self._anyway[waiting] = waiting.union(left)
        return known

    def of(
        self,
        gone: tuple[str, ...],
        evicted: Sequence[Demand],
        claims: Sequence[PlannedClaim],
        waiting: frozenset[str],
    ) -> Answer:
        """`evicted` are the pods of the nodes that go, in their order."""
        known = self._known.setdefault((waiting, gone), [])
        for bought, answer in known:
            if bought == claims:
                return answer
        answer = self._asked(Departure(self._situation, gone=gone, evicted=evicted, claims=claims), waiting)
        known.append((claims, answer))
        return answer

    @staticmethod
    def _asked(departure: Departure, waiting: frozenset[str]) -> Answer:
        looked = 0
        for looked, left in enumerate(departure.in_any_order(waiting), start=1):
            if left:
                return Answer(left, departure.crowded, looked)
        return Answer((), False, looked)


def _full(
    situation: Situation,
    nodes: Iterable[NodeView],
    claims: Sequence[PlannedClaim],
    queue: Sequence[Demand],
    bound: Rehearsal,
) -> tuple[NodeView, ...]:
    """The nodes and the machines that are bought, with everybody where kube-scheduler has bound them."""
    pools = {pool.ref: pool for pool in situation.snapshot.pools}
    shapes = {each.key: each.shape for each in (*situation.demands, *queue)}
    machines = [
        dataclasses.replace(
            machine(claim, pools[claim.pool], planned_name(number)), requested=taken_by_daemons(claim, shapes)
        )
        for number, claim in enumerate(claims)
    ]
    pods: dict[str, list[PodShape]] = {}
    for key, place in bound.order:
        pods.setdefault(place if isinstance(place, str) else planned_name(place), []).append(shapes[key])
    return holding((*nodes, *machines), pods)


def _without(gone: Collection[str], nodes: Iterable[NodeView], *, drained: bool) -> Iterator[NodeView]:
    """The nodes after some are gone, or while they go."""
    for node in nodes:
        if node.name not in gone:
            yield node
        elif drained:
            yield _drained(node)


def _drained(node: NodeView) -> NodeView:
    """A node while it goes: nobody may come, but to those who spread it is a place without pods until it is gone."""
    return dataclasses.replace(
        node, taints=(*node.taints, DISRUPTED), allocatable={}, requested={}, daemon_requested={}, pods=(), volumes={}
    )
