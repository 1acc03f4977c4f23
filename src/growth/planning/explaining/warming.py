"""What growth pools buy without any pod: what is missing to the `min` of their types. Pure.

It is bought at once, so that a plan for pods finds it on its way: pods go there before anything is bought for them.
"""

import dataclasses
from collections.abc import Iterable, Mapping

from growth.api import names
from growth.api.growthpools import GrowthPool, NodeRequest, NodeRequestSpec, ServerType
from growth.api.instance_types import InstanceType
from growth.api.meta import ObjectMeta
from growth.api.pools import PoolRef
from growth.cluster.attachments import Attachments
from growth.cluster.counting import Books
from growth.cluster.machines import machines
from growth.cluster.node_requests import claim_to_come, offering_name
from growth.cluster.pricing import by_name
from growth.cluster.snapshot import NODES, NodeView, PoolView, Snapshot
from growth.planning.plan import Plan, PlannedClaim


@dataclasses.dataclass(frozen=True, slots=True)
class Warm:
    """One machine, as it is planned on, and as what is to be bought."""

    view: NodeView
    planned: PlannedClaim


def missing(snapshot: Snapshot, pools: Iterable[GrowthPool]) -> dict[str, Warm]:
    """What the pools lack and may buy now, by names of their own; `limits.nodes` counts more than `min`."""
    views = {view.ref: view for view in snapshot.pools}
    found: dict[str, Warm] = {}
    for pool in pools:
        view = views.get(PoolRef.growth(pool.metadata.name))
        if view is None or view.problem:
            continue
        sold = by_name(view.instance_types)
        room = view.limits[NODES] - view.used.get(NODES, 0) if NODES in view.limits else None
        for each in pool.spec.server_types:
            kind = sold.get(each.name.lower())
            if (
                not each.min
                or kind is None
                or not any(one.available and one.price is not None for one in kind.offerings)
            ):
                continue
            short = max(0, each.min - view.type_used.get(kind.name, 0))
            if room is not None:
                short = min(short, max(0, room))
                room -= short
            for number in range(short):
                warm = _warm(snapshot, pool, each, kind, number)
                if warm is not None:
                    found[warm.view.name] = warm
    return found


def _warm(snapshot: Snapshot, pool: GrowthPool, asked: ServerType, kind: InstanceType, number: int) -> Warm | None:
    """As the request for it would count. None where a quantity of the pool's or the cloud's cannot be read."""
    name = f"{pool.metadata.name}-pool-min-{kind.name.lower()}-{number}"
    spec = NodeRequestSpec(target_offering=offering_name("any", kind.name), pool=pool.metadata.name)
    claim = claim_to_come(NodeRequest(metadata=ObjectMeta(name=name), spec=spec), pool)
    types = by_name((kind,))
    (machine,) = machines((), (claim,), types)
    view = Books().count(machine, (), attachments=Attachments(snapshot.volumes), types=types).view
    if view is None or view.price is None:
        return None
    return Warm(
        view,
        PlannedClaim(
            pool=PoolRef.growth(pool.metadata.name),
            instance_type=kind.name,
            zone=view.labels.get(names.ZONE_LABEL, ""),
            capacity_type=view.labels.get(names.CAPACITY_TYPE_LABEL, ""),
            price=view.price,
            max_price=max((one.price for one in kind.offerings if one.price is not None), default=view.price),
            lowest_max_price=view.price,
            instance_types=(kind.name,),
            requirements={},
            labels=view.labels,
            requests={},
            least_requests={},
            pods=(),
            next_best=None,
            kept=asked.min,
        ),
    )


def on_their_way(snapshot: Snapshot, warm: Mapping[str, Warm]) -> Snapshot:
    """The snapshot with those machines on their way; they count against their pools' limits."""
    if not warm:
        return snapshot
    pools = tuple(_with(view, [each.planned for each in warm.values()]) for view in snapshot.pools)
    return dataclasses.replace(snapshot, pools=pools, nodes=(*snapshot.nodes, *(each.view for each in warm.values())))


def _with(view: PoolView, planned: Iterable[PlannedClaim]) -> PoolView:
    own = [each.instance_type for each in planned if each.pool == view.ref]
    if not own:
        return view
    types = dict(view.type_used)
    for name in own:
        types[name] = types.get(name, 0) + 1
    return dataclasses.replace(view, used={**view.used, NODES: view.used.get(NODES, 0) + len(own)}, type_used=types)


def as_bought(plan: Plan, warm: Mapping[str, Warm], *, node_cost: int = 0) -> Plan:
    """A plan that was made with those machines on their way, as the purchases that it comes to.

    They cost what they cost in every plan, so that the lower bound rises by as much as the plan.
    """
    if not warm:
        return plan
    pods = {filled.name: filled.pods for filled in plan.filled}
    at = {name: len(plan.claims) + number for number, name in enumerate(warm)}
    more = sum(each.planned.price for each in warm.values())
    nodes = node_cost * len(warm)
    return dataclasses.replace(
        plan,
        claims=(
            *plan.claims,
            *(dataclasses.replace(each.planned, pods=pods.get(name, ())) for name, each in warm.items()),
        ),
        filled=tuple(filled for filled in plan.filled if filled.name not in warm),
        order=tuple((pod, at.get(place, place) if isinstance(place, str) else place) for pod, place in plan.order),
        planned=plan.planned + more,
        rehearsed=None if plan.rehearsed is None else plan.rehearsed + more,
        objective=None if plan.objective is None else plan.objective + more + nodes,
        lower_bound=None if plan.lower_bound is None else plan.lower_bound + more + nodes,
    )
