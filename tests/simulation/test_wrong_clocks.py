"""How wrong the clocks of a faulty world may be."""

import collections

import pytest

from growth.sim.ports import SimClock
from growth.sim.runs import run
from growth.sim.scenario.generate import generate
from growth.sim.scenario.model import Order


def test_jumps_of_one_clock_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often they come, no clock is wrong by more than the ten minutes that are said of the fault."""
    wrong: collections.Counter[SimClock] = collections.Counter()
    most: list[float] = []
    jump = SimClock.jump

    def recorded(clock: SimClock, seconds: float) -> None:
        jump(clock, seconds)
        wrong[clock] += int(seconds)
        most.append(max(map(abs, wrong.values())))

    monkeypatch.setattr(SimClock, "jump", recorded)
    run(Order(seed=0, scenario=generate(0, hours=0.2), hours=0.2, faults="clock-jump=600"))
    assert len(most) > 4
    assert max(most) == 600
