"""The pure parts of growth pools: counting, scale-down, back-off, names."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api import names
from growth.api.growthpools import GrowthPool, NodeRequest
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.pods import Pod
from growth.api.reservations import Reservation
from growth.cluster.node_requests import claim_name, offering_name
from growth.cluster.shapes import CachedPod, Shapes
from growth.cluster.wanting import key_of
from growth.controllers.growth.booking import Wanted, book
from growth.controllers.growth.claims import request_name
from growth.controllers.growth.matching import asked_pools, missing_pool
from growth.controllers.growth.releasing import released_of, staying_of, surplus_of
from growth.controllers.growth.resting import Resting, Rhythm
from growth.planning.emptying import PoolNode, plan_scale_down
from growth.planning.plan import Filter
from growth.sim.ports import SimRandom
from tests.manifests import growth_pool, pod

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
SHAPES = Shapes()


def pool(*types: Json, **spec: Any) -> GrowthPool:
    return msgspec.convert(growth_pool("default", *types, **spec), GrowthPool, strict=False)


def claim(name: str, type_: str = "cax11", *, initialized: bool = True) -> NodeClaim:
    body: Json = {
        "metadata": {"name": name, "labels": {names.POOL_LABEL: "default", names.INSTANCE_TYPE_LABEL: type_}},
        "spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "requirements": []},
        "status": {"conditions": [{"type": "Initialized", "status": "True"}] if initialized else []},
    }
    return msgspec.convert(body, NodeClaim, strict=False)


def request(name: str, type_: str = "cax11", phase: str = "Pending") -> NodeRequest:
    body: Json = {
        "metadata": {"name": name},
        "spec": {"targetOffering": f"hetzner-{type_}", "pool": "default"},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, NodeRequest, strict=False)


def cached(name: str = "a", **spec: Any) -> CachedPod:
    return SHAPES.keep(msgspec.convert(pod(name, **spec), Pod, strict=False))


# Names.


def test_names_follow_the_pattern_and_claims_fit_a_label() -> None:
    """`<pool>-pool-<uuid>`; a claim's name is at most 63 characters and derived from the request's alone."""
    random = SimRandom(1, "names")
    short, long = request_name("default", random), request_name("a-pool-with-a-name-that-is-quite-long", random)
    assert short.startswith("default-pool-")
    assert claim_name(short) == short
    assert len(claim_name(long)) <= 63
    assert claim_name(long).endswith(long[-36:])
    assert claim_name(long) == claim_name(long)
    by_hand = "x" * 200
    assert len(claim_name(by_hand)) <= 63
    assert claim_name(by_hand) != claim_name("x" * 201)
    assert offering_name("hetzner", "CAX11") == "hetzner-cax11"


# Counting.


def booked(bounds: GrowthPool, *wanted: str, **there: Any) -> tuple[str, ...]:
    found = book(
        bounds,
        [Wanted(name=name, type="cax11") for name in wanted],
        reserved=there.get("reserved", {}),
        claims=there.get("claims", ()),
        requests=there.get("requests", ()),
        now=NOW,
    )
    return tuple(each.name for each in found.taken)


def test_a_name_counts_once_whatever_it_is() -> None:
    """A claim, its request and its reservation are one machine."""
    same = {
        "claims": [claim("a")],
        "requests": [request("a"), request("b")],
        "reserved": {"b": Reservation(at=NOW, instance_type="cax11")},
    }
    assert booked(pool({"name": "CAX11", "max": 3}), "c", "d", **same) == ("c",)


def test_unmet_requests_count_no_more_and_those_on_their_way_out_do() -> None:
    """From the request until the machine is gone."""
    there = {
        "requests": [request("a", phase="Unmet"), request("b", phase="Deprovisioning"), request("c", phase="Ready")]
    }
    assert booked(pool({"name": "cax11", "max": 2}), "x", "y", **there) == ("x",)


def test_the_limit_counts_all_types_and_max_only_its_own() -> None:
    """Whichever is reached first."""
    others = [claim("a", "cax21"), claim("b", "cax21")]
    assert booked(pool({"name": "cax11", "max": 9}, limits={"nodes": 3}), "x", "y", claims=others) == ("x",)
    assert booked(pool({"name": "cax11", "max": 1}), "x", "y", claims=others) == ("x",)


def test_a_machine_to_be_kept_warm_is_wanted_up_to_the_minimum() -> None:
    """Two processes that both see one missing do not both get one."""
    bounds = pool({"name": "cax11", "min": 2, "max": 9})
    warm = [Wanted(name=name, type="cax11", warm=True) for name in ("x", "y")]
    found = book(bounds, warm, reserved={}, claims=[claim("a")], requests=(), now=NOW)
    assert [each.name for each in found.taken] == ["x"]
    assert "min of 2" in found.refused[0][1]


# Scale-down.


def node(name: str, **more: Any) -> PoolNode:
    return PoolNode(name=name, pool="default", type=more.pop("type", "cax11"), **more)


def planned(nodes: list[PoolNode], *types: Json) -> Any:
    bounds = pool(*types or ({"name": "cax11", "max": 9},), scaleDownAfter="10m")
    return plan_scale_down(nodes, {"default": bounds}, now=NOW)


def test_empty_nodes_are_marked_until_their_time() -> None:
    """Ten minutes from now; one that is marked keeps its time."""
    plan = planned([node("a"), node("b", marked=True, due=NOW + dt.timedelta(minutes=1))])
    assert [(each.node, each.at) for each in plan.mark] == [("a", NOW + dt.timedelta(minutes=10))]
    assert plan.remove == ()


@pytest.mark.parametrize(
    "state", [{"pods": (cached(),)}, {"wanted": True}, {"protected": True}, {"paused": True}], ids=str
)
def test_what_keeps_a_node_also_takes_its_mark_off(state: dict[str, Any]) -> None:
    """Neither marked nor removed; a mark that is there goes."""
    plan = planned([node("a", **state), node("b", marked=True, due=NOW, **state)])
    assert (plan.mark, plan.remove) == ((), ())
    assert list(plan.cancel) == ["b"]


def test_the_minimum_is_never_marked() -> None:
    """As many as `min` of each type stay; busy ones count for it; a minimum that was raised takes marks off."""
    minimum = {"name": "cax11", "min": 2, "max": 9}
    assert len(planned([node("a"), node("b"), node("c")], minimum).mark) == 1
    assert len(planned([node("a", pods=(cached(),)), node("b"), node("c")], minimum).mark) == 1
    marked = [node("a", marked=True, due=NOW), node("b", marked=True, due=NOW)]
    plan = planned(marked, minimum)
    assert plan.remove == ()
    assert sorted(plan.cancel) == ["a", "b"]


def test_what_is_on_its_way_out_is_left_alone_and_does_not_count() -> None:
    """A removal, a deletion: their machines keep nobody else's minimum."""
    nodes = [node("a", removal=True, marked=True, due=NOW), node("b", leaving=True), node("c")]
    plan = planned(nodes, {"name": "cax11", "min": 1, "max": 9})
    assert (plan.mark, plan.remove, dict(plan.cancel)) == ((), (), {})


