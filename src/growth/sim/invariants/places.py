"""Where pods could go that are to leave their node, by the slow predicates of kube-scheduler.

Whoever decides looks first, and acts a moment later. What others did in that moment nobody can have known: pods that came,
nodes that were closed. Everything before it counts, with whoever waits for a place ahead of those who are to be moved.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.sim.invariants.books import (
    BUDGETS,
    CLAIMS,
    DISRUPTED,
    DO_NOT_DISRUPT,
    INITIALIZED_LABEL,
    NODES,
    PODS,
    annotations,
    deleting,
    finished,
    has_condition,
    holds_node,
    labels,
    owner_kinds,
    provider_id_of,
    selects,
    tainted,
)
from growth.sim.invariants.invariant import Case
from growth.sim.predicates import Host, Scene, fits, requests
from growth.sim.seams import Step

# Between the last look and the request that acts by it: a look is good for two seconds, and takes a part of one.
LOOK_SECONDS: Final = 3.0
# Put on by others while a node has a bad moment, or before it takes pods at all: decisions look through them.
PASSING: Final = frozenset(
    {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable"}
)
# So many questions whether a pod may go to a node are asked of one order before the next is tried.
QUESTIONS: Final = 1500


class Places:
    """Follows what changed a moment ago."""

    def __init__(self) -> None:
        self._created: dict[str, float] = {}  # pods by UID
        self._nodes: dict[str, tuple[float, Json | None]] = {}  # by name: when it was changed, and what it was before
        self._going: dict[str, float] = {}  # claims by UID: since when they are being deleted
        self._lifted: dict[str, tuple[float, Json]] = {}  # budgets of pods by UID: when, and what they said

    def see(self, step: Step) -> None:
        uid = step.last["metadata"]["uid"]
        if step.which == PODS:
            if step.old is None:
                self._created[uid] = step.at
            elif step.new is None:
                self._created.pop(uid, None)
        elif step.which == NODES and (step.old is None or step.new is None or _closes(step.old, step.new)):
            known = self._nodes.get(step.key[1])
            if known is None or known[0] < step.at - LOOK_SECONDS:
                self._nodes[step.key[1]] = (step.at, step.old)
        elif step.which == CLAIMS and step.new is not None and deleting(step.new):
            self._going.setdefault(uid, step.at)
        elif step.which == BUDGETS and step.old is not None and (step.new or {}).get("spec") != step.old["spec"]:
            self._lifted[uid] = (step.at, step.old)

    def may_leave(self, pod: Json, case: Case) -> bool:
        """Whether the pod will want another place as soon as it is asked to go.

        No eviction is ever granted for one that is marked do-not-disrupt, nor under a budget that allows none or beside a
        second budget. Nobody knows when it will want a place: not before its node's grace period ends.
        """
        if annotations(pod).get(DO_NOT_DISRUPT) == "true":
            return False
        lifted = [each for at, each in self._lifted.values() if at >= case.sent - LOOK_SECONDS and selects(each, pod)]
        budgets = [*case.books.budgets_of(pod), *lifted]
        if len({each["metadata"]["uid"] for each in budgets}) > 1:
            return False
        return not any(_never_allows(each) and not _lets_go(each, pod) for each in budgets)

    def homeless(self, moving: Sequence[Json], case: Case) -> list[Json]:
        """Of pods that are to leave their node, those that no other could take, with all that are leaving already.

        Tried in several orders, with what happened a moment ago and without: one that works is enough.
        """
        found = list(moving)
        for news in (True, False):
            leaving = self._leaving(moving, case, news=news)
            ahead = self._ahead(moving, leaving, case, news=news)
            for first, second in itertools.product(_ORDERS, repeat=2):
                hosts = self._hosts(case, leaving, news=news)
                _seat(sorted(ahead, key=_largest), hosts, first)
                left = _left_over([_typed(each) for each in sorted(moving, key=_largest)], hosts, second)
                if not left:
                    return []
                found = min(found, [each for each in moving if each["metadata"]["uid"] in left], key=len)
        return found

    def _leaving(self, moving: Sequence[Json], case: Case, *, news: bool) -> set[str]:
        books, since = case.books, case.sent - LOOK_SECONDS if news else float("inf")
        leaving = {
            node["metadata"]["name"]
            for claim in books.all(CLAIMS)
            if deleting(claim) and self._going.get(claim["metadata"]["uid"], 0.0) < since
            for node in books.nodes_of(claim)
        }
        leaving |= {each["metadata"]["name"] for each in self._there(case, news=news) if deleting(each)}
        return leaving | {each["spec"]["nodeName"] for each in moving}

    def _there(self, case: Case, *, news: bool) -> Iterator[Json]:
        """The nodes; with `news`, as they were before what happened a moment ago."""
        known: dict[str, Json | None] = {each["metadata"]["name"]: each for each in case.books.all(NODES)}
        if news:
            known |= {name: old for name, (at, old) in self._nodes.items() if at >= case.sent - LOOK_SECONDS}
        yield from (each for each in known.values() if each is not None)

    def _ahead(self, moving: Sequence[Json], leaving: set[str], case: Case, *, news: bool) -> list[Json]:
        """Pods that must have a place too: of other nodes that are leaving, and those that wait. Not DaemonSets': theirs
        is where they are.
        """
        books, own = case.books, {each["metadata"]["uid"] for each in moving}
        since = case.sent - LOOK_SECONDS if news else float("inf")

        def waits(pod: Json) -> bool:
            uid = pod["metadata"]["uid"]
            if finished(pod) or deleting(pod) or pod["spec"].get("schedulingGates"):
                return False
            free = not pod["spec"].get("nodeName") or case.bound_at.get(uid, 0.0) >= since
            return free and self._created.get(uid, 0.0) < since and not owner_kinds(pod) & {"DaemonSet", "Node"}

        return [pod for pod in books.all(PODS) if waits(pod)] + [
            pod
            for name in sorted(leaving)
            for pod in books.pods_on.get(name, {}).values()
            if holds_node(pod) and not deleting(pod) and pod["metadata"]["uid"] not in own and self.may_leave(pod, case)
        ]

    def _hosts(self, case: Case, leaving: set[str], *, news: bool) -> list[Host]:
        """The nodes that stay. With `news` without the pods that came a moment ago.

        Those that are marked and those that are not up yet take nobody, but who runs there counts for rules about others. A
        Node that says it is up is: pods go there, though its claim may be told later.
        """
        books = case.books
        since = case.sent - LOOK_SECONDS if news else float("inf")
        coming = {
            provider_id_of(node)
            for claim in books.all(CLAIMS)
            if not has_condition(claim, "Initialized")
            for node in books.nodes_of(claim)
            if labels(node).get(INITIALIZED_LABEL) != "true"
        }
        hosts = []
        for node in self._there(case, news=news):
            name = node["metadata"]["name"]
            if name in leaving:
                continue
            host = Host.of(msgspec.convert(node, Node, strict=False))
            if provider_id_of(node) in coming or tainted(node, DISRUPTED):
                host.allocatable = {}
            host.taints = tuple(each for each in host.taints if each.key not in PASSING)
            host.unschedulable = False
            host.pods = [
                _typed(pod)
                for pod in books.pods_on.get(name, {}).values()
                if not finished(pod) and case.bound_at.get(pod["metadata"]["uid"], 0.0) < since
            ]
            hosts.append(host)
        return hosts


def _closes(old: Json, new: Json) -> bool:
    """Whether pods that the node took before it may not take now."""
    return deleting(old) != deleting(new) or any(
        old.get(part, {}).get(field) != new.get(part, {}).get(field)
        for part, field in (
            ("spec", "taints"),
            ("spec", "providerID"),
            ("metadata", "labels"),
            ("status", "allocatable"),
        )
    )


def _lets_go(budget: Json, pod: Json) -> bool:
    """Whether it holds only those that are well, and the pod is not."""
    return budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" and not has_condition(pod, "Ready")


def _never_allows(budget: Json) -> bool:
    """Whatever runs or does not run."""
    spec = budget["spec"]
    return spec.get("maxUnavailable") in {0, "0", "0%"} or spec.get("minAvailable") == "100%"


def _largest(pod: Json) -> tuple[int, str]:
    return (-requests(_typed(pod).spec).get("cpu", 0), pod["metadata"]["name"])


def _typed(pod: Json) -> Pod:
    """Without its volumes: which of them can be attached where is not followed here."""
    typed = msgspec.convert(pod, Pod, strict=False)
    return msgspec.structs.replace(typed, spec=msgspec.structs.replace(typed.spec, volumes=()))


def _free(host: Host) -> int:
    return host.allocatable.get("cpu", 0) - sum(requests(pod.spec).get("cpu", 0) for pod in host.pods)


def _fullest(hosts: Sequence[Host]) -> list[Host]:
    return sorted(hosts, key=lambda host: (_free(host), host.name))


def _emptiest(hosts: Sequence[Host]) -> list[Host]:
    return sorted(hosts, key=lambda host: (-_free(host), host.name))


Order = Callable[[Sequence[Host]], list[Host]]
_ORDERS: Final[tuple[Order, ...]] = (_fullest, _emptiest)


def _unbound(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))


def _seat(pods: Sequence[Json], hosts: list[Host], order: Order) -> None:
    """Each pod on the first node of the order that takes it; who finds none waits on."""
    for pod in map(_unbound, map(_typed, pods)):
        for host in order(hosts):
            if fits(pod, host, Scene(hosts=hosts)):
                host.pods.append(pod)
                break


class _Enough(Exception):
    """No more questions are asked."""


def _left_over(pods: Sequence[Pod], hosts: list[Host], order: Order) -> set[str]:
    """UIDs of pods that have no place in the best way that was found: every way is tried, up to a number of questions."""
    best = {pod.metadata.uid for pod in pods}
    asked = 0

    def place(left: list[Pod]) -> None:
        nonlocal best, asked
        if len(left) < len(best):
            best = {pod.metadata.uid for pod in left}
        if not left:
            raise _Enough
        tried = set()
        for at, pod in enumerate(left):
            alike = msgspec.json.encode((pod.metadata.labels, pod.spec))
            if alike in tried:
                continue
            tried.add(alike)
            for host in order(hosts):
                asked += 1
                if asked > QUESTIONS:
                    raise _Enough
                if fits(pod, host, Scene(hosts=hosts)):
                    host.pods.append(pod)
                    place([*left[:at], *left[at + 1 :]])
                    host.pods.pop()

    with contextlib.suppress(_Enough):
        place([_unbound(pod) for pod in pods])
    return best
