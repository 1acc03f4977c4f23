"""The plan played through: each pod bound where the plan says, by the rules of kube-scheduler, in the recorded order.

All planned machines are there from the beginning, empty. Beside the placements themselves three promises are looked
at, for pods without preferences (with them a pod may pass over a place that would do): a machine is bought only if no
existing node and (for first fit) no machine bought before takes the pod; it is bought in the first pool that can hold the pod; and a pod
stays unplaced only if nothing can hold it. In judging these, one empty machine of every offering stands by: a spread
counts the domains that could come to be, too.
"""

from collections.abc import Iterator

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.pods import Pod
from growth.cluster.snapshot import PoolView
from growth.planning.plan import Filter, Plan, PlannedClaim
from growth.sim.judge.complaint import Complaint
from growth.sim.judge.pinned import pinned_keys
from growth.sim.judge.preferences import preferring
from growth.sim.judge.stage import Stage, expressions, unsettled
from growth.sim.predicates import refusals
from growth.sim.predicates.hosts import Host
from growth.sim.predicates.of_volumes import of_volumes
from growth.sim.predicates.on_one_node import on_one_node

# Who promises to fill the machines that it has before it opens another. Another packer buys by price instead: it may
# leave room on one machine because kube-scheduler, which spreads pods, would leave it there too.
FIRST_FIT = "first-fit"

Probe = tuple[PoolView, InstanceType, Host]


class Replay:
    """One plan on its stage."""

    def __init__(self, stage: Stage, plan: Plan) -> None:
        self._stage = stage
        self._plan = plan
        self._existing = stage.existing()
        self._planned = [planned_host(stage, claim, number) for number, claim in enumerate(plan.claims)]
        self._probes = _probes(stage)
        self._opened: list[int] = []

    def complaints(self) -> Iterator[Complaint]:
        scene = self._stage.scene([*self._existing, *self._planned])
        hosts: dict[str | int, Host] = {host.name: host for host in self._existing} | dict(enumerate(self._planned))
        for key, place in self._plan.order:
            pod, host = self._stage.pods[key], hosts[place]
            for refusal in refusals(pod, host, scene):
                yield Complaint("placement", key, f"on {host.name}: {refusal}")
            if isinstance(place, int):
                claim = self._plan.claims[place]
                if by_name(claim.pool.group, claim.pool.name) and not names_pool(pod):
                    yield Complaint("pool", key, f"does not ask for {claim.pool}")
                if place not in self._opened:
                    if not preferring(self._stage, pod):
                        yield from self._opening(pod, key, place)
                    self._opened.append(place)
            host.pods.append(pod)
        for each in self._plan.unplaced:
            if not {Filter.CAPS, Filter.IN_VAIN} & {
                reason.filter for reason in each.reasons
            }:  # else it was not tried there
                yield from self._left(self._stage.pods[each.pod], each.pod)

    def _everything(self) -> list[Host]:
        """The nodes, the machines bought so far, and one of each that could be bought."""
        bought = [self._planned[at] for at in self._opened]
        return [*self._existing, *bought, *(host for _, _, host in self._probes)]

    def _takes(self, pod: Pod, hosts: list[Host]) -> Host | None:
        """The first of the hosts to which the pod could be bound."""
        everything = self._everything()
        for host in hosts:
            if any(on_one_node(pod, host)):
                continue
            # A new node is always possible: to a spread over hosts there is always an empty one.
            empty = Host(name="empty", labels={**host.labels, names.HOSTNAME_LABEL: "empty"}, taints=host.taints)
            if not refusals(pod, host, self._stage.scene([*everything, empty])):
                return host
        return None

    def _opening(self, pod: Pod, key: str, place: int) -> Iterator[Complaint]:
        """Was it right to buy this machine for the pod?"""
        if _shares_a_host(pod):
            return  # what counts for the first of a group is whether all of it fits, and that is the plan's to know
        host = self._takes(pod, self._existing)
        if host is not None:
            yield Complaint("existing first", key, f"{host.name} has a place for it, and claim {place} was opened")
        claim = self._plan.claims[place]
        for other in self._opened if self._plan.packer == FIRST_FIT else ():
            pool = self._stage.pools[self._plan.claims[other].pool]
            flexible = any(each.min_values for each in pool.requirements)  # one more pod may cost it a value
            if not flexible and _plain(pool, pod) and self._takes(pod, [self._planned[other]]) is not None:
                yield Complaint("planned first", key, f"claim {other} has a place for it, and claim {place} was opened")
        mine = self._stage.pools[claim.pool]
        better = self._buyable(pod, [probe for probe in self._probes if _before(probe, mine, claim.instance_type)])
        if better is not None:
            pool, kind, _ = better
            yield Complaint("weights", key, f"{pool.ref} could hold it as {kind.name} and comes before {claim.pool}")

    def _left(self, pod: Pod, key: str) -> Iterator[Complaint]:
        """Is there really no place for it?"""
        if pod.spec.resource_claims or pod.spec.scheduling_group:
            return
        host = self._takes(pod, self._existing)
        if host is not None:
            yield Complaint("unplaced", key, f"{host.name} has a place for it")
        probe = self._buyable(pod, self._probes)
        if probe is not None:
            yield Complaint("unplaced", key, f"a new machine of {probe[0].ref} could hold it")

    def _buyable(self, pod: Pod, probes: list[Probe]) -> Probe | None:
        """The first of the machines that could be bought for the pod alone."""
        for probe in probes:
            pool, _, host = probe
            if _plain(pool, pod) and self._takes(pod, [host]) is not None and self._flexible(pod, pool):
                return probe
        return None

    def _flexible(self, pod: Pod, pool: PoolView) -> bool:
        """Whether the offerings that hold the pod alone still have as many values as the pool asks for."""
        wanted = [each for each in pool.requirements if each.min_values]
        if not wanted:
            return True
        scene = self._stage.scene([])
        alone = [
            host.labels
            for mine, _, host in self._probes
            if mine is pool and not any(on_one_node(pod, host)) and not any(of_volumes(pod, host, scene))
        ]
        return all(
            len({labels[each.key] for labels in alone if each.key in labels}) >= (each.min_values or 0)
            for each in wanted
        ) and not (pod.spec.volumes or pinned_keys(self._stage, [pod], everybody=True))  # which narrow it further


