"""The pod spec: its defaults and rules, for pods and for the templates of workloads.

Defaults differ a little between the two: `enableServiceLinks` and requests made of limits are a pod's only.
"""

from collections.abc import Iterator
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.builtin import shapes
from growth.kube.memory.fields import (
    FieldError,
    Undecodable,
    duplicate,
    invalid_value,
    not_found,
    not_supported,
    required,
)
from growth.kube.memory.names import label_errors, label_faults, qualified_name_faults, subdomain_faults
from growth.units.errors import QuantityError
from growth.units.quantity import Quantity

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_FILE_MODE: Final = 0o644


def canonical(amounts: Json | None) -> None:
    """Rewrites quantities as the server prints them; `Undecodable` for what is none."""
    for name, amount in (amounts or {}).items():
        try:
            amounts[name] = str(Quantity.parse(amount))  # type: ignore[index]  # the loop runs only where there is one
        except QuantityError as error:
            raise Undecodable(
                f"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': {error}"
            ) from error


def default_spec(spec: Json, *, pod: bool) -> None:
    """Fills in a pod spec in place."""
    for container in spec.get("initContainers") or ():
        _default_container(container, pod=pod)
    for container in spec.get("containers") or ():
        _default_container(container, pod=pod)
    _default_volumes(spec.get("volumes") or ())
    if spec.get("overhead"):
        canonical(spec["overhead"])
    if spec.get("resources"):
        _default_resources(spec["resources"], pod=pod)
    if spec.get("hostNetwork"):
        for container in spec.get("containers") or ():
            for port in container.get("ports") or ():
                port.setdefault("hostPort", port.get("containerPort"))
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    if pod and spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True


def _default_resources(resources: Json, *, pod: bool) -> None:
    canonical(resources.get("requests"))
    limits = resources.get("limits")
    if limits:
        canonical(limits)
        if pod:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _default_container(container: Json, *, pod: bool) -> None:
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    elif resources:
        _default_resources(resources, pod=pod)
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        image = container.get("image") or ""
        tag = image.rpartition("/")[2].partition(":")[2]
        newest = "@" not in image and tag in {"", "latest"}
        container["imagePullPolicy"] = "Always" if newest else "IfNotPresent"
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            for field, value in _PROBE.items():
                if not probe.get(field):
                    probe[field] = value
            _default_handler(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict):
            _default_handler(hook)


def _default_handler(handler: Json) -> None:
    if handler.get("httpGet") is not None:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")
    if handler.get("grpc") is not None:
        handler["grpc"].setdefault("service", "")


def _default_volumes(volumes: Any) -> None:
    for volume in volumes:
        if len(volume) == 1:
            volume["emptyDir"] = {}
        for source in ("secret", "configMap", "projected", "downwardAPI"):
            if volume.get(source) is not None:
                volume[source].setdefault("defaultMode", _FILE_MODE)
        for item in (volume.get("downwardAPI") or {}).get("items") or ():
            if item.get("fieldRef") is not None:
                item["fieldRef"].setdefault("apiVersion", "v1")
        if volume.get("hostPath") is not None:
            volume["hostPath"].setdefault("type", "")
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            template.setdefault("metadata", {})
            claim = template.setdefault("spec", {})
            claim.setdefault("volumeMode", "Filesystem")
            canonical((claim.get("resources") or {}).get("requests"))


