"""Manifests of built-in kinds, good and bad, that two servers must treat alike."""

from typing import Any, Final, NamedTuple

from growth.api.kinds import Json


class Manifest(NamedTuple):
    """One object; `status` is written to its status afterwards, `changes` are merge patches tried one by one."""

    kind: str
    body: Json
    status: Json | None = None
    changes: tuple[Json, ...] = ()


C: Final[Json] = {"name": "c", "image": "i"}
LABELS: Final = {"app": "y"}
TEMPLATE: Final[Json] = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "0.5"}}}]},
}
SELECTING: Final[Json] = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
ONCE: Final[Json] = {"template": {"spec": {"restartPolicy": "Never", "containers": [C]}}}
DISK: Final[Json] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
ENDED: Final[Json] = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 1}


def pod(*changes: Json, status: Json | None = None, **spec: Any) -> Manifest:
    return Manifest("pods", {"spec": {"containers": [C], **spec}}, status, changes)


def container(**fields: Any) -> Manifest:
    return pod(containers=[{**C, **fields}])


def of(kind: str, *changes: Json, status: Json | None = None, **body: Any) -> Manifest:
    return Manifest(kind, body, status, changes)


def affinity(kind: str, **fields: Any) -> Manifest:
    return pod(affinity={kind: fields})


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

