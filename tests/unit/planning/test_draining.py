"""Draining, decided on plain pods: who may be asked, who is made to leave, who is waited for."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api import names
from growth.api.meta import OwnerReference
from growth.api.pods import Pod
from growth.api.policy import PodDisruptionBudget
from growth.cluster.shapes import CachedPod, Shapes
from growth.planning import occupants
from growth.planning.draining import drain_step, tiers
from growth.planning.pod_budgets import PodBudgets

NOW = dt.datetime(2030, 1, 7, 12, 0, tzinfo=dt.UTC)
SHAPES = Shapes()


def pod(
    name: str = "p",
    *,
    owner: str = "ReplicaSet",
    annotations: dict[str, str] | None = None,
    deleting: float | None = None,
    grace: int | None = None,
    phase: str = "Running",
    started: float | None = 0.0,
    ready: bool = True,
    **spec: Any,
) -> CachedPod:
    """`deleting` and `started` are seconds from now at which its grace ends, and ago that it started."""
    raw = {"metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": name}}, "spec": spec}
    made = SHAPES.keep(msgspec.convert(raw, Pod))
    return msgspec.structs.replace(
        made,
        phase=phase,
        annotations=annotations or {},
        owner=OwnerReference(api_version="apps/v1", kind=owner, name="o", uid="o", controller=True) if owner else None,
        deleting=None if deleting is None else NOW + dt.timedelta(seconds=deleting),
        deletion_grace_seconds=grace,
        started=None if started is None else NOW - dt.timedelta(seconds=started),
        ready=ready,
    )


def protected(value: str, **more: Any) -> CachedPod:
    return pod(annotations={names.DO_NOT_DISRUPT_ANNOTATION: value}, **more)


@pytest.mark.parametrize(
    ("value", "started", "holds", "fault"),
    [
        ("true", 10**9, True, ""),
        ("10m", 599, True, ""),
        ("10m", 600, False, ""),
        ("1h30m", None, True, ""),
        ("false", 0, False, ""),
        ("True", 0, False, "is not a duration"),
        ("4 hours", 0, False, "is not a duration"),
        ("0s", 0, False, "must be positive"),
        ("-5m", 0, False, "must be positive"),
        ("", 0, False, "is not a duration"),
    ],
)
def test_do_not_disrupt_is_true_or_a_duration(value: str, started: float | None, holds: bool, fault: str) -> None:  # noqa: FBT001 - a table
    """A duration counts from the pod's start, an unknown start protects; false is no protection, nor is what is unreadable."""
    found = occupants.protection(protected(value, started=started), NOW)
    assert found.holds is holds
    assert fault in found.fault
    assert bool(found.fault) is bool(fault)


def test_a_pod_without_the_annotation_is_not_protected() -> None:
    """No annotation, no protection, no fault."""
    assert occupants.protection(pod(), NOW) == occupants.UNPROTECTED


@pytest.mark.parametrize(
    ("who", "reschedulable", "drainable", "evictable"),
    [
        (pod(), True, True, True),
        (pod(owner=""), True, True, True),
        (pod(owner="DaemonSet"), False, True, True),
        (pod(owner="Node"), False, False, False),
        (pod(annotations={names.MIRROR_POD_ANNOTATION: "x"}), False, False, False),
        (pod(phase="Succeeded"), False, True, False),
        (pod(phase="Failed", owner="StatefulSet", deleting=10), False, True, False),
        (pod(deleting=10), False, True, False),
        (pod(deleting=-61), False, False, False),
        (pod(deleting=-59), False, True, False),
        (pod(owner="StatefulSet", deleting=10), True, True, False),
        (pod(tolerations=[{"operator": "Exists"}]), True, False, False),
        (pod(tolerations=[{"key": "karpenter.sh/disrupted", "operator": "Exists"}]), True, False, False),
        (pod(tolerations=[{"key": "karpenter.sh/disrupted", "effect": "NoExecute"}]), True, True, True),
        (pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]), True, True, True),
        (protected("true"), True, True, False),
    ],
)
def test_which_pods_move_wait_and_may_be_evicted(
    who: CachedPod,
    reschedulable: bool,  # noqa: FBT001 - a table
    drainable: bool,  # noqa: FBT001
    evictable: bool,  # noqa: FBT001
) -> None:
    """The rules of Karpenter, one row a kind of pod."""
    assert occupants.reschedulable(who) is reschedulable
    assert occupants.drainable(who, NOW) is drainable
    assert occupants.evictable(who, NOW) is evictable


@pytest.mark.parametrize(
    ("cost", "priority", "free"),
    [
        ("0", None, False),
        ("-2147483647", None, True),
        ("-134217728", None, True),
        ("-134217727", None, False),
        ("-134217728", 1, False),
        ("nonsense", None, False),
        ("0", -33554432, True),
        ("0", -33554431, False),
    ],
)
def test_pods_of_no_value_keep_no_node(cost: str, priority: int | None, free: bool) -> None:  # noqa: FBT001 - a table
    """1 + deletion cost ÷ 2²⁷ + priority ÷ 2²⁵ of at most nothing is free to lose."""
    assert (
        occupants.free_to_lose(pod(annotations={names.POD_DELETION_COST_ANNOTATION: cost}, priority=priority)) is free
    )


