"""Why a node is kept: the sentence names the cause, and what it says would help lets the node go."""

import datetime as dt
from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.cluster import hashes
from growth.planning.explaining.nodes import explained, kept
from tests import manifests
from tests.manifests import growth_pool, pod
from tests.unit.explaining.scenes import Case, applied, flat, scene
from tests.unit.planning.clusters import LARGE, SMALL, machine, pods, pool
from tests.unit.planning.disrupting import NOW

KEEP = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}
PAUSED = {names.PAUSED_ANNOTATION: "true"}
HOURS = dt.timedelta(hours=1)


def case(title: str, *objects: Json | list[Json], cause: str, words: tuple[str, ...], **more: Any) -> Case:
    return Case(title=title, objects=flat(*objects), about="a", cause=cause, words=words, **more)


def said(time: dt.datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def budget(name: str = "b", app: str = "a", **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def of_growth(name: str, kind: str = "cx33", *, in_pool: str = "default", **more: Any) -> list[Json]:
    """A node and a claim of a growth pool."""
    made = machine(name, kind, zone="fsn1", **more)
    for each in made:
        del each["metadata"]["labels"][names.NODE_POOL_LABEL]
        each["metadata"]["labels"][names.POOL_LABEL] = in_pool
    made[1]["status"]["allocatable"] = {"cpu": "3900m", "memory": "7Gi", "pods": "110"}
    return made


def buffer(replicas: int) -> list[Json]:
    template = {"metadata": {"labels": {"app": "spare"}}, "spec": manifests.pod_spec(cpu=1)}
    return [
        {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "spare", "namespace": "default"},
            "template": template,
        },
        {
            "apiVersion": "autoscaling.x-k8s.io/v1beta1",
            "kind": "CapacityBuffer",
            "metadata": {"name": "spare", "namespace": "default"},
            "spec": {"podTemplateRef": {"name": "spare"}, "replicas": replicas},
        },
    ]


def drifted(**more: Any) -> list[Json]:
    """Of a template that is no longer that of the pool."""
    old = pool()
    old["spec"]["template"]["metadata"] = {"labels": {"team": "old"}}
    return machine("a", of=old, **more)


# Of a claim that was made from an older template.
OF_OLD = {names.NODE_POOL_HASH_ANNOTATION: "old", names.NODE_POOL_HASH_VERSION_ANNOTATION: hashes.VERSION}

CASES = [
    case(
        "the node is marked do-not-disrupt",
        pool(),
        machine("a", annotations=KEEP),
        cause="DoNotDisrupt",
        words=("the node has the annotation karpenter.sh/do-not-disrupt",),
        helps=("take the annotation karpenter.sh/do-not-disrupt off node a",),
    ),
    case(
        "a pod is marked do-not-disrupt",
        pool(),
        machine("a"),
        pods(2, on="a", annotations=KEEP),
        cause="DoNotDisrupt",
        words=("pod default/a-0 has the annotation",),
        helps=("off default/a-0, default/a-1",),
    ),
    case(
        "a pod is marked for a while",
        pool(),
        machine("a"),
        [
            {**each, "status": {**each["status"], "startTime": said(NOW - HOURS)}}
            for each in pods(1, on="a", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "2h"})
        ],
        cause="DoNotDisrupt",
        words=("default/a-0", f"until {said(NOW + HOURS)}"),
        helps=(f"wait until {said(NOW + HOURS)}",),
    ),
    case(
        "a budget of pods allows nothing",
        pool(),
        machine("a"),
        pods(2, on="a"),
        budget(maxUnavailable=0),
        cause="PodDisruptionBudget",
        words=("PodDisruptionBudget default/b allows no eviction",),
        helps=("set maxUnavailable to 1 of PodDisruptionBudget default/b",),
    ),
    case(
        "a budget of pods wants all of them",
        pool(),
        machine("a"),
        pods(2, on="a"),
        budget(minAvailable="100%"),
        cause="PodDisruptionBudget",
        words=("PodDisruptionBudget default/b allows no eviction",),
        helps=("set minAvailable to 1",),
    ),
    case(
        "two budgets for one pod",
        pool(),
        machine("a"),
        pods(2, on="a"),
        budget("b", maxUnavailable=1),
        budget("c", maxUnavailable=1),
        cause="PodDisruptionBudget",
        words=("several PodDisruptionBudgets (b, c)",),
        helps=("delete PodDisruptionBudget default/c",),
    ),
    case(
        "the budget of the pool is zero",
        pool(disruption={"budgets": [{"nodes": "0"}]}),
        machine("a"),
        pods(1, on="a"),
        cause="Budget",
        words=("the budget of NodePool default for reason Underutilized allows 0",),
        helps=("let the budgets of NodePool default allow 1 at a time",),
    ),
    case(
        "the budget of the pool is used up",
        pool(disruption={"budgets": [{"nodes": "1"}]}),
        machine("a"),
        machine("b", taints=({"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"},)),
        cause="Budget",
        words=("allows 1 at a time, 1 of them disrupted",),
        helps=("allow 2 at a time",),
    ),
    case(
        "a budget that cannot be read",
        pool(disruption={"budgets": [{"nodes": "100%"}, {"nodes": "0", "schedule": "61 * * * *", "duration": "1h"}]}),
        machine("a"),
        cause="Budget",
        words=("has a budget that cannot be read",),
        helps=("let the budgets of NodePool default allow",),
    ),
    case(
        "pods came a moment ago",
        pool(disruption={"consolidateAfter": "1h"}),
        machine("a", age=600),
        cause="ConsolidateAfter",
        words=("a pod came or went less than",),
        helps=("wait until",),
    ),
    case(
        "consolidation is off",
        pool(disruption={"consolidateAfter": "Never"}),
        machine("a"),
        cause="ConsolidationDisabled",
        words=("NodePool default has consolidation disabled",),
        helps=("set consolidateAfter of NodePool default to 0s",),
    ),
    case(
        "only empty nodes go",
        pool(disruption={"consolidationPolicy": "WhenEmpty"}),
        machine("a"),
        pods(1, on="a"),
        cause="ConsolidationDisabled",
        words=("non-empty consolidation disabled", "WhenEmpty"),
        helps=("set consolidationPolicy of NodePool default to WhenEmptyOrUnderutilized",),
    ),
    case(
        "the pool is static",
        pool(replicas=1),
        machine("a"),
        cause="StaticNodePool",
        words=("NodePool default is static",),
        helps=("lower the replicas of NodePool default by 1, to 0",),
    ),
    case(
        "the pool is paused",
        pool(metadata={"annotations": PAUSED}),
        machine("a"),
        cause="Paused",
        words=("NodePool default is paused",),
        helps=("take the annotation growth.dev/paused off NodePool default",),
    ),
    case(
        "the node is paused",
        pool(),
        machine("a", annotations=PAUSED),
        cause="Paused",
        words=("the node is paused",),
        helps=("take the annotation growth.dev/paused off node a",),
    ),
    case(
        "its pods have no room elsewhere",
        pool(types=(LARGE,)),
        machine("a"),
        pods(1, on="a", cpu=2),
        machine("b"),
        pods(7, on="b", cpu=2),
        cause="InUse",
        words=("its pods have no room on other nodes",),
        helps=("lower the requests of cpu to 1900m",),
    ),
    case(
        "no cheaper type is allowed",
        pool(types=(LARGE,)),
        machine("a"),
        pods(1, on="a"),
        cause="InUse",
        words=("no cheaper machine",),
        helps=("allow",),
    ),
    case(
        "drifted, and its pods would have no place",
        pool(types=(LARGE,), limits={"cpu": "16"}),
        drifted(),
        pods(15, on="a"),
        cause="NoPlace",
        words=("it has drifted", "its pods would have no place"),
        helps=("limits.cpu",),
    ),
    case(
        "drifted, and the limit of nodes leaves no room beside it",
        pool(limits={"nodes": "1"}),
        drifted(),
        pods(15, on="a"),
        cause="NodeLimit",
        words=("stays because NodePool default is at its node hard limit",),
        helps=("raise limits.nodes of NodePool default by 1, to 2",),
    ),
    case(
        "too large, and the limit of nodes leaves no room for a smaller one beside it",
        pool(limits={"nodes": "1"}),
        machine("a"),
        pods(1, on="a"),
        cause="NodeLimit",
        words=("stays because NodePool default is at its node hard limit",),
        helps=("raise limits.nodes of NodePool default by 1, to 2",),
    ),
    case(
        "room for a buffer",
        pool(),
        machine("a"),
        buffer(2),
        cause="CapacityBuffer",
        words=("holds capacity of a CapacityBuffer",),
        helps=("lower the replicas of CapacityBuffer default/spare to 0",),
    ),
    case(
        "what it saves is not worth it to the policy Balanced",
        pool(disruption={"consolidationPolicy": "Balanced"}),
        machine("a", SMALL),
        pods(1, on="a", cpu=1),
        machine("b"),
        pods(1, on="b", cpu=14),
        cause="Balanced",
        words=("",),
        helps=("set consolidationPolicy of NodePool default to WhenEmptyOrUnderutilized",),
    ),
    case(
        "its pool is gone",
        machine("a", of="gone"),
        cause="NodePoolNotFound",
        words=("NodePool gone does not exist",),
        helps=("delete node a by hand",),
    ),
    case(
        "nobody's node",
        pool(),
        manifests.node("a"),
        cause="Unmanaged",
        words=("no NodeClaim is of this machine",),
        helps=("drain node a and delete it by hand",),
    ),
    case(
        "a growth pool that removes empty nodes only",
        growth_pool(),
        of_growth("a"),
        of_growth("b"),
        pods(1, on="a", cpu=1),
        pods(1, on="b", cpu=1),
        cause="GrowthPool",
        words=("growth.dev/default removes empty nodes only", "1 pod runs there"),
        helps=("set optimise of NodePool growth.dev/default to Continuous",),
        cloud="hetzner",
    ),
    case(
        "drifted in a growth pool, and max leaves no room beside it",
        growth_pool("default", {"name": "cx33", "max": 1}),
        of_growth("a", annotations=OF_OLD),
        pods(1, on="a", cpu=1),
        cause="NodeLimit",
        words=("it has drifted (NodePoolDrifted)", "max of its server types of NodePool growth.dev/default"),
        helps=("raise max of each server type of NodePool growth.dev/default by 1",),
        cloud="hetzner",
    ),
    case(
        "drifted in a growth pool, and the limit of nodes leaves no room beside it",
        growth_pool("default", {"name": "cx33", "max": 3}, limits={"nodes": 1}),
        of_growth("a", annotations=OF_OLD),
        pods(1, on="a", cpu=1),
        cause="NodeLimit",
        words=("it has drifted", "limits.nodes of NodePool growth.dev/default leaves no room for a replacement"),
        helps=("raise limits.nodes of NodePool growth.dev/default by 1, to 2",),
        cloud="hetzner",
    ),
    case(
        "drifted in a growth pool whose budget allows none",
        growth_pool("default", {"name": "cx33", "max": 3}, disruption={"budgets": [{"nodes": "0"}]}),
        of_growth("a", annotations=OF_OLD),
        pods(1, on="a", cpu=1),
        cause="Budget",
        words=("the budget of NodePool growth.dev/default for reason Drifted",),
        helps=("let the budgets of NodePool growth.dev/default allow 1 at a time",),
        cloud="hetzner",
    ),
    case(
        "the minimum of a growth pool",
        growth_pool("default", {"name": "cx33", "max": 5, "min": 1}),
        of_growth("a"),
        cause="Minimum",
        words=("it is empty", "keeps 1 machines of type cx33 (min)"),
        helps=("lower min of server type cx33 of NodePool growth.dev/default to 0",),
        cloud="hetzner",
    ),
    case(
        "an empty node of a growth pool that people keep",
        growth_pool(),
        of_growth("a", annotations=KEEP),
        cause="DoNotDisrupt",
        words=("it is empty", "annotation karpenter.sh/do-not-disrupt"),
        helps=("take the annotation karpenter.sh/do-not-disrupt off node a",),
        cloud="hetzner",
    ),
    case(
        "two things keep it, one behind the other",
        pool(disruption={"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}),
        machine("a", annotations=KEEP),
        cause="ConsolidationDisabled",
        words=("consolidation disabled",),
        helps=("consolidateAfter", "do-not-disrupt", "budgets"),
    ),
]


@pytest.mark.parametrize("known", CASES, ids=lambda each: each.title)
def test_the_first_sentence_names_the_cause(known: Case) -> None:
    """One word for machines, and for people what keeps it."""
    found = explained(known.scene(), known.about)
    assert (found.cause, [word for word in known.words if word not in found.sentence]) == (known.cause, []), found


@pytest.mark.parametrize("known", CASES, ids=lambda each: each.title)
def test_every_remedy_that_is_told_lets_the_node_go(known: Case) -> None:
    """Applied to the manifests, a new decision removes it."""
    assert kept(known.scene(), known.about) is not None
    remedies = explained(known.scene(), known.about).as_json()["remedies"]
    assert remedies
    assert [word for word in known.helps if word not in remedies[0]["text"]] == [], remedies
    for remedy in remedies:
        after, now = applied(known.objects, remedy)
        assert known.scene(after, now).goes(known.about), remedy


def test_a_node_that_goes_says_how() -> None:
    """The reason, what comes instead, and what it saves."""
    for objects, words in (
        (flat(pool(), machine("a")), ("removed (Empty)", "saves")),
        (flat(pool(), machine("a"), pods(1, on="a")), ("replaced by c-2x-amd64-linux", "Underutilized", "1 pods move")),
        (flat(growth_pool(), of_growth("a")), ("is empty and goes at",)),
    ):
        cloud = "hetzner" if objects[0]["apiVersion"].startswith("growth") else "kwok"
        found = explained(Case(title="", objects=objects, about="a", cause="", words=(), cloud=cloud).scene(), "a")
        assert found.cause == "Goes"
        assert [word for word in words if word not in found.sentence] == [], found.sentence


def replacing(*, up: bool, marked: bool) -> list[Json]:
    """A node, and what was bought in its place at a limit of one that is Soft."""
    soft = pool(limits={"nodes": "1"}, disruption={"nodeLimitMode": "Soft"})
    taint = {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}
    conditions = ("Launched", "Registered", *(("Initialized",) if up else ()))
    coming = machine("new", SMALL, age=60.0, annotations={names.REPLACES_ANNOTATION: "old"}, conditions=conditions)
    return flat(soft, machine("old", taints=(taint,) if marked else ()), pods(1, on="old"), coming)


@pytest.mark.parametrize("up", [True, False])
def test_what_replaces_a_node_is_none_too_many(*, up: bool) -> None:
    """While a Soft limit is passed by a move, the node that goes counts for nothing, and nothing else goes for it."""
    moving = scene(replacing(up=up, marked=True))
    assert moving.surplus == frozenset()
    assert "more machines than it may have" not in explained(moving, "new").sentence
    assert explained(moving, "old").cause == "Leaving"


def test_a_move_that_was_taken_back_leaves_one_too_many() -> None:
    """Both are up, and nobody takes either away: the empty one goes. Before the replacement is up the old one is counted out."""
    assert scene(replacing(up=True, marked=False)).surplus == {"new"}
    assert scene(replacing(up=False, marked=False)).surplus == frozenset()


def test_what_is_paused_counts_and_does_not_go() -> None:
    """Of too many the others go; of a paused pool nobody."""
    held = [*machine("a", annotations=PAUSED), *machine("b"), *pods(1, on="b")]
    assert scene(flat(pool(limits={"nodes": "1"}), held)).surplus == {"b"}
    assert scene(flat(pool(limits={"nodes": "1"}, metadata={"annotations": PAUSED}), held)).surplus == frozenset()


def test_a_drain_that_waits_says_for_whom() -> None:
    """And what would let it go on."""
    gone = {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}
    objects = flat(pool(), machine("a", taints=(gone,)), pods(1, on="a"), budget(maxUnavailable=0))
    found = explained(Case(title="", objects=objects, about="a", cause="", words=()).scene(), "a")
    assert found.cause == "Leaving"
    assert "waits because PodDisruptionBudget default/b allows no eviction" in found.sentence
    assert found.remedies[0].text == "set maxUnavailable to 1 of PodDisruptionBudget default/b"


def test_a_node_with_room_for_pending_pods_waits_for_them() -> None:
    """It is nominated: the note says who comes."""
    objects = flat(pool(), machine("a"), pod("web", cpu=3))
    found = explained(Case(title="", objects=objects, about="a", cause="", words=()).scene(), "a")
    assert (found.cause, found.sentence) == (
        "Nominated",
        "Node a stays because the node is nominated for a pending pod.",
    )
    assert "it has room for default/web" in found.notes


def test_what_protects_nodes_is_known_without_a_search() -> None:
    """For lists of many nodes: words and sentences are those of the decision."""
    objects = flat(
        pool(disruption={"budgets": [{"nodes": "0"}]}),
        machine("a", annotations=KEEP),
        machine("b"),
        manifests.node("c"),
    )
    found = Case(title="", objects=objects, about="a", cause="", words=()).scene().standing()
    assert {name: each.reason for name, each in found.items()} == {
        "a": "DoNotDisrupt",
        "b": "Budget",
        "c": "Unmanaged",
    }
