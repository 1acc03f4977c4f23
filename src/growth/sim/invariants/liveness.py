"""Liveness: what must be true in the end, when load and faults have been over for a while. Each class is one promise."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.sim.invariants.books import (
    CLAIMS,
    GROWTH_POOL_LABEL,
    GROWTH_POOLS,
    NODES,
    PODS,
    POOL_LABEL,
    POOLS,
    Books,
    annotations,
    deleting,
    finished,
    has_condition,
    holds_node,
    labels,
    node_of,
    owner_kinds,
    provider_id_of,
    tainted,
)
from growth.sim.invariants.exchanges import Removing, renewed_wrong
from growth.sim.invariants.facts import begins_to_go, voluntary
from growth.sim.invariants.invariant import Case, Complaint, Quiet
from growth.sim.invariants.moves import replaces
from growth.sim.invariants.sizes import in_place, wrong_sizes
from growth.sim.ports import EPOCH
from growth.sim.predicates import Host, Scene, fits
from growth.sim.seams import Step
from growth.units import parse_time
from growth.units.resources import amount_of

# So long after everything else has come to rest a removal and a purchase contradict each other.
REST_SECONDS: Final = 600.0
# Nothing was written in the last minutes of an idle cluster.
IDLE_SECONDS: Final = 240.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is asked of the server once, at the end: events and the newest Decisions as raw objects."""

    events: Sequence[Json] = ()
    decisions: Sequence[Json] = ()
    catalogue: Catalogue | None = None
    refuges: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class AtTheEnd(Quiet):
    """An invariant that is judged once."""

    @property
    def rest_at(self) -> float:
        """Not before then, where there is time."""
        return 0.0

    def end(self, case: Case, ending: Ending) -> Iterator[Complaint]:
        del case, ending
        yield from ()


class Bound(AtTheEnd):
    name = "bound"
    promise = "every pod that could run somewhere runs"

    def end(self, case: Case, ending: Ending) -> Iterator[Complaint]:
        books = case.books
        for pod in books.all(PODS):
            if not _pending(pod):
                continue
            pool = self._satisfiable(pod, case, ending)
            if pool:
                name = pod["metadata"]["name"]
                yield Complaint(f"pod {name} is pending, and NodePool {pool} could have a machine for it", (name, pool))

    def _satisfiable(self, pod: Json, case: Case, ending: Ending) -> str:
        books = case.books
        if ending.catalogue is None:
            return ""
        asked = msgspec.convert(pod, Pod, strict=False)
        hosts = [Host.of(msgspec.convert(each, Node, strict=False)) for each in books.all(NODES) if not deleting(each)]
        for host in hosts:
            host.pods += [
                msgspec.convert(each, Pod, strict=False) for each in books.pods_on.get(host.name, {}).values()
            ]
        for pool in books.all(POOLS):
            if _rests(pool, case.now):
                continue
            for kind in ending.catalogue.types:
                for offering in kind.offerings:
                    fresh = _fresh(pool, kind, offering)
                    if fresh is None or not _has_room(pool, kind, books):
                        continue
                    if fits(asked, fresh, Scene(hosts=[*hosts, fresh])):
                        return str(pool["metadata"]["name"])
        for pool in books.all(GROWTH_POOLS):
            name = str(pool["metadata"]["name"])
            if _rests(pool, case.now) or (
                name != "default" and asked.spec.node_selector.get(GROWTH_POOL_LABEL) != name
            ):
                continue
            for kind in ending.catalogue.types:
                if _growth_has_room(pool, kind, books):
                    for offering in kind.offerings:
                        fresh = _fresh(_as_karpenter(pool), kind, offering)
                        if fresh is not None and fits(asked, fresh, Scene(hosts=[*hosts, fresh])):
                            return f"growth.dev/{name}"
        return ""


