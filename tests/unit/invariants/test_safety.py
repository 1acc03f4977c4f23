"""Each invariant sees its promise broken in a history where it is, and is silent in one where it is not."""

import msgspec
import pytest

from growth.api.kinds import Json
from growth.operator.wiring import Role
from growth.sim.invariants import moves, pods, safety
from growth.sim.invariants.books import BUDGETS, CLAIMS, CONFIG_MAPS, NODES, PODS, POOLS, REMOVALS, Books
from growth.sim.invariants.counts import Limits, Money
from growth.sim.invariants.leading import LEASES, Led
from growth.sim.ledger import NO_CAPS, Caps
from growth.sim.seams import Actor
from tests.unit.invariants.histories import (
    ADMIN,
    CLOUD,
    CLUSTER,
    GROWTH,
    History,
    claim,
    going,
    machine,
    node,
    pod,
    pool,
    running,
)


def test_a_claim_that_we_let_go_before_its_machine_leaks_it() -> None:
    """Whose finalizer somebody else took off is another matter: that machine has time."""
    for by, verb, said in ((GROWTH, "patch", 1), (ADMIN, "patch", 0), (GROWTH, "delete", 0)):
        history = running(safety.Leak())
        history.remove(CLAIMS, claim(), by=by, verb=verb)
        assert len(history.said) == said


def test_a_machine_without_a_claim_is_gone_in_time() -> None:
    """In storms there is more time; one that was asked to go, or is held back for people, is not forgotten."""
    for state, held, at, said in (
        ("running", "", 800.0, 0),
        ("running", "", 3000.0, 1),
        ("deleting", "", 3000.0, 0),
        ("running", "machine kwok://one", 3000.0, 0),
        ("running", "machine kwok://one-more", 3000.0, 1),
    ):
        history = running(safety.Leak())
        history.remove(CLAIMS, claim())
        history.put(CONFIG_MAPS, machine(state=state))
        body: Json = {"metadata": {"name": "growth-collection", "namespace": "growth"}, "data": {"machines": held}}
        history.put(CONFIG_MAPS, body, by=GROWTH)
        history.look(1.0)
        history.look(at)
        assert len(history.said) == said, (state, held, at)
    history = running(safety.Leak())
    history.remove(CLAIMS, claim())
    history.look(1.0)
    history.case.calm_since = 100.0
    history.look(1100.0)
    assert len(history.said) == 1


def test_a_claim_has_one_machine_ever() -> None:
    """Also when the first is gone by then, unless others took it away before the buyer could know of it from the claim."""
    history = running(safety.OneMachine())
    history.put(CONFIG_MAPS, machine("one-again", claim_uid="uid-one"), by=CLOUD)
    history.look(1.0)
    assert len(history.said) == 2
    for known, taken, said in ((None, True, 0), (60.0, True, 1), (99.5, True, 0), (99.5, False, 1)):
        history = History(safety.OneMachine())
        body = claim(initialized=False)
        history.put(CLAIMS, {**body, "status": {}}, by=GROWTH)
        history.put(CONFIG_MAPS, machine(), by=CLOUD)
        history.remove(CONFIG_MAPS, machine())
        if taken:
            history.case.by_hand["uid-one"] = "taken"
        if known is not None:
            history.put(CLAIMS, body, by=GROWTH, at=known)
        history.put(CLAIMS, body if known is not None else {**body, "status": {}}, by=GROWTH, at=99.9)
        history.put(CONFIG_MAPS, machine(uid="second"), by=CLOUD, at=100.0)
        assert len(history.said) == said, (known, taken)


