"""Moves with several machines survive the death of the process at every write; `python -m bench crashes` tries all."""

from typing import Any

import pytest

from growth.controllers.disruption.mending import Mending
from growth.sim.trials.owning.exchanges import Exchange, Exchanged, run


def everywhere(exchange: Exchange, *, every: int = 1) -> list[Exchanged]:
    """The exchange without a death, and then with one after each of its writes."""
    calm = run(exchange, seed=1)
    return [calm, *(run(exchange, seed=1, crash_after=number) for number in range(1, calm.writes + 1, every))]


@pytest.mark.parametrize("exchange", list(Exchange))
def test_the_process_may_die_after_any_write_of_an_exchange(exchange: Exchange) -> None:
    """Every third write is its last, in turn: no stray taint, no orphan, no lost pod, and nothing is bought twice."""
    calm, *others = everywhere(exchange, every=3)
    assert calm.together
    assert 30 < calm.writes <= 60
    assert {each.bought for each in (calm, *others)} == {exchange.machines + 2}


def test_who_mends_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anybody who looks for what was left behind, some death leaves marks or machines there."""

    async def mend(self: Mending) -> list[Any]:
        del self
        return []

    monkeypatch.setattr(Mending, "mend", mend)
    with pytest.raises(AssertionError, match=r"not replaced|not settled|left"):
        everywhere(Exchange.PAIR)
