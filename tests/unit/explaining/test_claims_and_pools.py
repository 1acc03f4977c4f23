"""How far a claim has come and whether a pool can buy: the cause in the first sentence, and what would help."""

from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.api.pools import PoolRef
from growth.planning.explaining import claims, pools
from growth.planning.readiness import obstacle_to_use
from tests.manifests import growth_pool, node, node_pool, pod
from tests.unit.explaining.scenes import Case, applied, flat
from tests.unit.explaining.test_pods import kwok_class
from tests.unit.planning.clusters import SMALL, machine

AGENT = {"key": "agent", "effect": "NoSchedule"}


def launched(**more: Any) -> Json:
    """A claim with a machine and without a Node."""
    (claim, _) = machine("a", conditions=("Launched",), **more)
    return claim


def ordered(reason: str = "", message: str = "") -> Json:
    """A claim without a machine, and what is said of it."""
    claim = launched()
    told = {"type": "Launched", "status": "Unknown", "reason": reason, "message": message}
    told["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    return {**claim, "status": {"conditions": [told]} if reason else {}}


def registered(**status: Any) -> list[Json]:
    """A claim whose Node has joined and is not usable yet."""
    claim, joined = machine("a", conditions=("Launched", "Registered"), startupTaints=[AGENT])
    return [claim, {**joined, "status": {**joined["status"], **status}}]


def tainted(made: list[Json], *taints: Json) -> list[Json]:
    made[1]["spec"]["taints"] = list(taints)
    return made


def switched_off() -> Json:
    made = launched()
    off = {"type": names.MACHINE_OFF, "status": "True", "reason": "JoiningFailed", "message": "it switched itself off"}
    off["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    return {**made, "status": {**made["status"], "conditions": [*made["status"]["conditions"], off]}}


CLAIMS = [
    (flat(node_pool(), ordered()), "NotLaunched", ("has not been bought yet",), "wait"),
    (
        flat(node_pool(), ordered("QuotaExceeded", "the account may hold 10 servers")),
        "QuotaExceeded",
        ("the cloud did not give a machine", "10 servers"),
        "delete NodeClaim a",
    ),
    (
        flat(node_pool(), kwok_class("other"), ordered()),
        "NodeClassNotFound",
        ("node class KWOKNodeClass default does not exist",),
        "create the KWOKNodeClass default",
    ),
    (
        flat(node_pool(metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}}), ordered()),
        "Paused",
        ("NodePool default is paused",),
        "take the annotation growth.dev/paused off NodePool default",
    ),
    (
        flat(node_pool(), switched_off()),
        "JoiningFailed",
        ("has a machine", "switched itself off"),
        "delete NodeClaim a",
    ),
    (flat(node_pool(), launched()), "NodeNotFound", ("has a machine", "no Node has"), "wait"),
    (
        flat(node_pool(), launched(), node("x", provider="kwok://a"), node("y", provider="kwok://a")),
        "MultipleNodesFound",
        ("several Nodes",),
        "delete the Node y",
    ),
    (
        flat(node_pool(), tainted(registered(), AGENT)),
        "StartupTaintsExist",
        ("is node a", "startup taint agent:NoSchedule"),
        "remove the startup taint agent of node a",
    ),
    (
        flat(node_pool(), registered(conditions=[{"type": "Ready", "status": "False"}])),
        "NodeNotReady",
        ("is node a", "Ready is not True"),
        "wait",
    ),
    (flat(node_pool(), machine("a")), "Initialized", ("is up as node a",), ""),
]


@pytest.mark.parametrize(("objects", "cause", "words", "helps"), CLAIMS, ids=[each[1] for each in CLAIMS])
def test_a_claim_says_what_it_waits_for(objects: list[Json], cause: str, words: tuple[str, ...], helps: str) -> None:
    """Stage by stage; the best remedy is the first."""
    found = claims.explained(Case(title="", objects=objects, about="a", cause="", words=()).scene(), "a")
    assert (found.cause, [word for word in words if word not in found.sentence]) == (cause, []), found
    assert (found.remedies[0].text if found.remedies else "").startswith(helps)


def test_the_remedy_for_a_startup_taint_makes_the_node_usable() -> None:
    """Applied, nothing keeps the claim from being initialised."""
    objects = flat(node_pool(), tainted(registered(), {"key": "own", "effect": "NoSchedule"}, AGENT))
    known = Case(title="", objects=objects, about="a", cause="", words=())
    after, _ = applied(objects, claims.explained(known.scene(), "a").as_json()["remedies"][0])
    scene = known.scene(after)
    assert [each.key for each in scene.nodes["a"].spec.taints] == ["own"]
    assert obstacle_to_use(scene.claims["a"], scene.nodes["a"]) is None


POOLS = [
    (
        flat(node_pool(metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}})),
        "CannotBuy",
        ("buys nothing because it is paused",),
        "take the annotation",
    ),
    (
        flat(node_pool(), kwok_class("other")),
        "CannotBuy",
        ("KWOKNodeClass default does not exist",),
        "create the KWOKNodeClass default",
    ),
    (flat(node_pool(replicas=2)), "CannotBuy", ("it is static",), ""),
    (
        flat(node_pool(limits={"nodes": "1"}), machine("a", SMALL), pod("web", cpu=4)),
        "Limits",
        ("limits.nodes is reached (1 of 1)",),
        "raise limits.nodes of NodePool default by 1, to 2",
    ),
    (flat(node_pool(), machine("a", SMALL)), "Ready", ("can buy: it has 1 machine,",), ""),
]


@pytest.mark.parametrize(("objects", "cause", "words", "helps"), POOLS, ids=[each[2][0] for each in POOLS])
def test_a_pool_says_whether_it_can_buy(objects: list[Json], cause: str, words: tuple[str, ...], helps: str) -> None:
    """And what keeps it; what helps lets it buy."""
    known = Case(title="", objects=objects, about="default", cause="", words=())
    ref = PoolRef.karpenter("default")
    found = pools.explained(known.scene(), ref)
    assert (found.cause, [word for word in words if word not in found.sentence]) == (cause, []), found
    assert (found.remedies[0].text if found.remedies else "").startswith(helps)
    for remedy in found.as_json()["remedies"]:
        after, now = applied(objects, remedy)
        assert pools.explained(known.scene(after, now), ref).cause == "Ready"


def test_a_growth_pool_says_what_it_has_of_each_type() -> None:
    """And that pods must ask for it by name."""
    known = Case(title="", objects=flat(growth_pool("batch")), about="", cause="", words=(), cloud="hetzner")
    found = pools.explained(known.scene(), PoolRef.growth("batch"))
    assert found.cause == "Ready"
    assert "server type cx33: 0 of 10" in found.notes
