"""Ends survive crashes and bad networks: nothing is leaked, nothing that runs pods is lost."""

import asyncio
import functools

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers.collection import Collection
from growth.controllers.disruption import Disruption
from growth.controllers.settings import ControllerSettings
from growth.controllers.termination import Termination
from growth.kube.api import Api
from growth.planning.draining import DrainStep
from growth.sim.network import Faults
from growth.sim.process import Fate
from tests.simulation.ending import Refusing, add_owned, add_pod, left, start_kubelets, start_process
from tests.simulation.owning import Stage, on_stage

QUICK = ControllerSettings(collection_period=20.0, disruption_poll=5.0, nomination=5.0)
ALL = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}

BAD = Faults(
    conflict=0.05,
    throttled=0.03,
    server_error=0.05,
    unreachable=0.03,
    lost_answer=0.03,
    broken_answer=0.05,
    watch_delay=(0.0, 2.0),
    watch_cut_seconds=30.0,
    watch_gone=0.3,
)


def audit(stage: Stage) -> list[str]:
    """Notes every machine that goes while a pod runs on it."""
    harmed: list[str] = []
    real = stage.cloud.delete

    async def delete(claim: NodeClaim) -> None:
        there = [pod for pod in (await stage.admin.list(POD)).items if pod.metadata.deletion_timestamp is None]
        harmed.extend(pod.metadata.name for pod in there if pod.spec.node_name == f"node-of-{claim.metadata.name}")
        await real(claim)

    stage.cloud.delete = delete  # type: ignore[method-assign]
    return harmed


async def scene(stage: Stage, *, slow: bool = False) -> list[str]:
    """Three machines of a pool, two of them with pods, which end outside of the process; the pods that were harmed."""
    pool = await stage.add_pool(disruption={**ALL, "consolidationPolicy": "WhenEmpty"})
    for number in range(3):
        await add_owned(stage, f"web-{number}", pool=pool)
    annotation = {names.DO_NOT_DISRUPT_ANNOTATION: "30s"} if slow else {}
    await add_pod(stage, "p-1", node="node-of-web-1", annotations=annotation)
    await add_pod(stage, "p-2", node="node-of-web-2", owner="DaemonSet")
    start_kubelets(stage)
    return audit(stage)


async def happens(stage: Stage, cause: str) -> tuple[int, int, int]:
    """What ends machines of the scene; how many claims, Nodes and machines must be left."""
    match cause:
        case "pool":
            await stage.admin.delete(NODE_POOL, "default")
        case "nodes":
            for number in range(3):
                await stage.admin.delete(NODE, f"node-of-web-{number}")
        case _:  # scale-down: two of the three are empty
            return (1, 1, 1)
    return (0, 0, 0)


async def crash_and_go_on(stage: Stage, cause: str, writes: int) -> bool:
    """Whether there was a write so late; afterwards everything must be as if nothing had happened."""
    harmed = await scene(stage)
    first = start_process(stage, Termination, Disruption, Collection, crash_after=writes)
    await asyncio.sleep(2)
    expected = await happens(stage, cause)
    await asyncio.sleep(90)
    crashed = first.fate is Fate.CRASHED
    if crashed:
        start_process(stage, Termination, Disruption, Collection, name="again")
        await asyncio.sleep(120)
    assert await left(stage) == expected, f"after write {writes} of {cause}"
    assert not harmed, f"after write {writes} of {cause}"
    for node in (await stage.admin.list(NODE)).items:
        assert not [each.key for each in node.spec.taints if each.key == names.DISRUPTED_TAINT]
    return crashed


@pytest.mark.parametrize("cause", ["pool", "nodes", "scale-down"])
def test_a_crash_after_any_write_leaves_nothing_behind(cause: str) -> None:
    """The process is stopped after each of its writes in turn and started again: the end is the same."""
    writes = 1
    while on_stage(functools.partial(crash_and_go_on, cause=cause, writes=writes), settings=QUICK).value:
        writes += 1
    assert writes > 10, "there were writes to crash after"


@pytest.mark.parametrize("lost", [False, True], ids=["refused", "answer lost"])
@pytest.mark.parametrize("cause", ["pool", "nodes", "scale-down"])
def test_any_one_write_may_fail(cause: str, *, lost: bool) -> None:
    """Each write in turn meets a conflict, or its answer is lost: somebody looks again, and the end is the same."""

    async def body(stage: Stage, number: int) -> bool:
        harmed = await scene(stage)
        failing: list[Refusing] = []

        def through(api: Api) -> Api:
            failing.append(Refusing(api, number, lost=lost))
            return failing[0]

        start_process(stage, Termination, Disruption, Collection, through=through)
        await asyncio.sleep(2)
        expected = await happens(stage, cause)
        await asyncio.sleep(300)
        assert await left(stage) == expected, failing[0].refused
        assert not harmed, failing[0].refused
        return bool(failing[0].refused)

    number = 1
    while on_stage(functools.partial(body, number=number), settings=QUICK).value:
        number += 1
    assert number > 10, "there were writes that could fail"


@pytest.mark.parametrize("seed", range(8))
def test_a_bad_network_delays_and_changes_nothing(seed: int) -> None:
    """Conflicts, refusals, lost answers and late watches: pods leave in order, and all that was deleted is gone."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        harmed = await scene(stage, slow=True)
        start_process(stage, Termination, Disruption, Collection, faults=BAD)
        await asyncio.sleep(5)
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(1500)
        assert not harmed
        return await left(stage)

    assert on_stage(body, seed=seed, settings=QUICK).value == (0, 0, 0)


def test_two_that_both_believe_to_lead_do_no_harm() -> None:
    """For a while two processes end the same machines: each machine is deleted once, and nothing is left."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], int]:
        await scene(stage)
        deleted: list[str] = []
        real = stage.cloud.delete

        async def delete(claim: NodeClaim) -> None:
            await real(claim)
            deleted.append(claim.metadata.name)

        stage.cloud.delete = delete  # type: ignore[method-assign]
        for name in ("one", "two"):
            start_process(stage, Termination, Disruption, Collection, name=name)
        await asyncio.sleep(2)
        await stage.admin.delete(NODE_POOL, "default")
        await asyncio.sleep(120)
        return await left(stage), len(deleted)

    assert on_stage(body, settings=QUICK).value == ((0, 0, 0), 3)


def test_a_drain_that_forgets_pods_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: a drain that waits for nobody harms the pod, and the audit sees it."""
    monkeypatch.setattr("growth.controllers.termination.drains.drain_step", lambda *_args, **_more: DrainStep())

    async def body(stage: Stage) -> list[str]:
        harmed = await scene(stage)
        start_process(stage, Termination)
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(60)
        return harmed

    assert set(on_stage(body, settings=QUICK).value) == {"p-1"}


def test_an_end_that_lets_go_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: a claim let go of when the cloud has only accepted leaves its machine behind, and the count sees it."""

    async def careless(_endings: object, _claim: NodeClaim, _memory: object) -> None:
        return None

    monkeypatch.setattr("growth.controllers.termination.endings.Endings._take_down", careless)

    async def body(stage: Stage) -> tuple[int, int, int]:
        await scene(stage)
        start_process(stage, Termination)
        await stage.admin.delete(NODE_POOL, "default")
        await asyncio.sleep(60)
        return await left(stage)

    assert on_stage(body, settings=QUICK).value == (0, 0, 3)
