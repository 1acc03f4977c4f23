"""Steps that buy more, or are taken back, until kube-scheduler would find a place for everybody."""

import collections
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from growth.planning.disruption import words
from growth.planning.disruption.search.besides import Besides
from growth.planning.disruption.search.course import Course, Step

# In each round so much more room comes back than the pods that were left over ask for, twice that in the next.
MARGIN: Final = 1.25
ROUNDS: Final = 12
# Where nothing is left of all steps together, so many of them are tried one after the other.
SINGLY: Final = 8


def rehearse(course: Course) -> None:
    """Steps buy more, or are taken back, until kube-scheduler would leave nobody over, in whichever order the pods come."""
    waiting = course.ground.waiting
    if course.steps and course.situation.demands:
        # Who would be left over anyway is no reason against a move.
        waiting = course.answers.anyway(waiting)
    steps = course.steps
    if not _settled(course, waiting) or course.steps or len(steps) < 2:
        return
    # All of them are too many: those that save most, as far as others have room beside them.
    for step in sorted(steps, key=course.urgency)[:SINGLY]:
        kept = course.steps
        course.steps = [*kept, step]
        if not _settled(course, waiting):
            return
        if len(course.steps) <= len(kept):
            course.steps = kept


def _settled(course: Course, waiting: frozenset[str]) -> bool:
    """Leaves the steps that are believed together, often fewer and sometimes none; False where the search must end."""
    besides = Besides(course)
    turn = 0
    for _ in range(ROUNDS):
        if not course.steps:
            return True
        if course.stopped:
            course.complete = False
            break
        found = course.rehearsed(course.steps, waiting)
        if not found.left:
            return True
        back = _blamed(course, found.left, MARGIN * 2**turn, least=2**turn)
        # For those who wait somebody else buys: then there is room again.
        over = None if found.crowded else besides.by_step(found.left)
        if over is not None and besides.price(over) < sum(course.saved(course.steps[at]) for at in back):
            back = {at for at, keys in over.items() if not besides.buy(at, keys)}
        if back:
            _take_back(course, back)
            turn += 1
    _forget(course, course.steps)
    course.steps = []
    return course.complete


def _blamed(course: Course, left: Sequence[str], margin: float, *, least: int) -> set[int]:
    """The turns of the steps whose pods were left over, until there is room for the rest of them; so many at least."""
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
    return back


def _take_back(course: Course, back: Collection[int]) -> None:
    _forget(course, [course.steps[turn] for turn in sorted(back)])
    course.steps = [step for turn, step in enumerate(course.steps) if turn not in back]


def _forget(course: Course, steps: Iterable[Step]) -> None:
    for step in steps:
        for at in step.nodes:
            course.taken_back.add(course.ground.owned[at].name)
            told = "kube-scheduler would leave some of the pods without a place"
            course.say(course.ground.owned[at], words.NO_PLACE, told)
