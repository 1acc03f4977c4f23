"""Decisions of disruption: what goes, what comes for it, what it saves, and why the rest stays. Pure but for prices."""

import collections
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

from growth.api import names
from growth.api.decisions import DecisionAction, DecisionCost, DecisionSpec, KeptNodes
from growth.cluster.pricing import PriceList
from growth.controllers.decisions import ACTED, BLOCKED, NOTHING, WOULD_ACT
from growth.controllers.disruption.moving import Running
from growth.controllers.disruption.question import Answer
from growth.controllers.environment import Environment
from growth.controllers.ownership import pool_of
from growth.planning.disruption.model import Kept, Move, OwnedNode
from growth.units.money import NANO

__all__ = ["CONTROLLER", "DecisionSpec", "gave_up", "nothing", "removes", "replaces", "would"]

CONTROLLER: Final = "disruption"
_WORDS: Final = {names.EMPTY: "empty", names.DRIFTED_REASON: "drifted", names.UNDERUTILIZED: "underutilized"}


def would(answer: Answer, at: dt.datetime) -> DecisionSpec:
    """What would be done, by somebody who only looks on."""
    nodes = {node.name: node for node in answer.situation.nodes}
    moves = answer.decided.moves
    actions: list[DecisionAction] = []
    for move in moves:
        actions += _bought(move, ())
        actions += [_action(nodes[name], move) for name in move.nodes]
    currency = answer.situation.snapshot.currency
    kept = _grouped(each for each in answer.decided.kept if not each.waits)
    if not moves:
        return DecisionSpec(
            at=at, controller=CONTROLLER, outcome=NOTHING, summary="no node is to be removed", kept=kept
        )
    return DecisionSpec(
        at=at,
        controller=CONTROLLER,
        outcome=WOULD_ACT,
        summary="; ".join(_summary(move, "would ") for move in moves),
        actions=tuple(actions),
        kept=kept,
        cost=_cost(answer.situation.nodes, moves, currency),
    )


def nothing(at: dt.datetime, *, told: Sequence[Kept]) -> DecisionSpec:
    """A pass that moves nothing, and the nodes that somebody's rule keeps."""
    summary = f"{_count(len(told), 'node')} must stay" if told else "no node is to be removed"
    return DecisionSpec(
        at=at, controller=CONTROLLER, outcome=BLOCKED if told else NOTHING, summary=summary, kept=_grouped(told)
    )


def removes(running: Running, env: Environment) -> DecisionSpec:
    """A move without replacements, when its claims are deleted."""
    return _acted(running, env, "removes")


def replaces(running: Running, env: Environment) -> DecisionSpec:
    """A move with replacements, when they are bought."""
    return _acted(running, env, "")


def gave_up(running: Running, why: str, at: dt.datetime) -> DecisionSpec:
    """A move that was begun and taken back."""
    listed = ", ".join(running.move.nodes)
    return DecisionSpec(
        at=at,
        controller=CONTROLLER,
        outcome=BLOCKED,
        summary=f"the replacement of {listed} was taken back: {why}",
    )


def _acted(running: Running, env: Environment, verb: str) -> DecisionSpec:
    move, catalogue = running.move, env.state.catalogue
    prices = PriceList(catalogue)
    actions = _bought(move, running.coming)
    for name, target in running.targets.items():
        labels = target.node.metadata.labels
        price = prices.of_class(labels, target.claim.spec.node_class_ref.name)
        actions.append(
            DecisionAction(
                verb="delete",
                object=f"NodeClaim/{target.claim.metadata.name}",
                node_pool=str(pool_of(target.claim) or ""),
                instance_type=labels.get(names.INSTANCE_TYPE_LABEL, ""),
                price=None if price is None else price / NANO,
                why=f"node {name} is {_WORDS.get(move.reason, move.reason)}",
            )
        )
    before = [each.price for each in actions if each.verb == "delete"]
    known = None if None in before else sum(price or 0.0 for price in before)
    after = sum(each.planned.price for each in move.replacements) / NANO
    return DecisionSpec(
        at=env.clock.now(),
        controller=CONTROLLER,
        outcome=ACTED,
        summary=_summary(move, f"{verb} " if verb else ""),
        actions=tuple(actions),
        cost=DecisionCost(
            currency=catalogue.currency if catalogue is not None else "",
            before=known,
            after=None if known is None else after,
        ),
    )


def _bought(move: Move, named: Sequence[str]) -> list[DecisionAction]:
    return [
        DecisionAction(
            verb="create",
            object=f"NodeClaim/{named[number]}" if number < len(named) else "",
            node_pool=str(each.planned.pool),
            instance_type=each.planned.instance_type,
            price=each.planned.price / NANO,
            pods=len(each.planned.pods),
            why=f"in the place of {', '.join(move.nodes)}",
        )
        for number, each in enumerate(move.replacements)
    ]


def _action(node: OwnedNode, move: Move) -> DecisionAction:
    return DecisionAction(
        verb="delete",
        object=f"NodeClaim/{node.claim}",
        node_pool=node.pool,
        instance_type=node.instance_type,
        price=None if node.price is None else node.price / NANO,
        why=f"node {node.name} is {_WORDS.get(move.reason, move.reason)}",
    )


def _summary(move: Move, verb: str) -> str:
    """«would remove», «removes»; with replacements «would replace», «replaces»."""
    what = _count(len(move.nodes), f"{_WORDS.get(move.reason, move.reason)} node")
    stem = "replace" if move.replacements else "remove"
    told = f"would {stem}" if verb.startswith("would") else f"{stem}s"
    by = collections.Counter(each.planned.instance_type for each in move.replacements)
    listed = ", ".join(f"{number} × {name}" for name, number in sorted(by.items()))
    text = f"{told} {what}{f' by {listed}' if listed else ''}"
    return f"{text}, saving {move.savings / NANO:.4f}/h" if move.replacements and move.savings is not None else text


def _grouped(kept: Iterable[Kept]) -> tuple[KeptNodes, ...]:
    counts: collections.Counter[str] = collections.Counter()
    first: dict[str, str] = {}
    for each in kept:
        counts[each.message] += 1
        first.setdefault(each.message, each.node)
    return tuple(KeptNodes(nodes=number, example=first[message], reason=message) for message, number in counts.items())


def _cost(nodes: Sequence[OwnedNode], moves: Sequence[Move], currency: str) -> DecisionCost | None:
    """Of all nodes that are ours and stay so far; none where the price of one is not known."""
    prices = {node.name: node.price for node in nodes if not node.leaving}
    if None in prices.values():
        return None
    before = sum(price or 0 for price in prices.values())
    gone = sum(prices.get(name) or 0 for move in moves for name in move.nodes)
    bought = sum(each.planned.price for move in moves for each in move.replacements)
    return DecisionCost(currency=currency, before=before / NANO, after=(before - gone + bought) / NANO)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
