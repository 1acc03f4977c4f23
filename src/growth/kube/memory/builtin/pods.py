"""Pods: defaults, admission (priority, default tolerations), quality of service, and what an update may change.

Not here: service accounts (none is required and no token volume is added), runtime classes, ephemeral containers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from growth.api.kinds import Json
from growth.kube.memory import failures
from growth.kube.memory.builtin import podspec, shapes
from growth.kube.memory.fields import FieldError, forbidden_value, invalid_value
from growth.kube.memory.resources import Generation, Lookup, Resource, Strategy, unchanged
from growth.units.quantity import Quantity

DEFAULT_GRACE_SECONDS: Final = 30
TOLERATION_SECONDS: Final = 300  # as the admission plugin DefaultTolerationSeconds has it

_IMMUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_ADMITTED: Final = ("priority", "preemptionPolicy", "serviceAccountName", "serviceAccount")
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"


class PodStrategy(Strategy):
    status = True
    generation = Generation.SPEC
    finishes_at_once = False
    field_selectors: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.restartPolicy": ("spec", "restartPolicy"),
        "spec.schedulerName": ("spec", "schedulerName"),
        "spec.serviceAccountName": ("spec", "serviceAccountName"),
        "spec.hostNetwork": ("spec", "hostNetwork"),
        "status.phase": ("status", "phase"),
        "status.podIP": ("status", "podIP"),
        "status.nominatedNodeName": ("status", "nominatedNodeName"),
    }

    def prepare_create(self, new: Json) -> None:
        new["status"] = {"phase": "Pending"}

    def default(self, new: Json, old: Json | None) -> None:
        if not unchanged(new, old, "spec"):
            shapes.read(new, shapes.Pod, "Pod")
            podspec.default_spec(new.setdefault("spec", {}), pod=True)
        if not unchanged(new, old, "status"):
            status = new.setdefault("status", {})
            if "qosClass" not in status:
                status["qosClass"] = quality(new["spec"])
            _default_status(status)

    def admit(self, new: Json, *, cluster: Lookup) -> None:
        _set_priority(new, cluster)
        tolerate_for_a_while(new["spec"])
        spec = new["spec"]
        spec.setdefault("serviceAccountName", "default")
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
        if spec.get("schedulingGates"):
            new["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": cluster.now(),
                    "reason": "SchedulingGated",
                    "message": _GATED,
                }
            ]

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = shapes.read(new, shapes.Pod, "Pod").spec
        yield from podspec.spec_errors(spec, "spec")
        if spec is not None and spec.node_name and spec.scheduling_gates:
            yield forbidden_value("spec.nodeName", "cannot be set until all schedulingGates have been cleared")

    def prepare_update(self, new: Json, old: Json) -> None:
        super().prepare_update(new, old)
        if new.get("spec") is not old["spec"]:
            spec = new["spec"] = dict(new.get("spec") or {})
            for field in _ADMITTED:  # whoever leaves them out gets them again
                if field in old["spec"]:
                    spec.setdefault(field, old["spec"][field])
            tolerate_for_a_while(spec)

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if new["spec"] is old["spec"]:
            return
        yield from podspec.spec_errors(shapes.read(new, shapes.Pod, "Pod").spec, "spec")
        yield from _change_errors(new["spec"], old["spec"])

    def grace_seconds(self, stored: Json, asked: int | None) -> int | None:
        spec = stored["spec"]
        grace = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS) if asked is None else asked
        if grace < 0:
            grace = 1
        phase = (stored.get("status") or {}).get("phase")
        if not spec.get("nodeName") or phase in {"Failed", "Succeeded"}:
            return 0
        return int(grace)


def _default_status(status: Json) -> None:
    """What the server shows of a status even where nothing was said."""
    for condition in status.get("conditions") or ():
        condition.setdefault("status", "")
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)
    for part in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container in status.get(part) or ():
            for field, value in (("state", {}), ("lastState", {}), ("ready", False), ("restartCount", 0)):
                container.setdefault(field, value)
            container.setdefault("image", "")
            container.setdefault("imageID", "")
            for state in (container["state"], container["lastState"]):
                for name, times in (("running", ("startedAt",)), ("terminated", ("startedAt", "finishedAt"))):
                    if state.get(name) is not None:
                        state[name] = {**dict.fromkeys(times), **state[name]}
    if status.get("podIP") and (status.get("podIPs") or [{}])[0].get("ip") != status["podIP"]:
        status["podIPs"] = [{"ip": status["podIP"]}]


def _set_priority(new: Json, cluster: Lookup) -> None:
    """Admission of priorities: the class decides; a number of the pod's own must agree."""
    spec = new["spec"]
    name = spec.get("priorityClassName") or ""
    found: Json | None = None
    if name:
        found = cluster.find("scheduling.k8s.io", "priorityclasses", name)
        if found is None:
            raise failures.forbidden(POD, _name(new), f"no PriorityClass with name {name} was found")
    else:
        standard = [one for one in cluster.every("scheduling.k8s.io", "priorityclasses") if one.get("globalDefault")]
        if standard:  # should there be several, the lowest counts
            found = min(standard, key=lambda one: int(one["value"]))
            spec["priorityClassName"] = found["metadata"]["name"]
    value = 0 if found is None else found["value"]
    policy = "PreemptLowerPriority" if found is None else found.get("preemptionPolicy", "PreemptLowerPriority")
    given = spec.get("priority")
    if given is not None and given != value:
        raise failures.forbidden(
            POD,
            _name(new),
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name",
        )
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)


