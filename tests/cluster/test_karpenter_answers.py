"""The Karpenter peer on small scenarios: what reaches its scheduler is what the scenario says.

As with the control plane, a missing peer is skipped on a developer's machine and fails where `CI=true`.
"""

import json
import pathlib
import subprocess
from typing import Any

import pytest

from bench import catalogues, mixes, settled
from bench.peers import karpenter
from bench.peers.karpenter import Answer, PeerError
from growth.api.kinds import Json
from tests.needs import need

ZONE = "topology.kubernetes.io/zone"
ROOM = {"cpu": "3900m", "memory": "8182Mi", "pods": "110"}


@pytest.fixture(scope="module", autouse=True)
def program() -> pathlib.Path:
    need(karpenter.built(), "no Karpenter peer in the cache; build it with `make peer`")
    return karpenter.build()


def ask(*objects: Json, types: list[Json] | None = None, **options: Any) -> Answer:
    return karpenter.solve(objects, instance_types=types or catalogues.kwok_types(), **options)


def pod(name: str, *, cpu: int = 100, memory: int = 128, **spec: Any) -> Json:
    return mixes.raw_pod(name, uid=name, cpu_milli=cpu, memory_mib=memory, labels={"app": name[0]}, **spec)


def node(name: str, *, zone: str = "test-zone-a", allocatable: dict[str, str] | None = None, **spec: Any) -> Json:
    room = allocatable or ROOM
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, ZONE: zone}},
        "spec": spec,
        "status": {"capacity": room, "allocatable": room},
    }


def raw(kind: str, name: str, *, api: str = "v1", **fields: Any) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def launched(name: str) -> Json:
    claim = raw(
        "NodeClaim",
        name,
        api="karpenter.sh/v1",
        spec={
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [],
        },
        status={"providerID": f"kwok://machine-of-{name}", "capacity": ROOM, "allocatable": ROOM},
    )
    claim["metadata"]["labels"] = {"karpenter.sh/nodepool": "default", ZONE: "test-zone-a"}
    return claim


def test_twenty_pods_get_one_machine() -> None:
    """Requests add up, and the price is that of the cheapest type that holds them."""
    answer = ask(mixes.node_pool(), *(pod(f"p{i}", cpu=150, memory=256) for i in range(20)))
    (claim,) = answer.claims
    assert len(claim.pods) == answer.pods == 20
    assert claim.requests == {"cpu": "3", "memory": "5Gi", "pods": "20"}
    assert claim.instance_types[0] == "c-4x-amd64-linux"
    assert claim.price == pytest.approx(0.025 * 4 + 0.001 * 8 * 2**30 / 1e9)
    assert claim.capacity_type == "on-demand"


def test_our_kwok_types_are_karpenters(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """With our file and with the types built into Karpenter's KWOK provider the answer is the same."""
    pods = [pod(f"p{i}", cpu=400 * (i + 1), nodeSelector={ZONE: f"test-zone-{'abcd'[i]}"}) for i in range(4)]
    pool = mixes.node_pool(capacity_types=("spot", "on-demand"))
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pool, *pods]}))
    built_in = subprocess.run([program, "--objects", path], capture_output=True, check=True).stdout
    (theirs,) = karpenter.decode(built_in)
    assert theirs.claims == ask(pool, *pods).claims
    assert len(theirs.claims) == 4


def test_types_have_the_overhead_of_the_kwok_provider() -> None:
    """100m and 10Mi of each machine are taken: 900m fits one cpu, 901m does not."""
    fits, exceeds = (ask(mixes.node_pool(), pod("p", cpu=cpu)).claims[0] for cpu in (900, 901))
    assert fits.instance_types[0] == "c-1x-amd64-linux"
    assert exceeds.instance_types[0] == "c-2x-amd64-linux"


def test_types_have_the_labels_of_the_kwok_provider() -> None:
    """Family, size, cpu and memory can be selected."""
    chosen = {"karpenter.kwok.sh/instance-family": "m", "karpenter.kwok.sh/instance-cpu": "16"}
    (claim,) = ask(mixes.node_pool(), pod("p", nodeSelector=chosen)).claims
    assert claim.instance_types == ("m-16x-amd64-linux",)


