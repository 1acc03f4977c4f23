"""Clusters, pools and nodes of LKE."""

from collections.abc import Sequence
from typing import Final

import msgspec

from growth.api.kinds import Json
from growth.sim.clouds.frame import Reply
from growth.sim.clouds.linode.account import LOCKED, VERSIONS, Account, kind_of
from growth.sim.clouds.linode.bodies import Autoscaler, NewPool, PoolChange, check_keys, read
from growth.sim.clouds.linode.market import NANODE
from growth.sim.clouds.linode.objects import STANDARD, Cluster, Node, Pool
from growth.sim.clouds.linode.tags import checked
from growth.sim.clouds.linode.wire import Query, Refusal, invalid, not_found, page

MOST_NODES: Final = 100


class Lke:
    def __init__(self, account: Account) -> None:
        self._account = account

    def clusters(self, query: Query, filter_: str, *, beta: bool) -> Reply:
        bodies = [each.body(beta=beta) for each in self._account.clusters.values()]
        return page(bodies, query, filter_, by=("id", "label", "region", "tags", "k8s_version", "status"))

    def cluster(self, number: int, *, beta: bool) -> Reply:
        return Reply(200, self._cluster(number).body(beta=beta))

    def versions(self, query: Query, filter_: str, *, tier: str = "") -> Reply:
        """Those of a tier say so; without one those of the standard tier."""
        if (tier or STANDARD) not in VERSIONS:
            raise not_found()
        bodies = [_version(each, tier) for each in VERSIONS[tier or STANDARD]]
        return page(bodies, query, filter_, by=("id", "tier") if tier else ("id",))

    def version(self, version: str, *, tier: str = "") -> Reply:
        if version not in VERSIONS.get(tier or STANDARD, ()):
            raise not_found()
        return Reply(200, _version(version, tier))

    def pools(self, cluster: int, query: Query, filter_: str, *, beta: bool) -> Reply:
        self._cluster(cluster)
        bodies = [each.body(self._account.now, beta=beta) for each in self._account.pools_of(cluster)]
        # Tags of pools are accepted in a filter and do nothing: nobody can rely on them.
        return page(bodies, query, filter_, by=("id", "type", "label"), inert=("tags",))

    def create_pool(self, cluster: int, body: Json, *, beta: bool) -> Reply:
        within, asked = self._cluster(cluster), read(body, NewPool)
        kind, count = kind_of(asked.type), _count(asked.count)
        if kind is None:
            raise invalid("type", "A valid plan type by that ID was not found")
        if kind.kind == NANODE:
            raise invalid("type", f"The Linode type {kind.id} is not supported by LKE")
        pool = Pool(
            id=self._account.number(),
            cluster=within,
            kind=kind,
            k8s_version=within.k8s_version,
            created=self._account.now,
            autoscaler={"enabled": False, "min": count, "max": count},
            disk_encryption=asked.disk_encryption or "enabled",
        )
        self._change(pool, asked)
        self._account.pools[pool.id] = pool
        try:
            self._account.scale(pool, count)
        except Refusal:
            del self._account.pools[pool.id]
            raise
        return Reply(200, pool.body(self._account.now, beta=beta))

    def pool(self, cluster: int, number: int, *, beta: bool) -> Reply:
        return Reply(200, self._pool(cluster, number).body(self._account.now, beta=beta))

    def update_pool(self, cluster: int, number: int, body: Json, *, beta: bool) -> Reply:
        pool, asked = self._pool(cluster, number), read(body, PoolChange)
        count = None if asked.count is None else _count(asked.count)
        if count is not None:
            self._unlocked(pool.nodes[count:])
        self._change(pool, asked)
        if count is not None:
            self._account.scale(pool, count)
        return Reply(200, pool.body(self._account.now, beta=beta))

    def delete_pool(self, cluster: int, number: int) -> Reply:
        pool = self._pool(cluster, number)
        self._unlocked(pool.nodes)
        self._account.remove_pool(pool)
        return Reply(200, {})

    def recycle(self, cluster: int, number: int | None = None, node: str = "") -> Reply:
        """Machines are replaced: the node stays and gets another."""
        self._cluster(cluster)
        pools = [self._pool(cluster, number)] if number is not None else self._account.pools_of(cluster)
        nodes = [self._node(cluster, node)[1]] if node else [each for pool in pools for each in pool.nodes]
        self._unlocked(nodes)
        for each in nodes:
            if each.instance is not None:
                self._account.take_down(self._account.instances[each.instance])
        return Reply(200, {})

    def node(self, cluster: int, name: str) -> Reply:
        return Reply(200, self._node(cluster, name)[1].body())

    def delete_node(self, cluster: int, name: str) -> Reply:
        pool, node = self._node(cluster, name)
        self._unlocked([node])
        self._account.remove_node(pool, node)
        return Reply(200, {})

    # -- finding and checking -------------------------------------------------------------------------------------

    def _cluster(self, number: int) -> Cluster:
        if number not in self._account.clusters:
            raise not_found()
        return self._account.clusters[number]

    def _pool(self, cluster: int, number: int) -> Pool:
        self._cluster(cluster)
        pool = self._account.pools.get(number)
        if pool is None or pool.cluster.id != cluster:
            raise not_found()
        return pool

    def _node(self, cluster: int, name: str) -> tuple[Pool, Node]:
        self._cluster(cluster)
        for pool in self._account.pools_of(cluster):
            for node in pool.nodes:
                if node.id == name and node.shown_from <= self._account.now:
                    return pool, node
        raise not_found()

    def _unlocked(self, nodes: Sequence[Node]) -> None:
        """Refused where the machine of one of them is locked."""
        machines = [self._account.instances.get(each.instance or 0) for each in nodes]
        if any(each is not None and each.locks for each in machines):
            raise Refusal(400, LOCKED)

    def _change(self, pool: Pool, asked: PoolChange) -> None:
        """Everything is checked before anything is changed."""
        check_keys(asked)
        tags = checked(asked.tags) if asked.tags is not None else pool.tags
        enterprise = pool.cluster.enterprise
        for field in ("k8s_version", "update_strategy", "firewall_id"):
            if getattr(asked, field) is not None and not enterprise:
                raise invalid(field, f"{field} is only available for LKE Enterprise")
        version = asked.k8s_version or pool.k8s_version
        if enterprise and version not in VERSIONS[pool.cluster.tier]:
            raise invalid("k8s_version", "k8s_version is not valid")
        firewall = asked.firewall_id or pool.firewall_id
        if firewall and firewall not in self._account.firewalls:
            raise invalid("firewall_id", "Firewall not found")
        pool.autoscaler = _autoscaler(pool.autoscaler, asked.autoscaler)
        pool.tags, pool.k8s_version, pool.firewall_id = tags, version, firewall
        pool.update_strategy = asked.update_strategy or pool.update_strategy
        pool.labels = asked.labels if asked.labels is not None else pool.labels
        pool.label = asked.label or pool.label
        if asked.taints is not None:
            pool.taints = [{"key": each.key, "value": each.value or "", "effect": each.effect} for each in asked.taints]


def _version(version: str, tier: str) -> Json:
    return {"id": version, **({"tier": tier} if tier else {})}


def _count(value: int | None) -> int:
    if value is None or not 1 <= value <= MOST_NODES:
        raise invalid("count", f"Must be 1-{MOST_NODES}")
    return value


def _autoscaler(held: Json, asked: Autoscaler | None) -> Json:
    named = msgspec.to_builtins(asked) if asked is not None else {}
    found: Json = {**held, **{name: value for name, value in named.items() if value is not None}}
    if asked is not None and not 1 <= found["min"] <= found["max"] <= MOST_NODES:
        raise invalid("autoscaler", f"min and max must be 1-{MOST_NODES}, and min not greater than max")
    return found
