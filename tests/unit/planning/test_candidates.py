"""Who may be disturbed, for which reason, and what protects the others."""

import dataclasses
import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api import names
from growth.cluster.snapshot import NodeView
from growth.planning.disruption import words
from growth.planning.disruption.candidates import disruption_cost, in_order, may_receive, why_kept
from growth.planning.disruption.model import Kept, OwnedNode
from growth.planning.occupants import ONE
from tests.unit.planning.disrupting import node, pdb, pod, pool, situation

DO_NOT = names.DO_NOT_DISRUPT_ANNOTATION
VIEW = NodeView(name="a", labels={})


def kept(each: OwnedNode, reason: str = names.UNDERUTILIZED, *, graceful: bool = True, **more: Any) -> Kept | None:
    return why_kept(each, situation(each, **more), reason=reason, graceful=graceful)


def word(each: OwnedNode, reason: str = names.UNDERUTILIZED, **more: Any) -> str:
    found = kept(each, reason, **more)
    return "" if found is None else found.reason


# --- pods


@pytest.mark.parametrize(
    ("value", "started", "holds"),
    [("true", 10**9, True), ("10m", 599, True), ("10m", 601, False), ("false", 0, False), ("0s", 0, False)],
)
def test_a_pods_annotation_is_true_or_a_time_since_its_start(value: str, started: float, *, holds: bool) -> None:
    """A duration protects for so long and no longer; what is neither protects nothing."""
    found = word(node("a", pods=[pod(annotations={DO_NOT: value}, started=started)]))
    assert found == (words.DO_NOT_DISRUPT if holds else "")


def test_a_protection_that_ends_says_when() -> None:
    """What is a matter of time is told with the time."""
    found = kept(node("a", pods=[pod(annotations={DO_NOT: "1h"}, started=0)]))
    assert found is not None
    assert found.waits
    assert found.message == f"pod default/p has the annotation {DO_NOT} until 2030-01-07T13:00:00Z"


def test_a_protection_that_ends_after_all_years_holds() -> None:
    """A start and a duration are read as they stand; what both make together may be past what there are dates for."""
    far = msgspec.structs.replace(pod(annotations={DO_NOT: "2562047h"}), started=dt.datetime(9990, 1, 1, tzinfo=dt.UTC))
    found = kept(node("a", pods=[far]))
    assert found is not None
    assert (found.reason, found.waits) == (words.DO_NOT_DISRUPT, False)


@pytest.mark.parametrize("state", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"deleting": 5}])
def test_finished_and_going_pods_protect_nothing(state: dict[str, Any]) -> None:
    """Terminal and terminating pods never block."""
    assert word(node("a", pods=[pod(annotations={DO_NOT: "true"}, **state)])) == ""


@pytest.mark.parametrize("owner", ["DaemonSet", "ReplicaSet", "StatefulSet", "Job", ""])
def test_whoever_owns_it_a_pod_can_protect_its_node(owner: str) -> None:
    """DaemonSets' pods too."""
    assert word(node("a", pods=[pod(owner=owner, annotations={DO_NOT: "true"})])) == words.DO_NOT_DISRUPT


def test_a_budget_without_an_eviction_left_keeps_the_node() -> None:
    """disruptionsAllowed 0 blocks, 1 does not, and a budget of other pods neither."""
    used = node("a", pods=[pod()])
    assert word(used, budgets=(pdb("b", allowed=0),)) == words.POD_BUDGET
    assert word(used, budgets=(pdb("b", allowed=1),)) == ""
    assert word(used, budgets=(pdb("b", app="other"),)) == ""


def test_a_pod_with_two_budgets_can_never_be_evicted() -> None:
    """Even where both would allow it: the server refuses."""
    found = kept(node("a", pods=[pod()]), budgets=(pdb("b", allowed=5), pdb("c", allowed=5)))
    assert found is not None
    assert found.reason == words.POD_BUDGET
    assert "several PodDisruptionBudgets (b, c)" in found.message


