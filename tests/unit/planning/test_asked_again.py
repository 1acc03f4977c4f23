"""When two searches are the same question: whatever time alone changes is none, whatever it decides is one."""

import dataclasses
import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api import names
from growth.api.meta import ObjectMeta
from growth.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from growth.planning.disruption import search, words
from growth.planning.disruption.model import Kept, Room, Situation
from growth.planning.disruption.search import consolidating
from growth.planning.disruption.search.asked import Asked, asked
from tests.unit.planning.builders import node, pods
from tests.unit.planning.searching import FREELY, NOW, gone, owned, situation

HOUR = dt.timedelta(hours=1)


def question(made: Situation, **more: Any) -> Asked:
    options = dataclasses.replace(FREELY, **more)
    return asked(made, made.nodes, {"default": Room(None, None)}, options)


def two(**more: Any) -> Situation:
    return situation(
        owned("a", *pods(1, "x"), **more), owned("b", *pods(2, "y")), disruption={"consolidateAfter": "1h"}
    )


def test_a_situation_that_only_grew_older_is_the_same_question() -> None:
    """Revisions, the clock, and how long a node has been quiet beyond what its pool asks for say nothing new."""
    before = two()
    older = dataclasses.replace(
        before,
        now=NOW + HOUR,
        nodes=tuple(dataclasses.replace(node, quiet_seconds=node.quiet_seconds + 3600) for node in before.nodes),
        snapshot=dataclasses.replace(before.snapshot, revision=7),
    )
    assert question(before) == question(older, stop=lambda: False)


def test_a_node_that_has_become_quiet_makes_another_question() -> None:
    """Moved pods may go there now."""
    assert question(two(quiet_seconds=3_599.0)) != question(two(quiet_seconds=3_600.0))


def test_a_node_that_has_come_to_rest_makes_another_question() -> None:
    """A smaller saving is enough from then on."""
    assert question(two(quiet_seconds=7_199.0), at_rest=2 * HOUR) != question(
        two(quiet_seconds=7_200.0), at_rest=2 * HOUR
    )


def test_a_machine_whose_node_has_come_makes_another_question() -> None:
    """From then on it is a zone without pods to those who spread."""
    before = situation(owned("a", *pods(1, "x")), others=[node("b", initialized=False)])
    there = Kept("b", "default", words.NOT_INITIALIZED, "the machine is not initialised yet", waits=True)
    assert question(before) != question(dataclasses.replace(before, others=(there,)))


def test_a_budget_that_lets_more_pods_go_makes_another_question() -> None:
    """Who leaves together and who later decides where they find room; when the budget was last written does not."""
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="web", namespace="default", resource_version="1"))
    before = dataclasses.replace(two(), disruption_budgets=(budget,))
    more = msgspec.structs.replace(budget, status=PodDisruptionBudgetStatus(disruptions_allowed=2))
    written = msgspec.structs.replace(budget, metadata=msgspec.structs.replace(budget.metadata, resource_version="2"))
    assert question(before) != question(dataclasses.replace(before, disruption_budgets=(more,)))
    assert question(before) == question(dataclasses.replace(before, disruption_budgets=(written,)))


def test_the_end_of_a_protection_makes_another_question() -> None:
    """A pod that may leave now wants a place where it wanted none."""
    made = owned("a", *pods(1, "x"))
    held = msgspec.structs.replace(
        made.pods[0], annotations={names.DO_NOT_DISRUPT_ANNOTATION: "30m"}, started=NOW - dt.timedelta(minutes=1)
    )
    before = situation(dataclasses.replace(made, pods=(held,)), owned("b", *pods(2, "y")))
    assert question(before) == question(dataclasses.replace(before, now=NOW + dt.timedelta(minutes=28)))
    assert question(before) != question(dataclasses.replace(before, now=NOW + HOUR))


def test_moves_that_are_no_longer_a_moment_ago_make_another_question() -> None:
    """What was moved rests for a while, and then no more."""
    before = dataclasses.replace(two(), moved={"some workload": NOW})
    assert question(before) == question(dataclasses.replace(before, now=NOW + dt.timedelta(minutes=14)))
    assert question(before) != question(dataclasses.replace(before, now=NOW + HOUR))


def test_what_is_found_again_is_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second search does no work, and says the same."""
    made = situation(owned("a", *pods(1, "x")), owned("b", *pods(2, "y")))
    rooms = {"default": Room(None, None)}
    first = search.consolidate(made, made.nodes, rooms, FREELY)
    monkeypatch.setattr(consolidating, "_searched", None)
    again = search.consolidate(dataclasses.replace(made, now=NOW + HOUR), made.nodes, rooms, FREELY)
    assert gone(first) == ["a"]
    assert again == first


def test_a_search_that_was_stopped_is_made_again() -> None:
    """Nobody uses its result, and nobody finds it again."""
    made = situation(owned("a", *pods(1, "stopped")), owned("b", *pods(2, "y")))
    rooms = {"default": Room(None, None)}
    stopped = search.consolidate(made, made.nodes, rooms, dataclasses.replace(FREELY, stop=lambda: True))
    assert not stopped.complete
    assert gone(search.consolidate(made, made.nodes, rooms, FREELY)) == ["a"]