def test_four_tiers() -> None:
    """Ordinary, DaemonSets', critical, critical DaemonSets': in this order."""
    pods = [
        pod("d", owner="DaemonSet", priorityClassName="system-cluster-critical"),
        pod("c", priorityClassName="system-node-critical"),
        pod("b", owner="DaemonSet"),
        pod("a", priorityClassName="important"),
    ]
    assert [[each.name for each in tier] for tier in tiers(pods)] == [["a"], ["b"], ["c"], ["d"]]


def test_only_the_first_tier_is_asked_and_all_are_waited_for() -> None:
    """Evictions go out for one tier; a protected or terminating pod of it holds the next tiers up."""
    step = drain_step([pod("a"), pod("b", owner="DaemonSet")], now=NOW, deadline=None)
    assert [each.name for each in step.evict] == ["a"]
    assert [each.name for each in step.waiting] == ["a", "b"]
    step = drain_step([pod("a", deleting=5), pod("b", owner="DaemonSet")], now=NOW, deadline=None)
    assert not step.evict
    assert not step.drained
    held = pod("a", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
    step = drain_step([held, pod("b", owner="DaemonSet")], now=NOW, deadline=None)
    assert not step.evict
    assert [each.name for each in step.protected] == ["a"]


def test_a_node_without_pods_that_must_go_is_drained() -> None:
    """Static, finished, tolerant and stuck pods are not waited for."""
    pods = [
        pod("a", owner="Node"),
        pod("b", phase="Failed"),
        pod("c", tolerations=[{"operator": "Exists"}]),
        pod("d", deleting=-120),
    ]
    assert drain_step(pods, now=NOW, deadline=None).drained


def after(seconds: float) -> dt.datetime:
    return NOW + dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("who", "deadline", "grace"),
    [
        (pod(terminationGracePeriodSeconds=30), after(31), None),
        (pod(terminationGracePeriodSeconds=30), after(30), 30),
        (pod(terminationGracePeriodSeconds=3600), after(100), 100),
        (pod(), after(29), 29),
        (pod(terminationGracePeriodSeconds=0), after(-5), 1),
        (pod(terminationGracePeriodSeconds=60, deleting=50, grace=60), after(55), None),
        (pod(terminationGracePeriodSeconds=60, deleting=58, grace=60), after(20), 20),
        (pod(terminationGracePeriodSeconds=60, deleting=1, grace=1), after(-5), None),
        (pod(owner="Node"), after(-5), None),
        (protected("true", terminationGracePeriodSeconds=30), after(10), 10),
    ],
)
def test_force_comes_when_only_the_pods_own_grace_is_left(
    who: CachedPod, deadline: dt.datetime, grace: int | None
) -> None:
    """Clamped to what is left and to at least a second; one that ends in time or was hurried already is left alone."""
    step = drain_step([who], now=NOW, deadline=deadline)
    assert [each.grace_seconds for each in step.force] == ([] if grace is None else [grace])
    assert not {each.pod.uid for each in step.force} & {each.uid for each in step.evict}


def test_force_takes_all_tiers_at_once() -> None:
    """At the deadline the order of tiers protects nobody."""
    pods = [pod("a"), pod("b", owner="DaemonSet")]
    step = drain_step(pods, now=NOW, deadline=NOW)
    assert [each.pod.name for each in step.force] == ["a", "b"]


def budget(name: str, *, allowed: int, app: str = "p", policy: str = "") -> PodDisruptionBudget:
    raw = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "unhealthyPodEvictionPolicy": policy},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(raw, PodDisruptionBudget)


def test_why_the_server_would_not_evict_a_pod() -> None:
    """A budget without room and several budgets each forbid it; one that always allows unhealthy pods lets these go."""

    def why(who: CachedPod, *budgets: PodDisruptionBudget) -> str:
        return occupants.refusal(who, PodBudgets(budgets))

    assert why(pod()) == ""
    assert why(pod(), budget("b", allowed=1)) == ""
    assert why(pod(), budget("b", allowed=0, app="other")) == ""
    assert why(pod(), budget("b", allowed=0)) == "PodDisruptionBudget default/b allows no eviction of pod default/p"
    assert why(pod(), budget("b", allowed=1), budget("a", allowed=1)) == (
        "pod default/p has several PodDisruptionBudgets (a, b), with which no eviction is possible"
    )
    assert why(pod(ready=False), budget("b", allowed=0, policy="AlwaysAllow")) == ""
    assert why(pod(ready=True), budget("b", allowed=0, policy="AlwaysAllow")) != ""


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "p"}}, True),
        ({"matchLabels": {"app": "p", "tier": "web"}}, False),
        ({"matchLabels": {"app": "q"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["p"]}]}, False),
        ({"matchLabels": {"app": "p"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["p"]}]}, False),
    ],
)
@pytest.mark.parametrize("namespace", ["default", "other"])
def test_budgets_are_about_the_pods_that_they_select(selector: Any, *, selects: bool, namespace: str) -> None:
    """In their own namespace; no selector selects nothing, an empty one all, an impossible one nothing."""
    raw = {"metadata": {"name": "b", "namespace": namespace}, "spec": {"selector": selector}}
    found = PodBudgets([msgspec.convert(raw, PodDisruptionBudget)]).of(pod())
    assert [each.metadata.name for each in found] == (["b"] if selects and namespace == "default" else [])
