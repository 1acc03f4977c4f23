"""Whole worlds in which everything goes wrong, some of the many that `growth simulate` plays; no promise is broken."""

import functools

import msgspec
import pytest

from growth.sim.chaos.rates import FAULTS
from growth.sim.runs import run
from growth.sim.scenario.generate import generate
from growth.sim.scenario.model import QUIET_SECONDS, Event, Order, Outcome, Scenario, busy_seconds
from growth.sim.scenario.oddities import claim

SEEDS = 20
# So long the world is as busy as one of this many hours.
HOURS = 0.6
# And then it has all the peace of a longer one: a clock may have jumped ten minutes back, and then everything takes longer by
# that; and machines are put together move by move, each of which takes minutes, before nothing is left to do.
WHOLE = (busy_seconds(HOURS) + QUIET_SECONDS) / 3600.0
# Machines that never join are given up within that time, and those that came in vain are tried again.
SETTINGS: dict[str, str | int | float | bool] = {"registrationTTL": "3m", "vainBackOff": "20s"}


@functools.cache
def played(seed: int) -> Outcome:
    scenario = msgspec.structs.replace(generate(seed, hours=HOURS), settings=SETTINGS)
    return run(Order(seed=seed, scenario=scenario, hours=WHOLE, faults="all", quiet_seconds=QUIET_SECONDS))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_promise_is_broken_in_any_weather(seed: int) -> None:
    """Machines are bought and given back, all faults strike, and every invariant holds."""
    outcome = played(seed)
    assert outcome.violations == (), outcome.violations[0].story
    assert min(outcome.scale_ups, outcome.scale_downs) > 0


def test_every_kind_of_fault_struck() -> None:
    """While something was in flight, in these worlds together."""
    assert {kind for seed in range(SEEDS) for kind in played(seed).faults} == set(FAULTS)


def test_a_machine_that_never_joins_spares_the_next_of_its_name() -> None:
    """A claim is made by hand, never comes up and is given up; made again it comes up, as nothing is wrong with that one."""
    events = tuple(Event(at=at, do="create", object=claim("alone")) for at in ("1m", "10m"))
    scenario = Scenario(hours=HOURS, events=events, settings=SETTINGS)
    outcome = run(Order(seed=0, scenario=scenario, hours=HOURS, faults="never-join=0.5"))
    assert (outcome.faults["never-join"], outcome.scale_ups, outcome.scale_downs) == (1, 2, 1)
    assert outcome.violations == (), outcome.violations[0].story
