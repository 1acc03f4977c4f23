"""The vendor's half of a world whose machines are sold by an API: what every such cloud has, and the way to it.

a replica's provider ── HalfTransport ── fake of the API ── told ──► records ──► registrar, kubelets, invariants
"""

import abc
import asyncio
import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from growth.ports import Response, TransportError
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP, NoCapacity, parse
from growth.sim.clouds.frame import Dropped
from growth.sim.kernel import Kernel
from growth.sim.network import NetworkApi
from growth.sim.ports import Request, SimRandom, SimTransport
from growth.sim.process import Crashed, Process
from growth.sim.seams import Actor, Step
from growth.sim.world.recording import Ground, Records

CLOUD: Final = Actor("cloud")
CONFIG_MAPS: Final = ("", "configmaps")
LOOK_SECONDS: Final = 1.0
# A deletion is done when the world says so, not after a time.
NEVER_SECONDS: Final = 1e7
# How long a late write is on its way.
LATE_SECONDS: Final = (1.0, 20.0)
# There are far fewer writes to a cloud than to an API server.
LATE_TIMES: Final = 5.0


class Fake(Protocol):
    """What every fake of a vendor's API answers, whatever it sells."""

    def advance(self) -> None:
        """Brings it up to the clock."""

    def handle(self, request: Request) -> tuple[Response, float]:
        """The answer, and how long it takes. Raises `Dropped`."""

    def end(self, number: int) -> None:
        """This machine is gone, now and without a word."""


class Half(abc.ABC):
    """One vendor's. `start` it once; `transport` is what a process reaches the API through.

    A vendor's own has its `fake`, and says what becomes of the machines that the fake sells.
    """

    fake: Fake

    def __init__(self, ground: Ground, *, name: str) -> None:
        self.spoiled: Callable[[str], None] = lambda _: None
        """Hears the UID of a claim whose machine failed at the vendor's, or went to another claim: it may have another."""
        self.late = 0.0
        """The share of writes that take `LATE_SECONDS` to arrive, after their sender has died maybe."""
        self.ground = ground
        self.records = Records(ground)
        self.acting = CLOUD
        """Whose request is being performed; what happens by itself is the cloud's own."""
        self._name = name
        ground.witness.listeners.append(self.see)

    def start(self) -> asyncio.Task[None]:
        return self.ground.kernel.create_task(self._run(), name=self._name)

    async def _run(self) -> None:
        while True:
            self.fake.advance()
            await asyncio.sleep(LOOK_SECONDS)

    def disturb(self, rates: Mapping[str, float]) -> None:
        """What goes wrong between a process and the API, by the rates of the cloud's faults; none of them: nothing."""
        self.late = min(1.0, LATE_TIMES * rates.get("late-write", 0.0))

    @abc.abstractmethod
    def reprice(self, factors: Mapping[str, float], prices: Mapping[str, int]) -> None:
        """Prices (billionths an hour, by type) times their factors."""

    @abc.abstractmethod
    def cost(self) -> int:
        """What this cluster's machines cost so far by the vendor's books, in billionths."""

    @abc.abstractmethod
    def restock(self, short: Sequence[NoCapacity]) -> None:
        """None of these can be had, and all others can."""

    def transport(self, actor: Actor, own: Process, network: Callable[[], NetworkApi | None]) -> "HalfTransport":
        """`network` is the process' connection to the API server that says when a request left it."""
        kernel = self.ground.kernel
        random = SimRandom(kernel.seed, f"{own.name} {self._name}")
        return HalfTransport(self, actor, own, network, kernel=kernel, random=random)

    def perform(self, request: Request, actor: Actor) -> tuple[Response, float]:
        """One request of a process, all at once, and how long its answer takes. What it buys or deletes is its act."""
        self.fake.advance()  # what happens by itself until now is nobody's
        self.acting = actor
        try:
            return self.fake.handle(request)
        except Dropped as error:
            raise TransportError(f"{request.method} {request.url}: the connection broke") from error
        finally:
            self.acting = CLOUD

    def see(self, step: Step) -> None:
        """What others do: whoever takes a record away has taken the machine, and people say what is sold out."""
        if step.which != CONFIG_MAPS:
            return
        name = step.key[1]
        if name == FAULTS_CONFIG_MAP:
            self.restock(parse((step.new or {}).get("data") or {})[0].no_capacity)
        elif step.new is None:
            number = self.records.taken(name)
            if number is not None:
                self.fake.end(number)


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
        status = 0
        try:
            answer, seconds = self.half.perform(request, self.actor)
            status = answer.status
        finally:
            self.half.ground.witness.effects.call(self._kernel.time(), self.own.name, request, status)
            if network is not None:
                network.serving = None
        if seconds:
            await asyncio.sleep(seconds)
        return answer


def of_the_way(rates: Mapping[str, float]) -> dict[str, float]:
    """How often calls go wrong in ways that every vendor's fake knows, by the rates of the cloud's faults."""
    error, lost = rates.get("cloud-error", 0.0), rates.get("cloud-answer-lost", 0.0)
    return {
        "rate_limit": error / 2,
        "server_error": error / 2,
        "bad_gateway": error / 2,
        "lost_request": error / 2,
        "lost_answer": lost / 2,
        "half_done": lost / 2,
        "slow": error / 4,
    }


def sold_out(short: Sequence[NoCapacity], kind: str, place: str) -> bool:
    """Whether there is none of this type there, as people say it to the simulated cloud."""
    return any(
        fnmatch.fnmatchcase(kind, each.pattern[0]) and fnmatch.fnmatchcase(place, each.pattern[1]) for each in short
    )
