"""What could be changed in a pod so that it fits where it does not fit now. Proposals: whether they help is tried out.

Most of a pod's spec cannot be changed while it is there: people change the template of its workload. The patches are those
of the pod all the same, and the words name the workload.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from growth.api.kinds import Json
from growth.api.placement import PREFER_NO_SCHEDULE, PodAffinityTerm, Taint
from growth.api.pods import POD
from growth.api.requests import requests_of
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import key_of
from growth.planning.classes import DO_NOT_SCHEDULE
from growth.planning.explaining.remedies import Change, Remedy, edit, patch, pointer
from growth.planning.requirements import key_of as todays
from growth.planning.taints import tolerates
from growth.units.resources import Amounts, amounts, print_amount

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS: Final = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")


def change_pod(pod: CachedPod, body: Json) -> Change:
    return patch(POD.api_version, POD.kind, pod.name, body, namespace=pod.namespace)


def edit_pod(pod: CachedPod, *operations: Json) -> Change:
    return edit(POD.api_version, POD.kind, pod.name, *operations, namespace=pod.namespace)


def called(pod: CachedPod) -> str:
    """Where a person would make the change."""
    if pod.owner is None:
        return f"pod {key_of(pod)}"
    owner = pod.owner
    name, kind = owner.name, owner.kind
    suffix = f"-{pod.shape.labels.get('pod-template-hash', '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        name, kind = name.removesuffix(suffix), "Deployment"
    return f"pod {key_of(pod)} (in the template of {kind} {name})"


# -- labels and taints --------------------------------------------------------------------------------------------


def to_tolerate(pod: CachedPod, taints: tuple[Taint, ...]) -> Iterator[Remedy]:
    known = pod.shape.spec.tolerations
    lacking = [each for each in taints if each.effect != PREFER_NO_SCHEDULE and not tolerates(known, each)]
    if not lacking:
        return
    added: list[Json] = [
        {"key": each.key, "operator": "Equal", "value": each.value, "effect": each.effect}
        if each.value
        else {"key": each.key, "operator": "Exists", "effect": each.effect}
        for each in lacking
    ]
    shown = " and ".join(
        f"{each.key}={each.value}:{each.effect}" if each.value else f"{each.key}:{each.effect}" for each in lacking
    )
    body = {"spec": {"tolerations": [*msgspec.to_builtins(known), *added]}}
    yield Remedy(text=f"add a toleration of {shown} to {called(pod)}", changes=(change_pod(pod, body),))


def to_select(pod: CachedPod, key: str, value: str) -> Remedy:
    """To ask for a label."""
    change = change_pod(pod, {"spec": {"nodeSelector": {key: value}}})
    return Remedy(text=f"add the node selector {key}: {value} to {called(pod)}", changes=(change,))


def to_stop_asking(pod: CachedPod, key: str) -> Iterator[Remedy]:
    """Not to ask for the label any more."""
    spec = pod.shape.spec
    selected = [each for each in spec.node_selector if todays(each) == key]
    changes = []
    if selected:
        changes.append(change_pod(pod, {"spec": {"nodeSelector": dict.fromkeys(selected)}}))
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    operations: list[Json] = []
    for at, term in enumerate(required.node_selector_terms if required else ()):
        places = [index for index, each in enumerate(term.match_expressions) if todays(each.key) == key]
        if places and len(places) == len(term.match_expressions) and not term.match_fields:
            # A term without anything in it would match no node: the whole rule goes.
            operations = [{"op": "remove", "path": pointer(*_TERMS[:-1])}]
            break
        operations += [
            {"op": "remove", "path": pointer(*_TERMS, at, "matchExpressions", index)} for index in reversed(places)
        ]
    if operations:
        changes.append(edit_pod(pod, *operations))
    if changes:
        yield Remedy(text=f"no longer ask for the label {key} in {called(pod)}", changes=tuple(changes))


def to_drop_fields(pod: CachedPod) -> Iterator[Remedy]:
    """Not to name a single node."""
    change = edit_pod(pod, {"op": "remove", "path": pointer(*_TERMS[:-1])})
    yield Remedy(text=f"take the node affinity by matchFields off {called(pod)}", changes=(change,))


# -- rules among pods ---------------------------------------------------------------------------------------------


def to_loosen_rules(pod: CachedPod) -> Iterator[Remedy]:
    """One of the pod's firm rules of topology after the other, then all of them."""
    single = [*_spreads(pod), *_terms(pod, "podAffinity"), *_terms(pod, "podAntiAffinity")]
    yield from (
        Remedy(text=f"{text} in {called(pod)}", changes=(edit_pod(pod, *operations),)) for text, operations in single
    )
    if len(single) > 1:
        everything = [operation for _, operations in reversed(single) for operation in operations]
        text = " and ".join(text for text, _ in single)
        yield Remedy(text=f"{text} in {called(pod)}", changes=(edit_pod(pod, *everything),))


