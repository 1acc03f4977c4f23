"""Leader election by a Lease, and the gate that keeps a late leader from writing.

The rules are those of the standard Kubernetes client, so that Growth's replicas and people's tools read the Lease as
usual. Time is counted on each replica's own boot clock, from the moment when *it saw* the record change; the times in the
record are for people. Wrong wall clocks therefore do no harm. The boot clock goes on while the machine is suspended: the
others count that time too, so a leader that slept past its deadline finds the gate closed when it wakes. Waits are timers
of the event loop, which may stand still meanwhile; a timer that fires late closes nothing too late, because every write
asks the gate.

    last renewal sent            renew deadline            lease duration (as others count it, from when they saw it)
    │◄──────── writes pass ──────────►│◄── gate closed, process ends ──►│◄── another replica may lead

A renewal counts from before its request was sent, so the leader's own count always ends first.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from growth.api.coordination import LEASE, Lease
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, ConfigError, GateClosed, KubeError, NotFound
from growth.ports import Clock, Random
from growth.units import print_micro_time

R = TypeVar("R")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Seconds; each must be larger than the next, `lease_seconds` a whole number."""

    lease_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_deadline_seconds > self.retry_seconds > 0:
            raise ValueError(
                "the lease duration must be longer than the renew deadline, and that longer than the retry period: "
                f"{self.lease_seconds} s > {self.renew_deadline_seconds} s > {self.retry_seconds} s does not hold"
            )


DEFAULT_LEASE: Final = LeaseSettings()


class LeaseLost(Exception):
    """This process no longer leads and must end: another may act at any moment."""


class LeaseGate:
    """Open while the last successful renewal is younger than the renew deadline; once shut it stays shut."""

    def __init__(self, clock: Clock, settings: LeaseSettings) -> None:
        self._clock = clock
        self._deadline = settings.renew_deadline_seconds
        self._renewed: float | None = None
        self._shut = False

    @property
    def open_until(self) -> float:
        """On the boot clock; in the past while no lease is held."""
        if self._shut or self._renewed is None:
            return float("-inf")
        return self._renewed + self._deadline

    def check(self) -> None:
        if self._shut:
            raise GateClosed("the lease was lost or given back: this process may no longer write")
        if self._renewed is None:
            raise GateClosed("the lease is not held yet: this process may not write")
        age = self._clock.boot_time() - self._renewed
        if age >= self._deadline:
            self._shut = True
            raise GateClosed(
                f"the lease was last renewed {age:.1f} s ago, the deadline is {self._deadline:.1f} s: "
                "this process may no longer write"
            )

    def renewed(self, at: float) -> None:
        """Told by the elector: a renewal that was sent at `at` has succeeded."""
        if not self._shut:
            self._renewed = at

    def shut(self) -> None:
        """For ever."""
        self._shut = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ElectorStatistics:
    attempts: int = 0
    renewals: int = 0
    failures: int = 0
    leading: bool = False
    holder: str = ""


