"""An independent count of machines, claims and Nodes, kept from the server's own history, revision by revision.

It shares nothing with the controllers that it watches: raw objects in, complaints out. What it holds against them:

- *limit*: a pool's claims, and the names that it has reserved, are never more than `limits.nodes` once they grew; nor are
  the machines that were ever bought for it. The same for the whole cluster under `max_nodes`, and for a growth pool's
  `max` of each type. A machine whose claim somebody else took away counts no more: until it is found and collected
  nobody can know of it.
- *min*: a machine of a growth pool is taken down by our own decision only while as many as `min` of its type stay.
- *money*: under `max_hourly`, what runs plus the least that the claims under way can cost stays within it.
- *bought twice*: a claim never has a second machine, at no time and under no name.
- *leaked*: a claim does not go while its machine is there.
- *unasked*: no machine appears for which there is no claim (off where writes may land late: then collection takes it).

`settled` compares what is left at the end: every machine has its claim and its Node, and the other way round.
"""

import collections
import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from typing import Final

from growth.api.kinds import Json
from growth.kube.memory import MemoryServer
from growth.kube.memory.store import Watch

MACHINE_LABEL: Final = "growth.dev/kwok-machine"
POOL_LABEL: Final = "karpenter.sh/nodepool"
GROWTH_POOL_LABEL: Final = "growth.dev/pool"
RESERVED: Final = "growth.dev/reserved"
REPLACES: Final = "growth.dev/replaces"
SOFT: Final = "Soft"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
CAPS: Final = "growth-caps"

CLAIMS: Final = ("karpenter.sh", "v1", "nodeclaims")
POOLS: Final = ("karpenter.sh", "v1", "nodepools")
GROWTH_POOLS: Final = ("growth.dev", "v1alpha1", "growthpools")
NODES: Final = ("", "v1", "nodes")
CONFIG_MAPS: Final = ("", "v1", "configmaps")
FOLLOWED: Final = (CLAIMS, POOLS, GROWTH_POOLS, NODES, CONFIG_MAPS)

# (type, zone, capacity type) → billionths of the catalogue's currency per hour
Prices = Mapping[tuple[str, str, str], int]


@dataclasses.dataclass(frozen=True, slots=True)
class Complaint:
    """A promise that was broken, at the server's revision that broke it."""

    rule: str
    revision: int
    said: str

    def __str__(self) -> str:
        return f"{self.rule} at revision {self.revision}: {self.said}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStatistics:
    """What was seen; `most` is the highest count of claims and reserved names of any pool with a limit."""

    revisions: int
    bought: int
    most: int
    most_hourly: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """What the cluster was started with."""

    max_nodes: int | None = None
    max_hourly: int | None = None
    prices: Prices = dataclasses.field(default_factory=dict)


NO_CAPS: Final = Caps()


