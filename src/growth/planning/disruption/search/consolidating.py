"""Fewer or cheaper machines for the same pods: the search itself.

First nodes go whose pods find room on nodes that stay, one after the other, those first that are dearest for the room
that they give. Then nodes that are too dear for what they hold are replaced. In the end the whole decision is rehearsed,
and nodes come back until kube-scheduler would leave nobody over.

Where nodes would take pods only to be replaced next, that is searched again with them replaced first, and where there are few
with all of them replaced; where nothing is found at all, Karpenter's rule is tried, and then single steps each by itself. Where
budgets let only some go, the search looks where everything would end without them, and takes of that what budgets allow: so no
pod is sent to a node that is to go next. So it does where purchases rest: what the target removes without one goes, and the
rest of such a pool waits. Where pods are on their way out, it looks where everything would end without them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from growth.planning.disruption import words
from growth.planning.disruption.candidates import in_order
from growth.planning.disruption.model import Kept, OwnedNode, Room, Situation
from growth.planning.disruption.search.allowance import Allowance
from growth.planning.disruption.search.asked import Asked, asked
from growth.planning.disruption.search.believing import rehearse
from growth.planning.disruption.search.course import Course, Step
from growth.planning.disruption.search.departing import Answers
from growth.planning.disruption.search.exchanging import TOGETHER, Exchange
from growth.planning.disruption.search.forgone import forgone
from growth.planning.disruption.search.ground import Ground
from growth.planning.disruption.search.options import Found, SearchOptions
from growth.planning.disruption.search.parting import wait, when_gone
from growth.planning.disruption.search.shop import Shop
from growth.planning.disruption.search.sight import Sight
from growth.planning.recent import Recent

# A search that comes to nothing because kube-scheduler would not find the places is made so often.
ATTEMPTS: Final = 4
# So many steps are few enough to search once more: some hundred nodes. Where there are more, the next decision mends it.
THOROUGH: Final = 20_000
# Where nothing is found so many steps are tried each by itself: every one is rehearsed among all nodes.
BY_ITSELF: Final = 16
# So few nodes could all be replaced by what is drawn for them together.
FEW: Final = TOGETHER[0]
# A decision that moves more pods than another must leave so many percent less to be paid.
MORE_PERCENT: Final = 3
# Why a node stays of which nothing else is known.
NOTHING_FOUND: Final = "its pods have no room on other nodes, and no cheaper machine holds them"


def consolidate(
    situation: Situation,
    candidates: Sequence[OwnedNode],
    rooms: Mapping[str, Room],
    options: SearchOptions = SearchOptions(),  # noqa: B008 - frozen
) -> Found:
    """Which of the candidates go and what comes instead. Pure; equal input gives an equal answer."""
    question = asked(situation, candidates, rooms, options)
    known = _RECENT.find(question)
    if known is None:
        known = _searched(situation, candidates, rooms, options)
        if known.complete:
            _RECENT.keep(question, known)
    return known


# Decisions are made again when anything has changed, mostly what does not concern them. Each of them asks twice at most.
_RECENT: Final[Recent[Asked, Found]] = Recent(kept=4)


def _searched(
    situation: Situation, candidates: Sequence[OwnedNode], rooms: Mapping[str, Room], options: SearchOptions
) -> Found:
    search = _Search(situation, candidates, options)
    soon = when_gone(situation)
    course = search.within(rooms) if soon is None else search.towards_what_comes(soon, rooms)
    moves = course.moves()
    destinations = {name for move in moves for name in move.destinations}
    moved = {name for move in moves for name in move.nodes}
    staying = [node for node in candidates if node.name not in moved]
    unsaid = [node for node in staying if node.name not in course.why and node.name not in destinations]
    limited = [node for node in unsaid if course.allowance.limited(node.pool)]
    if limited and course.complete:
        without = forgone(situation, moves, limited, options, spent=search.steps)
        # Of what is well used the whole sentence says more than the refusal of a purchase.
        course.why |= {name: kept for name, kept in without.why.items() if kept.reason != words.IN_USE}
        course.complete = not without.stopped
        search.steps += without.ground.steps
    return Found(
        moves=moves,
        kept=tuple(_kept(course, node, destinations) for node in staying),
        steps=search.steps,
        complete=course.complete,
        target=course.target,
    )


class _Search:
    """One situation, searched in several ways. `steps` counts the work of all of them."""

    def __init__(self, situation: Situation, candidates: Sequence[OwnedNode], options: SearchOptions) -> None:
        self._situation = situation
        self._candidates = candidates
        self._options = options
        self._paid = sum(node.price or 0 for node in candidates)
        self._grounds: dict[tuple[str, ...], Ground] = {}
        self._sights: dict[tuple[Ground, tuple[int, ...]], Sight] = {}
        self._shops: dict[Ground, Shop] = {}
        self._answers = Answers(situation)
        self.steps = 0

    def within(self, rooms: Mapping[str, Room]) -> Course:
        """The best decision that is found within budgets and limits."""
        if Allowance(rooms).replaces(self._candidates):
            return self._best(rooms)
        target = self._best({pool: _opened(room) for pool, room in rooms.items()})
        if not target.steps or not target.complete:
            return target
        towards = self._towards(target, rooms)
        if towards.steps or not towards.complete:
            return towards
        awake = [node for node in self._candidates if not towards.allowance.awaits(node.pool)]
        return self._attempted(rooms, among=awake)

    def towards_what_comes(self, soon: Situation, rooms: Mapping[str, Room]) -> Course:
        """As much as can be made now of what would be decided without the pods that are on their way out."""
        later = _Search(soon, self._candidates, self._options)
        target = later._best({pool: _opened(room) for pool, room in rooms.items()})
        self.steps += later.steps
        if not target.complete:
            target.steps = []  # they are right for what comes, and perhaps not for what is
            return target
        course = self._towards(target, rooms)
        waits = wait(course, soon)
        if course.steps or waits or not course.complete:
            return course
        course = self.within(rooms)
        wait(course, soon)
        return course

    def _best(self, rooms: Mapping[str, Room]) -> Course:
        best = self._attempted(rooms)
        if best.complete and self.steps < THOROUGH:
            oversized = Exchange(best).oversized()
            # Nodes that take others' pods and would be replaced next are replaced at once, before anybody is sent there.
            for first in filter(None, (oversized, *self._anew(rooms))):
                other = self._attempted(rooms, first=first)
                best = other if other.complete and self._better(other, best) else best
        if best.complete and not best.steps:
            for last in (self._by_prefix, self._by_itself):
                other = last(rooms)
                if other.steps or not other.complete:
                    return other
        return best

    def _anew(self, rooms: Mapping[str, Room]) -> Iterator[frozenset[int]]:
        """Where there are few nodes: those that could all be replaced at once, before any of them takes others' pods."""
        if len(self._candidates) > FEW:
            return
        course = self._course(self._candidates, rooms, {})
        exchange = Exchange(course)
        groups = [group for part in course.ground.parts() for group in exchange.anew(part)]
        self._count(course)
        yield from map(frozenset, groups)

    def _better(self, one: Course, other: Course) -> bool:
        """Whether the one leaves less to be paid: by a good part, or without moving more pods."""
        left, before = self._paid - one.savings, self._paid - other.savings
        if not other.steps or one.evictions <= other.evictions:
            return left < before
        return left * 100 <= before * (100 - MORE_PERCENT)

    def _by_prefix(self, rooms: Mapping[str, Room]) -> Course:
        """Karpenter's rule: as many as go together for one machine, in its order, else each by itself."""
        doubted: dict[str, Kept] = {}
        for _ in range(ATTEMPTS):
            course = self._course(self._candidates, rooms, doubted)
            Exchange(course).prefix(in_order(self._candidates))
            rehearse(course)
            self._count(course)
            if course.steps or not course.taken_back or not course.complete:
                break
            doubted |= {name: course.why[name] for name in course.taken_back}
        return course

    def _by_itself(self, rooms: Mapping[str, Room]) -> Course:
        """One step and no other: a node alone, else a prefix of Karpenter's order; what saves most for each pod it moves.

        Steps that are tried together are taken back together.
        """
        course = self._course(self._candidates, rooms, {})
        ways = Exchange(course).by_themselves(in_order(self._candidates), most=THOROUGH)
        self._count(course)
        for group in ways[:BY_ITSELF] if course.complete else ():
            trial = self._course(self._candidates, rooms, {})
            Exchange(trial).make(group)
            rehearse(trial)
            self._count(trial)
            if trial.steps or not trial.complete:
                return trial
        return course

    def _attempted(
        self, rooms: Mapping[str, Room], *, first: Collection[int] = (), among: Sequence[OwnedNode] | None = None
    ) -> Course:
        """One search; where nothing of it is believed another with roomier machines, then one without who was in the way.

        `among` are the nodes that may go; all candidates where it is not said.
        """
        doubted: dict[str, Kept] = {}
        for attempt in range(ATTEMPTS):
            course = self._course(self._candidates if among is None else among, rooms, doubted)
            course.shop = self._shops.setdefault(course.ground, course.shop)
            exchange = Exchange(course, drawing=attempt == 0)
            for part in course.ground.parts():
                sight = self._sight(course, part)
                course.ground.nodes.order = sight.order()
                exchange.replace([at for at in part if at in first])
                _delete(course, sight.leavers(few=course.allowance.few(course.ground.owned[at].pool for at in part)))
                exchange.replace(part)
            rehearse(course)
            self._count(course)
            if course.steps or not course.taken_back or not course.complete:
                break
            if attempt:
                doubted |= {name: course.why[name] for name in course.taken_back}
        return course

    def _towards(self, target: Course, rooms: Mapping[str, Room]) -> Course:
        """Of what the target removes as much as budgets allow, what saves most first; nobody else is a candidate."""
        going = {target.ground.owned[at].name for step in target.steps for at in step.nodes}
        course = self._course([node for node in self._candidates if node.name in going], rooms, {})
        exchange = Exchange(course)
        owned = course.ground.owned
        course.ground.nodes.order = Sight(course.ground, sorted(owned), course.shop, self._options.node_cost).order()
        few = len(self._candidates) <= FEW
        left: list[int] = []
        for step in sorted(target.steps, key=target.urgency):
            if course.over():
                break
            if not step.bought:
                _delete(course, step.nodes)
            elif not exchange.replace_all(step.nodes) and not (few and exchange.begin(step)):
                left += step.nodes
        exchange.replace(left)
        rehearse(course)
        self._count(course)
        course.why = {name: kept for name, kept in target.why.items() if name not in going} | course.why
        course.target = frozenset(going)
        return course

    def _course(
        self, candidates: Sequence[OwnedNode], rooms: Mapping[str, Room], doubted: Mapping[str, Kept]
    ) -> Course:
        course = Course(
            self._situation,
            candidates,
            rooms,
            self._options,
            doubted=doubted,
            ground=self._ground,
            answers=self._answers,
        )
        course.spent = self.steps
        return course

    def _ground(self, nodes: Sequence[OwnedNode]) -> Ground:
        """The ground for these nodes with nothing moved; that of a search before this one, which is over."""
        names = tuple(node.name for node in nodes)
        known = self._grounds.get(names)
        if known is None:
            known = self._grounds[names] = Ground(self._situation, nodes, self._options)
        else:
            known.again()
        return known

    def _sight(self, course: Course, part: Sequence[int]) -> Sight:
        """Prices and loads of a part do not change while pods are moved."""
        key = (course.ground, tuple(part))
        known = self._sights.get(key)
        if known is None:
            known = self._sights[key] = Sight(course.ground, part, course.shop, self._options.node_cost)
        return known

    def _count(self, course: Course) -> None:
        self.steps += course.ground.steps


