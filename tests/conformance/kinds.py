"""The kinds that the laws speak about, read raw: a law sees every field that the server sent."""

from growth.api.kinds import Json, Kind


def _kind(api_version: str, kind: str, plural: str, *, namespaced: bool = True) -> Kind[Json]:
    group, _, version = api_version.rpartition("/")
    return Kind(group, version, kind, plural, namespaced, dict)


CONFIG_MAP = _kind("v1", "ConfigMap", "configmaps")
EVENT = _kind("v1", "Event", "events")
NAMESPACE = _kind("v1", "Namespace", "namespaces", namespaced=False)
NODE = _kind("v1", "Node", "nodes", namespaced=False)
POD = _kind("v1", "Pod", "pods")
POD_TEMPLATE = _kind("v1", "PodTemplate", "podtemplates")
SERVICE_ACCOUNT = _kind("v1", "ServiceAccount", "serviceaccounts")
DEPLOYMENT = _kind("apps/v1", "Deployment", "deployments")
REPLICA_SET = _kind("apps/v1", "ReplicaSet", "replicasets")
LEASE = _kind("coordination.k8s.io/v1", "Lease", "leases")
BUDGET = _kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
CRD = _kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
