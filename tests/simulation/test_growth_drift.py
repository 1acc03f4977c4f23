"""Machines of growth pools that are no longer what their pool asks for are replaced, within budgets, minima and maxima."""

import asyncio
from typing import Any

import pytest

from growth.api import names
from growth.api.conditions import find, is_true
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.kube.store import Change
from tests.manifests import growth_pool
from tests.simulation.growing import Growing, growing

ONE_AT_A_TIME = {"budgets": [{"nodes": "1"}]}
HALF_AN_HOUR = 1800


def pool_body(*types: Json, **spec: Any) -> Json:
    return growth_pool("default", *(types or ({"name": "cax11", "min": 2, "max": 10},)), **spec)


async def change_template(cluster: Growing, team: str = "b") -> None:
    await cluster.admin.patch(GROWTH_POOL, "default", {"spec": {"template": {"labels": {"team": team}}}})


async def ready(cluster: Growing) -> int:
    return sum(each.is_ready for each in await cluster.nodes())


async def teams(cluster: Growing) -> list[str]:
    return sorted(each.metadata.labels.get("team", "") for each in await cluster.nodes())


async def started(cluster: Growing, machines: int) -> None:
    """So many machines with one pod each."""
    await cluster.deploy("web", machines, cpu="1500m")
    await cluster.running(machines)
    assert len(await cluster.nodes()) == machines


def test_a_changed_template_replaces_every_machine() -> None:
    """Five with `min: 2` and a budget of one: all are replaced by removals of the reason Drifted, one at a time."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body(disruption=ONE_AT_A_TIME))
        await started(cluster, 5)
        before = {each.metadata.uid for each in await cluster.claims()}
        await change_template(cluster)
        least, reasons, most = 5, set(), 0
        for _ in range(HALF_AN_HOUR):
            await asyncio.sleep(1)
            least = min(least, await ready(cluster))
            removals = await cluster.removals()
            reasons |= {each.spec.reason for each in removals}
            most = max(most, len(removals))
            if {each.metadata.uid for each in await cluster.claims()}.isdisjoint(before) and not removals:
                break
        assert await teams(cluster) == ["b"] * 5
        assert reasons == {"Drifted"}
        assert most == 1
        assert least >= 4
        await cluster.running(5)
        await asyncio.sleep(600)
        assert await teams(cluster) == ["b"] * 5

    growing(body)