def test_an_unavailable_offering_is_not_bought() -> None:
    """`Available: false` is believed."""
    types = [entry for entry in catalogues.kwok_types() if entry["name"].endswith("amd64-linux")]
    for offering in types[0]["offerings"]:
        offering["Available"] = False
    assert ask(mixes.node_pool(), pod("p"), types=types).claims[0].instance_types[0] == "s-1x-amd64-linux"


def test_room_on_a_node_comes_first_and_bound_pods_take_it() -> None:
    """Two pods fit the node beside the bound one; the third needs a machine."""
    there = [node("n1"), pod("bound", cpu=1800, nodeName="n1")]
    answer = ask(mixes.node_pool(), *there, *(pod(f"p{i}", cpu=1000) for i in range(3)))
    assert [(n.name, len(n.pods)) for n in answer.existing_nodes] == [("n1", 2)]
    assert [len(claim.pods) for claim in answer.claims] == [1]


def test_bound_pods_count_for_spread() -> None:
    """Two bound pods in zone a send the next two to b and c, with skew 1 over three zones."""
    pool = mixes.node_pool(requirements=[{"key": ZONE, "operator": "In", "values": [f"test-zone-{z}" for z in "abc"]}])
    rule = [mixes.spread(ZONE, {"app": "p"})]
    there = [node("n1"), *(pod(f"p-bound-{i}", nodeName="n1", topologySpreadConstraints=rule) for i in range(2))]
    answer = ask(pool, *there, *(pod(f"p{i}", topologySpreadConstraints=rule) for i in range(2)))
    assert sorted(claim.zone for claim in answer.claims) == ["test-zone-b", "test-zone-c"]


def test_anti_affinity_of_bound_pods_holds() -> None:
    """A bound pod that refuses the newcomer's label keeps it off its node."""
    bound = pod("bound", nodeName="n1", affinity=mixes.anti_affinity("kubernetes.io/hostname", {"app": "p"}))
    answer = ask(mixes.node_pool(), node("n1"), bound, pod("p1"))
    assert not answer.existing_nodes
    assert len(answer.claims) == 1


def test_a_claim_in_flight_takes_pods() -> None:
    """A launched NodeClaim without a Node counts with the capacity of its status."""
    answer = ask(mixes.node_pool(), launched("flying"), pod("p1"))
    assert [(n.name, n.pods) for n in answer.existing_nodes] == [("flying", ("default/p1",))]


def test_a_claim_and_its_node_are_one_machine() -> None:
    """They are matched by name where the Node has no provider ID: four cpus are there once, not twice."""
    arrived = launched("claim")
    arrived["status"]["nodeName"] = "n1"
    answer = ask(mixes.node_pool(), arrived, node("n1"), *(pod(f"p{i}", cpu=3000) for i in range(2)))
    assert len(answer.existing_nodes) == 1
    assert len(answer.claims) == 1


def test_daemonsets_take_their_share() -> None:
    """A planned node's requests include the DaemonSet's pod."""
    template = {"metadata": {"labels": {"app": "d"}}, "spec": pod("d", cpu=500)["spec"]}
    selector = {"matchLabels": {"app": "d"}}
    daemons = raw("DaemonSet", "agent", api="apps/v1", spec={"selector": selector, "template": template})
    (claim,) = ask(mixes.node_pool(), daemons, pod("p", cpu=500)).claims
    assert claim.requests["cpu"] == "1"
    assert claim.instance_types[0] == "c-2x-amd64-linux"


def test_a_volume_pins_its_zone() -> None:
    """A pod with a bound volume gets a machine in the volume's zone."""
    volume = raw(
        "PersistentVolume",
        "pv",
        spec={
            "csi": {"driver": "csi.example", "volumeHandle": "1"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["test-zone-d"]}]}
                    ]
                }
            },
        },
    )
    claim = raw(
        "PersistentVolumeClaim", "data", spec={"volumeName": "pv", "storageClassName": ""}, status={"phase": "Bound"}
    )
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    answer = ask(mixes.node_pool(), volume, claim, pod("p", volumes=mounted))
    assert [planned.zone for planned in answer.claims] == ["test-zone-d"]


