"""Plans afresh from what is seen: why each node stays, why each pod waits, and how cheap all of it could be. Pure.

It takes seconds for a large cluster, and so is done on another thread and now and then. What it says is what Growth would
decide from these objects alone; the autoscaler at work also remembers what it did and saw.
"""

import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.conditions import since
from growth.api.karpenter import NodeClaim
from growth.cluster.assemble import composed
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand
from growth.cluster.wanting import is_done, is_mirror, key_of, movable, of_daemon_set
from growth.planning.disruption import words
from growth.planning.disruption.decide import Options, decide
from growth.planning.disruption.model import Decided, Kept, Move
from growth.planning.disruption.search import SearchOptions
from growth.planning.disruption.situating import Facts, situated
from growth.planning.emptying import ScaleDown
from growth.planning.explaining import warming
from growth.planning.explaining.scaling import scale_down
from growth.planning.least import least_hourly
from growth.planning.overlays import overlaid
from growth.planning.plan import Plan, Unplaced
from growth.planning.solve import solve
from growth.top.following import Matter
from growth.units.money import Money

# Where nobody says since when a node is as it is, it has been so for long.
_LONG: Final = 10.0**9
# Of a search for cheaper machines: a tenth of what the autoscaler may take. Somebody is waiting.
STEPS: Final = 30_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts:
    """`kept` says why nodes stay, `going` what would become of the others, `pending` why pods wait; all by name.

    `least` is what all pods could cost at least, in billionths an hour; None while it is not known.
    """

    kept: Mapping[str, str] = dataclasses.field(default_factory=dict)
    going: Mapping[str, str] = dataclasses.field(default_factory=dict)
    pending: Mapping[str, str] = dataclasses.field(default_factory=dict)
    least: int | None = None

    def of_node(self, name: str) -> str:
        return self.going.get(name) or self.kept.get(name, "")


NONE_YET: Final = Thoughts()


def think(matter: Matter) -> Thoughts:
    """What Growth would say of this cluster."""
    picture = matter.picture
    assembled = composed(picture)
    snapshot, _ = overlaid(assembled.snapshot, picture.overlays)
    warm = warming.missing(snapshot, picture.growth_pools)
    plan = warming.as_bought(solve(warming.on_their_way(snapshot, warm), assembled.demands), warm)
    coming = {node.name for node in snapshot.nodes if not node.initialized}
    nominated = {filled.name for filled in plan.filled}
    facts = {
        name: Facts(quiet_seconds=quiet_seconds(counted.machine.claim, matter.pods.get(name, ()), picture.now))
        if name not in nominated
        else Facts(nominated=True)
        for name, counted in picture.counted.items()
        if counted.machine.claim is not None
    }
    situation = situated(picture, facts=facts, pods=matter.pods, disruption_budgets=matter.budgets)
    decided = decide(situation, Options(search=SearchOptions(budget=STEPS)))
    down = scale_down(picture, pods=matter.pods, wanted=nominated)
    ours = {node.name for node in snapshot.nodes if node.pool is not None}
    held = [
        Demand(key_of(pod), pod.shape)
        for name in ours
        for pod in matter.pods.get(name, ())
        if movable(pod) and not is_done(pod)
    ]
    return Thoughts(
        kept={
            **dict.fromkeys(coming, "it is coming up"),
            **{each.node: _why_kept(each, matter, down) for each in decided.kept if each.node not in coming},
        },
        going=_going(decided, snapshot.currency),
        pending={
            **_pending(plan, snapshot.currency, coming),
            **{each.pod: f"waits for {each.reason}" for each in assembled.waiting},
        },
        least=least_hourly(snapshot, [*assembled.demands, *held]),
    )


def quiet_seconds(claim: NodeClaim | None, pods: Sequence[CachedPod], now: dt.datetime) -> float:
    """How long no pod has come or gone, as far as the objects tell."""
    times = (
        [] if claim is None else [claim.status.last_pod_event_time, since(claim.status.conditions, names.INITIALIZED)]
    )
    times += [pod.scheduled_since for pod in pods if not of_daemon_set(pod) and not is_mirror(pod)]
    known = [time for time in times if time is not None]
    return max(0.0, (now - max(known)).total_seconds()) if known else _LONG


def _why_kept(kept: Kept, matter: Matter, down: ScaleDown) -> str:
    """A growth pool's rule is short enough to be said: only empty nodes go, and those after a while."""
    counted = matter.picture.counted.get(kept.node)
    if kept.reason != words.GROWTH_POOL or counted is None or counted.machine.node is None:
        return kept.message
    at = counted.machine.node.metadata.annotations.get(names.SCALE_DOWN_AT_ANNOTATION, "")
    if at:
        return f"empty: it goes at {at[11:19] or at} unless a pod comes"
    number = sum(movable(pod) and not is_done(pod) for pod in matter.pods.get(kept.node, ()))
    if number:
        return f"{number} pod{'' if number == 1 else 's'} on it; its pool gives back empty nodes only"
    stays = down.kept.get(kept.node) or down.cancel.get(kept.node)
    return f"empty: {stays}" if stays else kept.message


def _going(decided: Decided, currency: str) -> dict[str, str]:
    return {name: _told(move, currency) for move in decided.moves for name in move.nodes}


def _told(move: Move, currency: str) -> str:
    saves = "" if move.savings is None else f", saves {Money(move.savings, currency)}/h"
    if not move.replacements:
        return f"to be removed: {move.reason}{saves}"
    by = ", ".join(each.planned.instance_type for each in move.replacements)
    return f"to be replaced by {by}: {move.reason}{saves}"


def _pending(plan: Plan, currency: str, coming: Collection[str]) -> dict[str, str]:
    told: dict[str, str] = {}
    for claim in plan.claims:
        text = f"a {claim.instance_type} is to be bought for it in {claim.pool} ({Money(claim.price, currency)}/h)"
        told.update(dict.fromkeys(claim.pods, text))
    for filled in plan.filled:
        text = f"its machine is coming: {filled.name}" if filled.name in coming else f"has room on {filled.name}"
        told.update(dict.fromkeys(filled.pods, text))
    told.update({each.pod: _why_not(each) for each in plan.unplaced})
    return told


def _why_not(left: Unplaced) -> str:
    reasons = "; ".join(f"{each.pool}: {each.message}" if each.pool else each.message for each in left.reasons)
    return reasons or "no pool is there that could hold it"


def above(cost: int, least: int | None) -> float | None:
    """How far a cost is above the least possible, as a share of it; None where that says nothing."""
    return None if not least or cost < least else cost / least - 1.0
