"""Linode's cloud in the simulated world: the fake of LKE's API, and a record of each claimed machine where the world keeps its own.

As with Hetzner's (`growth.sim.world.hetzner`), with one difference: LKE sells capacity of a pool, and a machine becomes a
claim's when its tags say so. Then it gets its record, as the act of whoever wrote the tags.
"""

import asyncio
import contextlib
import datetime as dt
import fnmatch
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, NotFound
from growth.ports import Response, TransportError
from growth.providers.catalogues.linode import PODS
from growth.providers.kwok import records
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP, parse
from growth.providers.kwok.records import Record, State
from growth.sim.clouds.frame import Dropped
from growth.sim.clouds.linode import FakeSettings, Faults, LinodeFake, Times
from growth.sim.clouds.linode.market import KINDS
from growth.sim.clouds.linode.objects import Instance
from growth.sim.kernel import Kernel
from growth.sim.network import NetworkApi
from growth.sim.ports import Request, SimClock, SimRandom
from growth.sim.process import Process
from growth.sim.seams import Actor, Step, Witness
from growth.sim.world.half import LATE_TIMES, HalfTransport, at_once
from growth.units import print_micro_time
from growth.units.resources import quantities

ENDPOINT: Final = "https://linode.test/v4beta"
TOKEN: Final = "b41c7e9fd20a6835e1f4c09d7ab35268"  # noqa: S105 - of no account
REGION: Final = "us-east"
USER: Final = "growth-kwok"
CLUSTER_TAG: Final = "growth.dev/cluster:"
UID_TAG: Final = "growth.dev/uid:"
CONFIG_MAPS: Final = ("", "configmaps")
LOOK_SECONDS: Final = 1.0
# A deletion is done when the world says so, not after a time.
NEVER_SECONDS: Final = 1e7
UNCLAIMED_SECONDS: Final = 5.0
LONG_AFTER: Final = dt.timedelta(days=3650)
# Of the memory that is advertised: what a kernel shows of it, and what a kubelet leaves of that to pods.
MEMORY_PERCENT: Final = 96
POD_PERCENT: Final = 93
CPU_KEPT: Final = 100
MIB: Final = 1 << 20