def spec_errors(spec: shapes.PodSpec | None, field: str) -> Iterator[FieldError]:
    """What is wrong with a pod spec, defaults filled in."""
    if spec is None or not spec.containers:
        yield required(f"{field}.containers")
    if spec is None:
        return
    volumes = [str(volume.get("name") or "") for volume in spec.volumes or ()]
    for index, name in enumerate(volumes):
        place = f"{field}.volumes[{index}].name"
        if not name:
            yield required(place)
        for fault in label_faults(name) if name else ():
            yield invalid_value(place, name, fault)
        if name in volumes[:index]:
            yield duplicate(place, name)
    if spec.hostname:
        for fault in label_faults(spec.hostname):
            yield invalid_value(f"{field}.hostname", spec.hostname, fault)
    names: dict[str, None] = {}
    for part, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            place = f"{field}.{part}[{index}]"
            yield from _container_errors(container, place, volumes)
            if container.name in names:
                yield duplicate(f"{place}.name", container.name)
            elif container.name:
                names[container.name] = None
    if spec.restart_policy not in {"Always", "OnFailure", "Never"}:
        yield not_supported(f"{field}.restartPolicy", spec.restart_policy, ("Always", "OnFailure", "Never"))
    if spec.dns_policy not in _DNS:
        yield not_supported(f"{field}.dnsPolicy", spec.dns_policy, _DNS)
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 0 < deadline < 2**31:
        yield invalid_value(f"{field}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    if spec.node_name:
        for fault in subdomain_faults(spec.node_name):
            yield invalid_value(f"{field}.nodeName", spec.node_name, fault)
    if spec.node_selector:
        yield from label_errors(spec.node_selector, f"{field}.nodeSelector")
    for index, toleration in enumerate(spec.tolerations or ()):
        yield from _toleration_errors(toleration, f"{field}.tolerations[{index}]")
    for index, spread in enumerate(spec.topology_spread_constraints or ()):
        yield from _spread_errors(spread, f"{field}.topologySpreadConstraints[{index}]")
    if spec.affinity is not None:
        yield from _affinity_errors(spec.affinity, f"{field}.affinity")
    seen: list[str] = []
    for index, gate in enumerate(spec.scheduling_gates or ()):
        place = f"{field}.schedulingGates[{index}]"
        for fault in qualified_name_faults(gate.name):
            yield invalid_value(place, gate.name, fault)
        if gate.name in seen:
            yield duplicate(place, gate.name)
        seen.append(gate.name)


def _container_errors(container: shapes.Container, field: str, volumes: list[str]) -> Iterator[FieldError]:
    if not container.name:
        yield required(f"{field}.name")
    else:
        for fault in label_faults(container.name):
            yield invalid_value(f"{field}.name", container.name, fault)
    if not container.image:
        yield required(f"{field}.image")
    if container.image_pull_policy not in _PULL_POLICIES:
        yield not_supported(f"{field}.imagePullPolicy", container.image_pull_policy, _PULL_POLICIES)
    for index, variable in enumerate(container.env or ()):
        if not variable.get("name"):
            yield required(f"{field}.env[{index}].name")
    for index, mount in enumerate(container.volume_mounts or ()):
        name = mount.get("name") or ""
        if name not in volumes:
            yield not_found(f"{field}.volumeMounts[{index}].name", name)
        if not mount.get("mountPath"):
            yield required(f"{field}.volumeMounts[{index}].mountPath")
    for index, port in enumerate(container.ports or ()):
        place = f"{field}.ports[{index}]"
        if not port.container_port:
            yield required(f"{place}.containerPort")
        elif not 0 < port.container_port < 65536:
            yield invalid_value(f"{place}.containerPort", port.container_port, "must be between 1 and 65535, inclusive")
        if port.protocol not in {"TCP", "UDP", "SCTP"}:
            yield not_supported(f"{place}.protocol", port.protocol, ("SCTP", "TCP", "UDP"))
    if container.resources is not None:
        yield from resource_errors(container.resources, f"{field}.resources")


def resource_errors(resources: shapes.Resources, field: str) -> Iterator[FieldError]:
    """What is wrong with requests and limits."""
    limits = resources.limits or {}
    for part, amounts in (("limits", limits), ("requests", resources.requests or {})):
        for name, amount in amounts.items():
            place = f"{field}.{part}[{name}]"
            yield from _resource_name_errors(name, place)
            if Quantity.parse(amount).mantissa < 0:
                yield invalid_value(place, str(amount), "must be greater than or equal to 0")
    for name, amount in (resources.requests or {}).items():
        extended = _is_extended(name)
        if name in limits:
            ask, cap = Quantity.parse(amount), Quantity.parse(limits[name])
            if extended and ask != cap:
                text = f"must be equal to {name} limit of {cap}"
                yield invalid_value(f"{field}.requests", str(amount), text)
            elif ask.scaled(-9) > cap.scaled(-9):
                text = f"must be less than or equal to {name} limit of {cap}"
                yield invalid_value(f"{field}.requests", str(amount), text)
        elif extended:
            yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")


def _is_extended(name: str) -> bool:
    return "/" in name or name.startswith("hugepages-")


def _resource_name_errors(name: str, place: str) -> Iterator[FieldError]:
    for fault in qualified_name_faults(name):
        yield invalid_value(place, name, fault)
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield invalid_value(place, name, "must be a standard resource type or fully qualified")
        yield invalid_value(place, name, "must be a standard resource for containers")


def _toleration_errors(toleration: shapes.Toleration, field: str) -> Iterator[FieldError]:
    operator = toleration.operator
    if not toleration.key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{field}.operator", operator, text)
    if toleration.key:
        for fault in qualified_name_faults(toleration.key):
            yield invalid_value(f"{field}.key", toleration.key, fault)
    if operator not in {"", "Equal", "Exists"}:
        yield not_supported(f"{field}.operator", operator, ("Equal", "Exists"))
    if operator == "Exists" and toleration.value:
        yield invalid_value(f"{field}.operator", toleration.value, "value must be empty when `operator` is 'Exists'")
    if toleration.effect and toleration.effect not in EFFECTS:
        yield not_supported(f"{field}.effect", toleration.effect, EFFECTS)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_value(f"{field}.effect", toleration.effect, text)


def _spread_errors(spread: shapes.Spread, field: str) -> Iterator[FieldError]:
    if spread.max_skew <= 0:
        yield invalid_value(f"{field}.maxSkew", spread.max_skew, "must be greater than zero")
    if not spread.topology_key:
        yield required(f"{field}.topologyKey", "can not be empty")
    if spread.when_unsatisfiable not in {"DoNotSchedule", "ScheduleAnyway"}:
        options = ("DoNotSchedule", "ScheduleAnyway")
        yield not_supported(f"{field}.whenUnsatisfiable", spread.when_unsatisfiable, options)
    if spread.min_domains is not None and spread.min_domains <= 0:
        yield invalid_value(f"{field}.minDomains", spread.min_domains, "must be greater than zero")


def _affinity_errors(affinity: shapes.Affinity, field: str) -> Iterator[FieldError]:
    node = affinity.node_affinity
    if node is not None:
        yield from _node_affinity_errors(node, f"{field}.nodeAffinity")
    for name, pods in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if pods is None:
            continue
        for index, term in enumerate(pods.required_during_scheduling_ignored_during_execution or ()):
            place = f"{field}.{name}.requiredDuringSchedulingIgnoredDuringExecution[{index}].topologyKey"
            yield from _topology_key_errors(term.topology_key, place)
        for index, weighted in enumerate(pods.preferred_during_scheduling_ignored_during_execution or ()):
            place = f"{field}.{name}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            if not 1 <= weighted.weight <= 100:
                yield invalid_value(f"{place}.weight", weighted.weight, "must be in the range 1-100")
            key = weighted.pod_affinity_term.topology_key if weighted.pod_affinity_term is not None else ""
            yield from _topology_key_errors(key, f"{place}.podAffinityTerm.topologyKey")


def _topology_key_errors(key: str, field: str) -> Iterator[FieldError]:
    if not key:
        yield required(field, "can not be empty")
    for fault in qualified_name_faults(key):
        yield invalid_value(field, key, fault)


def _node_affinity_errors(node: shapes.NodeAffinity, field: str) -> Iterator[FieldError]:
    needed = node.required_during_scheduling_ignored_during_execution
    if needed is not None:
        place = f"{field}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        if not needed.node_selector_terms:
            yield required(place, "must have at least one node selector term")
        for index, term in enumerate(needed.node_selector_terms or ()):
            yield from _term_errors(term, f"{place}[{index}]")
    for index, preferred in enumerate(node.preferred_during_scheduling_ignored_during_execution or ()):
        place = f"{field}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        if not 1 <= preferred.weight <= 100:
            yield invalid_value(f"{place}.weight", preferred.weight, "must be in the range 1-100")
        if preferred.preference is not None:
            yield from _term_errors(preferred.preference, f"{place}.preference")


def _term_errors(term: shapes.NodeTerm, field: str) -> Iterator[FieldError]:
    for index, need in enumerate(term.match_expressions or ()):
        place = f"{field}.matchExpressions[{index}]"
        values = need.values or []
        match need.operator:
            case "In" | "NotIn":
                if not values:
                    text = "must be specified when `operator` is 'In' or 'NotIn'"
                    yield required(f"{place}.values", text)
            case "Exists" | "DoesNotExist":
                if values:
                    text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield FieldError(f"{place}.values", "FieldValueForbidden", f"Forbidden: {text}")
            case "Gt" | "Lt":
                if len(values) != 1:
                    text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                    yield required(f"{place}.values", text)
            case other:
                yield invalid_value(f"{place}.operator", other, "not a valid selector operator")
        for fault in qualified_name_faults(need.key):
            yield invalid_value(f"{place}.key", need.key, fault)
