"""The narrow openings to the outside world, each a Protocol with a real implementation here and a simulated one in `sim`.

`Clock`, `Random`, `Compute` and `Transport` are what controllers and providers are given; `kube.Api` and
`providers.CloudProvider` are the other two openings. Only this module may use `time`, `random`, threads and the like;
elsewhere they are lint errors. Waiting is done with `asyncio.sleep` and `asyncio.timeout`: they follow the event loop's
time, which the simulation kernel makes virtual.
"""

import asyncio
import concurrent.futures
import datetime as dt
import functools
import gc
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _counting_sleep() -> int | None:
    """The machine's clock that goes on while it is suspended; None where `time.monotonic` is the best that there is.

    Linux and OpenBSD have CLOCK_BOOTTIME. On macOS CLOCK_MONOTONIC counts sleep, and `time.monotonic` does not. On Windows
    `time.monotonic` counts it. Elsewhere a sleep is not seen. On every system a virtual machine that its hypervisor pauses
    may stand still with all its clocks.
    """
    name = "CLOCK_MONOTONIC" if sys.platform == "darwin" else "CLOCK_BOOTTIME"
    found: int | None = getattr(time, name, None)
    return found


COUNTING_SLEEP: Final = _counting_sleep()

# Measured: with 1 ms the event loop lags at most 3 ms beside a busy solver thread; CPython's default is 5 ms.
SWITCH_INTERVAL_SECONDS: Final = 0.001


class Clock(Protocol):
    """Three clocks: what time it is (may jump), how long this process has been able to run, and how long it has been."""

    def now(self) -> dt.datetime:
        """The wall clock, in UTC, with its zone set."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment of this process, in step with `asyncio.sleep`; the clock for deadlines.

        It may stand still while the machine is suspended.
        """

    def boot_time(self) -> float:
        """Seconds since some fixed moment, those in which the machine was suspended included.

        The clock for what others count too: the Lease, and how old a look is.
        """


class Random(Protocol):
    """Randomness for names and jitter; never for decisions."""

    def uniform(self, low: float, high: float) -> float: ...

    def choice(self, options: Sequence[T]) -> T: ...

    def uuid(self) -> str:
        """A random UUID in its usual 36 characters."""


class Compute(Protocol):
    """Runs a pure function while the event loop stays free."""

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result. Cancelling the wait does not stop the function: its result is dropped."""


class Response(Protocol):
    """An answer that was read to its end."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""

    @property
    def body(self) -> bytes: ...


class Transport(Protocol):
    """One HTTP exchange with a cloud: no retry, no interpretation; `TransportError` where no whole answer came."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, timeout_seconds: float
    ) -> Response: ...


class TransportError(Exception):
    """No whole answer came. Whether the request took effect is unknown."""


class NothingSent(TransportError):
    """No connection was made: nothing of the request left this process."""


class SystemClock:
    """The machine's clocks. `monotonic` is the event loop's, so that it agrees with `asyncio.sleep`."""

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def boot_time(self) -> float:
        return time.monotonic() if COUNTING_SLEEP is None else time.clock_gettime(COUNTING_SLEEP)


class SystemRandom:
    """Seeded by the operating system."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def uuid(self) -> str:
        return str(uuid.uuid4())


class ThreadCompute:
    """Three worker threads beside the event loop: a plan that takes too long holds up neither the one made in its stead
    nor a scrape.

    Python's collector of cycles rests meanwhile: with the cache of a large cluster one of its full passes stops every
    thread for longer than the loop may lag, and a plan makes many objects and hardly a cycle.
    """

    def __init__(self) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=3, thread_name_prefix="growth-compute")
        self._lock = threading.Lock()
        self._working = 0

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        call = functools.partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._uncollected, call)

    def _uncollected(self, call: Callable[[], R]) -> R:
        self._count(1)
        try:
            return call()
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._working += change
            if self._working:
                gc.disable()
            else:
                gc.enable()

    def close(self) -> None:
        """Lets the running function end and drops those that wait."""
        self._pool.shutdown(wait=False, cancel_futures=True)
