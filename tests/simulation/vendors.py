"""Builders for tests of whole worlds whose machines a vendor's API sells."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from growth.api.kinds import Json
from growth.providers.catalogues import builtin
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.replica import settings_of
from growth.sim.runs import run
from growth.sim.scenario.generate import small
from growth.sim.scenario.model import Order, Scenario
from growth.sim.scenario.vendors import told_for
from growth.sim.seams import Step
from growth.sim.world.tally import Tally
from growth.sim.world.world import World, WorldSettings


def order(provider: str, seed: int, **more: Any) -> Order:
    """A scale-up and a scale-down."""
    scenario = told_for(provider, small(seed))
    return Order(seed=seed, scenario=scenario, hours=scenario.hours, **more)


def in_world(provider: str, body: Callable[[World], Awaitable[None]], *objects: Json, **settings: str) -> None:
    """One autoscaler with these settings, in a world that begins with these objects."""
    in_world_with(WorldSettings(), provider, body, *objects, **settings)


def in_world_with(
    base: WorldSettings, provider: str, body: Callable[[World], Awaitable[None]], *objects: Json, **settings: str
) -> None:
    """The same in a world that is set up in another way."""

    async def main(kernel: Kernel) -> None:
        growth = settings_of(provider=provider, kwokCatalogue=provider, **settings)
        sold = builtin(provider)
        world = World(kernel, dataclasses.replace(base, growth=growth, catalogue=sold, replicas=("growth-a",)))
        await world.begin()
        await world.create(told_for(provider, Scenario(objects=objects)).objects)
        world.start()
        await body(world)
        world.check()

    sim.run(main, seed=1)


def all_that_is_told(what: Order, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Every state of every object of the cluster (events, conditions, decisions) during a run, and the logs."""
    seen: list[str] = []
    real = Tally.__call__

    def looked_at(self: Tally, step: Step) -> None:
        seen.append(str(step.last))
        real(self, step)

    monkeypatch.setattr(Tally, "__call__", looked_at)
    run(what)
    told = capsys.readouterr()
    seen += [told.out, told.err]
    assert any("Event" in text for text in seen)  # or this would say nothing
    return seen
