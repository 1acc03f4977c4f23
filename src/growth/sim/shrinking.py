"""The smallest misfortune that still breaks a promise: whole kinds of faults are left out, as long as it breaks without."""

import dataclasses
from collections.abc import Callable, Sequence

from growth.sim.chaos import rates
from growth.sim.scenario.model import Order, Outcome

Perform = Callable[[Order], Outcome]


def shrunk(order: Order, broken: str, perform: Perform, *, runs: int = 40) -> tuple[Order, Outcome | None]:
    """The order with as few kinds of faults as still break `broken`, and its outcome; None where nothing could be left out.

    Kinds draw from streams of their own, so that leaving one out shifts no other's draws; but the world goes another way
    without it, so that the smallest set is found by trying, with `runs` tries at most.
    """
    left = {**order.scenario.faults, **rates.parse(order.faults)}
    silent = dict.fromkeys(order.scenario.faults, 0.0)
    best: Outcome | None = None
    size = max(1, len(left) // 2)
    while left and runs > 0:
        smaller = None
        for part in _parts(tuple(left), size):
            if runs <= 0:
                break
            runs -= 1
            fewer = {name: rate for name, rate in left.items() if name not in part}
            outcome = perform(_with(order, {**silent, **fewer}))
            if any(each.invariant == broken for each in outcome.violations):
                smaller, best = fewer, outcome
                break
        if smaller is not None:
            left = smaller
            size = max(1, min(size, len(left) // 2))
        elif size == 1:
            break
        else:
            size = max(1, size // 2)
    return _with(order, {**silent, **left}), best


def _with(order: Order, faults: dict[str, float]) -> Order:
    return dataclasses.replace(order, faults=rates.printed(faults))


def _parts(names: Sequence[str], size: int) -> list[Sequence[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]