class Elector:
    """One replica's candidature for one Lease; used once.

    `api` must not be behind `gate`: the elector's own writes carry the Lease's revision and obey their own deadline.
    """

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        random: Random,
        name: str,
        namespace: str,
        identity: str,
        settings: LeaseSettings = DEFAULT_LEASE,
    ) -> None:
        """`identity` must differ between replicas and between restarts, e.g. the host's name and a random part."""
        self.gate = LeaseGate(clock, settings)
        self._api = api
        self._clock = clock
        self._random = random
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._settings = settings
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._leading = False
        self._stale = True
        self._error = ""
        self._attempts = self._renewals = self._failures = 0

    def statistics(self) -> ElectorStatistics:
        return ElectorStatistics(
            attempts=self._attempts,
            renewals=self._renewals,
            failures=self._failures,
            leading=self._leading,
            holder=self._seen.spec.holder_identity if self._seen else "",
        )

    async def run(self, lead: Callable[[], Awaitable[R]]) -> R:
        """Waits for the lease, runs `lead` while holding it, gives it back, and returns what `lead` returned.

        Raises `LeaseLost` when the lease could not be renewed in time. `lead` is then cancelled but not waited for: its
        writes are refused by the gate, and the caller must end the process at once. When `run` itself is cancelled it
        waits for `lead` to end, renewing all the while.
        """
        await self.acquire()
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.ensure_future(self._renew_until_lost())
        cancelled: asyncio.CancelledError | None = None
        try:
            try:
                await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as error:
                cancelled = error
                leading.cancel()
                # The lease is kept while the work puts its things in order.
                await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
            if not leading.done():
                renewing.result()  # raises LeaseLost
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await self.release()
            if cancelled is not None:
                raise cancelled
            return leading.result()
        finally:
            self.gate.shut()
            for task in (leading, renewing):
                task.cancel()
                task.add_done_callback(_forget)

    async def acquire(self) -> None:
        """Returns when the lease is held."""
        settings = self._settings
        while not self._leading:
            self._leading = await self._attempt(self._clock.boot_time() + settings.renew_deadline_seconds)
            if not self._leading:
                await asyncio.sleep(self._patience())

    def _patience(self) -> float:
        """How long to wait before the next attempt to take the lease.

        The standard client waits 1 to 2.2 periods whatever it saw, so that a takeover may take 15 s and twice that. We
        look a little more evenly, and come when the record that we saw runs out: at the latest 18 s after a crash.
        """
        pause = self._settings.retry_seconds * (1.0 + self._random.uniform(0.0, 0.5))
        if self._seen is None or not self._seen.spec.holder_identity:
            return pause
        duration = self._seen.spec.lease_duration_seconds or self._settings.lease_seconds
        left = self._seen_at + duration - self._clock.boot_time()
        # Not all at the same moment; and once it has run out there is nothing to come for in time.
        return min(pause, left * 1.001 + self._random.uniform(0.0, 0.1)) if left > 0 else pause

    @property
    def first(self) -> bool:
        """Whether nobody led before: the Lease never changed hands. Who gave it back may have requests on their way."""
        return self._seen is not None and self._seen.spec.lease_transitions == 0

    async def is_taken(self, api: Api) -> bool:
        """Whether the server knows another holder than us now, over another connection: ours may be the one that is cut."""
        try:
            lease = await api.get(LEASE, self._name, namespace=self._namespace)
        except NotFound:
            return False
        return lease.spec.holder_identity not in {"", self._identity}

    async def release(self) -> None:
        """Gives the lease back, so that the next replica need not wait. Nothing may be written after this.

        A failure is left alone: the lease then runs out by itself.
        """
        self.gate.shut()
        seen = self._seen
        if not self._leading or seen is None:
            return
        self._leading = False
        spec: dict[str, Any] = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
        try:
            async with asyncio.timeout(self._settings.retry_seconds):
                await self._patch(seen, spec)
        except (KubeError, TimeoutError):
            self._failures += 1

    async def _renew_until_lost(self) -> None:
        clock, gate, settings = self._clock, self.gate, self._settings
        # A renewal is a write: three of them within the deadline are enough, and after a failure it is tried sooner.
        calm = max(settings.retry_seconds, settings.renew_deadline_seconds / 3)
        pause = calm
        while True:
            # Not past the deadline: the process must end then, not at the next retry.
            await asyncio.sleep(max(0.0, min(pause, gate.open_until - clock.boot_time())))
            if clock.boot_time() < gate.open_until and await self._attempt(gate.open_until):
                pause = calm
                continue
            pause = settings.retry_seconds
            if clock.boot_time() >= gate.open_until:
                gate.shut()
                self._leading = False
                raise LeaseLost(
                    f"lease {self._namespace}/{self._name} could not be renewed within "
                    f"{settings.renew_deadline_seconds} s{': ' + self._error if self._error else ''}"
                )

    async def _attempt(self, until: float) -> bool:
        """Tries once to take or renew the lease; whether it is ours. Gives up when the boot clock says `until`."""
        self._attempts += 1
        try:
            async with asyncio.timeout(max(0.0, until - self._clock.boot_time())):
                if not await self._take():
                    return False
        except TimeoutError:
            self._error = "no answer in time"
        except ConfigError:
            raise
        except KubeError as error:
            self._error = f"{type(error).__name__}: {error}"
        else:
            self._renewals += 1
            self._error = ""
            return True
        self._failures += 1
        # What the server holds may have changed: look before the next write.
        self._stale = True
        return False

    async def _take(self) -> bool:
        if self._stale or not self._leading:
            await self._look()
        seen = self._seen
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._settings.lease_seconds,
            "renewTime": self._now(),
        }
        if seen is None:
            spec |= {"acquireTime": spec["renewTime"], "leaseTransitions": 0}
            sent = self._clock.boot_time()
            try:
                lease = await self._api.create(
                    LEASE,
                    {
                        "apiVersion": LEASE.api_version,
                        "kind": LEASE.kind,
                        "metadata": {"name": self._name, "namespace": self._namespace},
                        "spec": spec,
                    },
                    namespace=self._namespace,
                )
            except AlreadyExists:
                return False
        else:
            holder = seen.spec.holder_identity
            if holder and holder != self._identity:
                if self._leading:
                    self._error = f"{holder} holds the lease"
                    self.gate.shut()
                    return False
                duration = seen.spec.lease_duration_seconds or self._settings.lease_seconds
                if self._clock.boot_time() < self._seen_at + duration:
                    return False
            if holder != self._identity:
                spec |= {"acquireTime": spec["renewTime"], "leaseTransitions": seen.spec.lease_transitions + 1}
            sent = self._clock.boot_time()
            lease = await self._patch(seen, spec)
        self._see(lease)
        self._stale = False
        self.gate.renewed(sent)
        return True

    async def _look(self) -> None:
        try:
            lease = await self._api.get(LEASE, self._name, namespace=self._namespace)
        except NotFound:
            self._seen = None
            return
        if self._seen is None or lease.spec != self._seen.spec or lease.metadata.uid != self._seen.metadata.uid:
            self._see(lease)
        else:
            self._seen = lease  # the same record at a newer revision; its age goes on

    def _see(self, lease: Lease) -> None:
        self._seen = lease
        self._seen_at = self._clock.boot_time()

    async def _patch(self, seen: Lease, spec: dict[str, Any]) -> Lease:
        return await self._api.patch(
            LEASE,
            self._name,
            {"spec": spec},
            namespace=self._namespace,
            revision=seen.metadata.resource_version,
            uid=seen.metadata.uid,
        )

    def _now(self) -> str:
        return print_micro_time(self._clock.now())


def _forget(task: "asyncio.Future[Any]") -> None:
    """Looks at what a task left behind, so that nobody is told of it."""
    if not task.cancelled():
        task.exception()