def test_released_are_as_many_as_the_minimum_allows_whoever_asks() -> None:
    """Names that others are about to release count as gone."""
    claims = {name: claim(name) for name in "abc"}
    bounds = pool({"name": "cax11", "min": 1, "max": 9})
    assert released_of(bounds, ["a", "b", "c"], staying_of(bounds, claims, (), {})) == ("a", "b")
    left = staying_of(bounds, claims, (), {"a": Reservation(at=NOW)})
    assert released_of(bounds, ["b", "c"], left) == ("b",)


def test_the_surplus_is_what_is_beyond_the_limit() -> None:
    """No more goes, and nothing without a limit."""
    claims = {name: claim(name) for name in "abc"}
    assert surplus_of(pool({"name": "cax11", "max": 9}, limits={"nodes": 2}), ["b", "a"], claims) == ("b",)
    assert surplus_of(pool({"name": "cax11", "max": 9}), ["b", "a"], claims) == ()


# Back-off.

RHYTHM = Rhythm(passes=3, first=10.0, ceiling=40.0, recheck=1000.0)
FULL = frozenset({Filter.LIMITS})


def passed(resting: Resting, pods: list[CachedPod], now: float, filters: frozenset[Filter] = FULL) -> int:
    """A pass in which those that are not left out have no place; for how many it was made."""
    out = resting.left_out(now)
    seen = {key_of(each): each for each in pods if key_of(each) not in out}
    resting.looked(seen, dict.fromkeys(seen, filters), dict.fromkeys(seen, "default"), now)
    return len(seen)


