"""Promises about moves: pods have a place before their node goes, nodes stay that their pods may not leave, no circles.

Where pods could go is judged by the slow predicates of kube-scheduler (`places`), which share nothing with those who
decide.
"""

import math
from collections.abc import Iterator
from typing import Final

from growth.api.kinds import Json
from growth.sim.invariants.books import (
    BUDGETS,
    CLAIMS,
    DISRUPTED,
    DO_NOT_DISRUPT,
    NODES,
    PODS,
    annotations,
    deleting,
    finished,
    has_condition,
    holds_node,
    labels,
    tainted,
)
from growth.sim.invariants.facts import LATE_SECONDS, NEWS_SECONDS, voluntary
from growth.sim.invariants.invariant import BLINK_SECONDS, Case, Complaint, Quiet
from growth.sim.invariants.places import Places
from growth.sim.seams import Step

REPLACES: Final = "growth.dev/replaces"
# So long after everything else has come to rest a circle is one.
REST_SECONDS: Final = 600.0
# What a machine is: type, zone, terms.
KIND: Final = ("node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type")


def replaces(claim: Json) -> tuple[str, ...]:
    """The names of the claims that go once this one is up."""
    return tuple(name for name in annotations(claim).get(REPLACES, "").split(",") if name)


class Replacement(Quiet):
    name = "replacement"
    promise = "what pods run on is removed only after their next place is there"

    def __init__(self) -> None:
        self._places = Places()
        self._asked: dict[str, float] = {}  # by the UID of a claim that replaces others: when it was created
        self._taken_back: dict[str, float] = {}  # by the UID of a Node: when the mark of a move was last taken off

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        self._places.see(step)
        self._follow(step)
        node = voluntary(step, case)
        if node is None or case.now - case.sent > LATE_SECONDS:
            return
        name = step.key[1]
        own = case.books.pods_on.get(node["metadata"]["name"], {}).values()
        moving = [each for each in own if holds_node(each) and bound_before(each, case)]
        if not moving:  # nobody needs what was to replace it any more
            return
        coming = self._coming(name, node, case)
        if coming:
            yield Complaint(f"claim {name} was deleted before {coming}, which replaces it, was up", (name, coming))
            return
        if step.last["spec"].get("terminationGracePeriod"):  # without one nobody may be there who may not leave
            moving = [each for each in moving if self._places.may_leave(each, case)]
        lost = self._places.homeless(moving, case)
        if lost:
            pod = lost[0]["metadata"]["name"]
            said = f"claim {name} was deleted with {len(moving)} pods on it, {len(lost)} without a place, {pod} for one"
            yield Complaint(said, (name, pod))

    def _coming(self, name: str, node: Json, case: Case) -> str:
        """What replaces the claim and is not up yet; nothing that was bought for a move that was given up since."""
        taken_back = self._taken_back.get(node["metadata"]["uid"], -math.inf)
        for each in case.books.all(CLAIMS):
            asked = self._asked.get(each["metadata"]["uid"], math.inf)
            awaited = name in replaces(each) and asked > taken_back and not deleting(each)
            if awaited and not has_condition(each, "Initialized"):
                return str(each["metadata"]["name"])
        return ""

    def _follow(self, step: Step) -> None:
        uid = step.last["metadata"]["uid"]
        if step.which == CLAIMS and step.old is None and replaces(step.last):
            self._asked[uid] = step.at
        elif step.which == NODES and tainted(step.old or {}, DISRUPTED) and not tainted(step.new or {}, DISRUPTED):
            self._taken_back[uid] = step.at


def bound_before(pod: Json, case: Case) -> bool:
    """Whether the pod ran, or was bound, so long before the request was sent that its sender must know."""
    return case.bound_at.get(pod["metadata"]["uid"], 0.0) < case.sent - BLINK_SECONDS


