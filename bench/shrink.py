"""Makes a failing cluster as small as it stays failing: pods, nodes, pools, types and single fields go one by one."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bench.clusters import Cluster
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand
from growth.planning.solve import solve
from growth.sim.judge import judge


def broken(made: Cluster) -> frozenset[str]:
    """The rules that the cluster's plan breaks."""
    try:
        plan = solve(made.snapshot, made.demands)
    except Exception as error:  # noqa: BLE001 - a crash is a finding like any other
        return frozenset({f"crash {type(error).__name__}"})
    return frozenset(
        f"{complaint.rule} {complaint.message.split(': ')[1].split(':')[0] if complaint.rule == 'placement' else ''}".strip()
        for complaint in judge(made.snapshot, made.demands, plan)
    )


def shrunk(made: Cluster, rule: str) -> Cluster:
    """The smallest cluster found that still breaks the rule."""
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(made):
            if rule in broken(smaller):
                made = smaller
                progress = True
                break
    return made


def _smaller(made: Cluster) -> Iterator[Cluster]:
    snapshot = made.snapshot
    for size in (len(made.demands) // 2, 1):
        for at in range(0, len(made.demands), max(1, size)):
            yield dataclasses.replace(made, demands=made.demands[:at] + made.demands[at + max(1, size) :])
    for field in ("nodes", "pools", "daemons"):
        values = getattr(snapshot, field)
        for at in range(len(values)):
            yield _with(made, **{field: values[:at] + values[at + 1 :]})
    for at, pool in enumerate(snapshot.pools):
        for change in _fields(pool, ("requirements", "taints", "startup_taints", "instance_types")):
            yield _with(made, pools=(*snapshot.pools[:at], change, *snapshot.pools[at + 1 :]))
        for name in ("labels", "limits", "used", "type_max", "type_used", "priorities"):
            for key in getattr(pool, name):
                rest: Any = {other: value for other, value in getattr(pool, name).items() if other != key}
                fewer = dataclasses.replace(pool, **{name: rest})
                yield _with(made, pools=(*snapshot.pools[:at], fewer, *snapshot.pools[at + 1 :]))
        for which, kind in enumerate(pool.instance_types):
            for change in _fields(kind, ("offerings",)):
                types = (*pool.instance_types[:which], change, *pool.instance_types[which + 1 :])
                yield _with(
                    made,
                    pools=(
                        *snapshot.pools[:at],
                        dataclasses.replace(pool, instance_types=types),
                        *snapshot.pools[at + 1 :],
                    ),
                )
    for at, node in enumerate(snapshot.nodes):
        for which in range(len(node.pods)):
            change = dataclasses.replace(node, pods=node.pods[:which] + node.pods[which + 1 :])
            yield _with(made, nodes=(*snapshot.nodes[:at], change, *snapshot.nodes[at + 1 :]))
        for key in node.labels:
            labels = {other: value for other, value in node.labels.items() if other != key}
            change = dataclasses.replace(node, labels=labels)
            yield _with(made, nodes=(*snapshot.nodes[:at], change, *snapshot.nodes[at + 1 :]))
        if node.taints:
            yield _with(
                made,
                nodes=(*snapshot.nodes[:at], dataclasses.replace(node, taints=()), *snapshot.nodes[at + 1 :]),
            )
    shapes = {id(demand.shape): demand.shape for demand in made.demands}
    shapes.update({id(shape): shape for node in snapshot.nodes for shape, _ in node.pods})
    for shape in shapes.values():
        for simpler in _simpler(shape):
            yield _swapped(made, shape, simpler)


def _fields(value: Any, names: tuple[str, ...]) -> Iterator[Any]:
    for name in names:
        many = getattr(value, name)
        for at in range(len(many)):
            yield dataclasses.replace(value, **{name: many[:at] + many[at + 1 :]})


def _with(made: Cluster, **changes: Any) -> Cluster:
    return dataclasses.replace(made, snapshot=dataclasses.replace(made.snapshot, **changes))


def _swapped(made: Cluster, old: PodShape, new: PodShape) -> Cluster:
    swap: Callable[[PodShape], PodShape] = lambda shape: new if shape is old else shape  # noqa: E731 - used twice below
    demands = tuple(Demand(each.key, swap(each.shape)) for each in made.demands)
    nodes = tuple(
        dataclasses.replace(node, pods=tuple((swap(shape), number) for shape, number in node.pods))
        for node in made.snapshot.nodes
    )
    return dataclasses.replace(made, demands=demands, snapshot=dataclasses.replace(made.snapshot, nodes=nodes))


def _simpler(shape: PodShape) -> Iterator[PodShape]:
    """The shape without one of the things that it asks for."""
    for spec in _simpler_struct(shape.spec):
        yield PodShape(namespace=shape.namespace, labels=shape.labels, spec=spec)
    for key in shape.labels:
        labels = {other: value for other, value in shape.labels.items() if other != key}
        yield PodShape(namespace=shape.namespace, labels=labels, spec=shape.spec)


def _simpler_struct(value: Any) -> Iterator[Any]:
    """The struct with one field empty, or one of its parts simpler."""
    for name in value.__struct_fields__:
        part = getattr(value, name)
        if isinstance(part, tuple) and part:
            for at in range(len(part)):
                yield msgspec.structs.replace(value, **{name: part[:at] + part[at + 1 :]})
                if isinstance(part[at], msgspec.Struct):
                    for simpler in _simpler_struct(part[at]):
                        yield msgspec.structs.replace(value, **{name: (*part[:at], simpler, *part[at + 1 :])})
        elif isinstance(part, dict) and part:
            for key in part:
                yield msgspec.structs.replace(value, **{name: {k: v for k, v in part.items() if k != key}})
        elif isinstance(part, msgspec.Struct):
            if name not in {"pod_affinity_term", "preference"} and name != "label_selector":
                try:
                    yield msgspec.structs.replace(value, **{name: None})
                except TypeError:
                    continue
            for simpler in _simpler_struct(part):
                yield msgspec.structs.replace(value, **{name: simpler})


def told(made: Cluster) -> str:
    """The cluster in a few lines."""
    lines = []
    for pool in made.snapshot.pools:
        rules = [f"{r.key} {r.operator} {list(r.values)} min {r.min_values}" for r in pool.requirements]
        lines.append(
            f"pool {pool.ref} weight {pool.weight} requirements {rules} labels {dict(pool.labels)} taints {_short(pool.taints)}"
            f" startup {_short(pool.startup_taints)} limits {dict(pool.limits)} used {dict(pool.used)} max {dict(pool.type_max)}"
            f" type_used {dict(pool.type_used)} priorities {dict(pool.priorities)} {pool.problem}"
        )
        lines += [
            f"  type {k.name} {dict(k.labels)} {dict(k.capacity)} volumes {dict(k.volume_limits)}"
            for k in pool.instance_types
        ]
        lines += [
            f"    {o.zone} {o.capacity_type} {o.price} {dict(o.labels)} {o.reservation} {o.reservation_capacity}"
            for k in pool.instance_types
            for o in k.offerings
            if o.available and o.price is not None
        ]
    for node in made.snapshot.nodes:
        lines.append(f"node {node.name} {dict(node.labels)} taints {_short(node.taints)} {dict(node.allocatable)}")
        lines += [f"  {n} × {s.namespace} {s.labels} {_short(s.spec)}" for s, n in node.pods]
    lines += [f"daemon {_short(pod.spec)}" for pod in made.snapshot.daemons]
    lines += [f"pod {d.key} {d.shape.labels} {_short(d.shape.spec)}" for d in made.demands]
    return "\n".join(lines)


def _short(value: Any) -> str:
    return msgspec.json.encode(value).decode().replace("DuringSchedulingIgnoredDuringExecution", "")
