"""Hetzner's cloud in the simulated world: the fake of its API, and a record of each machine where the world keeps its own.

The world's parts that bring machines up, and those who count them, read records of machines (`providers.kwok.records`).
A machine that the fake sells gets such a record in the very request that buys it, as the act of whoever asked, and loses it
when it is gone; and whoever takes a record away has taken the machine. Growth never looks at these records: its provider
knows what the API tells, and nothing else.

    a replica's provider ── HalfTransport ── HetznerFake ── told ──► records ──► registrar, kubelets, invariants
"""

import asyncio
import contextlib
import datetime as dt
import fnmatch
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, NotFound
from growth.ports import Response, TransportError
from growth.providers.catalogues.hetzner import CPU_KEPT, CSI_LOCATION_LABEL, HOURS_BILLED, PODS
from growth.providers.kwok import records
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP, parse
from growth.providers.kwok.records import Record, State
from growth.sim.clouds.frame import Dropped
from growth.sim.clouds.hetzner import FakeSettings, Faults, HetznerFake, Times
from growth.sim.clouds.hetzner.objects import Server
from growth.sim.clouds.hetzner.servers import LATE_CODES
from growth.sim.clouds.hetzner.wire import Refusal
from growth.sim.kernel import Kernel
from growth.sim.network import NetworkApi
from growth.sim.ports import Request, SimClock, SimRandom
from growth.sim.process import Process
from growth.sim.seams import Actor, Step, Witness
from growth.sim.world.half import LATE_TIMES, HalfTransport, at_once
from growth.units import print_micro_time
from growth.units.resources import quantities

R = TypeVar("R")

ENDPOINT: Final = "https://hetzner.test/v1"
TOKEN: Final = "Zk4vT9wQxB7nLr2mHc8JpYd5GsF3uEaR"  # noqa: S105 - of no account
USER: Final = "growth-kwok"
CLUSTER_LABEL: Final = "growth.dev/cluster"
CLAIM_UID_LABEL: Final = "growth.dev/claim-uid"
CONFIG_MAPS: Final = ("", "configmaps")
LOOK_SECONDS: Final = 1.0
# A deletion is done when the world says so, not after a time.
NEVER_SECONDS: Final = 1e7
LONG_AFTER: Final = dt.timedelta(days=3650)
# Of the memory that is advertised: what a kernel shows of it, and what a kubelet leaves of that to pods.
MEMORY_PERCENT: Final = 96
POD_PERCENT: Final = 91


