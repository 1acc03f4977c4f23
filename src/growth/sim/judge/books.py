"""The books of a plan: everybody once, sums, prices, limits, `minValues`, and types that really would do."""

import collections
from collections.abc import Iterator

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.cluster.snapshot import NODES, PoolView
from growth.planning.plan import Plan, PlannedClaim
from growth.sim.judge.complaint import Complaint
from growth.sim.judge.pinned import pinned_keys
from growth.sim.judge.preferences import preferring, steered
from growth.sim.judge.stage import Stage, expressions, holds_too, pool_label, sold_labels, unsettled
from growth.sim.predicates.hosts import Host, requests
from growth.sim.predicates.of_volumes import of_volumes
from growth.sim.predicates.on_one_node import on_one_node
from growth.units.resources import add

# A claim lists no more types than this, unless `minValues` needs them.
MOST_TYPES = 60


def books(stage: Stage, plan: Plan, *, strict_min_values: bool) -> Iterator[Complaint]:
    for number, claim in enumerate(plan.claims):
        yield from _claim(stage, claim, f"claim {number} of {claim.pool}", strict_min_values=strict_min_values)
    for pool in stage.snapshot.pools:
        yield from _limits(pool, [claim for claim in plan.claims if claim.pool == pool.ref])


def accounts(stage: Stage, plan: Plan) -> Iterator[Complaint]:
    """Every pod is placed once or unplaced once; the order, the claims and the nodes tell the same story."""
    seen = collections.Counter([key for key, _ in plan.order] + [each.pod for each in plan.unplaced])
    for key in {*stage.demands, *seen}:
        if seen[key] != (key in stage.demands):
            yield Complaint("accounts", key, f"is in the plan {seen[key]} times")
    listed: dict[str | int, list[str]] = {each.name: list(each.pods) for each in plan.filled}
    listed.update({number: list(claim.pods) for number, claim in enumerate(plan.claims)})
    told: dict[str | int, list[str]] = {}
    for key, place in plan.order:
        told.setdefault(place, []).append(key)
    for place in dict.fromkeys([*listed, *told]):
        if sorted(listed.get(place, [])) != sorted(told.get(place, [])):
            yield Complaint("accounts", str(place), "its pods differ from those that the order puts there")
    nodes = {node.name for node in stage.snapshot.nodes}
    for place in told:
        if isinstance(place, str) and place not in nodes:
            yield Complaint("accounts", place, "there is no such node")
    for number, claim in enumerate(plan.claims):
        if not claim.pods:
            yield Complaint("accounts", f"claim {number}", "is bought for nobody")
        if claim.pool not in stage.pools:
            yield Complaint("accounts", f"claim {number}", f"there is no pool {claim.pool}")
    if plan.hourly != sum(claim.price for claim in plan.claims):
        yield Complaint("accounts", "plan", "its price is not the sum of its claims")
    if plan.currency != stage.snapshot.currency or plan.revision != stage.snapshot.revision:
        yield Complaint("accounts", "plan", "it is of another snapshot")
    for each in plan.unplaced:
        if not each.reasons:
            yield Complaint("accounts", each.pod, "is unplaced without a reason")


def _claim(stage: Stage, claim: PlannedClaim, where: str, *, strict_min_values: bool) -> Iterator[Complaint]:
    pool = stage.pools.get(claim.pool)
    if pool is None:
        return
    if pool.problem:
        yield Complaint("pool", where, f"the pool is not to be used: {pool.problem}")
    kinds = {kind.name: kind for kind in pool.instance_types}
    chosen = kinds.get(claim.instance_type)
    offering = _offering(chosen, claim)
    if chosen is None or offering is None:
        yield Complaint("offering", where, f"nobody sells {claim.instance_type} in {claim.zone} {claim.capacity_type}")
        return
    yield from (Complaint("labels", where, wrong) for wrong in _labels(pool, chosen, offering, claim))
    host = stage.bought("it", pool, chosen, claim.labels, open_labels=unsettled(chosen, offering, claim.labels))
    pods = [stage.pods[key] for key in claim.pods]
    least = add(*(requests(pod.spec) for pod in (*host.uncounted, *pods)))
    choices = {key: values for key, values in sold_labels(chosen, offering).items() if len(values) > 1}
    wide = stage.bought("it", pool, chosen, claim.labels, open_labels=choices)
    most = add(*(requests(pod.spec) for pod in (*wide.uncounted, *pods)))
    names_ = {*least, *most, *claim.requests}
    if not all(least.get(name, 0) <= claim.requests.get(name, 0) <= most.get(name, 0) for name in names_):
        yield Complaint("requests", where, f"says {dict(claim.requests)}, its pods and DaemonSets ask for {least}")
    if claim.instance_types[:1] != (claim.instance_type,):
        yield Complaint("types", where, f"expects {claim.instance_type} and lists {claim.instance_types[:1]} first")
    if len(set(claim.instance_types)) != len(claim.instance_types):
        yield Complaint("types", where, "lists a type twice")
    yield from _types(stage, pool, claim, where, offering)
    if strict_min_values:
        yield from _min_values(stage, pool, claim, where)


