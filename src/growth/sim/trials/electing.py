"""Two replicas want to lead; networks break, processes die or freeze, wall clocks are wrong, and writes arrive late.

The leader's work is the pattern that all of Growth uses: reserve in one object with its revision as precondition, then
create under a name that follows from the reservation.

Promises that are checked: whoever passes the gate holds the Lease on the server at that moment, and its last renewal was
sent less than the renew deadline ago; a process that loses the lease ends itself at the deadline; and writes that land
after another replica has taken over change nothing in the end: the end state is that of a run without them.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from growth.api.coordination import LEASE
from growth.api.core import CONFIG_MAP
from growth.api.kinds import Json
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, GateClosed, KubeError, NotFound
from growth.kube.lease import DEFAULT_LEASE, Elector, LeaseGate, LeaseLost
from growth.kube.memory import MemoryApi, MemoryServer
from growth.kube.passing import PassingApi, Write
from growth.sim import kernel as sim
from growth.sim import process
from growth.sim.kernel import Kernel
from growth.sim.network import Faults, NetworkApi
from growth.sim.ports import SimClock, SimRandom
from growth.sim.process import Exit, Fate, Process

R = TypeVar("R")

NAMESPACE: Final = "kube-system"
ITEMS: Final = 20
REPLICAS: Final = ("a", "b")
RESTART_SECONDS: Final = 5.0
# Then quiet: long enough for the rest of the work and for the latest of the late writes.
DISTURBED_SECONDS: Final = 450.0
RUN_SECONDS: Final = 700.0

SHAKY: Final = Faults(latency=(0.005, 0.8), server_error=0.03, unreachable=0.03, lost_answer=0.02, conflict=0.02)

State = Mapping[str, Mapping[str, str]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    """What one run was like. `late` writes landed while another replica held the Lease than the one that sent them."""

    seed: int
    digest: str
    state: State
    terms: int
    lost: int
    crashed: int
    passed: int
    refused: int
    late: int


@dataclasses.dataclass(slots=True)
class _Counts:
    terms: int = 0
    lost: int = 0
    crashed: int = 0
    passed: int = 0
    refused: int = 0
    late: int = 0


def elect(
    seed: int, *, shuffle: bool = False, hold_writes: bool = True, preconditions: bool = True, gated: bool = True
) -> Elected:
    """One run. `preconditions` and `gated` are switched off by tests that want to see the checks fail."""
    counts = _Counts()

    async def main(kernel: Kernel) -> State:
        random = SimRandom(seed, "electing")
        server = MemoryServer(SimClock(kernel), random.stream("server"))
        admin = MemoryApi(server, user="admin")
        body: Json = {"metadata": {"name": "pool"}, "data": {"next": "0"}}
        await admin.create(CONFIG_MAP, body, namespace=NAMESPACE)
        replicas = [
            _Replica(kernel, server, random.stream(name), counts, name, preconditions=preconditions, gated=gated)
            for name in REPLICAS
        ]
        keeping = [kernel.create_task(replica.keep(), name=f"keep {replica.name}") for replica in replicas]
        disturbing = kernel.create_task(_disturb(kernel, replicas, random.stream("fate"), hold_writes=hold_writes))
        await asyncio.sleep(RUN_SECONDS)
        assert not any(task.done() for task in keeping), "the trial's own tasks ended early"
        await disturbing
        for replica in replicas:
            assert replica.broken is None, replica.broken
        items = (await admin.list(CONFIG_MAP, namespace=NAMESPACE)).items
        return {item.metadata.name: dict(item.data) for item in items}

    done = sim.run(main, seed=seed, shuffle=shuffle, keep=40)
    return Elected(seed=seed, digest=done.digest, state=done.value, **dataclasses.asdict(counts))


def without_late_writes() -> State:
    """The end state of an undisturbed run."""
    return {"pool": {"next": str(ITEMS)}, **{f"item-{number}": {"paid": "1"} for number in range(ITEMS)}}


class _Witness:
    """The gate of the leader's writes, and a second opinion on it."""

    def __init__(self, replica: "_Replica", gate: LeaseGate, renewals: list[float], identity: str) -> None:
        self._replica = replica
        self._gate = gate
        self._renewals = renewals
        self._identity = identity

    def check(self) -> None:
        replica = self._replica
        try:
            if replica.gated:
                self._gate.check()
        except GateClosed:
            replica.counts.refused += 1
            raise
        replica.counts.passed += 1
        age = replica.kernel.time() - self._renewals[-1]
        if age >= DEFAULT_LEASE.renew_deadline_seconds:
            replica.broken = f"{self._identity} passed the gate {age} s after its last renewal"
        holder = replica.holder()
        if holder != self._identity:
            replica.broken = f"{self._identity} passed the gate while {holder} held the lease"


