"""The steps of growth pools that have no test elsewhere; docs/growth-pools.md lists which test each step has."""

import asyncio
import pathlib
import re

from growth.api import names
from growth.api.decisions import DECISION
from growth.api.pods import POD
from growth.api.workloads import DEPLOYMENT
from growth.controllers.growth.solutions import Solution, solution_of
from tests.manifests import growth_pool, pod
from tests.simulation.growing import Growing, growing

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "growth-pools.md"


def test_every_step_names_a_test_that_exists() -> None:
    """The table is not a wish."""
    rows = re.findall(r"`(test_growth_\w+\.py)::(test_\w+)`", PAGE.read_text())
    assert len(rows) >= 18
    for file, name in rows:
        assert f"def {name}(" in (HERE / file).read_text(), name


def test_a_request_on_its_way_is_room() -> None:
    """Pods that come while machines are under way and fit there are no reason for another."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax31", "max": 5}))
        await cluster.faults(neverRegister="*")
        await cluster.deploy("first", 1)
        await asyncio.sleep(20)
        assert [each.status.phase for each in await cluster.requests()] == ["Provisioning"]
        await cluster.deploy("second", 3)
        await asyncio.sleep(60)
        assert len(await cluster.requests()) == 1

    growing(body)


def test_each_solution_does_what_it_says() -> None:
    """All placed: a request for each machine. No demands: nothing. Incomplete: requests where possible, and events."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}))
        await asyncio.sleep(60)
        assert await cluster.requests() == []
        await cluster.admin.create(POD, pod("small", cpu="1"), namespace="default")
        await cluster.running(1)
        assert len(await cluster.requests()) == 1
        assert await cluster.told(names.FAILED_SCHEDULING) == []
        await cluster.admin.create(POD, pod("other", cpu="1500m"), namespace="default")
        await cluster.admin.create(POD, pod("giant", cpu="64"), namespace="default")
        await asyncio.sleep(60)
        assert len(await cluster.requests()) == 2
        (said,) = set(await cluster.told(names.FAILED_SCHEDULING))
        assert "growth.dev/default" in said
        summaries = [each.spec.summary for each in (await cluster.admin.list(DECISION)).items]
        assert any(str(Solution.ALL_PLACED) in each for each in summaries)
        assert any(str(Solution.INCOMPLETE_PLACEMENT) in each for each in summaries)
        assert solution_of(None) is Solution.NO_DEMANDS

    growing(body)


def test_requests_are_deleted_after_their_times() -> None:
    """`Ready` after readyTTL, `Unmet` after unmetTTL; the machine of the former stays."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, {"name": "cax31", "min": 1, "max": 1}))
        await cluster.faults(noCapacity="cax11/*/*")
        await asyncio.sleep(30)
        await cluster.deploy("web", 1, nodeSelector={names.INSTANCE_TYPE_LABEL: "cax11"})

        async def phases(*wanted: str) -> bool:
            return sorted(each.status.phase for each in await cluster.requests()) == sorted(wanted)

        await cluster.until(lambda: phases("Ready", "Unmet"))
        await cluster.admin.delete(DEPLOYMENT, "web", namespace="default")
        await asyncio.sleep(100)
        assert await phases("Ready", "Unmet")
        await cluster.until(lambda: phases("Ready"), seconds=150)
        await cluster.until(phases, seconds=300)
        assert await cluster.types() == ["cax31"]

    growing(body, unmet_ttl=200.0, ready_ttl=400.0)


def test_an_empty_node_is_marked_and_a_busy_one_is_not() -> None:
    """The taint keeps the scheduler away, the annotation says until when; DaemonSet pods do not count as load."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, scaleDownAfter="10m"))
        await cluster.deploy("stays", 1, cpu="1500m")
        await cluster.deploy("goes", 1, cpu="1600m")
        await cluster.running(2)
        await cluster.admin.delete(DEPLOYMENT, "goes", namespace="default")
        await cluster.running(1)
        await asyncio.sleep(60)
        nodes = await cluster.nodes()
        marked = [each for each in nodes if names.SCALE_DOWN_AT_ANNOTATION in each.metadata.annotations]
        assert (len(nodes), len(marked)) == (2, 1)
        assert [(each.key, each.effect) for each in marked[0].spec.taints] == [(names.SCALE_DOWN_TAINT, "NoSchedule")]
        assert await cluster.removals() == []

    growing(body)


def test_a_machine_that_does_not_go_is_asked_for_again() -> None:
    """Accepted and never done: asked again after removalRetryAfter, and given up after so many times."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, scaleDownAfter="5s"))
        await cluster.deploy("web", 1)
        await cluster.running(1)
        await cluster.faults(stuckDelete="*")
        await cluster.admin.delete(DEPLOYMENT, "web", namespace="default")

        async def asked(times: int) -> bool:
            return [each.status.removal_attempt for each in await cluster.removals()] == [times]

        await cluster.until(lambda: asked(1))
        await asyncio.sleep(60)
        assert await asked(1)
        await cluster.until(lambda: asked(2), seconds=90)

        async def failed() -> bool:
            return [each.status.phase for each in await cluster.removals()] == ["RemovalFailed"]

        await cluster.until(failed, seconds=600)
        assert await asked(5)

    growing(body)
