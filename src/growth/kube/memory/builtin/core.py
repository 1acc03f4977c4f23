"""Namespaces, configuration, services, events, leases, budgets and priorities."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from growth.api.kinds import Json
from growth.kube.memory.builtin import shapes
from growth.kube.memory.fields import FieldError, Undecodable, forbidden_value, invalid_value, not_supported, required
from growth.kube.memory.names import label_1035_faults, label_faults, path_segment_faults
from growth.kube.memory.resources import Generation, Lookup, Resource, Strategy, unchanged

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
NODE_PORTS: Final = range(30_000, 32_768)
SYSTEM_PRIORITIES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_CONFIG_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_NEEDED: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_UNHEALTHY: Final = ("AlwaysAllow", "IfHealthyBudget")
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_PERCENT: Final = re.compile(r"[0-9]+%", re.ASCII)
_PERCENT_TEXT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_SERVICE_NETWORK: Final = "10.96.{}.{}"  # where cluster IPs come from; nothing routes them


class NamespaceStrategy(Strategy):
    status = True
    field_selectors: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "metadata.namespace": ("metadata", "namespace"),
        "status.phase": ("status", "phase"),
        "name": ("metadata", "name"),
    }

    def prepare_create(self, new: Json) -> None:
        shapes.read(new, shapes.Namespace, "Namespace")
        new["status"] = {"phase": "Active"}
        new["spec"] = {"finalizers": ["kubernetes"]}

    def default(self, new: Json, old: Json | None) -> None:
        metadata = new["metadata"]
        if metadata.get("name"):
            label = {"kubernetes.io/metadata.name": metadata["name"]}
            metadata["labels"] = {**(metadata.get("labels") or {}), **label}

    def prepare_update(self, new: Json, old: Json) -> None:
        super().prepare_update(new, old)
        new["spec"] = old["spec"]  # finalizers go by their own subresource

    def name_faults(self, name: str) -> list[str]:
        return label_faults(name)

    def keeps_deleted(self, stored: Json) -> bool:
        return bool((stored.get("spec") or {}).get("finalizers"))

    def mark_deleted(self, new: Json) -> None:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
        new["metadata"].pop("deletionGracePeriodSeconds", None)


class ConfigMapStrategy(Strategy):
    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.ConfigMap, "ConfigMap")

    def validate(self, new: Json) -> Iterator[FieldError]:
        for part in ("data", "binaryData"):
            for key in new.get(part) or ():
                if not _CONFIG_KEY.fullmatch(key):
                    yield invalid_value(f"{part}[{key}]", key, _CONFIG_KEY_TEXT)

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        yield from self.validate(new)
        yield from immutable_errors(new, old, ("data", "binaryData"))


def immutable_errors(new: Json, old: Json, parts: tuple[str, ...]) -> Iterator[FieldError]:
    """What is wrong with a change of an object that says of itself that it is immutable."""
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden_value("immutable", "field is immutable when `immutable` is set")
    for part in parts:
        if new.get(part) != old.get(part):
            yield forbidden_value(part, "field is immutable when `immutable` is set")


class SecretStrategy(Strategy):
    field_selectors: ClassVar[Mapping[str, tuple[str, ...]]] = {"type": ("type",)}

    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.Secret, "Secret")
        if not new.get("type"):
            new["type"] = "Opaque"
        plain = new.pop("stringData", None)
        if plain:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            new["data"] = {**(new.get("data") or {}), **encoded}
        for value in (new.get("data") or {}).values():
            try:
                base64.b64decode(value, validate=True)
            except binascii.Error as error:
                # The value itself stays out of the message.
                raise Undecodable(
                    'Secret in version "v1" cannot be handled as a Secret: illegal base64 data'
                ) from error

    def validate(self, new: Json) -> Iterator[FieldError]:
        for key in new.get("data") or ():
            if not _CONFIG_KEY.fullmatch(key):
                yield invalid_value(f"data[{key}]", key, _CONFIG_KEY_TEXT)
        for key in _NEEDED.get(new["type"], ()):
            if key not in (new.get("data") or ()):
                yield required(f"data[{key}]")

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        yield from self.validate(new)
        if new.get("type") != old.get("type"):
            yield invalid_value("type", new.get("type"), "field is immutable")
        yield from immutable_errors(new, old, ("data",))


class ServiceStrategy(Strategy):
    status = True
    finishes_at_once = False
    field_selectors: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "spec.clusterIP": ("spec", "clusterIP"),
        "spec.type": ("spec", "type"),
    }

    def prepare_create(self, new: Json) -> None:
        new["status"] = {"loadBalancer": {}}

    def default(self, new: Json, old: Json | None) -> None:
        if unchanged(new, old, "spec"):
            return
        shapes.read(new, shapes.Service, "Service")
        spec = new["spec"] = dict(new.get("spec") or {})
        for name, value in (("type", "ClusterIP"), ("sessionAffinity", "None")):
            if not spec.get(name):
                spec[name] = value
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))
        if spec["type"] != "ExternalName":
            spec.setdefault("ipFamilies", ["IPv4"])
            spec.setdefault("ipFamilyPolicy", "SingleStack")
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec["type"] in {"NodePort", "LoadBalancer"}:
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)

    def admit(self, new: Json, *, cluster: Lookup) -> None:
        spec = new["spec"]
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            taken = [one["spec"].get("clusterIP") for one in cluster.every("", "services")]
            free = (_SERVICE_NETWORK.format(number // 254, number % 254 + 1) for number in range(1, 254 * 254))
            spec["clusterIP"] = next(address for address in free if address not in taken)
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        if spec["type"] in {"NodePort", "LoadBalancer"}:
            used = [
                port.get("nodePort") for one in cluster.every("", "services") for port in one["spec"].get("ports", ())
            ]
            for port in spec.get("ports") or ():
                if not port.get("nodePort"):
                    port["nodePort"] = next(number for number in NODE_PORTS if number not in used)
                used.append(port["nodePort"])

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = new["spec"]
        if not spec.get("ports") and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
            yield required("spec.ports")
        ports = spec.get("ports") or ()
        for index, port in enumerate(ports if len(ports) > 1 else ()):
            if not port.get("name"):
                yield required(f"spec.ports[{index}].name")

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        yield from self.validate(new)
        before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
        if before and after != before and new["spec"]["type"] != "ExternalName":
            yield invalid_value("spec.clusterIPs[0]", [after], "may not change once set")

    def name_faults(self, name: str) -> list[str]:
        return label_1035_faults(name)


class EventStrategy(Strategy):
    create_on_update = True
    field_selectors: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{
            f"involvedObject.{name}": ("involvedObject", name)
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": ("reason",),
        "type": ("type",),
        "source": ("source", "component"),
        "reportingComponent": ("reportingComponent",),
    }

    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.Event, "Event")
        for name, value in (("source", {}), ("reportingComponent", ""), ("reportingInstance", "")):
            if new.get(name) is None:
                new[name] = value
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            new.setdefault(name, None)

    def validate(self, new: Json) -> Iterator[FieldError]:
        home = (new.get("involvedObject") or {}).get("namespace") or "default"
        if home != new["metadata"].get("namespace"):
            shown = (new.get("involvedObject") or {}).get("namespace") or ""
            yield invalid_value("involvedObject.namespace", shown, "does not match event.namespace")


class LeaseStrategy(Strategy):
    unconditional_update = False
    create_on_update = True

    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.Lease, "Lease")
        new.setdefault("spec", {})

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = new.get("spec") or {}
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            yield invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0")
        if (spec.get("leaseTransitions") or 0) < 0:
            transitions = spec["leaseTransitions"]
            yield invalid_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


class BudgetStrategy(Strategy):
    status = True
    generation = Generation.SPEC
    unconditional_update = False

    def prepare_create(self, new: Json) -> None:
        new["status"] = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}

    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.Budget, "PodDisruptionBudget")
        status = new["status"] = dict(new.get("status") or {})
        for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
            status.setdefault(name, 0)

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = new.get("spec") or {}
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            yield invalid_value("spec", spec, "minAvailable and maxUnavailable cannot be both set")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy not in {None, *_UNHEALTHY}:
            yield not_supported("spec.unhealthyPodEvictionPolicy", policy, _UNHEALTHY)
        for name in ("minAvailable", "maxUnavailable"):
            yield from _int_or_percent_errors(spec.get(name), f"spec.{name}")


def _int_or_percent_errors(value: Any, field: str) -> Iterator[FieldError]:
    if isinstance(value, int) and value < 0:
        yield invalid_value(field, value, "must be greater than or equal to 0")
    elif isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield invalid_value(field, value, _PERCENT_TEXT)
    elif isinstance(value, str) and int(value[:-1]) > 100:
        yield invalid_value(field, value, "must not be greater than 100%")


class PriorityClassStrategy(Strategy):
    generation = Generation.CONTENT

    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.PriorityClass, "PriorityClass")
        if not new.get("preemptionPolicy"):
            new["preemptionPolicy"] = "PreemptLowerPriority"
        if new.get("globalDefault") is False:
            del new["globalDefault"]

    def validate(self, new: Json) -> Iterator[FieldError]:
        name, value = new["metadata"].get("name", ""), new.get("value", 0)
        if name.startswith("system-"):
            if SYSTEM_PRIORITIES.get(name) != value:
                text = (
                    "priority class names with 'system-' prefix are reserved for system use only. error: "
                    f"{name} is not a known system priority class"
                )
                yield forbidden_value("metadata.name", text)
        elif value > HIGHEST_USER_PRIORITY:
            text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            yield forbidden_value("value", text)
        if new["preemptionPolicy"] not in _PREEMPTION:
            yield not_supported("preemptionPolicy", new["preemptionPolicy"], _PREEMPTION)

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        for field in ("value", "preemptionPolicy"):
            if new.get(field) != old.get(field):
                yield forbidden_value(field, "may not be changed in an update.")


class PathNamed(Strategy):
    """Roles and their bindings: kept for those who apply a chart, never enforced."""

    def name_faults(self, name: str) -> list[str]:
        return path_segment_faults(name)


_PLAIN: Final = Strategy()
_RBAC: Final = "rbac.authorization.k8s.io"

RESOURCES = (
    Resource("", "v1", "Namespace", "namespaces", False, NamespaceStrategy(), "namespace", ("ns",)),
    Resource("", "v1", "ConfigMap", "configmaps", True, ConfigMapStrategy(), "configmap", ("cm",)),
    Resource("", "v1", "Secret", "secrets", True, SecretStrategy(), "secret"),
    Resource("", "v1", "Service", "services", True, ServiceStrategy(), "service", ("svc",), ("all",)),
    Resource("", "v1", "ServiceAccount", "serviceaccounts", True, _PLAIN, "serviceaccount", ("sa",)),
    Resource("", "v1", "Event", "events", True, EventStrategy(), "event", ("ev",)),
    Resource("coordination.k8s.io", "v1", "Lease", "leases", True, LeaseStrategy(), "lease"),
    Resource(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        True,
        BudgetStrategy(),
        "poddisruptionbudget",
        ("pdb",),
    ),
    Resource(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        False,
        PriorityClassStrategy(),
        "priorityclass",
        ("pc",),
    ),
    Resource(_RBAC, "v1", "ClusterRole", "clusterroles", False, PathNamed(), "clusterrole"),
    Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False, PathNamed(), "clusterrolebinding"),
    Resource(_RBAC, "v1", "Role", "roles", True, PathNamed(), "role"),
    Resource(_RBAC, "v1", "RoleBinding", "rolebindings", True, PathNamed(), "rolebinding"),
)
