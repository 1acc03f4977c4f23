"""What excuses a change and what does not: each promise lets pass no more than it must."""

import datetime as dt

from growth.sim.invariants import moves, pods, safety
from growth.sim.invariants.books import CLAIMS, CONFIG_MAPS, NODES, PODS, POOLS
from growth.sim.invariants.counts import Limits
from growth.sim.ledger import NO_CAPS, Caps
from growth.sim.ports import EPOCH
from growth.units import print_time
from tests.unit.invariants.histories import (
    ADMIN,
    CLOUD,
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


def test_pods_have_their_next_place_first() -> None:
    """A node with pods is removed only when another that is up has room for them: a younger one alone is not enough."""
    for name, room, tainted, said in (
        ("", "0", False, 1),
        ("two", "500m", False, 1),
        ("two", "2", False, 0),
        ("two", "2", True, 1),
    ):
        history = running(moves.Replacement())
        body = pod()
        body["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
        history.put(PODS, body)
        if name:
            other = node(name, tainted=tainted)
            other["status"]["allocatable"] = {"cpu": room, "pods": "10"}
            history.put(CLAIMS, claim(name), by=GROWTH)
            history.put(NODES, other)
        history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, (name, room, tainted)


def test_what_replaces_a_node_is_up_before_its_pods_leave() -> None:
    """An empty node may go before: nobody needs any more what was to take its pods. Nor after the move was given up, if
    there is another place; what is bought for the next move is waited for again.
    """
    for pods_there, up, given_up, said in (
        (1, False, None, 1),
        (1, True, None, 0),
        (0, False, None, 0),
        (1, False, 60.0, 0),
        (1, False, 40.0, 1),
    ):
        history = running(moves.Replacement())
        if given_up == 40.0:
            history.put(NODES, node(tainted=False), at=given_up)
            history.put(NODES, node(tainted=True), at=given_up + 1.0)
        if pods_there:
            history.put(PODS, pod())
        new = claim("two", initialized=up)
        new["metadata"]["annotations"] = {moves.REPLACES: "one"}
        other = node("two")
        other["status"]["allocatable"] = {"cpu": "2", "pods": "10"}
        history.put(CLAIMS, new, by=GROWTH, at=50.0)
        history.put(NODES, other)
        if given_up == 60.0:
            history.put(CLAIMS, claim("three"))
            history.put(NODES, {**other, "metadata": node("three")["metadata"], "spec": node("three")["spec"]})
            history.put(NODES, node(tainted=False), at=given_up)
            history.put(NODES, node(tainted=True), at=given_up + 1.0)
        history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, (pods_there, up, given_up)


def test_what_comes_up_has_its_time() -> None:
    """A machine that is not ready yet is given up after its time and no sooner; one whose Node somebody took may go."""
    for at, registered, taken, said in (
        (100.0, False, False, 1),
        (1000.0, False, False, 0),
        (100.0, True, False, 0),
        (100.0, False, True, 0),
    ):
        history = History(safety.Unknown(patience=900.0))
        body = claim(initialized=False)
        if registered:
            body["status"]["conditions"] = [{"type": "Registered", "status": "True"}]
        history.put(CLAIMS, body, by=GROWTH)
        history.put(CONFIG_MAPS, machine(), by=CLOUD)
        if taken:
            history.put(NODES, going(node()))
        history.put(CLAIMS, going(body), by=GROWTH, verb="delete", at=at)
        assert len(history.said) == said, (at, registered, taken)


def test_what_comes_up_goes_where_the_cloud_denies_it_twice() -> None:
    """Both answers are needed, a minute apart, the second must be new, and its Node registered: else it has its time."""
    twice = [30.0, 95.0]
    for denied, registered, said in (
        ([], True, 1),
        ([95.0], True, 1),
        ([60.0, 95.0], True, 1),
        ([10.0, 65.0], True, 1),
        (twice, False, 1),
        (twice, True, 0),
    ):
        history = History(safety.Unknown(patience=900.0))
        history.case.denied["kwok://one"] = denied
        body = claim(initialized=False)
        if registered:
            body["status"]["conditions"] = [{"type": "Registered", "status": "True"}]
        history.put(CLAIMS, body, by=GROWTH)
        history.put(CONFIG_MAPS, machine(), by=CLOUD)
        history.put(NODES, node(ready=False))
        history.put(CLAIMS, going(body), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, (denied, registered)


def test_what_was_one_too_many_a_blink_ago_may_go() -> None:
    """Somebody lifts the limit while machines go for it: what left before the news could come is forgiven, no more."""
    for lifted, said in ((99.5, 0), (98.5, 1)):
        history = running(safety.Unknown(patience=900.0), "other")
        history.put(NODES, node("other"))
        history.put(CLAIMS, claim(), by=GROWTH)
        history.put(CONFIG_MAPS, machine(), by=CLOUD)
        history.put(NODES, node())
        history.put(POOLS, pool(nodes="1"))
        history.put(POOLS, pool(nodes="2"), at=lifted)
        history.put(CLAIMS, going(claim()), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, lifted


def test_the_deadline_of_a_claim_that_went_a_blink_ago_still_counts() -> None:
    """Somebody takes the finalizer off a claim whose time is over, while its pods are made to leave: what left before the
    news could come is forgiven, no more.
    """
    for gone, said in ((99.5, 0), (98.5, 1)):
        history = running(pods.DoNotDisrupt())
        history.put(PODS, pod(do_not_disrupt="true"))
        late = going(claim(annotations={pods.DEADLINE: print_time(EPOCH + dt.timedelta(seconds=90))}))
        history.put(CLAIMS, late)
        history.remove(CLAIMS, late, at=gone)
        history.put(PODS, going(pod(do_not_disrupt="true")), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, gone


def test_what_comes_up_may_be_one_too_many() -> None:
    """A pool that keeps its number without it, or a move that is not made, gives it up at once."""
    for most, moves_away, said in (("1", "", 0), ("2", "", 1), ("2", "other", 0)):
        history = running(safety.Unknown(patience=900.0), "other")
        history.put(NODES, node("other"))
        history.put(POOLS, pool(nodes=most))
        body = claim(initialized=False, annotations={"growth.dev/replaces": moves_away} if moves_away else {})
        history.put(CLAIMS, body, by=GROWTH)
        history.put(CONFIG_MAPS, machine(), by=CLOUD)
        history.put(CLAIMS, going(body), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, (most, moves_away)


def test_a_deadline_excuses_only_what_it_forces() -> None:
    """Pods are deleted past their protection when they must go to be gone in time, by the clock of who does it, as it was when
    the request left.
    """
    limited = claim(annotations={"karpenter.sh/nodeclaim-termination-timestamp": "2030-01-07T08:10:00Z"})
    for sent, at, skew, said in (
        (300.0, 300.0, 0.0, 1),
        (571.0, 571.0, 0.0, 0),
        (300.0, 300.0, 280.0, 0),
        (560.0, 571.0, 0.0, 1),
    ):
        history = running(pods.DoNotDisrupt())
        history.put(CLAIMS, limited, by=GROWTH)
        history.put(PODS, pod(do_not_disrupt="true"))
        history.case.skew = skew
        history.put(PODS, going(pod(do_not_disrupt="true")), by=GROWTH, verb="delete", at=at, sent=sent)
        assert len(history.said) == said, (sent, at, skew)


def test_budgets_are_read_for_the_reason_that_the_claim_says() -> None:
    """A budget for drift does not hold back an empty node, nor the other way round."""
    for reason, said in (("Drifted", 1), ("Empty", 0), ("", 0)):
        history = running(safety.Budget(), "one", "two", "three", budget="100%")
        strict = pool()
        strict["spec"]["disruption"]["budgets"] = [{"nodes": "0", "reasons": ["Drifted"]}]
        history.put(POOLS, strict)
        body = claim()
        if reason:
            body["status"]["conditions"].append({"type": "DisruptionReason", "status": "True", "reason": reason})
        history.put(CLAIMS, going(body), by=GROWTH, verb="delete", at=100.0)
        assert len(history.said) == said, reason


def test_machines_count_until_somebody_else_takes_their_claim_away() -> None:
    """What we let go of ourselves still counts; what a person took from us is unknown until it is found."""
    for by, verb, said in ((ADMIN, "patch", []), (GROWTH, "patch", ["machines of NodePool default: 2 of 1"])):
        history = History(Limits(NO_CAPS))
        history.put(POOLS, pool(nodes="1"))
        history.put(CLAIMS, claim("one"), by=GROWTH)
        history.put(CONFIG_MAPS, machine("one"), by=CLOUD)
        history.remove(CLAIMS, claim("one"), by=by, verb=verb)
        history.put(CLAIMS, claim("two"), by=GROWTH)
        history.put(CONFIG_MAPS, machine("two"), by=CLOUD)
        assert history.said == said


def test_machines_of_another_cluster_count_for_nobody() -> None:
    """They are in the same project and not ours."""
    history = History(Limits(Caps(max_nodes=1)))
    history.put(CLAIMS, claim("one"), by=GROWTH)
    history.put(CONFIG_MAPS, machine("one"), by=CLOUD)
    history.put(CONFIG_MAPS, machine("theirs", cluster="theirs"))
    history.look(1.0)
    assert history.said == []
    history.put(CONFIG_MAPS, machine("two"), by=CLOUD)
    assert history.said == ["machines of the cluster: 2 of 1"]
