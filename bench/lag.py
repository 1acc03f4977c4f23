"""How long the event loop is held up while a plan for 20,000 pods is made, and whether the Lease is renewed on time.

The whole autoscaler (`growth.operator.wiring`) runs in this process with its real clock, worker thread and HTTP client. The
API server is the one in `growth.kube.memory`, served by a process of its own and full of pending pods of Karpenter's
benchmark mix, so that the machine's load is Growth's. Beside it, in the same event loop, a probe sleeps 5 ms again and
again: what it sleeps longer than that is lag. Timed: every sleep that ends while a plan is being made (`during`), from
the call of the worker thread to its answer; and all of them from the start to ten seconds after the plan (`overall`,
which has the listing and decoding of all pods and the creation of the claims in it). A renewal is late when more than
half of the renew deadline has passed since the one before.

`--idle` does another thing: on a real control plane it buys 200 machines, waits, and counts for five minutes who writes
what, by the audit log.
"""

import argparse
import asyncio
import collections
import contextlib
import itertools
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry

from bench.owning import autoscaler, desk
from bench.owning.audit import writes
from bench.owning.desk import Desk
from growth.api.coordination import LEASE
from growth.api.kinds import Json
from growth.controllers.settings import ControllerSettings
from growth.kube import access
from growth.kube.api import Api, Gate
from growth.kube.http import HttpApi
from growth.kube.lease import DEFAULT_LEASE
from growth.kube.passing import PassingApi, Write
from growth.operator import logs
from growth.operator.clouds import chosen
from growth.operator.settings import ProcessSettings, Settings
from growth.operator.wiring import Autoscaler, Openings, Role
from growth.planning.plan import Plan
from growth.ports import SystemClock, SystemRandom, ThreadCompute
from growth.telemetry.metrics import Metrics
from tools.controlplane.plane import plane

P = ParamSpec("P")
R = TypeVar("R")

PROBE_SECONDS: Final = 0.005
AFTER_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 600.0
ALLOWED_LAG_SECONDS: Final = 0.05
ON_TIME_SECONDS: Final = DEFAULT_LEASE.renew_deadline_seconds / 2
IDLE_NODES: Final = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--idle", action="store_true", help="count the writes of an idle cluster instead")
    parser.add_argument("--idle-nodes", type=int, default=IDLE_NODES)
    parser.add_argument("--idle-seconds", type=float, default=300.0)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    if options.idle:
        return idle(options.idle_nodes, options.idle_seconds)
    return lag(options.pods)


def failed(result: dict[str, Any]) -> bool:
    if "writes" in result:
        return bool(result["writes"])
    return bool(result["during p99 ms"] > 1000 * ALLOWED_LAG_SECONDS or result["late renewals"])


# Lag.


class _Compute:
    """The real worker thread, and a record of when it was at work on a plan."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float, int]] = []
        self._real = ThreadCompute()

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        start = time.monotonic()
        result = await self._real.run(function, *args, **kwargs)
        self.spans.append((start, time.monotonic(), _placed(result)))
        return result

    def close(self) -> None:
        self._real.close()


def _placed(result: object) -> int:
    """How many pods a result places, where it is or has a plan."""
    plans = [result, *(getattr(result, name, None) for name in ("plan", "solved"))]
    return next((len(each.order) for each in plans if isinstance(each, Plan)), 0)


class _Renewals(PassingApi):
    """Notes when a write of the elector was answered."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.at: list[float] = []

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:
        done = await send()
        if (write.verb, write.kind.plural) == ("patch", LEASE.plural):
            self.at.append(time.monotonic())
        return done


def lag(pods: int) -> dict[str, Any]:
    # Lines are made and written as in production, but to nowhere.
    with _crowded(pods) as url, pathlib.Path(os.devnull).open("w") as nowhere:
        logs.configure(clock=SystemClock(), stream=nowhere)
        return asyncio.run(_measured(url, pods))


