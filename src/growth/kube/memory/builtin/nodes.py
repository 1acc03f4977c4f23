"""Nodes: a new one is tainted not-ready, its status comes with it, its provider ID is written once."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from growth.api.kinds import Json
from growth.kube.memory.builtin import shapes
from growth.kube.memory.builtin.podspec import EFFECTS, canonical
from growth.kube.memory.fields import FieldError, forbidden_value, invalid_value, not_supported, quoted, required
from growth.kube.memory.names import label_value_faults, qualified_name_faults
from growth.kube.memory.resources import Lookup, Resource, Strategy, unchanged

NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

_NODE_INFO: Final = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


class NodeStrategy(Strategy):
    status = True
    field_selectors: ClassVar[Mapping[str, tuple[str, ...]]] = {"spec.unschedulable": ("spec", "unschedulable")}

    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.Node, "Node")
        if not unchanged(new, old, "spec"):
            self._default_spec(new)
        if not unchanged(new, old, "status"):
            self._default_status(new)

    def _default_spec(self, new: Json) -> None:
        spec = new["spec"] = dict(new.get("spec") or {})
        if spec.get("unschedulable") is False:
            del spec["unschedulable"]
        if spec.get("podCIDR") and not spec.get("podCIDRs"):
            spec["podCIDRs"] = [spec["podCIDR"]]

    def _default_status(self, new: Json) -> None:
        status = new["status"] = dict(new.get("status") or {})
        canonical(status.get("capacity"))
        canonical(status.get("allocatable"))
        if status.get("capacity") and status.get("allocatable") is None:
            status["allocatable"] = dict(status["capacity"])
        status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
        if len(info := status.get("nodeInfo") or {}) < len(_NODE_INFO):
            status["nodeInfo"] = {**dict.fromkeys(_NODE_INFO, ""), **info}
        for condition in status.get("conditions") or ():
            condition.setdefault("lastHeartbeatTime", None)
            condition.setdefault("lastTransitionTime", None)

    def admit(self, new: Json, *, cluster: Lookup) -> None:
        taints = new["spec"].get("taints") or []
        if not any((one.get("key"), one.get("effect")) == tuple(NOT_READY.values()) for one in taints):
            new["spec"]["taints"] = [*taints, dict(NOT_READY)]

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = shapes.read(new, shapes.Node, "Node").spec
        seen: list[tuple[str, str]] = []
        for index, taint in enumerate((spec.taints if spec is not None else None) or ()):
            place = f"metadata.taints[{index}]"  # the real server's own slip; people search for its words
            for fault in qualified_name_faults(taint.key):
                yield invalid_value(f"{place}.key", taint.key, fault)
            for fault in label_value_faults(taint.value):
                yield invalid_value(f"{place}.value", taint.value, fault)
            if not taint.effect:
                yield required(f"{place}.effect")
            elif taint.effect not in EFFECTS:
                yield not_supported(f"{place}.effect", taint.effect, EFFECTS)
            if (taint.key, taint.effect) in seen:
                shown = {"Key": taint.key, "Value": taint.value, "Effect": taint.effect, "TimeAdded": None}
                text = f"Duplicate value: {quoted(shown)}: taints must be unique by key and effect pair"
                yield FieldError(place, "FieldValueDuplicate", text)
            seen.append((taint.key, taint.effect))

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        yield from self.validate(new)
        before, after = old.get("spec") or {}, new.get("spec") or {}
        if before.get("providerID") and after.get("providerID") != before["providerID"]:
            text = 'node updates may not change providerID except from "" to valid'
            yield forbidden_value("spec.providerID", text)
        if before.get("podCIDRs") and after.get("podCIDRs") != before["podCIDRs"]:
            yield forbidden_value("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')


RESOURCES = (Resource("", "v1", "Node", "nodes", False, NodeStrategy(), "node", ("no",)),)