LONG_ON_ITS_WAY, SENT_AT_ONCE = 90.0, 100.0
NEVER, JUST, LONG_AGO, AFTERWARDS = float("-inf"), 99.0, 96.0, 99.9


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize(
    ("sent", "thawed", "ended", "collected", "said"),
    [
        (LONG_ON_ITS_WAY, NEVER, True, True, 0),
        (99.0, NEVER, True, True, 1),
        (LONG_ON_ITS_WAY, NEVER, False, True, 1),
        (LONG_ON_ITS_WAY, NEVER, True, False, 1),
        (SENT_AT_ONCE, JUST, True, True, 0),
        (SENT_AT_ONCE, LONG_AGO, True, True, 1),
        (99.5, AFTERWARDS, True, True, 1),
        (SENT_AT_ONCE, JUST, False, True, 1),
        (SENT_AT_ONCE, JUST, True, False, 1),
    ],
)
def test_a_purchase_that_nobody_could_call_back(
    sent: float, thawed: float, said: int, *, ended: bool, collected: bool, gone: bool
) -> None:
    """It was long on its way, or its process stood still between the look and the request.

    But it makes no second machine beside the first, nor for a claim that is there to stay.
    """
    history = running(safety.OneMachine())
    if ended and gone:
        history.remove(CLAIMS, claim())
    elif ended:
        history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete")
    if collected:
        history.remove(CONFIG_MAPS, machine(), by=CLOUD)
    history.case.thawed = thawed
    history.put(CONFIG_MAPS, machine("one-late", claim_uid="uid-one"), by=CLOUD, at=100.0, sent=sent)
    assert len(history.said) == said


def test_what_is_not_ours_is_left_alone() -> None:
    """Nodes of no machine of ours, machines of other clusters, claims of other providers, pods on foreign Nodes."""
    history = running(safety.Foreign())
    foreign = node("foreign", provider_id="other://1")
    theirs = machine("theirs", cluster="other")
    claimed = claim("theirs", group="karpenter.k8s.aws")
    settings: Json = {"metadata": {"name": "coredns", "namespace": "kube-system"}, "data": {}}
    guest = pod("guest", on="foreign")
    for which, body in (
        (NODES, foreign),
        (CONFIG_MAPS, theirs),
        (CLAIMS, claimed),
        (CONFIG_MAPS, settings),
        (PODS, guest),
    ):
        history.put(which, body)
    assert history.said == []
    history.put(NODES, going(foreign), by=GROWTH, verb="delete")
    history.put(CONFIG_MAPS, machine("theirs", cluster="other", state="deleting"), by=CLOUD)
    history.put(CLAIMS, going(claimed), by=GROWTH, verb="delete")
    history.put(CONFIG_MAPS, {**settings, "data": {"a": "b"}}, by=GROWTH)
    history.put(PODS, going(guest), by=GROWTH, verb="evict")
    assert len(history.said) == 5
    history.put(NODES, going(node()), by=GROWTH, verb="delete")
    assert len(history.said) == 5, "our own Node is ours"


def test_budgets_bound_what_goes_at_once() -> None:
    """The second of two goes while the budget is one; what others took down counts too, once that could be known."""
    history = running(safety.Budget(), "one", "two", budget="1")
    history.put(CLAIMS, going(claim("one")), by=GROWTH, verb="delete")
    assert history.said == []
    history.put(CLAIMS, going(claim("two")), by=GROWTH, verb="delete")
    assert len(history.said) == 1
    for later, said in ((5.0, 0), (100.0, 1)):
        history = running(safety.Budget(), "one", "two", budget="1")
        history.put(NODES, node("one", ready=False, tainted=True))
        history.put(CLAIMS, going(claim("two")), by=GROWTH, verb="delete", at=later)
        assert len(history.said) == said


def test_a_claim_without_its_node_counts_in_no_budget() -> None:
    """Somebody took the Node away by hand while its claim was going: the pool has one node less, as Karpenter counts."""
    for taken, said in ((False, 1), (True, 0)):
        history = running(safety.Budget(), "one", "two", budget="1")
        history.put(CLAIMS, going(claim("one")), by=GROWTH, verb="delete")
        if taken:
            history.remove(NODES, node("one"))
        history.put(CLAIMS, going(claim("two")), by=GROWTH, verb="delete")
        assert len(history.said) == said


def test_a_pod_of_a_budget_is_evicted_and_not_deleted() -> None:
    """And no machine is taken from under it."""
    budget: Json = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    }
    web = pod(labels={"app": "web"})
    for verb, said in (("delete", 1), ("evict", 0)):
        history = running(pods.DisruptionBudgets())
        history.put(BUDGETS, budget)
        history.put(PODS, web)
        history.put(PODS, going(web), by=GROWTH, verb=verb, at=100.0)
        assert len(history.said) == said
    history = running(pods.DisruptionBudgets())
    history.put(BUDGETS, budget)
    history.put(PODS, web)
    history.put(CONFIG_MAPS, machine(state="deleting"), by=CLOUD, at=100.0)
    assert len(history.said) == 1