def test_a_csi_limit_closes_a_node() -> None:
    """A node whose driver takes no further volume is passed over."""
    limit = {"drivers": [{"name": "csi.example", "nodeID": "n1", "allocatable": {"count": 0}}]}
    storage = raw(
        "StorageClass",
        "fast",
        api="storage.k8s.io/v1",
        provisioner="csi.example",
        volumeBindingMode="WaitForFirstConsumer",
    )
    claim = raw("PersistentVolumeClaim", "data", spec={"storageClassName": "fast"}, status={"phase": "Pending"})
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    csi_node = raw("CSINode", "n1", api="storage.k8s.io/v1", spec=limit)
    answer = ask(mixes.node_pool(), node("n1"), csi_node, storage, claim, pod("p", volumes=mounted))
    assert not answer.existing_nodes
    assert len(answer.claims) == 1


def test_a_pod_that_fits_nowhere_is_an_error_and_a_gated_one_is_ignored() -> None:
    """Verdicts are told apart: could not be placed, was not looked at."""
    gated = pod("gated", schedulingGates=[{"name": "wait"}])
    answer = ask(mixes.node_pool(), pod("huge", cpu=1_000_000), gated, pod("p"))
    assert set(answer.errors) == {"default/huge"}
    assert set(answer.ignored) == {"default/gated"}
    assert answer.placed == {"default/p"}


def test_pools_are_tried_by_weight_and_unready_ones_are_left_out() -> None:
    """A heavier pool wins; one that says it is not ready takes no part."""
    unready = mixes.node_pool("unready", weight=90)
    unready["status"] = {
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "x",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
    }
    answer = ask(mixes.node_pool("light", weight=1), mixes.node_pool("heavy", weight=50), unready, pod("p"))
    assert [claim.node_pool for claim in answer.claims] == ["heavy"]
    assert answer.ignored_node_pools == {"unready": "not ready"}


def test_preferences_are_respected_or_ignored() -> None:
    """Respected, ten pods that prefer to be apart get ten machines; ignored, they share one."""
    pods = mixes.preferences(10)
    assert len(ask(mixes.node_pool(), *pods, types=catalogues.fake_types()).claims) == 10
    ignored = ask(mixes.node_pool(), *pods, types=catalogues.fake_types(), preference_policy="Ignore")
    assert len(ignored.claims) == 1


def test_min_values_are_strict_or_best_effort() -> None:
    """A pool that wants two families where its requirements leave one."""
    families = {"key": "karpenter.kwok.sh/instance-family", "operator": "Exists", "minValues": 2}
    only = {"key": "karpenter.kwok.sh/instance-family", "operator": "In", "values": ["c"]}
    pool = mixes.node_pool(requirements=[families, only])
    assert not ask(pool, pod("p")).claims
    assert len(ask(pool, pod("p"), min_values_policy="BestEffort").claims) == 1


def test_repeats_start_from_the_same_state() -> None:
    """Nothing that one pass placed is there for the next."""
    objects = settled.steady(12, pods_per_node=5, shapes=10, pending=20)
    answer = ask(*objects, repeat=3)
    assert len(answer.runs) == 3
    assert len({run.nodes for run in answer.runs}) == 1
    assert len(answer.placed) == 20


def test_scenarios_do_not_leak_into_each_other() -> None:
    """Many scenarios in one start give what each gives alone."""
    scenarios = [[mixes.node_pool(), pod(f"p{i}", cpu=1000 * i)] for i in range(1, 4)]
    together = karpenter.solve_each(scenarios, instance_types=catalogues.kwok_types())
    assert [answer.claims for answer in together] == [ask(*objects).claims for objects in scenarios]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (raw("Deployment", "web", api="apps/v1"), r"items\[1\]: kind Deployment is not understood"),
        (raw("Pod", "p", spec={"containers": 1}), r"items\[1\].*cannot unmarshal"),
        (mixes.node_pool(), r"items\[1\].*NodePool /default is there twice"),
    ],
)
def test_bad_objects_are_refused_by_place(bad: Json, message: str) -> None:
    """What would change the answer and is not understood is an error that names the item."""
    with pytest.raises(PeerError, match=message):
        ask(mixes.node_pool(), bad)


def test_a_bad_catalogue_is_refused() -> None:
    """The message names the file and the field."""
    with pytest.raises(PeerError, match=r"instance-types\.json.*name"):
        karpenter.solve([mixes.node_pool()], instance_types=[{"name": 1}])
