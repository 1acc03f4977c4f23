"""The condition Drifted: who gets it, with which reason, who loses it again, and how little is written."""

import asyncio
import dataclasses
import functools
from typing import Any

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodePool
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.cluster import hashes
from growth.controllers.drifting import Drifting
from growth.controllers.pools import Pools
from tests.simulation.clouds import TYPE
from tests.simulation.ending import add_owned, start_process
from tests.simulation.owning import LateApi, Stage, on_stage, told

OTHER = {"spec": {"template": {"metadata": {"labels": {"team": "b"}}}}}
ZONE_B = [{"key": names.ZONE_LABEL, "operator": "In", "values": ["test-zone-b"]}]


async def fleet(stage: Stage, number: int = 2, **spec: Any) -> NodePool:
    """A pool with machines that were bought from it as it is."""
    pool = await stage.add_pool(metadata={"labels": {"team": "a"}}, **spec)
    for each in range(number):
        await add_owned(stage, f"web-{each}", pool=pool)
        await stage.admin.patch(NODE_CLAIM, f"web-{each}", {"metadata": {"annotations": hashes.stamp(pool)}})
    return pool


async def drift(stage: Stage) -> dict[str, str]:
    """The condition of each claim that has it."""
    listed = (await stage.admin.list(NODE_CLAIM)).items
    return {each.metadata.name: told(each)[names.DRIFTED] for each in listed if names.DRIFTED in told(each)}


def test_a_changed_template_marks_its_machines_and_a_change_back_unmarks_them() -> None:
    """NodePoolDrifted, at once; what was bought from the new template is none of it."""

    async def body(stage: Stage) -> list[dict[str, str]]:
        await fleet(stage)
        await stage.start(Drifting(stage.env))
        await asyncio.sleep(60)
        seen = [await drift(stage)]
        pool = await stage.admin.patch(NODE_POOL, "default", OTHER)
        await add_owned(stage, "new", pool=pool)
        await stage.admin.patch(NODE_CLAIM, "new", {"metadata": {"annotations": hashes.stamp(pool)}})
        await asyncio.sleep(2)
        seen.append(await drift(stage))
        await stage.admin.patch(NODE_POOL, "default", {"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}})
        await asyncio.sleep(2)
        return [*seen, await drift(stage)]

    marked = dict.fromkeys(("web-0", "web-1"), "True NodePoolDrifted")
    assert on_stage(body).value == [{}, marked, {"new": "True NodePoolDrifted"}]


def test_a_machine_that_the_requirements_exclude_is_marked() -> None:
    """RequirementsDrifted, by the labels of the claim; requirements that it meets change nothing."""

    async def body(stage: Stage) -> list[dict[str, str]]:
        await fleet(stage)
        await stage.start(Drifting(stage.env))
        either = [{"key": names.ZONE_LABEL, "operator": "In", "values": ["test-zone-a", "test-zone-b"]}]
        seen = []
        for wanted in (either, ZONE_B, either):
            await stage.admin.patch(NODE_POOL, "default", {"spec": {"template": {"spec": {"requirements": wanted}}}})
            await asyncio.sleep(2)
            seen.append(await drift(stage))
        return seen

    marked = dict.fromkeys(("web-0", "web-1"), "True RequirementsDrifted")
    assert on_stage(body).value == [{}, marked, {}]


def test_limits_budgets_and_weight_are_no_drift() -> None:
    """What concerns no machine marks none."""

    async def body(stage: Stage) -> dict[str, str]:
        await fleet(stage)
        await stage.start(Drifting(stage.env))
        spec = {"limits": {"nodes": "1"}, "weight": 7, "disruption": {"budgets": [{"nodes": "3"}]}}
        await stage.admin.patch(NODE_POOL, "default", {"spec": spec})
        await asyncio.sleep(600)
        return await drift(stage)

    assert on_stage(body).value == {}


def test_a_type_that_is_gone_marks_its_machines_within_minutes() -> None:
    """InstanceTypeNotFound, for machines older than an hour; a catalogue that nobody has read says nothing."""

    async def body(stage: Stage) -> list[dict[str, str]]:
        await fleet(stage)
        await stage.start(Drifting(stage.env))
        sold = stage.cloud.sold
        stage.env.state.catalogue = dataclasses.replace(
            sold, types=tuple(each for each in sold.types if each.name != TYPE)
        )
        await asyncio.sleep(3000)
        seen = [await drift(stage)]
        await asyncio.sleep(1200)
        seen.append(await drift(stage))
        stage.env.state.catalogue = sold
        await asyncio.sleep(310)
        return [*seen, await drift(stage)]

    marked = dict.fromkeys(("web-0", "web-1"), "True InstanceTypeNotFound")
    assert on_stage(body).value == [{}, marked, {}]


def test_the_clouds_own_reason_is_passed_on() -> None:
    """The cloud is asked once in five minutes a machine, and again when the node class changes."""

    async def body(stage: Stage) -> list[Any]:
        await stage.add_class()
        await fleet(stage)
        await stage.start(Drifting(stage.env))
        await asyncio.sleep(100)
        stage.cloud.drift["web-1"] = "ImageDrifted"
        seen: list[Any] = [await drift(stage)]
        await asyncio.sleep(210)
        seen += [await drift(stage), stage.cloud.calls["is_drifted"]]
        stage.cloud.drift.clear()
        await stage.admin.patch(KWOK_NODE_CLASS, "default", {"spec": {"nodeRegistrationDelay": "1s"}})
        await asyncio.sleep(2)
        return [*seen, await drift(stage), stage.cloud.calls["is_drifted"]]

    assert on_stage(body).value == [{}, {"web-1": "True ImageDrifted"}, 4, {}, 6]


def test_the_clouds_word_is_the_last() -> None:
    """A machine of another template has drifted for that, whatever its cloud says; and the cloud is not asked for it."""

    async def body(stage: Stage) -> tuple[dict[str, str], int]:
        await stage.add_class()
        await fleet(stage)
        stage.cloud.drift["web-1"] = "ImageDrifted"
        await stage.admin.patch(NODE_POOL, "default", OTHER)
        await stage.start(Drifting(stage.env))
        await asyncio.sleep(60)
        return await drift(stage), stage.cloud.calls["is_drifted"]

    assert on_stage(body).value == (dict.fromkeys(("web-0", "web-1"), "True NodePoolDrifted"), 0)


async def add_stamped_by_others(stage: Stage) -> None:
    """A pool and a claim of it, with hashes that somebody else has made and that differ."""
    await stage.add_class()
    theirs = {names.NODE_POOL_HASH_ANNOTATION: "123", names.NODE_POOL_HASH_VERSION_ANNOTATION: "v3"}
    pool = await stage.add_pool(annotations={**theirs, names.NODE_POOL_HASH_ANNOTATION: "456"})
    await add_owned(stage, pool=pool)
    await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"annotations": theirs}})