def test_what_is_marked_is_not_disrupted() -> None:
    """Neither is the pod evicted nor its node removed."""
    marked = pod(do_not_disrupt="true")
    history = running(pods.DoNotDisrupt())
    history.put(PODS, marked)
    history.put(PODS, going(marked), by=GROWTH, verb="evict", at=100.0)
    assert len(history.said) == 1
    history = running(pods.DoNotDisrupt())
    history.put(NODES, node(tainted=True, annotations={"karpenter.sh/do-not-disrupt": "true"}))
    history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete")
    assert len(history.said) == 1


def test_a_machine_goes_after_its_pods() -> None:
    """A pod that came in the last moment, or that belongs to the node, holds nothing up."""
    for bound, owner, said in ((0.0, "ReplicaSet", 1), (99.9, "ReplicaSet", 0), (0.0, "DaemonSet", 0)):
        history = running(pods.Drained())
        body = pod()
        body["metadata"]["ownerReferences"] = [{"kind": owner}]
        history.put(PODS, body)
        history.case.bound_at["uid-pod-web"] = bound
        history.put(CONFIG_MAPS, machine(state="deleting"), by=CLOUD, at=100.0)
        assert len(history.said) == said, (bound, owner)


def test_who_has_not_heard_of_everything_does_nothing() -> None:
    """Neither buys nor disrupts."""
    history = History(safety.Unsynced(), heard={"pods", "nodes"})
    history.put(CLAIMS, claim("new", initialized=False), by=GROWTH)
    assert history.said == ["growth-a-1 bought new and had not heard of nodeclaims, nodepools"]
    history = running(safety.Unsynced())
    history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete")
    assert history.said == []
    history.case.heard.clear()
    history.put(CLAIMS, claim("two"), by=ADMIN)
    history.put(CONFIG_MAPS, machine("two"), by=CLOUD)
    history.put(NODES, node("two"))
    history.put(CLAIMS, going(claim("two")), by=GROWTH, verb="delete")
    assert len(history.said) == 1


def test_what_is_well_is_marked_before_it_goes() -> None:
    """A node that is not ready, or whose machine is gone, needs no mark."""
    for tainted, ready, there, said in (
        (False, True, True, 1),
        (True, True, True, 0),
        (False, False, True, 0),
        (False, True, False, 0),
    ):
        history = running(safety.Unknown(), tainted=tainted)
        history.put(NODES, node(tainted=tainted, ready=ready))
        if not there:
            history.remove(CONFIG_MAPS, machine())
        history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, (tainted, ready, there)


def test_a_removal_that_is_asked_for_is_judged_as_the_end_of_its_machine() -> None:
    """In growth pools: the node is marked, its pods have a place; of machines that are ill or too many nobody asks."""
    for invariant, tainted, reason, by, said in (
        (safety.Unknown(), False, "Underutilized", GROWTH, 1),
        (safety.Unknown(), False, "Empty", GROWTH, 1),
        (safety.Unknown(), True, "Underutilized", GROWTH, 0),
        (safety.Unknown(), False, "Underutilized", ADMIN, 0),
        (safety.Unknown(), False, "NotReady", GROWTH, 0),
        (moves.Replacement(), True, "Underutilized", GROWTH, 1),
        (moves.Replacement(), True, "OverLimit", GROWTH, 0),
    ):
        history = running(invariant, tainted=tainted)
        history.put(PODS, pod())
        removal = {
            "metadata": {"name": "one", "uid": "uid-removal"},
            "spec": {"nodeClaimName": "one", "reason": reason},
        }
        history.put(REMOVALS, removal, by=by, at=100.0)
        assert len(history.said) == said, (invariant.name, tainted, reason)


def test_a_removal_may_be_asked_for_in_the_blink_after_the_mark_went() -> None:
    """It looks at the mark itself; a claim does not, and what was unmarked a while ago was known to be."""
    removal = {"metadata": {"name": "one", "uid": "uid-removal"}, "spec": {"nodeClaimName": "one", "reason": "Empty"}}
    for seconds, which, said in ((0.5, REMOVALS, 0), (1.5, REMOVALS, 1), (0.5, CLAIMS, 1)):
        history = running(safety.Unknown(), tainted=True)
        history.put(NODES, node(tainted=False), at=100.0 - seconds)
        if which == REMOVALS:
            history.put(REMOVALS, removal, by=GROWTH, at=100.0)
        else:
            history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, (seconds, which)


