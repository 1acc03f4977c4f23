"""Worlds with a name: corners of the autoscaler that random worlds come to seldom; no promise is broken in any of them."""

import pathlib

import msgspec
import pytest

from growth.sim.runs import run
from growth.sim.scenario.model import Order
from growth.sim.scenario.named import NAMED
from growth.sim.scenario.reading import understood


@pytest.mark.parametrize("name", NAMED)
def test_no_promise_is_broken_in_a_corner(name: str) -> None:
    """Machines are bought and given back there too, and every invariant holds."""
    scenario = NAMED[name]
    outcome = run(Order(seed=0, scenario=scenario, hours=scenario.hours))
    assert outcome.violations == (), outcome.violations[0].story
    assert min(outcome.scale_ups, outcome.scale_downs) > 0


@pytest.mark.parametrize("name", NAMED)
def test_a_named_world_could_stand_in_a_file(name: str, tmp_path: pathlib.Path) -> None:
    """Every object, event and setting of it is one that `growth simulate` accepts."""
    understood(msgspec.to_builtins(NAMED[name]), folder=tmp_path)