PODS: Final = (
    container(
        livenessProbe={"httpGet": {"port": 80}},
        readinessProbe={"tcpSocket": {"port": 80}},
        startupProbe={"exec": {"command": ["x"]}, "failureThreshold": 9},
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "B", "value": "x"}],
        lifecycle={"preStop": {"httpGet": {"port": 1}}},
    ),
    pod(
        volumes=[
            {"name": "v"},
            {"name": "s", "secret": {"secretName": "x"}},
            {"name": "m", "configMap": {"name": "x"}},
            {"name": "h", "hostPath": {"path": "/x"}},
            {"name": "d", "downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"name": "p", "persistentVolumeClaim": {"claimName": "c"}},
        ]
    ),
    container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
    pod(
        containers=[
            {
                **C,
                "resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}},
            }
        ],
        initContainers=[{"name": "i", "image": "x:1", "restartPolicy": "Always"}],
    ),
    pod(containers=[{**C, "ports": [{"containerPort": 80, "name": "http"}]}], hostNetwork=True),
    pod(
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
        ]
    ),
    affinity("podAntiAffinity", **{REQUIRED: [{"topologyKey": "host", "labelSelector": {"matchLabels": LABELS}}]}),
    pod(resources={"requests": {"cpu": "1"}}),
    pod(priorityClassName="system-cluster-critical"),
    pod(tolerations=[{"operator": "Exists"}]),
    pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]),
    pod(
        nodeName="x", hostname="h", subdomain="s", automountServiceAccountToken=False, securityContext={"runAsUser": 0}
    ),
    pod(containers=[{**C, "image": "a/b:latest"}, {"name": "d", "image": "r:5000/x@sha256:" + "0" * 64}]),
    pod(
        {"spec": {"schedulingGates": None, "nodeSelector": {"a": "b"}}},
        {"spec": {"schedulingGates": [{"name": "x.y/z"}]}},
        schedulingGates=[{"name": "a.b/c"}],
    ),
    pod(
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"activeDeadlineSeconds": 100}},
        {"spec": {"activeDeadlineSeconds": 200}},
        {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}},
        {"spec": {"restartPolicy": "Never"}},
        {"spec": {"terminationGracePeriodSeconds": 1}},
        status={"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
    ),
    pod(status={"phase": "Failed", "containerStatuses": [{**ENDED, "state": {"terminated": {"exitCode": 1}}}]}),
    pod(containers=[]),
    container(name="A_"),
    container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
    container(resources={"requests": {"gpu": "1"}}),
    container(resources={"requests": {"x.y/gpu": "1"}}),
    container(ports=[{"containerPort": 70000}]),
    container(imagePullPolicy="X"),
    container(env=[{"name": ""}]),
    container(volumeMounts=[{"name": "zz", "mountPath": "/x"}]),
    pod(dnsPolicy="X"),
    pod(volumes=[{"name": "A"}]),
    pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"}]),
    affinity("podAffinity", **{REQUIRED: [{"topologyKey": ""}]}),
    affinity(
        "nodeAffinity", **{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Z"}]}]}}
    ),
    affinity(
        "nodeAffinity",
        **{PREFERRED: [{"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]},
    ),
    pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
    pod(tolerations=[{"key": "a", "tolerationSeconds": 3, "effect": "NoSchedule"}]),
    pod(tolerations=[{"operator": "Foo"}]),
    pod(schedulingGates=[{"name": "x"}, {"name": "x"}]),
    pod(nodeSelector={"a": "b c"}),
    pod(initContainers=[C]),
    pod(hostname="A_"),
    pod(priority=5),
    pod(priorityClassName="nope"),
    container(resources={"limits": {"cpu": "lots"}}),
)

WORKLOADS: Final = (
    *(
        manifest
        for kind in ("deployments", "replicasets", "statefulsets", "daemonsets")
        for manifest in (
            of(
                kind,
                {"spec": {"selector": {"matchLabels": {"q": "r"}}}},
                {"metadata": {"annotations": {"x": "y"}}},
                spec=SELECTING,
            ),
            of(kind, spec={"template": TEMPLATE}),
            of(kind, spec={**SELECTING, "replicas": -1, "minReadySeconds": -1}),
            of(kind, spec={"selector": {"matchLabels": {"app": "z"}}, "template": TEMPLATE}),
            of(kind, spec={}),
        )
    ),
    of("deployments", {"spec": {"replicas": 5}}, spec=SELECTING, status={"replicas": 3, "readyReplicas": 2}),
    of("deployments", spec=SELECTING, status={"replicas": 1, "updatedReplicas": 2, "availableReplicas": 3}),
    of("deployments", spec={**SELECTING, "strategy": {"type": "Recreate"}}),
    of("deployments", spec={**SELECTING, "strategy": {"type": "X"}}),
    of("deployments", spec={**SELECTING, "strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}),
    of("deployments", spec={**SELECTING, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}),
    of("daemonsets", {"spec": {"template": {"spec": {"hostNetwork": True}}}}, spec=SELECTING),
    of(
        "statefulsets",
        {"spec": {"replicas": 2}},
        {"spec": {"podManagementPolicy": "Parallel"}},
        spec={**SELECTING, "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": DISK}]},
    ),
    of("jobs", {"spec": {"parallelism": 2}}, {"spec": {"completions": 9}}, {"spec": {"suspend": True}}, spec=ONCE),
    of("jobs", spec={**ONCE, "parallelism": 3}),
    of("jobs", spec={"template": {"spec": {"containers": [C]}}}),
    of("jobs", spec={**ONCE, "parallelism": -1}),
    of("cronjobs", spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": ONCE}}),
    of("cronjobs", spec={"schedule": "x", "jobTemplate": {"spec": ONCE}}),
    of("cronjobs", spec={"jobTemplate": {"spec": ONCE}}),
)

OTHERS: Final = (
    of("services", spec={"ports": [{"port": 80, "name": "a"}, {"port": 443, "name": "b", "targetPort": "x"}]}),
    of("services", {"spec": {"clusterIP": "10.0.0.99"}}, spec={"clusterIP": "None", "selector": LABELS}),
    of("services", spec={"type": "ExternalName", "externalName": "x.y"}),
    of("services", spec={"ports": [{"port": 80}, {"port": 81}]}),
    of("services", spec={}),
    of("persistentvolumeclaims", spec=DISK, status={"phase": "Bound", "capacity": {"storage": "1024Mi"}}),
    of("persistentvolumeclaims", spec={**DISK, "accessModes": ["X"]}),
    of("persistentvolumeclaims", spec={}),
    of(
        "persistentvolumes",
        spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1024Mi"}, "hostPath": {"path": "/x"}},
    ),
    of("persistentvolumes", spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}),
    of("storageclasses", {"provisioner": "x"}, provisioner="a.b/c"),
    of("storageclasses", provisioner="a.b/c", volumeBindingMode="X"),
    of("csinodes", spec={"drivers": [{"name": "d", "nodeID": "j", "allocatable": {"count": 3}}]}),
    of("csinodes", spec={"drivers": []}),
    of("csinodes", spec={"drivers": [{"name": "d"}]}),
    of("volumeattachments", spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}),
    of("volumeattachments", spec={}),
    of("poddisruptionbudgets", {"spec": {"minAvailable": 1}}, spec={"selector": {}}),
    of("poddisruptionbudgets", spec={"maxUnavailable": "101%"}),
    of("poddisruptionbudgets", spec={"minAvailable": 1, "unhealthyPodEvictionPolicy": "X"}),
    of(
        "leases",
        {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}},
        {"spec": {"renewTime": "2026-01-01T00:00:00Z"}},
    ),
    of("leases", spec={"leaseTransitions": -1}),
    of("leases", spec={"leaseDurationSeconds": 0}),
    of("priorityclasses", {"value": 2}, value=1, globalDefault=False, preemptionPolicy="Never", description="x"),
    of("priorityclasses", value=1, preemptionPolicy="X"),
    of("priorityclasses", value=2_000_000_000),
    of(
        "secrets",
        {"stringData": {"b": "c"}},
        {"type": "x"},
        {"immutable": True},
        {"data": {"a": "Yg=="}},
        data={"a": "YQ=="},
    ),
    of("secrets", type="kubernetes.io/tls", data={}),
    of("secrets", data={"a b": "YQ=="}),
    of("secrets", data={"a": "%%"}),
    of("configmaps", {"data": {"a": 1}}, {"metadata": {"labels": {"a": 1}}}, {"kind": "Pod"}, {"apiVersion": "v9"}),
    of("configmaps", {"data": {"a": "c"}}, {"immutable": None}, data={"a": "b"}, immutable=True),
    of("configmaps", data={"a": 1}),
    of("serviceaccounts", automountServiceAccountToken=False),
    of("events", involvedObject={"kind": "Pod", "name": "x", "namespace": "elsewhere"}, reason="r"),
    of(
        "nodes",
        {"spec": {"unschedulable": True, "taints": None}},
        {"spec": {"unschedulable": False}},
        {"spec": {"providerID": "c://d"}},
        {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]}},
        spec={"taints": [{"key": "x", "effect": "NoExecute"}], "providerID": "a://b", "podCIDR": "10.0.0.0/24"},
        status={"capacity": {"cpu": 4, "memory": "8388608Ki"}, "conditions": [{"type": "Ready", "status": "True"}]},
    ),
    of("nodes", spec={"taints": [{"key": "", "effect": "X", "value": "a b"}]}),
    of("nodes", spec={"unschedulable": False}, status={}),
)

MANIFESTS: Final = (*PODS, *WORKLOADS, *OTHERS)
