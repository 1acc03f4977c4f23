"""The plan played through: each pod bound where the plan says, by the rules of kube-scheduler, in the recorded order.

All planned machines are there from the beginning, empty. Beside the placements themselves three promises are looked
at, for pods without preferences (with them a pod may pass over a place that would do): a machine is bought only if no
existing node and no machine bought before takes the pod; it is bought in the first pool that can hold the pod; and a pod
stays unplaced only if nothing can hold it. In judging these, one empty machine of every offering stands by: a spread
counts the domains that could come to be, too.
"""

from collections.abc import Iterator

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.pods import Pod
from growth.cluster.snapshot import PoolView
from growth.planning.plan import Plan, PlannedClaim
from growth.sim.judge.complaint import Complaint
from growth.sim.judge.preferences import preferring
from growth.sim.judge.stage import Stage, expressions, unsettled
from growth.sim.predicates import refusals
from growth.sim.predicates.hosts import Host
from growth.sim.predicates.of_volumes import of_volumes
from growth.sim.predicates.on_one_node import on_one_node

Probe = tuple[PoolView, InstanceType, Host]


def replay(stage: Stage, plan: Plan) -> Iterator[Complaint]:
    existing = stage.existing()
    planned = [_planned(stage, claim, number) for number, claim in enumerate(plan.claims)]
    scene = stage.scene([*existing, *planned])
    hosts: dict[str | int, Host] = {host.name: host for host in existing} | dict(enumerate(planned))
    probes = _probes(stage)
    opened: set[str | int] = set()
    for key, place in plan.order:
        pod, host = stage.pods[key], hosts[place]
        for refusal in refusals(pod, host, scene):
            yield Complaint("placement", key, f"on {host.name}: {refusal}")
        if isinstance(place, int):
            yield from _asked(stage, pod, key, plan.claims[place])
            if place not in opened and not preferring(stage, pod):
                yield from _opening(stage, plan, pod, key, place, existing, planned, probes, opened)
            opened.add(place)
        host.pods.append(pod)
    for each in plan.unplaced:
        pod = stage.pods[each.pod]
        if not pod.spec.resource_claims and not pod.spec.scheduling_group:
            yield from _left(stage, pod, each.pod, existing, planned, probes)


def _planned(stage: Stage, claim: PlannedClaim, number: int) -> Host:
    pool = stage.pools[claim.pool]
    kind = next((kind for kind in pool.instance_types if kind.name == claim.instance_type), None)
    if kind is None:
        kind = InstanceType(name=claim.instance_type, labels={}, capacity={}, offerings=())
    left = {
        key: values
        for offering in kind.offerings
        if (offering.zone, offering.capacity_type) == (claim.zone, claim.capacity_type)
        for key, values in unsettled(kind, offering, claim.labels).items()
    }
    return stage.bought(f"planned-{number}", pool, kind, claim.labels, open_labels=left)


def _asked(stage: Stage, pod: Pod, key: str, claim: PlannedClaim) -> Iterator[Complaint]:
    """A growth pool other than the default one is used only by pods that name it."""
    if by_name(claim.pool.group, claim.pool.name) and not names_pool(pod):
        yield Complaint("pool", key, f"does not ask for {claim.pool}")


def by_name(group: str, name: str) -> bool:
    return group == names.GROWTH and name != names.DEFAULT_POOL


def names_pool(pod: Pod) -> bool:
    return names.POOL_LABEL in pod.spec.node_selector or any(
        each.key == names.POOL_LABEL for each in expressions(pod.spec)
    )


def _probes(stage: Stage) -> list[Probe]:
    """One empty machine of each offering, pools in the order in which they are asked."""
    found: list[Probe] = []
    order = sorted(stage.snapshot.pools, key=lambda pool: (pool.ref.group != names.KARPENTER, -pool.weight))
    for pool in order:
        if pool.problem:
            continue
        for kind in sorted(pool.instance_types, key=lambda kind: -pool.priorities.get(kind.name, 0)):
            for offering in kind.offerings:
                if offering.price is None or not offering.available:
                    continue
                found.extend(
                    (pool, kind, stage.bought(f"probe-{len(found) + at}", pool, kind, labels))
                    for at, labels in enumerate(stage.machines(pool, kind, offering))
                )
    return found


