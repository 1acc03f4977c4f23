"""Why nodes of growth pools stay or go by their pools' own rules, as far as objects tell. Pure."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from growth.api import names
from growth.api.growthpools import CONTINUOUS, GrowthPool
from growth.cluster.assemble import Picture
from growth.cluster.machines import Machine
from growth.cluster.shapes import CachedPod
from growth.planning.disruption import words
from growth.planning.disruption.model import Kept
from growth.planning.emptying import PoolNode, ScaleDown, plan_scale_down, running
from growth.units import TimestampError, parse_time

# What a growth pool says of an empty node, and the word for it.
_OF_EMPTY: Final = (
    ("(min)", words.MINIMUM),
    ("paused", words.PAUSED),
    (names.DO_NOT_DISRUPT_ANNOTATION, words.DO_NOT_DISRUPT),
    ("Never", words.DISABLED),
    ("scaleDownAfter", words.MALFORMED),
    ("about to come", words.NOMINATED),
)


def _ours(_: Machine) -> str:
    return ""


def scale_down(
    picture: Picture,
    *,
    pods: Mapping[str, Sequence[CachedPod]],
    wanted: Set[str],
    going: Set[str] = frozenset(),
    foreign: Callable[[Machine], str] = _ours,
) -> ScaleDown:
    """What the pools do about their empty nodes. `wanted`: pods are about to come. `going` goes for another reason.

    `foreign` says whose a machine is where it is not ours.
    """
    found = []
    for name, counted in picture.counted.items():
        machine = counted.machine
        if machine.node is None or machine.claim is None or machine.pool is None or not machine.initialized:
            continue
        if machine.pool.group != names.GROWTH or foreign(machine):
            continue
        annotations = machine.node.metadata.annotations
        found.append(
            PoolNode(
                name=name,
                pool=machine.pool.name,
                type=machine.labels.get(names.INSTANCE_TYPE_LABEL, "").lower(),
                pods=pods.get(name, ()),
                marked=any(each.key == names.SCALE_DOWN_TAINT for each in machine.node.spec.taints),
                due=_time(annotations.get(names.SCALE_DOWN_AT_ANNOTATION, "")),
                removal=name in going,
                leaving=machine.leaving,
                wanted=name in wanted,
                protected=annotations.get(names.DO_NOT_DISRUPT_ANNOTATION) == "true",
                paused=annotations.get(names.PAUSED_ANNOTATION, "false") != "false",
                created=machine.claim.metadata.creation_timestamp,
            )
        )
    return plan_scale_down(found, {pool.metadata.name: pool for pool in picture.growth_pools}, now=picture.now)


def why_kept(machine: Machine, pool: GrowthPool | None, *, pods: Sequence[CachedPod], down: ScaleDown) -> Kept | None:
    """What the pool's own rules say of an initialised node that stays; None where disruption decides."""
    assert machine.pool is not None
    name, ref = machine.name, machine.pool
    if pool is None:
        return Kept(name, str(ref), words.POOL_NOT_FOUND, f"NodePool {ref} does not exist")
    busy = running(pods)
    if busy and pool.spec.optimise != CONTINUOUS:
        told = f"NodePool {ref} removes empty nodes only (optimise {pool.spec.optimise}), and {_pods(len(busy))} there"
        return Kept(name, str(ref), words.GROWTH_POOL, told, disabled=True)
    if busy:
        return None
    said = down.kept.get(name) or down.cancel.get(name) or "pods are about to come"
    word = next((word for mark, word in _OF_EMPTY if mark in said), words.GROWTH_POOL)
    return Kept(name, str(ref), word, f"it is empty, and {said}")


def _pods(number: int) -> str:
    return "1 pod runs" if number == 1 else f"{number} pods run"


def _time(text: str) -> dt.datetime | None:
    try:
        return parse_time(text)
    except TimestampError:
        return None