def replay(stage: Stage, plan: Plan) -> Iterator[Complaint]:
    return Replay(stage, plan).complaints()


def planned_host(stage: Stage, claim: PlannedClaim, number: int) -> Host:
    """The machine that the plan expects, empty but for its DaemonSets."""
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


def _before(probe: Probe, mine: PoolView, chosen: str) -> bool:
    """Whether the pool, or the type's priority in it, comes before the one that was chosen."""
    pool, kind, _ = probe
    if pool is mine:
        return pool.priorities.get(kind.name, 0) > pool.priorities.get(chosen, 0)
    rank = (pool.ref.group != names.KARPENTER, -pool.weight)
    return rank < (mine.ref.group != names.KARPENTER, -mine.weight)


def _shares_a_host(pod: Pod) -> bool:
    """Whether the pod must be on the same node as others."""
    affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    return any(term.topology_key == names.HOSTNAME_LABEL for term in terms)


def _plain(pool: PoolView, pod: Pod) -> bool:
    """Whether nothing but the pod's own rules decides: what was left of limits at a moment is not replayed.

    A growth pool is asked by name unless it is the default one, and gives pods that name no architecture its first.
    """
    if pool.limits or pool.type_max:
        return False
    if any(o.capacity_type == names.RESERVED for kind in pool.instance_types for o in kind.offerings):
        return False
    if pool.ref.group != names.GROWTH:
        return True
    if by_name(pool.ref.group, pool.ref.name) and not names_pool(pod):
        return False
    sold = {value for kind in pool.instance_types for value in kind.labels.get(names.ARCH_LABEL, ())}
    return len(sold) < 2 or names.ARCH_LABEL in pod.spec.node_selector


def by_name(group: str, name: str) -> bool:
    """Whether only pods that name the pool may use it."""
    return group == names.GROWTH and name != names.DEFAULT_POOL


def names_pool(pod: Pod) -> bool:
    return names.POOL_LABEL in pod.spec.node_selector or any(
        each.key == names.POOL_LABEL for each in expressions(pod.spec)
    )
