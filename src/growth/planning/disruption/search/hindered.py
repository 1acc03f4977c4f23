"""What stands in the way of nodes of which a search says only that it found nothing: for whoever explains it.

A decision does not need it and does not ask. Pods that have no place at all are told of; then each node is asked by itself, in
the cluster as the moves leave it, with the limits of pools taken away, and with what keeps its own pool from buying.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from growth.cluster.snapshot import NODES, PoolView
from growth.planning.disruption import words
from growth.planning.disruption.consequences import after
from growth.planning.disruption.model import Decided, Kept, OwnedNode, Room, Situation
from growth.planning.disruption.search.consolidating import NOTHING_FOUND
from growth.planning.disruption.search.course import Course
from growth.planning.disruption.search.departing import Answers
from growth.planning.disruption.search.exchanging import Exchange
from growth.planning.disruption.search.ground import Ground
from growth.planning.disruption.search.options import SearchOptions

# So many steps each question may take. Of whom nobody was asked by then the general sentence stands.
MOST: Final = 20_000


def told_apart(situation: Situation, decided: Decided, options: SearchOptions) -> tuple[Kept, ...]:
    """Why nodes stay, with what is in their way where that can be said."""
    unsaid = {each.node for each in decided.kept if each.message == NOTHING_FOUND}
    left = after(situation, decided.moves)
    nodes = [node for node in left.nodes if node.name in unsaid and node.view is not None]
    if not nodes:
        return decided.kept
    found = dict(_without_a_place(left, nodes, options))
    nodes = [node for node in nodes if node.name not in found]
    found |= _hindered(left, nodes, options)
    return tuple(found.get(each.node, each) for each in decided.kept)


def _without_a_place(
    situation: Situation, nodes: Sequence[OwnedNode], options: SearchOptions
) -> Iterator[tuple[str, Kept]]:
    ground = Ground(situation, nodes, options)
    for at, node in ground.owned.items():
        refused = next(((keys[0], pods.refusal) for pods, keys in ground.pods[at] if pods.refusal is not None), None)
        if refused is not None:
            key, (_, why) = refused
            yield node.name, Kept(node.name, node.pool, words.NO_PLACE, f"pod {key} would have no place: {why}")


def _hindered(situation: Situation, nodes: Sequence[OwnedNode], options: SearchOptions) -> Mapping[str, Kept]:
    limited = [view for view in situation.snapshot.pools if not view.limits.keys() <= {NODES}]
    closed = {str(view.ref): view.problem for view in situation.snapshot.pools if view.problem}
    apart = [node for node in nodes if limited or node.pool in closed]
    if not apart:
        return {}
    found: dict[str, Kept] = {}

    def say(node: OwnedNode, why: str) -> None:
        found[node.name] = Kept(node.name, node.pool, words.IN_USE, f"its pods have no room on other nodes, and {why}")

    free = {node.name for node in _bought(situation, apart, options)}  # something else was in the way of these
    apart = [node for node in apart if node.name not in free]
    if limited:
        named = ", ".join(str(view.ref) for view in limited)
        for node in _bought(_with(situation, _without_limits), apart, options):
            say(node, f"the limits of NodePool {named} leave none for a cheaper machine beside it")
    shut = [node for node in apart if node.pool in closed and node.name not in found]
    own = {node.pool for node in shut}
    for node in _bought(_with(situation, lambda view: _open(view) if str(view.ref) in own else view), shut, options):
        say(node, f"NodePool {node.pool} buys nothing: {closed[node.pool]}")
    return found


def _with(situation: Situation, change: Callable[[PoolView], PoolView]) -> Situation:
    pools = tuple(map(change, situation.snapshot.pools))
    return dataclasses.replace(situation, snapshot=dataclasses.replace(situation.snapshot, pools=pools))


def _without_limits(view: PoolView) -> PoolView:
    """That of nodes stays: it has a word of its own."""
    return dataclasses.replace(view, limits={name: most for name, most in view.limits.items() if name == NODES})


def _open(view: PoolView) -> PoolView:
    return dataclasses.replace(view, problem="")


def _bought(situation: Situation, nodes: Sequence[OwnedNode], options: SearchOptions) -> list[OwnedNode]:
    """Those for which, each by itself, something cheaper would be bought."""
    if not nodes:
        return []
    course = Course(
        situation,
        nodes,
        dict.fromkeys({node.pool for node in nodes}, Room(None, None)),
        options,
        doubted={},
        ground=lambda own: Ground(situation, own, options),
        answers=Answers(situation),
    )
    exchange = Exchange(course, drawing=False)
    found: list[OwnedNode] = []
    for at, node in course.ground.owned.items():
        if course.over() or course.ground.steps >= MOST:
            break
        if exchange.would_buy(at):
            found.append(node)
    return found
