"""The whole autoscaler as one coroutine: from the openings to the outside to running controllers.

    connect ─► checks ─► caches follow the server ─► the Lease ─► controllers act
                                │ warm from the start on, so that a takeover acts at once

Nothing here knows whether the openings are real: `growth run` and the simulation run this very code. Whatever ends
unexpectedly ends all of it; whoever started the process starts it again.
"""

import asyncio
import contextlib
import dataclasses
import enum
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NoReturn, Protocol, TypeVar

from growth.api import names
from growth.cluster.state import State
from growth.controllers.environment import Environment
from growth.kube.api import ALWAYS_OPEN, Api, Gate
from growth.kube.backoff import Backoff, BackoffSettings
from growth.kube.describe import describe
from growth.kube.errors import ApiError, GateClosed, KubeError, may_pass
from growth.kube.events import Recorder, RecorderSettings
from growth.kube.lease import Elector, LeaseLost
from growth.operator import parts, watchdog
from growth.operator.checks import check_alone, check_home, check_same_cluster, identity_of
from growth.operator.observing import ObservingApi
from growth.operator.parts import Part
from growth.operator.settings import Settings
from growth.operator.watchdog import Watchdog
from growth.ports import Clock, Compute, Random
from growth.providers.contract import CloudProvider
from growth.providers.measured import Measured
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Gauge, Metrics

R = TypeVar("R")

_log = logger("operator")

# How long equal events are one, where Karpenter's habit is another than two minutes.
REPEATS: Final = {names.FAILED_SCHEDULING: 300.0, names.UNCONSOLIDATABLE: 900.0}

# Between two questions to a server that does not answer: nobody else asks it then, and it is soon back as a rule.
ASKING: Final = BackoffSettings(base_seconds=0.5, cap_seconds=10.0, jitter=0.5)

LEADING: Final = Gauge("growth_leading", "1 while this process holds the Lease and acts, else 0.")


class Role(enum.StrEnum):
    """Whose calls a connection carries. The elector's must be behind no gate and wait for nobody."""

    ELECTOR = "elector"
    GROWTH = "growth"
    CLOUD = "cloud"


class Connect(Protocol):
    """Opens a connection to the API server; its writes ask the gate."""

    def __call__(self, role: Role, gate: Gate) -> contextlib.AbstractAsyncContextManager[Api]: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Cloud:
    """A provider, and what of the cloud itself must run in our process while we act: the KWOK cloud's own half."""

    provider: CloudProvider
    parts: Sequence[Part] = ()


class MakeCloud(Protocol):
    """The cloud of a cluster; `api` is a connection of its own, `cluster` the cluster's identity.

    Whatever the cloud writes asks `gate` first, as `api` does.
    """

    def __call__(self, api: Api, *, cluster: str, gate: Gate) -> Cloud: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """Everything outside. `identity` tells this process from all others, its earlier runs included."""

    connect: Connect
    cloud: MakeCloud
    clock: Clock
    random: Random
    compute: Compute
    metrics: Metrics
    identity: str


class PartEnded(Exception):
    """A part that should run for ever returned."""


def _nothing(_: LeaseLost) -> None:
    return


