"""Linode's cloud in the simulated world: the fake of LKE's API, and a record of each machine that is claimed.

LKE sells capacity of a pool, and a machine becomes a claim's when its tags say so. Then it gets its record, as the act of
whoever wrote the tags. Whose it is when they change: `belonging`.
"""

import asyncio
import contextvars
import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.providers import numbered
from growth.providers.catalogues.linode import PODS
from growth.providers.kwok.faults import NoCapacity
from growth.providers.kwok.records import Record, State
from growth.sim.clouds.linode import FakeSettings, Faults, LinodeFake, Times
from growth.sim.clouds.linode.market import KINDS
from growth.sim.clouds.linode.objects import Instance
from growth.sim.ports import SimClock, SimRandom
from growth.sim.seams import Step
from growth.sim.world.belonging import Tagged, owners
from growth.sim.world.half import CLOUD, NEVER_SECONDS, Half, of_the_way, sold_out
from growth.sim.world.recording import LONG_AFTER, Ground, at_once, record_of, taints_of
from growth.units import print_micro_time

ENDPOINT: Final = "https://linode.test/v4beta"
TOKEN: Final = "b41c7e9fd20a6835e1f4c09d7ab35268"  # noqa: S105 - of no account
NAME: Final = "linode"
REGION: Final = "us-east"
CLUSTER_TAG: Final = "growth.dev/cluster:"
UID_TAG: Final = "growth.dev/uid:"
SCHEME: Final = "linode://"
CLAIMS: Final = (NODE_CLAIM.group, NODE_CLAIM.plural)
UNCLAIMED_SECONDS: Final = 5.0
# What a kubelet leaves to pods of the memory that is advertised, and what it keeps from them of the CPU.
POD_PERCENT: Final = 93
CPU_KEPT: Final = 100
MIB: Final = 1 << 20