def test_a_removal_may_be_asked_for_of_a_mark_that_went_while_its_sender_stood_still() -> None:
    """It goes on where it was; not of one that went before, nor seconds after it went on, nor of a claim."""
    removal = {"metadata": {"name": "one", "uid": "uid-removal"}, "spec": {"nodeClaimName": "one", "reason": "Empty"}}
    for froze, thawed, which, said in (
        (70.0, 99.0, REMOVALS, 0),
        (70.0, 96.0, REMOVALS, 1),
        (82.0, 99.0, REMOVALS, 1),
        (float("-inf"), float("-inf"), REMOVALS, 1),
        (70.0, 101.0, REMOVALS, 1),
        (70.0, 99.0, CLAIMS, 1),
    ):
        history = running(safety.Unknown(), tainted=True)
        history.put(NODES, node(tainted=False), at=80.0)
        history.case.froze, history.case.thawed = froze, thawed
        if which == REMOVALS:
            history.put(REMOVALS, removal, by=GROWTH, at=100.0)
        else:
            history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, (froze, thawed, which)


def test_limits_and_caps_hold() -> None:
    """One claim more than the limit is one too many, and so is one coin."""
    history = History(Limits(NO_CAPS))
    history.put(POOLS, pool(nodes="1"))
    history.put(CLAIMS, claim("one"), by=GROWTH)
    assert history.said == []
    history.put(CLAIMS, claim("two"), by=GROWTH)
    assert history.said == ["NodePool default: 2 of 1"]
    history = History(Money(Caps(max_hourly=15, prices={("small", "a", "on-demand"): 10})))
    for name in ("one", "two"):
        body = claim(name)
        body["spec"]["requirements"] = []
        history.put(CLAIMS, body, by=GROWTH)
    assert len(history.said) == 1


def test_books_kept_and_books_derived_agree() -> None:
    """What was kept change by change is what the same objects give all at once; a change that was missed shows."""
    history = running(safety.Leak(), "one", "two")
    history.put(PODS, pod())
    history.put(PODS, pod("other", on="two"))
    history.remove(PODS, pod())
    kept = history.case.books
    derived = Books(CLUSTER)
    for which, objects in kept.objects.items():
        for key, body in objects.items():
            derived.see(which, key, None, msgspec.json.decode(msgspec.json.encode(body)))
    assert kept.differences(derived) == []
    derived.see(PODS, ("default", "late"), None, pod("late"))
    assert kept.differences(derived) == ["pods: [('default', 'late')]", "pods by node"]


def test_what_is_one_too_many_or_of_age_may_go_untainted() -> None:
    """Nobody chose to end it; one that its pool is to keep, or that is young, is disrupted on a guess."""
    for limit, age, said in (("1", "Never", 0), ("2", "Never", 1), ("2", "1h", 0), ("2", "9h", 1)):
        history = running(safety.Unknown(), "one", "two", tainted=False)
        history.put(POOLS, pool(nodes=limit))
        body = claim("one")
        body["spec"]["expireAfter"] = age
        history.put(CLAIMS, body, at=3600.0)
        history.put(CLAIMS, going(body), by=GROWTH, verb="delete", at=3600.0)
        assert len(history.said) == said, (limit, age)


def test_who_writes_has_renewed_the_lease_lately() -> None:
    """By the boot clock of its machine; whoever else renews does not count, nor is anybody else judged."""
    elector = Actor(GROWTH.name, GROWTH.process, Role.ELECTOR)
    for by, other, boot, said in (
        (GROWTH, "", 109.9, 0),
        (GROWTH, "", 110.1, 1),
        (CLOUD, "", 110.1, 1),
        (ADMIN, "", 110.1, 0),
        (GROWTH, "growth-b-1", 110.1, 1),
        (GROWTH, GROWTH.process, 110.1, 0),
        (GROWTH, "", float("-inf"), 0),  # nobody knows when it left
    ):
        history = History(Led())
        for renewed, holder in ((100.0, GROWTH.process), (108.0, other)):
            if holder:
                history.case.boot = renewed
                meta = {"name": "growth-leader-election", "namespace": "growth"}
                body: Json = {"metadata": meta, "spec": {"holderIdentity": holder}}
                history.put(LEASES, body, by=elector, at=renewed)
        history.case.boot = boot
        history.put(POOLS, pool(), by=by, at=120.0)
        assert len(history.said) == said, (by, other, boot)
