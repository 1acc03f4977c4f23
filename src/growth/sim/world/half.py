"""The vendor's half of a world whose machines are sold by an API: what every such cloud has, and the way to it."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar

from growth.ports import Response
from growth.sim.kernel import Kernel
from growth.sim.network import NetworkApi
from growth.sim.ports import Request, SimRandom, SimTransport
from growth.sim.process import Crashed, Process
from growth.sim.seams import Actor

R = TypeVar("R")

# How long a late write is on its way.
LATE_SECONDS: Final = (1.0, 20.0)
# There are far fewer writes to a cloud than to an API server.
LATE_TIMES: Final = 5.0


class Half(Protocol):
    """One vendor's."""

    spoiled: Callable[[str], None]
    """Hears the UID of a claim whose machine failed at the vendor's: another will be bought for it."""

    late: float
    """The share of writes that take `LATE_SECONDS` to arrive, after their sender has died maybe."""

    def start(self) -> asyncio.Task[None]: ...

    def disturb(self, rates: Mapping[str, float]) -> None:
        """What goes wrong between a process and the API, by the rates of the cloud's faults; none of them: nothing."""

    def reprice(self, factors: Mapping[str, float], prices: Mapping[str, int]) -> None:
        """Prices (billionths an hour, by type) times their factors."""

    def cost(self) -> int:
        """What this cluster's machines cost so far by the vendor's books, in billionths."""

    def transport(self, actor: Actor, own: Process, network: Callable[[], NetworkApi | None]) -> "HalfTransport":
        """`network` is the process' connection to the API server that says when a request left it."""

    def perform(self, request: Request, actor: Actor) -> tuple[Response, float]:
        """One request of a process, all at once, and how long its answer takes. What it buys or deletes is its act."""


@dataclasses.dataclass
class HalfTransport:
    """`ports.Transport` of one process. A dead process sends nothing more."""

    half: Half
    actor: Actor
    own: Process
    network: Callable[[], NetworkApi | None]
    kernel: dataclasses.InitVar[Kernel]
    random: dataclasses.InitVar[SimRandom]

    def __post_init__(self, kernel: Kernel, random: SimRandom) -> None:
        self._kernel = kernel
        self._wire = SimTransport(self._arrive, kernel=kernel, random=random)
        self._random = random.stream("late")

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, timeout_seconds: float
    ) -> Response:
        if self.own.dead:
            raise Crashed(f"{self.own.name} is dead")
        return await self._wire.request(method, url, headers=headers, body=body, timeout_seconds=timeout_seconds)

    async def _arrive(self, request: Request) -> Response:
        sent = self._kernel.time()
        late, seconds = self._random.chance(self.half.late), self._random.uniform(*LATE_SECONDS)
        if late and request.method != "GET":
            await asyncio.sleep(seconds)
        network = self.network() if not self.own.dead else None
        if network is not None:
            network.serving = sent
        try:
            answer, seconds = self.half.perform(request, self.actor)
        finally:
            if network is not None:
                network.serving = None
        if seconds:
            await asyncio.sleep(seconds)
        return answer


def at_once(call: Coroutine[Any, Any, R]) -> R:
    """The result of a call that waits for nothing, as none of the server in process does."""
    try:
        call.send(None)
    except StopIteration as done:
        value: R = done.value
        return value
    raise AssertionError("a call of the server in process waited")
