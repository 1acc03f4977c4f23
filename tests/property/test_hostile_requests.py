"""Whatever is sent, the server in process answers as a server: it refuses, and never breaks."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth.api.kinds import Json
from growth.kube.memory import MemoryServer
from growth.kube.memory.wire.routing import Answer, Request, Streaming, handle
from tests.unit.memory.builders import new_server, pod

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KINDS = [
    ("/api/v1/namespaces/default/pods", "Pod"),
    ("/api/v1/nodes", "Node"),
    ("/api/v1/namespaces/default/services", "Service"),
    ("/api/v1/namespaces/default/secrets", "Secret"),
    ("/api/v1/namespaces/default/events", "Event"),
    ("/api/v1/namespaces/default/persistentvolumeclaims", "PersistentVolumeClaim"),
    ("/api/v1/persistentvolumes", "PersistentVolume"),
    ("/apis/apps/v1/namespaces/default/deployments", "Deployment"),
    ("/apis/apps/v1/namespaces/default/statefulsets", "StatefulSet"),
    ("/apis/apps/v1/namespaces/default/daemonsets", "DaemonSet"),
    ("/apis/batch/v1/namespaces/default/jobs", "Job"),
    ("/apis/batch/v1/namespaces/default/cronjobs", "CronJob"),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "Lease"),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "PodDisruptionBudget"),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClass"),
    ("/apis/storage.k8s.io/v1/storageclasses", "StorageClass"),
    ("/apis/storage.k8s.io/v1/csinodes", "CSINode"),
    ("/apis/storage.k8s.io/v1/volumeattachments", "VolumeAttachment"),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinition"),
]
POD: Json = {**pod("p"), "kind": "Pod"}


def seeded() -> MemoryServer:
    server = new_server()
    server.create(server.resource("", "v1", "pods"), POD, namespace="default")
    return server


def answered(method: str, path: str, body: Any, *, server: MemoryServer | None = None, **headers: str) -> None:
    """The request gets an answer that is no failure of the server's own."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = handle(server or seeded(), Request(method, path, {}, names, json.dumps(body).encode()))
    assert isinstance(answer, Answer | Streaming)
    if isinstance(answer, Answer):
        assert answer.status < 500 or answer.body.get("message"), answer


@st.composite
def wild(draw: st.DrawFn, sample: Any) -> Any:
    """The sample with random JSON put somewhere into it."""
    if not isinstance(sample, dict | list) or not sample or draw(st.integers(0, 3)) == 0:
        return draw(JSON)
    if isinstance(sample, list):
        place = draw(st.integers(0, len(sample) - 1))
        return [draw(wild(item)) if index == place else item for index, item in enumerate(sample)]
    name = draw(st.sampled_from(sorted(sample)))
    return {**sample, name: draw(wild(sample[name]))}


TEMPLATE: Json = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i", "ports": [{}]}]},
}
SAMPLE: Json = {
    "metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["a.b/c"], "ownerReferences": [{"uid": "u"}]},
    "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}],
        "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        "template": TEMPLATE,
        "jobTemplate": {"spec": {"template": TEMPLATE}},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "taints": [{"key": "a", "effect": "NoSchedule"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}},
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "schedulingGates": [{"name": "g"}],
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "replicas": 1,
        "minAvailable": 1,
        "ports": [{"port": 1}],
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "drivers": [{"name": "d"}],
        "schedule": "* * * * *",
        "group": "a.b",
        "scope": "Cluster",
        "names": {"plural": "xs", "kind": "X"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b"}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
                },
                "additionalPrinterColumns": [{"name": "A", "type": "date", "jsonPath": ".a"}],
            }
        ],
    },
    "status": {"conditions": [{"type": "Ready"}], "capacity": {"cpu": "1"}},
    "data": {"a": "YQ=="},
    "value": 1,
    "involvedObject": {"namespace": "default"},
}


@pytest.mark.parametrize(("path", "kind"), KINDS, ids=[kind for _, kind in KINDS])
@settings(max_examples=40)
@given(data=st.data())
def test_no_body_breaks_a_creation(path: str, kind: str, data: st.DataObject) -> None:
    """An object with anything anywhere is stored or refused."""
    answered("POST", path, data.draw(wild(SAMPLE)))


@settings(max_examples=150)
@given(
    patch=wild({**SAMPLE, "$patch": "merge", "$retainKeys": ["spec"], "$setElementOrder/spec": [{}]}),
    kind=st.sampled_from(["merge-patch+json", "strategic-merge-patch+json", "json-patch+json"]),
    subresource=st.sampled_from(["", "/status"]),
)
def test_no_patch_breaks_a_pod(patch: Any, kind: str, subresource: str) -> None:
    """A patch of any kind with anything in it is applied or refused."""
    path = f"/api/v1/namespaces/default/pods/p{subresource}"
    answered("PATCH", path, patch, content_type=f"application/{kind}")


@settings(max_examples=100)
@given(
    operations=wild(
        [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}, {"op": "move", "from": "/spec", "path": "/x"}]
    )
)
def test_no_operation_breaks_a_json_patch(operations: Any) -> None:
    """Operations on paths that do not exist, with words that nobody knows, are refused."""
    answered("PATCH", "/api/v1/namespaces/default/pods/p", operations, content_type="application/json-patch+json")


@settings(max_examples=60)
@given(
    body=JSON,
    verb=st.sampled_from(["eviction", "binding", "status", "scale"]),
    method=st.sampled_from(["POST", "PUT", "PATCH"]),
)
def test_no_body_breaks_a_subresource(body: Any, verb: str, method: str) -> None:
    """Evictions, bindings and replacements of anything are answered."""
    answered(method, f"/api/v1/namespaces/default/pods/p/{verb}", body, content_type="application/json")


@settings(max_examples=100)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("limit", "continue", "resourceVersion", "labelSelector", "fieldSelector", "watch", "timeoutSeconds"),
                *(
                    "gracePeriodSeconds",
                    "propagationPolicy",
                    "resourceVersionMatch",
                    "fieldValidation",
                    "includeObject",
                ),
            ]
        ),
        st.text(max_size=8) | st.sampled_from(["1", "-1", "a=b", "metadata.name=p", "!a", "true"]),
        max_size=4,
    ),
    st.sampled_from(["GET", "DELETE"]),
    st.sampled_from(["", "/p"]),
)
def test_no_query_breaks_a_request(query: dict[str, str], method: str, name: str) -> None:
    """Numbers that are none, selectors that are none, tokens that are none: 400."""
    answer = handle(seeded(), Request(method, f"/api/v1/namespaces/default/pods{name}", query, {}, b""))
    assert isinstance(answer, Streaming) or answer.status < 500 or answer.body["reason"] == "Timeout"
