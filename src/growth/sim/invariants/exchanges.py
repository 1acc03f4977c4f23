"""Promises about growth pools whose machines are exchanged: minima hold, and in the end everything is what the pool asks for."""

import math
from collections.abc import Iterator

from growth.api.kinds import Json
from growth.sim.invariants.books import (
    CLAIMS,
    DO_NOT_DISRUPT,
    GROWTH_POOL_LABEL,
    GROWTH_POOLS,
    NODES,
    REMOVALS,
    Books,
    annotations,
    deleting,
    has_condition,
    holds_node,
    labels,
    provider_id_of,
)
from growth.sim.invariants.facts import LATE_SECONDS, NEWS_SECONDS
from growth.sim.invariants.invariant import Case, Complaint, Quiet
from growth.sim.seams import Step

TYPE = "node.kubernetes.io/instance-type"
PAUSED = "growth.dev/paused"
MOVED = frozenset({"Drifted", "Underutilized"})


class Removing(Quiet):
    """Follows which claims of growth pools a NodeRemovalRequest is of, by name."""

    def __init__(self) -> None:
        self.removed: set[str] = set()

    def follow(self, step: Step) -> None:
        if step.which == REMOVALS:
            (self.removed.discard if step.new is None else self.removed.add)(step.key[1])


class Warm(Removing):
    """Nodes that fell silent, machines that others took and pools that changed count as before until Growth had time to hear of it."""

    name = "warm"
    promise = (
        "no machine of a growth pool is moved away while fewer Ready ones of its type would stay than the pool's min"
    )

    def __init__(self) -> None:
        super().__init__()
        self._silent: dict[str, float] = {}  # by a Node's UID: since when it is not ready, or going
        self._gone: dict[str, float] = {}  # by provider ID: when a Node of it was last ready that is gone
        self._changed: dict[str, float] = {}  # by pool: when its types were last changed
        self._taken: list[tuple[float, str, str]] = []  # claims that others ended: when, of which pool and type

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        before = set(self.removed)
        self.follow(step)
        self._follow(step)
        created = step.which == REMOVALS and step.verb == "create" and step.actor.is_growth
        if not created or step.last["spec"]["reason"] not in MOVED or case.now - case.sent > LATE_SECONDS:
            return
        claim = case.books.find(CLAIMS, step.key[1])
        pool = None if claim is None else case.books.find(GROWTH_POOLS, labels(claim).get(GROWTH_POOL_LABEL, ""))
        if claim is None or pool is None or not self._is_ready(claim, case, news=0.0):
            return
        name, kind = pool["metadata"]["name"], labels(claim).get(TYPE, "").lower()
        least = max(
            (int(each.get("min", 0)) for each in pool["spec"]["serverTypes"] if each["name"].lower() == kind), default=0
        )
        if case.sent - self._changed.get(name, -math.inf) < NEWS_SECONDS:
            return
        staying = [
            each
            for each in case.books.all(CLAIMS)
            if (labels(each).get(GROWTH_POOL_LABEL), labels(each).get(TYPE, "").lower()) == (name, kind)
            and each["metadata"]["name"] not in before | {step.key[1]}
            and not deleting(each)
            and self._is_ready(each, case, news=NEWS_SECONDS)
        ]
        taken = sum(case.sent - at < NEWS_SECONDS and (of, what) == (name, kind) for at, of, what in self._taken)
        if len(staying) + taken < least:
            said = f"{step.key[1]} is moved away, and {len(staying)} Ready machines of type {kind} stay in {name}, min {least}"
            yield Complaint(said, (step.key[1], name))

    def _is_ready(self, claim: Json, case: Case, *, news: float) -> bool:
        """Whether a Node of its machine was Ready so long ago, or is."""
        known = case.sent - news
        if self._gone.get(claim.get("status", {}).get("providerID", ""), -math.inf) > known:
            return True
        return any(self._silent.get(each["metadata"]["uid"], math.inf) > known for each in case.books.nodes_of(claim))

    def _follow(self, step: Step) -> None:
        if step.which == NODES:
            uid = step.last["metadata"]["uid"]
            if step.new is None:
                self._gone[provider_id_of(step.last)] = self._silent.pop(uid, step.at)
            elif has_condition(step.new, "Ready") and not deleting(step.new):
                self._silent.pop(uid, None)
            else:
                self._silent.setdefault(uid, step.at)
        elif step.which == GROWTH_POOLS and (
            step.old is None or step.new is None or step.old["spec"]["serverTypes"] != step.new["spec"]["serverTypes"]
        ):
            self._changed[step.key[1]] = step.at
        elif step.which == CLAIMS and step.key[1] not in self.removed and _begins_to_end(step):
            own = labels(step.last)
            self._taken.append((step.at, own.get(GROWTH_POOL_LABEL, ""), own.get(TYPE, "").lower()))


