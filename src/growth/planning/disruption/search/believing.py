"""Whether kube-scheduler would find a place for everybody: what we plan, it binds, and it spreads where we pack."""

import dataclasses
from collections.abc import Iterable, Sequence

from growth.cluster.snapshot import Demand
from growth.planning.disruption.model import Situation
from growth.planning.plan import PlannedClaim
from growth.planning.rehearsal import Arrival, Stage


def left_over(
    situation: Situation,
    *,
    gone: Iterable[str],
    evicted: Sequence[Demand],
    claims: Sequence[PlannedClaim],
    waiting: frozenset[str],
) -> list[str]:
    """The pods that would have no place with these nodes gone and these machines bought.

    `waiting` are pods that have none now either, for whom somebody else buys machines.
    """
    names = set(gone)
    snapshot = dataclasses.replace(
        situation.snapshot, nodes=tuple(node for node in situation.snapshot.nodes if node.name not in names)
    )
    pending = [demand for demand in situation.demands if demand.key not in waiting]
    stage = Stage(snapshot, [*pending, *evicted])
    return list(stage.rehearse(claims, Arrival.AT_ONCE).left)
