"""A list of realistic pods as an API server sends it: about 6 KB each, most of it nothing that a scheduler reads.

Equal arguments give equal bytes. Every `WORKLOAD` pods belong to one Deployment with its own labels, requests and rules.
"""

import json
import random
from typing import Any, Final

WORKLOAD: Final = 60
_ZONES: Final = ("fsn1", "nbg1", "hel1")


def pages(count: int, *, page_size: int = 500) -> list[bytes]:
    """The list in pages, each with the continue token of the next."""
    chance = random.Random(20261115)
    result = []
    for start in range(0, count, page_size):
        end = min(count, start + page_size)
        meta: dict[str, Any] = {"resourceVersion": "900000"}
        if end < count:
            meta["continue"] = f"page-{end}"
            meta["remainingItemCount"] = count - end
        items = [_pod(number, chance) for number in range(start, end)]
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}
        result.append(json.dumps(body, separators=(",", ":"), sort_keys=False).encode())
    return result


def _hex(chance: random.Random, length: int) -> str:
    return f"{chance.getrandbits(4 * length):0{length}x}"


def _uid(chance: random.Random) -> str:
    text = _hex(chance, 32)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _pod(number: int, chance: random.Random) -> dict[str, Any]:
    workload = number // WORKLOAD
    own = random.Random(workload)
    app = f"service-{workload}"
    name = f"{app}-{_hex(own, 9)}-{_hex(chance, 5)}"
    labels = {
        "app.kubernetes.io/instance": app,
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/version": f"1.{own.randrange(40)}.{own.randrange(9)}",
        "helm.sh/chart": f"{app}-0.4.2",
        "pod-template-hash": _hex(own, 9),
        "team": f"team-{workload % 17}",
    }
    token = f"kube-api-access-{_hex(chance, 5)}"
    resources = {
        "limits": {"memory": f"{own.choice((256, 512, 1024, 2048))}Mi"},
        "requests": {"cpu": f"{own.choice((50, 100, 250, 500, 1000))}m", "memory": f"{own.choice((256, 512, 1024))}Mi"},
    }
    stamp = "2026-11-01T10:22:33Z"
    environment: list[dict[str, Any]] = [
        {"name": f"SETTING_{i}", "value": f"value-{i}-{_hex(own, 12)}"} for i in range(14)
    ]
    environment.append({"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}})
    probe = {
        "failureThreshold": 3,
        "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }
    container = {
        "name": "main",
        "image": f"images.example/{app}@sha256:{_hex(own, 64)}",
        "imagePullPolicy": "IfNotPresent",
        "env": environment,
        "livenessProbe": probe,
        "readinessProbe": probe,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": resources,
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"mountPath": "/etc/config", "name": "config"},
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": True},
        ],
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": f"node-{chance.randrange(1000)}",
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {"runAsNonRoot": True, "fsGroup": 65532},
        "serviceAccount": app,
        "serviceAccountName": app,
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"effect": "NoExecute", "key": f"node.kubernetes.io/{what}", "operator": "Exists", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        ],
        "volumes": [
            {"configMap": {"defaultMode": 420, "name": app}, "name": "config"},
            {
                "name": token,
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                        {
                            "downwardAPI": {
                                "items": [
                                    {
                                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                                        "path": "namespace",
                                    }
                                ]
                            }
                        },
                    ],
                },
            },
        ],
    }
    if workload % 3 == 0:
        selector = {"matchLabels": {"app.kubernetes.io/name": app}}
        spec["topologySpreadConstraints"] = [
            {
                "labelSelector": selector,
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
            }
        ]
    if workload % 5 == 0:
        spec["nodeSelector"] = {"topology.kubernetes.io/zone": own.choice(_ZONES)}
    conditions = [
        {"lastProbeTime": None, "lastTransitionTime": stamp, "status": "True", "type": kind, "observedGeneration": 1}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    address = f"10.{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(256)}"
    status = {
        "conditions": conditions,
        "containerStatuses": [
            {
                "allocatedResources": resources["requests"],
                "containerID": f"containerd://{_hex(chance, 64)}",
                "image": container["image"],
                "imageID": container["image"],
                "lastState": {},
                "name": "main",
                "ready": True,
                "resources": resources,
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": stamp}},
            }
        ],
        "hostIP": "10.0.0.1",
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": "Burstable",
        "startTime": stamp,
    }
    return {
        "metadata": {
            "annotations": {"checksum/config": _hex(own, 64), "prometheus.io/port": "8080"},
            "creationTimestamp": stamp,
            "generateName": f"{app}-{_hex(own, 9)}-",
            "generation": 1,
            "labels": labels,
            "managedFields": _managed_fields(labels),
            "name": name,
            "namespace": f"team-{workload % 17}",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "ReplicaSet",
                    "name": f"{app}-{_hex(own, 9)}",
                    "uid": _uid(own),
                }
            ],
            "resourceVersion": str(100_000 + number),
            "uid": _uid(chance),
        },
        "spec": spec,
        "status": status,
    }


def _managed_fields(labels: dict[str, str]) -> list[dict[str, Any]]:
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in labels}, "f:generateName": {}}}
    container: dict[str, Any] = {
        'k:{"name":"main"}': {f"f:{key}": {} for key in ("image", "env", "ports", "resources", "name")}
    }
    return [
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {**fields, "f:spec": {"f:containers": container, "f:restartPolicy": {}, "f:volumes": {}}},
            "manager": "kube-controller-manager",
            "operation": "Update",
            "time": "2026-11-01T10:22:33Z",
        },
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:conditions": {}, "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}}},
            "manager": "kubelet",
            "operation": "Update",
            "subresource": "status",
            "time": "2026-11-01T10:22:40Z",
        },
    ]