def _begins_to_end(step: Step) -> bool:
    return step.old is not None and not deleting(step.old) and (step.new is None or deleting(step.new))


def renewed_wrong(books: Books, removed: set[str]) -> Iterator[Complaint]:
    """Machines that are not what their growth pool asks for, and that nothing keeps."""
    for claim in books.all(CLAIMS):
        pool = books.find(GROWTH_POOLS, labels(claim).get(GROWTH_POOL_LABEL, ""))
        if pool is None or not _differs(claim, pool) or _is_kept(claim, pool, books, removed):
            continue
        name, whose = claim["metadata"]["name"], pool["metadata"]["name"]
        yield Complaint(
            f"claim {name} is not what NodePool growth.dev/{whose} asks for, and nothing keeps it", (name, whose)
        )


def _differs(claim: Json, pool: Json) -> bool:
    template, own = pool["spec"].get("template", {}), labels(claim)
    listed = {each["name"].lower() for each in pool["spec"]["serverTypes"]}
    return (
        not (template.get("labels") or {}).items() <= own.items()
        or _taints(claim["spec"].get("taints")) != _taints(template.get("taints"))
        or (TYPE in own and own[TYPE].lower() not in listed)
    )


def _taints(listed: list[Json] | None) -> list[tuple[str, str, str]]:
    return sorted((each["key"], each["effect"], each.get("value") or "") for each in listed or ())


def _is_kept(claim: Json, pool: Json, books: Books, removed: set[str]) -> bool:
    nodes, own = books.nodes_of(claim), pool["metadata"]["name"]
    if deleting(claim) or deleting(pool) or not has_condition(claim, "Initialized") or len(nodes) != 1:
        return True
    mates = [each["metadata"]["name"] for each in books.all(CLAIMS) if labels(each).get(GROWTH_POOL_LABEL) == own]
    if not removed.isdisjoint(mates) or has_condition(pool, "DriftBlocked") or not has_condition(pool, "Ready"):
        return True
    items = (claim, nodes[0], pool)
    if any(
        annotations(each).get(PAUSED, "false") != "false" or annotations(each).get(DO_NOT_DISRUPT) for each in items
    ):
        return True
    budgets = (pool["spec"].get("disruption") or {}).get("budgets") or ()
    if any(each.get("schedule") or str(each["nodes"]).rstrip("%") == "0" for each in budgets):
        return True
    if not has_condition(nodes[0], "Ready") or deleting(nodes[0]):
        return True
    pods = books.pods_on.get(nodes[0]["metadata"]["name"], {}).values()
    return any(holds_node(pod) and _must_stay(pod, books) for pod in pods)


def _must_stay(pod: Json, books: Books) -> bool:
    budgets = books.budgets_of(pod)
    return (
        bool(annotations(pod).get(DO_NOT_DISRUPT))
        or len(budgets) > 1
        or any(not each.get("status", {}).get("disruptionsAllowed") for each in budgets)
    )
