"""Objects that every API server with our definitions must accept.

The NodePools are those that Karpenter's documentation, its KWOK guide and its providers' examples show their users, written
down as facts: what such a manifest says, without its prose. They must keep working unchanged.
"""

from typing import Any, Final, NamedTuple

from growth.api import buffers, decisions, growthpools, karpenter, linodeclasses, nodeclasses, overlays
from growth.api.kinds import Json, Kind


class GoodObject(NamedTuple):
    name: str
    kind: Kind[Any]
    object: Json


def obj(kind: Kind[Any], spec: Json, *, name: str = "example", **more: Any) -> Json:
    """A whole object, in namespace `default` where its kind has namespaces."""
    metadata = {"name": name, **({"namespace": "default"} if kind.namespaced else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec, **more}


def need(key: str, operator: str, *values: str, **more: Any) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **more}


EC2_CLASS: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
KWOK_CLASS: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
LINODE_CLASS: Final = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}


def node_pool(
    *requirements: Json,
    node_class: Json = EC2_CLASS,
    template: Json | None = None,
    meta: Json | None = None,
    **spec: Any,
) -> Json:
    """A NodePool; `template` is laid over the template's spec, `meta` is its metadata, the rest is the pool's spec."""
    inner: Json = {"nodeClassRef": dict(node_class), "requirements": list(requirements), **(template or {})}
    outer = {"spec": inner, **({"metadata": meta} if meta else {})}
    return obj(karpenter.NODE_POOL, {"template": outer, **spec})


def node_claim(*requirements: Json, **spec: Any) -> Json:
    return obj(karpenter.NODE_CLAIM, {"nodeClassRef": dict(EC2_CLASS), "requirements": list(requirements), **spec})


def taint(key: str, effect: str = "NoSchedule", **more: Any) -> Json:
    return {"key": key, "effect": effect, **more}


AMD64: Final = need("kubernetes.io/arch", "In", "amd64")
LINUX: Final = need("kubernetes.io/os", "In", "linux")
ON_DEMAND: Final = need("karpenter.sh/capacity-type", "In", "on-demand")
FAMILIES: Final = need("karpenter.k8s.aws/instance-category", "In", "c", "m", "r")
RECENT: Final = need("karpenter.k8s.aws/instance-generation", "Gt", "2")