async def _measured(url: str, pods: int) -> dict[str, Any]:
    clock, random, compute = SystemClock(), SystemRandom(), _Compute()
    settings = Settings(
        process=ProcessSettings(provider="kwok", kwok_controller=True),
        controllers=ControllerSettings(),
        lease=DEFAULT_LEASE,
    )
    renewals: list[_Renewals] = []

    @contextlib.asynccontextmanager
    async def connect(role: Role, gate: Gate) -> AsyncIterator[Api]:
        way = access.direct(url, token="growth-kwok" if role is Role.CLOUD else "growth")
        async with HttpApi.connect(way, clock=clock, user_agent="growth/bench", gate=gate) as api:
            if role is Role.ELECTOR:
                renewals.append(_Renewals(api))
                yield renewals[-1]
            else:
                yield api

    openings = Openings(
        connect=connect,
        cloud=chosen(settings, clock=clock, random=random),
        clock=clock,
        random=random,
        compute=compute,
        metrics=Metrics(CollectorRegistry()),
        identity="bench",
    )
    lags: list[tuple[float, float]] = []
    running = asyncio.ensure_future(Autoscaler(openings, settings).run())
    probing = asyncio.ensure_future(_probe(lags))
    start = time.monotonic()
    try:
        while not any(placed >= pods // 2 for _, _, placed in compute.spans):
            await asyncio.sleep(0.1)
            if running.done():
                running.result()
            assert time.monotonic() - start < PATIENCE_SECONDS, "no plan for these pods was made"
        await asyncio.sleep(AFTER_SECONDS)
    finally:
        for task in (running, probing):
            task.cancel()
        await asyncio.gather(running, probing, return_exceptions=True)
        compute.close()
    first, last, placed = max(compute.spans, key=lambda span: span[2])
    during = [each for at, each in lags if first <= at <= last]
    gaps = [later - earlier for earlier, later in itertools.pairwise(renewals[0].at)]
    return {
        "pods": pods,
        "placed": placed,
        "plan seconds": last - first,
        "probes during": len(during),
        "during p99 ms": 1000 * _p99(during),
        "during max ms": 1000 * max(during),
        "overall p99 ms": 1000 * _p99([each for _, each in lags]),
        "overall max ms": 1000 * max(each for _, each in lags),
        "renewals": len(gaps),
        "longest between renewals s": max(gaps),
        "late renewals": sum(gap > ON_TIME_SECONDS for gap in gaps),
        "load": os.getloadavg()[0],
    }


async def _probe(lags: list[tuple[float, float]]) -> None:
    while True:
        start = time.monotonic()
        await asyncio.sleep(PROBE_SECONDS)
        now = time.monotonic()
        lags.append((now, now - start - PROBE_SECONDS))


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


@contextlib.contextmanager
def _crowded(pods: int) -> Any:
    command = [sys.executable, "-m", "bench.owning.crowded", str(pods)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


# Idle.


def idle(nodes: int, seconds: float) -> dict[str, Any]:
    """Buys so many machines on a real plane and then only watches."""
    with plane(scheduler=True, controller_manager=True, kwok=True, audit=True) as running:
        server = Desk(running)
        autoscaler.prepare(server, autoscaler.GROWTH)
        server.create(desk.POOLS, _pool())
        with autoscaler.stopped_at_last(autoscaler.growth(running)) as process:
            process.wait_ready()
            server.create(desk.APPS, _one_a_machine(nodes))
            server.until(
                lambda: server.get(f"{desk.APPS}/wide").get("status", {}).get("readyReplicas") == nodes,
                seconds=PATIENCE_SECONDS,
                what=f"{nodes} pods run",
                state=lambda: process.log[-2000:],
                every=1.0,
            )
            # What follows a scale-up has its time: nominations end, statuses are counted, events are told.
            time.sleep(60.0)
            since, before = time.time(), process.cpu_seconds()
            time.sleep(seconds)
            used = process.cpu_seconds() - before
            own = [each for each in writes(running.audit_log) if each.user == autoscaler.GROWTH and each.at >= since]
            kinds = collections.Counter(f"{each.verb} {each.resource}" for each in own)
            leases = sum(count for what, count in kinds.items() if what.endswith(" leases"))
            return {
                "nodes": len(server.items(desk.NODES)),
                "seconds": seconds,
                "renewals of the lease": leases,
                "writes": len(own) - leases,
                "what": ", ".join(what for what in kinds if not what.endswith(" leases")),
                "cpu seconds a minute": 60 * used / seconds,
                "memory MB": process.peak_bytes() / 1e6,
            }


def _pool() -> Json:
    wanted = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["2"]},
    ]
    uses = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"nodeClassRef": uses, "requirements": wanted}}},
    }


def _one_a_machine(count: int) -> Json:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "1500m", "memory": "256Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "wide"},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {"app": "wide"}},
            "template": {"metadata": {"labels": {"app": "wide"}}, "spec": {"containers": [container]}},
        },
    }
