"""The terminal view of a large cluster: from the news in the cache to the screen drawn, while pods come and go.

A cluster of `--nodes` with 15 pods each is in the server in process and the view follows it, on a screen of 160 × 50
without a terminal. Each round some pods are changed and their news let in; then is timed from the look at the cache until
the view has drawn every line that is seen and rests. `quiet` rounds are those in which nothing else runs; `thinking` ones
those in which a plan of the whole cluster is made in another process meanwhile. `first_look` is the first such round,
`reading` the time from an empty cache to a synced one, `thought` how long the plan took there.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

from bench.settled import steady
from growth.api.crds import all_crds
from growth.api.instance_types import Catalogue
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.cluster.state import State
from growth.kube.memory import MemoryApi, MemoryServer
from growth.ports import SystemClock, SystemRandom
from growth.providers.catalogues import builtin
from growth.sim.world.world import named
from growth.top.elsewhere import Elsewhere
from growth.top.following import Following
from growth.top.view import Top

LIMIT_SECONDS: Final = 0.5
SIZE: Final = (160, 50)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=1000, help="nodes; each has 15 pods")
    parser.add_argument("--rounds", type=int, default=20, help="looks that are timed, of each kind")
    parser.add_argument("--changes", type=int, default=200, help="pods that change between two looks")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    return asyncio.run(_measure(options.nodes, options.rounds, options.changes))


def failed(result: dict[str, Any]) -> bool:
    """Whether a quiet look took as long as nobody should wait."""
    return bool(result["quiet"]["worst_seconds"] >= LIMIT_SECONDS)


async def _measure(nodes: int, rounds: int, changes: int) -> dict[str, Any]:
    server = MemoryServer(SystemClock(), SystemRandom())
    api = MemoryApi(server, user="bench")
    pods = await _fill(server, api, steady(nodes))
    clock, compute = SystemClock(), _Held(Elsewhere())
    following = Following(api, clock=clock, random=SystemRandom(), choose=_kwok)
    app = Top(following, clock=clock, compute=compute, title="bench")
    start = time.perf_counter()
    async with app.run_test(size=SIZE) as pilot:
        await following.wait_synced()
        reading = time.perf_counter() - start

        async def look() -> float:
            begun = time.perf_counter()
            app.look()
            await pilot.pause()
            return time.perf_counter() - begun

        first = await look()
        quiet = [await _after(api, pods, number, changes, look) for number in range(rounds)]
        compute.go.set()
        busy: list[float] = []
        while compute.done == 0 or len(busy) < 1:
            busy.append(await _after(api, pods, len(busy), changes, look))
        shown = len(app.query_one("#nodes").keys)  # type: ignore[attr-defined] # our own widget
    await compute.close()
    return {
        "nodes": nodes,
        "pods": len(pods),
        "rows": shown,
        "reading_seconds": reading,
        "first_look_seconds": first,
        "quiet": _figures(quiet),
        "thinking": _figures(busy),
        "thought_seconds": compute.seconds,
        "above_least_percent": None
        if not app.thoughts.least
        else round((_hourly(app) / app.thoughts.least - 1) * 100, 1),
    }


def _hourly(app: Top) -> int:
    assert app.seen is not None
    return app.seen.sums.hourly


async def _fill(server: MemoryServer, api: MemoryApi, raw: Sequence[Json]) -> list[tuple[str, str]]:
    for body in all_crds():
        kind, _, _ = named(server, body)
        await api.create(kind, body)
    pods: list[tuple[str, str]] = []
    for body in raw:
        kind, name, namespace = named(server, body)
        status = body.get("status")
        await api.create(kind, {key: value for key, value in body.items() if key != "status"}, namespace=namespace)
        if status:
            await api.patch(kind, name, {"status": status}, namespace=namespace, subresource="status")
        if body["kind"] == "Pod":
            pods.append((namespace, name))
    return pods


async def _after(api: MemoryApi, pods: Sequence[tuple[str, str]], number: int, changes: int, look: Any) -> float:
    """Pods change all over the cluster, the cache hears of it, then a look is timed."""
    for at in range(changes):
        namespace, name = pods[(number * 7919 + at * 61) % len(pods)]
        patch = {"metadata": {"labels": {"round": str(number)}}}
        await api.patch(POD, name, patch, namespace=namespace)
    for _ in range(5):
        await asyncio.sleep(0)
    seconds: float = await look()
    return seconds


def _kwok(_: State) -> Catalogue:
    return builtin("kwok")


class _Held:
    """Thinks only when told to, so that quiet looks are quiet; counts how long a thought took."""

    def __init__(self, own: Elsewhere) -> None:
        self._own = own
        self.go = asyncio.Event()
        self.done = 0
        self.seconds = 0.0

    async def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        await self.go.wait()
        start = time.perf_counter()
        result = await self._own.run(function, *args, **kwargs)
        self.seconds = time.perf_counter() - start
        self.done += 1
        self.go.clear()
        return result

    async def close(self) -> None:
        await self._own.close()


def _figures(seconds: Sequence[float]) -> dict[str, float]:
    return {
        "rounds": len(seconds),
        "median_seconds": round(statistics.median(seconds), 4),
        "worst_seconds": round(max(seconds), 4),
    }
