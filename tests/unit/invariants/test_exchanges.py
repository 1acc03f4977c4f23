"""The promises of growth pools whose machines are exchanged, on small histories."""

from typing import Any

import pytest

from growth.api.kinds import Json
from growth.sim.invariants.books import CLAIMS, GROWTH_POOLS, NODES, PODS, REMOVALS
from growth.sim.invariants.exchanges import Warm
from growth.sim.invariants.liveness import Ending, Renewed
from tests.unit.invariants.histories import ADMIN, GROWTH, History, claim, going, node, pod

TYPE = "node.kubernetes.io/instance-type"


def servers(least: int = 2, *, template: Json | None = None, **spec: Any) -> Json:
    types = [{"name": "Small", "min": least, "max": 9}]
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": "default", "uid": "uid-default"},
        "spec": {"serverTypes": types, "template": template or {}, **spec},
        "status": {"conditions": ready},
    }


def owned(name: str, kind: str = "small", **labels: str) -> Json:
    return claim(name, labels={"growth.dev/pool": "default", TYPE: kind, **labels})


def removal(name: str, reason: str = "Drifted") -> Json:
    return {"metadata": {"name": name, "uid": f"removal-{name}"}, "spec": {"reason": reason}}


def with_machines(invariant: Any, *names: str) -> History:
    history = History(invariant)
    history.put(GROWTH_POOLS, servers())
    for name in names:
        history.put(CLAIMS, owned(name), by=GROWTH)
        history.put(NODES, node(name, tainted=False))
    return history


@pytest.mark.parametrize(
    ("machines", "reason", "said"),
    [(2, "Drifted", 1), (2, "Underutilized", 1), (3, "Drifted", 0), (2, "OverLimit", 0), (2, "NotReady", 0)],
)
def test_a_minimum_is_kept_by_moves(machines: int, reason: str, said: int) -> None:
    """Of two that are to be kept neither is moved away, of three one; what must go goes whatever the minimum."""
    history = with_machines(Warm(), *map(str, range(machines)))
    history.put(REMOVALS, removal("0", reason), by=GROWTH, at=100.0)
    assert len(history.said) == said


def test_two_removals_are_counted_together() -> None:
    """The second takes what the first left."""
    history = with_machines(Warm(), "a", "b", "c")
    history.put(REMOVALS, removal("a"), by=GROWTH, at=100.0)
    assert history.said == []
    history.put(REMOVALS, removal("b"), by=GROWTH, at=101.0)
    assert len(history.said) == 1


@pytest.mark.parametrize(("silent_at", "said"), [(50.0, 1), (90.0, 0)])
def test_a_node_that_fell_silent_a_moment_ago_was_believed(silent_at: float, said: int) -> None:
    """It counts as ready until Growth had time to hear of it, and not for longer."""
    history = with_machines(Warm(), "a", "b", "c")
    silent = node("c", tainted=False)
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    history.put(NODES, silent, by=ADMIN, at=silent_at)
    history.put(REMOVALS, removal("a"), by=GROWTH, at=100.0)
    assert len(history.said) == said


def test_a_machine_of_two_nodes_is_ready_where_one_of_them_is() -> None:
    """The end of the other says nothing of it."""
    history = with_machines(Warm(), "a", "b", "c")
    twin = node("c", tainted=False)
    twin["metadata"] = {**twin["metadata"], "name": "c-twin", "uid": "uid-twin"}
    history.put(NODES, twin)
    history.remove(NODES, twin, at=20.0)
    history.put(REMOVALS, removal("a"), by=GROWTH, at=100.0)
    assert history.said == []


def left(history: History) -> int:
    invariant = history._invariant
    assert isinstance(invariant, Renewed)
    return len(list(invariant.end(history.case, Ending())))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, 0),
        ({"template": {"labels": {"team": "b"}}}, 1),
        ({"template": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, 1),
        ({"serverTypes": [{"name": "large", "max": 3}]}, 1),
        ({"template": {"labels": {"team": "b"}}, "disruption": {"budgets": [{"nodes": "0"}]}}, 0),
    ],
)
def test_machines_are_what_their_pool_asks_for_in_the_end(change: Json, said: int) -> None:
    """One that is not and that nothing keeps is one too many."""
    history = with_machines(Renewed(), "a")
    history.put(GROWTH_POOLS, servers(**change))
    assert left(history) == said


def test_what_keeps_a_machine_excuses_it() -> None:
    """A pod that may not leave, a condition of the pool that says why, a removal that is under way, or its own end."""
    changed = servers(template={"labels": {"team": "b"}})
    history = with_machines(Renewed(), "a")
    history.put(GROWTH_POOLS, changed)
    assert left(history) == 1
    protected = pod()
    protected["spec"]["nodeName"] = "a"
    protected["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    history.put(PODS, protected)
    assert left(history) == 0
    history.remove(PODS, protected)
    blocked = {"type": "DriftBlocked", "status": "True"}
    history.put(GROWTH_POOLS, {**changed, "status": {"conditions": [*changed["status"]["conditions"], blocked]}})
    assert left(history) == 0
    history.put(GROWTH_POOLS, changed)
    history.put(REMOVALS, removal("a"), by=GROWTH)
    assert left(history) == 0
    history.remove(REMOVALS, removal("a"), by=GROWTH)
    assert left(history) == 1
    history.put(CLAIMS, going(owned("a")), by=ADMIN)
    assert left(history) == 0