class LinodeHalf:
    """The vendor's half of the world. `start` it once. Its LKE cluster is called as its tier is."""

    def __init__(
        self,
        kernel: Kernel,
        witness: Witness,
        *,
        cluster: str,
        namespace: str,
        boot_seconds: float,
        admin: Api,
        tier: str,
    ) -> None:
        self.fake = LinodeFake(
            clock=SimClock(kernel),
            random=SimRandom(kernel.seed, "linode"),
            settings=FakeSettings(
                tier=tier,
                region=REGION,
                cluster=tier,
                tokens=frozenset({TOKEN}),
                times=Times(boot=(5.0, 15.0), delete=(NEVER_SECONDS, NEVER_SECONDS)),
            ),
        )
        self.spoiled: Callable[[str], None] = lambda _: None
        self.late = 0.0
        self._kernel = kernel
        self._witness = witness
        self._cluster = cluster
        self._namespace = namespace
        self._boot = dt.timedelta(seconds=boot_seconds)
        self._admin = admin
        self._actor = Actor("cloud")
        self._now = self._actor
        self._recorded: dict[int, str] = {}  # instances by number: the name of their record
        self.fake.account.told.append(self._told)
        witness.listeners.append(self._see)

    def start(self) -> asyncio.Task[None]:
        return self._kernel.create_task(self._run(), name="linode")

    async def _run(self) -> None:
        while True:
            self.fake.advance()
            await asyncio.sleep(LOOK_SECONDS)

    def disturb(self, rates: Mapping[str, float]) -> None:
        error, lost = rates.get("cloud-error", 0.0), rates.get("cloud-answer-lost", 0.0)
        self.fake.faults = Faults(
            rate_limit=error / 2,
            server_error=error / 2,
            bad_gateway=error / 2,
            lost_request=error / 2,
            lost_answer=lost / 2,
            half_done=lost / 2,
            busy=error / 2,
            slow=error / 4,
            late_id=error,
            stuck=error / 4,
        )
        self.late = min(1.0, LATE_TIMES * rates.get("late-write", 0.0))

    def cost(self) -> int:
        books, now = self.fake.ledger, self.fake.account.now
        return int(sum(each.cost(now) for each in books.purchases) * 10**9)

    def reprice(self, factors: Mapping[str, float], prices: Mapping[str, int]) -> None:
        for name in prices:
            self.fake.market.reprice(name, Decimal(str(round(factors.get(name, 1.0), 4))))

    def transport(self, actor: Actor, own: Process, network: Callable[[], NetworkApi | None]) -> HalfTransport:
        random = SimRandom(self._kernel.seed, f"{own.name} linode")
        return HalfTransport(self, actor, own, network, kernel=self._kernel, random=random)

    def perform(self, request: Request, actor: Actor) -> tuple[Response, float]:
        self.fake.advance()  # what happens by itself until now is nobody's
        self._now = actor
        try:
            return self.fake.handle(request)
        except Dropped as error:
            raise TransportError(f"{request.method} {request.url}: the connection broke") from error
        finally:
            self._now = self._actor

    # What becomes of instances.

    def _told(self, what: str, instance: Instance) -> None:
        match what:
            case "tagged":
                self._follow_tags(instance)
            case "running":
                self._patch(instance, {"registersAt": print_micro_time(self._joins(instance))}, self._actor)
            case "deleting":
                self._patch(instance, {"state": State.DELETING.value}, self._now)
                if instance.id not in self._recorded:
                    self._kernel.create_task(self._end(instance.id), name="unclaimed")
            case "gone":
                self._forget(instance)
            case _:
                return

    async def _end(self, number: int) -> None:
        """What nobody claimed has no record whose end the world could wait for."""
        await asyncio.sleep(UNCLAIMED_SECONDS)
        self.fake.end(number)

    def _joins(self, instance: Instance) -> dt.datetime:
        since = instance.running_since
        return self.fake.account.now + LONG_AFTER if since is None else since + self._boot

    def _follow_tags(self, instance: Instance) -> None:
        uid = _value(instance, UID_TAG)
        if f"{CLUSTER_TAG}{self._cluster}" not in instance.tags or not uid:
            self._forget(instance)
            return
        if instance.id in self._recorded:
            return
        claim = self._claim(uid)
        if claim is None:
            return
        body = records.config_map(self._record(instance, claim), cluster=self._cluster)
        with contextlib.suppress(AlreadyExists):
            at_once(self._api(self._now).create(CONFIG_MAP, body, namespace=self._namespace))
            self._recorded[instance.id] = body["metadata"]["name"]

    def _forget(self, instance: Instance) -> None:
        name = self._recorded.pop(instance.id, "")
        if name:
            with contextlib.suppress(NotFound):
                at_once(self._api(self._actor).delete(CONFIG_MAP, name, namespace=self._namespace))

    def _patch(self, instance: Instance, data: Mapping[str, str], actor: Actor) -> None:
        name = self._recorded.get(instance.id)
        if name is not None:
            with contextlib.suppress(NotFound):
                change = {"data": dict(data)}
                at_once(self._api(actor).patch(CONFIG_MAP, name, change, namespace=self._namespace))

    def _api(self, actor: Actor) -> Api:
        return self._witness.api(actor, user=USER)

    def _record(self, instance: Instance, claim: NodeClaim) -> Record:
        """What its kubelet will say: less memory than is advertised, as real ones do."""
        kind = instance.kind
        memory = kind.memory * MIB
        size = {"cpu": 1000 * kind.vcpus, "pods": PODS, "ephemeral-storage": kind.disk * MIB}
        taints = [
            {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
            for taint in (*claim.spec.taints, *claim.spec.startup_taints)
        ]
        return Record(
            claim=claim.metadata.name,
            claim_uid=claim.metadata.uid,
            provider_id=f"linode://{instance.id}",
            instance_type=kind.id,
            zone=instance.region,
            capacity_type=names.ON_DEMAND,
            reservation="",
            state=State.PENDING,
            registers_at=self._joins(instance),
            labels={
                names.ARCH_LABEL: "amd64",
                names.OS_LABEL: "linux",
                names.INSTANCE_TYPE_LABEL: kind.id,
                names.ZONE_LABEL: instance.region,
                names.REGION_LABEL: instance.region,
            },
            taints=tuple(taints),
            capacity=quantities({**size, "memory": memory * MEMORY_PERCENT // 100}),
            allocatable=quantities(
                {**size, "cpu": 1000 * kind.vcpus - CPU_KEPT, "memory": memory * POD_PERCENT // 100}
            ),
        )

    def _claim(self, uid: str) -> NodeClaim | None:
        listed = at_once(self._admin.list(NODE_CLAIM)).items
        return next((each for each in listed if uid in {each.metadata.uid, each.metadata.uid.replace("-", "")}), None)

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

    def _restock(self, data: Mapping[str, str]) -> None:
        """What cannot be had, as people say it to the simulated cloud."""
        short = parse(data)[0].no_capacity
        for kind in KINDS:
            none = any(
                fnmatch.fnmatchcase(kind, each.pattern[0]) and fnmatch.fnmatchcase(REGION, each.pattern[1])
                for each in short
            )
            self.fake.market.stock(kind, REGION, 0 if none else None)


def _value(instance: Instance, prefix: str) -> str:
    return next((each.removeprefix(prefix) for each in instance.tags if each.startswith(prefix)), "")
