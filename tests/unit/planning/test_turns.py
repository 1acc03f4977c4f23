"""Many drifted nodes of a pool: which of them a decision tries, and how the next one goes on."""

import dataclasses
from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.planning.disruption import words
from growth.planning.disruption.decide import Options, decide
from growth.planning.disruption.model import Decided, Situation
from growth.planning.disruption.turns import OLDEST, TRIES
from tests.unit.planning.clusters import QUIET, cluster, machine, pods, pool

STILL: dict[str, Any] = {"disruption": {"consolidateAfter": "Never"}}


def stuck(name: str, **more: Any) -> list[Json]:
    """A machine with a pod that fits on nothing that can be bought."""
    (pod,) = pods(1, on=name)
    pod["spec"]["nodeSelector"] = {"example.com/rack": name}
    return [*machine(name, **more), pod]


def drifted(number: int, *young: list[Json], **spec: Any) -> Situation:
    """So many drifted nodes whose pods have no place, and others that came after them."""
    old = [stuck(f"old-{at:02}", age=10.0**6 - at) for at in range(number)]
    facts = dataclasses.replace(QUIET, drifted=names.NODE_POOL_DRIFTED)
    named = [f"old-{at:02}" for at in range(number)] + [f"young-{at}" for at in range(len(young))]
    return cluster(pool(**{**STILL, **spec}), *old, *young, facts=dict.fromkeys(named, facts))


def full(name: str, **more: Any) -> list[Json]:
    return [*machine(name, **more), *pods(15, on=name)]


def in_a_row(made: Situation, decisions: int) -> list[Decided]:
    """Decisions that each know of the one before, while nothing changes."""
    found = [decide(made)]
    while len(found) < decisions:
        found.append(decide(made, Options(turns=found[-1].turns)))
    return found


def kept(made: Decided, word: str) -> list[str]:
    return [each.node for each in made.kept if each.reason == word]


@pytest.mark.parametrize("number", [TRIES, TRIES + 5, 3 * TRIES])
def test_nobody_waits_for_ever_behind_nodes_whose_pods_have_no_place(number: int) -> None:
    """However many of them are older: a few decisions later it is replaced, and again for as long as nothing is done."""
    rounds = 1 + -(-(number - OLDEST) // (TRIES - OLDEST))
    found = in_a_row(drifted(number, full("young-0", age=9.0)), rounds + 2)
    assert found[0].moves == ()
    for made in found[rounds - 1 :]:
        assert [move.nodes for move in made.moves] == [("young-0",)]


def test_few_are_all_tried_and_the_oldest_is_always_the_first() -> None:
    """Nothing has to be remembered of them."""
    (made,) = in_a_row(drifted(TRIES - 1, full("young-0", age=9.0)), 1)
    assert [move.nodes for move in made.moves] == [("young-0",)]
    assert made.turns == {}


def test_who_was_not_tried_says_so() -> None:
    """Nothing is replaced first: no place was found for the others, and its own turn comes."""
    (made,) = in_a_row(drifted(TRIES, full("young-0", age=9.0)), 1)
    (waits,) = [each for each in made.kept if each.node == "young-0"]
    assert (waits.reason, waits.waits) == (words.DRIFTED_WAITS, True)
    assert waits.message == (
        "it has drifted (NodePoolDrifted), and for the pods of other nodes of NodePool default a place is sought first"
    )


def test_what_was_said_of_a_node_holds_until_it_is_tried_again() -> None:
    """After one round every node has said that its pods have no place, and no decision says another thing."""
    number = 2 * TRIES
    found = in_a_row(drifted(number), 8)
    assert [len(kept(made, words.NO_PLACE)) for made in found[:4]] == [TRIES, TRIES + OLDEST, number, number]
    assert {made.kept for made in found[3:]} == {found[3].kept}


def test_the_oldest_are_tried_each_time() -> None:
    """A node that gets a place after it was tried is replaced by the next decision, though others were next."""
    before = in_a_row(drifted(2 * TRIES), 2)[-1]
    made = drifted(2 * TRIES)
    held = tuple(pod for node in drifted(0, full("young-0")).nodes for pod in node.pods)
    freed = dataclasses.replace(
        made, nodes=tuple(dataclasses.replace(n, pods=held) if n.name == "old-03" else n for n in made.nodes)
    )
    found = decide(freed, Options(turns=before.turns))
    assert [move.nodes for move in found.moves] == [("old-03",)]


def test_a_closed_budget_does_not_begin_the_round_anew() -> None:
    """Who comes next is known when it opens again."""
    before = in_a_row(drifted(TRIES + 5, full("young-0", age=9.0)), 1)[0]
    budgets = {"disruption": {**STILL["disruption"], "budgets": [{"nodes": "0"}]}}
    closed = decide(drifted(TRIES + 5, full("young-0", age=9.0), **budgets), Options(turns=before.turns))
    assert (closed.moves, closed.turns) == ((), before.turns)
