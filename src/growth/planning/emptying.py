"""Which nodes of growth pools get the mark of scale-down, which lose it again, and whose time is over. Pure.

A node with nothing but DaemonSet, mirror or finished pods is marked, unless pods are about to come, people protect it, or
its type would have fewer than `min` without it. Whatever comes in between takes the mark off.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.cluster.paying import too_early
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done, is_mirror, of_daemon_set
from growth.units import DurationError, parse_or_never


def running(pods: Iterable[CachedPod]) -> tuple[CachedPod, ...]:
    """The pods that a node is not empty with: neither finished, nor a DaemonSet's, nor its kubelet's own."""
    return tuple(pod for pod in pods if not is_done(pod) and not of_daemon_set(pod) and not is_mirror(pod))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PoolNode:
    """An initialised node of a growth pool.

    `type` is in lower case. `marked`: it carries the taint; `due` is when its time is over, None where it does not say.
    `removal`: a NodeRemovalRequest sees to it. `leaving`: node or claim is being deleted, or the machine is going.
    `wanted`: pods are about to come. `settling`: whoever would say so has had no chance yet, so that nothing is begun.
    `paid_until`: the end of the paid time that a moment falls into, where empty nodes are to stay until shortly before.
    """

    name: str
    pool: str
    type: str
    pods: Sequence[CachedPod] = ()
    marked: bool = False
    due: dt.datetime | None = None
    removal: bool = False
    leaving: bool = False
    wanted: bool = False
    settling: bool = False
    protected: bool = False
    paused: bool = False
    created: dt.datetime | None = None
    paid_until: Callable[[dt.datetime], dt.datetime | None] = lambda _: None


@dataclasses.dataclass(frozen=True, slots=True)
class Marking:
    """A node that is to be marked until `at`."""

    node: str
    at: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class ScaleDown:
    """What is to be done; `kept` says why empty nodes stay for long, `cancel` why a mark goes, both by node."""

    mark: tuple[Marking, ...] = ()
    cancel: Mapping[str, str] = dataclasses.field(default_factory=dict)
    remove: tuple[str, ...] = ()
    kept: Mapping[str, str] = dataclasses.field(default_factory=dict)


def plan_scale_down(nodes: Iterable[PoolNode], pools: Mapping[str, GrowthPool], *, now: dt.datetime) -> ScaleDown:
    """`nodes` are all initialised nodes of the pools, so that minima can be counted."""
    by_pool: dict[str, list[PoolNode]] = {}
    for node in nodes:
        if not node.leaving and not node.removal:
            by_pool.setdefault(node.pool, []).append(node)
    mark: list[Marking] = []
    cancel: dict[str, str] = {}
    remove: list[str] = []
    kept: dict[str, str] = {}
    for name, members in sorted(by_pool.items()):
        pool = pools.get(name)
        if pool is None or pool.metadata.deletion_timestamp is not None:
            continue  # its claims go with it
        try:
            after = parse_or_never(pool.spec.scale_down_after)
        except DurationError as error:
            kept |= {node.name: f"scaleDownAfter {error}" for node in members}
            continue
        spare = _spare(pool, members)
        for node in sorted(members, key=_order):
            why = "" if after is not None else "scaleDownAfter is Never"
            why = why_kept(node, pool) or why
            if not why and spare.get(node.type, 1) <= 0:
                why = f"the pool keeps {_least(pool, node.type)} machines of type {node.type} (min)"
            if why and node.marked:
                cancel[node.name] = why
            if why:
                if not node.wanted and not running(node.pods):
                    kept[node.name] = why
                continue
            if node.type in spare:
                spare[node.type] -= 1
            if node.settling:
                continue
            if node.marked and node.due is not None:
                if now >= node.due:
                    remove.append(node.name)
            elif after is not None:
                end = node.paid_until(now + after.timedelta)
                if too_early(end, now + after.timedelta):
                    kept[node.name] = f"it is paid for until {end:%Y-%m-%dT%H:%M:%SZ}"
                else:
                    mark.append(Marking(node.name, now + after.timedelta))
    return ScaleDown(tuple(mark), cancel, tuple(remove), kept)


def why_kept(node: PoolNode, pool: GrowthPool) -> str:
    """Why the node stays whatever the others do; empty when it may go."""
    busy = running(node.pods)
    if busy:
        return f"{len(busy)} pods run there"
    if node.wanted:
        return "pods are about to come"
    if node.paused or pool.metadata.annotations.get(names.PAUSED_ANNOTATION, "false") != "false":
        return "it is paused"
    if node.protected:
        return f"it has the annotation {names.DO_NOT_DISRUPT_ANNOTATION}"
    return ""


def _spare(pool: GrowthPool, members: Sequence[PoolNode]) -> dict[str, int]:
    """Of each type with a minimum, how many nodes may go."""
    return {
        each.name.lower(): sum(node.type == each.name.lower() for node in members) - each.min
        for each in pool.spec.server_types
        if each.min
    }


def _least(pool: GrowthPool, type_: str) -> int:
    return next((each.min for each in pool.spec.server_types if each.name.lower() == type_), 0)


def _order(node: PoolNode) -> tuple[bool, float, str]:
    """Those that are marked keep their mark; of the others the youngest go first."""
    return (not node.marked, -node.created.timestamp() if node.created is not None else 0.0, node.name)
