"""Growth pools with `optimise: Continuous`: pods move to fewer or cheaper machines, within min, max and limits."""

import asyncio
from typing import Any

from growth.api import names
from growth.api.workloads import DEPLOYMENT
from tests.manifests import growth_pool
from tests.simulation.growing import Growing, growing

HALF_AN_HOUR = 1800


def continuous(*types: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return growth_pool("default", *types, **{"optimise": "Continuous", "scaleDownAfter": "1m", **spec})


async def scale(cluster: Growing, replicas: int, name: str = "web") -> None:
    await cluster.admin.patch(DEPLOYMENT, name, {"spec": {"replicas": replicas}}, namespace="default")


async def reasons_seen(cluster: Growing, seconds: int) -> set[str]:
    """Why NodeRemovalRequests were made within the time."""
    seen: set[str] = set()
    for _ in range(seconds):
        seen |= {each.spec.reason for each in await cluster.removals()}
        cluster.stage.check()
        await asyncio.sleep(1)
    return seen


async def fill_then_thin_out(cluster: Growing, pods: int, left: int) -> None:
    """Machines full of pods, of which few are left everywhere."""
    await cluster.deploy("web", pods)
    await cluster.running(pods)
    await scale(cluster, left)
    await cluster.running(left)


def test_pods_of_two_machines_are_brought_together() -> None:
    """The machine whose pods have room elsewhere goes by a NodeRemovalRequest with the reason Underutilized."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "CAX21", "max": 5}))
        await cluster.deploy("web", 6)
        await cluster.running(6)
        assert await cluster.types() == ["cax21", "cax21"]
        await scale(cluster, 3)
        seen = await reasons_seen(cluster, HALF_AN_HOUR)
        await cluster.running(3)
        assert await cluster.types() == ["cax21"]
        assert seen == {"Underutilized"}
        assert not await cluster.removals()
        (node,) = await cluster.nodes()
        assert not node.spec.taints

    growing(body)


def test_a_machine_too_large_is_replaced_by_a_cheaper_one() -> None:
    """What replaces it is asked for by a NodeRequest and up before the pods are asked to leave."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "cax11", "max": 5}, {"name": "cax31", "max": 1, "priority": 0}))
        await cluster.deploy("web", 7)
        await cluster.running(7)
        await scale(cluster, 1)
        least = 1
        for _ in range(HALF_AN_HOUR):
            ready = [each for each in await cluster.nodes() if each.is_ready]
            least = min(least, len(ready))
            await asyncio.sleep(1)
        await cluster.running(1)
        assert await cluster.types() == ["cax11"]
        assert least == 1
        assert any("Underutilized" in each for each in await cluster.told(names.DISRUPTION_TERMINATING))

    growing(body)


def test_when_empty_moves_no_pod() -> None:
    """The default leaves pods where they are."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "cax21", "max": 5}, optimise="WhenEmpty"))
        await fill_then_thin_out(cluster, 6, 3)
        seen = await reasons_seen(cluster, HALF_AN_HOUR)
        assert seen <= {"Empty"}
        assert not await cluster.told(names.DISRUPTION_TERMINATING)

    growing(body)


def test_the_minimum_of_a_type_stays() -> None:
    """Machines that `min` keeps are neither emptied nor marked for it, whatever could be saved."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "CAX21", "min": 2, "max": 5}))
        for name in ("left", "right"):  # they fill both machines, so that each gets one of the small pods
            await cluster.deploy(name, 1, cpu="3")
        await cluster.running(2)
        await cluster.deploy("small", 2, cpu="500m")
        await cluster.running(4)
        for name in ("left", "right"):
            await cluster.admin.delete(DEPLOYMENT, name, namespace="default")
        await cluster.running(2)
        assert len({each.spec.node_name for each in await cluster.pods()}) == 2
        for _ in range(HALF_AN_HOUR):
            assert not await cluster.removals()
            assert [each.spec.taints for each in await cluster.nodes()] == [(), ()]
            await asyncio.sleep(1)

    growing(body)


def test_what_replaces_stays_within_max_and_limits() -> None:
    """A machine is replaced only where its replacement may stand beside it: the old one counts until it is gone."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "cax11", "max": 5}, {"name": "cax31", "max": 1}, limits={"nodes": 1}))
        await cluster.deploy("web", 7)
        await cluster.running(7)
        await scale(cluster, 1)
        for _ in range(HALF_AN_HOUR):
            assert len(await cluster.claims()) <= 1
            await asyncio.sleep(1)
        assert await cluster.types() == ["cax31"]

    growing(body)


def test_a_preferred_type_is_not_given_up_for_a_cheaper_one() -> None:
    """Priority comes before price when machines are replaced too."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "cax11", "max": 5}, {"name": "cax31", "max": 1, "priority": 1}))
        await cluster.deploy("web", 1)
        await cluster.running(1)
        await asyncio.sleep(HALF_AN_HOUR)
        assert await cluster.types() == ["cax31"]

    growing(body)


def test_a_type_that_cannot_be_had_ends_the_move() -> None:
    """The mark goes off the node again, its pods stay, and nobody asks for the type before its time."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "cax11", "max": 5}, {"name": "cax31", "max": 1}))
        await cluster.deploy("web", 7)
        await cluster.running(7)
        await cluster.faults(noCapacity="cax11/*/*")
        await scale(cluster, 1)

        async def unmet() -> bool:
            return any(each.status.phase == "Unmet" for each in await cluster.requests())

        await cluster.until(unmet, seconds=HALF_AN_HOUR)
        await asyncio.sleep(60)
        assert await cluster.types() == ["cax31"]
        assert not (await cluster.nodes())[0].spec.taints
        await cluster.no_faults()

        async def replaced() -> bool:
            return await cluster.types() == ["cax11"]

        await cluster.until(replaced, seconds=2 * HALF_AN_HOUR)
        await cluster.running(1)

    growing(body)


def test_an_empty_node_on_its_way_out_takes_the_pods_before_another_is_bought() -> None:
    """Its scale-down ends: what is there already is not bought again."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "cax11", "max": 5}, {"name": "cax31", "max": 1}, scaleDownAfter="2m"))
        await cluster.deploy("web", 7)
        await cluster.running(7)
        await cluster.deploy("aside", 1, cpu="1900m")
        await cluster.running(8)
        assert await cluster.types() == ["cax11", "cax31"]
        small = {each.metadata.name for each in await cluster.claims() if "cax11" in each.metadata.labels.values()}
        await scale(cluster, 1)
        await asyncio.sleep(30)
        await scale(cluster, 0, "aside")
        await cluster.running(1)

        async def one_is_left() -> bool:
            return await cluster.types() == ["cax11"]

        await cluster.until(one_is_left, seconds=HALF_AN_HOUR)
        assert {each.metadata.name for each in await cluster.claims()} == small
        await cluster.running(1)
        assert await cluster.told(names.SCALE_DOWN_CANCELLED) != []

    growing(body)


def test_a_process_that_dies_in_a_move_leaves_no_mark_behind() -> None:
    """The next one takes the marks off the node and off what was asked for in its place; then the move is made anew."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(continuous({"name": "cax11", "max": 5}, {"name": "cax31", "max": 1}))
        await cluster.deploy("web", 7)
        await cluster.running(7)
        await cluster.faults(neverReady="cax11")
        await scale(cluster, 1)

        async def asked() -> bool:
            return any(names.REPLACES_ANNOTATION in each.metadata.annotations for each in await cluster.claims())

        await cluster.until(asked)
        (given_up,) = {each.metadata.annotations.get(names.GIVEN_UP_ANNOTATION) for each in await cluster.claims()} - {
            None
        }
        assert str(given_up).startswith("cax31/")
        process = cluster.replica.process
        assert process is not None
        process.crash()

        async def unmarked() -> bool:
            tainted = [each for each in await cluster.nodes() if each.is_ready and each.spec.taints]
            return not tainted and not await asked()

        await cluster.until(unmarked)
        await cluster.no_faults()

        async def replaced() -> bool:
            return await cluster.types() == ["cax11"] and not await cluster.removals()

        await cluster.until(replaced, seconds=2 * HALF_AN_HOUR)
        await cluster.running(1)

    growing(body)
