"""Whether a pool can buy, what it has and may have, and what keeps it."""

import collections
from typing import Final

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.pools import PoolRef
from growth.cluster.snapshot import NODES, PoolView
from growth.planning.explaining import widening
from growth.planning.explaining.applying import CannotApply, applied
from growth.planning.explaining.explanation import Explanation, Tried
from growth.planning.explaining.mending import of_the_pool
from growth.planning.explaining.remedies import Remedy
from growth.planning.explaining.scene import Scene
from growth.planning.plan import Filter
from growth.units.money import Money, print_hourly
from growth.units.resources import amount_of, print_amount

READY: Final = "Ready"
CANNOT_BUY: Final = "CannotBuy"
LIMIT: Final = "Limits"
NOTHING_SOLD: Final = "NothingSold"
TOLD: Final = 3


def explained(scene: Scene, ref: PoolRef) -> Explanation:
    """Of the pool; `KeyError` where there is none."""
    pool, view = scene.pools[ref], scene.views[ref]
    notes = _notes(scene, ref)
    remedies: tuple[Remedy, ...] = ()
    full = _full(view)
    sold = [
        (offering.price, kind.name)
        for kind in view.instance_types
        for offering in kind.offerings
        if offering.price is not None and offering.available
    ]
    if view.problem:
        cause, verdict = CANNOT_BUY, f"buys nothing because {view.problem}"
        remedies = _repairs(scene, ref)
    elif not sold:
        cause, verdict = NOTHING_SOLD, "buys nothing because the cloud sells none of its types now"
    elif full:
        cause, verdict = LIMIT, f"buys nothing more because {full}"
        remedies = _raised(scene, ref)
    else:
        price, kind = min(sold)
        used = view.used.get(NODES, 0)
        cause = READY
        verdict = (
            f"can buy: it has {used} machine{'' if used == 1 else 's'}, and the cheapest of"
            f" {len({name for _, name in sold})} types is {kind} at {print_hourly(Money(price, scene.snapshot.currency))}"
        )
        if _by_name(ref, pool):
            notes.append("it is a growth pool: pods ask for it by name")
    subject = f"NodePool {ref}"
    return Explanation(
        subject=subject,
        cause=cause,
        sentence=f"{subject} {verdict}.",
        tried=tuple(_pods(scene, ref)),
        notes=tuple(notes),
        remedies=remedies,
    )


def _by_name(ref: PoolRef, pool: object) -> bool:
    return isinstance(pool, GrowthPool) and ref.name != names.DEFAULT_POOL


def _full(view: PoolView) -> str:
    """The limit that is reached; empty where there is room for one more of some type."""
    for name, most in sorted(view.limits.items()):
        if view.used.get(name, 0) >= most:
            return (
                f"limits.{name} is reached ({print_amount(name, view.used.get(name, 0))} of {print_amount(name, most)})"
            )
    if view.type_max and all(view.type_used.get(name, 0) >= most for name, most in view.type_max.items()):
        listed = ", ".join(f"{name} {most}" for name, most in sorted(view.type_max.items()))
        return f"every server type is at its max ({listed})"
    return ""


def _raised(scene: Scene, ref: PoolRef) -> tuple[Remedy, ...]:
    found = tuple(widening.to_raise(scene, ref))
    if found:
        return found
    pool = scene.pools[ref]
    if isinstance(pool, GrowthPool):
        return ()
    limits = pool.spec.limits
    if NODES not in limits:
        return ()
    now = amount_of(NODES, limits[NODES])
    return (widening.to_raise_nodes(ref, now, now + 1),)


def _repairs(scene: Scene, ref: PoolRef) -> tuple[Remedy, ...]:
    """What would let the pool buy again; each is tried out."""
    found: list[Remedy] = []
    for proposal in of_the_pool(scene, None, ref):
        try:
            after = applied(scene, proposal.changes)
        except (CannotApply, ValueError):
            continue
        if ref in after.views and not after.views[ref].problem:
            found.append(proposal)
    return tuple(found[:TOLD])


def _pods(scene: Scene, ref: PoolRef) -> list[Tried]:
    """The pods that wait, by the rule that keeps them from this pool."""
    groups: dict[tuple[Filter, str], list[str]] = collections.defaultdict(list)
    for each in scene.plan.unplaced:
        for reason in each.reasons:
            if reason.pool == ref:
                groups[reason.filter, reason.message].append(each.pod)
    found = []
    for (rule, message), pods in sorted(groups.items(), key=lambda each: -len(each[1])):
        what = f"Pod {pods[0]}" if len(pods) == 1 else f"{len(pods)} pods such as {pods[0]}"
        found.append(Tried(what=what, rule=rule, message=message))
    return found


def _notes(scene: Scene, ref: PoolRef) -> list[str]:
    pool, view = scene.pools[ref], scene.views[ref]
    found = [
        f"limits.{name}: {print_amount(name, view.used.get(name, 0))} of {print_amount(name, most)}"
        for name, most in sorted(view.limits.items())
    ]
    found += [
        f"server type {name}: {view.type_used.get(name, 0)} of {most}" for name, most in sorted(view.type_max.items())
    ]
    found += [
        f"condition {each.type} is {each.status}: {each.message or each.reason}"
        for each in pool.status.conditions
        if (each.type == names.PAUSED) == (each.status == "True") and (each.message or each.reason)
    ]
    to_buy = [claim for claim in scene.plan.claims if claim.pool == ref]
    kept = sum(claim.kept > 0 for claim in to_buy)
    if kept:
        found.append(f"{kept} machines would be bought here to have the min of their types")
    if len(to_buy) > kept:
        found.append(f"{len(to_buy) - kept} machines would be bought here for pods that wait")
    return found
