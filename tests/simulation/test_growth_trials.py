"""Growth pools when the process dies at every write, and when two processes lead: what they promise holds.

The ledger that counts beside them shares nothing with them. `python -m bench crashes` and `bench limits` run the whole campaigns.
"""

import dataclasses

import pytest

from growth.controllers.growth import booking, releasing, reserving
from growth.planning import emptying
from growth.sim.trials.owning.crashes import Act, run
from growth.sim.trials.owning.limits import burst
from growth.sim.trials.owning.stage import ServerPool

WARM = ServerPool(nodes=4, types=(("c-4x-amd64-linux", 1, 2), ("C-8x-amd64-linux", 0, 3)))
BURST = ServerPool(nodes=7, types=(("c-4x-amd64-linux", 2, 4), ("c-8x-amd64-linux", 0, 5)))


@pytest.mark.parametrize("act", list(Act))
def test_the_process_may_die_after_any_write(act: Act) -> None:
    """Every fifth write of each act is its last, in turn: nothing is leaked, nothing bought twice, every pod runs."""
    calm = run(act, seed=1, pool=WARM)
    for number in range(1, calm.writes + 1, 5):
        assert run(act, seed=1, crash_after=number, pool=WARM).crashed == 1


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_bounds_hold_under_two_leaders(seed: int) -> None:
    """A burst far beyond them, deaths, freezes and lies of the network: never above `max` and the limit, never below `min`."""
    pool = dataclasses.replace(BURST, optimise="Continuous" if seed % 2 else "WhenEmpty")
    assert burst(seed, pods=60, pool=pool).most == 7


def test_a_leader_that_counts_no_reservations_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The books are what keeps two leaders within the bounds: without them the ledger complains."""
    monkeypatch.setattr(reserving, "book", lambda _pool, wanted, **_more: booking.Booked(tuple(wanted), (), {}))

    def bursts() -> None:  # not each of them makes the two meet
        for seed in (3, 4, 6, 8, 10):
            burst(seed, pods=60, two_leaders=True, pool=BURST)

    with pytest.raises(AssertionError, match="limit at revision"):
        bursts()


def test_a_leader_that_heeds_no_minimum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that `min` keeps is not taken down unseen."""
    monkeypatch.setattr(emptying, "_spare", lambda _pool, _members: {})
    monkeypatch.setattr(releasing, "released_of", lambda _pool, wanted, *_rest, **_more: tuple(wanted))
    with pytest.raises(AssertionError, match="min at revision"):
        run(Act.DOWN, seed=1, pool=WARM)