def test_an_unhealthy_pod_passes_where_its_budget_always_allows_it() -> None:
    """AlwaysAllow lets pods go that are not ready, and no others."""
    always = (pdb("b", unhealthyPodEvictionPolicy="AlwaysAllow"),)
    assert word(node("a", pods=[pod(ready=False)]), budgets=always) == ""
    assert word(node("a", pods=[pod(ready=True)]), budgets=always) == words.POD_BUDGET
    assert word(node("a", pods=[pod(ready=False)]), budgets=(pdb("b"),)) == words.POD_BUDGET


@pytest.mark.parametrize("more", [{"maxUnavailable": 0}, {"maxUnavailable": "0%"}, {"minAvailable": "100%"}])
def test_a_fully_blocking_budget_keeps_the_node(more: dict[str, Any]) -> None:
    """It never allows an eviction, and says so in its status."""
    assert word(node("a", pods=[pod()]), budgets=(pdb("b", **more),)) == words.POD_BUDGET


def test_a_pod_that_tolerates_the_mark_needs_no_eviction() -> None:
    """It would be bound to the node again at once: nobody asks it to leave, so no budget is in the way."""
    tolerating = [{"key": names.DISRUPTED_TAINT, "operator": "Exists"}]
    assert word(node("a", pods=[pod(tolerations=tolerating)]), budgets=(pdb("b"),)) == ""


# --- graceful and not


def test_drift_passes_protected_pods_where_the_claim_ends_some_time() -> None:
    """With a termination grace period drift goes past do-not-disrupt and budgets; without one, and consolidation, not."""
    for protecting in ([pod(annotations={DO_NOT: "true"})], [pod()]):
        held: dict[str, Any] = {"drifted": "NodePoolDrifted", "pods": protecting}
        budgets = (pdb("b"),)
        drift: dict[str, Any] = {"reason": names.DRIFTED_REASON, "graceful": False, "budgets": budgets}
        assert word(node("a", ends=True, **held), **drift) == ""
        assert word(node("a", ends=False, **held), **drift) in {words.DO_NOT_DISRUPT, words.POD_BUDGET}
        assert word(node("a", ends=True, **held), budgets=budgets) in {words.DO_NOT_DISRUPT, words.POD_BUDGET}


@pytest.mark.parametrize("reason", [names.UNDERUTILIZED, names.DRIFTED_REASON])
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"protected": True}, words.DO_NOT_DISRUPT),
        ({"nominated": True}, words.NOMINATED),
        ({"paused": True}, words.PAUSED),
        ({"leaving": True}, words.LEAVING),
        ({"pool": "gone"}, words.POOL_NOT_FOUND),
    ],
)
def test_what_holds_for_every_reason(reason: str, more: dict[str, Any], expected: str) -> None:
    """The node's own annotation, a nomination, a pause, a disruption under way and a missing pool keep drifted nodes too."""
    each = node("a", drifted="NodePoolDrifted", ends=True, pods=[pod()], **more)
    assert word(each, reason, graceful=False) == expected


def test_drift_needs_no_quiet_no_policy_and_no_price() -> None:
    """consolidateAfter, Never, WhenEmpty, buffers and unknown prices are about consolidation alone."""
    each = node("a", drifted="NodePoolDrifted", quiet_seconds=-1.0, price=None, holds_buffer=True, pods=[pod()])
    for disruption in ({"consolidateAfter": "Never"}, {"consolidateAfter": "1h", "consolidationPolicy": "WhenEmpty"}):
        assert word(each, names.DRIFTED_REASON, graceful=False, pools=(pool(disruption=disruption),)) == ""


def test_a_node_that_has_not_drifted_is_no_candidate_for_drift() -> None:
    """Up to date is a reason as well."""
    assert word(node("a"), names.DRIFTED_REASON) == words.UP_TO_DATE


# --- consolidation


@pytest.mark.parametrize(
    ("policy", "expected"), [("WhenEmpty", words.DISABLED), ("WhenEmptyOrUnderutilized", ""), ("Balanced", "")]
)
def test_only_some_policies_consolidate_used_nodes(policy: str, expected: str) -> None:
    """WhenEmpty removes nothing that is used."""
    assert word(node("a", pods=[pod()]), pools=(pool(disruption={"consolidationPolicy": policy}),)) == expected