class Ledger:
    """Feed it with `see`, or `attach` it to a server that has our kinds already."""

    def __init__(self, *, caps: Caps = NO_CAPS, late_writes: bool = False, minima: bool = True) -> None:
        """Without `minima` nobody asks after `min`: where machines vanish, it cannot always hold."""
        self._minima = minima
        self.complaints: list[Complaint] = []
        self._caps = caps
        self._late_writes = late_writes
        self._claims: dict[str, Json] = {}
        self._pools: dict[str, Json] = {}
        self._growth_pools: dict[str, Json] = {}
        self._nodes: dict[str, Json] = {}
        self._machines: dict[str, Json] = {}
        self._reserved_caps: frozenset[str] = frozenset()
        # Records of machines ever, by the claim's UID.
        self._bought: dict[str, dict[str, None]] = {}
        self._pool_of: dict[str, str] = {}  # by the claim's UID, for ever
        self._lost: dict[str, None] = {}  # UIDs of claims that others took away
        self._granted: dict[str, None] = {}  # names of claims that were reserved or there while limits had room for all
        self._replaced: dict[str, None] = {}  # names of claims for which another came, for ever
        self._counts: collections.Counter[str] = collections.Counter()
        self._revisions = 0
        self._most = 0
        self._hourly = 0
        self._most_hourly = 0

    def attach(self, server: MemoryServer) -> None:
        """Follows the server from now on, at every revision, before anybody else can act on it."""
        for which in FOLLOWED:
            resource = server.resource(*which)
            watch = server.watch(resource)
            watch.wake = _Taker(self, which, watch)
            watch.wake()

    def statistics(self) -> LedgerStatistics:
        return LedgerStatistics(
            revisions=self._revisions,
            bought=sum(len(each) for each in self._bought.values()),
            most=self._most,
            most_hourly=self._most_hourly,
        )

    def see(self, which: tuple[str, str, str], change: str, body: Json, *, by_others: bool = False) -> None:
        """One change: ADDED, MODIFIED or DELETED; `by_others` where somebody else than Growth took the object away."""
        self._revisions += 1
        revision = int(body["metadata"]["resourceVersion"])
        name = body["metadata"]["name"]
        gone = change == "DELETED"
        # What is there already and only says something new of itself changes no count.
        known, excused = False, False
        if which == CLAIMS:
            known = not gone and name in self._claims
            excused = known and _replaces(self._claims[name]) != _replaces(body)
            self._see_claim(name, body, revision, gone=gone)
            if gone and by_others:
                self._lost[body["metadata"]["uid"]] = None
        elif which == POOLS:
            _keep(self._pools, name, body, gone=gone)
        elif which == GROWTH_POOLS:
            _keep(self._growth_pools, name, body, gone=gone)
        elif which == NODES:
            _keep(self._nodes, name, body, gone=gone)
            return
        elif MACHINE_LABEL in body["metadata"].get("labels", {}):
            known = not gone and name in self._machines
            self._see_machine(name, body, revision, gone=gone)
        elif name == CAPS:
            self._reserved_caps = frozenset() if gone else frozenset(_names_in(body))
        else:
            return
        if not known:
            self._check_counts(revision)
        elif excused:
            # A move that passed a Soft limit was taken back, and what came for it stays: there are no more than before.
            self._check_counts(revision, bought=False)

    def keep(self, which: tuple[str, str, str], body: Json) -> None:
        """The object is there, however it came: it is counted, and nothing is judged."""
        kept = {CLAIMS: self._claims, POOLS: self._pools, GROWTH_POOLS: self._growth_pools, NODES: self._nodes}
        if which not in kept and MACHINE_LABEL not in body["metadata"].get("labels", {}):
            return
        kept.get(which, self._machines)[body["metadata"]["name"]] = body

    def _see_claim(self, name: str, body: Json, revision: int, *, gone: bool) -> None:
        uid = body["metadata"]["uid"]
        self._pool_of[uid] = body["metadata"].get("labels", {}).get(POOL_LABEL, "")
        _keep(self._claims, name, body, gone=gone)
        if gone:
            there = [machine for machine, record in self._machines.items() if record["data"]["claimUID"] == uid]
            if there:
                self._complain("leaked", revision, f"claim {name} is gone and its machine {there[0]} is not")

    def _see_machine(self, name: str, body: Json, revision: int, *, gone: bool) -> None:
        claim = body["data"]["claimUID"]
        before = self._machines.get(name)
        new = before is None
        _keep(self._machines, name, body, gone=gone)
        if (
            self._minima
            and before is not None
            and before["data"].get("state") != "deleting" == body["data"].get("state")
        ):
            self._check_least(body, revision)
        if gone or not new:
            return
        records = self._bought.setdefault(claim, {})
        records[body["metadata"]["uid"]] = None
        if len(records) > 1:
            self._complain("bought twice", revision, f"{name} is machine number {len(records)} of claim {claim}")
        if not self._late_writes and claim not in {each["metadata"]["uid"] for each in self._claims.values()}:
            self._complain("unasked", revision, f"machine {name} was made for claim {claim}, which is not there")

    # Limits.

    def _check_counts(self, revision: int, *, bought: bool = True) -> None:
        # Pools are asked first: what one has reserved is not yet granted by the cluster.
        everything = set(self._claims) | self._reserved_caps
        known = [uid for each in self._machines.values() if (uid := each["data"]["claimUID"]) not in self._lost]
        for name, pool in self._pools.items():
            reserved = _reserved_in(pool)
            limit = pool["spec"].get("limits", {}).get("nodes")
            if limit is None:
                continue
            own = {claim: body for claim, body in self._claims.items() if self._is_of(body, name)}
            passed: set[str] = set()
            if pool["spec"].get("disruption", {}).get("nodeLimitMode") == SOFT:
                # What is being replaced does not count: it and its replacement stand there until it is gone, even where
                # the replacement was replaced in its turn and has gone first.
                going = {claim for claim in self._replaced if claim in own and _deleting(own[claim])}
                passed = own.keys() & {*_replaced(own), *going}
                self._replaced |= dict.fromkeys(passed)
                reserved -= _replacing_in(pool)
            count = len((reserved | own.keys()) - passed)
            self._most = max(self._most, count)
            self._check_limit(f"NodePool {name}", count, int(limit), revision, bought=bought)
            if count <= int(limit):
                self._granted |= dict.fromkeys(reserved | own.keys())
            elif passed:
                # Above the limit already, and not more so: what replaces comes before what it replaces is gone.
                self._granted |= dict.fromkeys(
                    claim for claim in own if own.keys() & set(_replaces(own[claim]).split(","))
                )
            uids = {own[claim]["metadata"]["uid"] for claim in passed}
            machines = [uid for uid in known if self._pool_of.get(uid, "") == name and uid not in uids]
            # Those of claims that were granted before the limit was lowered may still come.
            granted = {own[claim]["metadata"]["uid"] for claim in own if claim in self._granted}
            new = bought and not granted.issuperset(machines)
            self._check_limit(f"machines of NodePool {name}", len(machines), int(limit), revision, bought=new)
        for name, pool in self._growth_pools.items():
            self._check_growth(name, pool, revision)
        if self._caps.max_nodes is not None:
            self._most = max(self._most, len(everything))
            self._check_limit("the cluster", len(everything), self._caps.max_nodes, revision)
            self._check_limit("machines of the cluster", len(known), self._caps.max_nodes, revision)
        if self._caps.max_hourly is not None:
            hourly = self._cost()
            grew, self._hourly = hourly > self._hourly, hourly
            self._most_hourly = max(self._most_hourly, hourly)
            if grew and hourly > self._caps.max_hourly:
                self._complain("money", revision, f"{hourly} billionths an hour, of {self._caps.max_hourly} allowed")

    def _check_growth(self, name: str, pool: Json, revision: int) -> None:
        text = pool["metadata"].get("annotations", {}).get(RESERVED, "")
        types = {
            claim: _type_of(body)
            for claim, body in self._claims.items()
            if body["metadata"].get("labels", {}).get(GROWTH_POOL_LABEL) == name
        }
        reserved = json.loads(text) if text else {}
        types = {claim: each["instanceType"].lower() for claim, each in reserved.items()} | types
        limit = pool["spec"].get("limits", {}).get("nodes")
        self._most = max(self._most, len(types))
        most = len(types) if limit is None else int(limit)
        self._check_limit(f"growth NodePool {name}", len(types), most, revision)
        for asked in pool["spec"]["serverTypes"]:
            kind = asked["name"].lower()
            count = sum(each == kind for each in types.values())
            self._check_limit(f"type {kind} of growth NodePool {name}", count, int(asked["max"]), revision)

    def _check_least(self, machine: Json, revision: int) -> None:
        """The machine is being taken down. Where its claim goes too somebody else has decided so."""
        claims = {body["metadata"]["uid"]: body for body in self._claims.values()}
        claim = claims.get(machine["data"]["claimUID"])
        if claim is None or _deleting(claim):
            return
        name = claim["metadata"].get("labels", {}).get(GROWTH_POOL_LABEL, "")
        kind = machine["data"]["instanceType"].lower()
        spec = self._growth_pools.get(name, {"spec": {"serverTypes": []}})["spec"]
        limit, least = spec.get("limits", {}).get("nodes"), spec["serverTypes"]
        if limit is not None and self._counts[f"growth NodePool {name}"] > int(limit):
            return  # a limit that was lowered counts more
        wanted = sum(int(each.get("min", 0)) for each in least if each["name"].lower() == kind)
        staying = sum(
            record["data"].get("state") != "deleting"
            and record["data"]["instanceType"].lower() == kind
            and record["data"]["claimUID"] in claims
            and not _deleting(claims[record["data"]["claimUID"]])
            and claims[record["data"]["claimUID"]]["metadata"].get("labels", {}).get(GROWTH_POOL_LABEL) == name
            for record in self._machines.values()
        )
        if staying < wanted:
            said = f"a {kind} of growth NodePool {name} is taken down and {staying} are left, of {wanted} to be kept"
            self._complain("min", revision, said)

    def _is_of(self, claim: Json, pool: str) -> bool:
        return bool(claim["metadata"].get("labels", {}).get(POOL_LABEL) == pool)

    def _check_limit(self, what: str, count: int, limit: int, revision: int, *, bought: bool = True) -> None:
        # A limit that was lowered is exceeded until the surplus is gone; only growth breaks it.
        grew, self._counts[what] = count > self._counts[what], count
        if grew and bought and count > limit:
            self._complain("limit", revision, f"{what}: {count} of {limit}")

    def _cost(self) -> int:
        prices = self._caps.prices
        running = {record["data"]["claimUID"]: record["data"] for record in self._machines.values()}
        running = {uid: data for uid, data in running.items() if uid not in self._lost}
        total = sum(prices[one["instanceType"], one["zone"], one["capacityType"]] for one in running.values())
        return total + sum(
            _least(claim, prices) for claim in self._claims.values() if claim["metadata"]["uid"] not in running
        )

    # The end.

    def settled(self) -> tuple[str, ...]:
        """What does not match now; empty where machines = claims = Nodes."""
        return tuple(self._mismatches())

    def count(self) -> tuple[int, int, int]:
        """Machines, claims, Nodes that there are now."""
        return len(self._machines), len(self._claims), len(self._nodes)

    def _mismatches(self) -> Iterator[str]:
        claims = {body["metadata"]["uid"]: name for name, body in self._claims.items()}
        machines = {record["data"]["claimUID"]: record["data"]["providerID"] for record in self._machines.values()}
        if len(machines) != len(self._machines):
            yield "two machines name the same claim"
        for uid, provider_id in machines.items():
            if uid not in claims:
                yield f"machine {provider_id} has no claim"
        nodes = collections.Counter(body["spec"].get("providerID", "") for body in self._nodes.values())
        for uid, name in claims.items():
            body = self._claims[name]
            if _deleting(body):
                yield f"claim {name} is still going"
            if uid not in machines:
                yield f"claim {name} has no machine"
            elif body.get("status", {}).get("providerID") != machines[uid]:
                yield f"claim {name} does not name its machine {machines[uid]}"
            elif nodes[machines[uid]] != 1:
                yield f"claim {name} has {nodes[machines[uid]]} Nodes"
        known = set(machines.values())
        for name, body in self._nodes.items():
            if body["spec"].get("providerID", "") not in known:
                yield f"Node {name} has no machine"

    def _complain(self, rule: str, revision: int, said: str) -> None:
        self.complaints.append(Complaint(rule, revision, said))