def _spreads(pod: CachedPod) -> Iterator[tuple[str, list[Json]]]:
    for at, each in enumerate(pod.shape.spec.topology_spread_constraints):
        if each.when_unsatisfiable == DO_NOT_SCHEDULE:
            path = pointer("spec", "topologySpreadConstraints", at, "whenUnsatisfiable")
            operation = {"op": "add", "path": path, "value": "ScheduleAnyway"}
            yield f"let the spread over {each.topology_key} be a wish (ScheduleAnyway)", [operation]


def _terms(pod: CachedPod, which: str) -> Iterator[tuple[str, list[Json]]]:
    affinity: Any = pod.shape.spec.affinity
    part = getattr(affinity, "pod_affinity" if which == "podAffinity" else "pod_anti_affinity", None)
    terms: tuple[PodAffinityTerm, ...] = (
        part.required_during_scheduling_ignored_during_execution if part is not None else ()
    )
    word = "affinity" if which == "podAffinity" else "anti-affinity"
    for at, each in enumerate(terms):
        path = pointer("spec", "affinity", which, REQUIRED, at)
        yield f"drop the required {word} to pods by {each.topology_key}", [{"op": "remove", "path": path}]


# -- size, ports and the rest -------------------------------------------------------------------------------------


def to_shrink(pod: CachedPod, most: Amounts) -> Iterator[Remedy]:
    """To ask for no more than so much of each resource; what is too much is taken off the largest container."""
    spec = pod.shape.spec
    needed = requests_of(spec)
    operations: list[Json] = []
    told: list[str] = []
    for name, amount in needed.items():
        over = amount - most.get(name, amount)
        sizes = [amounts({**each.resources.limits, **each.resources.requests}).get(name, 0) for each in spec.containers]
        if over <= 0 or not sizes:
            continue
        at = max(range(len(sizes)), key=lambda index: sizes[index])
        if over > sizes[at] or name not in spec.containers[at].resources.requests:
            return
        resources = ("spec", "containers", at, "resources")
        places = [pointer(*resources, "requests", name)]
        if "/" in name and name in spec.containers[at].resources.limits:  # a device: both are equal
            places.append(pointer(*resources, "limits", name))
        value = print_amount(name, sizes[at] - over)
        if over == sizes[at]:
            operations += [{"op": "remove", "path": path} for path in places]
            told.append(f"ask for no {name}")
        else:
            operations += [{"op": "replace", "path": path, "value": value} for path in places]
            told.append(f"lower the requests of {name} to {value}")
    if operations:
        yield Remedy(text=f"{' and '.join(told)} in {called(pod)}", changes=(edit_pod(pod, *operations),))


def to_free_ports(pod: CachedPod) -> Iterator[Remedy]:
    operations = [
        {"op": "remove", "path": pointer("spec", "containers", at, "ports", index, "hostPort")}
        for at, container in enumerate(pod.shape.spec.containers)
        for index, port in enumerate(container.ports)
        if port.host_port
    ]
    if operations:
        yield Remedy(text=f"bind no host port in {called(pod)}", changes=(edit_pod(pod, *operations),))


def to_open_gates(pod: CachedPod) -> Remedy:
    gates = ", ".join(gate.name for gate in pod.shape.spec.scheduling_gates)
    change = change_pod(pod, {"spec": {"schedulingGates": None}})
    return Remedy(text=f"remove the scheduling gates of pod {key_of(pod)} ({gates})", changes=(change,))


def to_simplify(pod: CachedPod) -> Iterator[Remedy]:
    """Without what Growth does not support."""
    spec = pod.shape.spec
    if spec.resource_claims:
        places = [at for at, each in enumerate(spec.containers) if each.resources.claims]
        operations: list[Json] = [{"op": "remove", "path": "/spec/resourceClaims"}]
        operations += [
            {"op": "remove", "path": pointer("spec", "containers", at, "resources", "claims")} for at in places
        ]
        yield Remedy(text=f"use no resourceClaims in {called(pod)}", changes=(edit_pod(pod, *operations),))
    elif spec.scheduling_group is not None:
        change = change_pod(pod, {"spec": {"schedulingGroup": None}})
        yield Remedy(text=f"use no schedulingGroup in {called(pod)}", changes=(change,))
    else:
        yield from to_drop_fields(pod)
