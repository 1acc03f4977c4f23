"""Fewer or cheaper machines for the same pods: the search itself.

First nodes go whose pods find room on nodes that stay, one after the other, those first that are dearest for the room
that they give. Then nodes that are too dear for what they hold are replaced. In the end the whole decision is rehearsed,
and nodes come back until kube-scheduler would leave nobody over.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from growth.planning.disruption import words
from growth.planning.disruption.model import Kept, OwnedNode, Room, Situation
from growth.planning.disruption.search.believing import rehearse
from growth.planning.disruption.search.course import Course, Step
from growth.planning.disruption.search.exchanging import Exchange
from growth.planning.disruption.search.options import Found, SearchOptions
from growth.planning.disruption.search.sight import Sight

# A search that comes to nothing because kube-scheduler would not find the places is made so often.
ATTEMPTS: Final = 4


def consolidate(
    situation: Situation,
    candidates: Sequence[OwnedNode],
    rooms: Mapping[str, Room],
    options: SearchOptions = SearchOptions(),  # noqa: B008 - frozen
) -> Found:
    """Which of the candidates go and what comes instead. Pure; equal input gives an equal answer."""
    course = _searched(situation, candidates, rooms, options)
    moves = course.moves()
    destinations = {name for move in moves for name in move.destinations}
    moved = {name for move in moves for name in move.nodes}
    return Found(
        moves=moves,
        kept=tuple(_kept(course, node, destinations) for node in candidates if node.name not in moved),
        steps=course.ground.steps,
        complete=course.complete,
    )


def _searched(
    situation: Situation,
    candidates: Sequence[OwnedNode],
    rooms: Mapping[str, Room],
    options: SearchOptions,
) -> Course:
    """One search; where nothing of it is believed another with roomier machines, then one without who was in the way."""
    doubted: dict[str, Kept] = {}
    spent = 0
    for attempt in range(ATTEMPTS):
        course = Course(situation, candidates, rooms, options, doubted=doubted)
        course.ground.steps += spent
        exchange = Exchange(course, drawing=attempt == 0)
        for part in course.ground.parts():
            sight = Sight(course.ground, part, course.shop, options.node_cost)
            course.ground.nodes.order = sight.order()
            _delete(course, sight.leavers(few=course.allowance.few(course.ground.owned[at].pool for at in part)))
            exchange.replace(part)
        rehearse(course)
        if course.steps or not course.taken_back or not course.complete:
            break
        spent = course.ground.steps
        if attempt:
            doubted |= {name: course.why[name] for name in course.taken_back}
    return course


def _delete(course: Course, leavers: Sequence[int]) -> None:
    """Nodes go whose pods find room on nodes that stay."""
    ground = course.ground
    for at in leavers:
        node = ground.owned[at]
        if course.over():
            return
        if (
            course.allowance.deletes([node])
            and course.pays([node], (), len(ground.evicted[at]))
            and course.balanced([node], ())
        ):
            trial = ground.without_purchase((at,))
            if trial is not None:
                course.commit(Step((at,)), trial)


def _kept(course: Course, node: OwnedNode, destinations: Collection[str]) -> Kept:
    """Why the node stays."""
    known = course.why.get(node.name)
    if known is not None:
        return known
    if node.name in destinations:
        return Kept(node.name, node.pool, words.DESTINATION, "pods of another node are moved there", waits=True)
    if course.allowance.spent(node.pool):
        return Kept(node.name, node.pool, words.BUDGET, course.allowance.why_spent(node.pool), waits=True)
    told = "its pods have no room on other nodes, and no cheaper machine holds them"
    return Kept(node.name, node.pool, words.IN_USE, told)
