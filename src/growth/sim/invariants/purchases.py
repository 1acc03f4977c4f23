"""Purchases in vain: machines whose Nodes take none of the pods that they were bought for."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Final

import msgspec

from growth.api.kinds import Json
from growth.api.meta import ObjectMeta
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.api.vain import bought_for
from growth.cluster.shapes import Shapes
from growth.cluster.sorts import Sorts
from growth.sim.invariants.books import (
    CLAIMS,
    GROWTH_POOL_LABEL,
    NODES,
    PODS,
    POOL_LABEL,
    POOLS,
    deleting,
    finished,
    has_condition,
    labels,
    node_of,
    owner_kinds,
)
from growth.sim.invariants.facts import LATE_SECONDS, NEWS_SECONDS
from growth.sim.invariants.invariant import Case, Complaint, Quiet
from growth.sim.predicates import Host
from growth.sim.predicates.on_one_node import on_one_node
from growth.sim.seams import Step

# A Node that is up for so long and took none of its pods came in vain.
UP_SECONDS: Final = 20.0
# A claim that ended so long after its creation without a usable Node was given up.
GIVEN_UP_SECONDS: Final = 280.0
# Of the shortest rest after two rounds: clocks jump.
SHARE: Final = 0.5
_OURS: Final = ("karpenter.sh/", "growth.dev/", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclasses.dataclass(slots=True)
class _Bought:
    """A claim. `tried`: it was bought when others were known to be in vain. `node` is its Node as it was last, since `same`."""

    name: str
    uid: str
    pool: str
    sorts: tuple[str, ...]
    at: float
    tried: bool = False
    served: bool = False
    up: float = math.inf
    node: Json | None = None
    same: float = math.inf
    gone: float = math.inf


class InVain(Quiet):
    """Pods that never saw their machine's Node do not count, nor Nodes that are ill, marked, or changed just before."""

    name = "in vain"
    promise = (
        "for one pool and sort of pods machines are bought in vain in two rounds at most, the second of one machine"
    )

    def __init__(self, *, rest: float = 3600.0) -> None:
        self._rest = rest
        self._shapes, self._sorts = Shapes(), Sorts()
        self._bought: dict[str, _Bought] = {}  # by the claim's UID
        self._pending: dict[str, float] = {}  # by the pod's UID: since when

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        uid = step.last["metadata"]["uid"]
        if step.which == PODS:
            self._see_pod(step, uid)
        elif step.which == NODES and step.new is not None:
            self._see_node(step.new, step.at, case)
        elif step.which == POOLS and step.old is not None and (step.new or {}).get("spec") != step.old["spec"]:
            self._forget(step.key[1])
        elif step.which == CLAIMS and step.old is None:
            yield from self._see_purchase(step, case)
        elif step.which == CLAIMS and uid in self._bought:
            known = self._bought[uid]
            if step.new is not None and has_condition(step.new, "Initialized") and known.up == math.inf:
                known.up = step.at
            if (step.new is None or deleting(step.new)) and known.gone == math.inf:
                known.gone = step.at

    def _see_pod(self, step: Step, uid: str) -> None:
        pod = step.new
        if pod is None or finished(pod):
            self._pending.pop(uid, None)
        elif not node_of(pod):
            self._pending.setdefault(uid, step.at)
        elif self._pending.pop(uid, None) is not None and not owner_kinds(pod) & {"DaemonSet", "Node"}:
            for each in self._bought.values():
                if each.node is not None and each.node["metadata"]["name"] == node_of(pod):
                    each.served = True

    def _see_node(self, node: Json, at: float, case: Case) -> None:
        for claim in case.books.claims_on(node):
            known = self._bought.get(claim["metadata"]["uid"])
            if known is None or known.gone < math.inf:
                continue
            if known.node is None or _came(known.node) != _came(node):
                known.same = at
            known.node = node

    def _forget(self, pool: str) -> None:
        self._bought = {uid: each for uid, each in self._bought.items() if each.pool != pool}

    def _see_purchase(self, step: Step, case: Case) -> Iterator[Complaint]:
        meta, pool = step.last["metadata"], _pool_of(step.last)
        sorts = tuple(each.sort for each in bought_for(msgspec.convert(meta, ObjectMeta, strict=False)))
        made = _Bought(meta["name"], meta["uid"], pool, sorts, step.at)
        if pool and step.actor.is_growth and case.now - case.sent <= LATE_SECONDS:
            for sort in sorts:
                yield from self._judged(made, sort, case)
        self._bought[made.uid] = made

    def _judged(self, made: _Bought, sort: str, case: Case) -> Iterator[Complaint]:
        pods = self._waiting(sort, case)
        own = [each for each in self._bought.values() if each.pool == made.pool and sort in each.sorts]
        served = max((each.at for each in own if each.served), default=-math.inf)
        later = [each for each in own if each.at > served and each.uid not in case.by_hand]
        known = {each.uid: at for each in later if (at := self._known(each, pods)) <= case.sent - NEWS_SECONDS}
        if not known:
            return
        made.tried = True
        first = min(known.values())
        under_way = [
            each
            for each in later
            if each.tried
            and first < each.at <= case.sent - NEWS_SECONDS
            and each.uid not in known
            and each.gone == math.inf
        ]
        if under_way:
            said = f"claim {made.name} was made for pods of a sort for which {under_way[0].name} is being tried"
            yield Complaint(said, (made.name, under_way[0].name))
        tried = [each for each in later if each.tried and each.uid in known]
        if tried and case.now - max(known[each.uid] for each in tried) < self._rest * SHARE:
            said = (
                f"claim {made.name} is a third round for pods of a sort: {tried[-1].name} was bought in vain before it"
            )
            yield Complaint(said, (made.name, tried[-1].name))

    def _waiting(self, sort: str, case: Case) -> list[tuple[float, Pod]]:
        """The pods of the sort without a node, and since when."""
        found = []
        for pod in case.books.all(PODS):
            since = self._pending.get(pod["metadata"]["uid"])
            if since is None or node_of(pod):
                continue
            asked = msgspec.convert(pod, Pod, strict=False)
            if self._sorts.digest(self._shapes.shape(asked)) == sort:
                found.append((since, asked))
        return found

    def _known(self, bought: _Bought, pods: list[tuple[float, Pod]]) -> float:
        """From when on everybody could know that the machine came in vain for these pods; never: infinite."""
        if bought.served:
            return math.inf
        if bought.gone < math.inf and bought.up == math.inf:
            given_up = bought.gone - bought.at >= GIVEN_UP_SECONDS and any(since <= bought.gone for since, _ in pods)
            return bought.gone if given_up else math.inf
        if bought.node is None or bought.up == math.inf:
            return math.inf
        at = max(bought.up, bought.same) + UP_SECONDS
        if bought.gone < at or not has_condition(bought.node, "Ready"):
            return math.inf
        if any(each["key"].startswith(_OURS) for each in bought.node["spec"].get("taints", ())):
            return math.inf
        host = Host.of(msgspec.convert(bought.node, Node, strict=False))
        there = [pod for since, pod in pods if since <= at]
        return at if there and all(any(on_one_node(pod, host)) for pod in there) else math.inf


def _pool_of(claim: Json) -> str:
    own = labels(claim)
    return own.get(POOL_LABEL) or (f"growth.dev/{own[GROWTH_POOL_LABEL]}" if GROWTH_POOL_LABEL in own else "")


def _came(node: Json) -> object:
    """What pods look at."""
    return (
        labels(node),
        node.get("spec", {}).get("taints"),
        node.get("spec", {}).get("unschedulable"),
        node.get("status", {}).get("allocatable"),
    )
