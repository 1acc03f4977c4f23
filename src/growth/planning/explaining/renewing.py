"""Drifted machines of static pools, as their own controller replaces them: which go now, by what, and why the others wait."""

import dataclasses
from collections.abc import Callable, Iterator

from growth.api import names
from growth.api.karpenter import NodeClaim, NodePool
from growth.planning import occupants
from growth.planning.budgets import allowance
from growth.planning.disruption import words
from growth.planning.disruption.candidates import why_kept
from growth.planning.disruption.model import Kept, Move, OwnedNode, Replacement, Situation
from growth.planning.disruption.static import Sold, followed, rank, renewal
from growth.planning.disruption.surplus import Standing
from growth.planning.plan import PlannedClaim


@dataclasses.dataclass(frozen=True, slots=True)
class Renewed:
    """One move for each that goes. `kept` are the other drifted nodes of static pools."""

    moves: tuple[Move, ...] = ()
    kept: tuple[Kept, ...] = ()


def renewed(
    pool: NodePool,
    found: Standing,
    situation: Situation,
    *,
    sold: Callable[[], Sold | str],
    priced: bool,
) -> Renewed:
    """Of one pool. `sold` says what it buys; `priced`: what has no known price stays."""
    owned = {node.claim: node for node in situation.nodes if node.pool == pool.metadata.name}
    staying = {claim.metadata.name: claim for claim in found.staying}
    drifted = [node for name, node in owned.items() if name in staying and node.drifted]
    if not drifted:
        return Renewed()
    kept = list(_held(drifted, situation, priced=priced))
    held = {each.node for each in kept}
    free = sorted(
        (node for node in drifted if node.name not in held),
        key=lambda node: rank(node.claim, node.pods, node.created),
    )
    aside = [each for each in situation.aside if each.pool == pool.metadata.name]
    waiting = {name for name in followed(found) if name in owned and _waits_on(owned[name], situation)}
    disrupted = sum((name not in staying and name not in waiting) or not node.ready for name, node in owned.items())
    allowed = allowance(
        pool.spec.disruption.budgets,
        nodes=len(owned) + len(aside),
        reason=names.DRIFTED_REASON,
        now=situation.now,
    ).less(disrupted + sum(each.disrupted for each in aside))
    chosen = renewal(pool, found, [staying[node.claim] for node in free], budget=allowed)
    going: tuple[NodeClaim, ...] = (*chosen.first, *([chosen.gone] if chosen.gone is not None else []))
    machine = sold() if going else ""
    if isinstance(machine, Sold):
        planned = machine.plan.claims[0]
        moves = tuple(_move(owned[claim.metadata.name], planned) for claim in going)
    else:
        moves = ()
    gone = {name for move in moves for name in move.nodes}
    told = _why(pool.metadata.name, machine if isinstance(machine, str) else "", spent=allowed == 0)
    kept += [_waits(node, *told) for node in free if node.name not in gone]
    return Renewed(moves, tuple(kept))


def _waits_on(node: OwnedNode, situation: Situation) -> bool:
    """Whether it is kept, though its replacement is up: until it goes it takes no part of the budget."""
    drifted = dataclasses.replace(node, drifted=node.drifted or names.DRIFTED)
    return not node.leaving and why_kept(drifted, situation, reason=names.DRIFTED_REASON, graceful=False) is not None


def _held(nodes: list[OwnedNode], situation: Situation, *, priced: bool) -> Iterator[Kept]:
    for node in nodes:
        found = why_kept(node, situation, reason=names.DRIFTED_REASON, graceful=False)
        if found is None and priced and node.price is None:
            told = "its price is not known: what a move would save cannot be said"
            found = Kept(node.name, node.pool, words.PRICE_UNKNOWN, told)
        if found is not None:
            yield found


def _move(node: OwnedNode, planned: PlannedClaim) -> Move:
    return Move(
        reason=names.DRIFTED_REASON,
        nodes=(node.name,),
        pools=(node.pool,),
        replacements=(Replacement(planned=planned, types=planned.instance_types, max_price=planned.max_price),),
        savings=None if node.price is None else node.price - planned.price,
        evictions=sum(map(occupants.reschedulable, node.pods)),
    )


def _why(pool: str, nothing: str, *, spent: bool) -> tuple[str, str]:
    """Why those wait that could go: the word, and the end of the sentence."""
    if spent:
        return words.BUDGET, f"the budget of NodePool {pool} for reason {names.DRIFTED_REASON} is used up"
    if nothing:
        return words.STATIC, f"nothing can be bought in its place: {nothing}"
    return (
        words.DRIFTED_WAITS,
        f"NodePool {pool}, which is static, replaces others or comes to its number of nodes first",
    )


def _waits(node: OwnedNode, word: str, why: str) -> Kept:
    told = f"it has drifted ({node.drifted}), and {why}"
    return Kept(node.name, node.pool, word, told, waits=word != words.STATIC)
