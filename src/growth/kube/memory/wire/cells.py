"""The cells of built-in kinds' tables, as the real server fills them."""

import datetime as dt
import json
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.selectors import selector_text
from growth.kube.memory.wire.ages import age, lapse
from growth.units.timestamp import parse_time

NONE: Final = "<none>"
_ROLE: Final = "node-role.kubernetes.io/"
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def text(value: Any) -> str:
    """A value in a text column."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict | list) else str(value)


def _name(stored: Json) -> str:
    return str(stored["metadata"]["name"])


def _age(stored: Json, now: dt.datetime) -> str:
    return age(stored["metadata"].get("creationTimestamp"), now)


def _spec(stored: Json) -> Json:
    return stored.get("spec") or {}


def _status(stored: Json) -> Json:
    return stored.get("status") or {}


def _template(stored: Json) -> list[str]:
    containers = ((_spec(stored).get("template") or {}).get("spec") or {}).get("containers") or []
    return [",".join(one["name"] for one in containers), ",".join(one.get("image", "") for one in containers)]


def _selector(stored: Json) -> str:
    return selector_text(_spec(stored).get("selector")) or NONE


def plain(stored: Json, now: dt.datetime) -> list[Any]:
    return [_name(stored), _age(stored, now)]


def created_at(stored: Json, _now: dt.datetime) -> list[Any]:
    return [_name(stored), stored["metadata"].get("creationTimestamp")]


def pod(stored: Json, now: dt.datetime) -> list[Any]:
    spec, status = _spec(stored), _status(stored)
    statuses = status.get("containerStatuses") or []
    restarts = sum(int(one.get("restartCount") or 0) for one in statuses)
    ready = sum(1 for one in statuses if one.get("ready") and "running" in (one.get("state") or {}))
    gates = spec.get("readinessGates") or []
    conditions = {one["type"]: one.get("status") for one in status.get("conditions") or ()}
    passed = sum(1 for gate in gates if conditions.get(gate.get("conditionType")) == "True")
    return [
        _name(stored),
        f"{ready}/{len(spec.get('containers') or ())}",
        pod_reason(stored),
        str(restarts),
        _age(stored, now),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{passed}/{len(gates)}" if gates else NONE,
    ]


def pod_reason(stored: Json) -> str:
    """The Status column: the phase, or what explains more than it."""
    status = _status(stored)
    reason = status.get("reason") or status.get("phase") or "Unknown"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    waiting = _initialising(stored)
    if waiting:
        reason = waiting
    else:
        for one in reversed(status.get("containerStatuses") or ()):
            state = one.get("state") or {}
            stopped = state.get("terminated") or {}
            if (state.get("waiting") or {}).get("reason"):
                reason = state["waiting"]["reason"]
            elif stopped.get("reason"):
                reason = stopped["reason"]
            elif stopped:
                signal = stopped.get("signal")
                reason = f"Signal:{signal}" if signal else f"ExitCode:{stopped.get('exitCode', 0)}"
    if stored["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _initialising(stored: Json) -> str:
    containers = _spec(stored).get("initContainers") or []
    for index, one in enumerate(_status(stored).get("initContainerStatuses") or ()):
        state = one.get("state") or {}
        stopped = state.get("terminated")
        sidecar = index < len(containers) and containers[index].get("restartPolicy") == "Always"
        if (stopped is not None and not stopped.get("exitCode")) or (sidecar and one.get("started")):
            continue
        if stopped is not None:
            return f"Init:{stopped.get('reason') or 'ExitCode:' + str(stopped.get('exitCode'))}"
        waiting = (state.get("waiting") or {}).get("reason")
        return f"Init:{waiting}" if waiting and waiting != "PodInitializing" else f"Init:{index}/{len(containers)}"
    return ""


def node(stored: Json, now: dt.datetime) -> list[Any]:
    status = _status(stored)
    conditions = {one["type"]: one.get("status") for one in status.get("conditions") or ()}
    ready = conditions.get("Ready")
    states = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    if _spec(stored).get("unschedulable"):
        states.append("SchedulingDisabled")
    labels = stored["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    addresses = {one["type"]: one["address"] for one in reversed(status.get("addresses") or [])}
    info = status.get("nodeInfo") or {}
    return [
        _name(stored),
        ",".join(states),
        ",".join(sorted(roles)) or NONE,
        _age(stored, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def namespace(stored: Json, now: dt.datetime) -> list[Any]:
    return [_name(stored), _status(stored).get("phase", ""), _age(stored, now)]


def config_map(stored: Json, now: dt.datetime) -> list[Any]:
    count = len(stored.get("data") or ()) + len(stored.get("binaryData") or ())
    return [_name(stored), count, _age(stored, now)]


def secret(stored: Json, now: dt.datetime) -> list[Any]:
    return [_name(stored), stored.get("type", ""), len(stored.get("data") or ()), _age(stored, now)]


def service(stored: Json, now: dt.datetime) -> list[Any]:
    spec = _spec(stored)
    ports = ",".join(
        f"{one.get('port')}{':' + str(one['nodePort']) if one.get('nodePort') else ''}/{one.get('protocol', 'TCP')}"
        for one in spec.get("ports") or ()
    )
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    ingress = (_status(stored).get("loadBalancer") or {}).get("ingress") or []
    outside = ",".join(one.get("ip") or one.get("hostname") or "" for one in ingress)
    if spec.get("type") == "LoadBalancer":
        outside = outside or "<pending>"
    elif spec.get("type") == "ExternalName":
        outside = spec.get("externalName", "")
    return [
        _name(stored),
        spec.get("type", ""),
        spec.get("clusterIP") or NONE,
        outside or NONE,
        ports or NONE,
        _age(stored, now),
        selector or NONE,
    ]


def event(stored: Json, now: dt.datetime) -> list[Any]:
    involved = stored.get("involvedObject") or {}
    source = stored.get("source") or {}
    series = stored.get("series") or {}
    first = stored.get("firstTimestamp") or stored.get("eventTime")
    last = series.get("lastObservedTime") or stored.get("lastTimestamp") or first
    places = [source.get("component") or stored.get("reportingComponent") or "", source.get("host") or ""]
    return [
        age(last, now),
        stored.get("type", ""),
        stored.get("reason", ""),
        f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        ", ".join(place for place in places if place),
        str(stored.get("message", "")).strip(),
        age(first, now),
        series.get("count") or stored.get("count") or 1,
        _name(stored),
    ]


def _modes(modes: Any) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or ())


def _phase(stored: Json) -> str:
    return "Terminating" if stored["metadata"].get("deletionTimestamp") else str(_status(stored).get("phase", ""))


def claim(stored: Json, now: dt.datetime) -> list[Any]:
    spec, status = _spec(stored), _status(stored)
    bound = bool(spec.get("volumeName"))
    return [
        _name(stored),
        _phase(stored),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        _age(stored, now),
        spec.get("volumeMode") or "<unset>",
    ]


def volume(stored: Json, now: dt.datetime) -> list[Any]:
    spec, status = _spec(stored), _status(stored)
    owner = spec.get("claimRef") or {}
    return [
        _name(stored),
        (spec.get("capacity") or {}).get("storage", ""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(stored),
        f"{owner.get('namespace', '')}/{owner.get('name', '')}" if owner else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        _age(stored, now),
        spec.get("volumeMode") or "<unset>",
    ]


def lease(stored: Json, now: dt.datetime) -> list[Any]:
    return [_name(stored), _spec(stored).get("holderIdentity") or "", _age(stored, now)]


def budget(stored: Json, now: dt.datetime) -> list[Any]:
    spec = _spec(stored)
    low, high = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        _name(stored),
        "N/A" if low is None else str(low),
        "N/A" if high is None else str(high),
        _status(stored).get("disruptionsAllowed", 0),
        _age(stored, now),
    ]


def priority_class(stored: Json, now: dt.datetime) -> list[Any]:
    return [
        _name(stored),
        stored.get("value", 0),
        bool(stored.get("globalDefault")),
        _age(stored, now),
        stored.get("preemptionPolicy", ""),
    ]


def storage_class(stored: Json, now: dt.datetime) -> list[Any]:
    annotations = stored["metadata"].get("annotations") or {}
    default = " (default)" if annotations.get("storageclass.kubernetes.io/is-default-class") == "true" else ""
    return [
        _name(stored) + default,
        stored.get("provisioner", ""),
        stored.get("reclaimPolicy", ""),
        stored.get("volumeBindingMode", ""),
        bool(stored.get("allowVolumeExpansion")),
        _age(stored, now),
    ]


def csi_node(stored: Json, now: dt.datetime) -> list[Any]:
    return [_name(stored), len(_spec(stored).get("drivers") or ()), _age(stored, now)]


def attachment(stored: Json, now: dt.datetime) -> list[Any]:
    spec = _spec(stored)
    return [
        _name(stored),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool(_status(stored).get("attached")),
        _age(stored, now),
    ]


def deployment(stored: Json, now: dt.datetime) -> list[Any]:
    status = _status(stored)
    return [
        _name(stored),
        f"{status.get('readyReplicas', 0)}/{_spec(stored).get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(stored, now),
        *_template(stored),
        _selector(stored),
    ]


def replica_set(stored: Json, now: dt.datetime) -> list[Any]:
    status = _status(stored)
    return [
        _name(stored),
        _spec(stored).get("replicas", 1),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        _age(stored, now),
        *_template(stored),
        _selector(stored),
    ]


def stateful_set(stored: Json, now: dt.datetime) -> list[Any]:
    ready = f"{_status(stored).get('readyReplicas', 0)}/{_spec(stored).get('replicas', 1)}"
    return [_name(stored), ready, _age(stored, now), *_template(stored)]


def daemon_set(stored: Json, now: dt.datetime) -> list[Any]:
    status = _status(stored)
    inner = (_spec(stored).get("template") or {}).get("spec") or {}
    chosen = ",".join(f"{key}={value}" for key, value in sorted((inner.get("nodeSelector") or {}).items()))
    return [
        _name(stored),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        chosen or NONE,
        _age(stored, now),
        *_template(stored),
        _selector(stored),
    ]


def job(stored: Json, now: dt.datetime) -> list[Any]:
    spec, status = _spec(stored), _status(stored)
    conditions = {one["type"] for one in status.get("conditions") or () if one.get("status") == "True"}
    state = next(
        (name for name in ("Complete", "Failed", "FailureTarget", "Suspended") if name in conditions), "Running"
    )
    started, ended = status.get("startTime"), status.get("completionTime")
    duration = lapse((parse_time(ended) if ended else now) - parse_time(started)) if started else ""
    return [
        _name(stored),
        "Terminating" if stored["metadata"].get("deletionTimestamp") else state,
        f"{status.get('succeeded', 0)}/{spec.get('completions') or 1}",
        duration,
        _age(stored, now),
        *_template(stored),
        _selector(stored),
    ]


def cron_job(stored: Json, now: dt.datetime) -> list[Any]:
    spec, status = _spec(stored), _status(stored)
    last = status.get("lastScheduleTime")
    return [
        _name(stored),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        str(bool(spec.get("suspend"))),
        len(status.get("active") or ()),
        age(last, now) if last else NONE,
        _age(stored, now),
        *_template({"spec": (spec.get("jobTemplate") or {}).get("spec") or {}}),
        NONE,
    ]
