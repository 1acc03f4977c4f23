"""Why a pod finds no place: for each cause the right pool, the right filter, and the nearest miss in words."""

from collections.abc import Callable

import msgspec
import pytest

from growth.api import names
from growth.api.meta import LabelSelector
from growth.api.pods import PodResourceClaim, PodSchedulingGroup
from growth.cluster.snapshot import BackedOff
from growth.cluster.sorts import Sorts
from growth.planning.plan import Filter
from growth.planning.solve import Options
from tests.unit.planning.builders import (
    ARCH,
    CPU,
    FAMILY,
    HOST,
    LARGE,
    MEDIUM,
    SHAPES,
    SMALL,
    TERMS,
    TYPE,
    ZONE,
    Planned,
    claim,
    expression,
    far,
    growth_pool,
    kind,
    near,
    need,
    node,
    offering,
    on_nodes,
    plan,
    pod,
    pods,
    pool,
    spread,
    storage,
    storage_class,
    taint,
    term,
    tolerate,
    volume,
)

WEB = {"app": "web"}
GPU = "example.com/gpu"
GPUS = kind("gpus", 64, "256Gi", extended={GPU: 8})

# What is the case · the plan · the pool that is nearest · the filter · words of the message.
CASES: list[tuple[str, Callable[[], Planned], str, Filter, tuple[str, ...]]] = [
    (
        "a taint",
        lambda: plan(pool(taints=[taint("dedicated", "batch")]), pod()),
        "default",
        Filter.TAINTS,
        ("dedicated=batch:NoSchedule",),
    ),
    (
        "a taint without a value",
        lambda: plan(pool(taints=[taint("gpu", effect="NoExecute")]), pod()),
        "default",
        Filter.TAINTS,
        ("gpu:NoExecute",),
    ),
    (
        "the one taint of two that is not tolerated",
        lambda: plan(pool(taints=[taint("one"), taint("two")]), pod(tolerations=[tolerate("one")])),
        "default",
        Filter.TAINTS,
        ("two:NoSchedule",),
    ),
    (
        "a zone that the pool excludes",
        lambda: plan(pool(needs=[need(ZONE, "In", "a", "b")]), pod(selector={ZONE: "c"})),
        "default",
        Filter.REQUIREMENTS,
        (ZONE, "In [c]", "In [a, b]"),
    ),
    (
        "a zone that nobody sells",
        lambda: plan(pool(), pod(selector={ZONE: "mars"})),
        "default",
        Filter.REQUIREMENTS,
        (ZONE, "mars", "a, b, c"),
    ),
    (
        "a label that no machine has",
        lambda: plan(pool(), pod(selector={"example.com/team": "red"})),
        "default",
        Filter.REQUIREMENTS,
        ("example.com/team", "red", "no node of the pool has it"),
    ),
    (
        "a label of the pool with another value",
        lambda: plan(pool(labels={"team": "red"}), pod(selector={"team": "blue"})),
        "default",
        Filter.REQUIREMENTS,
        ("team", "blue", "red"),
    ),
    (
        "an architecture that the pool excludes",
        lambda: plan(pool(needs=[need(ARCH, "In", "amd64")]), pod(selector={ARCH: "arm64"})),
        "default",
        Filter.REQUIREMENTS,
        (ARCH, "arm64", "amd64"),
    ),
    (
        "terms that the pool excludes",
        lambda: plan(pool(needs=[need(TERMS, "In", "on-demand")]), pod(selector={TERMS: "spot"})),
        "default",
        Filter.REQUIREMENTS,
        (TERMS, "spot", "on-demand"),
    ),
    (
        "a type that the pool does not sell",
        lambda: plan(pool(), pod(selector={TYPE: "huge"})),
        "default",
        Filter.REQUIREMENTS,
        (TYPE, "huge"),
    ),
    (
        "cores beyond what the pool admits",
        lambda: plan(pool(needs=[need(CPU, "Lt", "8")]), pod(affinity=on_nodes([expression(CPU, "Gt", "10")]))),
        "default",
        Filter.REQUIREMENTS,
        (CPU, "≥ 11", "≤ 7"),
    ),
    (
        "labels that no type has at once",
        lambda: plan(
            pool("default", kind("x", family="c"), kind("y", family="r", arch="arm64")),
            pod(selector={FAMILY: "c", ARCH: "arm64"}),
        ),
        "default",
        Filter.REQUIREMENTS,
        ("at once",),
    ),
    (
        "a host by name",
        lambda: plan(pool(), pod(selector={HOST: "node-7"})),
        "default",
        Filter.REQUIREMENTS,
        (HOST, "node-7"),
    ),
    (
        "cores that no type has",
        lambda: plan(pool(), pod(cpu="32")),
        "default",
        Filter.RESOURCES,
        ("32 cpu", "16"),
    ),
    (
        "memory that no type has",
        lambda: plan(pool(), pod(memory="100Gi")),
        "default",
        Filter.RESOURCES,
        ("100Gi memory", "64Gi"),
    ),
    (
        "more devices than the largest has",
        lambda: plan(pool("default", GPUS), pod(extended={GPU: "64"})),
        "default",
        Filter.RESOURCES,
        ("needs 64 example.com/gpu", "the largest offers 8"),
    ),
    (
        "a device that nobody sells",
        lambda: plan(pool(), pod(extended={GPU: "1"})),
        "default",
        Filter.RESOURCES,
        ("needs 1 example.com/gpu", "none offers it"),
    ),
    (
        "cores and memory that no single type has",
        lambda: plan(pool("default", kind("c", 16, "8Gi"), kind("r", 4, "64Gi")), pod(cpu="8", memory="32Gi")),
        "default",
        Filter.RESOURCES,
        ("no single type", "8 cpu", "32Gi memory"),
    ),
    (
        "DaemonSets that leave too little",
        lambda: plan(pool("default", SMALL), pod(cpu="2"), daemons=[pod("agent", cpu="500m")]),
        "default",
        Filter.RESOURCES,
        ("2 cpu", "1500m"),
    ),
    (
        "a zone that sells only small types",
        lambda: plan(
            pool("default", kind("small", 2, zones="a"), kind("big", 16, zones="b")), pod(cpu="8", selector={ZONE: "a"})
        ),
        "default",
        Filter.RESOURCES,
        ("8 cpu", "2"),
    ),
    (
        "a host port of a DaemonSet",
        lambda: plan(pool(), pod(ports=[9100]), daemons=[pod("agent", cpu="10m", ports=[9100])]),
        "default",
        Filter.PORTS,
        ("DaemonSet", "port"),
    ),
    (
        "a volume in another zone",
        lambda: plan(
            pool(needs=[need(ZONE, "In", "a")]),
            pod(claims=["data"]),
            storage(claim("data", volume="v"), volume("v", "b")),
        ),
        "default",
        Filter.VOLUMES,
        (ZONE, "b", "a"),
    ),
    (
        "a class that makes volumes elsewhere",
        lambda: plan(
            pool(needs=[need(ZONE, "In", "a")]),
            pod(claims=["data"]),
            storage(claim("data", storage="zonal"), storage_class("zonal", "c")),
        ),
        "default",
        Filter.VOLUMES,
        (ZONE, "c"),
    ),
    (
        "more volumes than any type attaches",
        lambda: plan(
            pool("default", kind("few", volume_limits={"csi.example.com": 1})),
            pod(claims=["x", "y"]),
            storage(claim("x", storage="fast"), claim("y", storage="fast"), storage_class("fast")),
        ),
        "default",
        Filter.VOLUMES,
        ("csi.example.com", "2", "1"),
    ),
    (
        "a claim that does not exist",
        lambda: plan(pool(), pod(claims=["data"])),
        "",
        Filter.VOLUMES,
        ("default/data", "does not exist"),
    ),
    (
        "a claim that is not bound yet",
        lambda: plan(
            pool(), pod(claims=["data"]), storage(claim("data", storage="eager"), storage_class("eager", waits=False))
        ),
        "",
        Filter.VOLUMES,
        ("default/data", "not bound"),
    ),
    (
        "too few types for minValues",
        lambda: plan(pool(needs=[need(TYPE, "Exists", least=3)]), pod(cpu="8")),
        "default",
        Filter.MIN_VALUES,
        (TYPE, "1", "3"),
    ),
    (
        "volumes that leave too few zones for minValues",
        lambda: plan(
            pool(needs=[need(ZONE, "Exists", least=2)]),
            pod(claims=["data"]),
            storage(claim("data", volume="v"), volume("v", "b")),
        ),
        "default",
        Filter.MIN_VALUES,
        (ZONE, "1", "2"),
    ),
    (
        "no node left of the limit",
        lambda: plan(pool(limits={"nodes": 3}, used={"nodes": 3}), pod()),
        "default",
        Filter.LIMITS,
        ("limits.nodes", "3"),
    ),
    (
        "no cores left of the limit",
        lambda: plan(pool(limits={"cpu": "10"}, used={"cpu": "9"}), pod()),
        "default",
        Filter.LIMITS,
        ("cpu 10",),
    ),
    (
        "a server type at its max",
        lambda: plan(growth_pool("default", SMALL, most={"small": 1}, used={"small": 1}), pod()),
        "growth.dev/default",
        Filter.LIMITS,
        ("max",),
    ),
    (
        "everything out of stock",
        lambda: plan(pool("default", kind("gone", offerings=[offering(available=False)])), pod()),
        "default",
        Filter.UNAVAILABLE,
        ("bought now",),
    ),
    (
        "the only type that fits out of stock",
        lambda: plan(pool("default", SMALL, kind("big", 16, offerings=[offering("b", available=False)])), pod(cpu="8")),
        "default",
        Filter.UNAVAILABLE,
        ("big in b",),
    ),
    (
        "the only zone that fits out of stock",
        lambda: plan(
            pool("default", kind("x", offerings=[offering("a"), offering("b", available=False)])),
            pod(selector={ZONE: "b"}),
        ),
        "default",
        Filter.UNAVAILABLE,
        ("x in b",),
    ),
    (
        "resource claims",
        lambda: plan(
            pool(), pod(spec=msgspec.structs.replace(pod().spec, resource_claims=(PodResourceClaim(name="g"),)))
        ),
        "",
        Filter.UNSUPPORTED,
        ("resourceClaims",),
    ),
    (
        "a group of pods",
        lambda: plan(
            pool(),
            pod(spec=msgspec.structs.replace(pod().spec, scheduling_group=PodSchedulingGroup(pod_group_name="g"))),
        ),
        "",
        Filter.UNSUPPORTED,
        ("schedulingGroup",),
    ),
    ("no pool at all", lambda: plan(pod()), "", Filter.POOL, ("NodePool",)),
    (
        "a pool that is not ready",
        lambda: plan(pool(problem="its node class is missing"), pod()),
        "default",
        Filter.POOL,
        ("node class is missing",),
    ),
    (
        "a growth pool that must be named",
        lambda: plan(growth_pool("special"), pod()),
        "growth.dev/special",
        Filter.REQUIREMENTS,
        ("growth.dev/pool", "special"),
    ),
    (
        "affinity to pods that are nowhere",
        lambda: plan(pool(), pod(affinity=near(term(app="db")))),
        "default",
        Filter.TOPOLOGY,
        ("affinity", ZONE),
    ),
    (
        "anti-affinity with every zone taken",
        lambda: plan(
            pool(),
            *(node(zone, pod(f"w-{zone}", labels=WEB), cpu="1", zone=zone) for zone in "abc"),
            pod(labels=WEB, affinity=far(term(app="web"))),
        ),
        "default",
        Filter.TOPOLOGY,
        ("anti-affinity", ZONE),
    ),
    (
        "pods already there that keep it away",
        lambda: plan(
            pool(needs=[need(ZONE, "In", "a")]),
            node("one", pod("db", affinity=far(term(app="web"))), cpu="1"),
            pod(labels=WEB),
        ),
        "default",
        Filter.TOPOLOGY,
        ("already there", ZONE),
    ),
    (
        "a spread over a label that nobody has",
        lambda: plan(pool(), pod(labels=WEB, spread=[spread("example.com/row", app="web")])),
        "default",
        Filter.TOPOLOGY,
        ("spread", "example.com/row"),
    ),
    (
        "a spread that an unreachable zone holds back",
        lambda: plan(
            pool(needs=[need(ZONE, "In", "a")]),
            node("one", pod("w", labels=WEB), cpu="1", zone="a"),
            node("two", cpu="100m", zone="b"),
            pod(labels=WEB, spread=[spread(app="web")]),
        ),
        "default",
        Filter.TOPOLOGY,
        ("spread", ZONE, "skew 1"),
    ),
    (
        "machines that came in vain",
        lambda: plan(
            pool(
                in_vain={
                    Sorts().digest(SHAPES.shape(pod())): BackedOff(rounds=2, why="the Node was wrong", probe=False)
                }
            ),
            pod(),
        ),
        "default",
        Filter.IN_VAIN,
        ("the Node was wrong",),
    ),
    (
        "a pass that ran out of work",
        lambda: plan(pool("default", SMALL), pods(20, "x", cpu="1500m"), pod(cpu="100m"), options=Options(budget=5)),
        "",
        Filter.CAPS,
        ("budget",),
    ),
]