class Ended(AtTheEnd):
    name = "ended"
    promise = "every deletion comes to its end, unless a pod may not leave"

    def end(self, case: Case, ending: Ending) -> Iterator[Complaint]:
        del ending
        for which, word in ((CLAIMS, "claim"), (NODES, "Node")):
            for each in case.books.all(which):
                if deleting(each) and not self._excused(each, which, case.books):
                    name = each["metadata"]["name"]
                    yield Complaint(f"{word} {name} is still going", (name,))

    @staticmethod
    def _excused(item: Json, which: tuple[str, str], books: Books) -> bool:
        nodes = books.nodes_of(item) if which == CLAIMS else [item]
        return any(
            holds_node(pod) and _may_not_leave(pod, books)
            for node in nodes
            for pod in books.pods_on.get(node["metadata"]["name"], {}).values()
        )


class Calm(AtTheEnd):
    name = "calm"
    promise = "nothing is bought again that was removed while nothing else changed"

    def __init__(self) -> None:
        self._removed = ""
        # Claims that had drifted before all came to rest: what drifts while nothing changes was no reason to remove it.
        self._drifted: set[str] = set()
        # Pools that replace in place, and how many machines each may buy for drifted ones that went first.
        self._owed: Counter[str] = Counter()

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if case.calm_since is None or case.now < case.calm_since + REST_SECONDS:
            if step.which == CLAIMS and step.new is not None and has_condition(step.new, "Drifted"):
                self._drifted.add(step.new["metadata"]["uid"])
            return
        if voluntary(step, case) is not None:
            self._removed = step.key[1]
            if step.which == CLAIMS and self._goes_first(step.last, case.books):
                self._owed[labels(step.last)[POOL_LABEL]] += 1
        elif begins_to_go(step) and step.which == CLAIMS:
            self._removed = ""  # a machine that failed is replaced, whatever was removed before
        elif self._removed and step.actor.is_growth and step.which == CLAIMS and step.old is None:
            if replaces(step.last):
                return  # a move to something cheaper; whether it goes in a circle is another promise
            pool = labels(step.last).get(POOL_LABEL, "")
            if self._owed[pool]:
                self._owed[pool] -= 1
                return
            said = f"claim {step.key[1]} was bought after {self._removed} had been removed, and nothing had changed"
            yield Complaint(said, (step.key[1], self._removed))

    def _goes_first(self, claim: Json, books: Books) -> bool:
        """Whether the claim drifted in a pool that buys the next machine only when the old one is gone."""
        pool = books.find(POOLS, labels(claim).get(POOL_LABEL, ""))
        drifted = claim["metadata"]["uid"] in self._drifted and has_condition(claim, "Drifted")
        return drifted and pool is not None and in_place(pool)


class Idle(AtTheEnd):
    name = "idle"
    promise = "an idle cluster is not written to"

    def __init__(self) -> None:
        self._last: tuple[float, str] = (0.0, "")
        self._before: tuple[float, str] = (0.0, "")

    @property
    def rest_at(self) -> float:
        """By then nothing will have been written for long enough."""
        return self._last[0] + IDLE_SECONDS

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        # A NodeRequest that was fulfilled is forgotten an hour later, whatever else happens.
        forgotten = step.which == ("growth.dev", "noderequests") and step.verb == "delete"
        if step.actor.is_growth and step.which != ("coordination.k8s.io", "leases") and not forgotten:
            self._before, self._last = self._last, (case.now, f"{step.verb} {step.which[1]} {step.key[1]}")
        yield from ()

    def end(self, case: Case, ending: Ending) -> Iterator[Complaint]:
        del ending
        at, what = self._last
        if case.now < self.rest_at:
            yield Complaint(f"{what} {case.now - at:.0f} s before the end, {self._before[1]} before that")


