"""The live view of the demo: the cluster in a process of its own, and `growth top` on it, as on any other."""

import asyncio
import contextlib
import pathlib
import sys
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from growth.demo import scene
from growth.demo.__main__ import Order, Said
from growth.demo.pace import AheadClock
from growth.kube import access
from growth.kube.http import DEADLINE_SECONDS, HttpApi
from growth.ports import SystemClock, SystemRandom, ThreadCompute
from growth.top.following import Choose, Following
from growth.top.view import Top

# Of what the demo says, as many lines stand above the nodes.
LINES: Final = 2
START_SECONDS: Final = 60.0


class Ended(Exception):
    """The cluster's process ended while somebody still looked at it."""


class Cluster:
    """The process. `said` are its latest lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: deque[str] = deque(maxlen=LINES)
        self.ready = asyncio.Event()

    async def listen(self) -> None:
        """Hears it until it ends."""
        out = self._process.stdout
        assert out is not None
        async for line in out:
            said = msgspec.json.decode(line, type=Said)
            if said.ready:
                self.ready.set()
            else:
                self.said.append(said.text)
        self.ready.set()

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None


@contextlib.asynccontextmanager
async def beside(order: Order) -> AsyncIterator[Cluster]:
    """The demo's cluster in another process while the block runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "growth.demo",
        msgspec.json.encode(order).decode(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    cluster = Cluster(process)
    hearing = asyncio.ensure_future(cluster.listen())
    try:
        yield cluster
    finally:
        hearing.cancel()
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(5.0):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def show(order: Order, *, choose: Choose, seconds: float | None = None) -> None:
    """Shows the demo until the person quits, or for so many seconds of the wall."""
    compute = ThreadCompute()
    clock = AheadClock(SystemClock(), speed=order.speed, start=order.start)
    async with beside(order) as cluster:
        async with asyncio.timeout(START_SECONDS):
            await cluster.ready.wait()
        if cluster.ended:
            raise Ended(f"the demo's cluster ended by itself: {_last_line(order.log)}")
        way = access.find(kubeconfig=order.kubeconfig)
        async with HttpApi.connect(way, clock=clock, user_agent="growth-top", deadline_seconds=DEADLINE_SECONDS) as api:
            following = Following(api, clock=clock, random=SystemRandom(), choose=choose)
            app = Top(
                following,
                clock=clock,
                compute=compute,
                title="growth demo",
                said=lambda: (invitation(order.kubeconfig), *cluster.said),
            )
            if seconds is not None:
                asyncio.get_running_loop().call_later(seconds, app.exit)
            try:
                await app.run_async()
            finally:
                compute.close()
    if app.failure is not None:
        raise app.failure


def invitation(kubeconfig: str) -> str:
    """What to type in another terminal."""
    return f"KUBECONFIG={kubeconfig} kubectl scale deployment/{scene.YOURS} --replicas 20"


def _last_line(log: str) -> str:
    lines = pathlib.Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[-1] if lines else "it said nothing"
