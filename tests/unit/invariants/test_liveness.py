"""What must be true in the end: planted ends that break one promise each."""

from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.providers.catalogues import builtin
from growth.sim.invariants import liveness
from growth.sim.invariants.books import BUDGETS, CLAIMS, CONFIG_MAPS, NODES, PODS, POOLS
from growth.sim.invariants.liveness import Ending
from tests.unit.invariants.histories import GROWTH, History, claim, going, machine, node, pod, pool, running


def judged(invariant: liveness.AtTheEnd, history: History, *, at: float = 3600.0, **ending: Any) -> list[str]:
    history.case.now = at
    return [*history.said, *(each.said for each in invariant.end(history.case, Ending(**ending)))]


def pending(cpu: str = "1") -> Json:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}
    body = pod("lost", on="")
    return {**body, "spec": {"containers": [container]}, "status": {"phase": "Pending"}}


@pytest.mark.parametrize(("cpu", "limit", "said"), [("1", "5", 1), ("5000", "5", 0), ("1", "1", 0)])
def test_a_pod_that_could_run_runs(cpu: str, limit: str, said: int) -> None:
    """One that no machine could hold, or whose pool is full, is excused."""
    bound = liveness.Bound()
    history = running(bound)
    history.put(POOLS, pool(nodes=limit))
    history.put(PODS, pending(cpu))
    assert len(judged(bound, history, catalogue=builtin("kwok"))) == said


@pytest.mark.parametrize(("until", "said"), [("2031-01-01T00:00:00Z", 0), ("2029-01-01T00:00:00Z", 1)])
def test_a_pod_may_wait_while_its_pool_rests_after_machines_in_vain(until: str, said: int) -> None:
    """Until the rest is over, and no longer."""
    bound = liveness.Bound()
    history = running(bound)
    rests = pool()
    rests["metadata"]["annotations"] = {names.IN_VAIN_ANNOTATION: f'{{"0a1b": {{"rounds": 2, "until": "{until}"}}}}'}
    history.put(POOLS, rests)
    history.put(PODS, pending("1"))
    assert len(judged(bound, history, catalogue=builtin("kwok"))) == said


def test_deletions_come_to_their_end() -> None:
    """Unless a pod may not leave; one that could and is still there is no excuse."""
    web = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    held = pod(labels={"app": "web"})
    for there, allowed, said in (
        (None, 0, 2),
        (pod(), 0, 2),
        (pod(do_not_disrupt="true"), 0, 0),
        (held, 0, 0),
        (held, 1, 2),
    ):
        ended = liveness.Ended()
        history = running(ended)
        history.put(BUDGETS, {**web, "status": {"disruptionsAllowed": allowed}})
        if there is not None:
            history.put(PODS, there)
        history.put(CLAIMS, going(claim()))
        history.put(NODES, going(node()))
        assert len(judged(ended, history)) == said


def test_nothing_is_bought_again_that_was_removed() -> None:
    """While nothing else changed: before the calm, and after a machine failed, it may."""
    for calm, failed, said in ((0.0, False, 1), (3000.0, False, 0), (0.0, True, 0)):
        invariant = liveness.Calm()
        history = running(invariant, "one", "two")
        history.case.calm_since = calm
        history.put(CLAIMS, going(claim("one")), by=GROWTH, verb="delete", at=1000.0)
        history.put(NODES, going(node("one", tainted=True)), by=GROWTH, verb="delete", at=1001.0)
        if failed:
            history.remove(CONFIG_MAPS, machine("two"))
            history.put(CLAIMS, going(claim("two")), by=GROWTH, verb="delete", at=1100.0)
        history.put(CLAIMS, claim("three", initialized=False), by=GROWTH, at=1200.0)
        assert len(history.said) == said, (calm, failed)


def drifted(name: str) -> Json:
    body = claim(name)
    body["status"]["conditions"].append({"type": "Drifted", "status": "True"})
    return body


@pytest.mark.parametrize(
    ("replicas", "limit", "mode", "drifts_at", "pools", "said"),
    [
        (2, "2", "Hard", 300.0, ["default"], 0),
        (2, "2", None, 300.0, ["default"], 0),
        (3, "2", "Hard", 300.0, ["default"], 0),
        (2, "2", "Hard", 300.0, ["default", "default"], 1),
        (2, "2", "Hard", 300.0, ["another"], 1),
        (2, "2", "Hard", 900.0, ["default"], 1),
        (2, "2", "Hard", None, ["default"], 1),
        (2, "3", "Hard", 300.0, ["default"], 1),
        (2, "2", "Soft", 300.0, ["default"], 1),
        (2, None, "Hard", 300.0, ["default"], 1),
        (None, "2", "Hard", 300.0, ["default"], 1),
    ],
)
def test_what_is_replaced_in_place_is_bought_after_it_went(
    *, replicas: int | None, limit: str | None, mode: str | None, drifts_at: float | None, pools: list[str], said: int
) -> None:
    """Where a static pool's Hard limit has no room beside: one for each that had drifted before the rest, in its pool."""
    invariant = liveness.Calm()
    history = running(invariant, "one", "two")
    body = pool(**({"nodes": limit} if limit else {}))
    body["spec"] |= {"replicas": replicas} if replicas is not None else {}
    body["spec"]["disruption"] |= {"nodeLimitMode": mode} if mode is not None else {}
    history.put(POOLS, body)
    history.case.calm_since = 0.0
    old = claim("one")
    if drifts_at is not None:
        old = drifted("one")
        history.put(CLAIMS, old, by=GROWTH, at=drifts_at)
    history.put(CLAIMS, going(old), by=GROWTH, verb="delete", at=1000.0)
    history.put(NODES, going(node("one", tainted=True)), by=GROWTH, verb="delete", at=1001.0)
    for number, name in enumerate(pools):
        bought = claim(f"new-{number}", initialized=False, labels={"karpenter.sh/nodepool": name})
        history.put(CLAIMS, bought, by=GROWTH, at=1200.0)
    assert len(history.said) == said