def test_consolidation_waits_until_its_node_is_quiet() -> None:
    """Up to consolidateAfter the node stays, from then on it may go."""
    pools = (pool(disruption={"consolidateAfter": "10m"}),)
    assert word(node("a", quiet_seconds=599.9), pools=pools) == words.CONSOLIDATE_AFTER
    assert word(node("a", quiet_seconds=600.0), pools=pools) == ""


def test_no_pod_is_moved_to_where_pods_came_a_moment_ago() -> None:
    """consolidateAfter protects destinations too; Never and 0s protect none, and who leaves takes nobody."""
    for after, quiet, fine in (("10m", 599, False), ("10m", 600, True), ("Never", 0, True), ("0s", 0, True)):
        each = dataclasses.replace(node("a", quiet_seconds=quiet), view=VIEW)
        assert may_receive(each, situation(each, pools=(pool(disruption={"consolidateAfter": after}),))) is fine
    leaving = dataclasses.replace(node("a", leaving=True), view=VIEW)
    assert not may_receive(leaving, situation(leaving))
    assert not may_receive(node("a"), situation(node("a")))


def test_a_node_without_a_known_price_is_never_consolidated() -> None:
    """Unknown is not zero."""
    assert word(node("a", price=None, pods=[pod()])) == words.PRICE_UNKNOWN


def test_a_node_that_holds_a_buffers_room_is_not_consolidated() -> None:
    """What keeps room for pods to come is not idle."""
    assert word(node("a", holds_buffer=True, pods=[pod()])) == words.BUFFER


# --- the order


def test_who_costs_much_and_disturbs_little_goes_first() -> None:
    """Price divided by one and the positive costs of evictions, the greatest first; ties by name, unknown prices last."""
    many = [pod(f"p-{at}") for at in range(9)]
    cheap_to_lose = pod("q", annotations={names.POD_DELETION_COST_ANNOTATION: "-2147483647"})
    nodes = [
        node("dear-and-full", price=9000, pods=many),  # 900
        node("cheap-and-idle", price=1000),  # 1000
        node("middling", price=4000, pods=[pod()]),  # 2000
        node("a-middling", price=4000, pods=[pod(), cheap_to_lose]),  # 2000
        node("unknown", price=None),
    ]
    found = [each.name for each in in_order(reversed(nodes))]
    assert found == ["a-middling", "middling", "cheap-and-idle", "dear-and-full", "unknown"]


def test_evictions_cost_by_annotation_and_priority_within_bounds() -> None:
    """1 + cost ÷ 2²⁷ + priority ÷ 2²⁵, between −10 and 10; Karpenter's annotation counts before Kubernetes'."""
    deletion, disruption = names.POD_DELETION_COST_ANNOTATION, names.DISRUPTION_COST_ANNOTATION

    def cost(**more: Any) -> float:
        return disruption_cost(node("a", pods=[pod(**more)])) / ONE - 1

    assert cost() == 1
    assert cost(annotations={deletion: str(1 << 27)}) == 2
    assert cost(priority=1 << 25) == 2
    assert cost(priority=2_000_000_000) == 10
    assert cost(annotations={deletion: str(1 << 27), disruption: str(1 << 28)}) == 3
    assert cost(annotations={deletion: "much"}) == cost(annotations={disruption: "2147483648"}) == 1
    assert cost(priority=-(2**31)) == 0
    assert cost(owner="DaemonSet") == cost(phase="Succeeded") == 0


# --- paid time


def test_an_empty_node_stays_while_ending_it_would_save_nothing() -> None:
    """It goes shortly before the end of what is paid; one with pods, and one that drifted, does not wait for that."""
    now = situation().now
    empty = dataclasses.replace(node("a"), paid_until=now + dt.timedelta(minutes=30))
    found = kept(empty, names.EMPTY)
    assert found is not None
    assert (found.reason, found.waits) == (words.PAID, True)
    assert word(dataclasses.replace(empty, paid_until=now + dt.timedelta(minutes=2)), names.EMPTY) == ""
    assert word(dataclasses.replace(node("a", pods=[pod()]), paid_until=empty.paid_until)) == ""
    assert word(dataclasses.replace(empty, drifted="NodePoolDrifted"), names.DRIFTED_REASON) == ""