class LinodeHalf(Half):
    """Its LKE cluster is called as its tier is."""

    fake: LinodeFake

    def __init__(self, ground: Ground, *, tier: str) -> None:
        super().__init__(ground, name=NAME)
        self.fake = LinodeFake(
            clock=SimClock(ground.kernel),
            random=SimRandom(ground.kernel.seed, NAME),
            settings=FakeSettings(
                tier=tier,
                region=REGION,
                cluster=tier,
                tokens=frozenset({TOKEN}),
                times=Times(boot=(5.0, 15.0), delete=(NEVER_SECONDS, NEVER_SECONDS)),
            ),
        )
        self.fake.account.told.append(self._told)

    def disturb(self, rates: Mapping[str, float]) -> None:
        super().disturb(rates)
        error = rates.get("cloud-error", 0.0)
        self.fake.faults = Faults(
            **of_the_way(rates),
            busy=error / 2,
            unavailable=error / 4,
            partial=error / 4,
            late_id=error,
            stuck=error / 4,
            late_tags=error,
        )

    def cost(self) -> int:
        books, now = self.fake.ledger, self.fake.account.now
        return int(sum(each.cost(now) for each in books.purchases) * 10**9)

    def reprice(self, factors: Mapping[str, float], prices: Mapping[str, int]) -> None:
        for name in prices:
            self.fake.market.reprice(name, Decimal(str(round(factors.get(name, 1.0), 4))))

    def restock(self, short: Sequence[NoCapacity]) -> None:
        for kind in KINDS:
            self.fake.market.stock(kind, REGION, 0 if sold_out(short, kind, REGION) else None)

    # What becomes of instances.

    def _told(self, what: str, instance: Instance) -> None:
        match what:
            case "tagged":
                self._follow(instance.id)
            case "running":
                at = print_micro_time(self._joins(instance))
                self.records.change(instance.id, {"registersAt": at}, by=CLOUD)
            case "deleting":
                self.records.change(instance.id, {"state": State.DELETING.value}, by=self.acting)
                if instance.id not in self.records:
                    self.ground.kernel.create_task(self._end(instance.id), name="unclaimed")
            case "gone":
                self.records.remove(instance.id, by=CLOUD)
                if any(self._waits(each) for each in self._instances.values()):
                    self._follow_soon()
            case _:
                return

    async def _end(self, number: int) -> None:
        """What nobody claimed has no record whose end the world could wait for."""
        await asyncio.sleep(UNCLAIMED_SECONDS)
        self.fake.end(number)

    def _joins(self, instance: Instance) -> dt.datetime:
        since = instance.running_since
        return self.fake.account.now + LONG_AFTER if since is None else since + self.ground.boot

    # Whose machines are.

    @property
    def _instances(self) -> Mapping[int, Instance]:
        return self.fake.account.instances

    def see(self, step: Step) -> None:
        """Also which machine a claim names from now on."""
        super().see(step)
        if step.which == CLAIMS and step.new is not None:
            number, uid = _named(step.new), step.new["metadata"]["uid"]
            new = step.old is None or _named(step.old) != number
            if new and number is not None and number in self._instances and self.records.claims().get(number) != uid:
                self._follow_soon()

    def _follow_soon(self) -> None:
        """After the request that is being performed: what it changes is its own act."""
        contextvars.Context().run(self.ground.kernel.call_soon, self._follow, None)

    def _follow(self, tagged: int | None) -> None:
        """Every machine's record becomes that of the claim that has it now. `tagged` has just got its tags.

        Who loses a machine without having named it will buy another; who has another that was tagged before has bought none.
        """
        claims = {each.metadata.uid: each for each in at_once(self.ground.admin.list(NODE_CLAIM)).items}
        were = self.records.claims()
        uids = {_bare(uid): uid for uid in (*were.values(), *claims)}
        now = owners(
            [
                Tagged(each.id, uids.get(uid := self._tagged(each), uid), going=each.status == "deleting")
                for each in self._instances.values()
            ],
            names={uid: _number(each.status.provider_id) for uid, each in claims.items()},
            were=were,
        )
        for number, uid in were.items():
            if now.get(number) != uid:
                self.records.remove(number, by=CLOUD)
                self.spoiled(uid)
        for number, uid in now.items():
            if were.get(number) != uid:
                if number != tagged:
                    self.spoiled(uid)
                self.records.add(number, self._record(self._instances[number], claims[uid]), by=self.acting)

    def _waits(self, instance: Instance) -> bool:
        """Whether it has a claim's tags and no record: the claim had another before it, or is gone."""
        return bool(self._tagged(instance)) and instance.id not in self.records and instance.status != "deleting"

    def _tagged(self, instance: Instance) -> str:
        """The UID of a claim, as tags hold it; empty where it has none, or is another cluster's."""
        if f"{CLUSTER_TAG}{self.ground.cluster}" not in instance.tags:
            return ""
        return next((_bare(each.removeprefix(UID_TAG)) for each in instance.tags if each.startswith(UID_TAG)), "")

    def _record(self, instance: Instance, claim: NodeClaim) -> Record:
        kind = instance.kind
        return record_of(
            claim=claim.metadata.name,
            claim_uid=claim.metadata.uid,
            provider_id=f"{SCHEME}{instance.id}",
            type_=kind.id,
            zone=instance.region,
            arch="amd64",
            cpu=1000 * kind.vcpus,
            cpu_kept=CPU_KEPT,
            memory=kind.memory * MIB,
            pod_percent=POD_PERCENT,
            disk=kind.disk * MIB,
            pods=PODS,
            taints=self._taints(instance, claim),
            registers_at=self._joins(instance),
        )

    def _taints(self, instance: Instance, claim: NodeClaim) -> Sequence[Json]:
        """A node of LKE has those of its pool, whatever its claim says; another machine those of its claim."""
        if instance.pool is None:
            return taints_of(claim)
        pool = self.fake.account.pools.get(instance.pool)
        return [{name: value for name, value in each.items() if value} for each in pool.taints] if pool else []


def _named(claim: Json) -> int | None:
    return _number(claim.get("status", {}).get("providerID", ""))


def _number(provider_id: str) -> int | None:
    return numbered.number_of(provider_id, scheme=SCHEME)


def _bare(uid: str) -> str:
    """Tags hold UIDs without their dashes."""
    return uid.replace("-", "")
