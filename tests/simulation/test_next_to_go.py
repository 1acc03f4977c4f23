"""The mark on nodes that are the next to go: when it is written, and that it never outlives its reason."""

import asyncio
from typing import Any

from growth.api import names
from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.controllers.disruption import Disruption
from growth.controllers.settings import ControllerSettings
from growth.kube.api import Api
from growth.kube.memory import MemoryApi
from tests.simulation.ending import add_owned
from tests.simulation.moving import ALL, LARGE, REQUIREMENTS, Recording, add_large, add_ready_pool, claims, tainted
from tests.simulation.owning import Stage, on_stage

MARK = {"key": names.LEAVING_SOON_TAINT, "effect": "PreferNoSchedule"}
ONE_AT_A_TIME = {**ALL, "budgets": [{"nodes": "1"}]}
MACHINE = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
CLOSED = {**ALL, "budgets": [{"nodes": "0"}]}
LARGE_ONLY = {"requirements": [*REQUIREMENTS, {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [LARGE]}]}


async def marked(stage: Stage) -> list[str]:
    listed = (await stage.admin.list(NODE)).items
    return sorted(
        each.metadata.name
        for each in listed
        if any(
            (taint.key, taint.effect) == (names.LEAVING_SOON_TAINT, "PreferNoSchedule") for taint in each.spec.taints
        )
    )


async def until_marked(stage: Stage) -> list[str]:
    for _ in range(60):
        await asyncio.sleep(1)
        if found := await marked(stage):
            return found
    raise AssertionError("nothing was marked within a minute")


async def three_large(stage: Stage, disruption: dict[str, object]) -> None:
    pool = await add_ready_pool(stage, disruption=disruption, template=LARGE_ONLY)
    for name in ("web-1", "web-2", "web-3"):
        await add_large(stage, name, pool=pool)


def test_the_next_to_go_are_marked_before_any_pod_leaves() -> None:
    """Three machines are to become one, one at a time: of the two that stay for now the one that follows is marked while
    the first still waits for its second look, and nothing else is.
    """

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        await three_large(stage, ONE_AT_A_TIME)
        await stage.start(Disruption(stage.env))
        return await until_marked(stage), await tainted(stage)

    found, gone = on_stage(body).value
    assert (len(found), gone) == (1, [])


def test_a_mark_that_nobody_wants_any_more_goes_after_a_minute() -> None:
    """Budgets close while others go: nobody knows when the turn of the rest comes. It is not taken off at once, for targets
    change with every pod.
    """

    async def body(stage: Stage) -> tuple[int, int, list[str]]:
        await three_large(stage, ONE_AT_A_TIME)
        await stage.start(Disruption(stage.env))
        await until_marked(stage)
        await stage.admin.patch(NODE_POOL, "default", {"spec": {"disruption": CLOSED}})
        await asyncio.sleep(45)
        soon = len(await marked(stage))
        await asyncio.sleep(45)
        return soon, len(await marked(stage)), sorted(await claims(stage))

    assert on_stage(body).value == (1, 0, ["web-1", "web-2", "web-3"])


def test_a_mark_stays_for_as_long_as_it_is_wanted() -> None:
    """The first of three cannot leave for minutes, and the one that follows it is marked all the while: once."""
    holder: list[Recording] = []

    def api(real: MemoryApi) -> Api:
        holder.append(Recording(real))
        return holder[0]

    async def body(stage: Stage) -> list[str]:
        await three_large(stage, ONE_AT_A_TIME)
        await stage.start(Disruption(stage.env))
        (found,) = await until_marked(stage)
        await asyncio.sleep(300)
        assert await marked(stage) == [found]
        return [each for each in holder[0].done if each.endswith(f"taint {found}")]

    assert len(on_stage(body, api=api).value) == 1


def test_a_taint_that_comes_while_the_mark_is_taken_off_stays() -> None:
    """The mark is the only taint that was read, so the whole list would go: whoever wrote meanwhile is not overwritten."""

    class Meanwhile(Recording):
        raced = False

        async def patch(self, kind: Kind[Any], name: str, patch: Any, **more: Any) -> Any:
            if kind.kind == "Node" and not self.raced:
                self.raced = True
                other = {"key": "maintenance", "effect": "NoExecute"}
                await super().patch(NODE, name, {"spec": {"taints": [MARK, other]}})
            return await super().patch(kind, name, patch, **more)

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_owned(stage, "web-1", pool=pool)
        await stage.set_taints("node-of-web-1", [MARK])
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        return [taint.key for taint in (await stage.admin.get(NODE, "node-of-web-1")).spec.taints]

    assert on_stage(body, api=Meanwhile).value == ["maintenance"]


def test_what_a_dead_process_marked_is_taken_off() -> None:
    """Whoever leads next finds it, and takes it off machines of ours alone."""

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_owned(stage, "web-1", pool=pool)
        await stage.set_taints("node-of-web-1", [MARK])
        await stage.join("somebodys", provider_id="other://1", taints=[MARK])
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        return await marked(stage)

    assert on_stage(body).value == ["somebodys"]


def test_whoever_takes_pods_of_a_move_is_not_marked() -> None:
    """An empty machine is used again for the pods of a large one, and waits for no turn though the move takes all of the budget;
    an older mark comes off at once. With it kube-scheduler would be expected to avoid the place that the move counts on.
    """

    async def body(stage: Stage) -> tuple[bool, list[list[str]]]:
        pool = await add_ready_pool(stage, disruption=ONE_AT_A_TIME)
        await add_large(stage, "web-1", pool=pool, cpu="3")
        await add_owned(stage, "idle", pool=pool)
        await stage.admin.patch(NODE, "node-of-idle", {"metadata": {"labels": MACHINE}})
        await stage.set_taints("node-of-idle", [MARK])
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(32)
        waiting = sorted(await claims(stage)) == ["idle", "web-1"]
        seen = [await marked(stage)]
        await asyncio.sleep(28)
        return waiting, [*seen, sorted(await claims(stage))]

    assert on_stage(body).value == (True, [[], ["idle"]])


def test_who_only_observes_marks_nothing() -> None:
    """It says what it would do, and writes no Node."""

    async def body(stage: Stage) -> list[str]:
        await three_large(stage, ONE_AT_A_TIME)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        return await marked(stage)

    assert on_stage(body, settings=ControllerSettings(observe=True)).value == []