def test_an_idle_cluster_is_not_written_to() -> None:
    """In its last minutes; what was written before is no matter."""
    for at, said in ((3500.0, 1), (3000.0, 0)):
        idle = liveness.Idle()
        history = running(idle)
        history.put(CLAIMS, claim(annotations={"a": "b"}), by=GROWTH, at=at)
        assert len(judged(idle, history)) == said


def test_what_waits_and_what_stays_has_a_reason() -> None:
    """An event, or the newest Decision, says why."""
    for told, said in ((False, 2), (True, 0)):
        reasons = liveness.Reasons()
        history = running(reasons)
        history.put(PODS, pending())
        events = [{"involvedObject": {"uid": uid}} for uid in ("uid-pod-lost", "uid-node-one")] if told else []
        assert len(judged(reasons, history, events=events)) == said


def next_to_go() -> Json:
    body = node()
    body["spec"]["taints"] = [{"key": "growth.dev/leaving-soon", "effect": "PreferNoSchedule"}]
    return body


def test_machines_claims_and_nodes_are_one_set() -> None:
    """And no claim has lost its finalizer, and no Node has kept our mark, but for the next to go where others go."""
    for change, said in (
        (lambda _: None, 0),
        (lambda history: history.remove(CONFIG_MAPS, machine()), 1),
        (lambda history: history.put(CLAIMS, claim(finalizers=[])), 1),
        (lambda history: history.put(NODES, node(tainted=True)), 1),
        (lambda history: history.put(NODES, next_to_go()), 1),
        (lambda history: (history.put(NODES, next_to_go()), history.put(CLAIMS, going(claim("two")))), 0),
        (lambda history: history.remove(CLAIMS, claim()), 1),
        (lambda history: history.put(CLAIMS, claim(initialized=False)), 1),
    ):
        settled = liveness.Settled()
        history = running(settled, tainted=False)
        change(history)
        assert len(judged(settled, history)) == said


@pytest.mark.parametrize(
    ("replicas", "limit", "there", "said"),
    [
        (2, "", 2, 0),
        (2, "", 1, 1),
        (2, "", 3, 1),
        (3, "2", 2, 0),
        (None, "2", 2, 0),
        (None, "1", 2, 1),
        (None, "", 9, 0),
    ],
)
def test_pools_end_at_their_numbers(replicas: int | None, limit: str, there: int, said: int) -> None:
    """A static pool has its replicas as far as its limit allows; no pool keeps more than its limit."""
    sized = liveness.Sized()
    history = running(sized, *(f"m{number}" for number in range(there)), tainted=False)
    body = pool(**({"nodes": limit} if limit else {}))
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    history.put(POOLS, body)
    assert len(judged(sized, history)) == said


def test_what_is_replaced_or_leaves_is_not_kept() -> None:
    """A move under way is no surplus, and a pool whose machine is still going lacks nothing yet."""
    sized = liveness.Sized()
    history = running(sized, "old", "new", tainted=False)
    body = pool(nodes="1")
    body["spec"]["replicas"] = 1
    history.put(POOLS, body)
    assert len(judged(sized, history)) == 1
    history.put(CLAIMS, claim("new", annotations={"growth.dev/replaces": "old"}))
    assert judged(sized, history) == []
    history = running(sized, "old", tainted=False)
    history.put(POOLS, body)
    history.put(CLAIMS, going(claim("old")))
    assert judged(sized, history) == []


@pytest.mark.parametrize(("up", "marked", "said"), [(False, False, 0), (True, True, 0), (True, False, 1)])
def test_a_move_that_was_taken_back_leaves_one_too_many(*, up: bool, marked: bool, said: int) -> None:
    """Of a pool that is not static: what was to replace is up, and the mark is off what it was to replace."""
    sized = liveness.Sized()
    history = running(sized, "old", tainted=marked)
    history.put(POOLS, pool(nodes="1"))
    history.put(CLAIMS, claim("new", initialized=up, annotations={"growth.dev/replaces": "old"}))
    assert len(judged(sized, history)) == said
