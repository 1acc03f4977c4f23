"""What a real API server sends is read into our structs: whole objects, lists and watches."""

import asyncio
from typing import Any

import pytest

from growth.api.coordination import LEASE
from growth.api.core import CONFIG_MAP, NAMESPACE, SECRET, SERVICE
from growth.api.events import EVENT
from growth.api.kinds import Json, Kind
from growth.api.nodes import NODE
from growth.api.pods import POD, POD_TEMPLATE, Pod
from growth.api.policy import POD_DISRUPTION_BUDGET, PRIORITY_CLASS
from growth.api.volumes import (
    CSI_DRIVER,
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)
from growth.api.workloads import CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET
from growth.kube.http import HttpApi
from tests.cluster.servers import PATIENCE_SECONDS, Server
from tools.controlplane.plane import Plane

SELECTOR: Json = {"matchLabels": {"a": "b"}}
TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "img"}]}}
ONCE: Json = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

# The least that the server takes of each kind: what it leaves empty or null is what we must be able to read.
LEAST: dict[Kind[Any], Json] = {
    POD: {"spec": TEMPLATE["spec"]},
    POD_TEMPLATE: {"template": TEMPLATE},
    NODE: {},
    NAMESPACE: {},
    CONFIG_MAP: {},
    SECRET: {},
    SERVICE: {"spec": {"ports": [{"port": 80}]}},
    EVENT: {"involvedObject": {"namespace": "default"}},
    LEASE: {},
    PERSISTENT_VOLUME_CLAIM: {"spec": CLAIM},
    PERSISTENT_VOLUME: {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    },
    STORAGE_CLASS: {"provisioner": "example.com/a"},
    CSI_NODE: {"spec": {"drivers": []}},
    CSI_DRIVER: {},
    VOLUME_ATTACHMENT: {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
    POD_DISRUPTION_BUDGET: {"spec": {}},
    PRIORITY_CLASS: {"value": 1},
    DEPLOYMENT: {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    REPLICA_SET: {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    STATEFUL_SET: {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    DAEMON_SET: {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    JOB: {"spec": {"template": ONCE}},
    CRON_JOB: {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": ONCE}}}},
}


@pytest.fixture(scope="module")
def server(apiserver: Plane) -> Server:
    return Server(apiserver)


@pytest.mark.parametrize(("kind", "body"), LEAST.items(), ids=[str(kind) for kind in LEAST])
def test_the_least_object_of_each_kind_is_read(server: Server, kind: Kind[Any], body: Json) -> None:
    """Created, got, listed and watched: every answer becomes the same struct."""
    namespace = "default" if kind.namespaced else ""

    async def law(api: HttpApi) -> None:
        start = (await api.list(kind, namespace=namespace)).revision
        created = await api.create(kind, {"metadata": {"name": "least"}, **body}, namespace=namespace)
        assert created.metadata.name == "least"
        assert created.metadata.creation_timestamp is not None
        got = await api.get(kind, "least", namespace=namespace)
        listed = await api.list(kind, namespace=namespace, fields="metadata.name=least")
        assert listed.items == (got,)
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            api.watch(kind, revision=start, namespace=namespace, fields="metadata.name=least") as changes,
        ):
            async for change in changes:
                assert change.object.metadata.uid == got.metadata.uid
                break

    server.run(law)


RICH: Json = {
    "metadata": {"name": "rich", "labels": {"app": "a"}, "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "img",
                "resources": {
                    "requests": {"cpu": 0.5, "memory": "1Gi"},
                    "limits": {"nvidia.com/gpu": 1},
                    "claims": [{"name": "gpu", "request": "one"}],
                },
                "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1", "protocol": "UDP"}],
            }
        ],
        "initContainers": [
            {"name": "sidecar", "image": "img", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "init", "image": "img"},
        ],
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "preference": {"matchExpressions": [{"key": "b", "operator": "Exists"}]}}
                ],
            },
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 3, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": SELECTOR}}
                ]
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
                        "namespaces": ["x"],
                        "namespaceSelector": {},
                        "matchLabelKeys": ["pod-template-hash"],
                        "mismatchLabelKeys": ["tenant"],
                    }
                ]
            },
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 2,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": SELECTOR,
                "minDomains": 3,
                "matchLabelKeys": ["pod-template-hash"],
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
            }
        ],
        "tolerations": [{"key": "t", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
        "schedulingGates": [{"name": "example.com/gate"}],
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "schedulerName": "custom",
        "terminationGracePeriodSeconds": 5,
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM, "storageClassName": "fast"}}}},
            {"name": "inline", "csi": {"driver": "csi.example.com"}},
        ],
    },
}


