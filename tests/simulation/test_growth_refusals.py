"""What the cloud refuses in one location is left out there, and nowhere else."""

import asyncio
import datetime as dt
from typing import Any

import pytest

from bench.stockouts import LIMIT, waited
from growth.api import names
from growth.api.growthpools import GROWTH_POOL, NODE_REQUEST, GrowthPool
from growth.api.pods import POD
from growth.cluster.node_requests import refused_offerings, unmet_everywhere_until, without_unmet
from growth.providers.catalogues import builtin
from tests.manifests import growth_pool
from tests.simulation.growing import Growing, growing

SMALL = growth_pool("default", {"name": "cax11", "max": 10})
HERE = {names.ZONE_LABEL: "fsn1"}


async def add_pod(cluster: Growing, name: str, **spec: Any) -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    await cluster.admin.create(
        POD, {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}, namespace="default"
    )


async def pool_of(cluster: Growing) -> GrowthPool:
    found: GrowthPool = await cluster.admin.get(GROWTH_POOL, "default")
    return found


async def node_of(cluster: Growing, name: str) -> str:
    return str((await cluster.admin.get(POD, name, namespace="default")).spec.node_name)


def test_a_stock_out_in_one_location_bars_no_other() -> None:
    """A pod that is pinned to the location waits; one that is not gets a machine of the type elsewhere at once."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(noCapacity="cax11/fsn1/*")
        await add_pod(cluster, "pinned", nodeSelector=HERE)
        await asyncio.sleep(60)
        status = (await pool_of(cluster)).status
        assert [(each.type, each.location, each.capacity_type) for each in status.unmet_offerings] == [
            ("cax11", "fsn1", "")
        ]
        assert [each.unmet_until for each in status.server_types] == [None]
        assert await cluster.requests() == []
        assert await cluster.claims() == []
        await add_pod(cluster, "free")

        async def free_runs() -> bool:
            return bool(await node_of(cluster, "free"))

        await cluster.until(free_runs, seconds=30)
        (claim,) = await cluster.claims()
        assert claim.metadata.labels[names.ZONE_LABEL] != "fsn1"
        assert await node_of(cluster, "pinned") == ""

    growing(body)


@pytest.mark.parametrize("seed", range(5000, 5004))
def test_a_pod_that_may_be_anywhere_waits_no_longer_for_a_stock_out_of_another(seed: int) -> None:
    """At most 1.2 times as long as in the same world without the pinned pod and without the stock-out."""
    assert waited(seed, pinned=True) <= LIMIT * waited(seed, pinned=False)


def test_a_location_is_asked_again_when_its_time_is_over() -> None:
    """The pods that are pinned there are marked by then; one of them is planned as a probe, and brings back the others."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(noCapacity="cax11/fsn1/*")
        for number in range(4):
            await add_pod(cluster, f"pinned-{number}", nodeSelector=HERE)

        async def all_are_marked() -> bool:
            return all(names.BACK_OFF_ANNOTATION in each.metadata.annotations for each in await cluster.pods())

        await cluster.until(all_are_marked, seconds=7200)
        asked = len(await cluster.told(names.UNMET))
        await asyncio.sleep(1500)
        probed = len(await cluster.told(names.UNMET)) - asked
        assert 1 <= probed <= 12  # one probe a TTL, told on request and pool
        await cluster.no_faults()
        await cluster.running(4, seconds=1200)
        assert (await pool_of(cluster)).status.unmet_offerings == ()

    growing(body)


def test_what_was_refused_everywhere_one_by_one_is_unmet() -> None:
    """Pods that are pinned to one location each: the type is unmet when the last location has refused it, and not before."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(noCapacity="cax11/*/*")
        zones = sorted(
            {each.zone for kind in builtin("hetzner").types if kind.name == "cax11" for each in kind.offerings}
        )
        for number, zone in enumerate(zones, 1):
            await add_pod(cluster, f"pinned-{zone}", nodeSelector={names.ZONE_LABEL: zone})
            await asyncio.sleep(30)
            pool = await pool_of(cluster)
            assert [each.location for each in pool.status.unmet_offerings] == zones[:number]
            (line,) = pool.status.server_types
            assert (line.unmet_until is not None) == (number == len(zones))
            assert {each.status.phase for each in await cluster.requests()} == (
                {"Unmet"} if line.unmet_until else set()
            )
        assert line.unmet_until == min(each.until for each in pool.status.unmet_offerings)

    growing(body)


@pytest.mark.parametrize("write", range(1, 31))
def test_a_process_that_dies_while_it_tells_of_a_refusal_bars_nothing_more(write: int) -> None:
    """After any of its writes: the location is left out, no claim and no request stay, and others get their machines."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(noCapacity="cax11/fsn1/*")
        await asyncio.sleep(20)
        cluster.replica.crash_after_write(write)
        await add_pod(cluster, "pinned", nodeSelector=HERE)
        await asyncio.sleep(90)
        assert await cluster.requests() == []
        assert await cluster.claims() == []
        assert [each.location for each in (await pool_of(cluster)).status.unmet_offerings] == ["fsn1"]
        await add_pod(cluster, "free")

        async def free_runs() -> bool:
            return bool(await node_of(cluster, "free"))

        await cluster.until(free_runs, seconds=60)

    growing(body)


def test_a_request_for_what_was_refused_a_moment_ago_asks_for_nothing() -> None:
    """It allows only the location that the pool has on its list: it ends without a claim, and says so."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(noCapacity="cax11/fsn1/*")
        await add_pod(cluster, "pinned", nodeSelector=HERE)
        await asyncio.sleep(60)
        told = len(await cluster.told(names.INSUFFICIENT_CAPACITY_ERROR))
        here = {"key": names.ZONE_LABEL, "operator": "In", "values": ["fsn1"]}
        spec = {"targetOffering": "hetzner-cax11", "pool": "default", "requirements": [here]}
        await cluster.admin.create(NODE_REQUEST, {"metadata": {"name": "by-hand"}, "spec": spec})
        await asyncio.sleep(60)
        assert await cluster.requests() == []
        assert len(await cluster.told(names.INSUFFICIENT_CAPACITY_ERROR)) == told == 1
        assert any("refused it a moment ago" in each for each in await cluster.told(names.UNMET))

    growing(body)


def test_one_capacity_type_that_is_refused_bars_no_other() -> None:
    """Where a location sells the type on several terms, an entry names the one that was refused."""
    kind = next(each for each in builtin("kwok").types if len({one.capacity_type for one in each.offerings}) > 1)
    spot = [each for each in kind.offerings if each.capacity_type == "spot"]
    then = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    told = tuple(refused_offerings(kind, spot, then))
    assert {each.capacity_type for each in told} == {"spot"}
    left = {each.capacity_type for each in without_unmet(kind, told).offerings if each.available}
    assert left == {each.capacity_type for each in kind.offerings} - {"spot"}
    assert unmet_everywhere_until(kind, told) is None
    assert {each.capacity_type for each in refused_offerings(kind, kind.offerings, then)} == {""}
