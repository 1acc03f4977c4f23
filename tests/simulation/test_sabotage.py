"""No check is vacuous: every invariant has a deliberate bug, and catches it."""

import pytest

from growth.sim.chaos.sabotage import SABOTAGES
from growth.sim.invariants.auditor import ALL
from growth.sim.runs import run
from growth.sim.scenario.generate import generate
from growth.sim.scenario.model import Order

SEED = 0


def test_every_invariant_has_a_sabotage() -> None:
    """An invariant that nobody has seen fail is no invariant; a sabotage of none is of no use."""
    assert {each.breaks for each in SABOTAGES.values()} == set(ALL)


@pytest.mark.parametrize("name", SABOTAGES)
def test_every_sabotage_is_caught(name: str) -> None:
    """By the invariant that it breaks, though others may see it too."""
    hours = SABOTAGES[name].hours
    outcome = run(Order(seed=SEED, scenario=generate(SEED, hours=hours), hours=hours, faults="all", sabotage=name))
    assert SABOTAGES[name].breaks in {each.invariant for each in outcome.violations}