class _Taker:
    """Hands a watch's changes to the ledger at the moment they happen."""

    def __init__(self, ledger: Ledger, which: tuple[str, str, str], watch: Watch) -> None:
        self._ledger = ledger
        self._which = which
        self._watch = watch

    def __call__(self) -> None:
        while self._watch.pending:
            change, stored = self._watch.pending.popleft()
            if stored is not None:
                self._ledger.see(self._which, change, stored.object)


def _keep(kept: dict[str, Json], name: str, body: Json, *, gone: bool) -> None:
    if gone:
        kept.pop(name, None)
    else:
        kept[name] = body


def _type_of(claim: Json) -> str:
    """The type that a claim of a growth pool is for: it lists one."""
    for each in claim["spec"].get("requirements", ()):
        if each["key"] == INSTANCE_TYPE and each["operator"] == "In":
            return str(each["values"][0]).lower()
    return ""


def _reserved_in(pool: Json) -> set[str]:
    text = pool["metadata"].get("annotations", {}).get(RESERVED, "")
    return set(_parsed(text)) if text else set()


def _replacing_in(pool: Json) -> set[str]:
    """The reserved names of machines that replace others."""
    text = pool["metadata"].get("annotations", {}).get(RESERVED, "")
    return {name for name, each in _parsed(text).items() if each.get("replaces")} if text else set()


