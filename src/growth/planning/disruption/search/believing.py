"""Whether kube-scheduler would find a place for everybody: what we plan, it binds, and it spreads where we pack."""

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

from growth.cluster.snapshot import Demand
from growth.planning.disruption import words
from growth.planning.disruption.model import Situation
from growth.planning.disruption.search.course import Course, Step
from growth.planning.plan import PlannedClaim
from growth.planning.rehearsal import Arrival, Stage

# In each round so much more room comes back than the pods that were left over ask for, twice that in the next.
MARGIN: Final = 1.25
ROUNDS: Final = 12
# The pods come as the moves are listed, and the other way round.
ORDERS: Final = 2


def left_over(
    situation: Situation,
    *,
    gone: Iterable[str],
    evicted: Sequence[Demand],
    claims: Sequence[PlannedClaim],
    waiting: frozenset[str],
) -> list[str]:
    """The pods that would have no place with these nodes gone and these machines bought.

    `waiting` are pods that have none now either, for whom somebody else buys machines.
    """
    names = set(gone)
    snapshot = dataclasses.replace(
        situation.snapshot, nodes=tuple(node for node in situation.snapshot.nodes if node.name not in names)
    )
    pending = [demand for demand in situation.demands if demand.key not in waiting]
    stage = Stage(snapshot, [*pending, *evicted])
    return list(stage.rehearse(claims, Arrival.AT_ONCE).left)


def rehearse(course: Course) -> None:
    """Takes steps back until kube-scheduler would leave nobody over, in whichever order the pods come."""
    ground = course.ground
    clean, turn = 0, 0
    while course.steps and clean < ORDERS and turn < ROUNDS:
        if course.stopped:
            course.complete = False
            break
        evicted = [ground.demands[key] for step in course.steps for at in step.nodes for key in ground.evicted[at]]
        ground.steps += len(evicted)
        left = left_over(
            course.situation,
            gone=course.absent(),
            evicted=evicted[::-1] if clean else evicted,
            claims=[each.planned for step in course.steps for each in step.bought],
            waiting=ground.waiting,
        )
        clean = 0 if left else clean + 1
        if left:
            _take_back(course, left, MARGIN * 2**turn, least=2**turn)
            turn += 1
    if clean < ORDERS:
        _forget(course, course.steps)
        course.steps = []


def _take_back(course: Course, left: Sequence[str], margin: float, *, least: int) -> None:
    """The steps whose pods were left over come back, until there is room for the rest of them; so many at least."""
    ground, shop = course.ground, course.shop
    over = collections.Counter(ground.origin.get(key, -1) for key in left)
    needed = float(shop.cost_of([[(ground.class_of[key], (key,)) for key in left]])[0]) * margin

    def blame(turn: int) -> tuple[float, int]:
        nodes = course.steps[turn].nodes
        return -round(sum(over[at] for at in nodes) / len(nodes), 6), -turn

    back: set[int] = set()
    room = 0.0
    for turn in sorted(range(len(course.steps)), key=blame):
        if len(back) >= least and room >= needed:
            break
        back.add(turn)
        for at in course.steps[turn].nodes:
            room += float(shop.guide.of(ground.room[[at]])[0] + shop.cost_of([ground.pods[at]])[0])
    _forget(course, [course.steps[turn] for turn in sorted(back)])
    course.steps = [step for turn, step in enumerate(course.steps) if turn not in back]


def _forget(course: Course, steps: Iterable[Step]) -> None:
    for step in steps:
        for at in step.nodes:
            course.taken_back.add(course.ground.owned[at].name)
            told = "kube-scheduler would leave some of the pods without a place"
            course.say(course.ground.owned[at], words.NO_PLACE, told)