class Undisturbed(Quiet):
    """Judged for what cannot have been news to the sender, and for claims without a grace period, which drift may end."""

    name = "undisturbed"
    promise = "no node is chosen whose pods may not be asked to leave"

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # by the UID of a pod or a budget: since when it has said no

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if step.which in {PODS, BUDGETS}:
            self._follow(step)
        node = voluntary(step, case)
        if node is None or case.now - case.sent > LATE_SECONDS:
            return
        if step.last["spec"].get("terminationGracePeriod"):
            return
        for pod in case.books.pods_on.get(node["metadata"]["name"], {}).values():
            if finished(pod) or deleting(pod) or not bound_before(pod, case):
                continue
            meta = pod["metadata"]
            if self._known(meta["uid"], case):
                said = f"claim {step.key[1]} was deleted, and pod {meta['name']} on it is marked do-not-disrupt"
                yield Complaint(said, (step.key[1], meta["name"]))
            for budget in case.books.budgets_of(pod):
                always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
                if self._known(budget["metadata"]["uid"], case) and holds_node(pod) and not always:
                    told = budget["metadata"]["name"]
                    said = (
                        f"claim {step.key[1]} was deleted, and budget {told} allows no eviction of pod {meta['name']}"
                    )
                    yield Complaint(said, (step.key[1], meta["name"]))

    def _follow(self, step: Step) -> None:
        uid = step.last["metadata"]["uid"]
        if step.new is None:
            self._since.pop(uid, None)
            return
        if step.which == PODS:
            refuses = annotations(step.new).get(DO_NOT_DISRUPT) == "true"
        else:
            status = step.new.get("status", {})
            refuses = status.get("disruptionsAllowed") == 0 and status.get("expectedPods", 0) > 0
        if refuses:
            self._since.setdefault(uid, step.at)
        else:
            self._since.pop(uid, None)

    def _known(self, uid: str, case: Case) -> bool:
        return self._since.get(uid, float("inf")) < case.sent - NEWS_SECONDS


class Circle(Quiet):
    """Judged at rest: as long as the load changes a machine may be right, wrong and right again.

    Where lines come together, and fewer machines of a kind come back than there were of it, or fewer of all than go, and one of
    those never was of it, a machine is gone for good. That is no circle, and from there on their line begins anew.
    """

    name = "circle"
    promise = "no machine is replaced by one of a kind that was replaced before it, while nothing changed"

    def __init__(self) -> None:
        # By claim: the kinds of the machines that it and its like have replaced, by their claims.
        self._lines: dict[str, dict[str, tuple[str, ...]]] = {}

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if step.which != CLAIMS or step.new is None or case.calm_since is None:
            return
        if case.now < case.calm_since + REST_SECONDS:
            return
        name, kind = step.key[1], _kind(step.new)
        if not replaces(step.new) or not all(kind) or (step.old is not None and all(_kind(step.old))):
            return
        gone = [case.books.find(CLAIMS, each) for each in replaces(step.new)]
        there = {each["metadata"]["name"]: each for each in gone if each is not None}
        lines = [self._lines.get(each, {}) for each in there]
        before = {each: held for line in lines for each, held in line.items()}
        (only,) = there.values() if len(there) == 1 else (None,)
        same = only is not None and _kind(only) == kind and not has_condition(only, "Drifted")
        were = list(before.values()).count(kind)
        come = [_kind(each) for each in case.books.all(CLAIMS) if replaces(each) == replaces(step.new)]
        besides = len(come) < len(there) and not all(kind in line.values() for line in lines)
        less = were > come.count(kind) or besides
        kinds = {each: _kind(claim) for each, claim in there.items()}
        self._lines[name] = kinds if were and less else before | kinds
        if same or (were and not less):
            said = f"claim {name} is a {kind[0]} again, in the place of {', '.join(replaces(step.new))}"
            yield Complaint(said, (name, *replaces(step.new)))


def _kind(claim: Json) -> tuple[str, ...]:
    return tuple(labels(claim).get(key, "") for key in KIND)


MOVES: Final = (Replacement, Undisturbed, Circle)