class _Renewals(PassingApi):
    """Notes when each renewal that succeeded was sent, independently of the elector's own books."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.sent: list[float] = []

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:  # noqa: ARG002 - an elector writes its Lease and nothing else
        sent = sim.current().time()
        done = await send()
        self.sent.append(sent)
        return done


class _LateCounter(PassingApi):
    """The server's side of one process's connection: counts writes that land when another replica leads."""

    def __init__(self, api: Api, *, replica: "_Replica", identity: str) -> None:
        super().__init__(api)
        self._replica = replica
        self._identity = identity

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:  # noqa: ARG002 - any write
        self._replica.note_landing(self._identity)
        return await send()


class _Replica:
    """One replica of the Deployment: a process that is started again whenever it has ended."""

    def __init__(
        self,
        kernel: Kernel,
        server: MemoryServer,
        random: SimRandom,
        counts: _Counts,
        name: str,
        *,
        preconditions: bool,
        gated: bool,
    ) -> None:
        self.kernel = kernel
        self.name = name
        self.counts = counts
        self.gated = gated
        self.broken: str | None = None
        self.thawed = 0.0
        self.process: Process | None = None
        self.identity = ""
        self.networks: tuple[NetworkApi, ...] = ()
        self._server = server
        self._random = random
        self._preconditions = preconditions
        # An hour wrong either way: leases must not care.
        self.clock = SimClock(kernel, skew_seconds=random.uniform(-3600, 3600))

    def holder(self) -> str:
        """Who holds the Lease, as the server has it now."""
        leases = self._server.resource(LEASE.group, LEASE.version, LEASE.plural)
        try:
            return str(self._server.get(leases, "growth", namespace=NAMESPACE).object["spec"]["holderIdentity"])
        except NotFound:
            return ""

    def note_landing(self, sender: str) -> None:
        if self.holder() not in {"", sender}:
            self.counts.late += 1

    async def keep(self) -> None:
        number = 0
        while True:
            number += 1
            self.identity = f"{self.name}-{number}"
            self.process = process.start(self.kernel, self.identity, self._main)
            ended = await self.process.wait()
            self._judge(ended)
            await asyncio.sleep(self._random.uniform(0.5, 2.0) * RESTART_SECONDS)

    def _judge(self, ended: Exit) -> None:
        if ended.fate is Fate.CRASHED:
            self.counts.crashed += 1
            return
        self.counts.lost += 1
        if not isinstance(ended.error, LeaseLost):
            self.broken = f"{self.identity} ended by {ended.error!r} and not by the loss of its lease"
            return
        renewals = self._renewals
        age = ended.at - max(renewals[-1], self.thawed - DEFAULT_LEASE.renew_deadline_seconds)
        if age > DEFAULT_LEASE.renew_deadline_seconds + 1e-6:
            self.broken = f"{self.identity} lived on for {age} s after its last renewal"

    async def _main(self, own: Process) -> None:
        identity, random = self.identity, self._random.stream(self.identity)
        electing = NetworkApi(
            MemoryApi(self._server, user=identity),
            kernel=self.kernel,
            random=random.stream("elector network"),
            process=own,
            faults=SHAKY,
        )
        noting = _Renewals(electing)
        self._renewals = noting.sent
        elector = Elector(
            noting,
            clock=self.clock,
            random=random.stream("elector"),
            name="growth",
            namespace=NAMESPACE,
            identity=identity,
        )
        landing = _LateCounter(MemoryApi(self._server, user=identity), replica=self, identity=identity)
        working = NetworkApi(
            landing,
            kernel=self.kernel,
            random=random.stream("work network"),
            process=own,
            gate=_Witness(self, elector.gate, noting.sent, identity),
            faults=SHAKY,
        )
        self.networks = (electing, working)
        await elector.run(lambda: self._work(working, random.stream("pace")))

    async def _work(self, api: NetworkApi, random: SimRandom) -> None:
        """Goes on until the process ends; a closed gate does not stop it, so that the gate is put to the test."""
        self.counts.terms += 1
        while True:
            with contextlib.suppress(KubeError):
                await self._step(api)
            await asyncio.sleep(random.uniform(0.5, 3.0))

    async def _step(self, api: NetworkApi) -> None:
        pool = await api.get(CONFIG_MAP, "pool", namespace=NAMESPACE)
        reserved = int(pool.data["next"])
        listed = await api.list(CONFIG_MAP, namespace=NAMESPACE)
        there = {item.metadata.name for item in listed.items}
        for number in range(reserved):
            if f"item-{number}" not in there:
                with contextlib.suppress(AlreadyExists):
                    await api.create(CONFIG_MAP, _item(number), namespace=NAMESPACE)
        if reserved < ITEMS:
            revision = pool.metadata.resource_version if self._preconditions else ""
            patch = {"data": {"next": str(reserved + 1)}}
            await api.patch(CONFIG_MAP, "pool", patch, namespace=NAMESPACE, revision=revision)
            await self._pay(api, reserved)
        else:
            await asyncio.sleep(RUN_SECONDS)  # done: nobody repairs what a late write spoils

    async def _pay(self, api: NetworkApi, number: int) -> None:
        """A number that was reserved twice is paid twice, and that shows for ever."""
        try:
            await api.create(CONFIG_MAP, _item(number), namespace=NAMESPACE)
        except AlreadyExists:
            item = await api.get(CONFIG_MAP, f"item-{number}", namespace=NAMESPACE)
            paid = {"data": {"paid": str(int(item.data["paid"]) + 1)}}
            await api.patch(CONFIG_MAP, item.metadata.name, paid, namespace=NAMESPACE)


def _item(number: int) -> Json:
    return {"metadata": {"name": f"item-{number}"}, "data": {"paid": "1"}}


async def _disturb(kernel: Kernel, replicas: list[_Replica], random: SimRandom, *, hold_writes: bool) -> None:
    """Again and again something happens to whoever leads."""
    while kernel.time() < DISTURBED_SECONDS:
        await asyncio.sleep(random.uniform(10.0, 30.0))
        what, hold = random.choice(("partition", "partition", "crash", "freeze", "jump")), random.uniform(12.0, 90.0)
        heal = random.uniform(5.0, 60.0)
        leader = next((one for one in replicas if one.holder() == one.identity), None)
        if leader is None or leader.process is None or leader.process.dead or leader.process.frozen:
            continue
        electing, working = leader.networks
        if what == "jump":
            leader.clock.jump(random.uniform(-7200, 7200))
        elif what == "freeze":
            leader.process.freeze(heal)
            leader.thawed = kernel.time() + heal
        elif what == "crash":
            if hold_writes:
                working.hold_next_write(hold)
            leader.process.crash_after_write(random.between(1, 3))
        else:
            if hold_writes:
                working.hold_next_write(hold)
                await asyncio.sleep(4.0)  # so that there is a write to hold
            electing.partition()
            kernel.call_later(heal, electing.heal)
