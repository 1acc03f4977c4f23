"""The pods that a CapacityBuffer stands for: how many, of which shape, and what is said of their room. Pure.

Karpenter's rules: the number is the greater of `replicas` and `percentage`, as far as `limits` allow; without either,
what the limits allow.
"""

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import msgspec

from growth.api import names
from growth.api.buffers import CapacityBuffer, CapacityBufferSpec
from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta
from growth.api.pods import POD_TEMPLATE, Pod, PodTemplateSpec
from growth.api.requests import requests_of
from growth.api.workloads import DEPLOYMENT, REPLICA_SET, STATEFUL_SET
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import Demand
from growth.planning.plan import Filter, Reason
from growth.units.errors import UnitError
from growth.units.resources import amounts

RESOLVED: Final = "Resolved"
SCALABLE_REF_NOT_FOUND: Final = "ScalableRefNotFound"
POD_TEMPLATE_NOT_FOUND: Final = "PodTemplateNotFound"
RESOLUTION_FAILED: Final = "ResolutionFailed"
FITS: Final = "FitsExistingCapacity"
REQUIRES_NEW: Final = "RequiresNewCapacity"
INFEASIBLE: Final = "Infeasible"
BUFFER_EMPTY: Final = "BufferEmpty"
NOT_READY: Final = "NotReadyForProvisioning"

# Below every priority that a person may give: what keeps room never takes it from a pod that exists.
PRIORITY: Final = -(2**31)
# Each pod of a buffer is planned for like any other. More than this is a slip of the pen, and would take all our memory.
MOST_PODS: Final = 10_000
_SCALABLE: Final[dict[str, Kind[Any]]] = {kind.kind: kind for kind in (DEPLOYMENT, STATEFUL_SET, REPLICA_SET)}
# Reasons that pass: the others are there until somebody changes the buffer or a pool.
_PASSING: Final = frozenset({Filter.LIMITS, Filter.UNAVAILABLE, Filter.CAPS, Filter.POOL, Filter.IN_VAIN})


@dataclasses.dataclass(frozen=True, slots=True)
class Resolved:
    """What a buffer stands for; `template` None is why not, in `reason` and `message`."""

    template: PodTemplateSpec | None
    reason: str
    message: str
    number: int = 0
    template_name: str = ""
    template_generation: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass made of the pods of all buffers, by their keys; `machines` are nodes and claims that hold some."""

    there: Set[str] = frozenset()
    coming: Set[str] = frozenset()
    unplaced: Mapping[str, Sequence[Reason]] = dataclasses.field(default_factory=dict)
    machines: Set[str] = frozenset()


def reference(spec: CapacityBufferSpec) -> tuple[Kind[Any], str] | Resolved:
    """The kind and the name of what the buffer stands for, in its namespace; or why there can be none."""
    if spec.pod_template_ref is not None:
        return POD_TEMPLATE, spec.pod_template_ref.name
    ref = spec.scalable_ref
    if ref is None:
        return Resolved(None, RESOLUTION_FAILED, "neither podTemplateRef nor scalableRef is set: set one of them")
    kind = _SCALABLE.get(ref.kind)
    if kind is None or ref.api_group not in {"", "apps"}:
        told = f"scalableRef is a {ref.kind}: it must be a {', '.join(_SCALABLE)}"
        return Resolved(None, RESOLUTION_FAILED, told)
    return kind, ref.name


def resolved(buffer: CapacityBuffer, kind: Kind[Any], name: str, found: Any | None) -> Resolved:
    """What the buffer stands for by what its `reference` has led to; None where there is no such object."""
    own = kind is POD_TEMPLATE
    if found is None:
        told = f"there is no {kind.kind} {name} in namespace {buffer.metadata.namespace}: create it or name another"
        return Resolved(None, POD_TEMPLATE_NOT_FOUND if own else SCALABLE_REF_NOT_FOUND, told)
    template: PodTemplateSpec = found.template if own else found.spec.template
    try:
        number = wanted(buffer.spec, template, running=None if own else found.spec.replicas)
    except UnitError as error:
        return Resolved(None, RESOLUTION_FAILED, f"how much room it asks for cannot be read: {error}")
    if number > MOST_PODS:
        told = f"it asks for room for {number} pods: at most {MOST_PODS} are kept for one buffer, ask for less"
        return Resolved(None, RESOLUTION_FAILED, told)
    return Resolved(
        template,
        RESOLVED,
        "Pod template resolved successfully",
        number,
        template_name=name if own else "",
        template_generation=found.metadata.generation if own else None,
    )


def wanted(spec: CapacityBufferSpec, template: PodTemplateSpec, *, running: int | None) -> int:
    """For how many pods room is kept; `running` is the number of the workload's pods. `QuantityError`."""
    sizes = [] if spec.replicas is None else [spec.replicas]
    if spec.percentage is not None and running:
        sizes.append(-(-running * spec.percentage // 100))
    asked = requests_of(template.spec)
    allowed = [limit // asked[name] for name, limit in amounts(spec.limits).items() if asked.get(name)]
    if not sizes:
        return min(allowed, default=0)
    return min([max(sizes), *allowed])


def demands(buffer: CapacityBuffer, template: PodTemplateSpec, number: int, shapes: Shapes) -> tuple[Demand, ...]:
    """The pods, each with a key that no real pod can have. Volumes are left out: nobody may hold a claim for nothing."""
    meta = buffer.metadata
    spec = msgspec.structs.replace(
        template.spec, node_name="", volumes=(), scheduling_gates=(), resource_claims=(), priority=PRIORITY
    )
    pod = Pod(metadata=ObjectMeta(namespace=meta.namespace, labels=template.metadata.labels), spec=spec)
    shape = shapes.shape(pod)
    return tuple(Demand(f"{meta.namespace}/capacitybuffer:{meta.name}#{at}", shape) for at in range(number))


def provisioning(keys: Sequence[str], outcome: Outcome) -> tuple[str, str, str]:
    """Status, reason and message of the condition `Provisioning` after a pass; empty where the pass knew nothing of it."""
    total = len(keys)
    refused = [outcome.unplaced[key] for key in keys if key in outcome.unplaced]
    infeasible = sum(all(reason.filter not in _PASSING for reason in reasons) for reasons in refused)
    coming = sum(key in outcome.coming for key in keys)
    if infeasible:
        why = refused[0][0].message if refused[0] else ""
        told = f"{infeasible}/{total} virtual pods fit on nothing that can be bought: {why}"
        return "False", INFEASIBLE, told
    if coming or refused:
        failures = f", {len(refused)} had failures" if refused else ""
        return "False", REQUIRES_NEW, f"{coming}/{total} virtual pods required new capacity{failures}"
    if all(key in outcome.there for key in keys):
        return "True", FITS, f"All {total} virtual pods fit on existing capacity"
    return "", "", ""


def strategy_is_ours(spec: CapacityBufferSpec) -> bool:
    """Other strategies are other programs' business."""
    return spec.provisioning_strategy in {"", names.ACTIVE_CAPACITY_STRATEGY}
