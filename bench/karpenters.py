"""Growth with Karpenter's rules of consolidation: for comparisons in one and the same world.

The controllers, their clocks and checks stay as they are; only the search is another: one command a decision, of the
multi-node method or else of the single-node one (`bench.prefix`), on as many candidates as budgets allow. What the
product remembers of its moves, what it asks of a saving and how it rehearses moves is part of its search, and so left out.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from unittest import mock

from bench.prefix import Prefix
from growth.planning.disruption import decide
from growth.planning.disruption.model import OwnedNode, Room, Situation
from growth.planning.disruption.search import Found, SearchOptions


@contextlib.contextmanager
def karpenters_rule() -> Iterator[None]:
    """While it is entered every decision of this process is made by the rule."""
    with mock.patch.object(decide, "consolidate", _by_rule):
        yield


def _by_rule(
    situation: Situation,
    candidates: Sequence[OwnedNode],
    rooms: Mapping[str, Room],
    _: SearchOptions,
) -> Found:
    rule = Prefix(situation, candidates=candidates, rooms=rooms)
    command = rule.command()
    return Found(moves=(rule.move(command),) if command.nodes else (), kept=(), steps=0)
