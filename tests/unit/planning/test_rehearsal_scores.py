"""Scores of one node and of all nodes at once are the same numbers, whatever was put where before."""

import random

import numpy as np
import pytest

from growth.planning.rehearsal.scores import Room

NODES, PODS = 7, 40
GIB = 2**30


@pytest.mark.parametrize("by_change", [True, False])
@pytest.mark.parametrize("lacking", [(), ((0, 2),), ((1, 3), (0, 4), (1, 4))])
def test_a_node_scores_alone_as_among_all(*, by_change: bool, lacking: tuple[tuple[int, int], ...]) -> None:
    """Nodes that have no cpu or no memory, and such as hold more than they have, among them."""
    lots = random.Random(7)
    has = np.array(
        [
            [lots.randrange(1, 9) * 1000 - 100 for _ in range(NODES)],
            [lots.randrange(1, 33) * GIB - 7 for _ in range(NODES)],
        ]
    )
    for resource, node in lacking:
        has[resource, node] = 0
    room = Room(has, has // 3, has // 2, by_change=by_change)
    clear = room.save()
    for _ in range(PODS):
        asked = lots.choice([(0, 0), (250, 0), (0, GIB), (lots.randrange(3000), lots.randrange(4 * GIB))])
        scored = (asked[0] or 100, asked[1] or 200 * 2**20)
        assert [room.score_at(node, asked, scored) for node in range(NODES)] == room.score(asked, scored).tolist()
        room.take(lots.randrange(NODES), asked, scored)
        if not lots.randrange(10):
            clear()
