"""The whole autoscaler in the simulated cluster: it survives its own death at every write, and its limits hold.

These are slices; `python -m bench crashes` and `python -m bench limits` run the whole campaigns. Each promise is also
broken on purpose, so that the check which guards it is seen to fail.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from growth.api.clouds import CloudMachine, MachineNotFound
from growth.api.core import CONFIG_MAP
from growth.api.karpenter import NODE_POOL
from growth.controllers.provisioning import reserving
from growth.controllers.provisioning.booking import Booking
from growth.controllers.provisioning.purchases import Purchases
from growth.kube.errors import NotFound
from growth.kube.memory import MemoryApi
from growth.providers.kwok.provider import KwokProvider
from growth.sim.ledger import Caps
from growth.sim.trials.owning.crashes import Act, Ended, run
from growth.sim.trials.owning.limits import LIMIT, burst, prices

PODS = 60
WRITES = {Act.UP: 40, Act.DOWN: 30, Act.REPLACEMENT: 30, Act.DELETION: 50}
Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("act", list(Act))
def test_the_process_may_die_after_any_write(act: Act) -> None:
    """Every third write of each act is its last, in turn: nothing is leaked, nothing bought twice, every pod runs."""
    calm = run(act, seed=1)
    assert 10 < calm.writes <= WRITES[act]
    for number in range(1, calm.writes + 1, 3):
        assert run(act, seed=1, crash_after=number).crashed == 1


def test_equal_seeds_are_equal_runs() -> None:
    """A campaign's failure can be had again."""
    assert run(Act.UP, seed=5, crash_after=7).digest == run(Act.UP, seed=5, crash_after=7).digest


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_limit_of_nodes_holds_under_two_leaders(seed: int) -> None:
    """A burst far beyond the limit, deaths, freezes and lies of the network: never above it, and in the end at it."""
    assert burst(seed, pods=PODS).most == LIMIT


@pytest.mark.parametrize("seed", [1, 2])
def test_a_cap_of_machines_holds_under_two_leaders(seed: int) -> None:
    """Reserved names count; the cap is reached and never exceeded."""
    assert burst(seed, pods=PODS, limit=None, caps=Caps(max_nodes=4)).most == 4


@pytest.mark.parametrize("seed", [1, 2])
def test_a_cap_of_money_holds_under_two_leaders(seed: int) -> None:
    """What runs and what is promised never costs more an hour than was allowed."""
    allowed = 500_000_000
    found = burst(seed, pods=PODS, limit=None, caps=Caps(max_hourly=allowed, prices=prices()))
    assert 0 < found.most_hourly <= allowed


# Planted bugs. Each is one that somebody could make, and each is caught by the rule that is there for it.


def buys_without_reserving(patch: Patch) -> None:
    async def reserve_pool(_self: Any, _name: str, orders: Any) -> Booking:
        return Booking(tuple(orders), (), {})

    patch.setattr(reserving.Reserving, "_reserve_pool", reserve_pool)


def writes_pools_slowly(patch: Patch, *, minding_the_revision: bool = True) -> None:
    """Two leaders are then likely to have read the same pool before either writes it."""
    real = MemoryApi.patch

    async def slow(self: MemoryApi, kind: Any, name: str, *args: Any, **options: Any) -> Any:
        if kind.plural == NODE_POOL.plural:
            await asyncio.sleep(3.0)
            if not minding_the_revision:
                options.pop("revision", None)
        return await real(self, kind, name, *args, **options)

    patch.setattr(MemoryApi, "patch", slow)


def reserves_without_a_precondition(patch: Patch) -> None:
    writes_pools_slowly(patch, minding_the_revision=False)


def test_a_limit_holds_though_pools_are_written_slowly(monkeypatch: Patch) -> None:
    """What breaks it below is what the server is not asked to mind, and not how slow it is."""
    writes_pools_slowly(monkeypatch)
    _bursts(range(1, 13))


@pytest.mark.parametrize("bug", [buys_without_reserving, reserves_without_a_precondition])
def test_a_limit_that_is_not_reserved_is_exceeded(bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """Two leaders buy for the same pods, and the ledger sees it."""
    bug(monkeypatch)
    with pytest.raises(AssertionError, match="limit at revision"):
        _bursts(range(1, 13))


def _bursts(seeds: range) -> None:
    for seed in seeds:
        burst(seed, pods=PODS, two_leaders=True)


def test_a_cap_that_is_not_reserved_is_exceeded(monkeypatch: Patch) -> None:
    """The same for the caps of the cluster, in machines and in money."""

    async def reserve_caps(_self: Any, orders: Any, _pools: Any) -> Booking:
        return Booking(tuple(orders), (), {})

    monkeypatch.setattr(reserving.Reserving, "_reserve_caps", reserve_caps)
    monkeypatch.setattr(
        reserving.Reserving, "expected_refusals", lambda _self, orders, _pools: Booking(tuple(orders), (), {})
    )
    with pytest.raises(AssertionError, match="limit at revision"):
        burst(1, pods=PODS, limit=None, caps=Caps(max_nodes=4))
    with pytest.raises(AssertionError, match="money at revision"):
        burst(1, pods=PODS, limit=None, caps=Caps(max_hourly=500_000_000, prices=prices()))


def asks_the_cloud_anew_each_time(patch: Patch) -> None:
    real = KwokProvider.create

    async def create(self: KwokProvider, claim: Any) -> CloudMachine:
        with contextlib.suppress(NotFound):
            await self._api.delete(CONFIG_MAP, f"kwok-{claim.metadata.name}", namespace=self._namespace)
        return await real(self, claim)

    patch.setattr(KwokProvider, "create", create)


def lets_go_before_the_machine_is_gone(patch: Patch) -> None:
    async def delete(_self: KwokProvider, claim: Any) -> None:
        raise MachineNotFound(f"{claim.metadata.name} is said to be gone")

    patch.setattr(KwokProvider, "delete", delete)


def buys_too_little(patch: Patch) -> None:
    real = Purchases.orders

    async def fewer(self: Purchases, *args: Any) -> Any:
        return (await real(self, *args))[: 1 - len(self._env.state.claims.store)]

    patch.setattr(Purchases, "orders", fewer)


def everywhere(act: Act) -> list[Ended]:
    calm = run(act, seed=1)
    return [run(act, seed=1, crash_after=number) for number in range(1, calm.writes + 1)]


@pytest.mark.parametrize(
    ("bug", "act", "said"),
    [
        (asks_the_cloud_anew_each_time, Act.UP, "bought twice at revision"),
        (buys_too_little, Act.UP, "not settled"),
        (lets_go_before_the_machine_is_gone, Act.DOWN, "leaked at revision"),
        (lets_go_before_the_machine_is_gone, Act.DELETION, "leaked at revision"),
    ],
)
def test_a_bug_of_ownership_does_not_pass(
    bug: Callable[[Patch], None], act: Act, said: str, monkeypatch: Patch
) -> None:
    """Some crash, or none at all, brings it to light."""
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=re.escape(said)):
        everywhere(act)
