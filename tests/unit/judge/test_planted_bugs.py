"""The judge is no formality: each bug that is planted in a good plan is found."""

import dataclasses
from collections.abc import Callable

import pytest

from growth.api import names
from growth.api.pools import PoolRef
from growth.cluster.snapshot import Demand, NodeView, PoolView, Snapshot, VolumesView
from growth.planning.plan import Filled, Filter, Plan, PlannedClaim, Reason, Unplaced
from growth.planning.solve import solve
from growth.sim.judge import judge
from tests.unit.planning.builders import (
    FAMILY,
    HOST,
    LARGE,
    MEDIUM,
    SHAPES,
    SMALL,
    TYPE,
    ZONE,
    claim,
    csi_node,
    far,
    growth_pool,
    kind,
    near,
    need,
    node,
    pod,
    pods,
    pool,
    spread,
    storage,
    taint,
    term,
    tolerate,
    volume,
)

WEB = {"app": "web"}
DB = {"app": "db"}


@dataclasses.dataclass(frozen=True)
class Case:
    """A cluster and its plan, which the judge passes."""

    snapshot: Snapshot
    demands: tuple[Demand, ...]
    plan: Plan

    def complaints(self, plan: Plan) -> set[str]:
        return {complaint.rule for complaint in judge(self.snapshot, self.demands, plan)}


def case(*objects: object, daemons: tuple[object, ...] = ()) -> Case:
    wanted = []
    for each in objects:
        if isinstance(each, list):
            wanted.extend(each)
        elif hasattr(each, "spec") and hasattr(each, "status") and not isinstance(each, (PoolView, NodeView)):
            wanted.append(each)
    snapshot = Snapshot(
        currency="EUR",
        pools=tuple(each for each in objects if isinstance(each, PoolView)),
        nodes=tuple(each for each in objects if isinstance(each, NodeView)),
        volumes=next((each for each in objects if isinstance(each, VolumesView)), VolumesView()),
        daemons=daemons,  # type: ignore[arg-type]
        namespaces={"default": {}},
    )
    demands = tuple(Demand(f"{p.metadata.namespace}/{p.metadata.name}", SHAPES.shape(p)) for p in wanted)
    plan = solve(snapshot, demands)
    assert not judge(snapshot, demands, plan)
    return Case(snapshot, demands, plan)


def moved(plan: Plan, key: str, to: str | int) -> Plan:
    """The plan with one pod elsewhere, told everywhere in the same way."""
    order = tuple((each, to if each == key else place) for each, place in plan.order)
    if all(each != key for each, _ in plan.order):
        order = (*order, (key, to))
    claims = tuple(
        dataclasses.replace(
            each,
            pods=tuple(pod_key for pod_key, place in order if place == at),
            requests=each.requests,
        )
        for at, each in enumerate(plan.claims)
    )
    names_of = dict.fromkeys(place for _, place in order if isinstance(place, str))
    filled = tuple(Filled(name, tuple(k for k, place in order if place == name)) for name in names_of)
    unplaced = tuple(each for each in plan.unplaced if each.pod != key)
    return dataclasses.replace(plan, order=order, claims=claims, filled=filled, unplaced=unplaced)


def changed(plan: Plan, at: int = 0, **fields: object) -> Plan:
    """The plan with one claim changed."""
    claims = list(plan.claims)
    claims[at] = dataclasses.replace(claims[at], **fields)  # type: ignore[arg-type]
    return dataclasses.replace(plan, claims=tuple(claims))


def relabelled(claim_: PlannedClaim, **labels: str) -> dict[str, str]:
    return {**claim_.labels, **labels}