@pytest.mark.parametrize(
    ("made", "where", "rule", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_known_cause_is_named(made: Callable[[], Planned], where: str, rule: Filter, words: tuple[str, ...]) -> None:
    """The nearest miss names the pool, the rule, and what was asked and offered."""
    reason = made().reason()
    assert (str(reason.pool) if reason.pool else "", reason.filter) == (where, rule), reason
    assert all(word in reason.message for word in words), reason.message


def test_there_are_forty_causes() -> None:
    """The table covers every filter, and many causes of the common ones."""
    assert len(CASES) >= 40
    assert {case[3] for case in CASES} == set(Filter)


def test_every_pool_gives_its_own_reason() -> None:
    """A pod hears from each pool why not there."""
    made = plan(
        pool("a", weight=3, taints=[taint()]),
        pool("b", SMALL, weight=2),
        pool("c", weight=1, problem="paused"),
        pod(cpu="8"),
    )
    assert {str(reason.pool): reason.filter for reason in made.reasons()} == {
        "a": Filter.TAINTS,
        "b": Filter.RESOURCES,
        "c": Filter.POOL,
    }


def test_near_misses_come_first() -> None:
    """The pool in which the pod came furthest is named first."""
    made = plan(
        pool("tainted", weight=9, taints=[taint()]),
        pool("small", SMALL, weight=5),
        pool("full", LARGE, limits={"nodes": 0}),
        pod(cpu="8"),
    )
    assert [reason.filter for reason in made.reasons()] == [Filter.LIMITS, Filter.RESOURCES, Filter.TAINTS]


def test_the_last_wish_is_explained_and_not_the_first() -> None:
    """Preferences are no reason: what kept the pod out is what it cannot give up."""
    wish = on_nodes([expression(ZONE, "In", "mars")], prefer=[(1, expression(ARCH, "In", "s390x"))])
    reason = plan(pool(), pod(affinity=wish)).reason()
    assert ZONE in reason.message
    assert ARCH not in reason.message


def test_the_nearest_priority_of_a_growth_pool_speaks() -> None:
    """Of a pool's server types the one that came nearest explains."""
    made = plan(
        growth_pool("default", SMALL, LARGE, priorities={"small": 10}, most={"large": 0, "small": 5}), pod(cpu="8")
    )
    assert made.reason().filter is Filter.LIMITS


def test_equal_pods_get_equal_reasons() -> None:
    """Reasons belong to the kind of pod; each pod of the kind has them."""
    made = plan(pool(), pods(3, cpu="32"))
    assert len({made.reasons(name) for name in made.unplaced}) == 1


def test_secrets_of_no_kind_are_in_reasons() -> None:
    """Reasons quote labels, taints, names and amounts, and nothing else of the pod."""
    made = plan(pool(), pod(cpu="32", labels={"token": "s3cr3t"}))
    assert "s3cr3t" not in made.reason().message


def test_a_pod_that_avoids_everybody_is_explained_by_its_own_rule() -> None:
    """A rule that fits nobody is named, not the pods that it avoids."""
    full = [node(zone, pod(f"x-{zone}"), cpu="1", zone=zone) for zone in "abc"]
    made = plan(pool(), *full, pod(affinity=far(term(ZONE, LabelSelector()))))
    assert made.reason().filter is Filter.TOPOLOGY


def test_reasons_name_pools_of_both_apis() -> None:
    """A Karpenter pool is its name, one of ours has its group before it."""
    made = plan(pool("x", SMALL), growth_pool("default", MEDIUM), pod(cpu="8"))
    assert {str(reason.pool) for reason in made.reasons()} == {"x", "growth.dev/default"}


def test_a_missing_named_pool_is_no_secret() -> None:
    """A pod that asks for a pool which does not exist hears which label it asked for."""
    made = plan(pool(), pod(selector={names.POOL_LABEL: "nowhere"}))
    assert "nowhere" in made.reason().message
