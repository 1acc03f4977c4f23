"""The objects that workloads are made of, and those that every generated world has."""

from typing import Any, Final

from growth.api import names
from growth.api.kinds import Json
from growth.providers.kwok.kubelets import RUN_ANNOTATION
from growth.sim.scenario.model import PodShape, Recorded, Workload

STORAGE_CLASS: Final = "simulated"
DRIVER: Final = "csi.simulated"
NAMESPACE: Final = "default"
NODE_CLASS: Final[Json] = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
# Written into a Deployment's template by a rollout.
ROUND_ANNOTATION: Final = "growth.dev/simulated-round"


def pod_spec(shape: PodShape) -> Json:
    """The pod's spec; what `shape.spec` says wins, field by field."""
    requests = {"cpu": shape.cpu, "memory": shape.memory}
    container: Json = {"name": "main", "image": "simulated", "resources": {"requests": requests}}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 30}
    if shape.volume:
        template = {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": STORAGE_CLASS,
                "resources": {"requests": {"storage": shape.volume}},
            }
        }
        spec["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}]
    return {**spec, **shape.spec}


def pod_template(name: str, shape: PodShape, *, runs: str = "") -> Json:
    metadata: Json = {"labels": {"app": name, **shape.labels}}
    annotations = {**shape.annotations, **({RUN_ANNOTATION: runs} if runs else {})}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": pod_spec(shape)}


def deployment(name: str, replicas: int, shape: PodShape) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template(name, shape),
        },
    }


def job(name: str, app: str, shape: PodShape, *, pods: int, parallelism: int, runs: str) -> Json:
    template = pod_template(app, shape, runs=runs)
    template["spec"].setdefault("restartPolicy", "Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"completions": pods, "parallelism": parallelism or pods, "backoffLimit": 1000, "template": template},
    }


def sample(workload: Workload) -> Json | None:
    """A pod like those that the workload will have, to be looked at before the run; None for a trace."""
    if isinstance(workload, Recorded):
        return None
    template = pod_template(workload.name, workload.pod)
    metadata = {"name": workload.name, "namespace": NAMESPACE, **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def storage_class() -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def priority_class(name: str, value: int, **more: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def asks(key: str, operator: str, *values: str) -> Json:
    """One requirement of a pool or a claim."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def cores(*numbers: str) -> Json:
    """Machines of one of these numbers of cores."""
    return asks(names.KWOK_INSTANCE_CPU_LABEL, "In", *numbers)


def node_pool(
    name: str,
    *,
    requirements: tuple[Json, ...] = (),
    taints: tuple[Json, ...] = (),
    labels: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    consolidate_after: str = "60s",
    budgets: tuple[Json, ...] = ({"nodes": "100%"},),
    weight: int | None = None,
    startup_taints: tuple[Json, ...] = (),
    grace: str = "",
    policy: str = "WhenEmpty",
    limit_mode: str = "",
) -> Json:
    """A NodePool of the simulated cloud, for Linux, scaled down when empty, and by its `policy` otherwise.

    `grace` is how long pods may take to leave.
    """
    spec: Json = {
        "nodeClassRef": NODE_CLASS,
        "requirements": [asks(names.OS_LABEL, "In", "linux"), *requirements],
        "expireAfter": "Never",
    }
    if taints:
        spec["taints"] = list(taints)
    if startup_taints:
        spec["startupTaints"] = list(startup_taints)
    if grace:
        spec["terminationGracePeriod"] = grace
    template: Json = {"spec": spec}
    if labels:
        template["metadata"] = {"labels": labels}
    body: Json = {
        "template": template,
        "disruption": {
            "consolidationPolicy": policy,
            "consolidateAfter": consolidate_after,
            "budgets": list(budgets),
        },
    }
    if limits:
        body["limits"] = limits
    if limit_mode:
        body["disruption"]["nodeLimitMode"] = limit_mode
    if weight is not None:
        body["weight"] = weight
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": body}