# What is planted · the cluster · the change · the rule that must complain.
PLANTED: list[tuple[str, Callable[[], Case], Callable[[Plan], Plan], str]] = [
    (
        "a pod is forgotten",
        lambda: case(pool(), pods(2)),
        lambda plan: dataclasses.replace(plan, order=plan.order[:1]),
        "accounts",
    ),
    (
        "a pod is placed twice",
        lambda: case(pool(), pods(2)),
        lambda plan: dataclasses.replace(plan, order=(*plan.order, plan.order[0])),
        "accounts",
    ),
    (
        "a pod is placed and unplaced",
        lambda: case(pool(), pods(2)),
        lambda plan: dataclasses.replace(
            plan, unplaced=(Unplaced("default/pod-00", (Reason(None, Filter.POOL, "x"),)),)
        ),
        "accounts",
    ),
    (
        "a pod that nobody asked for",
        lambda: case(pool(), pods(2)),
        lambda plan: moved(plan, "default/stranger", 0),
        "accounts",
    ),
    (
        "a pod is unplaced without a reason",
        lambda: case(pool(), pod(cpu="99")),
        lambda plan: dataclasses.replace(plan, unplaced=(Unplaced("default/pod", ()),)),
        "accounts",
    ),
    (
        "claims and order disagree",
        lambda: case(pool(), pods(2)),
        lambda plan: changed(plan, pods=plan.claims[0].pods[:1]),
        "accounts",
    ),
    (
        "a node that does not exist",
        lambda: case(node("one"), pool(), pod()),
        lambda plan: moved(plan, "default/pod", "two"),
        "accounts",
    ),
    (
        "a pool that does not exist",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, pool=PoolRef.karpenter("nowhere")),
        "accounts",
    ),
    (
        "a machine for nobody",
        lambda: case(pool(), pod()),
        lambda plan: dataclasses.replace(plan, claims=(*plan.claims, dataclasses.replace(plan.claims[0], pods=()))),
        "accounts",
    ),
    (
        "another currency",
        lambda: case(pool(), pod()),
        lambda plan: dataclasses.replace(plan, currency="USD"),
        "accounts",
    ),
    (
        "a pod moved to a node without room",
        lambda: case(node("one", cpu="500m"), pool(), pod()),
        lambda plan: dataclasses.replace(moved(plan, "default/pod", "one"), claims=()),
        "placement",
    ),
    (
        "a pod moved to a tainted node",
        lambda: case(node("one", taints=[taint()]), pool(), pod()),
        lambda plan: dataclasses.replace(moved(plan, "default/pod", "one"), claims=()),
        "placement",
    ),
    (
        "a pod moved to another zone than it selects",
        lambda: case(node("one", zone="b"), pool(), pod(selector={ZONE: "a"})),
        lambda plan: dataclasses.replace(moved(plan, "default/pod", "one"), claims=()),
        "placement",
    ),
    (
        "the zone of a machine swapped",
        lambda: case(pool(), pod(selector={ZONE: "a"})),
        lambda plan: changed(plan, zone="b", labels=relabelled(plan.claims[0], **{ZONE: "b"})),
        "placement",
    ),
    (
        "two pods with one host port together",
        lambda: case(pool(), pods(2, ports=[80])),
        lambda plan: dataclasses.replace(
            moved(plan, "default/pod-01", 0), claims=moved(plan, "default/pod-01", 0).claims[:1]
        ),
        "placement",
    ),
    (
        "a spread broken",
        lambda: case(
            pool("default", SMALL),
            *(node(zone, cpu="100m", zone=zone) for zone in "abc"),
            pods(3, cpu="2", labels=WEB, spread=[spread(app="web")]),
        ),
        lambda plan: changed(
            changed(
                plan, 1, zone=plan.claims[0].zone, labels=relabelled(plan.claims[1], **{ZONE: plan.claims[0].zone})
            ),
            2,
            zone=plan.claims[0].zone,
            labels=relabelled(plan.claims[2], **{ZONE: plan.claims[0].zone}),
        ),
        "placement",
    ),
    (
        "affinity broken",
        lambda: case(node("one", pod("db", labels=DB), cpu="1", zone="b"), pool(), pod(affinity=near(term(app="db")))),
        lambda plan: changed(plan, zone="c", labels=relabelled(plan.claims[0], **{ZONE: "c"})),
        "placement",
    ),
    (
        "anti-affinity broken",
        lambda: case(node("one", pod("db", labels=DB), cpu="1", zone="b"), pool(), pod(affinity=far(term(app="db")))),
        lambda plan: changed(plan, zone="b", labels=relabelled(plan.claims[0], **{ZONE: "b"})),
        "placement",
    ),
    (
        "the anti-affinity of a bound pod broken",
        lambda: case(node("one", pod("db", affinity=far(term(app="web"))), cpu="1", zone="b"), pool(), pod(labels=WEB)),
        lambda plan: changed(plan, zone="b", labels=relabelled(plan.claims[0], **{ZONE: "b"})),
        "placement",
    ),
    (
        "two pods that avoid each other on one host",
        lambda: case(pool(), pods(2, labels=WEB, affinity=far(term(HOST, app="web")))),
        lambda plan: dataclasses.replace(
            moved(plan, "default/pod-01", 0), claims=moved(plan, "default/pod-01", 0).claims[:1]
        ),
        "placement",
    ),
    (
        "a volume out of reach",
        lambda: case(pool(), pod(claims=["d"]), storage(claim("d", volume="v"), volume("v", "b"))),
        lambda plan: changed(plan, zone="a", labels=relabelled(plan.claims[0], **{ZONE: "a"})),
        "placement",
    ),
    (
        "more volumes than the node attaches",
        lambda: case(
            node("one", attached=["x"]),
            pool(),
            pod(claims=["d"]),
            storage(claim("d", volume="v"), volume("v"), csi_node("one", 1)),
        ),
        lambda plan: dataclasses.replace(moved(plan, "default/pod", "one"), claims=()),
        "placement",
    ),
    (
        "a claim for one pod used by two",
        lambda: case(
            pool(), pods(2, claims=["d"]), storage(claim("d", volume="v", modes=["ReadWriteOncePod"]), volume("v"))
        ),
        lambda plan: moved(plan, plan.unplaced[0].pod, 0),
        "placement",
    ),
    (
        "a machine too small for its DaemonSets",
        lambda: case(pool(), pod(cpu="2"), daemons=(pod("agent", cpu="100m"),)),
        lambda plan: changed(
            plan,
            instance_type="small",
            price=200_000_000,
            instance_types=("small", "medium", "large"),
            labels=relabelled(plan.claims[0], **{TYPE: "small", names.KWOK_INSTANCE_CPU_LABEL: "2"}),
        ),
        "placement",
    ),
    (
        "an order in which the follower comes before its friend",
        lambda: case(pool(), pod("db", cpu="2", labels=DB), pod("x", affinity=near(term(app="db")))),
        lambda plan: dataclasses.replace(plan, order=plan.order[::-1]),
        "placement",
    ),
    (
        "an offering that nobody sells",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, zone="mars"),
        "offering",
    ),
    (
        "a price that is not the offering's",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, price=1),
        "offering",
    ),
    (
        "a label that the offering does not have",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, labels=relabelled(plan.claims[0], **{FAMILY: "z"})),
        "labels",
    ),
    (
        "a label of the pool left out",
        lambda: case(pool(labels={"team": "red"}), pod()),
        lambda plan: changed(
            plan, labels={key: value for key, value in plan.claims[0].labels.items() if key != "team"}
        ),
        "labels",
    ),
    (
        "a requirement of the pool broken",
        lambda: case(pool(needs=[need(ZONE, "NotIn", "b")]), pod()),
        lambda plan: changed(plan, zone="b", labels=relabelled(plan.claims[0], **{ZONE: "b"})),
        "labels",
    ),
    (
        "a sum of requests that is wrong",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, requests={"cpu": 1, "pods": 1}),
        "requests",
    ),
    (
        "DaemonSets left out of the requests",
        lambda: case(pool(), pod(), daemons=(pod("agent", cpu="100m", memory="1Mi"),)),
        lambda plan: changed(plan, requests={"cpu": 1000, "memory": 1 << 30, "pods": 1}),
        "requests",
    ),
    (
        "a type listed that is too small",
        lambda: case(pool(), pod(cpu="3")),
        lambda plan: changed(plan, instance_types=("medium", "large", "small")),
        "types",
    ),
    (
        "a type listed that the pool does not sell",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, instance_types=(*plan.claims[0].instance_types, "huge")),
        "types",
    ),
    (
        "a type listed twice",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, instance_types=("small", "medium", "large", "small")),
        "types",
    ),
    (
        "types not listed cheapest first",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, instance_types=("small", "large", "medium"), next_best=("large", 1_600_000_000)),
        "types",
    ),
    (
        "too few values for minValues",
        lambda: case(pool(needs=[need(TYPE, "Exists", least=3)]), pod()),
        lambda plan: changed(plan, instance_types=("small", "medium")),
        "minValues",
    ),
    (
        "a price below what minValues need",
        lambda: case(pool(needs=[need(TYPE, "Exists", least=3)]), pod()),
        lambda plan: changed(plan, max_price=plan.claims[0].lowest_max_price - 1),
        "minValues",
    ),
    (
        "a type listed that the claim may not cost",
        lambda: case(pool(), pod()),
        lambda plan: changed(plan, instance_types=("small", "medium"), next_best=("medium", 400_000_000)),
        "types",
    ),
    (
        "more nodes than the limit",
        lambda: case(pool("default", MEDIUM, limits={"nodes": 1}), pods(5)),
        lambda plan: moved(dataclasses.replace(plan, claims=(*plan.claims, plan.claims[0])), plan.unplaced[0].pod, 1),
        "limits",
    ),
    (
        "a listed type beyond the limit",
        lambda: case(pool(limits={"cpu": "4"}), pod()),
        lambda plan: changed(plan, instance_types=("small", "medium", "large")),
        "limits",
    ),
    (
        "a server type beyond its max",
        lambda: case(growth_pool("default", MEDIUM, most={"medium": 1}), pods(5)),
        lambda plan: moved(dataclasses.replace(plan, claims=(*plan.claims, plan.claims[0])), plan.unplaced[0].pod, 1),
        "limits",
    ),
    (
        "a pool with a problem used",
        lambda: case(pool("fine"), pool("broken", problem="x"), pod()),
        lambda plan: changed(
            plan,
            pool=PoolRef.karpenter("broken"),
            labels=relabelled(plan.claims[0], **{names.NODE_POOL_LABEL: "broken"}),
        ),
        "pool",
    ),
    (
        "a named pool used by a pod that does not name it",
        lambda: case(pool(), growth_pool("special"), pod()),
        lambda plan: changed(
            plan,
            pool=PoolRef.growth("special"),
            labels={**relabelled(plan.claims[0], **{names.POOL_LABEL: "special"})},
        ),
        "pool",
    ),
    (
        "a lighter pool used",
        lambda: case(pool("heavy", weight=9), pool("light"), pod()),
        lambda plan: changed(
            plan,
            pool=PoolRef.karpenter("light"),
            labels=relabelled(plan.claims[0], **{names.NODE_POOL_LABEL: "light"}),
        ),
        "weights",
    ),
    (
        "a lower priority used",
        lambda: case(growth_pool("default", SMALL, LARGE, priorities={"large": 5}), pod()),
        lambda plan: changed(
            plan,
            instance_type="small",
            instance_types=("small",),
            price=200_000_000,
            next_best=None,
            labels=relabelled(plan.claims[0], **{TYPE: "small", names.KWOK_INSTANCE_CPU_LABEL: "2"}),
        ),
        "weights",
    ),
    (
        "a machine bought although a node has room",
        lambda: case(pool(), pod()),
        lambda plan: plan,
        "existing first",
    ),
    (
        "a machine bought although another has room",
        lambda: case(pool("default", MEDIUM), pods(2)),
        lambda plan: moved(dataclasses.replace(plan, claims=(*plan.claims, plan.claims[0])), "default/pod-01", 1),
        "planned first",
    ),
    (
        "a pod left out although a machine could be bought",
        lambda: case(pool(), pod()),
        lambda plan: dataclasses.replace(
            plan, order=(), claims=(), unplaced=(Unplaced("default/pod", (Reason(None, Filter.RESOURCES, "x"),)),)
        ),
        "unplaced",
    ),
    (
        "a pod left out although a node has room",
        lambda: case(node("one"), pod()),
        lambda plan: dataclasses.replace(
            plan, order=(), filled=(), unplaced=(Unplaced("default/pod", (Reason(None, Filter.RESOURCES, "x"),)),)
        ),
        "unplaced",
    ),
]


