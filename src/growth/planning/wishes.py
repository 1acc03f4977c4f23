"""Nothing is bought for what some would merely rather have, where there is room for them.

Those are pods that leave a machine: kube-scheduler binds them on a node that is up and has room, long before another machine
could come, and that machine would then be removed again. And pods of buffers: they keep room, and whoever comes in their
place is bound where it is. A pod that waits has its wishes: kube-scheduler has just said that no node takes it.

Room is where there is some without regard to wishes; and, for who leaves, where kube-scheduler would seat all in its own
order, which may be kinder to a pod with few places than ours. Not for pods that must spread: until their machine is gone it
stands where they count, and the model does not see it.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from growth.cluster.counting import Books
from growth.cluster.snapshot import Demand, Snapshot
from growth.planning.classes import DO_NOT_SCHEDULE
from growth.planning.plan import Filled, Plan
from growth.planning.rehearsal import Stage
from growth.planning.solve import Options

Planner = Callable[[Snapshot, Sequence[Demand], Options], Plan]
Room = Mapping[str, tuple[str, ...]]  # who has a place on a node, by its name


def for_no_wish(
    planned: Planner,
    snapshot: Snapshot,
    demands: Sequence[Demand],
    options: Options,
    *,
    leaving: Set[str],
    virtual: Set[str],
) -> Plan:
    """What `planned` makes of the demands; or, where that is cheaper and leaves nobody out, of those without the pods that
    have room. `leaving` and `virtual` are such pods, by key.
    """
    plan = planned(snapshot, demands, options)
    modest = leaving | virtual
    if not any(key in modest for claim in plan.claims for key in claim.pods):
        return plan
    up = {node.name for node in snapshot.nodes if node.initialized}
    rooms: list[Room] = []
    if options.respect_preferences:
        content = planned(snapshot, demands, dataclasses.replace(options, respect_preferences=False)).filled
        places = ((key, each.name) for each in content for key in each.pods)
        rooms.append(_room(places, up, there=modest, anywhere=virtual))
    if options.rehearse:
        free = {each.key for each in demands if each.key in leaving and not _must_spread(each)}
        rooms.append(_room(Stage(snapshot, demands).rehearse(()).order if free else (), up, there=free))
    best = plan
    for room in filter(None, rooms):
        settled = {key: name for name, keys in room.items() for key in keys}
        rest = [each for each in demands if each.key not in settled]
        other = planned(_holding(snapshot, demands, room), rest, options)
        if other.hourly < best.hourly and len(other.unplaced) <= len(plan.unplaced):
            best = _together(other, room, settled)
    return best


def _room(
    places: Iterable[tuple[str, str | int]], up: Set[str], *, there: Set[str], anywhere: Set[str] = frozenset()
) -> Room:
    """Of all places those of `there` on nodes that are up, and those of `anywhere`."""
    found: dict[str, tuple[str, ...]] = {}
    for key, name in places:
        if isinstance(name, str) and key in (there if name in up else anywhere):
            found[name] = (*found.get(name, ()), key)
    return found


def _must_spread(demand: Demand) -> bool:
    return any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in demand.shape.spec.topology_spread_constraints)


def _together(plan: Plan, room: Room, settled: Mapping[str, str]) -> Plan:
    filled = dict(room)
    for each in plan.filled:
        filled[each.name] = (*filled.get(each.name, ()), *each.pods)
    return dataclasses.replace(
        plan,
        filled=tuple(Filled(name, keys) for name, keys in sorted(filled.items())),
        order=(*settled.items(), *plan.order),
    )


def _holding(snapshot: Snapshot, demands: Sequence[Demand], room: Room) -> Snapshot:
    """With pods on nodes as if they were bound there, by the node's name."""
    shapes = {each.key: each.shape for each in demands}
    books = Books()
    nodes = tuple(
        books.holding(node, [shapes[key] for key in room[node.name]]) if node.name in room else node
        for node in snapshot.nodes
    )
    return dataclasses.replace(snapshot, nodes=nodes)