NODE_POOLS: Final = {
    "getting started": node_pool(
        AMD64,
        LINUX,
        ON_DEMAND,
        FAMILIES,
        RECENT,
        template={"expireAfter": "720h"},
        limits={"cpu": 1000},
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
    ),
    "every field of the reference": node_pool(
        need("karpenter.k8s.aws/instance-category", "In", "c", "m", "r", minValues=2),
        need("karpenter.k8s.aws/instance-family", "In", "m5", "m5d", "c5", "c5d", "c4", "r4", minValues=5),
        need("karpenter.k8s.aws/instance-cpu", "In", "4", "8", "16", "32"),
        need("karpenter.k8s.aws/instance-hypervisor", "In", "nitro"),
        need("karpenter.k8s.aws/instance-generation", "Gte", "3"),
        need("topology.kubernetes.io/zone", "In", "us-west-2a", "us-west-2b"),
        need("kubernetes.io/arch", "In", "arm64", "amd64"),
        need("karpenter.sh/capacity-type", "In", "spot", "on-demand", "reserved"),
        meta={"labels": {"billing-team": "my-team"}, "annotations": {"example.com/owner": "my-team"}},
        template={
            "taints": [taint("example.com/special-taint")],
            "startupTaints": [taint("example.com/another-taint")],
            "expireAfter": "720h",
            "terminationGracePeriod": "48h",
        },
        disruption={
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "1m",
            "budgets": [{"nodes": "10%"}, {"schedule": "0 9 * * mon-fri", "duration": "8h", "nodes": "0"}],
        },
        limits={"cpu": "1000", "memory": "1000Gi", "nvidia.com/gpu": 2},
        weight=10,
    ),
    "gpu machines behind a taint": node_pool(
        need("node.kubernetes.io/instance-type", "In", "p3.8xlarge", "p3.16xlarge"),
        template={"taints": [taint("nvidia.com/gpu", value="true")]},
        disruption={"consolidateAfter": "1m"},
    ),
    "cilium's startup taint": node_pool(
        AMD64,
        template={"startupTaints": [taint("node.cilium.io/agent-not-ready", "NoExecute", value="true")]},
        disruption={"consolidateAfter": "30s", "consolidationPolicy": "WhenEmpty"},
    ),
    "budgets by reason and hour": node_pool(
        LINUX,
        disruption={
            "consolidateAfter": "0s",
            "budgets": [
                {"nodes": "20%", "reasons": ["Empty", "Drifted"]},
                {"nodes": "5"},
                {"nodes": "0", "schedule": "@daily", "duration": "10m", "reasons": ["Underutilized"]},
                {"nodes": "100%", "schedule": "0 0 * * 6", "duration": "48h30m0s", "reasons": ["Unhealthy"]},
            ],
        },
    ),
    "reserved instances first": node_pool(
        need("node.kubernetes.io/instance-type", "In", "c4.large"), weight=50, limits={"cpu": 100}
    ),
    "fallback to on-demand": node_pool(need("karpenter.sh/capacity-type", "NotIn", "spot"), weight=1),
    "static capacity": node_pool(
        need("topology.kubernetes.io/zone", "In", "us-west-2a"),
        replicas=10,
        limits={"nodes": 15},
        disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]},
    ),
    "static capacity without anything else": node_pool(AMD64, replicas=0),
    "KWOK guide": node_pool(
        AMD64,
        LINUX,
        need("karpenter.sh/capacity-type", "In", "on-demand", "spot"),
        node_class=KWOK_CLASS,
        template={"expireAfter": "Never"},
        limits={"cpu": "1000"},
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
    ),
    "Linode's example": node_pool(
        AMD64,
        LINUX,
        need("node.kubernetes.io/instance-type", "In", "g6-standard-2", "g6-standard-4"),
        node_class=LINODE_CLASS,
        limits={"cpu": 100, "memory": "400Gi"},
        disruption={"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
    ),
    "a team's own nodes": node_pool(
        need("company.com/team", "In", "team-a", "team-b", "team-c"),
        need("user.defined.label/type", "Exists"),
        need("karpenter.k8s.aws/instance-gpu-name", "DoesNotExist"),
        meta={"labels": {"company.com/tier": "backend", "karpenter.sh/capacity-type": "spot"}},
    ),
    "bounds on size": node_pool(
        need("karpenter.k8s.aws/instance-cpu", "Gt", "3"),
        need("karpenter.k8s.aws/instance-cpu", "Lt", "33"),
        need("karpenter.k8s.aws/instance-memory", "Gte", "8191"),
        need("karpenter.k8s.aws/instance-memory", "Lte", "131073"),
        need("node.kubernetes.io/instance-type", "Exists", minValues=50),
    ),
    "never consolidated, never expired": node_pool(
        ON_DEMAND,
        template={"expireAfter": "Never", "terminationGracePeriod": "0s"},
        disruption={"consolidateAfter": "Never", "consolidationPolicy": "WhenEmpty"},
    ),
    "balanced, with a limit on nodes": node_pool(
        disruption={"consolidationPolicy": "Balanced", "nodeLimitMode": "Soft"}, limits={"nodes": "10"}
    ),
    "values that no label can have": node_pool(need("a", "In", "not valid", "x" * 64), need("b", "Gt", "+5")),
    "soft taints": node_pool(
        LINUX,
        template={
            "taints": [
                taint("workload", "PreferNoSchedule", value="batch"),
                taint("dedicated", "NoExecute", timeAdded="2026-01-01T00:00:00Z"),
            ]
        },
        disruption={"budgets": []},
    ),
}

