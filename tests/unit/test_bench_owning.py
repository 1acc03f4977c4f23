"""What `bench e2e` reads out of an audit log and the objects that a scale-up left."""

import json
import pathlib
from typing import Any

from bench import e2e
from bench.catalogues import kwok_types
from bench.owning.audit import Split, Write, split, writes
from bench.owning.measured import cheapest, cost_of, first_purchase, prices_of, scaled

PRICES = prices_of(kwok_types())
START = 1_800_000_000.0


def line(
    verb: str, resource: str, *, stage: str = "ResponseComplete", at: str = "00:00:01.250000", code: int = 200
) -> str:
    body: dict[str, Any] = {
        "stage": stage,
        "verb": verb,
        "user": {"username": "growth"},
        "requestReceivedTimestamp": f"2026-01-01T{at}Z",
        "stageTimestamp": f"2026-01-01T{at}Z",
        "objectRef": {"resource": resource, "name": "one"},
        "responseStatus": {"code": code},
    }
    return json.dumps(body) + "\n"


def write(seconds: float, resource: str, verb: str = "patch", **fields: Any) -> Write:
    told = {"user": "growth", "subresource": "", "namespace": "", "name": "", "code": 200, **fields}
    return Write(at=START + seconds, verb=verb, resource=resource, **told)


def claim(name: str, second: int, *types: str, node: str) -> dict[str, Any]:
    wanted = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}]
    wanted.append({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]})
    meta = {"name": name, "creationTimestamp": f"2027-01-15T08:00:{second:02}Z"}
    return {"metadata": meta, "spec": {"requirements": wanted}, "status": {"nodeName": node}}


def node(name: str, kind: str) -> dict[str, Any]:
    labels = {
        "node.kubernetes.io/instance-type": kind,
        "topology.kubernetes.io/zone": "test-zone-a",
        "karpenter.sh/capacity-type": "on-demand",
    }
    return {"metadata": {"name": name, "labels": labels}}


def test_a_log_gives_each_answered_write_once(tmp_path: pathlib.Path) -> None:
    """Panics and long-running stages are not answers, and half a line waits for its other half."""
    log = tmp_path / "audit.log"
    log.write_text(line("create", "nodeclaims") + line("patch", "nodes", stage="Panic") + line("patch", "nodes")[:40])
    assert [(each.verb, each.resource, each.applied) for each in writes(log)] == [("create", "nodeclaims", True)]
    (only,) = writes(log)
    assert only.at % 60 == 1.25


def test_refused_writes_do_not_count() -> None:
    """A conflict changed nothing."""
    found = [write(1, "nodeclaims"), write(1, "nodeclaims", code=409), write(2, "events"), write(3, "leases")]
    found += [write(4, "nodepools"), write(5, "decisions"), write(6, "configmaps")]
    assert split(found) == Split(claims=1, nodes=0, events=1, leases=1, decisions=1, pools=1, rest=1)


def test_a_claim_is_planned_at_the_cheapest_offering_that_it_allows() -> None:
    """Spot is cheaper, and this claim does not allow it."""
    only = claim("a", 1, "c-8x-amd64-linux", "c-4x-amd64-linux", node="n")
    on_demand = PRICES["c-4x-amd64-linux", "test-zone-b", "on-demand"]
    assert cheapest(only, PRICES) == on_demand
    assert PRICES["c-4x-amd64-linux", "test-zone-b", "spot"] < on_demand
    assert cost_of([node("n", "c-4x-amd64-linux"), node("m", "c-4x-amd64-linux")], PRICES) == 2 * on_demand


def test_a_pause_of_a_second_separates_purchases() -> None:
    """The claims of one pass come without a pause."""
    assert first_purchase([3.0, 1.0, 1.8, 2.7]) == 3.0
    assert first_purchase([1.0, 1.9, 2.9, 9.0]) == 1.9


def test_a_scale_up_is_told_by_the_log_and_what_it_left() -> None:
    """Every column from a log that can be read with the eye."""
    log = [
        write(-1, "nodeclaims", "create"),
        write(2.0, "nodeclaims", "create"),
        write(2.5, "nodeclaims", "patch", subresource="status"),
        write(3, "configmaps", "create", user="growth-kwok"),
        write(4, "nodes", "patch", user="kwok", subresource="status", name="n"),
        write(30, "nodes", "patch", user="kwok", subresource="status", name="n"),
        write(5.25, "nodeclaims", "create"),
        write(5.5, "nodes", "create"),
        write(6, "nodes", "patch"),
        write(7, "nodes", "patch", user="kwok", subresource="status", name="m"),
        write(8, "pods", "create", user="system:kube-scheduler", subresource="binding", name="p"),
        write(9, "pods", "patch", user="kwok", subresource="status", name="p"),
        write(10, "events", "create"),
        write(11, "leases", "update"),
    ]
    claims = [claim("a", 2, "c-4x-amd64-linux", node="n"), claim("b", 5, "c-8x-amd64-linux", node="m")]
    nodes = [node("n", "c-4x-amd64-linux"), node("m", "c-8x-amd64-linux")]
    pods = [{"spec": {"nodeName": "n"}}, {"spec": {"nodeName": "m"}}, {"spec": {"nodeName": "m"}}]
    found = scaled(
        log,
        since=START,
        user="growth",
        cloud_user="growth-kwok",
        pods=pods,
        nodes=nodes,
        claims=claims,
        prices=PRICES,
        cpu_seconds=1.5,
        peak_bytes=2_000_000,
    )
    assert (found.last_claim, found.last_ready, found.last_bound, found.last_running) == (5.25, 7.0, 8.0, 9.0)
    assert (found.claims, found.nodes, found.events, found.leases, found.rest, found.cloud) == (3, 1, 1, 1, 0, 2)
    assert (found.machines, found.second, found.peak_mb) == (2, 2, 2.0)
    assert found.writes_per_machine == 2.5
    assert found.planned == PRICES["c-4x-amd64-linux", "test-zone-a", "on-demand"]
    assert found.cost == found.planned + PRICES["c-8x-amd64-linux", "test-zone-a", "on-demand"]


def test_a_cell_asks_for_exactly_so_many_pods() -> None:
    """The web mix rounds its shares without losing a pod."""
    for cell in e2e.CELLS:
        assert sum(int(each["metadata"]["annotations"]["replicas"]) for each in e2e.deployments(cell, 1000)) == 1000


def test_a_broken_promise_fails_the_benchmark() -> None:
    """Each of the three ratios by itself."""
    good = {"last bound": 0.7, "writes per machine": 0.5, "cost": 1.0}
    assert not e2e.failed({"plain ratios": good, "pods": 1000})
    for name, value in good.items():
        assert e2e.failed({"plain ratios": good, "web ratios": {**good, name: value + 0.01}})