class Reasons(AtTheEnd):
    name = "reasons"
    promise = "every pending pod and every empty node that stays has a reason that people can read"

    def end(self, case: Case, ending: Ending) -> Iterator[Complaint]:
        told = {(each.get("involvedObject") or {}).get("uid", "") for each in ending.events}
        kept = " ".join(
            f"{entry.get('example', '')} {entry.get('reason', '')}"
            for each in ending.decisions
            for entry in (*each["spec"].get("kept", ()), *each["spec"].get("unschedulable", ()))
        )
        books = case.books
        for pod in books.all(PODS):
            meta = pod["metadata"]
            if _pending(pod) and meta["uid"] not in told and meta["name"] not in kept:
                yield Complaint(f"pod {meta['name']} is pending and nobody says why", (meta["name"],))
        for node in books.all(NODES):
            meta = node["metadata"]
            # Of a claim that no pool owns, its maker knows why it is there.
            ours = _in_pool(node, books) and has_condition(node, "Ready")
            pods = books.pods_on.get(meta["name"], {}).values()
            empty = not any(not finished(pod) and not owner_kinds(pod) & {"DaemonSet", "Node"} for pod in pods)
            if ours and empty and not deleting(node) and meta["uid"] not in told and meta["name"] not in kept:
                yield Complaint(f"Node {meta['name']} is empty and stays, and nobody says why", (meta["name"],))


class Settled(AtTheEnd):
    name = "settled"
    promise = "in the end machines, claims and Nodes are the same set, and no mark of ours is left on a Node"

    def end(self, case: Case, ending: Ending) -> Iterator[Complaint]:
        del ending
        books = case.books
        for claim in books.all(CLAIMS):
            name = claim["metadata"]["name"]
            if deleting(claim):
                continue
            if "karpenter.sh/termination" not in claim["metadata"].get("finalizers", ()):
                yield Complaint(f"claim {name} could go before its machine: it has no finalizer", (name,))
            machine, nodes = books.machine_of(claim), books.nodes_of(claim)
            if machine is None:
                yield Complaint(f"claim {name} has no machine", (name,))
            elif not nodes and has_condition(claim, "Registered"):
                yield Complaint(f"claim {name} has no Node", (name,))
            elif not has_condition(claim, "Initialized"):
                yield Complaint(f"claim {name} is not initialised", (name,))
        for node in books.all(NODES):
            name, ours = node["metadata"]["name"], books.claims_on(node)
            if provider_id_of(node) in books.provider_ids and not ours:
                yield Complaint(f"Node {name} has no claim", (name,))
            if ours and tainted(node, "karpenter.sh/disrupted") and not deleting(node) and not deleting(ours[0]):
                yield Complaint(f"Node {name} is still marked as disrupted", (name,))
            if ours and tainted(node, "growth.dev/leaving-soon") and not _pool_moves(ours[0], books):
                yield Complaint(f"Node {name} is still marked as one of the next to go", (name,))


def _pool_moves(claim: Json, books: Books) -> bool:
    """Whether machines of the claim's pool are on their way out, perhaps for good."""
    own = {key: value for key, value in labels(claim).items() if key in {POOL_LABEL, GROWTH_POOL_LABEL}}
    return any(
        labels(each).items() >= own.items() and (deleting(each) or any(map(deleting, books.nodes_of(each))))
        for each in books.all(CLAIMS)
    )


def _in_pool(node: Json, books: Books) -> bool:
    """Whether the Node is of a machine of a NodePool; also where its claim is gone."""
    claims = books.claims_on(node)
    known = provider_id_of(node) in books.provider_ids
    return known and (not claims or any(POOL_LABEL in labels(each) for each in claims))


def _may_not_leave(pod: Json, books: Books) -> bool:
    """Its annotation or its budgets forbid it; more than one budget is more than an API server can evict for."""
    if annotations(pod).get("karpenter.sh/do-not-disrupt") == "true":
        return True
    own = books.budgets_of(pod)
    return len(own) > 1 or any(not each.get("status", {}).get("disruptionsAllowed") for each in own)


def _pending(pod: Json) -> bool:
    """Whether the pod waits for a place; what belongs to one node only is that node's business."""
    if node_of(pod) or finished(pod) or deleting(pod) or pod["spec"].get("schedulingGates"):
        return False
    return not owner_kinds(pod) & {"DaemonSet", "Node"}


