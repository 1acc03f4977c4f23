"""What a Hard node limit forgoes: nodes that would be replaced if their pools might have more machines for a moment.

At the limit no machine is looked for, so that of the nodes that stay nobody knows whether they are well used or the limit
keeps them. Each is asked by itself, in the cluster as the moves leave it, with the limit taken away.
"""

from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.planning.disruption import words
from growth.planning.disruption.consequences import after, without_node_limits
from growth.planning.disruption.model import Move, OwnedNode, Room, Situation
from growth.planning.disruption.room import limit_message
from growth.planning.disruption.search.course import Course
from growth.planning.disruption.search.departing import Answers
from growth.planning.disruption.search.exchanging import Exchange
from growth.planning.disruption.search.ground import Ground
from growth.planning.disruption.search.options import SearchOptions

# So many steps are spent on it. Of whom nobody was asked by then the limit is all that is known.
MOST: Final = 20_000


def forgone(
    situation: Situation, moves: Sequence[Move], nodes: Sequence[OwnedNode], options: SearchOptions, *, spent: int
) -> Course:
    """The course whose `why` says why these nodes stay, whose pools may replace nothing, after so many steps.

    It says nothing of a node whose pods no machine holds.
    """
    pools = {node.pool for node in nodes}
    free = without_node_limits(after(situation, moves), pools)
    course = Course(
        free,
        nodes,
        dict.fromkeys(pools, Room(None, None)),
        options,
        doubted={},
        ground=lambda own: Ground(free, own, options),
        answers=Answers(free),
    )
    course.spent = spent
    exchange = Exchange(course, drawing=False)
    for at, node in course.ground.owned.items():
        if course.over() or course.ground.steps >= MOST or exchange.would_buy(at):
            course.say(node, words.NODE_LIMIT, limit_message(names.UNDERUTILIZED))
    return course