def _name(new: Json) -> str:
    return str(new["metadata"].get("name", ""))


def tolerate_for_a_while(spec: Json) -> None:
    """Adds the two tolerations that let a pod outlive its node's silence for five minutes."""
    present: list[Json] = spec.get("tolerations") or []
    missing = [
        key
        for key in _TOLERATED
        if not any(one.get("key", "") in {"", key} and one.get("effect", "") in {"", "NoExecute"} for one in present)
    ]
    if missing:
        spec["tolerations"] = [
            *present,
            *(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
                for key in missing
            ),
        ]


def quality(spec: Json) -> str:
    """The quality-of-service class that requests and limits of CPU and memory make."""
    whole = spec.get("resources") or {}
    if whole.get("requests") or whole.get("limits"):
        containers: list[Json] = [{"resources": whole}]
    else:
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    anything = False
    guaranteed = bool(containers)
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request = _positive(requests.get(name))
            limit = _positive(limits.get(name))
            anything = anything or request is not None or limit is not None
            if limit is None or (request is not None and request != limit):
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(amount: Any) -> Quantity | None:
    if amount is None:
        return None
    quantity = Quantity.parse(amount)
    return quantity if quantity.mantissa > 0 else None


def _change_errors(new: Json, old: Json) -> Iterator[FieldError]:
    """What is wrong with a change of a pod's spec: most of it is fixed for life."""
    for part in ("containers", "initContainers"):
        if len(new.get(part) or ()) != len(old.get(part) or ()):
            yield forbidden_value(f"spec.{part}", f"pod updates may not add or remove {part}")
            return
    before_deadline, deadline = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if before_deadline is not None and (deadline is None or deadline > before_deadline):
        text = "must be less than or equal to previous value"
        yield invalid_value("spec.activeDeadlineSeconds", deadline, text)
    gated = bool(old.get("schedulingGates"))
    known = [gate["name"] for gate in old.get("schedulingGates") or ()]
    for index, gate in enumerate(new.get("schedulingGates") or ()):
        if gate["name"] not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden_value(f"spec.schedulingGates[{index}].name", text)
    before = old.get("tolerations") or []
    after = new.get("tolerations") or []
    if any(_without_seconds(one) not in [_without_seconds(other) for other in after] for one in before):
        yield forbidden_value(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )
    if _fixed(new, gated=gated) != _fixed(old, gated=gated):
        yield forbidden_value("spec", _IMMUTABLE)


def _without_seconds(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _fixed(spec: Json, *, gated: bool) -> Json:
    """The part of a spec that no update may change; a gated pod may still be told where to go."""
    free = {"tolerations", "activeDeadlineSeconds", "schedulingGates"}
    if gated:
        free |= {"nodeSelector", "affinity"}
    fixed = {key: value for key, value in spec.items() if key not in free}
    for part in ("containers", "initContainers"):
        if part in fixed:
            fixed[part] = [{**container, "image": ""} for container in fixed[part]]
    return fixed


POD: Final = Resource("", "v1", "Pod", "pods", True, PodStrategy(), "pod", ("po",), ("all",))

RESOURCES = (POD,)