class Autoscaler:
    """One process's life; used once. `run` until cancelled; what is wrong meanwhile can be asked."""

    def __init__(self, openings: Openings, settings: Settings) -> None:
        self._openings = openings
        self._settings = settings
        self._watchdog: Watchdog | None = None
        self._elector: Elector | None = None
        self._waiting = "the API server has not answered yet"
        openings.metrics.declare(LEADING, *watchdog.METRICS, *parts.METRICS)

    @property
    def leading(self) -> bool:
        return self._elector is not None and self._elector.statistics().leading

    def unready(self) -> tuple[str, ...]:
        """Why this process could not act if it had to: what is not synced, and for how long; empty when it could."""
        if self._watchdog is None:
            return (self._waiting,)
        return self._watchdog.problems()

    async def run(self, *, at_loss: Callable[[LeaseLost], None] = _nothing) -> None:
        """Raises `Refused`, `LeaseLost`, `PartEnded` or what a part raised. Cancelling gives the Lease back.

        A server that is away, starting or overloaded is waited for; one that refuses us is not.

        `at_loss` is called at the very moment when the Lease is lost, before anything is put in order: a real process
        ends there.
        """
        openings, settings = self._openings, self._settings
        async with contextlib.AsyncExitStack() as stack:
            electing = await stack.enter_async_context(openings.connect(Role.ELECTOR, ALWAYS_OPEN))
            cluster = await self._answered("which cluster this is", lambda: identity_of(electing))
            await self._answered(
                "whether everything is there that Growth needs",
                lambda: check_home(electing, settings.controllers.namespace, observe=settings.controllers.observe),
            )
            self._elector = elector = Elector(
                electing,
                clock=openings.clock,
                random=openings.random,
                name=names.LEADER_LEASE,
                namespace=settings.controllers.namespace,
                identity=openings.identity,
                settings=settings.lease,
            )
            observe = settings.controllers.observe
            gate: Gate = ALWAYS_OPEN if observe else elector.gate
            api: Api = await stack.enter_async_context(openings.connect(Role.GROWTH, gate))
            cloud_api: Api = await stack.enter_async_context(openings.connect(Role.CLOUD, gate))
            other = cloud_api
            await self._answered("whose machines the cloud makes", lambda: check_same_cluster(other, cluster))
            if observe:
                api, cloud_api = ObservingApi(api), ObservingApi(cloud_api)
            cloud = openings.cloud(cloud_api, cluster=cluster, gate=gate)
            provider = Measured(cloud.provider, metrics=openings.metrics, clock=openings.clock)
            environment = self._environment(api, provider, cluster)
            self._watchdog = dog = Watchdog(environment.state, clock=openings.clock, metrics=openings.metrics)

            async def alone() -> None:
                check = functools.partial(
                    check_alone,
                    electing,
                    clock=openings.clock,
                    provider=cloud.provider.name,
                    served=cloud.provider.node_classes,
                )
                await self._answered("whether Karpenter is at work", check)

            if observe:
                work = self._observe(environment)
            else:
                await alone()
                acting = parts.acting(environment)
                work = self._lead(elector, environment, (*acting, *cloud.parts), alone=alone, at_loss=at_loss)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_for_ever(environment.state), name="state")
                    group.create_task(_for_ever(dog), name="watchdog")
                    await work
            except BaseExceptionGroup as failures:
                raise _cause(failures) from failures

    async def _answered(self, what: str, ask: Callable[[], Awaitable[R]]) -> R:
        """Asks until there is an answer. At a start as at a takeover a server in trouble is often why we are here."""
        backoff = Backoff(self._openings.random, ASKING)
        while True:
            try:
                return await ask()
            except KubeError as error:
                if not may_pass(error):
                    raise
                pause = error.pause(backoff.next()) if isinstance(error, ApiError) else backoff.next()
                self._waiting = f"the API server does not say {what}: {describe(error)}"
                _log.warning("waiting for the API server", unknown=what, error=describe(error), again=round(pause, 1))
                await asyncio.sleep(pause)

    def _environment(self, api: Api, provider: CloudProvider, cluster: str) -> Environment:
        openings = self._openings
        state = State(api, clock=openings.clock, random=openings.random, node_classes=provider.node_classes)
        return Environment(
            api=api,
            state=state,
            provider=provider,
            clock=openings.clock,
            random=openings.random,
            compute=openings.compute,
            events=Recorder(
                api,
                clock=openings.clock,
                random=openings.random,
                settings=RecorderSettings(instance=openings.identity, repeat_seconds_of=REPEATS),
            ),
            metrics=openings.metrics,
            settings=self._settings.controllers,
            cluster=cluster,
        )

    async def _lead(
        self,
        elector: Elector,
        environment: Environment,
        running: Sequence[Part],
        *,
        alone: Callable[[], Awaitable[None]],
        at_loss: Callable[[LeaseLost], None],
    ) -> None:
        metrics = self._openings.metrics

        async def lead() -> NoReturn:
            await alone()  # a Karpenter may have come while we waited
            since = float("-inf") if elector.first else environment.clock.monotonic()
            environment.launches.lead(since, functools.partial(elector.is_taken, environment.api))
            metrics.set(LEADING, 1)  # before it is said: who reads "leading" and asks must find it so
            _log.info("leading", identity=self._openings.identity, cluster=environment.cluster)
            await environment.state.wait_synced()
            await _all((environment.events, *running))

        _log.info("waiting for the lease", identity=self._openings.identity)
        try:
            await elector.run(lead)
        except LeaseLost as error:
            at_loss(error)
            raise
        finally:
            metrics.set(LEADING, 0)

    async def _observe(self, environment: Environment) -> None:
        _log.info("observing", cluster=environment.cluster)
        await environment.state.wait_synced()
        await _all(parts.observing(environment))


def _cause(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one that says most of several that went wrong together: a closed gate is what everybody runs into then."""
    single: list[BaseException] = []
    waiting: list[BaseException] = [failures]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
        else:
            single.append(each)
    return next((each for each in single if not isinstance(each, GateClosed)), single[0])


async def _all(running: Sequence[Part]) -> NoReturn:
    async with asyncio.TaskGroup() as group:
        for part in running:
            group.create_task(_for_ever(part), name=type(part).__name__)
    raise AssertionError("parts end by raising only")


async def _for_ever(part: Part) -> NoReturn:
    await part.run()
    raise PartEnded(f"{type(part).__name__} ended by itself: this is a defect of Growth")
