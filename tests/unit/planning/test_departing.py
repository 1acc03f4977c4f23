"""Whom kube-scheduler would leave without a place if nodes went, and that each question is put to its model once."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from growth.cluster.snapshot import Demand
from growth.planning.disruption.model import Room, Situation
from growth.planning.disruption.search import Found, consolidating, departing
from growth.planning.disruption.search.departing import Answers
from growth.planning.plan import PlannedClaim
from tests.unit.planning.builders import LARGE, MEDIUM, SMALL, kind, pod, pods
from tests.unit.planning.searching import FREELY, found, only, owned, situation


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The nodes of every departure that is compiled."""
    seen: list[tuple[str, ...]] = []

    class Counted(departing.Departure):
        def __init__(self, situation: Situation, *, gone: Any, **more: Any) -> None:
            seen.append(tuple(gone))
            super().__init__(situation, gone=gone, **more)

    monkeypatch.setattr(departing, "Departure", Counted)
    return seen


def _evicted(made: Situation, *names: str) -> list[Demand]:
    nodes = {node.name: node for node in made.nodes}
    return [Demand(f"default/{each.name}", each.shape) for name in names for each in nodes[name].pods]


def _bought() -> Sequence[PlannedClaim]:
    """A machine of two processors, as a search buys it."""
    dear = kind("dear", 4, "16Gi", price=2.0)
    return [each.planned for each in only(found(owned("a", *pods(2, "x", cpu="900m"), of=dear))).replacements]


def test_a_departure_that_was_rehearsed_is_not_rehearsed_again(rehearsed: list[tuple[str, ...]]) -> None:
    made = situation(owned("a", *pods(2, "x", cpu="900m")), owned("b", pod("y", cpu="3500m")))
    answers = Answers(made)
    rehearsed.clear()
    first = answers.of(("a",), _evicted(made, "a"), [], frozenset())
    assert answers.of(("a",), _evicted(made, "a"), [], frozenset()) == first
    assert sorted(first.left) == ["default/x-00", "default/x-01"]
    assert rehearsed == [("a",)]


def test_what_is_bought_and_who_waits_are_part_of_the_question() -> None:
    """With a machine there is room; and whoever waits anyway is not said to be left over."""
    made = situation(owned("a", *pods(2, "x", cpu="900m")), owned("b", pod("y", cpu="3500m")))
    answers = Answers(made)
    evicted = _evicted(made, "a")
    keys = frozenset(demand.key for demand in evicted)
    for _ in range(2):
        assert answers.of(("a",), evicted, [], frozenset()).left
        assert not answers.of(("a",), evicted, _bought(), frozenset()).left
        assert not answers.of(("a",), evicted, [], keys).left


def test_who_has_no_place_anyway_is_asked_once(rehearsed: list[tuple[str, ...]]) -> None:
    made = situation(owned("a", *pods(1, "x")), pending=[pod("huge", cpu="64")])
    answers = Answers(made)
    for _ in range(2):
        assert answers.anyway(frozenset({"default/other"})) == {"default/other", "default/huge"}
    assert rehearsed == [()]


def _drawn(seed: int) -> Situation:
    lots = random.Random(seed)
    nodes = [
        owned(
            f"n{at}",
            *(pod(f"p{at}-{turn}", cpu=f"{lots.choice([300, 500, 700, 900, 1300, 1900])}m") for turn in range(held)),
            of=lots.choice((MEDIUM, LARGE)),
            price=lots.choice((0.2, 0.3, 0.5, 0.9)),
        )
        for at, held in enumerate(lots.choices((1, 2, 3), k=lots.randint(3, 7)))
    ]
    waiting = [pod(f"w{at}", cpu=f"{lots.choice([700, 1500, 3000])}m") for at in range(lots.randint(0, 3))]
    return situation(*nodes, sold=(SMALL, MEDIUM), pending=waiting)


def test_a_search_finds_the_same_and_counts_the_same_if_nothing_is_remembered(
    monkeypatch: pytest.MonkeyPatch, rehearsed: list[tuple[str, ...]]
) -> None:
    drawn = [_drawn(seed) for seed in (0, 118, 120, 148, 180, 190, 211, 357)]

    def searched() -> list[tuple[Found, int]]:
        found = []
        for made in drawn:
            rehearsed.clear()
            answer = consolidating._searched(made, made.nodes, {"default": Room(None, None)}, FREELY)
            found.append((answer, len(rehearsed)))
        return found

    def forgetful(self: Answers, *question: Any) -> Any:
        self._known.clear()
        return remembering(self, *question)

    with_memory = searched()
    remembering = Answers.of
    monkeypatch.setattr(Answers, "of", forgetful)
    without = searched()
    assert [answer for answer, _ in with_memory] == [answer for answer, _ in without]
    assert sum(before for _, before in with_memory) < sum(after for _, after in without) / 2