class HetznerHalf:
    """The vendor's half of the world. `start` it once; `transport` is what a process reaches the API through."""

    def __init__(
        self,
        kernel: Kernel,
        witness: Witness,
        *,
        cluster: str,
        namespace: str,
        boot_seconds: float,
        admin: Api,
    ) -> None:
        self.fake = HetznerFake(
            clock=SimClock(kernel),
            random=SimRandom(kernel.seed, "hetzner"),
            settings=FakeSettings(times=Times(delete=(NEVER_SECONDS, NEVER_SECONDS)), tokens=frozenset({TOKEN})),
        )
        self.spoiled: Callable[[str], None] = lambda _: None
        """Hears the UID of a claim whose machine failed at the vendor's: another will be bought for it."""
        self.late = 0.0
        self._kernel = kernel
        self._witness = witness
        self._cluster = cluster
        self._namespace = namespace
        self._boot = dt.timedelta(seconds=boot_seconds)
        self._admin = admin
        self._actor = Actor("cloud")
        self._now = self._actor
        self._recorded: dict[int, str] = {}  # servers by number: the name of their record
        self.fake.project.told.append(self._told)
        witness.listeners.append(self._see)

    def start(self) -> asyncio.Task[None]:
        return self._kernel.create_task(self._run(), name="hetzner")

    async def _run(self) -> None:
        while True:
            self.fake.advance()
            await asyncio.sleep(LOOK_SECONDS)

    def disturb(self, rates: Mapping[str, float]) -> None:
        """What goes wrong between a process and the API, by the rates of the cloud's faults; none of them: nothing."""
        error, lost = rates.get("cloud-error", 0.0), rates.get("cloud-answer-lost", 0.0)
        self.fake.faults = Faults(
            rate_limit=error / 2,
            server_error=error / 2,
            bad_gateway=error / 2,
            lost_request=error / 2,
            lost_answer=lost / 2,
            half_done=lost / 2,
            conflict=error / 2,
            slow=error / 4,
            late_failure=error,
        )
        self.late = min(1.0, LATE_TIMES * rates.get("late-write", 0.0))

    def cost(self) -> int:
        """What this cluster's machines cost so far by the vendor's books, in billionths."""
        books, now = self.fake.ledger, self.fake.project.now
        ours = [each for each in books.purchases if each.labels.get(CLUSTER_LABEL) == self._cluster]
        return int(sum(each.cost(now) for each in ours) * 10**9)

    def reprice(self, factors: Mapping[str, float], prices: Mapping[str, int]) -> None:
        """Prices (billionths an hour, by type) times their factors."""
        for name, nano in prices.items():
            monthly = nano * HOURS_BILLED * factors.get(name, 1.0) / 1e9
            self.fake.market.price(name, "*", f"{monthly:.2f}")

    def transport(self, actor: Actor, own: Process, network: Callable[[], NetworkApi | None]) -> "HalfTransport":
        """`network` is the process' connection to the API server that says when a request left it."""
        random = SimRandom(self._kernel.seed, f"{own.name} hetzner")
        return HalfTransport(self, actor, own, network, kernel=self._kernel, random=random)

    def perform(self, request: Request, actor: Actor) -> tuple[Response, float]:
        """One request of a process, all at once, and how long its answer takes. What it buys or deletes is its act."""
        self.fake.advance()  # what happens by itself until now is nobody's
        self._now = actor
        try:
            return self.fake.handle(request)
        except Dropped as error:
            raise TransportError(f"{request.method} {request.url}: the connection broke") from error
        finally:
            self._now = self._actor

    # What becomes of servers.

    def _told(self, what: str, server: Server) -> None:
        if server.labels.get(CLUSTER_LABEL) != self._cluster:
            return
        match what:
            case "bought":
                self._write(server)
            case "running":
                at = print_micro_time(self.fake.project.now + self._boot)
                self._patch(server, {"registersAt": at}, self._actor)
            case "deleting":
                if server.running_since is None and self._failed(server):
                    self.spoiled(server.labels.get(CLAIM_UID_LABEL, ""))
                self._patch(server, {"state": State.DELETING.value}, self._now)
            case _:
                name = self._recorded.pop(server.id, "")
                if name:
                    with contextlib.suppress(NotFound):
                        at_once(self._api(self._actor).delete(CONFIG_MAP, name, namespace=self._namespace))

    def _failed(self, server: Server) -> bool:
        mine = ("server", server.id)
        return any(
            action.failed and mine in action.resources and action.error is not None and action.error[0] in LATE_CODES
            for action in self.fake.project.actions.values()
        )

    def _write(self, server: Server) -> None:
        record = self._record(server)
        body = records.config_map(record, cluster=self._cluster)
        with contextlib.suppress(AlreadyExists):
            at_once(self._api(self._now).create(CONFIG_MAP, body, namespace=self._namespace))
            self._recorded[server.id] = body["metadata"]["name"]

    def _patch(self, server: Server, data: Mapping[str, str], actor: Actor) -> None:
        name = self._recorded.get(server.id)
        if name is not None:
            with contextlib.suppress(NotFound):
                change = {"data": dict(data)}
                at_once(self._api(actor).patch(CONFIG_MAP, name, change, namespace=self._namespace))

    def _api(self, actor: Actor) -> Api:
        return self._witness.api(actor, user=USER)

    def _record(self, server: Server) -> Record:
        """What its kubelet will say: less memory than is advertised, as real ones do."""
        kind = server.type
        memory = int(kind.memory_gb * (1 << 30))
        size = {"cpu": 1000 * kind.cores, "pods": PODS, "ephemeral-storage": kind.disk_gb * 10**9}
        claim = self._claim(server.name)
        taints = [{"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"}]
        if claim is not None:
            taints += [
                {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
                for taint in (*claim.spec.taints, *claim.spec.startup_taints)
            ]
        return Record(
            claim=server.name,
            claim_uid=server.labels.get(CLAIM_UID_LABEL, ""),
            provider_id=f"hcloud://{server.id}",
            instance_type=kind.name,
            zone=server.location,
            capacity_type=names.ON_DEMAND,
            reservation="",
            state=State.PENDING,
            registers_at=self.fake.project.now + LONG_AFTER,
            labels={
                names.ARCH_LABEL: "arm64" if kind.arm else "amd64",
                names.OS_LABEL: "linux",
                names.INSTANCE_TYPE_LABEL: kind.name,
                names.ZONE_LABEL: server.location,
                names.REGION_LABEL: server.location,
                CSI_LOCATION_LABEL: server.location,
            },
            taints=tuple(taints),
            capacity=quantities({**size, "memory": memory * MEMORY_PERCENT // 100}),
            allocatable=quantities(
                {**size, "cpu": 1000 * kind.cores - CPU_KEPT, "memory": memory * POD_PERCENT // 100}
            ),
        )

    def _claim(self, name: str) -> NodeClaim | None:
        try:
            return at_once(self._admin.get(NODE_CLAIM, name))
        except NotFound:
            return None

    # What others do.

    def _see(self, step: Step) -> None:
        if step.which != CONFIG_MAPS:
            return
        name = step.key[1]
        if name == FAULTS_CONFIG_MAP:
            self._restock((step.new or {}).get("data") or {})
        elif step.new is None:
            number = next((each for each, record in self._recorded.items() if record == name), None)
            if number is not None:
                del self._recorded[number]
                self.fake.end(number)
        elif step.old is None:
            cluster = step.new["metadata"].get("labels", {}).get(names.KWOK_MACHINE_LABEL)
            if cluster not in {None, self._cluster}:
                self._foreign(name.removeprefix(names.KWOK_MACHINE_PREFIX), cluster)

    def _restock(self, data: Mapping[str, str]) -> None:
        """What cannot be had, as people say it to the simulated cloud."""
        short = parse(data)[0].no_capacity
        for kind in self.fake.market.types(self.fake.project.now):
            for location, offer in kind.offers.items():
                none = any(
                    fnmatch.fnmatchcase(kind.name, each.pattern[0]) and fnmatch.fnmatchcase(location, each.pattern[1])
                    for each in short
                )
                offer.stock = 0 if none else None

    def _foreign(self, name: str, cluster: str) -> None:
        """A machine of another cluster in the same project."""
        with contextlib.suppress(Refusal):
            self.fake.add_server(
                {"name": name, "server_type": "cx23", "image": "ubuntu-24.04", "labels": {CLUSTER_LABEL: cluster}}
            )