@functools.lru_cache(maxsize=1000)
def _parsed(text: str) -> Json:
    """What a pool has reserved, which is read at every change of any claim. Not to be changed."""
    found: Json = json.loads(text)
    return found


def _deleting(item: Json) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))


def _replaced(claims: Mapping[str, Json]) -> Iterator[str]:
    """The names of those that another of them replaces."""
    for body in claims.values():
        yield from _replaces(body).split(",")


def _replaces(claim: Json) -> str:
    return str(claim["metadata"].get("annotations", {}).get(REPLACES, ""))


def _names_in(caps: Json) -> Iterator[str]:
    """The reserved names in the ConfigMap of the cluster's caps: whatever its keys, each value maps names."""
    for text in caps.get("data", {}).values():
        found = json.loads(text) if text else {}
        if isinstance(found, dict):
            yield from found


def _least(claim: Json, prices: Prices) -> int:
    """The lowest price at which the claim can be met."""
    allowed: dict[str, set[str]] = {}
    for each in claim["spec"].get("requirements", ()):
        if each["operator"] == "In":
            values = set(each["values"])
            allowed[each["key"]] = allowed.get(each["key"], values) & values
    return min(
        (
            price
            for (kind, zone, capacity), price in prices.items()
            if kind in allowed.get(INSTANCE_TYPE, {kind})
            and zone in allowed.get(ZONE, {zone})
            and capacity in allowed.get(CAPACITY_TYPE, {capacity})
        ),
        default=0,
    )
