"""Machines for the pods of nodes that go in any case, whatever that costs: drift."""

from collections.abc import Sequence

from growth.api import names
from growth.planning.disruption.model import Move, OwnedNode, Replacement, Situation
from growth.planning.disruption.search.departing import left_over
from growth.planning.disruption.search.ground import Ground, Trial
from growth.planning.disruption.search.options import SearchOptions
from growth.planning.plan import PlannedClaim


def replaced(
    situation: Situation,
    nodes: Sequence[OwnedNode],
    options: SearchOptions = SearchOptions(),  # noqa: B008 - frozen
    *,
    reason: str = names.DRIFTED_REASON,
) -> Move | None:
    """What must be bought first so that the pods of these nodes have a place; None where no machine holds some of them.

    There is no rule of price, and no node that is there is too restless to take them. Where kube-scheduler would leave
    pods over if they shared the nodes that are there, all of them get new machines.
    """
    ground = Ground(situation, nodes, options, restless=True)
    going = sorted(ground.owned)
    trial = ground.with_purchase(going)
    bought = () if trial is None else _finished(ground, trial)
    if trial is not None and _crowded(ground, going, bought):
        shared = trial.order
        trial.undo()
        for at in range(len(ground.nodes.nodes)):
            ground.nodes.close(at)
        trial = ground.with_purchase(going)
        if trial is not None:
            bought = _finished(ground, trial)
        order = shared if trial is None else trial.order
    elif trial is None:
        return None
    else:
        order = trial.order
    evictions = sum(len(ground.evicted[at]) for at in going)
    return _move(nodes, bought, order, reason=reason, evictions=evictions)


def _move(
    nodes: Sequence[OwnedNode],
    bought: Sequence[PlannedClaim],
    order: Sequence[tuple[str, str | int]],
    *,
    reason: str,
    evictions: int,
) -> Move:
    paid = [node.price for node in nodes if node.price is not None]
    return Move(
        reason=reason,
        nodes=tuple(node.name for node in nodes),
        pools=tuple(dict.fromkeys(node.pool for node in nodes)),
        replacements=tuple(
            Replacement(planned=each, types=each.instance_types, max_price=each.max_price) for each in bought
        ),
        savings=sum(paid) - sum(each.price for each in bought) if len(paid) == len(nodes) else None,
        evictions=evictions,
        destinations=tuple(sorted({place for _, place in order if isinstance(place, str)})),
    )


def _finished(ground: Ground, trial: Trial) -> tuple[PlannedClaim, ...]:
    return tuple(
        ground.planning.finished(claim, trial.ledgers[claim.shelf.pool.ref], ground.context.resources)[0]
        for claim in trial.claims
    )


def _crowded(ground: Ground, going: Sequence[int], bought: Sequence[PlannedClaim]) -> bool:
    return bool(
        left_over(
            ground.situation,
            gone=[ground.nodes.nodes[at].name for at in going],
            evicted=[ground.demands[key] for at in going for key in ground.evicted[at]],
            claims=bought,
            waiting=ground.waiting,
        )
    )