@pytest.fixture(scope="module")
def rich(server: Server) -> Pod:
    """A pod with everything that decides where it fits, as the server stored it."""
    return server.run(lambda api: api.create(POD, RICH, namespace="default"))


def test_what_a_pod_needs_is_read(rich: Pod) -> None:
    """Requests of containers, sidecars and the pod itself, claims and host ports."""
    (main,) = rich.spec.containers
    sidecar, init = rich.spec.init_containers
    assert main.resources.requests == {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert main.resources.limits == {"nvidia.com/gpu": "1"}
    assert [(use.name, use.request) for use in main.resources.claims] == [("gpu", "one")]
    (port,) = main.ports
    assert (port.container_port, port.host_port, port.host_ip, port.protocol) == (80, 8080, "127.0.0.1", "UDP")
    assert (sidecar.restart_policy, init.restart_policy) == ("Always", "")
    assert rich.spec.resources is not None
    assert rich.spec.resources.requests["memory"] == "4Gi"
    assert [claim.resource_claim_template_name for claim in rich.spec.resource_claims] == ["gpu"]


def test_where_a_pod_may_go_is_read(rich: Pod) -> None:
    """Selectors, affinity of both kinds, spread, tolerations and gates, to the last field."""
    assert rich.spec.node_selector == {"kubernetes.io/arch": "arm64"}
    affinity = rich.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    first, second = required.node_selector_terms
    assert first.match_expressions[0].operator == "Gt"
    assert second.match_fields[0].values == ("n",)
    assert affinity.node_affinity.preferred_during_scheduling_ignored_during_execution[0].weight == 7
    assert affinity.pod_affinity is not None
    (preferred,) = affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution
    assert (preferred.weight, preferred.pod_affinity_term.topology_key) == (3, "zone")
    assert affinity.pod_anti_affinity is not None
    (anti,) = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    assert anti.namespaces == ("x",)
    assert anti.namespace_selector is not None
    assert anti.match_label_keys == ("pod-template-hash",)
    assert anti.mismatch_label_keys == ("tenant",)
    (spread,) = rich.spec.topology_spread_constraints
    assert (spread.max_skew, spread.min_domains, spread.match_label_keys) == (2, 3, ("pod-template-hash",))
    assert (spread.node_affinity_policy, spread.node_taints_policy) == ("Ignore", "Honor")
    assert rich.spec.tolerations[0].toleration_seconds == 60
    assert [gate.name for gate in rich.spec.scheduling_gates] == ["example.com/gate"]
    assert rich.spec.scheduler_name == "custom"


def test_what_a_pod_carries_is_read(rich: Pod) -> None:
    """Claims by name, generic ephemeral volumes with their class, inline CSI volumes; priority and grace."""
    data, scratch, inline = rich.spec.volumes[:3]
    assert data.persistent_volume_claim is not None
    assert (data.persistent_volume_claim.claim_name, data.persistent_volume_claim.read_only) == ("c", True)
    assert scratch.ephemeral is not None
    assert scratch.ephemeral.volume_claim_template is not None
    assert scratch.ephemeral.volume_claim_template.spec.storage_class_name == "fast"
    assert inline.csi is not None
    assert inline.csi.driver == "csi.example.com"
    assert (rich.spec.priority, rich.spec.preemption_policy) == (0, "PreemptLowerPriority")
    assert rich.spec.termination_grace_period_seconds == 5


def test_how_far_a_pod_has_come_is_read(server: Server, rich: Pod) -> None:
    """Phase, conditions, the nominated node, and resources that were resized in place."""
    resized = {"requests": {"cpu": "1", "memory": "2Gi"}}
    status = {
        "phase": "Running",
        "nominatedNodeName": "n",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}],
        "containerStatuses": [
            {
                "name": "main",
                "image": "img",
                "imageID": "",
                "ready": True,
                "restartCount": 1,
                "resources": resized,
                "allocatedResources": {"cpu": "1"},
            }
        ],
    }

    async def change(api: HttpApi) -> Pod:
        return await api.patch(POD, "rich", {"status": status}, namespace="default", subresource="status")

    read = server.run(change).status
    assert (read.phase, read.nominated_node_name) == ("Running", "n")
    assert read.start_time is not None
    assert (read.conditions[0].reason, read.conditions[0].message) == ("Unschedulable", "0/3 nodes")
    (container,) = read.container_statuses
    assert container.resources is not None
    assert container.resources.requests == {"cpu": "1", "memory": "2Gi"}
    assert container.allocated_resources == {"cpu": "1"}
    assert rich.metadata.annotations == {"karpenter.sh/do-not-disrupt": "true"}
