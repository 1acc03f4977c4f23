"""The client and the wire of one simulated process: `kube.Api` with everything that goes wrong between it and a server.

    process ── gate ──► request ──(latency, delay, loss)──► server ──(latency, loss)──► answer ──► process

The gate is asked before the request leaves, as the real client does; a write that passed may therefore land late, after
the process has lost its lease or crashed. Every kind of fault has a rate of its own, and each call draws for all of them
in the same order from the network's own stream, so that changing one rate shifts no other fault.
"""

import asyncio
import contextlib
import dataclasses
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from growth.api.kinds import Json, Kind
from growth.kube.api import ALWAYS_OPEN, Api, Gate, Page, WatchEvent
from growth.kube.errors import Conflict, Gone, OutcomeUnknown, ServerError, TooManyRequests, Unreachable
from growth.kube.passing import PassingApi, Write
from growth.sim import wire
from growth.sim.kernel import GROUP, Kernel
from growth.sim.ports import SimRandom
from growth.sim.process import Crashed, Process

T = TypeVar("T")
R = TypeVar("R")

# What the real client allows for one call.
CALL_SECONDS: Final = 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Rates are per call unless said otherwise; a range is uniform, in seconds. The default is a good network."""

    latency: tuple[float, float] = (0.001, 0.02)
    conflict: float = 0.0
    """Of writes: 409 although nobody else wrote."""
    gone: float = 0.0
    """Of list pages after the first and of watches: 410."""
    throttled: float = 0.0
    """429 with a Retry-After of one second."""
    server_error: float = 0.0
    """500 to 504, nothing changed."""
    unreachable: float = 0.0
    """No connection."""
    lost_request: float = 0.0
    """Sent, never arrived, no answer until the call's deadline."""
    lost_answer: float = 0.0
    """Done by the server, no answer until the call's deadline."""
    broken_answer: float = 0.0
    """Done by the server, and the connection breaks at once."""
    delayed_write: float = 0.0
    """Of writes: the request takes `write_delay`, which may outlast the caller's patience."""
    write_delay: tuple[float, float] = (5.0, 60.0)
    watch_delay: tuple[float, float] = (0.0, 0.02)
    """Of every event; order is kept."""
    watch_cut_seconds: float = math.inf
    """On average a watch breaks after this time."""
    watch_stall_seconds: float = math.inf
    """On average a watch falls silent after this time, without an error."""
    watch_gone: float = 0.0
    """Of watches that break: 410 in the stream instead."""
    late_event: float = 0.0
    """Of events of watches: it and all after it come `event_delay` later."""
    event_delay: tuple[float, float] = (1.0, 10.0)
    repeated_event: float = 0.0
    """Of events of watches: it comes twice."""


GOOD: Final = Faults()

Struck = Callable[[str, bool], None]
"""Told of every fault: its kind in one word or two, and whether it hit a write."""


def _nobody(_kind: str, _write: bool) -> None:  # noqa: FBT001 - a callback's shape
    return


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStatistics:
    """`late` writes were applied after their sender had given up on them or died."""

    calls: int = 0
    writes: int = 0
    refused: int = 0
    faults: int = 0
    late: int = 0
    watches: int = 0
    cut: int = 0