def _fresh(pool: Json, kind: InstanceType, offering: Offering) -> Host | None:
    """A new machine of the pool; None where the pool does not sell it."""
    template = pool["spec"]["template"]
    has = {key: values[0] for key, values in kind.labels_of_today.items()}
    has |= {"topology.kubernetes.io/zone": offering.zone, "karpenter.sh/capacity-type": offering.capacity_type}
    has |= {POOL_LABEL: pool["metadata"]["name"], **(template.get("metadata", {}).get("labels") or {})}
    if offering.price is None or offering.reservation:
        return None
    for each in template["spec"].get("requirements", ()):
        if not _meets(each, has.get(each["key"])):
            return None
    node: Json = {
        "metadata": {"name": "fresh", "labels": {**has, "kubernetes.io/hostname": "fresh"}},
        "spec": {"taints": template["spec"].get("taints", [])},
    }
    host = Host.of(msgspec.convert(node, Node))
    host.allocatable = kind.allocatable
    return host


def _as_karpenter(pool: Json) -> Json:
    """A growth pool in the words of the other API, as far as they decide where a pod fits."""
    template = pool["spec"].get("template", {})
    own = {**(template.get("labels") or {}), GROWTH_POOL_LABEL: pool["metadata"]["name"]}
    spec = {"taints": template.get("taints", []), "requirements": []}
    return {"metadata": pool["metadata"], "spec": {"template": {"metadata": {"labels": own}, "spec": spec}}}


def _growth_has_room(pool: Json, kind: InstanceType, books: Books) -> bool:
    """Whether the pool may have one more machine of this type."""
    asked = [each for each in pool["spec"]["serverTypes"] if each["name"].lower() == kind.name.lower()]
    claims = [each for each in books.all(CLAIMS) if labels(each).get(GROWTH_POOL_LABEL) == pool["metadata"]["name"]]
    limit = pool["spec"].get("limits", {}).get("nodes")
    if not asked or deleting(pool) or (limit is not None and len(claims) >= int(limit)):
        return False
    same = sum(labels(each).get("node.kubernetes.io/instance-type", "") in {kind.name, ""} for each in claims)
    return same < int(asked[0]["max"])


def _meets(requirement: Json, value: str | None) -> bool:
    values = requirement.get("values", ())
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
        case "Gte":
            return value is not None and int(value) >= int(values[0])
        case "Lte":
            return value is not None and int(value) <= int(values[0])
        case _:
            return False


def _rests(pool: Json, now: float) -> bool:
    """Whether machines of the pool came in vain for some pods, and none is bought for these before a time still to come."""
    entries = json.loads(annotations(pool).get(names.IN_VAIN_ANNOTATION, "{}"))
    return any((parse_time(each["until"]) - EPOCH).total_seconds() > now for each in entries.values())


def _has_room(pool: Json, kind: InstanceType, books: Books) -> bool:
    """Whether the pool's limits allow one more machine of this type."""
    claims = books.claims_of(pool["metadata"]["name"])
    for resource, limit in pool["spec"].get("limits", {}).items():
        if resource == "nodes":
            if len(claims) >= int(limit):
                return False
            continue
        used = sum(
            amount_of(resource, str(each.get("status", {}).get("capacity", {}).get(resource, "0"))) for each in claims
        )
        if used + kind.capacity.get(resource, 0) > amount_of(resource, str(limit)):
            return False
    return not deleting(pool)


class Sized(AtTheEnd):
    name = "sized"
    promise = "in the end every static pool has its replicas, and no pool keeps more than its limit"

    def end(self, case: Case, ending: Ending) -> Iterator[Complaint]:
        del ending
        for name, said in wrong_sizes(case.books):
            yield Complaint(said, (name,))


class Renewed(AtTheEnd):
    name = "renewed"
    promise = "in the end every machine of a growth pool is what its pool asks for, unless the pool says why not or something keeps it"

    def __init__(self) -> None:
        self._removing = Removing()

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        del case
        self._removing.follow(step)
        yield from ()

    def end(self, case: Case, ending: Ending) -> Iterator[Complaint]:
        del ending
        yield from renewed_wrong(case.books, self._removing.removed)


LIVENESS: Final = (Bound, Ended, Calm, Idle, Reasons, Settled, Sized, Renewed)