def test_a_pod_rests_longer_and_longer_and_is_marked_at_the_ceiling() -> None:
    """Three passes, ten seconds, twenty, then the mark; nothing before its time."""
    resting, pods = Resting(RHYTHM), [cached("a"), cached("b")]
    now, made = 0.0, []
    while now < 120:
        made.append((now, passed(resting, pods, now)))
        now += 5
    assert [at for at, number in made if number] == [0, 5, 10, 20, 40]
    assert len(resting) == 2
    assert passed(resting, pods, 1040.0) == 2


def test_one_probe_for_a_type_and_all_when_it_was_had() -> None:
    """The others wait for what comes of it; a probe of another shape follows one that has no place."""
    resting, pods = Resting(RHYTHM), [cached("a", cpu="1"), cached("b", cpu="1"), cached("c", cpu="2")]
    for now in (0, 5, 10, 20, 40):
        passed(resting, pods, float(now))
    assert resting.recovers("default", "cax11")
    assert not resting.recovers("other", "cax11")
    out = resting.left_out(50.0)
    assert [key_of(each) for each in pods if key_of(each) not in out] == ["default/a"]
    assert passed(resting, pods, 50.0) == 1
    out = resting.left_out(51.0)
    assert [key_of(each) for each in pods if key_of(each) not in out] == ["default/c"]
    resting.looked({"default/c": pods[2]}, {}, {}, 51.0, bought={"default/c"})
    assert len(resting.left_out(52.0)) == 2
    assert {each.name for each in resting.had("default")} == {"a", "b"}
    assert resting.left_out(53.0) == frozenset()


def test_what_no_machine_would_help_waits_for_a_change() -> None:
    """A pod that is too large for every type comes back with the pool, not with a machine that goes."""
    resting, pods = Resting(RHYTHM), [cached("a")]
    for now in (0, 5, 10, 20, 40):
        passed(resting, pods, float(now), frozenset({Filter.RESOURCES}))
    assert resting.room("default") == []
    assert resting.had("default") == []
    assert [each.name for each in resting.changed("default")] == ["a"]


def test_a_mark_from_before_counts_and_one_on_its_way_off_does_not() -> None:
    """A new process leaves marked pods out; one that it released itself stays released."""
    marked = cached("a")
    marked = msgspec.structs.replace(marked, annotations={names.BACK_OFF_ANNOTATION: "2030-01-01T00:00:00Z"})
    resting = Resting(RHYTHM)
    assert resting.seen(marked, "default", 0.0, NOW)
    assert resting.left_out(1.0) == {"default/a"}
    resting.changed("default")
    assert not resting.seen(marked, "default", 2.0, NOW)
    assert resting.left_out(3.0) == frozenset()


# Which pool.


def spec(**more: Any) -> Any:
    return cached("x", **more).shape.spec


def test_pools_are_asked_for_by_selector_or_affinity() -> None:
    """Required terms count, others do not."""
    term = {"matchExpressions": [{"key": names.POOL_LABEL, "operator": "In", "values": ["a", "b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert asked_pools(spec(nodeSelector={names.POOL_LABEL: "a"})) == {"a"}
    assert asked_pools(spec(affinity={"nodeAffinity": required})) == {"a", "b"}
    assert asked_pools(spec()) == frozenset()


@pytest.mark.parametrize(
    ("asks", "pools", "karpenter", "reason"),
    [
        ({}, set(), False, names.NO_NODE_POOL),
        ({}, {"other"}, False, names.NO_NODE_POOL),
        ({}, {"default"}, False, None),
        ({}, set(), True, None),
        ({names.POOL_LABEL: "a"}, {"default"}, True, names.NODE_POOL_NOT_FOUND),
        ({names.POOL_LABEL: "a"}, {"a"}, False, None),
    ],
)
def test_who_has_no_pool_is_told_which(
    asks: dict[str, str], pools: set[str], *, karpenter: bool, reason: str | None
) -> None:
    """Neither asked for nor default; asked for and missing."""
    found = missing_pool(spec(nodeSelector=asks), pools, karpenter=karpenter)
    assert (found[0] if found else None) == reason
