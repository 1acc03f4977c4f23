"""Nodes that are too dear for what they hold, replaced several at once by as many machines as the cost packer draws."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from growth.planning.classes import PodClass
from growth.planning.disruption import words
from growth.planning.disruption.model import OwnedNode, Replacement
from growth.planning.disruption.search.course import Course, Step
from growth.planning.disruption.search.ground import More, Trial
from growth.planning.disruption.search.orders import orders
from growth.planning.disruption.search.prices import Refusal, replacements
from growth.planning.drawn import Drawn
from growth.planning.offerings import Shelf
from growth.planning.rehearsal import Arrival, Stage

# So many nodes are replaced together, at first, then and in the end: many pack tighter, few are found more easily.
TOGETHER: Final = (16, 4, 1)
# Machines that cost at most so much more than the least in fractions are not drawn anew.
NEAR: Final = 1.03
# Machines that cost so much more than the least for what they hold will be replaced.
FAR: Final = 1.25
# Karpenter looks at so many nodes together.
PREFIX: Final = 100
# What differs by less than one part in so many costs the same.
EQUAL: Final = 100
# Of what is drawn for several nodes so many percent must come with the first of them: the rest is bought later, or never, by
# moves that must pay by themselves, for pods that kube-scheduler has spread as it liked.
AT_FIRST_PERCENT: Final = 80
# How often machines are added for pods that are left over.
REPAIRS: Final = 4
# What a drawing counts in steps.
DRAWING: Final = 300

_Drawings = tuple[Sequence[Drawn], Mapping[PodClass, int]]
_Bought = tuple[Replacement, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """How nodes are replaced: by machines as drawn or else as first fit opens them, and more for who would be left over."""

    drawings: _Drawings = ((), {})
    more: More | None = None


class Exchange:
    """The second half of a search, for one part of the ground after the other."""

    def __init__(self, course: Course, *, drawing: bool = True) -> None:
        """Without `drawing` machines come as first fit opens them: fewer, larger and with more room to spare."""
        self._course = course
        self._drawing = drawing
        self._ground = course.ground
        self._options = course.options
        self._wanted: set[frozenset[str]] = set()  # types that were to be bought for the group that was tried last
        # Groups for which nothing was cheaper: how many nodes were gone by then, and what it took to find out.
        self._in_vain: dict[tuple[int, ...], tuple[int, int]] = {}

    def replace(self, part: Sequence[int]) -> None:
        """Replaces many together where that is cheaper, else the same in fewer, down to each by itself."""
        waiting = [self._too_dear(part)]
        for size in TOGETHER:
            failed: list[list[int]] = []
            for some in waiting:
                for start in range(0, len(some), size):
                    if self._course.over():
                        return
                    group = self._together(some[start : start + size])
                    if group and not self._replaced(tuple(group)) and not any(map(self._replaced, self._others(group))):
                        failed.append(group)
            waiting = failed

    def replace_all(self, nodes: Sequence[int]) -> bool:
        """Replaces these together; False where they may not, or nothing is cheaper."""
        group = self._together(nodes)
        return len(group) == len(nodes) and self._replaced(tuple(group))

    def anew(self, nodes: Sequence[int]) -> list[tuple[int, ...]]:
        """Those of the nodes that are too dear, and the same without those of a type that would be bought for all of them."""
        group = self._together(self._too_dear(nodes))
        if len(group) < 2:
            return []
        self._wanted = set()
        self._ways(tuple(group))
        return [tuple(group), *self._others(group)]

    def begin(self, step: Step) -> bool:
        """The dearest node of the step that may go now, for those of the step's machines that hold its pods: the other nodes
        follow by and by, into the room that is left there. Where these are few of them, for one that holds all pods of the step,
        if it costs hardly more. False where nothing of that pays.
        """
        ground = self._ground
        dearest = sorted(step.nodes, key=lambda at: (-(ground.owned[at].price or 0), at))
        first = next((at for at in dearest if self._together([at])), None)
        if first is None:
            return False
        one = self._one_for_all(step)
        mark = ground.nodes.mark()
        for at in step.nodes:
            if at != first:
                ground.nodes.close(at)  # it is to go next
        begun = self._begun(first, step.bought)
        if begun is None or self._cost(begun[0]) * 100 < self._cost(step.bought) * AT_FIRST_PERCENT:
            begun = self._begun(first, one) or begun
        if begun is None:
            ground.nodes.back(mark)
            return False
        self._make((first,), begun[1])
        return True

    def _one_for_all(self, step: Step) -> _Bought:
        """The machine that holds all pods of the step by itself, where it costs hardly more than the step's."""
        trial = self._ground.with_purchase(step.nodes)
        if trial is None:
            return ()
        bought = self._asked(step.nodes, trial)
        trial.undo()
        if isinstance(bought, Refusal) or len(bought) > 1 or self._cost(bought) > self._cost(step.bought) * NEAR:
            return ()
        return bought

    def _begun(self, first: int, machines: _Bought) -> tuple[_Bought, _Way] | None:
        """The node for as few of the machines as hold its pods; None where that does not pay."""
        ground = self._ground
        held = {row: len(keys) for row, (_, keys) in enumerate(ground.pods[first])}
        rows = {pods: row for row, (pods, _) in enumerate(ground.pods[first])}
        largest = sorted(machines, key=lambda each: -each.planned.price)
        drawn = [Drawn(*place, held, firm=True) for each in largest if (place := self._sold(each)) is not None]
        for number in range(1, len(drawn) + 1):
            drawings = (drawn[:number], rows)
            trial = ground.with_purchase((first,), *drawings)
            if trial is not None and len(trial.claims) <= number:
                way = self._believed((first,), trial, _Way(drawings))
                if way is not None:
                    return way
            elif trial is not None:
                trial.undo()
        return None

    def _sold(self, each: Replacement) -> tuple[Shelf, int] | None:
        """Where the machine is on our shelves."""
        wanted = each.planned
        for shelf in self._ground.shelves:
            for at, option in enumerate(shelf.options if shelf.pool.ref == wanted.pool else ()):
                place = (option.type.name, option.offering.zone, option.offering.capacity_type)
                if place == (wanted.instance_type, wanted.zone, wanted.capacity_type):
                    return shelf, at
        return None

    def prefix(self, candidates: Sequence[OwnedNode]) -> None:
        """As many of the candidates, in their order, as go together for one machine at most; else each by itself."""
        ground = self._ground
        order = [
            at for node in candidates if (at := ground.index.get(node.name)) in ground.owned and ground.evicted[at]
        ]
        low, high = 2, min(PREFIX, len(order))
        found: tuple[int, ...] = ()
        while low <= high and not self._course.over():
            middle = (low + high) // 2
            group = tuple(order[:middle])
            if self._goes_for_one(group):
                found, low = group, middle + 1
            else:
                high = middle - 1
        if found:
            way = self._believed(found, ground.with_purchase(found), _Way(), among_all=True)
            self._make(found, _Way() if way is None else way[1])
            return
        for at in order:
            if self._course.over():
                return
            if not ground.takes(at) and self._goes_for_one((at,)):
                self._make((at,), _Way())

    def by_themselves(self, candidates: Sequence[OwnedNode], *, most: int) -> list[tuple[int, ...]]:
        """Groups that would pay if nothing else were done: each node alone, then prefixes of the candidates' order; those
        first that save most for each pod that they move. Ends after so many steps.
        """
        ground = self._ground
        order = [
            at for node in candidates if (at := ground.index.get(node.name)) in ground.owned and ground.evicted[at]
        ]
        until = ground.steps + most
        found: list[tuple[int, ...]] = []
        for groups in (
            [(at,) for at in order],
            [tuple(order[:size]) for size in range(2, min(PREFIX, len(order)) + 1)],
        ):
            worth: dict[tuple[int, ...], int] = {}
            for group in groups:
                if self._course.over() or ground.steps >= until:
                    break
                trial = ground.with_purchase(group)
                bought = None if trial is None else self._bought(group, trial)
                if bought is not None:
                    evictions = sum(len(ground.evicted[at]) for at in group)
                    worth[group] = self._course.saved(Step(group, bought)) // evictions
            found += sorted(worth, key=lambda group: (-worth[group], group))
        return found

    def make(self, group: tuple[int, ...]) -> None:
        """One of them goes, with machines added until kube-scheduler would find all places, where that is known to do.

        Not while pods wait: for them somebody else buys, and then there is room again.
        """
        way = None
        if not self._course.situation.demands:
            way = self._believed(group, self._ground.with_purchase(group), _Way(), among_all=True)
        self._make(group, _Way() if way is None else way[1])

    def would_buy(self, at: int) -> bool:
        """Whether the node by itself would be replaced; where it would not, it is said why."""
        return any(bought for bought, _ in self._ways((at,)))

    def _goes_for_one(self, group: tuple[int, ...]) -> bool:
        trial = self._ground.with_purchase(group)
        if trial is None:
            return False
        alone = len(trial.claims) <= 1
        return self._bought(group, trial) is not None and alone

    def oversized(self) -> frozenset[int]:
        """Nodes that stay, to which pods are moved, and that are too dear even for what they hold then."""
        ground, course = self._ground, self._course
        taking = [at for at in sorted(ground.owned) if at not in course.gone and ground.takes(at)]
        if not taking:
            return frozenset()
        needed = course.shop.cost_of([[*ground.pods[at], *ground.nodes.arrived[at]] for at in taking])
        return frozenset(
            at for at, least in zip(taking, needed.tolist(), strict=True) if (ground.owned[at].price or 0) > least * FAR
        )

    def _too_dear(self, part: Sequence[int]) -> list[int]:
        """Nodes that nothing was moved to, that cost more than their pods would elsewhere; the worst first."""
        course, ground = self._course, self._ground
        free = [
            at
            for at in part
            if at not in course.gone
            and ground.evicted[at]
            and not ground.takes(at)
            and course.allowance.replaces([ground.owned[at]])
        ]
        if not free:
            return []
        needed = course.shop.cost_of([ground.pods[at] for at in free])
        paid = np.array([(ground.owned[at].price or 0) + self._options.node_cost for at in free], dtype=np.float64)
        ratio = np.round(paid / np.maximum(needed, 1.0), 6)
        score = ratio
        if course.allowance.few(ground.owned[at].pool for at in part):
            # Only a few may go now: those first that save most.
            score = np.round(paid - needed, 3)
        order = np.lexsort((np.arange(len(free)), -score))
        # What saves less than it must even if machines came in fractions is not tried.
        least = [100 / max(1, 100 - self._options.least([ground.owned[at]])) for at in free]
        return [free[i] for i in order.tolist() if ratio[i] > 1 and ratio[i] >= round(least[i], 6)]

    def _together(self, wanted: Iterable[int]) -> list[int]:
        """Those that may still be replaced together; not those to which others have moved meanwhile."""
        group: list[int] = []
        for at in wanted:
            nodes = [self._ground.owned[each] for each in (*group, at)]
            if not self._ground.takes(at) and self._course.allowance.replaces(nodes):
                group.append(at)
        return group

    def _others(self, group: Sequence[int]) -> list[tuple[int, ...]]:
        """Those of the group that are of no type that was to be bought for it: of the rest some could stay instead."""
        owned = self._ground.owned
        wanted = sorted(map(sorted, self._wanted))
        found = [tuple(at for at in group if owned[at].instance_type not in types) for types in wanted]
        return [others for others in dict.fromkeys(found) if 0 < len(others) < len(group)]

    def _replaced(self, group: tuple[int, ...]) -> bool:
        """Replaces these nodes in the cheapest way that is found; False where none is cheaper."""
        self._wanted = set()
        gone, steps = len(self._course.gone), self._ground.steps
        known = self._in_vain.get(group)
        if known is not None and known[0] == gone:
            self._ground.steps += known[1]
            return False
        ways = self._ways(group)
        if not ways:
            # Few nodes are the same group of sixteen and of four: as long as nobody else goes they need not be asked again.
            self._in_vain[group] = (gone, self._ground.steps - steps)
            return False
        bought, way = ways[0]
        for other, another in ways[1:]:
            if self._better(other, bought):
                bought, way = other, another
        self._make(group, way)
        return True

    def _ways(self, group: tuple[int, ...]) -> list[tuple[_Bought, _Way]]:
        """The ways to replace these nodes for less, as few machines as first fit opens and as the cost packer draws."""
        trial = self._ground.with_purchase(group)
        if trial is None:
            return []
        homeless = [key for key, place in trial.order if not isinstance(place, str)]
        first = self._believed(group, trial, _Way())
        drawings = self._drawn(group, homeless, None if first is None else first[0]) if self._drawing else ([], {})
        drawn = self._ground.with_purchase(group, *drawings) if drawings[0] else None
        second = None if drawn is None else self._believed(group, drawn, _Way(drawings))
        return [way for way in (first, second) if way is not None]

    def _believed(
        self, group: tuple[int, ...], trial: Trial | None, way: _Way, *, among_all: bool = False
    ) -> tuple[_Bought, _Way] | None:
        """The way, with machines added until kube-scheduler would bind all pods of the group to what is bought for them;
        or, `among_all`, to any node that there is.

        The trial, which is of the way as it is given, is undone. None where that does not pay.
        """
        leaves = self._left_over_among_all if among_all else self._left_over
        over: list[str] = []
        spare = 0
        for _ in range(REPAIRS):
            bought = None if trial is None else self._bought(group, trial)
            if bought is None:
                return None
            left = leaves(group, bought)
            if not left:
                return bought, way
            if not over:
                spare = self._course.saved(Step(group, bought))
            over += left
            more = self._course.shop.more(over, most=spare)
            if more is None:
                return None
            way = dataclasses.replace(way, more=more)
            trial = self._tried(group, way)
        if trial is not None:
            trial.undo()
        return None

    def _tried(self, group: tuple[int, ...], way: _Way) -> Trial | None:
        trial = self._ground.with_purchase(group, *way.drawings)
        return trial if trial is None or way.more is None else self._ground.with_more(trial, way.more)

    def _left_over(self, group: Sequence[int], bought: _Bought) -> Sequence[str]:
        """The pods that kube-scheduler would leave over if there were only the machines that are bought for them.

        In whichever order they come back.
        """
        ground = self._ground
        if len(bought) < 2:
            return ()  # what fits on one machine fits in any order
        on_machines = {key for each in bought for key in each.planned.pods}
        demands = [ground.demands[key] for at in group for key in ground.evicted[at] if key in on_machines]
        alone = dataclasses.replace(ground.situation.snapshot, nodes=())
        stage = Stage(alone, demands)
        for queue in orders(demands):
            ground.steps += len(queue)
            left = stage.queued(queue).rehearse([each.planned for each in bought], Arrival.AT_ONCE).left
            if left:
                return left
        return ()

    def _left_over_among_all(self, group: Sequence[int], bought: _Bought) -> Sequence[str]:
        """The pods that kube-scheduler would leave over if these nodes went and nothing else changed."""
        return self._course.rehearsed([Step(tuple(group), bought)], self._ground.waiting).left

    def _make(self, group: tuple[int, ...], way: _Way) -> None:
        """The same trial as a moment ago, to stay."""
        trial = self._tried(group, way)
        assert trial is not None
        bought = self._asked(group, trial)
        assert not isinstance(bought, Refusal)
        self._course.commit(Step(group, bought), trial)

    def _drawn(self, group: Sequence[int], keys: Sequence[str], first: _Bought | None) -> _Drawings:
        """Machines that the cost packer would buy for the pods; none where those that first fit buys are near the least."""
        shop, ground = self._course.shop, self._ground
        if first is not None and len(first) >= len(group):
            least = float(shop.cost_of([[(ground.class_of[key], (key,)) for key in keys]])[0])
            if self._cost(first) <= least * NEAR:
                return [], {}
        ground.steps += DRAWING
        return shop.drawn(keys, most=sum((ground.owned[at].price or 0) + self._options.node_cost for at in group))

    def _better(self, one: _Bought, other: _Bought) -> bool:
        """Whether the one is cheaper; among equals the one whose largest machine holds fewer pods."""
        mine, yours = self._cost(one), self._cost(other)
        if abs(mine - yours) * EQUAL > yours:
            return mine < yours
        return _largest(one) < _largest(other)

    def _cost(self, bought: _Bought) -> int:
        return sum(each.planned.price + self._options.node_cost for each in bought)

    def _bought(self, group: tuple[int, ...], trial: Trial) -> _Bought | None:
        """What the trial would buy, if it may and pays; the trial is undone."""
        course = self._course
        nodes = [self._ground.owned[at] for at in group]
        bought = self._asked(group, trial)
        trial.undo()
        if isinstance(bought, Refusal):
            if len(nodes) == 1 and nodes[0].name not in course.why:
                course.say(nodes[0], words.IN_USE, bought.message)
            return None
        evictions = sum(len(self._ground.evicted[at]) for at in group)
        fine = course.allowance.replaces(nodes, [str(each.planned.pool) for each in bought])
        return bought if fine and course.pays(nodes, bought, evictions) and course.balanced(nodes, bought) else None

    def _asked(self, group: tuple[int, ...], trial: Trial) -> _Bought | Refusal:
        ground = self._ground
        self._wanted.add(frozenset(claim.shelf.cheapest(claim.mask).type.name for claim in trial.claims))
        return replacements(
            trial.claims,
            [ground.owned[at] for at in group],
            evictions=sum(len(ground.evicted[at]) for at in group),
            ledgers=trial.ledgers,
            planning=ground.planning,
            context=ground.context,
            options=self._options,
        )


def _largest(bought: _Bought) -> int:
    """How many pods the fullest machine holds."""
    return max((len(each.planned.pods) for each in bought), default=0)
