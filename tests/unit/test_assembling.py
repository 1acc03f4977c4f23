"""From the cluster's objects to the snapshot: machines, pools, demands."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from growth.api import names, reservations
from growth.api.decoding import convert
from growth.api.instance_types import Catalogue
from growth.api.kinds import Json
from growth.api.linodeclasses import LinodeNodeClassSpec
from growth.api.nodeclasses import HetznerNodeClassSpec
from growth.api.nodes import Node
from growth.api.pools import PoolRef
from growth.api.reservations import Reservation
from growth.cli.errors import UsageError
from growth.cli.manifests.collection import Collection
from growth.cli.manifests.documents import Document, Place
from growth.cluster.assemble import Assembled, Objects, assemble, composed, pictured
from growth.cluster.snapshot import NodeView, PoolView
from growth.planning.solve import solve
from growth.providers.catalogues import builtin
from growth.providers.hetzner import classes as hetzner
from growth.providers.linode import classes as linode
from tests.manifests import claim, growth_pool, need, node, node_pool, owned_by, pod, workload

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
READY = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
POOL = {"karpenter.sh/nodepool": "default"}
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
STARTUP = {"key": "example.com/starting", "effect": "NoSchedule"}
OWN = {"key": "example.com/own", "effect": "NoSchedule"}


def collected(*objects: Json) -> Collection:
    collection = Collection()
    for number, each in enumerate(objects, start=1):
        collection.add(Document(Place("test.yaml", number), each["apiVersion"], each["kind"], each))
    return collection


def assembled(*objects: Json, catalogue: Catalogue | None = None) -> Assembled:
    return assemble(collected(*objects).finished().objects, catalogue or builtin("kwok"), now=NOW)


def only_node(*objects: Json, **more: Any) -> NodeView:
    (view,) = assembled(*objects, **more).snapshot.nodes
    return view


def only_pool(*objects: Json, cloud: str = "kwok") -> PoolView:
    (view,) = assembled(*objects, catalogue=builtin(cloud, dedicated=True)).snapshot.pools
    return view


# --- machines


def test_a_claim_and_its_node_are_one_machine() -> None:
    """Matched by provider ID, whatever they are called; the node's name is the machine's."""
    view = only_node(
        claim("c", labels=POOL, status={"providerID": "kwok://1", "capacity": ROOM, "allocatable": ROOM}),
        node("n", provider="kwok://1", labels={**POOL, **READY}),
    )
    assert view.name == "n"
    assert view.initialized
    assert view.pool == PoolRef.karpenter("default")
    assert view.allocatable["memory"] == 16 << 30


def test_a_node_of_another_machine_is_not_the_claims() -> None:
    """A name that is used again does not make two machines one."""
    found = assembled(
        claim("c", status={"providerID": "kwok://1", "nodeName": "n", "capacity": ROOM, "allocatable": ROOM}),
        node("n", provider="kwok://2"),
    )
    assert [view.name for view in found.snapshot.nodes] == ["c", "n"]


def test_a_node_that_does_not_know_its_id_yet_is_found_by_name() -> None:
    """Kubelets register before a cloud's controller has filled in the provider ID: that is no second machine."""
    launched = claim("c", status={"providerID": "hcloud://1", "capacity": ROOM, "allocatable": ROOM})
    assert not only_node(launched, node("c")).initialized


def test_a_claim_in_flight_with_the_name_of_a_foreign_node_is_a_machine_of_its_own() -> None:
    """Neither hides the other."""
    launched = claim("n", status={"providerID": "kwok://1", "capacity": ROOM, "allocatable": ROOM})
    found = assembled(launched, node("n", provider="kwok://2"), pod("p", nodeName="n"))
    assert [(view.name, len(view.pods)) for view in found.snapshot.nodes] == [("NodeClaim n", 0), ("n", 1)]


def test_a_claim_in_flight_is_capacity() -> None:
    """With its own labels, taints and allocatable, and a host name of its own."""
    view = only_node(
        claim(
            "c",
            labels={**POOL, "topology.kubernetes.io/zone": "test-zone-a"},
            status={"providerID": "kwok://1", "capacity": ROOM, "allocatable": {"cpu": "3900m", "memory": "7Gi"}},
            taints=[OWN],
            startupTaints=[STARTUP],
        )
    )
    assert view.name == "c"
    assert not view.initialized
    assert view.labels["topology.kubernetes.io/zone"] == "test-zone-a"
    assert view.labels["kubernetes.io/hostname"] == "c"
    assert [taint.key for taint in view.taints] == ["example.com/own"]
    assert view.allocatable == {"cpu": 3900, "memory": 7 << 30}


