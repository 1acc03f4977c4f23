"""Builders for tests of Hetzner's cloud: a clock that the test moves, and the fake served to clients that block."""

import asyncio
import contextlib
import datetime as dt
import threading
from collections.abc import Callable, Iterator

import hcloud

from growth.sim.clouds.hetzner import FakeSettings, HetznerFake
from growth.sim.clouds.hetzner.serving import serving
from growth.sim.ports import SimRandom

TOKEN = "wQfFvJ3kpXcY8sLrT2nBzH6mDgA9eUxK"
START = dt.datetime(2026, 11, 2, 9, 0, tzinfo=dt.UTC)
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBGQJ6bXv8Yj0r1c8m0sFf1Q0Z3y1a2b3c4d5e6f7g8h me@here"


class Ticking:
    """A clock that goes on by `tick` seconds each time it is asked, and by what a test adds."""

    def __init__(self, *, tick: float = 0.0) -> None:
        self.tick = tick
        self._passed = 0.0

    def now(self) -> dt.datetime:
        self._passed += self.tick
        return START + dt.timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    def boot_time(self) -> float:
        return self.monotonic()

    def add(self, seconds: float) -> None:
        self._passed += seconds


def new_fake(*, tick: float = 0.0, settings: FakeSettings | None = None, seed: int = 1) -> tuple[HetznerFake, Ticking]:
    clock = Ticking(tick=tick)
    return HetznerFake(clock=clock, random=SimRandom(seed, "hetzner"), settings=settings), clock


def served(fake: HetznerFake) -> contextlib.AbstractContextManager[str]:
    """The address of the fake's API, on a thread of its own: the vendor's client blocks."""
    return on_a_thread(lambda: serving(fake))


@contextlib.contextmanager
def on_a_thread(serve: Callable[[], contextlib.AbstractAsyncContextManager[str]]) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    started, told = threading.Event(), asyncio.Event()
    urls: list[str] = []

    async def main() -> None:
        async with serve() as url:
            urls.append(url)
            started.set()
            await told.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    started.wait()
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(told.set)
        thread.join()
        loop.close()


@contextlib.contextmanager
def vendors_client(url: str, *, token: str = TOKEN) -> Iterator[hcloud.Client]:
    """Hetzner's own client. It waits between polls and repeats as long as it is told to: here not at all."""
    client = hcloud.Client(token, api_endpoint=url, poll_interval=0, timeout=20)
    client._client._retry_interval_func = lambda retries: 0.0
    try:
        yield client
    finally:
        client._client._session.close()
        client._client_hetzner._session.close()