def _opened(room: Room) -> Room:
    """Without budgets and rests; where nothing may go or be bought at all that stays so, and where purchases keep failing."""
    replaces = room.replace != 0 or (room.resting and not room.failing)
    return Room(None if room.delete != 0 else 0, None if replaces else 0, buy=room.buy)


def _delete(course: Course, leavers: Iterable[int]) -> None:
    """Nodes go whose pods find room on nodes that stay."""
    ground = course.ground
    for at in leavers:
        if at in course.gone:
            continue
        node = ground.owned[at]
        if course.over():
            return
        if (
            course.allowance.deletes([node])
            and course.pays([node], (), len(ground.evicted[at]))
            and course.balanced([node], ())
        ):
            trial = ground.without_purchase((at,))
            if trial is not None:
                course.commit(Step((at,)), trial)


def _kept(course: Course, node: OwnedNode, destinations: Collection[str]) -> Kept:
    """Why the node stays."""
    known = course.why.get(node.name)
    if known is not None:
        return known
    if node.name in destinations:
        return Kept(node.name, node.pool, words.DESTINATION, "pods of another node are moved there", waits=True)
    if course.allowance.spent(node.pool):
        return Kept(node.name, node.pool, words.BUDGET, course.allowance.why_spent(node.pool), waits=True)
    if resting := course.allowance.why_resting(node.pool):
        return Kept(node.name, node.pool, words.BACK_OFF, resting, waits=True)
    if node.name in course.target:
        told = f"it is to go after other nodes of NodePool {node.pool}, of which not all may go at once"
        return Kept(node.name, node.pool, words.BUDGET, told, waits=True)
    return Kept(node.name, node.pool, words.IN_USE, NOTHING_FOUND)
