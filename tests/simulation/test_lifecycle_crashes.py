"""The lifecycle's process dies after every write in turn, and works over networks that lose answers."""

import asyncio
import collections
import functools
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from growth.api import names
from growth.api.karpenter import NODE_CLAIM
from growth.api.nodes import NODE
from growth.controllers.environment import Environment
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.pools import Pools
from growth.kube.memory import MemoryApi
from growth.sim import process
from growth.sim.network import GOOD, Faults, NetworkApi
from growth.sim.ports import SimClock, SimRandom
from growth.sim.process import Process
from tests.simulation.owning import LateApi, Stage, environment, on_stage, told

BAD = Faults(
    latency=(0.001, 0.3),
    conflict=0.05,
    throttled=0.02,
    server_error=0.05,
    unreachable=0.03,
    lost_answer=0.02,
    broken_answer=0.05,
    delayed_write=0.02,
    watch_delay=(0.0, 3.0),
    watch_cut_seconds=60.0,
)


def start(stage: Stage, life: int, *controllers: Callable[[Environment], Any], faults: Faults = GOOD) -> Process:
    """One life of the controllers."""

    async def body(own: Process) -> None:
        random = SimRandom(stage.kernel.seed, f"life {life}")
        server = MemoryApi(stage.server, user="growth")
        api = NetworkApi(server, kernel=stage.kernel, random=random.stream("net"), process=own, faults=faults)
        env = environment(api, stage.cloud, clock=SimClock(stage.kernel), random=random)
        async with asyncio.TaskGroup() as group:
            group.create_task(env.state.run())
            for controller in controllers:
                group.create_task(controller(env).run())

    return process.start(stage.kernel, f"growth-{life}", body)


async def kubelets(stage: Stage, *, ready_after: float) -> None:
    """Every machine registers its Node, once, and is ready a little later."""
    joined: dict[str, float] = {}
    while True:
        await asyncio.sleep(1)
        for machine in list(stage.cloud.machines.values()):
            name = f"node-{machine.claim}"
            if name not in joined:
                joined[name] = stage.kernel.time()
                await stage.join(name, provider_id=machine.provider_id, ready=False)
            elif stage.kernel.time() - joined[name] >= ready_after:
                node = await stage.node(name)
                if all(each.type != "Ready" for each in node.status.conditions):
                    await stage.set_ready(name)


async def check(stage: Stage, claims: int) -> None:
    """One machine a claim, one Node a machine, everything as if nothing had happened."""
    found = (await stage.admin.list(NODE_CLAIM)).items
    assert [told(claim).get("Ready") for claim in found] == ["True"] * claims
    assert len(stage.cloud.machines) == claims
    nodes = (await stage.admin.list(NODE)).items
    assert collections.Counter(node.spec.provider_id for node in nodes) == {
        claim.status.provider_id: 1 for claim in found
    }
    for node in nodes:
        assert node.metadata.labels.items() >= {names.REGISTERED_LABEL: "true", names.INITIALIZED_LABEL: "true"}.items()
        assert node.metadata.labels[names.ZONE_LABEL] == "test-zone-a"
        assert names.TERMINATION_FINALIZER in node.metadata.finalizers


@pytest.mark.parametrize(("ready_after", "writes"), [(1, 4), (4, 5), (12, 6)])
def test_a_crash_after_any_write_loses_and_doubles_nothing(ready_after: float, writes: int) -> None:
    """Whatever was written last, the next process goes on from there, and writes nothing a second time."""

    async def body(stage: Stage, crash_after: int) -> int:
        await stage.add_class()
        pool = await stage.add_pool()
        stage.kernel.create_task(kubelets(stage, ready_after=ready_after))
        first = start(stage, 1, Lifecycle)
        if crash_after:
            first.crash_after_write(crash_after)
        await stage.add_claim(pool=pool)
        await asyncio.sleep(30)
        if crash_after:
            assert first.dead
            start(stage, 2, Lifecycle)
        await asyncio.sleep(60)
        await check(stage, 1)
        return stage.writes()

    unbroken = on_stage(functools.partial(body, crash_after=0)).value
    assert unbroken == writes
    for n in range(1, unbroken + 1):
        assert on_stage(functools.partial(body, crash_after=n)).value <= unbroken, f"crashed after write {n}"


@pytest.mark.parametrize("seed", range(10))
def test_bad_networks_and_crashes_lose_and_double_nothing(seed: int) -> None:
    """Lost answers, conflicts, late watches, a crash every twenty seconds: at the end one machine and Node a claim."""

    async def body(stage: Stage) -> None:
        await stage.add_class()
        pool = await stage.add_pool()
        stage.kernel.create_task(kubelets(stage, ready_after=3))
        running = start(stage, 0, Lifecycle, Pools, faults=BAD)
        for number in range(8):
            await stage.add_claim(f"web-{number}", pool=pool)
        for life in range(1, 6):
            await asyncio.sleep(20)
            running.crash()
            running = start(stage, life, Lifecycle, Pools, faults=BAD)
        await asyncio.sleep(240)
        await check(stage, 8)

    on_stage(body, seed=seed)


def test_each_stage_is_logged_once() -> None:
    """However late the watch shows what was written, a claim is launched, registered and initialised once."""

    async def body(stage: Stage) -> collections.Counter[str]:
        stage.kernel.create_task(kubelets(stage, ready_after=2))
        await stage.start(Lifecycle(stage.env))
        with structlog.testing.capture_logs() as lines:
            for number in range(5):
                await stage.add_claim(f"web-{number}")
            await asyncio.sleep(600)
        await check(stage, 5)
        return collections.Counter(line["event"] for line in lines)

    stages = ("launched nodeclaim", "registered nodeclaim", "initialized nodeclaim")
    for api in (None, LateApi):
        assert on_stage(body, api=api).value == dict.fromkeys(stages, 5)
