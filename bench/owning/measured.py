"""What one scale-up was like, worked out from the audit log and the objects that it left. Pure: values in, values out."""

import dataclasses
import datetime as dt
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from bench.catalogues import CAPACITY_TYPE, ZONE
from bench.owning.audit import Write, split
from growth.api.kinds import Json

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
KUBELETS: Final = "kwok"
# Both autoscalers gather pods for at least a second before they plan, so purchases are at least that far apart; the
# claims of one purchase are created without a pause.
PURCHASE_GAP_SECONDS: Final = 1.0

Prices = Mapping[tuple[str, str, str], float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """One scale-up. Times are seconds after the server accepted the wish for pods; writes are those it applied after that.

    `planned` is the first purchase at the cheapest offering that each claim allows, `cost` what runs in the end, both
    per hour. `second` pods run on machines of a later purchase. `cloud` are the writes that stand for the machines
    themselves (Nodes made, the cloud's own books), whoever made them; they are not among the others.
    """

    last_claim: float
    last_ready: float
    last_bound: float
    last_running: float
    machines: int
    planned: float
    cost: float
    second: int
    claims: int
    nodes: int
    events: int
    leases: int
    decisions: int
    pools: int
    rest: int
    cloud: int
    cpu_seconds: float
    peak_mb: float

    @property
    def writes_per_machine(self) -> float:
        """All but events; the renewals of our Lease too, though Karpenter is run without one."""
        rest = self.leases + self.decisions + self.pools + self.rest
        return (self.claims + self.nodes + rest) / max(1, self.machines)


def prices_of(types: Iterable[Json]) -> Prices:
    """(type, zone, capacity type) → price per hour, of a catalogue in the KWOK provider's format."""
    found = {}
    for each in types:
        for offering in each["offerings"]:
            wanted = {one["key"]: one["values"][0] for one in offering["Requirements"]}
            found[each["name"], wanted[ZONE], wanted[CAPACITY_TYPE]] = float(offering["Price"])
    return found


def cost_of(nodes: Iterable[Json], prices: Prices) -> float:
    """What these Nodes cost per hour, by their labels."""
    labels = [node["metadata"]["labels"] for node in nodes]
    return sum(prices[one[INSTANCE_TYPE], one[ZONE], one[CAPACITY_TYPE]] for one in labels)


def cheapest(claim: Json, prices: Prices) -> float:
    """The lowest price at which a claim can be met."""
    allowed: dict[str, set[str]] = {}
    for each in claim["spec"]["requirements"]:
        if each["operator"] == "In":
            values = set(each["values"])
            allowed[each["key"]] = allowed.get(each["key"], values) & values
    return min(
        price
        for (kind, zone, capacity), price in prices.items()
        if all(
            value in allowed.get(key, {value})
            for key, value in ((INSTANCE_TYPE, kind), (ZONE, zone), (CAPACITY_TYPE, capacity))
        )
    )


def first_purchase(created: Sequence[float]) -> float:
    """When the last claim of the first purchase was created, of all such times."""
    times = sorted(created)
    for this, following in itertools.pairwise(times):
        if following - this >= PURCHASE_GAP_SECONDS:
            return this
    return times[-1]


def scaled(
    log: Sequence[Write],
    *,
    since: float,
    user: str,
    cloud_user: str,
    pods: Sequence[Json],
    nodes: Sequence[Json],
    claims: Sequence[Json],
    prices: Prices,
    cpu_seconds: float,
    peak_bytes: int,
) -> Scaled:
    """The scale-up that began at `since` (seconds since 1970), when everything runs."""
    applied = [write for write in log if write.applied and write.at >= since]
    own = [write for write in applied if write.user == user]
    node_made = [write for write in own if write.resource == "nodes" and write.verb == "create"]
    counted = split(write for write in own if write not in node_made)
    bought = [write.at for write in own if (write.resource, write.verb) == ("nodeclaims", "create")]
    # Claims are stamped in whole seconds; purchases are further apart than that.
    until = math.floor(first_purchase(bought))
    first = [claim for claim in claims if _created(claim) <= until]
    later = {claim["status"]["nodeName"] for claim in claims if _created(claim) > until}
    return Scaled(
        last_claim=max(bought) - since,
        last_ready=max(_firsts(applied, user=KUBELETS, resource="nodes", subresource="status")) - since,
        last_bound=max(write.at for write in applied if write.subresource == "binding") - since,
        last_running=max(_firsts(applied, user=KUBELETS, resource="pods", subresource="status")) - since,
        machines=len(nodes),
        planned=sum(cheapest(claim, prices) for claim in first),
        cost=cost_of(nodes, prices),
        second=sum(pod["spec"]["nodeName"] in later for pod in pods),
        **dataclasses.asdict(counted),
        cloud=len(node_made) + sum(write.user == cloud_user for write in applied),
        cpu_seconds=cpu_seconds,
        peak_mb=peak_bytes / 1e6,
    )


def row(found: Scaled) -> dict[str, Any]:
    """For a table."""
    return {**dataclasses.asdict(found), "writes_per_machine": found.writes_per_machine}


def _created(claim: Json) -> float:
    return dt.datetime.fromisoformat(claim["metadata"]["creationTimestamp"]).timestamp()


def _firsts(log: Iterable[Write], *, user: str, resource: str, subresource: str) -> Iterator[float]:
    """When each object was first written so."""
    seen: dict[str, float] = {}
    for write in log:
        if (write.user, write.resource, write.subresource) == (user, resource, subresource):
            seen.setdefault(write.name, write.at)
    return iter(seen.values())
