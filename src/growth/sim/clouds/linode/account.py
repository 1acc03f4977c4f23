"""One account: its clusters, pools and instances, and what is under way with them."""

import dataclasses
import datetime as dt
import itertools
from collections.abc import Callable
from typing import Final

from growth.ports import Random
from growth.sim.clouds.estate import Estate
from growth.sim.clouds.ledger import Purchase
from growth.sim.clouds.linode.faults import GOOD, LATE_SECONDS, Faults
from growth.sim.clouds.linode.market import KINDS, REGIONS, Kind, Market
from growth.sim.clouds.linode.objects import ENTERPRISE, STANDARD, Cluster, Instance, Lock, Node, PlacementGroup, Pool
from growth.sim.clouds.linode.wire import Refusal

# From when to when, in seconds.
Span = tuple[float, float]

LOCKED: Final = "This resource is locked and cannot be deleted."
NO_CAPACITY: Final = "Insufficient capacity for the requested plan in this region. Please try again later."
NOT_SOLD: Final = (
    "The Linode plan you chose is not currently available in the selected region. Please select another region or plan type,"
    " or contact Support for assistance."
)
IMAGES: Final = {
    "linode/ubuntu22.04": "Ubuntu 22.04 LTS",
    "linode/ubuntu24.04": "Ubuntu 24.04",
    "linode/debian11": "Debian 11",
    "linode/debian12": "Debian 12",
    "linode/almalinux9": "AlmaLinux 9",
    "linode/rocky9": "Rocky Linux 9",
}
VERSIONS: Final[dict[str, tuple[str, ...]]] = {
    STANDARD: ("1.34", "1.33", "1.32"),
    ENTERPRISE: ("v1.33.4+lke1", "v1.32.8+lke3", "v1.31.9+lke6"),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """`instance`: until a node has its machine. `listed`: until an enterprise pool lists a node."""

    instance: Span = (1.0, 4.0)
    listed: Span = (30.0, 60.0)
    boot: Span = (20.0, 50.0)
    delete: Span = (3.0, 15.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one cluster and of the account."""

    nodes: int = 250
    instances: int = 1000


class Account(Estate[Instance]):
    """`told` hears of instances: bought, running, tagged, deleting, gone."""

    def __init__(self, *, market: Market, limits: Limits, times: Times, random: Random, now: dt.datetime) -> None:
        super().__init__(now=now)
        self.began = now
        self.market = market
        self.limits = limits
        self.times = times
        self.faults: Faults = GOOD
        self.clusters: dict[int, Cluster] = {}
        self.pools: dict[int, Pool] = {}
        self.instances: dict[int, Instance] = {}
        self.tags: set[str] = set()
        self.firewalls: dict[int, str] = {}
        self.placement_groups: dict[int, PlacementGroup] = {}
        self.locks: dict[int, Lock] = {}
        self.images: dict[str, str] = dict(IMAGES)
        self.without_cloud_init: set[str] = set()
        self._random = random
        self._numbers = itertools.count(100_001)

    # -- time and chance ------------------------------------------------------------------------------------------

    def number(self) -> int:
        return next(self._numbers)

    def chance(self, rate: float) -> bool:
        return self._random.uniform(0.0, 1.0) < rate

    def _in(self, span: Span, happens: Callable[[], None], *, more: float = 0.0) -> None:
        at = self.now + dt.timedelta(seconds=self._random.uniform(*span) + more)
        self.later(at, lambda _: happens())

    # -- clusters and pools -------------------------------------------------------------------------------------

    def add_cluster(self, label: str, *, region: str, tier: str) -> Cluster:
        version = VERSIONS[tier][0]
        cluster = Cluster(
            id=self.number(), label=label, region=region, tier=tier, k8s_version=version, created=self.now
        )
        self.clusters[cluster.id] = cluster
        return cluster

    def pools_of(self, cluster: int) -> list[Pool]:
        return [pool for pool in self.pools.values() if pool.cluster.id == cluster]

    def scale(self, pool: Pool, count: int) -> None:
        """Up: new nodes. Down: the youngest go. All or nothing."""
        grown = count - pool.count
        if grown > 0:
            inside = sum(each.count for each in self.pools_of(pool.cluster.id))
            if inside + grown > self.limits.nodes:
                raise Refusal(400, f"Cluster node limit of {self.limits.nodes} exceeded", field="count")
            self.take(pool.kind.id, pool.cluster.region, grown)
            for _ in range(grown):
                self._add_node(pool)
        else:
            self._give_back_missing(pool, pool.count - max(count, len(pool.nodes)))
            while len(pool.nodes) > count:
                self._end_node(pool, pool.nodes[-1])
        pool.count = count

    def take(self, kind: str, region: str, number: int) -> None:
        """So many of the stock, or a refusal: of a plan that the region lacks as of something that is forbidden."""
        if not self.market.is_sold(kind, region):
            raise Refusal(403, NOT_SOLD)
        if self.chance(self.faults.unavailable) or not self.market.take(kind, region, number):
            raise Refusal(400, NO_CAPACITY)

    def _give_back_missing(self, pool: Pool, number: int) -> None:
        """So many of its nodes that were asked for and never came are asked for no longer."""
        for _ in range(number):
            self.market.give_back(pool.kind.id, pool.cluster.region)

    def _add_node(self, pool: Pool) -> None:
        partial, stuck, late = (
            self.chance(rate) for rate in (self.faults.partial, self.faults.stuck, self.faults.late_id)
        )
        if partial:
            return
        lag = self._random.uniform(*self.times.listed) if pool.cluster.enterprise else 0.0
        node = Node(
            id=f"{pool.id}-{self._random.uuid().replace('-', '')[:12]}",
            shown_from=self.now + dt.timedelta(seconds=lag),
        )
        pool.nodes.append(node)
        if not stuck:
            self._give_instance(pool, node, more=LATE_SECONDS if late else 0.0)

    def _give_instance(self, pool: Pool, node: Node, *, more: float = 0.0) -> None:
        def happens() -> None:
            if pool.id not in self.pools or node not in pool.nodes:
                return
            node.stocked = node.stocked or self.market.take(pool.kind.id, pool.cluster.region, 1)
            if not node.stocked:
                self._give_instance(pool, node, more=LATE_SECONDS)
                return
            auto = (f"lke{pool.cluster.id}", f"nodepool={pool.id}") if pool.cluster.enterprise else ()
            tags = (*pool.tags, *auto) if pool.cluster.enterprise else ()
            instance = self.buy(
                label=f"lke{pool.cluster.id}-{node.id}",
                kind=pool.kind,
                region=pool.cluster.region,
                tags=tags,
                cluster=pool.cluster.id,
                pool=pool.id,
                node=node.id,
            )
            instance.settings = {"disk_encryption": pool.disk_encryption}
            node.instance = instance.id

        self._in(self.times.instance, happens, more=more)

    def remove_node(self, pool: Pool, node: Node) -> None:
        self._end_node(pool, node)
        pool.count = max(pool.count - 1, 0)

    def _end_node(self, pool: Pool, node: Node) -> None:
        pool.nodes.remove(node)
        if node.instance is not None and node.instance in self.instances:
            self.take_down(self.instances[node.instance])
        elif node.stocked:
            self.market.give_back(pool.kind.id, pool.cluster.region)

    def remove_pool(self, pool: Pool) -> None:
        self._give_back_missing(pool, pool.count - len(pool.nodes))
        for node in list(pool.nodes):
            self._end_node(pool, node)
        del self.pools[pool.id]

    # -- instances ----------------------------------------------------------------------------------------------

    def buy(
        self,
        *,
        label: str,
        kind: Kind,
        region: str,
        tags: tuple[str, ...] = (),
        cluster: int | None = None,
        pool: int | None = None,
        node: str = "",
        booted: bool = True,
    ) -> Instance:
        instance = Instance(
            id=self.number(),
            label=label,
            kind=kind,
            region=region,
            created=self.now,
            tags=tags,
            tags_from=self.now,
            cluster=cluster,
            pool=pool,
            node=node,
        )
        self.instances[instance.id] = instance
        self.tags |= set(tags)
        hourly, monthly = self.market.price(kind.id, region)
        self.ledger.bought(
            Purchase(
                server=instance.id,
                name=label,
                type=kind.id,
                location=region,
                labels={},
                bought=self.now,
                hourly=hourly,
                monthly=monthly,
            )
        )
        self.tell("bought", instance)

        def runs() -> None:
            if instance.status == "provisioning" and not booted:
                instance.status = "offline"
            elif instance.status == "provisioning":
                self._up(instance)

        self._in(self.times.boot, runs)
        return instance

    def _up(self, instance: Instance) -> None:
        instance.status, instance.running_since = "running", self.now
        for each in self.pools[instance.pool].nodes if instance.pool in self.pools else ():
            each.ready = each.ready or each.instance == instance.id
        self.tell("running", instance)

    def power(self, instance: Instance, doing: str, *, on: bool) -> None:
        """It is `doing` that for a while, and then it runs, or does not."""
        instance.status = doing

        def done() -> None:
            if instance.status == doing and on:
                self._up(instance)
            elif instance.status == doing:
                instance.status, instance.running_since = "offline", None

        self._in(self.times.boot, done)

    def retag(self, instance: Instance, tags: tuple[str, ...]) -> None:
        instance.listed_tags = instance.listed_tags if self.now < instance.tags_from else instance.tags
        instance.tags = tags
        lag = LATE_SECONDS if self.chance(self.faults.late_tags) else 0.0
        instance.tags_from = self.now + dt.timedelta(seconds=lag)
        self.tags |= set(tags)
        self.tell("tagged", instance)

    def take_down(self, instance: Instance) -> None:
        """It goes, after a while; an LKE node whose machine was taken from it gets another."""
        if instance.status == "deleting":
            return
        instance.status = "deleting"
        self.tell("deleting", instance)
        pool = self.pools.get(instance.pool) if instance.pool is not None else None
        for node in pool.nodes if pool is not None else ():
            if pool is not None and node.instance == instance.id:
                node.instance, node.ready, node.stocked = None, False, False
                self._give_instance(pool, node)
        self._in(self.times.delete, lambda: self.end(instance.id))

    def end(self, number: int) -> None:
        """The instance is gone, now and without a word; LKE gives its node another."""
        instance = self.instances.get(number)
        if instance is None:
            return
        if instance.status != "deleting":
            self.take_down(instance)
        del self.instances[number]
        self.locks = {each: lock for each, lock in self.locks.items() if lock.instance is not instance}
        self.market.give_back(instance.kind.id, instance.region)
        self.ledger.ended(number, self.now)
        self.tell("gone", instance)

    # -- truth --------------------------------------------------------------------------------------------------

    def validate(self) -> None:
        standing = {each.server for each in self.ledger.standing}
        assert standing == set(self.instances), "the ledger and the account differ"
        for pool in self.pools.values():
            assert len(pool.nodes) <= pool.count, f"pool {pool.id} has more nodes than its count says"


def region_of(name: str) -> bool:
    """Whether machines there get user data. `KeyError` where there is no such region."""
    return REGIONS[name][0]


def kind_of(name: str) -> Kind | None:
    return KINDS.get(name)
