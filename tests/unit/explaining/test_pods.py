"""Why a pod has no node: the sentence names the cause, and what it says would help does help."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from growth.api import names
from growth.api.instance_types import Catalogue
from growth.api.kinds import Json
from growth.api.vain import InVain, printed
from growth.cluster.pools import Market
from growth.cluster.sorts import Sorts
from growth.planning.explaining.pods import explained, pending
from growth.providers.catalogues import builtin
from tests import manifests
from tests.manifests import growth_pool, need, node, node_pool, owned_by, pod
from tests.unit.explaining.scenes import Case, applied, flat
from tests.unit.planning.clusters import LARGE, SMALL, machine, pods

ZONE = names.ZONE_LABEL
WEB = {"labels": {"app": "web"}}
SELECTS_WEB = {"matchLabels": {"app": "web"}}
KEY = "default/web"


def case(title: str, *objects: Json | list[Json], cause: str, words: tuple[str, ...], **more: Any) -> Case:
    return Case(title=title, objects=flat(*objects), about=KEY, cause=cause, words=words, **more)


def affinity(which: str, topology: str, *, app: str = "web") -> Json:
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}
    return {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def on_labels(*expressions: Json) -> Json:
    term = {"matchExpressions": list(expressions)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def spread(key: str) -> list[Json]:
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTS_WEB}]


def sold_out(*kinds: str) -> Catalogue:
    """The KWOK catalogue without stock of these types."""
    whole = builtin("kwok")
    types = tuple(
        dataclasses.replace(
            kind, offerings=tuple(dataclasses.replace(each, available=False) for each in kind.offerings)
        )
        if kind.name in kinds
        else kind
        for kind in whole.types
    )
    return dataclasses.replace(whole, types=types)


def typed(name: str = "default", *kinds: str, **more: Any) -> Json:
    return node_pool(name, need(names.INSTANCE_TYPE_LABEL, "In", *kinds), **more)


def claimed(name: str = "data") -> Json:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def storage(name: str = "standard", mode: str = "WaitForFirstConsumer") -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "csi.example.com",
        "volumeBindingMode": mode,
    }


def volume_claim(name: str = "data", **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], **spec},
    }


def volume(name: str, zone: str) -> Json:
    term = {"matchExpressions": [need(ZONE, "In", zone)]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def kwok_class(name: str = "default", ready: str = "True") -> Json:
    condition = {"type": "Ready", "status": ready, "reason": "R", "message": "the image is gone"}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": name},
        "spec": {},
        "status": {"conditions": [condition]},
    }


def unmet(kind: str, until: str = "2026-01-01T00:10:00Z") -> Json:
    return {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodeRequest",
        "metadata": {"name": f"default-pool-{kind}"},
        "spec": {"pool": "default", "targetOffering": f"hetzner-{kind}"},
        "status": {"phase": "Unmet", "unmetUntil": until},
    }


CASES = [
    case(
        "too large for every type of the pool",
        typed("default", SMALL),
        pod("web", cpu=4),
        cause="resources",
        words=("large enough", "needs 4 cpu", "default"),
        helps=("allow", "default"),
    ),
    case(
        "too large for everything that is sold",
        node_pool(),
        pod("web", cpu=4000),
        cause="resources",
        words=("large enough", "needs 4k cpu"),
        helps=("lower the requests of cpu",),
    ),
    case(
        "a device that nobody has",
        node_pool(),
        pod("web", requests={"example.com/gpu": "1"}),
        cause="resources",
        words=("large enough", "example.com/gpu", "none offers it"),
        helps=("ask for no example.com/gpu",),
    ),
    case(
        "the number of nodes is limited",
        node_pool(limits={"nodes": "1"}),
        machine("a", SMALL),
        pod("web", cpu=3),
        cause="limits",
        words=("NodePool default may not buy more", "limits.nodes is reached (1)"),
        helps=("raise limits.nodes of NodePool default by 1, to 2",),
    ),
    case(
        "cpu is limited",
        node_pool(limits={"cpu": "3"}),
        machine("a", SMALL),
        pods(1, on="a", cpu="1500m"),
        pod("web", cpu="1500m"),
        cause="limits",
        words=("may not buy more", "limits (cpu 3)"),
        helps=("raise limits.cpu",),
    ),
    case(
        "others of higher priority have what the limit leaves",
        typed("default", SMALL, limits={"nodes": "1"}),
        pod("first", cpu="1500m", priority=1000),
        pod("web", cpu="1500m"),
        cause="limits",
        words=("limits.nodes is reached (1)",),
        helps=("raise limits.nodes of NodePool default by 1, to 2",),
    ),
    case(
        "a taint of the pool",
        node_pool(template={"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}),
        pod("web"),
        cause="taints",
        words=("does not tolerate", "team=a:NoSchedule"),
        helps=("add a toleration of team=a:NoSchedule",),
    ),
    case(
        "two taints of a growth pool",
        growth_pool(
            "default",
            template={"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]},
        ),
        pod("web"),
        cause="taints",
        words=("does not tolerate", "a:NoSchedule"),
        helps=("a:NoSchedule and b:NoExecute",),
        cloud="hetzner",
    ),
    case(
        "a zone that the pool leaves out",
        node_pool("default", need(ZONE, "In", "test-zone-a")),
        pod("web", nodeSelector={ZONE: "test-zone-b"}),
        cause="requirements",
        words=("asks for what NodePool default does not have", ZONE, "test-zone-b"),
        helps=("allow test-zone-b",),
    ),
    case(
        "a zone that nobody has",
        node_pool(),
        pod("web", nodeSelector={ZONE: "moon"}),
        cause="requirements",
        words=(ZONE, "moon"),
        helps=("no longer ask for the label",),
    ),
    case(
        "a label of one's own",
        node_pool(),
        pod("web", nodeSelector={"disk": "fast"}),
        cause="requirements",
        words=("label disk", "fast"),
        helps=("add the label disk: fast to the template of NodePool default",),
    ),
    case(
        "affinity to another architecture",
        node_pool(),
        pod("web", affinity=on_labels(need(names.ARCH_LABEL, "In", "arm64"))),
        cause="requirements",
        words=(names.ARCH_LABEL, "arm64", "amd64"),
        helps=("allow arm64",),
    ),
    case(
        "two labels at once",
        node_pool("default", need(ZONE, "In", "test-zone-a")),
        pod("web", nodeSelector={ZONE: "test-zone-b", names.ARCH_LABEL: "arm64"}),
        cause="requirements",
        words=("asks for what NodePool default does not have",),
        helps=("arm64", "test-zone-b"),
    ),
    case(
        "a growth pool that is asked for by name only",
        growth_pool("batch"),
        pod("web"),
        cause="requirements",
        words=("growth.dev/batch", "growth.dev/pool: batch"),
        helps=("growth.dev/pool: batch",),
        cloud="hetzner",
    ),
    case(
        "a pool that is not there, by name",
        node_pool(),
        pod("web", nodeSelector={names.NODE_POOL_LABEL: "gpu"}),
        cause="NodePoolNotFound",
        words=("NodePool gpu", "no such pool"),
        helps=("create",),
    ),
    case(
        "a growth pool that is not there",
        growth_pool("default"),
        pod("web", nodeSelector={names.POOL_LABEL: "gpu"}),
        cause="NodePoolNotFound",
        words=("NodePool gpu", "no such pool"),
        helps=("create the growth NodePool gpu",),
        cloud="hetzner",
    ),
    case("no pool at all", pod("web"), cause="pool", words=("there is no NodePool",), helps=("create a NodePool",)),
    case(
        "anti-affinity in the only zone",
        node_pool("default", need(ZONE, "In", "test-zone-a")),
        machine("a"),
        pods(1, on="a", labels={"app": "web"}),
        pod("web", metadata=WEB, affinity=affinity("podAntiAffinity", ZONE)),
        cause="topology",
        words=("together", "anti-affinity", ZONE),
        helps=("allow test-zone-b",),
    ),
    case(
        "affinity to pods that are nowhere",
        node_pool(),
        pod("web", affinity=affinity("podAffinity", ZONE, app="db")),
        cause="topology",
        words=("together", "affinity to pods", ZONE),
        helps=("drop the required affinity",),
    ),
    case(
        "spread over zones of which the pool has one",
        node_pool("default", need(ZONE, "In", "test-zone-a")),
        machine("a"),
        machine("b", zone="test-zone-b", of="other"),
        node_pool("other", metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}}),
        pods(2, on="a", labels={"app": "web"}),
        pod("full", cpu="15900m", nodeName="b"),
        pod("web", metadata=WEB, topologySpreadConstraints=spread(ZONE)),
        cause="topology",
        words=("together", "topology spread", ZONE),
        helps=("allow test-zone-b",),
    ),
    case(
        "pods that keep others away",
        node_pool("default", need(ZONE, "In", "test-zone-a")),
        machine("a"),
        pods(1, on="a"),
        pod("lonely", affinity=affinity("podAntiAffinity", ZONE), nodeName="a"),
        pod("web", metadata=WEB, nodeSelector={ZONE: "test-zone-a"}),
        cause="topology",
        words=("together", "anti-affinity of pods already there"),
        helps=("anti-affinity of default/lonely",),
    ),
    case(
        "a claim that is not there",
        node_pool(),
        storage(),
        pod("web", volumes=[claimed()]),
        cause="volumes",
        words=("volumes", "default/data does not exist"),
        helps=("create the persistent volume claim default/data",),
    ),
    case(
        "a storage class that is not there",
        node_pool(),
        volume_claim(storageClassName="fast"),
        pod("web", volumes=[claimed()]),
        cause="volumes",
        words=("volumes", "storage class fast"),
        helps=("create the storage class fast",),
    ),
    case(
        "a volume in a zone where the pool does not buy",
        node_pool("default", need(ZONE, "In", "test-zone-a")),
        storage(),
        volume("pv", "test-zone-c"),
        volume_claim(storageClassName="standard", volumeName="pv"),
        pod("web", volumes=[claimed()]),
        cause="volumes",
        words=("volumes", ZONE, "test-zone-c"),
        helps=("allow test-zone-c",),
    ),
    case(
        "a claim for a single pod",
        node_pool(),
        storage(),
        machine("a"),
        volume("pv", "test-zone-a"),
        volume_claim(storageClassName="standard", volumeName="pv", accessModes=["ReadWriteOncePod"]),
        pod("holder", volumes=[claimed()], nodeName="a"),
        pod("web", volumes=[claimed()]),
        cause="volumes",
        words=("volumes", "single pod"),
        helps=("end pod default/holder",),
    ),
    case(
        "a port that a DaemonSet binds everywhere",
        node_pool(),
        manifests.workload(
            "DaemonSet",
            "agent",
            template={"containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
        ),
        {
            **pod("web"),
            "spec": {"containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
        },
        cause="ports",
        words=("host port is taken",),
        helps=("bind no host port",),
    ),
    case(
        "a pool that is paused",
        node_pool(metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}}),
        pod("web"),
        cause="pool",
        words=("NodePool default buys nothing", "paused"),
        helps=("take the annotation growth.dev/paused off",),
    ),
    case(
        "a node class that is not there",
        node_pool(),
        kwok_class("other"),
        pod("web"),
        cause="pool",
        words=("NodePool default buys nothing", "node class KWOKNodeClass default does not exist"),
        helps=("create the KWOKNodeClass default",),
    ),
    case(
        "a pool that is not ready because its class is not there",
        node_pool(
            status={
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "False",
                        "reason": "NodeClassReady",
                        "message": "NodeClass not found on cluster",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            }
        ),
        kwok_class("other"),
        pod("web"),
        cause="pool",
        words=("NodePool default buys nothing", "not ready", "NodeClass not found"),
        helps=("create the KWOKNodeClass default",),
    ),
    case(
        "a node class that is not ready",
        node_pool(),
        kwok_class("default", ready="False"),
        kwok_class("other"),
        pod("web"),
        cause="pool",
        words=("buys nothing", "KWOKNodeClass default is not ready", "the image is gone"),
        helps=("use the KWOKNodeClass other in NodePool default",),
    ),
    case(
        "a static pool",
        node_pool(replicas=1),
        machine("a", SMALL),
        pod("web", cpu=4),
        cause="pool",
        words=("buys nothing", "static"),
        helps=("create a NodePool",),
    ),
    case(
        "the only type is sold out",
        typed("default", SMALL),
        pod("web"),
        cause="unavailable",
        words=("the cloud has no machine for NodePool default",),
        helps=("allow",),
        catalogue=lambda: sold_out(SMALL),
    ),
    case(
        "minValues that nothing satisfies",
        node_pool("default", need(names.INSTANCE_TYPE_LABEL, "In", SMALL, LARGE, minValues=2)),
        pod("web", cpu=4),
        cause="minValues",
        words=("more choice than there is", names.INSTANCE_TYPE_LABEL, "1 left"),
        helps=("lower minValues",),
    ),
    case(
        "a server type at its maximum",
        growth_pool("default", {"name": "cx33", "max": 1}),
        pod("big", cpu=3),
        pod("web", cpu=3, metadata={"creationTimestamp": "2026-01-01T00:00:00Z"}),
        cause="limits",
        words=("growth.dev/default may not buy more", "at its max"),
        helps=("raise max of server type cx33 of NodePool growth.dev/default by 1, to 2",),
        cloud="hetzner",
    ),
    case(
        "the nodes of a growth pool are limited",
        growth_pool("default", {"name": "cx33", "max": 5}, limits={"nodes": 1}),
        pod("big", cpu=3),
        pod("web", cpu=3),
        cause="limits",
        words=("may not buy more", "limits.nodes is reached (1)"),
        helps=("raise limits.nodes of NodePool growth.dev/default by 1, to 2",),
        cloud="hetzner",
    ),
    case(
        "a server type that the cloud had none of",
        growth_pool("default", {"name": "cx33", "max": 5}),
        unmet("cx33", "2100-01-01T00:10:00Z"),
        pod("web", cpu=3),
        cause="unavailable",
        words=("the cloud has no machine for NodePool growth.dev/default",),
        helps=("add the server type",),
        cloud="hetzner",
    ),
    case(
        "a server type that is no longer sold",
        growth_pool("default", {"name": "cx31", "max": 5}),
        pod("web"),
        cause="pool",
        words=("buys nothing", "cx31"),
        helps=("add the server type",),
        cloud="hetzner",
    ),
    case(
        "a scheduling gate",
        node_pool(),
        pod("web", schedulingGates=[{"name": "example.com/quota"}]),
        cause="SchedulingGates",
        words=("scheduling gates", "example.com/quota"),
        helps=("remove the scheduling gates",),
    ),
    case(
        "resource claims",
        node_pool(),
        pod("web", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
        cause="unsupported",
        words=("not supported", "resourceClaims"),
        helps=("use no resourceClaims",),
    ),
    case(
        "the nearest of several pools counts",
        node_pool("gpu", template={"taints": [{"key": "gpu", "effect": "NoSchedule"}]}),
        node_pool("full", limits={"nodes": "0"}),
        typed("small", SMALL),
        pod("web", cpu=4),
        cause="limits",
        words=("NodePool full may not buy more", "2 other pools"),
        helps=("raise limits.nodes of NodePool full by 1, to 1",),
    ),
    case(
        "the heavier pool is at its limit and the lighter has nothing large enough",
        typed("light", SMALL),
        typed("heavy", LARGE, weight=10, limits={"nodes": "1"}),
        machine("a", of="heavy"),
        pods(1, on="a", cpu=14),
        pod("web", cpu=4),
        cause="limits",
        words=("NodePool heavy may not buy more", "limits.nodes is reached (1)", "1 other pool cannot take it either"),
        helps=("raise limits.nodes of NodePool heavy by 1, to 2",),
    ),
    case(
        "the heavier pool has nothing large enough and the lighter is at its limit",
        typed("light", LARGE, weight=1, limits={"nodes": "1"}),
        typed("heavy", SMALL, weight=10),
        machine("a", of="light"),
        pods(1, on="a", cpu=14),
        pod("web", cpu=4),
        cause="limits",
        words=("NodePool light may not buy more", "limits.nodes is reached (1)", "1 other pool cannot take it either"),
        helps=("raise limits.nodes of NodePool light by 1, to 2",),
    ),
]


@pytest.mark.parametrize("known", CASES, ids=lambda each: each.title)
def test_the_first_sentence_names_the_cause(known: Case) -> None:
    """One word for machines, and for people the pool, the rule and what is lacking."""
    found = explained(known.scene(), known.about)
    assert (found.cause, [word for word in known.words if word not in found.sentence]) == (known.cause, []), found
    assert pending(known.scene(), known.about)[0] == known.cause


@pytest.mark.parametrize("known", CASES, ids=lambda each: each.title)
def test_every_remedy_that_is_told_gives_the_pod_a_place(known: Case) -> None:
    """Applied to the manifests, a new plan places it; the best one is the one that a person would think of."""
    assert not known.scene().placed(known.about)
    remedies = explained(known.scene(), known.about).as_json()["remedies"]
    assert remedies
    assert [word for word in known.helps if word not in remedies[0]["text"]] == [], remedies
    for remedy in remedies:
        after, now = applied(known.objects, remedy)
        assert known.scene(after, now).placed(known.about), remedy


@pytest.mark.parametrize(
    ("light", "heavy", "pool", "kind"),
    [
        (0, 10, "heavy (weight 10)", LARGE),
        (9, 10, "heavy (weight 10)", LARGE),
        (20, 10, "light (weight 20)", SMALL),
        (0, 0, "light", SMALL),
    ],
)
def test_a_pod_lands_in_the_heavier_pool_and_is_told_so(light: int, heavy: int, pool: str, kind: str) -> None:
    """By weight before price; pools of one weight are told without it. The plan places it there."""
    weights = {"light": light, "heavy": heavy}
    objects = flat(
        typed("light", SMALL, **({"weight": light} if light else {})),
        typed("heavy", LARGE, **({"weight": heavy} if heavy else {})),
        pod("web", cpu=1),
    )
    shown = Case(title="", objects=objects, about=KEY, cause="", words=()).scene()
    found = explained(shown, KEY)
    assert (found.cause, f"a {kind} " in found.sentence, f"for NodePool {pool}." in found.sentence) == (
        "WouldBeBought",
        True,
        True,
    ), found
    name = pool.split(maxsplit=1)[0]
    assert [claim.pool.name for claim in shown.plan.claims] == [name]
    other = "light" if name == "heavy" else "heavy"
    told = f"{name} before {other} ({weights[other]})"
    assert any(told in note for note in found.notes) == (light != heavy)


def test_what_was_tried_is_told_pool_by_pool_and_node_by_node() -> None:
    """With the rule that failed; the nearest miss is the node that lacks least."""
    objects = flat(
        typed("default", SMALL, limits={"nodes": "2"}),
        machine("near", SMALL),
        machine("far", SMALL),
        pods(1, on="near", cpu="1"),
        pods(1, on="far", cpu="1800m"),
        node("tainted", taints=[{"key": "a", "effect": "NoSchedule"}]),
        pod("web", cpu=1),
    )
    found = explained(Case(title="", objects=objects, about=KEY, cause="", words=()).scene(), KEY)
    assert [(each.what, each.rule) for each in found.tried] == [
        ("NodePool default", "limits"),
        ("2 nodes", "resources"),
        ("Node tainted", "taints"),
    ]
    assert found.nearest == "node near has 100m cpu too little"


def test_pods_that_nothing_keeps_say_where_they_go() -> None:
    """A node with room, a machine on its way, one that would be bought, the node that they have."""
    there = flat(node_pool(), machine("a"), machine("young", conditions=("Launched",)))
    for objects, cause, word in (
        ([*there, pod("web")], "WaitsForScheduler", "room on node a"),
        (
            flat(node_pool(), machine("young", conditions=("Launched",)), pod("web")),
            "WaitsForMachine",
            "NodeClaim young",
        ),
        (flat(node_pool(), pod("web")), "WouldBeBought", "would be bought"),
        ([*there, pod("web", nodeName="a")], "Running", "has a node: a, c-16x-amd64-linux at "),
        (flat(node_pool(), pod("web", status={"phase": "Succeeded"})), "Done", "has ended"),
        (flat(node_pool(), pod("web", metadata=owned_by("DaemonSet", "d"))), "DaemonSet", "one node"),
        (flat(pod("web", nodeName="gone")), "NodeNotFound", "does not exist"),
        (flat(node_pool(), pod("web", status={"nominatedNodeName": "a"})), "Preemption", "lower priority"),
    ):
        found = explained(Case(title="", objects=objects, about=KEY, cause="", words=()).scene(), KEY)
        assert (found.cause, word in found.sentence) == (cause, True), found


def test_a_machine_that_minvalues_may_make_dear_is_explained_with_its_worst_price() -> None:
    """One that costs what is expected, or near it, is not."""
    flexible = node_pool("default", need(names.INSTANCE_TYPE_LABEL, "Exists", minValues=10))
    notes = {
        at: explained(Case(title="", objects=flat(pool, pod("web")), about=KEY, cause="", words=()).scene(), KEY).notes
        for at, pool in (("flexible", flexible), ("plain", node_pool()))
    }
    assert any("it may cost up to $" in note and "minValues" in note for note in notes["flexible"])
    assert not any("it may cost up to" in note for note in notes["plain"])


def test_a_pod_for_which_machines_came_in_vain_is_told_what_came() -> None:
    """The Node, the difference and the time, and what takes the rest away; another pod is bought for."""
    plain = Case(title="", objects=flat(node_pool(), pod("web")), about=KEY, cause="", words=()).scene()
    (pool,) = plain.objects.pools
    picture = plain.picture
    market = Market(picture.catalogue, picture.node_classes, picture.now)
    entry = InVain(
        rounds=2,
        why="label zone is fsn1-dc14 where fsn1 was planned: correct the label",
        claim="default-abcde",
        node="host-1",
        basis=market.basis(pool.metadata, pool.spec.template.spec.node_class_ref),
        at=picture.now,
        until=picture.now + dt.timedelta(hours=1),
    )
    sort = Sorts().digest(plain.pods[KEY].shape)
    told = node_pool(metadata={"annotations": {names.IN_VAIN_ANNOTATION: printed({sort: entry})}})
    objects = flat(told, pod("web"), pod("other", cpu="2"))
    scene = Case(title="", objects=objects, about=KEY, cause="", words=()).scene()
    found = explained(scene, KEY)
    assert found.cause == "inVain"
    assert (
        "the Node host-1 of NodeClaim default-abcde: label zone is fsn1-dc14 where fsn1 was planned" in found.sentence
    )
    assert [each.text for each in found.remedies] == ["take the annotation growth.dev/in-vain off NodePool default"]
    assert explained(scene, "default/other").cause == "WouldBeBought"