def _takes(stage: Stage, pod: Pod, hosts: list[Host], everything: list[Host]) -> Host | None:
    """The first of the hosts to which the pod could be bound."""
    scene = stage.scene(everything)
    for host in hosts:
        if not any(on_one_node(pod, host)) and not refusals(pod, host, scene):
            return host
    return None


def _opening(
    stage: Stage,
    plan: Plan,
    pod: Pod,
    key: str,
    place: int,
    existing: list[Host],
    planned: list[Host],
    probes: list[Probe],
    opened: set[str | int],
) -> Iterator[Complaint]:
    """Was it right to buy this machine for the pod?"""
    everything = [*existing, *(planned[each] for each in sorted(opened, key=str) if isinstance(each, int))]
    everything += [host for _, _, host in probes]
    host = _takes(stage, pod, existing, everything)
    if host is not None:
        yield Complaint("existing first", key, f"{host.name} has a place for it, and claim {place} was opened")
    claim = plan.claims[place]
    for other in sorted(each for each in opened if isinstance(each, int)):
        pool = stage.pools[plan.claims[other].pool]
        if not bounded(pool) and _usable(pool, pod) and _takes(stage, pod, [planned[other]], everything) is not None:
            yield Complaint("planned first", key, f"claim {other} has a place for it, and claim {place} was opened")
    mine = stage.pools[claim.pool]
    for pool, kind, host in probes:
        if not _before(pool, kind, mine, claim.instance_type):
            continue
        if bounded(pool) or not _usable(pool, pod):
            continue
        if _takes(stage, pod, [host], everything) is not None and _flexible(stage, pod, pool, probes):
            yield Complaint(
                "weights", key, f"{pool.ref} could hold it as {kind.name}, and {claim.pool} is asked after it"
            )
            return


def _before(pool: PoolView, kind: InstanceType, mine: PoolView, chosen: str) -> bool:
    """Whether the pool, or the type's priority in it, comes before the one that was chosen."""
    if pool is mine:
        return pool.priorities.get(kind.name, 0) > pool.priorities.get(chosen, 0)
    rank = (pool.ref.group != names.KARPENTER, -pool.weight)
    return rank < (mine.ref.group != names.KARPENTER, -mine.weight)


def bounded(pool: PoolView) -> bool:
    """Whether something else than the pod can bar the pool: what was left of its limits at that moment is not replayed."""
    reserved = any(o.capacity_type == names.RESERVED for kind in pool.instance_types for o in kind.offerings)
    return bool(pool.limits or pool.type_max or reserved)


def _usable(pool: PoolView, pod: Pod) -> bool:
    if by_name(pool.ref.group, pool.ref.name) and not names_pool(pod):
        return False
    if pool.ref.group != names.GROWTH:
        return True
    sold = {value for kind in pool.instance_types for value in kind.labels.get(names.ARCH_LABEL, ())}
    return len(sold) < 2 or names.ARCH_LABEL in pod.spec.node_selector


def _flexible(stage: Stage, pod: Pod, pool: PoolView, probes: list[Probe]) -> bool:
    """Whether the offerings that hold the pod alone still have as many values as the pool asks for."""
    scene = stage.scene([])
    alone = [
        host.labels
        for mine, _, host in probes
        if mine is pool and not any(on_one_node(pod, host)) and not any(of_volumes(pod, host, scene))
    ]
    for requirement in pool.requirements:
        if requirement.min_values:
            values = {labels[requirement.key] for labels in alone if requirement.key in labels}
            if len(values) < requirement.min_values:
                return False
    return True


def _left(
    stage: Stage, pod: Pod, key: str, existing: list[Host], planned: list[Host], probes: list[Probe]
) -> Iterator[Complaint]:
    """Is there really no place for it?"""
    everything = [*existing, *planned, *(host for _, _, host in probes)]
    host = _takes(stage, pod, existing, everything)
    if host is not None:
        yield Complaint("unplaced", key, f"{host.name} has a place for it")
    for pool, _, probe in probes:
        if bounded(pool) or not _usable(pool, pod):
            continue
        if _takes(stage, pod, [probe], everything) is not None and _flexible(stage, pod, pool, probes):
            yield Complaint("unplaced", key, f"a new machine of {pool.ref} could hold it")
            return
