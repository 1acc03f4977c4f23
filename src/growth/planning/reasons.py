"""Why a pod found no place: for each pool the first rule that kept it out, with the nearest miss. Built only for what stays
unplaced.
"""

from collections.abc import Callable, Mapping, Sequence, Set

from growth.api.pools import PoolRef
from growth.api.requests import Port
from growth.cluster.snapshot import NODES, PoolView
from growth.planning.attempts import open_to, without_ports
from growth.planning.classes import PodClass, Variant
from growth.planning.ledger import Ledger
from growth.planning.offerings import Constraint, Constraints, Shelf, State
from growth.planning.plan import Filter, Reason
from growth.planning.taints import untolerated
from growth.units.resources import print_amount


class Explainer:
    """Asks the pools once more, one rule at a time."""

    def __init__(
        self,
        pools: Sequence[PoolView],
        shelves: Sequence[Shelf],
        ledgers: Mapping[PoolRef, Ledger],
        constraints: Constraints,
        *,
        resources: Sequence[str],
        daemon_ports: Mapping[Shelf, Sequence[tuple[frozenset[Port], int]]],
        whole: Callable[[PoolView], Shelf],
        in_use: Set[tuple[str, str]],
    ) -> None:
        self._in_use = in_use
        self._pools = pools
        self._shelves = shelves
        self._ledgers = ledgers
        self._constraints = constraints
        self._resources = resources
        self._daemon_ports = daemon_ports
        self._make_whole = whole
        self._wholes: dict[PoolRef, Shelf] = {}

    def reasons(self, pods: PodClass, *, exhausted: bool) -> tuple[Reason, ...]:
        """One a pool; near-misses (those that passed more rules) first."""
        if pods.refusal is not None:
            return (Reason(None, Filter(pods.refusal[0]), pods.refusal[1]),)
        if pods.volumes.alone & self._in_use:
            claims = ", ".join(f"{namespace}/{name}" for namespace, name in sorted(pods.volumes.alone & self._in_use))
            return (Reason(None, Filter.VOLUMES, f"{claims} is for a single pod (ReadWriteOncePod) and in use"),)
        if exhausted:
            return (Reason(None, Filter.CAPS, "the pass ran out of its budget of work before this pod was tried"),)
        if not self._pools:
            return (Reason(None, Filter.POOL, "there is no NodePool: create one"),)
        found = [self._reason(pool, pods) for pool in self._pools]
        found.sort(key=lambda reason: -_FAR[reason.filter])
        return tuple(found)

    def _reason(self, pool: PoolView, pods: PodClass) -> Reason:
        if pool.problem:
            return Reason(pool.ref, Filter.POOL, pool.problem)
        shelves = [shelf for shelf in self._shelves if shelf.pool is pool]
        if not shelves and not pool.instance_types:
            return Reason(pool.ref, Filter.POOL, "it has no instance types: is its node class there?")
        if not shelves:
            return Reason(pool.ref, Filter.UNAVAILABLE, "none of its offerings can be bought now")
        variant = pods.variants[-1]
        reasons = [self._on_shelf(shelf, pods, variant) for shelf in shelves]
        if None in reasons:
            return Reason(pool.ref, Filter.RESOURCES, "no place was left")
        found = max((reason for reason in reasons if reason), key=lambda reason: _FAR[reason.filter])
        return self._out_of_stock(pool, pods, variant, found) or found

    def _out_of_stock(self, pool: PoolView, pods: PodClass, variant: Variant, found: Reason) -> Reason | None:
        """The reason where the pod would come further if everything could be bought."""
        missing = [
            f"{kind.name} in {offering.zone}"
            for kind in pool.instance_types
            for offering in kind.offerings
            if offering.price is not None and not offering.available
        ]
        if not missing or _FAR[found.filter] > _FAR[Filter.RESOURCES]:
            return None
        if pool.ref not in self._wholes:
            self._wholes[pool.ref] = self._make_whole(pool)
        then = self._on_shelf(self._wholes[pool.ref], pods, variant)
        if then is not None and _FAR[then.filter] <= _FAR[Filter.RESOURCES]:
            return None
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        return Reason(pool.ref, Filter.UNAVAILABLE, f"what could hold it cannot be bought now ({shown})")

    def _on_shelf(self, shelf: Shelf, pods: PodClass, variant: Variant) -> Reason | None:
        """What keeps the pods out of the shelf; None: nothing that can be named."""
        ref = shelf.pool.ref
        for pool, why in pods.backed_off:
            if pool == ref:
                return Reason(ref, Filter.IN_VAIN, why)
        taint = untolerated(pods.tolerations, shelf.pool.taints, soft=False)
        if taint is not None:
            shown = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
            return Reason(ref, Filter.TAINTS, f"taint {shown} is not tolerated")
        if not open_to(shelf, pods, variant):
            return Reason(
                ref, Filter.REQUIREMENTS, f"pods must ask for this pool by the label growth.dev/pool: {ref.name}"
            )
        state = shelf.step(shelf.start, variant.constraint)
        if state is None:
            return Reason(ref, Filter.REQUIREMENTS, self._unmet(shelf, shelf.start, variant.constraint))
        reachable = [shelf.step(state, place) for place in pods.places] or [state]
        if all(each is None for each in reachable):
            return Reason(ref, Filter.VOLUMES, f"volumes: {self._unmet(shelf, state, pods.places[0])}")
        state = next(each for each in reachable if each is not None)
        mask = state.mask
        short = self._short(shelf, state, pods)
        if short:
            return Reason(ref, Filter.RESOURCES, short)
        for resource, amount in pods.needs:
            mask &= shelf.with_room(resource, amount)
        mask = without_ports(self._daemon_ports.get(shelf, ()), pods.ports, mask)
        if not mask:
            return Reason(ref, Filter.PORTS, "a DaemonSet binds one of the pod's host ports on every node")
        crowded = self._crowded(shelf, mask, pods)
        if crowded:
            return Reason(ref, Filter.VOLUMES, crowded)
        rigid = shelf.too_rigid(state, mask)
        if rigid is not None:
            key, left, needed = rigid
            return Reason(ref, Filter.MIN_VALUES, f"minValues of {key}: {left} left for this pod, {needed} needed")
        limited = self._limited(shelf, state, mask)
        if limited:
            return Reason(ref, Filter.LIMITS, limited)
        rules = (*variant.rules, *pods.kept_away)
        if rules:
            texts = " and ".join(dict.fromkeys(group.text for group in rules))
            return Reason(ref, Filter.TOPOLOGY, f"{texts} leaves no place")
        return None

    def _unmet(self, shelf: Shelf, state: State, constraint: Constraint) -> str:
        """Which label keeps them apart, and what each side says."""
        for key, asked in sorted(constraint.requirements.items()):
            if shelf.step(state, self._constraints.of({key: asked})) is not None:
                continue
            held = state.requirements.get(key)
            if held is None and not shelf.known(key):
                return f"label {key}: the pod asks for {asked}, and no node of the pool has it"
            if held is None:
                return (
                    f"label {key}: the pod asks for {asked}, and no offering has it (it has {self._have(shelf, key)})"
                )
            return f"label {key}: the pod asks for {asked}, and the pool allows {held}"
        return "no offering has all the labels that the pod asks for at once"

    def _have(self, shelf: Shelf, key: str) -> str:
        values = shelf.values(key, shelf.start, shelf.start.mask)
        return ", ".join(values[:5]) + (" …" if len(values) > 5 else "") if values else "none"

    def _short(self, shelf: Shelf, state: State, pods: PodClass) -> str:
        """The resource that runs out, and the most that any option offers of it; empty when all fit."""
        together = state.mask
        for resource, amount in pods.needs:
            if not state.mask & shelf.with_room(resource, amount):
                name = self._resources[resource]
                most = max(
                    (
                        shelf.options[at].type.allocatable.get(name, 0) - shelf.overhead(at).get(name, 0)
                        for at in shelf.indices(state.mask)
                    ),
                    default=0,
                )
                largest = f"the largest offers {print_amount(name, max(0, most))}" if most > 0 else "none offers it"
                return f"needs {print_amount(name, amount)} {name}, {largest}"
            together &= shelf.with_room(resource, amount)
        if together:
            return ""
        wanted = ", ".join(
            f"{print_amount(self._resources[at], amount)} {self._resources[at]}" for at, amount in pods.needs
        )
        return f"no single type has {wanted} at once"

    def _crowded(self, shelf: Shelf, mask: int, pods: PodClass) -> str:
        """The driver of which the pod has more volumes than any option attaches; empty where one takes them all."""
        for driver in sorted({*pods.volumes.attach, *pods.volumes.fresh}):
            count = len(pods.volumes.attach.get(driver, ())) + pods.volumes.fresh.get(driver, 0)
            limits = [option.type.volume_limits.get(driver) for option in shelf.chosen(mask)]
            most = max((limit for limit in limits if limit is not None), default=0)
            if None not in limits and count > most:
                return f"the pod has {count} volumes of {driver}, and no machine attaches more than {most}"
        return ""

    def _limited(self, shelf: Shelf, state: State, mask: int) -> str:
        ledger = self._ledgers[shelf.pool.ref]
        if not ledger.bounded or ledger.within(shelf, state, mask, None) is not None:
            return ""
        left = ledger.nodes_left
        if left is not None and left < 1:
            return f"limits.nodes is reached ({shelf.pool.limits[NODES]})"
        limits = ", ".join(f"{name} {print_amount(name, amount)}" for name, amount in sorted(shelf.pool.limits.items()))
        if limits:
            return f"no machine that could hold it is within the pool's limits ({limits})"
        return "every server type that could hold it is at its max"


# How far a pod came before the rule stopped it.
_FAR: Mapping[Filter, int] = {
    Filter.POOL: 0,
    Filter.UNSUPPORTED: 0,
    Filter.TAINTS: 1,
    Filter.REQUIREMENTS: 2,
    Filter.VOLUMES: 3,
    Filter.UNAVAILABLE: 4,
    Filter.RESOURCES: 5,
    Filter.PORTS: 6,
    Filter.MIN_VALUES: 7,
    Filter.LIMITS: 8,
    Filter.CAPS: 8,
    Filter.TOPOLOGY: 9,
    Filter.IN_VAIN: 10,
}
