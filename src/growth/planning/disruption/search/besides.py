"""Machines besides, for pods that steps would leave over: a node that stays for the sake of one pod costs more."""

import collections
from collections.abc import Mapping, Sequence

from growth.planning.disruption.search.course import Course, Step
from growth.planning.disruption.search.ground import Trial
from growth.planning.disruption.search.prices import Refusal, replacements


class Besides:
    """What the steps of a course buy besides, while it is rehearsed. Each step buys for its own pods, and still pays."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._before: dict[tuple[int, ...], Step] = {}
        self._over: dict[tuple[int, ...], list[str]] = collections.defaultdict(list)
        self._trials: dict[tuple[int, ...], Trial] = {}

    def by_step(self, left: Sequence[str]) -> Mapping[int, Sequence[str]] | None:
        """The pods that are left over, by the turn of their step; None where somebody is no step's."""
        origin = self._course.ground.origin
        turns = {at: turn for turn, step in enumerate(self._course.steps) for at in step.nodes}
        found: dict[int, list[str]] = {}
        for key in left:
            turn = turns.get(origin.get(key, -1))
            if turn is None:
                return None
            found.setdefault(turn, []).append(key)
        return found

    def price(self, over: Mapping[int, Sequence[str]]) -> float:
        """About what it costs that all of them have a place."""
        shop, ground = self._course.shop, self._course.ground
        return float(shop.cost_of([[(ground.class_of[key], (key,)) for key in keys] for keys in over.values()]).sum())

    def buy(self, turn: int, left: Sequence[str]) -> bool:
        """The step buys for these of its pods, and for those that it left over before; False where that does not pay."""
        course, ground = self._course, self._course.ground
        step = course.steps[turn]
        before = self._before.setdefault(step.nodes, step)
        over = self._over[step.nodes]
        over += left
        more = course.shop.more(over, most=course.saved(before))
        if more is None:
            return False
        if step.nodes in self._trials:
            ground.let_go(self._trials.pop(step.nodes))
        trial = ground.more(step.nodes, more)
        after = None if trial is None else self._after(before, trial)
        if trial is None or after is None:
            return False
        pools = [[str(each.planned.pool) for each in one.bought] for one in (step, after)]
        if not course.allowance.rebook([ground.owned[at] for at in step.nodes], *pools):
            return False
        ground.keep(trial)
        self._trials[step.nodes] = trial
        course.steps[turn] = after
        return True

    def _after(self, before: Step, trial: Trial) -> Step | None:
        """The step with the machines besides; None where it may not buy them or does not pay any more."""
        course, ground = self._course, self._course.ground
        nodes = [ground.owned[at] for at in before.nodes]
        evictions = sum(len(ground.evicted[at]) for at in before.nodes)
        bought = replacements(
            [*course.claims.get(before.nodes, ()), *trial.claims],
            nodes,
            evictions=evictions,
            ledgers=trial.ledgers,
            planning=ground.planning,
            context=ground.context,
            options=course.options,
        )
        if isinstance(bought, Refusal):
            return None
        fine = course.pays(nodes, bought, evictions) and course.balanced(nodes, bought)
        return Step(before.nodes, bought) if fine else None