@pytest.mark.parametrize(("made", "plant", "rule"), [each[1:] for each in PLANTED], ids=[each[0] for each in PLANTED])
def test_a_planted_bug_is_found(made: Callable[[], Case], plant: Callable[[Plan], Plan], rule: str) -> None:
    """A plan that is changed for the worse is complained of by the rule that it breaks."""
    good = made()
    planted = plant(good.plan)
    found = good.complaints(planted)
    if rule == "existing first":  # the same plan, where a node has room that planning did not know of
        roomy = dataclasses.replace(good.snapshot, nodes=(node("one"),))
        found = {complaint.rule for complaint in judge(roomy, good.demands, planted)}
    assert rule in found


def test_a_dropped_toleration_is_found() -> None:
    """A pod that no longer tolerates the pool's taint has no business there."""
    good = case(pool(taints=[taint()]), pod(tolerations=[tolerate("dedicated")]))
    bare = tuple(Demand(each.key, SHAPES.shape(pod())) for each in good.demands)
    assert {complaint.rule for complaint in judge(good.snapshot, bare, good.plan)} >= {"placement"}


def test_a_type_that_shrank_is_found() -> None:
    """A plan made for larger types does not pass with smaller ones."""
    good = case(pool("default", kind("t", 8)), pods(8))
    smaller = dataclasses.replace(good.snapshot, pools=(pool("default", kind("t", 4, price=0.8)),))
    assert {complaint.rule for complaint in judge(smaller, good.demands, good.plan)} >= {"placement", "types"}


def test_an_offering_that_is_gone_is_found() -> None:
    """A plan that counts on what is out of stock does not pass."""
    good = case(pool("default", kind("t", 8, zones="a")), pod())
    gone = dataclasses.replace(good.snapshot, pools=(pool("default", kind("t", 8, offerings=[])),))
    assert "offering" in {complaint.rule for complaint in judge(gone, good.demands, good.plan)}