def _offering(kind: InstanceType | None, claim: PlannedClaim) -> Offering | None:
    """The offering that the claim names: available, priced as it says."""
    for offering in kind.offerings if kind else ():
        same = (offering.zone, offering.capacity_type) == (claim.zone, claim.capacity_type)
        if same and offering.available and offering.price == claim.price:
            return offering
    return None


def _labels(pool: PoolView, kind: InstanceType, offering: Offering, claim: PlannedClaim) -> Iterator[str]:
    """The labels are those of the offering and of the pool, and meet the pool's requirements."""
    for key, values in sold_labels(kind, offering).items():
        if len(values) == 1 and claim.labels.get(key) != values[0]:
            yield f"{key} is {claim.labels.get(key)}, the offering's is {values[0]}"
        elif key in claim.labels and claim.labels[key] not in values:
            yield f"{key}={claim.labels[key]} is none of {values}"
    for key, value in pool.labels.items():
        if claim.labels.get(key) != value:
            yield f"lacks the pool's label {key}={value}"
    for requirement in pool.requirements:
        if not holds_too(requirement, claim.labels):
            yield f"breaks the pool's requirement {requirement.key} {requirement.operator}"
    own = names.NODE_POOL_LABEL if pool.ref.group == names.KARPENTER else names.POOL_LABEL
    if claim.labels.get(own) != pool.ref.name:
        yield f"lacks {own}={pool.ref.name}"


def _types(stage: Stage, pool: PoolView, claim: PlannedClaim, where: str, planned: Offering) -> Iterator[Complaint]:
    """Each listed type alone would hold all the pods, and they are listed cheapest first."""
    kinds = {kind.name: kind for kind in pool.instance_types}
    pods = [stage.pods[key] for key in claim.pods]
    prices: list[int] = []
    for name in claim.instance_types:
        if name not in kinds:
            yield Complaint("types", where, f"lists {name}, which the pool does not sell")
            continue
        possible = [
            offering.price
            for offering, host in holding(stage, claim, kinds[name])
            if offering.price is not None
            and (offering.capacity_type != names.RESERVED or planned.capacity_type == names.RESERVED)
        ]
        if not possible:
            yield Complaint("types", where, f"lists {name}, which would not hold its pods")
        elif min(possible) > claim.max_price:
            yield Complaint("types", where, f"lists {name}, which is dearer than the claim may be")
        else:
            prices.append(min(possible))
    unbounded = (
        not (pool.limits or pool.type_max)
        and planned.capacity_type != names.RESERVED
        and not steered(stage)
        and pinned_keys(stage, pods, everybody=True) == pinned_keys(stage, pods)
        and claim.requirements.keys() <= _spoken_of(stage, pool, claim)
        and not any(preferring(stage, stage.pods[key]) for key in claim.pods)
    )
    if unbounded and prices != sorted(prices):
        yield Complaint("types", where, "does not list its types cheapest first")
    if unbounded and prices and not claim.spare and prices[0] != claim.price:
        yield Complaint("types", where, f"costs {claim.price}, but could cost {prices[0]}")
    needs = max((each.min_values or 0 for each in pool.requirements), default=0)
    if len(claim.instance_types) > max(MOST_TYPES, needs) and not needs:
        yield Complaint("types", where, f"lists {len(claim.instance_types)} types")
    if claim.next_best is not None and claim.next_best[0] != (*claim.instance_types, "", "")[1]:
        yield Complaint("types", where, f"the next best {claim.next_best[0]} is not the second listed")