def test_a_claim_without_a_machine_has_the_room_of_its_smallest_type() -> None:
    """Its labels are those that the cheapest of its types will have; against limits the largest counts."""
    listed = need("node.kubernetes.io/instance-type", "In", "c-2x-amd64-linux", "c-8x-amd64-linux")
    objects = (
        node_pool(limits={"cpu": "100", "nodes": "5"}),
        claim(
            "c",
            listed,
            need("karpenter.sh/capacity-type", "In", "on-demand"),
            labels=POOL,
            resources={"requests": {"cpu": "1500m", "pods": "3"}},
        ),
    )
    view = only_node(*objects)
    assert view.allocatable["cpu"] == 1900
    assert view.allocatable["pods"] == 32
    assert view.labels["node.kubernetes.io/instance-type"] == "c-2x-amd64-linux"
    assert view.labels["topology.kubernetes.io/zone"] == "test-zone-a"
    assert view.labels["kubernetes.io/arch"] == "amd64"
    assert view.price == 54_294_967
    pool = only_pool(*objects)
    assert pool.used["cpu"] == 8000
    assert pool.used["nodes"] == 1


def test_until_a_node_is_registered_the_claims_labels_and_taints_count() -> None:
    """The kubelet's own come too late to plan with."""
    view = only_node(
        claim(
            "c", labels={"a": "claim"}, taints=[OWN], status={"providerID": "x", "capacity": ROOM, "allocatable": ROOM}
        ),
        node(
            "n",
            provider="x",
            labels={"a": "node"},
            taints=[{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
        ),
    )
    assert view.labels["a"] == "claim"
    assert [taint.key for taint in view.taints] == ["example.com/own"]


def test_until_a_node_is_initialised_taints_that_will_go_are_left_out() -> None:
    """Startup taints and those that a node carries while it comes up; all others count."""
    coming = [
        STARTUP,
        OWN,
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule", "value": "true"},
        {"key": "readiness.k8s.io/network", "effect": "NoSchedule"},
    ]
    objects = (
        claim("c", startupTaints=[STARTUP], status={"providerID": "x", "capacity": ROOM, "allocatable": ROOM}),
        node("n", provider="x", labels={"karpenter.sh/registered": "true"}, taints=coming),
    )
    assert [taint.key for taint in only_node(*objects).taints] == ["example.com/own"]
    later = node("n", provider="x", labels=READY, taints=coming)
    assert len(only_node(objects[0], later).taints) == len(coming)


def test_what_a_node_does_not_report_yet_is_the_claims() -> None:
    """Zero and absent alike, as long as the node is not initialised."""
    told = {"allocatable": {"cpu": "3500m", "nvidia.com/gpu": "0"}, "capacity": {}}
    promised = {**ROOM, "nvidia.com/gpu": "1"}
    objects = (
        claim("c", status={"providerID": "x", "capacity": promised, "allocatable": promised}),
        node("n", provider="x", labels={"karpenter.sh/registered": "true"}, status=told),
    )
    assert only_node(*objects).allocatable == {"cpu": 3500, "memory": 8 << 30, "pods": 110, "nvidia.com/gpu": 1}
    ready = node("n", provider="x", labels=READY, status=told)
    assert only_node(objects[0], ready).allocatable == {"cpu": 3500, "nvidia.com/gpu": 0}


def test_a_node_without_a_claim_is_as_it_says() -> None:
    """It is initialised, and its taints count, those of its start too."""
    view = only_node(node("n", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]))
    assert view.initialized
    assert view.pool is None
    assert [taint.key for taint in view.taints] == ["node.kubernetes.io/not-ready"]


def test_a_cordoned_node_has_the_taint_of_it() -> None:
    """Once, whether somebody wrote the taint already or not."""
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    for given in ([], [taint]):
        view = only_node(node("n", unschedulable=True, taints=given))
        assert [(each.key, each.effect) for each in view.taints] == [(taint["key"], "NoSchedule")]


def test_a_machine_that_goes_is_no_capacity_and_its_pods_want_a_place() -> None:
    """All but those that go with it; against limits it still counts."""
    found = assembled(
        node_pool(limits={"nodes": "3"}),
        claim(
            "c",
            labels=POOL,
            metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
            status={"providerID": "x", "capacity": ROOM, "allocatable": ROOM},
        ),
        node("n", provider="x", labels={**POOL, **READY}),
        pod("moves", nodeName="n"),
        pod("daemon", nodeName="n", metadata=owned_by("DaemonSet", "d")),
        pod("leaves", nodeName="n", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod("done", nodeName="n", status={"phase": "Succeeded"}),
    )
    assert found.snapshot.nodes == ()
    assert [demand.key for demand in found.demands] == ["default/moves"]
    assert found.snapshot.pools[0].used["nodes"] == 1


def test_deleting_the_node_of_a_claim_deletes_the_machine() -> None:
    """Whoever begins with it."""
    held = claim("c", labels=POOL, status={"providerID": "x", "capacity": ROOM, "allocatable": ROOM})
    gone = node("n", provider="x", labels=READY, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert assembled(held, gone).snapshot.nodes == ()
    assert assembled(gone).snapshot.nodes == ()


# --- pods on nodes


def test_pods_are_counted_by_shape_and_summed() -> None:
    """Finished ones hold nothing; those of DaemonSets are summed apart too."""
    view = only_node(
        node("n"),
        *(pod(f"web-{number}", nodeName="n", cpu="500m", memory="1Gi") for number in range(3)),
        pod("log", nodeName="n", cpu="100m", memory="64Mi", metadata=owned_by("DaemonSet", "log")),
        pod("done", nodeName="n", status={"phase": "Failed"}),
        pod("elsewhere", nodeName="other"),
    )
    assert view.requested == {"cpu": 1600, "memory": (3 << 30) + (64 << 20), "pods": 4}
    assert view.daemon_requested == {"cpu": 100, "memory": 64 << 20, "pods": 1}
    assert sorted(number for _, number in view.pods) == [1, 3]


def test_pods_that_are_being_deleted_are_told_apart() -> None:
    """They hold what they hold until they are gone."""
    view = only_node(
        node("n"),
        *(pod(f"web-{number}", nodeName="n", cpu="500m") for number in range(2)),
        pod("going", nodeName="n", cpu="500m", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    )
    assert view.requested["cpu"] == 1500
    assert [number for _, number in view.pods] == [3]
    assert [number for _, number in view.uncounted] == [1]


def test_pods_of_a_move_hold_their_next_room_and_count_where_they_run() -> None:
    """To count them twice sends pods of their spread to other zones, where machines are bought for them."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }

    def web(name: str, on: str = "") -> Json:
        where: Json = {"nodeName": on} if on else {}
        return pod(name, cpu="1", metadata={"labels": {"app": "web"}}, topologySpreadConstraints=[spread], **where)

    def machine(name: str, zone: str) -> tuple[Json, Json]:
        labels = {**POOL, **READY, "topology.kubernetes.io/zone": zone}
        status = {"providerID": name, "capacity": ROOM, "allocatable": ROOM}
        return claim(name, labels=labels, status=status), node(name, cpu="1", provider=name, labels=labels)

    machines = (*machine("goes", "a"), *machine("comes", "a"), *machine("free", "a"), *machine("full", "b"))
    pods = (web("moves", "goes"), web("stays", "full"), web("waits"))
    picture = pictured(collected(*machines, *pods).finished().objects, builtin("kwok"), now=NOW)
    before = picture.counted["goes"].view
    assert before is not None
    found = composed(dataclasses.replace(picture, promised={"comes": [shape for shape, _ in before.pods]}))
    assert [view.requested for view in found.snapshot.nodes if view.name == "comes"] == [before.requested]
    plan = solve(found.snapshot, found.demands)
    assert [(each.name, each.pods) for each in plan.filled] == [("free", ("default/waits",))]


def test_pending_pods_come_in_the_order_of_the_schedulers_queue() -> None:
    """The oldest first; of one second those that were tried first, which the revision tells; else as they are given."""

    def waiting(name: str, second: int, revision: str) -> Json:
        body = pod(name)
        body["metadata"] |= {"creationTimestamp": f"2026-01-01T00:00:0{second}Z", "resourceVersion": revision}
        return body

    found = assembled(waiting("a", 2, "7"), waiting("b", 1, "10"), waiting("c", 1, "9"), waiting("d", 1, "9"))
    assert [demand.key for demand in found.demands] == ["default/c", "default/d", "default/b", "default/a"]


def test_pods_on_unknown_nodes_are_named_in_a_warning() -> None:
    """They are neither capacity nor demand, but nobody should wonder where they went."""
    found = assembled(pod("lost", nodeName="nowhere"))
    assert found.demands == ()
    assert found.warnings == ("1 pods are bound to nodes that are not known: they are left out",)


def test_a_pod_that_is_being_resized_holds_the_larger_request() -> None:
    """The kubelet has granted two cores and the spec asks for one: the node must hold two."""
    statuses = [{"name": "main", "allocatedResources": {"cpu": "2", "memory": "128Mi"}}]
    view = only_node(node("n"), pod("p", nodeName="n", cpu="1", status={"containerStatuses": statuses}))
    assert view.requested["cpu"] == 2000


def test_a_node_with_a_quantity_that_is_none_is_taken_as_full() -> None:
    """How much is free there is not known, so nothing is placed there; a file with such a node is refused."""
    odd = node("n", cpu="much")
    found = assemble(Objects(nodes=(convert(odd, Node),)), builtin("kwok"), now=NOW)
    assert found.snapshot.nodes[0].allocatable == {}
    assert found.warnings[0].startswith("node n is taken as full: cpu: ")
    with pytest.raises(UsageError, match=r"status\.allocatable\.cpu"):
        assembled(odd)


# --- volumes


def _volume(name: str, handle: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"csi": {"driver": "csi.example.com", "volumeHandle": handle}},
    }


def _volume_claim(name: str, volume: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"volumeName": volume, "accessModes": ["ReadWriteOnce"]},
    }


def test_volumes_of_pods_and_recorded_attachments_are_counted_once() -> None:
    """Two pods on one volume, and a volume that is still attached without a pod."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    attachment = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "a"},
        "spec": {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv-2"}},
    }
    view = only_node(
        node("n"),
        _volume("pv-1", "vol-1"),
        _volume("pv-2", "vol-2"),
        _volume_claim("data", "pv-1"),
        attachment,
        pod("a", nodeName="n", volumes=volumes),
        pod("b", nodeName="n", volumes=volumes),
    )
    assert view.volumes == {"csi.example.com": frozenset({"vol-1", "vol-2"})}


# --- demands


def test_demands_are_pods_that_want_a_place() -> None:
    """Without a node, not finished, not going, not a DaemonSet's, no mirror of a static pod."""
    found = assembled(
        pod("wants", namespace="team"),
        pod("done", status={"phase": "Succeeded"}),
        pod("leaves", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod("daemon", metadata=owned_by("DaemonSet", "d")),
        pod("mirror", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
        pod("static", metadata=owned_by("Node", "n")),
    )
    assert [demand.key for demand in found.demands] == ["team/wants"]


def test_pods_that_wait_for_something_else_are_listed_apart() -> None:
    """A gate, or the end of the pods that make room for them: a machine would not help."""
    found = assembled(
        pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
        pod("nominated", status={"nominatedNodeName": "n"}),
    )
    assert found.demands == ()
    assert [(each.pod, each.reason) for each in found.waiting] == [
        ("default/gated", "scheduling gates: example.com/quota"),
        ("default/nominated", "preemption on node n"),
    ]


def test_equal_pods_share_a_shape() -> None:
    """Planning works on shapes."""
    found = assembled(pod("a"), pod("b"), pod("c", cpu="2"))
    assert len({demand.shape for demand in found.demands}) == 2


# --- DaemonSets and namespaces


def test_a_daemon_set_is_a_sample_pod() -> None:
    """With the tolerations that its controller adds."""
    found = assembled(workload("DaemonSet", "log"))
    (sample,) = found.snapshot.daemons
    assert sample.metadata.name == "log"
    assert "node.kubernetes.io/unschedulable" in {each.key for each in sample.spec.tolerations}


def test_a_daemon_sets_newest_pod_says_what_it_requests() -> None:
    """What admission made of the template counts, not what the template says."""

    def daemon(name: str, day: int, cpu: str) -> Json:
        born = {**owned_by("DaemonSet", "log"), "creationTimestamp": f"2026-01-0{day}T00:00:00Z"}
        return pod(name, nodeName="n", cpu=cpu, metadata=born)

    found = assembled(workload("DaemonSet", "log"), node("n"), daemon("b", 2, "300m"), daemon("a", 1, "200m"))
    (sample,) = found.snapshot.daemons
    assert sample.spec.containers[0].resources.requests["cpu"] == "300m"


def test_namespaces_have_their_name_as_a_label() -> None:
    """As servers set it."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"a": "b"}}}
    assert assembled(space).snapshot.namespaces == {"team": {"a": "b", "kubernetes.io/metadata.name": "team"}}


# --- prices


@pytest.mark.parametrize(
    ("labels", "price"),
    [
        ({"node.kubernetes.io/instance-type": "CX23", "topology.kubernetes.io/zone": "fsn1"}, 8_798_077),
        ({"node.kubernetes.io/instance-type": "cx23", "topology.kubernetes.io/region": "hel1"}, 8_798_077),
        ({"node.kubernetes.io/instance-type": "cx23"}, 8_798_077),
        ({"node.kubernetes.io/instance-type": "cx23", "topology.kubernetes.io/zone": "ash"}, None),
        ({"node.kubernetes.io/instance-type": "unheard-of"}, None),
        ({}, None),
    ],
)
def test_a_nodes_price_is_the_catalogues_or_unknown(labels: Json, price: int | None) -> None:
    """Unknown is not zero."""
    assert only_node(node("n", labels=labels), catalogue=builtin("hetzner")).price == price


def test_a_price_that_depends_on_unknown_terms_is_unknown() -> None:
    """A node of KWOK that does not say whether it is spot may cost either."""
    labels = {"node.kubernetes.io/instance-type": "c-2x-amd64-linux", "topology.kubernetes.io/zone": "test-zone-a"}
    assert only_node(node("n", labels=labels)).price is None
    assert only_node(node("n", labels={**labels, "karpenter.sh/capacity-type": "spot"})).price == 38_006_477


# --- pools


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (node_pool(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), "it is being deleted"),
        (node_pool(metadata={"annotations": {"growth.dev/paused": "true"}}), "it is paused by the annotation"),
        (node_pool(replicas=3), "it is static"),
        (
            node_pool(
                status={
                    "conditions": [
                        {
                            "type": "Ready",
                            "status": "False",
                            "reason": "X",
                            "message": "no class",
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                        }
                    ]
                }
            ),
            "it is not ready: no class",
        ),
        (node_pool(metadata={"annotations": {"growth.dev/reserved": "soon"}}), "what it has reserved is not known"),
        (growth_pool("p", {"name": "CX31", "max": 1}), "none of its server types is sold by hetzner: CX31"),
    ],
)
def test_a_pool_that_may_buy_nothing_says_why(given: Json, problem: str) -> None:
    """Each of these keeps it from buying, in words for the pod's reasons."""
    assert only_pool(given, cloud="hetzner").problem.startswith(problem)


def test_a_pool_without_a_status_may_buy() -> None:
    """A file has none."""
    assert only_pool(node_pool()).problem == ""


def test_a_node_class_is_missed_only_where_others_of_its_kind_are_given() -> None:
    """A file may leave classes out; with one of the kind there, another one is missing."""
    other = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "other"}}
    default = {**other, "metadata": {"name": "default"}}
    assert only_pool(node_pool(), other).problem == "its node class KWOKNodeClass default does not exist"
    assert only_pool(node_pool(), other, default).problem == ""


def test_usage_counts_what_exists_what_is_in_flight_and_what_is_reserved() -> None:
    """A reserved name that has become a claim counts once."""
    reserved = reservations.printed(
        {
            "flying": Reservation(at=NOW, instance_type="c-2x-amd64-linux"),
            "coming": Reservation(at=NOW, instance_type="c-4x-amd64-linux"),
        }
    )
    pool = only_pool(
        node_pool(limits={"cpu": "100", "nodes": "9"}, metadata={"annotations": {names.RESERVED_ANNOTATION: reserved}}),
        node("n", labels={**POOL, **READY}),
        claim("flying", labels=POOL, status={"providerID": "x", "capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}}),
        node("foreign"),
    )
    assert pool.limits == {"cpu": 100_000, "nodes": 9}
    assert pool.used["nodes"] == 3
    assert pool.used["cpu"] == 4000 + 2000 + 4000


def test_a_growth_pool_knows_its_types_whatever_their_case() -> None:
    """In the order of the pool, with their maximum and priority by the cloud's own name."""
    pool = only_pool(
        growth_pool(
            "p",
            {"name": "CAX11", "max": 3, "priority": 7},
            {"name": "cx33", "max": 2},
            limits={"nodes": 4},
            template={"labels": {"team": "a"}, "taints": [OWN], "startupTaints": [STARTUP]},
        ),
        cloud="hetzner",
    )
    assert [kind.name for kind in pool.instance_types] == ["cax11", "cx33"]
    assert pool.type_max == {"cax11": 3, "cx33": 2}
    assert pool.priorities == {"cax11": 7, "cx33": 0}
    assert pool.limits == {"nodes": 4}
    assert pool.labels == {"team": "a"}
    assert [taint.key for taint in pool.taints] == ["example.com/own"]
    assert [taint.key for taint in pool.startup_taints] == ["example.com/starting"]


def test_an_unknown_server_type_harms_only_itself() -> None:
    """A warning names it; the pool goes on with the others."""
    found = assembled(
        growth_pool("p", {"name": "CX31", "max": 1}, {"name": "CX33", "max": 1}, {"name": "ZX80", "max": 1}),
        catalogue=builtin("hetzner"),
    )
    assert found.warnings == (
        "NodePool growth.dev/p: server type CX31 is no longer sold by hetzner: name cx33 instead",
        "NodePool growth.dev/p: server type ZX80 is not sold by hetzner",
    )
    assert found.snapshot.pools[0].problem == ""


def test_a_growth_pools_machines_count_by_type() -> None:
    """Claims and nodes alike, under the type that they have."""
    labels = {"growth.dev/pool": "p", "node.kubernetes.io/instance-type": "cx33"}
    pool = only_pool(
        growth_pool("p", {"name": "CX33", "max": 5}),
        node("n", labels=labels),
        claim("c", need("node.kubernetes.io/instance-type", "In", "cx33"), labels={"growth.dev/pool": "p"}),
        cloud="hetzner",
    )
    assert pool.type_used == {"cx33": 2}
    assert pool.used["nodes"] == 2


def test_a_type_that_the_cloud_had_none_of_is_not_available_until_then() -> None:
    """`unmetUntil` in the future takes the offerings away, in the past it does not."""
    for until, available in (("2026-01-01T13:00:00Z", False), ("2026-01-01T11:00:00Z", True)):
        status = {"serverTypes": [{"name": "cx33", "unmetUntil": until}]}
        pool = only_pool(growth_pool("p", {"name": "CX33", "max": 5}, status=status), cloud="hetzner")
        assert {offering.available for offering in pool.instance_types[0].offerings} == {available}


def node_request(name: str, **status: Any) -> Json:
    return {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodeRequest",
        "metadata": {"name": name},
        "spec": {"targetOffering": "hetzner-cx33", "pool": "p"},
        "status": status,
    }


def test_a_request_without_a_claim_is_a_machine_in_flight() -> None:
    """Capacity of exactly its type, counted under the pool's maximum; once its claim is there, the claim counts."""
    objects = (
        growth_pool("p", {"name": "CX33", "max": 5}, template={"labels": {"team": "a"}, "taints": [OWN]}),
        node_request("r-1", phase="Pending"),
        node_request("r-2", phase="Provisioning", nodeClaimName="c"),
        node_request("r-3", phase="Ready", nodeClaimName="gone"),
        claim("c", need("node.kubernetes.io/instance-type", "In", "cx33"), labels={"growth.dev/pool": "p"}),
    )
    found = assembled(*objects, catalogue=builtin("hetzner"))
    assert [view.name for view in found.snapshot.nodes] == ["c", "r-1"]
    coming = found.snapshot.nodes[1]
    assert coming.allocatable["cpu"] == 3900
    assert coming.labels["team"] == "a"
    assert [taint.key for taint in coming.taints] == ["example.com/own"]
    assert found.snapshot.pools[0].type_used == {"cx33": 2}


def test_a_request_that_the_cloud_could_not_meet_takes_its_type_away() -> None:
    """Until its time is over."""
    for until, available in (("2026-01-01T13:00:00Z", False), ("2026-01-01T11:00:00Z", True)):
        pool = only_pool(
            growth_pool("p", {"name": "CX33", "max": 5}),
            node_request("r", phase="Unmet", unmetUntil=until),
            cloud="hetzner",
        )
        assert {offering.available for offering in pool.instance_types[0].offerings} == {available}


def test_a_node_class_says_where_machines_may_be_bought() -> None:
    """Its locations, for pools of both APIs that use it."""
    reference = {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "here"}
    there = {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "HetznerNodeClass",
        "metadata": {"name": "here"},
        "spec": {"locations": ["hel1"]},
    }
    for using in (growth_pool("p", nodeClassRef=reference), node_pool(template={"nodeClassRef": reference})):
        pool = only_pool(using, there, cloud="hetzner")
        assert {offering.zone for kind in pool.instance_types for offering in kind.offerings} <= {"hel1"}


def test_machines_that_people_own_stand_where_they_stand() -> None:
    """The locations of their class are those where others are bought."""
    reference = {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "here"}
    there = {**node_class(reference), "spec": {"locations": ["hel1"]}}
    using = growth_pool("p", nodeClassRef=reference, serverTypes=[{"name": "GEX44", "max": 1}])
    (kind,) = only_pool(using, there, cloud="hetzner").instance_types
    assert [offering.zone for offering in kind.offerings] == ["fsn1"]


HETZNER = {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "here"}
LINODE = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "here"}


def node_class(reference: Json, *learned: Json) -> Json:
    return {
        "apiVersion": f"{reference['group']}/v1alpha1",
        "kind": reference["kind"],
        "metadata": {"name": reference["name"]},
        "spec": {},
        "status": {"learnedTypes": list(learned)},
    }


@pytest.mark.parametrize(
    ("cloud", "reference", "name", "made", "permille"),
    [
        ("hetzner", HETZNER, "cx33", hetzner.hash_of(HetznerNodeClassSpec()), 930),
        ("linode", LINODE, "g6-standard-4", linode.hash_of(LinodeNodeClassSpec()), 925),
        ("linode", LINODE, "g6-standard-4", linode.hash_of(LinodeNodeClassSpec(), instances=True), 925),
    ],
)
def test_what_nodes_of_a_class_turned_out_to_hold_counts_at_once(
    cloud: str, reference: Json, name: str, made: str, permille: int
) -> None:
    """Whatever the catalogue says still; what an older class made is forgotten."""
    sizes = {"capacity": {"memory": "7800Mi"}, "allocatable": {"memory": "7300Mi"}}
    for hash_, memory in ((made, 7300 << 20), ("v1-older", (8 << 30) * permille // 1000)):
        learned = {"name": name, "hash": hash_, **sizes}
        pool = only_pool(node_pool(template={"nodeClassRef": reference}), node_class(reference, learned), cloud=cloud)
        (kind,) = [each for each in pool.instance_types if each.name == name]
        assert kind.allocatable["memory"] == memory


def test_a_class_has_prices_of_its_own_for_what_is_bought_and_for_what_is_there() -> None:
    """A machine that was bought with an address costs what the next one would."""
    sold = builtin("hetzner")
    (cx33,) = [kind for kind in sold.types if kind.name == "cx33"]
    dearer = dataclasses.replace(
        cx33, offerings=tuple(dataclasses.replace(each, price=(each.price or 0) + 800_000) for each in cx33.offerings)
    )
    catalogue = dataclasses.replace(sold, of_classes={"here": (dearer,)})
    labels = {names.NODE_POOL_LABEL: "default", names.INSTANCE_TYPE_LABEL: "cx33", names.ZONE_LABEL: "fsn1"}
    found = assembled(
        node_pool("default", template={"nodeClassRef": HETZNER}),
        node_class(HETZNER),
        node("a", labels=labels),
        catalogue=catalogue,
    )
    (pool,), (there,) = found.snapshot.pools, found.snapshot.nodes
    assert [kind.name for kind in pool.instance_types] == ["cx33"]
    assert there.price == dearer.offerings[0].price
