"""The simulated sides of `growth.ports`: clock, randomness, computing, and HTTP to a cloud that is a function."""

import asyncio
import datetime as dt
import math
import random  # noqa: TID251 - seeded here, once for each named stream
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, ParamSpec, TypeVar

import msgspec

from growth.ports import Response, TransportError
from growth.sim import wire
from growth.sim.kernel import Kernel

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

# Virtual time begins on a Monday morning, so that schedules of working days can be tried from the start.
EPOCH: Final = dt.datetime(2030, 1, 7, 8, 0, tzinfo=dt.UTC)

# The length of a plan whose work nobody counted; near to what a small cluster's plan takes on one core.
UNCOUNTED_WORK_SECONDS: Final = 0.05


# Of a clock that once stood still, in a second: about a microsecond each.
TICKS: Final = 2.0**20


class SimClock:
    """The clocks of one machine. The wall clock may be wrong and may jump; the others never do, but they may stand still."""

    def __init__(self, kernel: Kernel, *, skew_seconds: float = 0.0) -> None:
        self._kernel = kernel
        self._skew = skew_seconds
        self._jumps: list[tuple[float, float]] = []  # when, and by how much it had been ahead until then
        self._behind = 0.0
        self._stopped: float | None = None
        self._slept = 0.0  # until the last time that the machine fell asleep
        self._asleep = (0.0, 0.0)

    def now(self) -> dt.datetime:
        return EPOCH + dt.timedelta(seconds=self._kernel.time() + self._skew)

    def monotonic(self) -> float:
        began, ends = self._asleep
        now = self._kernel.time() if self._stopped is None else self._stopped
        return self._less(self._behind + self._slept + max(0.0, min(now, ends) - began))

    def boot_time(self) -> float:
        return self._less(self._behind)

    def _less(self, behind: float) -> float:
        """So much behind the kernel's time, which a paused machine does not count."""
        now = self._kernel.time() if self._stopped is None else self._stopped
        # Rounded up: who sleeps for what is left until a moment by this clock must find it reached, rounding or not.
        return math.ceil((now - behind) * TICKS) / TICKS if behind else now

    def ahead(self, at: float) -> float:
        """By how many seconds the wall clock was ahead at a moment of the kernel's time."""
        return next((before for jumped, before in self._jumps if at < jumped), self._skew)

    def stop(self) -> None:
        """A hypervisor pauses the machine: only its wall clock, which is right afterwards, counts that time."""
        self._stopped = self._kernel.time()

    def go(self) -> None:
        """It runs again."""
        if self._stopped is not None:
            self._behind += self._kernel.time() - self._stopped
            self._stopped = None

    def sleep(self, seconds: float) -> None:
        """The machine is suspended from now on for so long: its monotonic clock stands still, its boot clock goes on."""
        began, ends = self._asleep
        self._slept += ends - began
        self._asleep = (self._kernel.time(), self._kernel.time() + seconds)

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward, or back."""
        self._jumps.append((self._kernel.time(), self._skew))
        self._skew += seconds
        self._kernel.trace.record("jump", self._kernel.time(), seconds)


class SimRandom:
    """One named stream of randomness. A stream depends on the seed and its name alone: new consumers shift no other."""

    def __init__(self, seed: int, name: str) -> None:
        self._seed = seed
        self._name = name
        # A string seed goes through SHA-512, not through hash(): the same under every PYTHONHASHSEED.
        self._random = random.Random(f"{seed}/{name}")

    def stream(self, name: str) -> "SimRandom":
        """A stream of its own below this one."""
        return SimRandom(self._seed, f"{self._name}/{name}")

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def chance(self, rate: float) -> bool:
        """True at this rate; a rate of 0 or 1 draws too, so that changing a rate does not shift the stream."""
        return self._random.random() < rate

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return self._random.randint(low, high)

    def exponential(self, mean: float) -> float:
        """A waiting time for something that happens once in `mean` on average."""
        return -math.log(1.0 - self._random.random()) * mean


class SimCompute:
    """Runs the function inline, then lets virtual time pass for the work done: the world changes while a plan is made."""

    def __init__(self, seconds: Callable[[object], float] = lambda _result: UNCOUNTED_WORK_SECONDS) -> None:
        """`seconds` says from a result how long its making took, e.g. from the steps that a plan counted."""
        self._seconds = seconds

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        result = function(*args, **kwargs)
        await asyncio.sleep(self._seconds(result))
        return result


class Request(msgspec.Struct, frozen=True):
    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None


class Answer(msgspec.Struct, frozen=True):
    """A `growth.ports.Response`."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""


class SimTransport:
    """HTTP to a cloud in the same process: `cloud` answers the request after the latency of the way there and back.

    At `lost_rate` the cloud acts on the request and its answer is lost; an answer later than the timeout is lost too.
    """

    def __init__(
        self,
        cloud: Callable[[Request], Awaitable[Response]],
        *,
        kernel: Kernel,
        random: SimRandom,
        latency: tuple[float, float] = (0.01, 0.1),
        lost_rate: float = 0.0,
    ) -> None:
        self._cloud = cloud
        self._kernel = kernel
        self._random = random
        self._latency = latency
        self._lost_rate = lost_rate

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, timeout_seconds: float
    ) -> Response:
        there, back = self._random.uniform(*self._latency), self._random.uniform(*self._latency)
        lost = self._random.chance(self._lost_rate)
        self._kernel.trace.record("http", self._kernel.time(), method, url)
        request = Request(method, url, dict(headers), body)
        try:
            answer = await wire.exchange(
                self._kernel,
                lambda: self._cloud(request),
                there=there,
                back=math.inf if lost else back,
                timeout_seconds=timeout_seconds,
            )
        except wire.Lost as error:
            raise TransportError(f"{method} {url}: {error}") from error
        self._kernel.trace.record("answer", self._kernel.time(), answer.status)
        return answer
