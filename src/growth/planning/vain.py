"""What keeps pods off a Node that was bought for them: the Node that came beside the one that was planned. Pure.

A Node takes a pod here when nothing but the Node itself is looked at: its labels, taints, size and volumes, empty but for what
DaemonSets will take. That others took its room, or that a rule about other pods keeps a pod away, says nothing of the Node.
A difference counts when the pod would fit without it: the plan's own rules are asked, once for each difference.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Final, TypeAlias

import msgspec

from growth.api import names
from growth.api.placement import PREFER_NO_SCHEDULE, Affinity, Taint
from growth.cluster.machines import CORDONED, Machine
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.planning.classes import DO_NOT_SCHEDULE, required_terms
from growth.planning.solve import solve
from growth.units import QuantityError
from growth.units.resources import Amounts, print_amount

# Marks that Growth puts on Nodes itself, beside those of a Node that is ill for a while.
_OURS: Final = frozenset(
    {names.DISRUPTED_TAINT, names.SCALE_DOWN_TAINT, names.UNREGISTERED_TAINT, names.LEAVING_SOON_TAINT}
)
_PASSING: Final = "node.kubernetes.io/"
# Of what Growth writes on Nodes nothing is planned.
_NEVER_PLANNED: Final = frozenset({names.REGISTERED_LABEL, names.INITIALIZED_LABEL, names.HOSTNAME_LABEL})
# So many differences are told.
SHOWN: Final = 3

_Place: TypeAlias = tuple[Snapshot, NodeView]


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """`mended` is the place as it would be without it; `remedy` is what people can do."""

    text: str
    remedy: str
    mended: Callable[[_Place], _Place]


def keeps_off(snapshot: Snapshot, planned: Machine, came: Machine, shape: PodShape) -> str:
    """Why the Node that came takes no pod of the shape, and what to do; empty where it does.

    `planned` is the claim's machine without a Node. `snapshot` is the cluster: its DaemonSets and volumes.
    """
    assert came.node is not None
    place = (dataclasses.replace(snapshot, pools=()), _view(came, snapshot))
    expected = _view(planned, snapshot)
    keys = _topology_keys(shape)
    found = list(_differences(expected, place, shape))
    moved = [each for each in _labels(expected, place[1], keys) if keys]
    if not moved and _takes(place, shape):
        return ""
    without = [_takes(_mended(place, [other for other in found if other is not each]), shape) for each in found]
    decisive = [each for each, fits in zip(found, without, strict=True) if not fits] if found else []
    if moved:
        decisive = [*moved, *(each for each in decisive if each.text not in {one.text for one in moved})]
    elif not _takes(_mended(place, found), shape):
        return "it came as planned and has no place for them all the same: look at DaemonSets, volumes and host ports"
    told = decisive or found
    texts = [each.text for each in told[:SHOWN]]
    if len(told) > SHOWN:
        texts.append(f"and {len(told) - SHOWN} more")
    return f"{'; '.join(texts)}: {told[0].remedy}"


def _mended(place: _Place, differences: Sequence[Difference]) -> _Place:
    for each in differences:
        place = each.mended(place)
    return place


def _takes(place: _Place, shape: PodShape) -> bool:
    snapshot, view = place
    plan = solve(dataclasses.replace(snapshot, nodes=(view,)), (Demand("pod", _alone(shape)),))
    return bool(plan.filled)


def _alone(shape: PodShape) -> PodShape:
    """The shape without its rules about other pods."""
    spec = shape.spec
    if spec.affinity is None and not spec.topology_spread_constraints:
        return shape
    affinity = None if spec.affinity is None else Affinity(node_affinity=spec.affinity.node_affinity)
    return PodShape(
        namespace=shape.namespace,
        labels=shape.labels,
        spec=msgspec.structs.replace(spec, affinity=affinity, topology_spread_constraints=()),
    )


def _view(machine: Machine, snapshot: Snapshot) -> NodeView:
    """The machine with nothing on it. What cannot be read of its size is nothing."""
    try:
        allocatable: Amounts = machine.allocatable
    except QuantityError:
        allocatable = {}
    del snapshot
    return NodeView(
        name=machine.name,
        labels=machine.labels,
        taints=tuple(each for each in machine.taints if _counts(each)),
        allocatable=allocatable,
    )


def _counts(taint: Taint) -> bool:
    if taint.effect == PREFER_NO_SCHEDULE or taint.key in _OURS:
        return False
    return taint.key == CORDONED.key or not taint.key.startswith(_PASSING)


def _differences(planned: NodeView, place: _Place, shape: PodShape) -> Iterator[Difference]:
    snapshot, came = place
    yield from _labels(planned, came, planned.labels.keys() | _read(shape))
    known = {(each.key, each.effect) for each in planned.taints}
    for taint in came.taints:
        if (taint.key, taint.effect) not in known:
            yield _taint(taint)
    for resource, amount in sorted(planned.allocatable.items()):
        has = came.allocatable.get(resource, 0)
        if has < amount:
            yield _room(resource, has, amount)
    limits = snapshot.volumes.csi_nodes.get(came.name)
    for driver in limits.spec.drivers if limits is not None else ():
        if driver.allocatable is not None and driver.allocatable.count is not None:
            yield Difference(
                f"it attaches {driver.allocatable.count} volumes of {driver.name} at most",
                "correct the driver's limit on the node, or ask for fewer volumes",
                _without_limits,
            )


def _labels(planned: NodeView, came: NodeView, keys: Set[str]) -> Iterator[Difference]:
    if came.labels.get(names.HOSTNAME_LABEL) != came.name and names.HOSTNAME_LABEL in keys:
        yield _label(names.HOSTNAME_LABEL, came.labels.get(names.HOSTNAME_LABEL), came.name)
    for key in sorted(keys - _NEVER_PLANNED):
        wanted, has = planned.labels.get(key), came.labels.get(key)
        if wanted != has:
            yield _label(key, has, wanted)


def _label(key: str, has: str | None, planned: str | None) -> Difference:
    def mended(place: _Place) -> _Place:
        snapshot, view = place
        labels = {each: value for each, value in view.labels.items() if each != key}
        if planned is not None:
            labels[key] = planned
        return snapshot, dataclasses.replace(view, labels=labels)

    text = f"label {key} is {has}" if has is not None else f"label {key} is missing"
    told = f"{text} where {planned} was planned" if planned is not None else f"{text} where none was planned"
    return Difference(told, "correct the label on the Node and what sets it, or what the pods ask for", mended)


def _taint(taint: Taint) -> Difference:
    def mended(place: _Place) -> _Place:
        snapshot, view = place
        return snapshot, dataclasses.replace(view, taints=tuple(each for each in view.taints if each != taint))

    shown = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
    remedy = "take the taint off, or name it in the pool's template, or let the pods tolerate it"
    return Difference(f"taint {shown} was not planned", remedy, mended)


def _room(resource: str, has: int, planned: int) -> Difference:
    def mended(place: _Place) -> _Place:
        snapshot, view = place
        return snapshot, dataclasses.replace(view, allocatable={**view.allocatable, resource: planned})

    told = (
        f"allocatable {resource} is {print_amount(resource, has)} where {print_amount(resource, planned)} was planned"
    )
    return Difference(told, "correct what the kubelet reserves or a device plugin reports, or the node class", mended)


def _without_limits(place: _Place) -> _Place:
    snapshot, view = place
    others = {name: each for name, each in snapshot.volumes.csi_nodes.items() if name != view.name}
    return dataclasses.replace(snapshot, volumes=dataclasses.replace(snapshot.volumes, csi_nodes=others)), view


def _read(shape: PodShape) -> Set[str]:
    """The labels of nodes that the pods ask for."""
    terms = required_terms(shape.spec)
    return {*shape.spec.node_selector, *(each.key for term in terms for each in term.match_expressions)}


def _topology_keys(shape: PodShape) -> Set[str]:
    """The labels of nodes by which rules about other pods count, where they must hold."""
    spec = shape.spec
    keys = {
        each.topology_key for each in spec.topology_spread_constraints if each.when_unsatisfiable == DO_NOT_SCHEDULE
    }
    for both in () if spec.affinity is None else (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
        if both is not None:
            keys |= {each.topology_key for each in both.required_during_scheduling_ignored_during_execution}
    return keys