GOOD_OBJECTS: Final = [
    *(GoodObject(name, karpenter.NODE_POOL, pool) for name, pool in NODE_POOLS.items()),
    GoodObject(
        "claim",
        karpenter.NODE_CLAIM,
        node_claim(
            need("karpenter.sh/nodepool", "In", "default"),
            need("node.kubernetes.io/instance-type", "In", "a", "b", minValues=2),
            resources={"requests": {"cpu": "1500m", "memory": "2Gi", "pods": 4}},
            taints=[taint("a")],
            startupTaints=[taint("b", "NoExecute")],
            terminationGracePeriod="1h30m",
        ),
    ),
    GoodObject("claim without requirements", karpenter.NODE_CLAIM, node_claim()),
    GoodObject(
        "overlay that adds a fee",
        overlays.NODE_OVERLAY,
        obj(
            overlays.NODE_OVERLAY,
            {
                "requirements": [need("karpenter.sh/nodepool", "In", "default")],
                "priceAdjustment": "+0.25",
                "weight": 10,
            },
        ),
    ),
    GoodObject(
        "overlay with a discount",
        overlays.NODE_OVERLAY,
        obj(overlays.NODE_OVERLAY, {"requirements": [AMD64], "priceAdjustment": "-12.5%"}),
    ),
    GoodObject(
        "overlay with price and devices",
        overlays.NODE_OVERLAY,
        obj(
            overlays.NODE_OVERLAY,
            {"requirements": [RECENT], "price": "5.00", "capacity": {"smarter-devices/fuse": 1}, "weight": 10000},
        ),
    ),
    GoodObject(
        "buffer from a template",
        buffers.CAPACITY_BUFFER,
        obj(buffers.CAPACITY_BUFFER, {"podTemplateRef": {"name": "web"}, "replicas": 3}),
    ),
    GoodObject(
        "buffer beside a workload",
        buffers.CAPACITY_BUFFER,
        obj(
            buffers.CAPACITY_BUFFER,
            {
                "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
                "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"},
                "percentage": 20,
                "limits": {"cpu": "100", "memory": "200Gi"},
            },
        ),
    ),
    GoodObject(
        "growth pool of three types",
        growthpools.GROWTH_POOL,
        obj(
            growthpools.GROWTH_POOL,
            {
                "serverTypes": [
                    {"name": "CAX11", "max": 10},
                    {"name": "CAX21", "min": 1, "max": 5, "priority": -1},
                    {"name": "cax31", "max": 1},
                ]
            },
        ),
    ),
    GoodObject(
        "growth pool with every field",
        growthpools.GROWTH_POOL,
        obj(
            growthpools.GROWTH_POOL,
            {
                "nodeClassRef": {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "default"},
                "serverTypes": [{"name": "CX33", "min": 0, "max": 0, "priority": 5}],
                "template": {
                    "labels": {"team": "a", "growth.dev/tier": "gold"},
                    "taints": [taint("a")],
                    "startupTaints": [taint("b")],
                },
                "optimise": "Continuous",
                "scaleDownAfter": "1h30m",
                "disruption": {
                    "budgets": [
                        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 9 * * mon-fri", "duration": "8h"},
                        {"nodes": "20%"},
                    ]
                },
                "limits": {"nodes": 20},
            },
        ),
    ),
    GoodObject(
        "node request",
        growthpools.NODE_REQUEST,
        obj(growthpools.NODE_REQUEST, {"targetOffering": "hetzner-cax11", "pool": "default"}),
    ),
    GoodObject(
        "node removal request",
        growthpools.NODE_REMOVAL_REQUEST,
        obj(growthpools.NODE_REMOVAL_REQUEST, {"nodeName": "a", "nodeClaimName": "b", "reason": "Empty"}),
    ),
    GoodObject(
        "node removal request for drift",
        growthpools.NODE_REMOVAL_REQUEST,
        obj(growthpools.NODE_REMOVAL_REQUEST, {"nodeName": "a", "nodeClaimName": "b", "reason": "Drifted"}),
    ),
    GoodObject(
        "decision",
        decisions.DECISION,
        obj(
            decisions.DECISION,
            {
                "at": "2026-01-01T21:07:52Z",
                "controller": "provisioning",
                "revision": "4711",
                "outcome": "Acted",
                "summary": "1 machine for 3 pods",
                "actions": [{"verb": "create", "object": "NodeClaim/a", "price": 0.0136, "pods": 3, "why": "cheapest"}],
                "unschedulable": [
                    {
                        "pods": 2,
                        "example": "default/a",
                        "reasons": [{"nodePool": "default", "filter": "resources", "message": "needs 64 GPUs"}],
                    }
                ],
                "kept": [{"nodes": 4, "example": "n", "reason": "in use"}],
                "cost": {"currency": "EUR", "before": 1, "after": 1.0136},
                "omitted": 0,
            },
        ),
    ),
    GoodObject(
        "Hetzner class",
        nodeclasses.HETZNER_NODE_CLASS,
        obj(
            nodeclasses.HETZNER_NODE_CLASS,
            {
                "locations": ["fsn1", "nbg1"],
                "image": {"name": "ubuntu-24.04"},
                "sshKeys": ["me@example.com", 4711],
                "networks": [42],
                "firewalls": ["default"],
                "placementGroup": "Spread",
                "publicNet": {"ipv4": False},
                "labels": {"team": "a"},
                "userData": {"mode": "k3s", "secretRef": {"name": "k3s-join"}},
                "inventory": [
                    {"name": "gpu-1", "serverNumber": 1234567, "serverType": "GEX44"},
                    {
                        "name": "ax-1",
                        "serverNumber": 1234568,
                        "serverType": "AX41-NVMe",
                        "capacity": {"cpu": "12", "memory": "64Gi", "ephemeral-storage": "1T"},
                        "architecture": "amd64",
                        "location": "hel1",
                        "monthlyPrice": "46.41",
                    },
                ],
            },
        ),
    ),
    GoodObject("empty Hetzner class", nodeclasses.HETZNER_NODE_CLASS, obj(nodeclasses.HETZNER_NODE_CLASS, {})),
    GoodObject(
        "Linode class",
        linodeclasses.LINODE_NODE_CLASS,
        obj(
            linodeclasses.LINODE_NODE_CLASS,
            {
                "image": "linode/ubuntu22.04",
                "tags": ["a", "b"],
                "authorizedKeys": ["ssh-ed25519 AAAA"],
                "firewallID": 7,
                "diskEncryption": "enabled",
                "swap_size": 512,
                "osDisk": {"size": "20Gi", "filesystem": "ext4"},
                "dataDisks": {"sdb": {"size": 10}},
                "placementGroup": {"id": 3, "compliant_only": True},
                "ipv6Options": {"enableSLAAC": True},
                "kubelet": {
                    "maxPods": 110,
                    "kubeReserved": {"cpu": "100m"},
                    "evictionSoft": {"memory.available": "5%"},
                    "evictionSoftGracePeriod": {"memory.available": "1m"},
                },
                "lkeK8sVersion": "v1.33.1+lke1",
            },
        ),
    ),
    GoodObject(
        "Linode class whose tags machines have",
        linodeclasses.LINODE_NODE_CLASS,
        obj(linodeclasses.LINODE_NODE_CLASS, {"tags": ["a"]}, status={"appliedTags": ["a", "b"]}),
    ),
    GoodObject(
        "KWOK class",
        nodeclasses.KWOK_NODE_CLASS,
        obj(nodeclasses.KWOK_NODE_CLASS, {"nodeRegistrationDelay": "5s"}),
    ),
    GoodObject("empty KWOK class", nodeclasses.KWOK_NODE_CLASS, obj(nodeclasses.KWOK_NODE_CLASS, {})),
]
