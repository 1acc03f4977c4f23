"""Objects as people write them, with everything that a scheduler reads: what a server fills in must be the same everywhere."""

from growth.api.kinds import Json, Kind
from tests.conformance.kinds import BUDGET, DEPLOYMENT, EVENT, LEASE, NODE, POD, REPLICA_SET

LABELS: Json = {"app": "shop"}
PLAIN: Json = {"containers": [{"name": "main", "image": "img"}]}
CLAIM_SPEC: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}

RICH: Json = {
    "containers": [
        {
            "name": "main",
            "image": "repo/img",
            "ports": [{"containerPort": 80}, {"name": "m", "containerPort": 81, "hostPort": 81, "protocol": "UDP"}],
            "resources": {
                "requests": {"cpu": "0.5", "memory": "1.5Gi", "nvidia.com/gpu": "1"},
                "limits": {"nvidia.com/gpu": "1", "memory": "2G"},
            },
            "env": [
                {"name": "A", "value": "b"},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ],
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
            "volumeMounts": [{"name": "claimed", "mountPath": "/v"}],
        }
    ],
    "initContainers": [
        {"name": "side", "image": "img:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}
    ],
    "volumes": [
        {"name": "claimed", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "x"}},
        {"name": "keys", "secret": {"secretName": "y"}},
        {"name": "host", "hostPath": {"path": "/x"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM_SPEC}}},
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": LABELS}}}
            ]
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": LABELS},
        }
    ],
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {"a": "b"},
}


def _kind(api_version: str, kind: str, plural: str, *, namespaced: bool = True) -> Kind[Json]:
    group, _, version = api_version.rpartition("/")
    return Kind(group, version, kind, plural, namespaced, dict)


def _workload(spec: Json, **more: object) -> Json:
    return {"selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": spec}, **more}


# What each is called → its kind and what is beside its metadata.
REALISTIC: dict[str, tuple[Kind[Json], Json]] = {
    "pod with everything": (POD, {"spec": RICH}),
    "pod with resources of its own": (POD, {"spec": {**PLAIN, "resources": {"requests": {"cpu": "1"}}}}),
    "pod on the host's network": (
        POD,
        {
            "spec": {
                "containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 80}]}],
                "hostNetwork": True,
                "restartPolicy": "Never",
            }
        },
    ),
    "deployment": (DEPLOYMENT, {"spec": _workload(RICH)}),
    "replica set": (REPLICA_SET, {"spec": _workload(PLAIN)}),
    "daemon set": (_kind("apps/v1", "DaemonSet", "daemonsets"), {"spec": _workload(PLAIN)}),
    "stateful set": (
        _kind("apps/v1", "StatefulSet", "statefulsets"),
        {
            "spec": _workload(
                PLAIN, serviceName="s", volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": CLAIM_SPEC}]
            )
        },
    ),
    "volume claim": (_kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"), {"spec": CLAIM_SPEC}),
    "volume": (
        _kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False),
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": "d", "volumeHandle": "h"},
            }
        },
    ),
    "storage class": (
        _kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False),
        {"provisioner": "csi.invalid/x"},
    ),
    "drivers of a node": (
        _kind("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False),
        {"spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 5}}]}},
    ),
    "attachment": (
        _kind("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", namespaced=False),
        {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}},
    ),
    "budget": (BUDGET, {"spec": {"minAvailable": "50%", "selector": {"matchLabels": LABELS}}}),
    "lease": (
        LEASE,
        {
            "spec": {
                "holderIdentity": "x",
                "leaseDurationSeconds": 15,
                "renewTime": "2026-01-02T03:04:05.000006Z",
            }
        },
    ),
    "event": (
        EVENT,
        {
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "realistic"},
            "reason": "Tried",
            "message": "said",
            "type": "Normal",
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "count": 1,
            "source": {"component": "x"},
        },
    ),
    "node": (
        NODE,
        {
            "spec": {"providerID": "x://1", "taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "4000m", "memory": "8192Mi"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "192.0.2.4"}],
            },
        },
    ),
    "priority class": (
        _kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False),
        {"value": 5},
    ),
    "service": (
        _kind("v1", "Service", "services"),
        {"spec": {"ports": [{"port": 80}], "selector": LABELS, "clusterIP": "None"}},
    ),
    "secret": (_kind("v1", "Secret", "secrets"), {"stringData": {"a": "b"}}),
}
