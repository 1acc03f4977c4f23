"""What Growth must be allowed to do, as the roles that allow it and nothing else: `growth rbac` prints them.

Two identities: `growth` acts; `growth-kwok` plays the cloud and its kubelets, and is needed with the KWOK provider only, or
with a fake of another. What only one provider needs stands apart. Tests run the autoscaler with these rights alone.
A third identity, `growth-reader`, is for people who ask and change nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.kinds import Json

GROUP: Final = "rbac.authorization.k8s.io"
NODE_LEASES: Final = "kube-node-lease"
TOKENS: Final = "kube-system"

_READ: Final = ("get", "list", "watch")


def _rule(group: str, resources: Sequence[str], *verbs: str) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


# In all of the cluster.
GROWTH: Final = (
    _rule("", ("namespaces", "persistentvolumes", "persistentvolumeclaims"), *_READ),
    _rule("", ("podtemplates",), "get"),  # what a CapacityBuffer keeps room for
    _rule("", ("pods",), *_READ, "patch", "delete"),
    _rule("", ("pods/eviction",), "create"),
    _rule("", ("pods/status",), "patch"),  # which node a pod was planned for
    _rule("", ("nodes",), *_READ, "patch", "delete"),
    _rule("", ("events",), "create", "patch"),
    _rule("apps", ("daemonsets",), *_READ),
    _rule("apps", ("deployments", "replicasets", "statefulsets"), "get"),
    _rule("policy", ("poddisruptionbudgets",), *_READ),
    _rule("storage.k8s.io", ("storageclasses", "csinodes", "volumeattachments"), *_READ),
    _rule("coordination.k8s.io", ("leases",), "list"),  # whether a Karpenter is at work
    _rule(names.KARPENTER, ("nodepools",), *_READ, "patch"),
    _rule(names.KARPENTER, ("nodeclaims",), *_READ, "create", "patch", "delete"),
    _rule(names.KARPENTER, ("nodeoverlays",), *_READ),
    _rule(names.KARPENTER, ("nodepools/status", "nodeclaims/status", "nodeoverlays/status"), "patch"),
    # Where the server checks who may let an owner wait for what it owns.
    _rule(names.KARPENTER, ("nodepools/finalizers", "nodeclaims/finalizers"), "update"),
    _rule(names.AUTOSCALING, ("capacitybuffers",), *_READ),
    _rule(names.AUTOSCALING, ("capacitybuffers/status",), "patch"),
    _rule(names.GROWTH, ("growthpools",), *_READ, "patch"),
    _rule(names.GROWTH, ("noderequests", "noderemovalrequests"), *_READ, "create", "patch", "delete"),
    _rule(names.GROWTH, ("growthpools/status", "noderequests/status", "noderemovalrequests/status"), "patch"),
    _rule(names.GROWTH, ("growthpools/finalizers",), "update"),
    _rule(names.GROWTH, ("decisions",), "list", "create", "delete"),
    _rule(names.KWOK_CLASS_GROUP, ("kwoknodeclasses",), *_READ),
)
# In Growth's own namespace.
GROWTH_AT_HOME: Final = (
    _rule("coordination.k8s.io", ("leases",), "get", "create", "patch"),
    _rule("", ("configmaps",), "get", "create", "patch", "delete"),
)
# With the Hetzner provider, beyond that: for the same account.
HETZNER: Final = (
    _rule(names.GROWTH, ("hetznernodeclasses",), *_READ),
    _rule(names.GROWTH, ("hetznernodeclasses/status",), "patch"),
)
HETZNER_AT_HOME: Final = (
    _rule("", ("secrets",), "get"),  # with what machines join, by name
    _rule("", ("configmaps",), "list"),  # which dedicated machines are booked
)
HETZNER_TOKENS: Final = (_rule("", ("secrets",), "create"),)  # each machine's own, made and never read
# With the Linode provider.
LINODE: Final = (
    _rule(names.LINODE_CLASS_GROUP, ("linodenodeclasses",), *_READ),
    _rule(names.LINODE_CLASS_GROUP, ("linodenodeclasses/status",), "patch"),
)
LINODE_AT_HOME: Final = (_rule("", ("secrets",), "get"),)  # with what machines join that are no nodes of LKE
KWOK: Final = (
    _rule("", ("namespaces",), "get"),  # whether it is the same cluster
    _rule("", ("nodes",), *_READ, "create", "patch", "delete"),
    _rule("", ("nodes/status",), "patch"),
    _rule("", ("pods",), *_READ, "delete"),
    _rule("", ("pods/status",), "patch"),
    _rule(names.KWOK_CLASS_GROUP, ("kwoknodeclasses",), "get"),
)
KWOK_AT_HOME: Final = (_rule("", ("configmaps",), *_READ, "create", "patch", "delete"),)
KWOK_HEARTBEATS: Final = (_rule("coordination.k8s.io", ("leases",), "create", "patch"),)

# What plan, explain, whatif and top read: lists and watches, and no Secret.
READER: Final = (
    _rule("", ("pods", "nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims", "podtemplates"), *_READ),
    _rule("", ("events",), *_READ),
    _rule("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), *_READ),
    _rule("policy", ("poddisruptionbudgets",), *_READ),
    _rule("storage.k8s.io", ("storageclasses", "csinodes", "volumeattachments"), *_READ),
    _rule(names.KARPENTER, ("nodepools", "nodeclaims", "nodeoverlays"), *_READ),
    _rule(names.AUTOSCALING, ("capacitybuffers",), *_READ),
    _rule(names.GROWTH, ("growthpools", "noderequests", "noderemovalrequests", "decisions"), *_READ),
    _rule(names.KWOK_CLASS_GROUP, ("kwoknodeclasses",), *_READ),
    _rule(names.GROWTH, ("hetznernodeclasses",), *_READ),
    _rule(names.LINODE_CLASS_GROUP, ("linodenodeclasses",), *_READ),
)


def reader(*, namespace: str) -> list[Json]:
    """The account for people who ask: service account, role and binding."""
    name = "growth-reader"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        _role("ClusterRole", name, "", READER),
        _binding("ClusterRole", name, "", subject),
    ]


def objects(*, namespace: str, provider: str = "kwok") -> list[Json]:
    """Service accounts, roles and bindings for a provider, ready to be applied; the namespace must be there."""
    made = _of("growth", GROWTH, {namespace: GROWTH_AT_HOME}, account="growth", namespace=namespace)
    local: Mapping[str, Sequence[Json]]
    match provider:
        case "kwok":
            local = {namespace: KWOK_AT_HOME, NODE_LEASES: KWOK_HEARTBEATS}
            made += _of("growth-kwok", KWOK, local, account="growth-kwok", namespace=namespace)
        case "hetzner":
            local = {namespace: HETZNER_AT_HOME, TOKENS: HETZNER_TOKENS}
            made += _of("growth-hetzner", HETZNER, local, account="growth", namespace=namespace)
        case "linode":
            made += _of("growth-linode", LINODE, {}, account="growth", namespace=namespace)
        case "linode-instances":
            local = {namespace: LINODE_AT_HOME, TOKENS: HETZNER_TOKENS}
            made += _of("growth-linode", LINODE, local, account="growth", namespace=namespace)
    accounts = dict.fromkeys(each["subjects"][0]["name"] for each in made if "subjects" in each)
    return [
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
            for name in accounts
        ),
        *made,
    ]


def _of(
    name: str, everywhere: Sequence[Json], local: Mapping[str, Sequence[Json]], *, account: str, namespace: str
) -> list[Json]:
    """The roles of one name, everywhere and in single namespaces, bound to an account."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    made = [_role("ClusterRole", name, "", everywhere), _binding("ClusterRole", name, "", subject)]
    for place, rules in local.items():
        made += [_role("Role", name, place, rules), _binding("Role", name, place, subject)]
    return made


def _metadata(name: str, namespace: str) -> Json:
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def _role(kind: str, name: str, namespace: str, rules: Sequence[Json]) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": _metadata(name, namespace), "rules": list(rules)}


def _binding(kind: str, name: str, namespace: str, subject: Json) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [subject],
    }