def _spoken_of(stage: Stage, pool: PoolView, claim: PlannedClaim) -> set[str]:
    """The labels that the pool or the claim's pods name. One narrowed beyond them was narrowed for others' sake."""
    pods = [stage.pods[key] for key in claim.pods]
    named = {each.key for each in pool.requirements} | pool.labels.keys() | {pool_label(pool)}
    for pod in pods:
        named |= pod.spec.node_selector.keys() | {each.key for each in expressions(pod.spec)}
    return {names.NORMALISED_LABELS.get(key, key) for key in named} | pinned_keys(stage, pods)


def holding(stage: Stage, claim: PlannedClaim, kind: InstanceType) -> Iterator[tuple[Offering, Host]]:
    """The offerings of the type on which all pods of the claim could run, in the domains that were planned for them."""
    pods = [stage.pods[key] for key in claim.pods]
    pinned = pinned_keys(stage, pods)
    for offering, host in stage.alternatives(claim, kind):
        if any(host.labels.get(key) != claim.labels.get(key) for key in pinned):
            continue
        scene = stage.scene([host])
        for pod in pods:
            if any(on_one_node(pod, host)) or any(of_volumes(pod, host, scene)):
                break
            host.pods.append(pod)
        else:
            yield offering, host


def _min_values(stage: Stage, pool: PoolView, claim: PlannedClaim, where: str) -> Iterator[Complaint]:
    kinds = {kind.name: kind for kind in pool.instance_types}
    wanted: dict[str, int] = {}
    for requirement in pool.requirements:
        if requirement.min_values:
            key = names.NORMALISED_LABELS.get(requirement.key, requirement.key)
            wanted[key] = max(wanted.get(key, 0), requirement.min_values)
    if not wanted:
        return
    sold = [
        sold_labels(kinds[name], offering)
        for name in claim.instance_types
        if name in kinds
        for offering, _ in holding(stage, claim, kinds[name])
        if _payable(claim, offering)
    ]
    for key, needed in wanted.items():
        about = [each for each in pool.requirements if names.NORMALISED_LABELS.get(each.key, each.key) == key]
        values = {value for labels in sold for value in labels.get(key, ())}
        fine = {value for value in values if all(holds_too(each, {key: value}) for each in about)}
        if len(fine) < needed:
            yield Complaint("minValues", where, f"{key} has {len(fine)} values, {needed} are asked for")


def _payable(claim: PlannedClaim, offering: Offering) -> bool:
    """Whether the cloud may launch the claim so: it is told no bound where the prices are people's own."""
    return offering.price is not None and (claim.repriced or offering.price <= claim.max_price)


def _limits(pool: PoolView, claims: list[PlannedClaim]) -> Iterator[Complaint]:
    """Whichever listed types are bought, the pool stays within its limits, its maxima and its reservations."""
    where = f"pool {pool.ref}"
    kinds = {kind.name: kind for kind in pool.instance_types}
    for name, limit in pool.limits.items():
        used = pool.used.get(name, 0)
        if name == NODES:
            total = used + len(claims)
        else:
            total = used + sum(
                max((kinds[each].capacity.get(name, 0) for each in claim.instance_types if each in kinds), default=0)
                for claim in claims
            )
        if claims and total > limit:
            yield Complaint("limits", where, f"{name} could come to {total}, the limit is {limit}")
    for name, most in pool.type_max.items():
        number = sum(name in claim.instance_types for claim in claims)
        if number and pool.type_used.get(name, 0) + number > most:
            yield Complaint(
                "limits", where, f"{number} claims list {name}, {pool.type_used.get(name, 0)} are used, max {most}"
            )
    taken = collections.Counter(
        (claim.instance_type, claim.zone) for claim in claims if claim.capacity_type == names.RESERVED
    )
    free: dict[tuple[str, str], int] = collections.Counter()
    for kind in pool.instance_types:
        for offering in kind.offerings:
            if offering.capacity_type == names.RESERVED:
                free[kind.name, offering.zone] += offering.reservation_capacity
    for (kind_name, zone), number in taken.items():
        if number > free[kind_name, zone]:
            yield Complaint(
                "limits", where, f"{number} reserved {kind_name} in {zone}, {free[kind_name, zone]} are free"
            )
