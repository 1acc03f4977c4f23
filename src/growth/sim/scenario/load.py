"""Plays a scenario's workloads and events to a world, as its users would: through the API, at their times."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final, assert_never

from growth.api.kinds import Json
from growth.api.pods import POD
from growth.api.workloads import DEPLOYMENT, JOB
from growth.kube.errors import AlreadyExists, NotFound
from growth.sim.scenario import manifests
from growth.sim.scenario.model import Batch, Burst, Cron, Event, Recorded, Rollout, Scenario, Waves, Workload
from growth.sim.scenario.trace import Life
from growth.sim.seams import Step
from growth.sim.world.world import World
from growth.units import Duration

# How often somebody looks whether a name is free.
NAME_SECONDS: Final = 1.0


def seconds(text: str) -> float:
    return Duration.parse(text).seconds


class Load:
    """`run` returns at the end of the busy time; nothing is changed afterwards but what a trace still records."""

    def __init__(self, world: World, scenario: Scenario, *, until: float, traces: dict[str, tuple[Life, ...]]) -> None:
        """`traces` are the recorded pods of the workloads of kind trace, by the workload's name."""
        self._world = world
        self._scenario = scenario
        self._until = until
        self._traces = traces
        self._api = world.cluster.api("load")

    async def run(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._until - self._world.kernel.time()), asyncio.TaskGroup() as group:
                for workload in self._scenario.workloads:
                    group.create_task(self._play(workload), name=f"load {workload.name}")
                for event in self._scenario.events:
                    group.create_task(self._at(event), name=f"event at {event.at}")

    def _play(self, workload: Workload) -> Coroutine[Any, Any, None]:
        match workload:
            case Waves():
                return self._waves(workload)
            case Burst():
                return self._burst(workload)
            case Cron():
                return self._cron(workload)
            case Rollout():
                return self._rollout(workload)
            case Batch():
                return self._batch(workload)
            case Recorded():
                return self._trace(workload)
            case _:
                assert_never(workload)

    async def _waves(self, work: Waves) -> None:
        await asyncio.sleep(seconds(work.at))
        await self._create(manifests.deployment(work.name, work.low, work.pod))
        pause = seconds(work.period) / (2 * work.steps)
        while True:
            for step in (*range(1, work.steps + 1), *range(work.steps - 1, -1, -1)):
                await asyncio.sleep(pause)
                await self._scale(work.name, work.low + (work.high - work.low) * step // work.steps)

    async def _burst(self, work: Burst) -> None:
        await self._create(manifests.deployment(work.name, 0, work.pod))
        await asyncio.sleep(seconds(work.at))
        await self._scale(work.name, work.pods)
        await asyncio.sleep(seconds(work.lasts))
        await self._scale(work.name, 0)

    async def _cron(self, work: Cron) -> None:
        await asyncio.sleep(seconds(work.at))
        number = 0
        while True:
            number += 1
            name = f"{work.name}-{number}"
            await self._create(
                manifests.job(name, work.name, work.pod, pods=work.pods, parallelism=work.pods, runs=work.runs)
            )
            if number > 2:  # two are kept, as a CronJob's history is
                with contextlib.suppress(NotFound):
                    await self._api.delete(JOB, f"{work.name}-{number - 2}", namespace=manifests.NAMESPACE)
            await asyncio.sleep(seconds(work.every))

    async def _rollout(self, work: Rollout) -> None:
        await asyncio.sleep(seconds(work.at))
        await self._create(manifests.deployment(work.name, work.replicas, work.pod))
        number = 0
        while True:
            await asyncio.sleep(seconds(work.every))
            number += 1
            annotations = {manifests.ROUND_ANNOTATION: str(number)}
            await self._patch(work.name, {"spec": {"template": {"metadata": {"annotations": annotations}}}})

    async def _batch(self, work: Batch) -> None:
        await asyncio.sleep(seconds(work.at))
        await self._create(
            manifests.job(work.name, work.name, work.pod, pods=work.pods, parallelism=work.parallelism, runs=work.runs)
        )

    async def _trace(self, work: Recorded) -> None:
        await Replay(self._world, self._traces[work.name], name=work.name).run()

    async def _at(self, event: Event) -> None:
        await asyncio.sleep(seconds(event.at))
        world = self._world
        world.changed_at = world.kernel.time()
        match event.do:
            case "create":
                await self._create_when_free(event.object)
            case "patch":
                kind, name, namespace = world.named(event.object)
                with contextlib.suppress(NotFound):
                    await self._api.patch(kind, name, event.object, namespace=namespace, subresource=event.subresource)
            case "delete":
                kind, name, namespace = world.named(event.object)
                with contextlib.suppress(NotFound):
                    await self._api.delete(kind, name, namespace=namespace)
            case "crash":
                for replica in world.replicas:
                    if replica.process is not None:
                        replica.process.crash()
            case _:
                assert_never(event.do)

    async def _create(self, body: Json) -> None:
        self._world.changed_at = self._world.kernel.time()
        with contextlib.suppress(AlreadyExists):
            await self._world.create([body], api=self._api)

    async def _create_when_free(self, body: Json) -> None:
        """One of its name that was deleted before may still be on its way out."""
        while True:
            try:
                return await self._world.create([body], api=self._api)
            except AlreadyExists:
                await asyncio.sleep(NAME_SECONDS)

    async def _scale(self, name: str, replicas: int) -> None:
        await self._patch(name, {"spec": {"replicas": replicas}})

    async def _patch(self, name: str, patch: Json) -> None:
        self._world.changed_at = self._world.kernel.time()
        with contextlib.suppress(NotFound):  # deleted by hand
            await self._api.patch(DEPLOYMENT, name, patch, namespace=manifests.NAMESPACE)


class Replay:
    """Pods of a trace: created and deleted at their times, and made again when somebody else took them away.

    There is no controller behind them: this is it. One that was evicted comes back at once under the same name.
    """

    def __init__(self, world: World, lives: tuple[Life, ...], *, name: str) -> None:
        self._world = world
        self._lives = lives
        self._name = name
        self._api = world.cluster.api("load")
        self._wanted: dict[str, Life] = {}
        self._again: asyncio.Queue[str] = asyncio.Queue()
        world.witness.listeners.append(self._heard)

    async def run(self) -> None:
        moments = [(life.begins, 1, life) for life in self._lives]
        moments += [(life.ends, 0, life) for life in self._lives if life.ends != float("inf")]
        moments.sort(key=lambda moment: (moment[0], moment[1], moment[2].name))
        began = self._world.kernel.time()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._restore(), name=f"{self._name} restore")
            for at, begins, life in moments:
                if at > (waited := self._world.kernel.time() - began):
                    await asyncio.sleep(at - waited)
                self._world.changed_at = self._world.kernel.time()
                if begins:
                    self._wanted[life.name] = life
                    await self._make(life)
                else:
                    del self._wanted[life.name]
                    with contextlib.suppress(NotFound):
                        await self._api.delete(POD, life.name, namespace=manifests.NAMESPACE)

    def _heard(self, step: Step) -> None:
        if step.new is None and step.which == ("", "pods") and step.key[1] in self._wanted:
            self._again.put_nowait(step.key[1])

    async def _restore(self) -> None:
        while True:
            name = await self._again.get()
            if name in self._wanted:
                await self._make(self._wanted[name])

    async def _make(self, life: Life) -> None:
        requests = {"cpu": f"{life.cpu_milli}m", "memory": f"{life.memory_mib}Mi"}
        container: Json = {"name": "main", "image": "simulated", "resources": {"requests": requests}}
        body: Json = {
            "metadata": {"name": life.name, "labels": {"app": self._name}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 5},
        }
        with contextlib.suppress(AlreadyExists):  # the last one is still going; its end brings us here again
            await self._api.create(POD, body, namespace=manifests.NAMESPACE)
