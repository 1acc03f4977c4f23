"""A violation is told with as few faults as it takes."""

import dataclasses
import functools
import re

import pytest

from growth.sim.chaos import rates
from growth.sim.scenario.model import Order, Outcome, Scenario, Violation
from growth.sim.shrinking import shrunk

QUIET = Outcome(
    seed=3,
    crash_after=0,
    steps=0,
    writes=0,
    hours=1.0,
    peak_machines=0,
    peak_pods=0,
    scale_ups=0,
    scale_downs=0,
    pending_seconds=0.0,
    evictions=0,
    cost=0,
    currency="USD",
    digest="",
    effects="",
    faults={},
    violations=(),
)


def run(order: Order, needed: frozenset[str] = frozenset()) -> Outcome:
    """A world that leaks when all of these faults are there."""
    if needed <= set(rates.parse(order.faults)):
        leak = Violation(seed=order.seed, invariant="leak", at=1.0, story=order.faults)
        return dataclasses.replace(QUIET, violations=(leak,))
    return QUIET


def test_only_the_faults_that_matter_are_left() -> None:
    """Whatever is not needed is left out, however the needed ones lie."""
    order = Order(seed=3, scenario=Scenario(), hours=1.0, faults="all")
    names = list(rates.FAULTS)
    for needed in ({names[0]}, {names[-1]}, {names[3], names[20]}, {names[1], names[2], names[30]}):
        smaller, outcome = shrunk(order, "leak", functools.partial(run, needed=frozenset(needed)), runs=200)
        assert set(rates.parse(smaller.faults)) == needed
        assert outcome is not None
        assert outcome.violations[0].story == smaller.faults


def test_what_cannot_be_made_smaller_stays() -> None:
    """A bug that needs no fault has none in its story; one that shows no more is told as it was."""
    order = Order(seed=3, scenario=Scenario(), hours=1.0, faults="crash,conflict")
    assert shrunk(order, "leak", run)[0].faults == "none"
    assert shrunk(order, "leak", functools.partial(run, needed=frozenset({"crash", "conflict"})))[1] is None
    assert shrunk(order, "another", run)[1] is None


def test_tries_are_bounded() -> None:
    """Each try is a whole run."""
    tried: list[Order] = []

    def perform(order: Order) -> Outcome:
        tried.append(order)
        return QUIET

    shrunk(Order(seed=3, scenario=Scenario(), hours=1.0, faults="all"), "leak", perform, runs=5)
    assert len(tried) == 5


def test_faults_are_named_or_refused() -> None:
    """What --faults says is understood or told apart, and what is printed is understood again."""
    assert rates.parse("none") == {}
    assert set(rates.parse("all")) == set(rates.FAULTS)
    assert rates.parse("crash=2, conflict") == {"crash": 2.0, "conflict": rates.FAULTS["conflict"].rate}
    for given in ("all", "none", "crash=2", "crash,conflict=0.5"):
        assert rates.printed(rates.parse(given)) == given
    for bad, part in (("storm", "no fault 'storm'"), ("crash=often", "'often'"), ("conflict=2", "from 0 to 1")):
        with pytest.raises(ValueError, match=re.escape(part)):
            rates.parse(bad)