def test_a_hash_of_another_version_is_stamped_anew_and_no_drift() -> None:
    """Karpenter's hashes, or ours of another release, cannot be compared: nothing is marked for them, ever."""

    async def body(stage: Stage) -> dict[str, str]:
        await add_stamped_by_others(stage)
        await stage.start(Drifting(stage.env), Pools(stage.env))
        await asyncio.sleep(600)
        assert (await stage.claim()).metadata.annotations == hashes.stamp(await stage.pool())
        return await drift(stage)

    assert on_stage(body).value == {}


def test_what_had_drifted_before_a_takeover_stays_marked() -> None:
    """Its old hash is kept under the new version, so that it is never the pool's."""

    async def body(stage: Stage) -> dict[str, str]:
        await add_stamped_by_others(stage)
        claim = await stage.admin.get(NODE_CLAIM.raw, "web-1")
        now = "2030-01-07T08:00:00Z"
        marked = {"type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "message": ""}
        conditions = [*claim["status"]["conditions"], {**marked, "lastTransitionTime": now}]
        await stage.admin.patch(NODE_CLAIM, "web-1", {"status": {"conditions": conditions}}, subresource="status")
        await stage.start(Pools(stage.env))
        await asyncio.sleep(30)
        controller = Drifting(stage.env)
        stage.tasks.append(asyncio.create_task(controller.run()))
        await asyncio.sleep(600)
        return await drift(stage)

    assert on_stage(body).value == {"web-1": "True NodePoolDrifted"}


def test_claims_without_a_machine_or_a_pool_are_never_marked() -> None:
    """There is nothing that could differ, or nothing to differ from."""

    async def body(stage: Stage) -> dict[str, str]:
        pool = await fleet(stage, 0)
        await stage.add_claim("coming", pool=pool, annotations={**hashes.stamp(pool)})
        await add_owned(stage, "by-hand")
        await stage.start(Drifting(stage.env))
        await stage.admin.patch(NODE_POOL, "default", OTHER)
        await asyncio.sleep(600)
        return await drift(stage)

    assert on_stage(body).value == {}


def test_an_idle_fleet_is_not_written_to_and_a_mark_is_one_write() -> None:
    """Hours of looking write nothing; two machines that drift are two writes."""

    async def body(stage: Stage) -> list[int]:
        await fleet(stage)
        await stage.start(Drifting(stage.env))
        await asyncio.sleep(6 * 3600)
        seen = [stage.writes()]
        await stage.admin.patch(NODE_POOL, "default", OTHER)
        await asyncio.sleep(6 * 3600)
        return [*seen, stage.writes()]

    assert on_stage(body).value == [0, 2]


def test_a_machine_is_not_marked_because_the_cache_is_late() -> None:
    """A claim of a newer template than the cached pool is none that drifted."""

    async def body(stage: Stage) -> set[str]:
        await fleet(stage, 0)
        await stage.start(Drifting(stage.env))
        await asyncio.sleep(30)
        pool = await stage.admin.patch(NODE_POOL, "default", OTHER)
        await add_owned(stage, "new", pool=pool)
        await stage.admin.patch(NODE_CLAIM, "new", {"metadata": {"annotations": hashes.stamp(pool)}})
        seen: set[str] = set()
        for _ in range(300):
            await asyncio.sleep(0.1)
            seen |= set(await drift(stage))
        return seen

    assert on_stage(body, api=lambda api: LateApi(api, NODE_POOL)).value == set()


def test_a_crash_after_any_write_marks_all_the_same() -> None:
    """Whatever was written last, the next process marks the rest, and nothing twice."""

    async def body(stage: Stage, crash_after: int) -> int:
        await fleet(stage, 3)
        first = start_process(stage, Drifting, crash_after=crash_after)
        await asyncio.sleep(30)
        await stage.admin.patch(NODE_POOL, "default", OTHER)
        await asyncio.sleep(60)
        if crash_after:
            assert first.dead
            start_process(stage, Drifting, name="second")
        await asyncio.sleep(60)
        assert len(await drift(stage)) == 3
        return stage.writes()

    assert on_stage(functools.partial(body, crash_after=0)).value == 3
    for n in range(1, 4):
        assert on_stage(functools.partial(body, crash_after=n)).value == 3, n