class NetworkApi(PassingApi):
    """`Api` of one process on a server's `Api`, which must itself wait for nothing and have an open gate."""

    def __init__(
        self,
        server: Api,
        *,
        kernel: Kernel,
        random: SimRandom,
        process: Process | None = None,
        gate: Gate = ALWAYS_OPEN,
        faults: Faults = GOOD,
        call_seconds: float = CALL_SECONDS,
        name: str = "",
    ) -> None:
        super().__init__(server)
        self.faults = faults
        """May be exchanged at any time; counts from the next call or event on."""
        self.struck: Struck = _nobody
        self.serving: float | None = None
        """While the server performs a request of this network: when it left the process."""
        self.heard: set[str] = set()
        """Plurals of the kinds of which a whole list has reached the process."""
        self.named = name or (process.name if process is not None else "client")
        self._kernel = kernel
        self._random = random
        self._process = process
        self._gate = gate
        self._call_seconds = call_seconds
        self._name = self.named
        self._partitioned = False
        self._held = 0.0
        self._connections: dict[_Connection, None] = {}
        self._watched = asyncio.Event()
        self._counts: dict[str, int] = {}
        if process is not None:
            process.at_end(self.cut_watches)

    def statistics(self) -> NetworkStatistics:
        return NetworkStatistics(**self._counts)

    # What a test does to the network.

    def partition(self) -> None:
        """Nothing passes from now on: calls cannot connect, answers are lost, watches fall silent."""
        self._partitioned = True
        self._trace("partition")

    def heal(self) -> None:
        """Calls pass again; the watches of before the partition stay silent."""
        self._partitioned = False
        self._trace("heal")

    def cut_watches(self) -> None:
        """Every open watch breaks."""
        for connection in list(self._connections):
            self._drop(connection)
            connection.break_off(OutcomeUnknown("the connection broke"))

    def _drop(self, connection: "_Connection") -> None:
        self._connections.pop(connection, None)
        if not self._connections:
            self._watched.clear()

    async def watched(self) -> None:
        """Returns when a watch is open."""
        while not self._connections:  # it may break between its opening and our turn
            await self._watched.wait()

    def hold_next_write(self, seconds: float) -> None:
        """The next write that passes the gate takes this long to reach the server; not even a partition stops it."""
        self._held = seconds

    # The Api.

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        return await self._call(
            f"get {kind} {namespace}/{name}", lambda: self._api.get(kind, name, namespace=namespace)
        )

    async def list(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        page: str = "",
        revision: str = "",
    ) -> Page[T]:
        answer = await self._call(
            f"list {kind} {namespace} {labels} {fields} {limit} {page}",
            lambda: self._api.list(
                kind, namespace=namespace, labels=labels, fields=fields, limit=limit, page=page, revision=revision
            ),
            may_be_gone=bool(page),
        )
        if not answer.next:
            self.heard.add(kind.plural)
        return answer

    # What is sent is encoded now: what the caller changes later must not change what is on the wire.

    async def create(self, kind: Kind[T], body: msgspec.Struct | Mapping[str, Any], *, namespace: str = "") -> T:
        return await super().create(kind, _encoded(body), namespace=namespace)

    async def update(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> T:
        return await super().update(kind, name, _encoded(body), namespace=namespace, subresource=subresource)

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any] | tuple[Json, ...], **options: Any) -> T:
        sent = _encoded(patch)
        return await super().patch(kind, name, sent if isinstance(sent, dict) else tuple(sent), **options)

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:
        return await self._call(str(write), send, write=True)

    @contextlib.asynccontextmanager
    async def watch(
        self,
        kind: Kind[T],
        *,
        revision: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        timeout_seconds: float = 300.0,
    ) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
        async def connect() -> _Connection:
            connection = _Connection(self, kind)
            source = self._api.watch(
                kind,
                revision=revision,
                namespace=namespace,
                labels=labels,
                fields=fields,
                timeout_seconds=timeout_seconds,
            )
            await connection.open(source)
            return connection

        connection = await self._call(f"watch {kind} {namespace} {revision}", connect, may_be_gone=True)
        self._count("watches")
        self._connections[connection] = None
        self._watched.set()
        try:
            yield connection.events()
        finally:
            self._drop(connection)
            connection.close()

    # The wire.

    async def _call(
        self, what: str, act: Callable[[], Awaitable[R]], *, write: bool = False, may_be_gone: bool = False
    ) -> R:
        self._check_alive()
        if write:
            try:
                self._gate.check()
            except Exception:
                self._count("refused")
                self._trace("refused", what)
                raise
        self._count("calls")
        faults, random = self.faults, self._random
        there, back = random.uniform(*faults.latency), random.uniform(*faults.latency)
        unreachable, lost_request = random.chance(faults.unreachable), random.chance(faults.lost_request)
        lost_answer, broken = random.chance(faults.lost_answer), random.chance(faults.broken_answer)
        refusal = self._refusal(write=write, may_be_gone=may_be_gone)
        delayed, delay = random.chance(faults.delayed_write), random.uniform(*faults.write_delay)
        if self._partitioned or unreachable:
            await asyncio.sleep(there)
            self._fault("unreachable", what, write=write)
            raise Unreachable(f"{what}: connection refused")
        held = self._held if write else 0.0
        if held:
            there, self._held = held, 0.0
            self._fault("held", what, write=write)
        elif write and delayed:
            there = delay
            self._fault("delayed", what, write=write)
        if lost_request:
            there = math.inf
            self._fault("lost request", what, write=write)
        elif lost_answer:
            back = math.inf
            self._fault("lost answer", what, write=write)
        given_up = False
        sent = self._kernel.time()

        async def serve() -> R:
            if not held:
                await self._passage()
            if refusal is not None:
                self._fault(f"refused {refusal.code}", what, write=write)
                raise refusal
            self.serving = sent
            try:
                answer = await act()
            except Exception as error:
                self._trace("answer", what, type(error).__name__)
                raise
            finally:
                self.serving = None
            self._trace("done", what)
            if write:
                self._count("writes")
                if given_up or (self._process is not None and self._process.dead):
                    self._count("late")
                if self._process is not None:
                    self._process.count_write()
            await self._passage()
            if broken:
                self._fault("broken answer", what, write=write)
                raise OutcomeUnknown(f"{what}: the connection broke before the answer was read")
            return answer

        try:
            return await wire.exchange(
                self._kernel,
                serve,
                there=there,
                back=back,
                timeout_seconds=self._call_seconds,
                name=f"{self._name} call",
            )
        except wire.Lost as error:
            raise OutcomeUnknown(f"{what}: {error}") from error
        finally:
            given_up = True

    async def _passage(self) -> None:
        """Returns, unless the network is partitioned: what is on the way then never arrives."""
        if self._partitioned:
            await asyncio.sleep(math.inf)

    def _refusal(self, *, write: bool, may_be_gone: bool) -> Conflict | Gone | TooManyRequests | ServerError | None:
        faults, random = self.faults, self._random
        conflict, gone = random.chance(faults.conflict), random.chance(faults.gone)
        throttled, server_error = random.chance(faults.throttled), random.chance(faults.server_error)
        code = random.choice((500, 502, 503, 504))
        if throttled:
            return TooManyRequests("the server has received too many requests", retry_after_seconds=1.0)
        if server_error:
            return ServerError("the server is in trouble", code=code)
        if write and conflict:
            return Conflict("the object has been modified", reason="Conflict")
        if may_be_gone and gone:
            return Gone("the revision is too old", reason="Expired")
        return None

    def _check_alive(self) -> None:
        group = GROUP.get()
        if (self._process is not None and self._process.dead) or (group is not None and group.dead):
            raise Crashed(f"{self._name} is dead")

    def _fault(self, kind: str, what: str, *, write: bool = False) -> None:
        self._count("faults")
        self._trace("fault", kind, what)
        self.struck(kind, write)

    def _trace(self, *what: str) -> None:
        self._kernel.trace.record(self._kernel.time(), self._name, *what)

    def _count(self, what: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1


def _encoded(body: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


class _Connection:
    """One watch: a task outside the process takes events from the server and lays them before the client."""

    def __init__(self, network: NetworkApi, kind: Kind[Any]) -> None:
        self._network = network
        self._kind = str(kind)
        self._arrived: asyncio.Queue[WatchEvent[Any] | Exception | None] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None
        self._lost = False

    async def open(self, source: contextlib.AbstractAsyncContextManager[AsyncIterator[WatchEvent[Any]]]) -> None:
        """Connects; the server's refusal is raised here. Called outside the process."""
        network = self._network
        random, faults = network._random, network.faults  # noqa: SLF001 - two halves of one thing
        # Infinite means: never.
        cut = random.exponential(1.0) * faults.watch_cut_seconds
        stall = random.exponential(1.0) * faults.watch_stall_seconds
        gone = random.chance(faults.watch_gone)
        opened: asyncio.Future[None] = network._kernel.create_future()  # noqa: SLF001

        async def pump() -> None:
            kernel = network._kernel  # noqa: SLF001
            stalls_at = kernel.time() + stall
            try:
                async with asyncio.timeout(None if cut == math.inf else cut), source as events:
                    opened.set_result(None)
                    async for event in events:
                        await asyncio.sleep(self._delay(random))
                        if not self._lost and (network._partitioned or kernel.time() >= stalls_at):  # noqa: SLF001
                            self._lost = True
                            network._fault("watch silent", self._kind)  # noqa: SLF001
                        self._lay(event)
                        if random.chance(network.faults.repeated_event):
                            network._fault("event repeated", self._kind)  # noqa: SLF001
                            self._lay(event)
                    self._lay(None)
            except TimeoutError:
                network._drop(self)  # noqa: SLF001
                network._count("cut")  # noqa: SLF001
                network._fault("watch gone" if gone else "watch cut", self._kind)  # noqa: SLF001
                self._lay(Gone("too old resource version", reason="Expired") if gone else OutcomeUnknown("it broke"))
            except Exception as error:  # noqa: BLE001 - carried to the client, whatever it is
                if opened.done():
                    self._lay(error)
                else:
                    opened.set_exception(error)

        self._pump = wire.outside(network._kernel, pump, name=f"{network._name} watch {self._kind}")  # noqa: SLF001
        await opened

    def _delay(self, random: SimRandom) -> float:
        faults = self._network.faults
        seconds, late = random.uniform(*faults.watch_delay), random.uniform(*faults.event_delay)
        if random.chance(faults.late_event):
            self._network._fault("event late", self._kind)  # noqa: SLF001
            return late
        return seconds

    def _lay(self, arrived: WatchEvent[Any] | Exception | None) -> None:
        if not self._lost:
            self._arrived.put_nowait(arrived)

    async def events(self) -> AsyncIterator[WatchEvent[Any]]:
        while True:
            arrived = await self._arrived.get()
            if arrived is None:
                return
            if isinstance(arrived, Exception):
                raise arrived
            yield arrived

    def break_off(self, error: Exception) -> None:
        self._lay(error)
        self.close()

    def close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
