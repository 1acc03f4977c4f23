"""Machines that are bought in vain again and again, and those that are not."""

from typing import Final

import msgspec
import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.api.pods import Pod
from growth.cluster.shapes import Shapes
from growth.cluster.sorts import Sorts
from growth.sim.invariants.books import CLAIMS, NODES, PODS, POOLS
from growth.sim.invariants.purchases import InVain
from tests.unit.invariants.histories import GROWTH, History, claim, node, pod, pool

WRONG: Final = {"zone": "fsn1-dc14"}
RIGHT: Final = {"zone": "fsn1"}
REST: Final = 3600.0


def waiting(name: str = "web", *, on: str = "") -> Json:
    body = pod(name, on=on)
    body["spec"]["nodeSelector"] = RIGHT
    return body


SORT: Final = Sorts().digest(Shapes().shape(msgspec.convert(waiting(), Pod, strict=False)))


class Story:
    """Machines that are bought for one pod that waits, or for its like."""

    def __init__(self) -> None:
        self.history = History(InVain(rest=REST))
        self.history.put(POOLS, pool())
        self.history.put(PODS, waiting())

    def buy(self, name: str, at: float, *, sort: str = SORT) -> None:
        body = claim(name, initialized=False, annotations={names.BOUGHT_FOR_ANNOTATION: f"{sort}:0:1"})
        self.history.put(CLAIMS, body, by=GROWTH, at=at)

    def come(self, name: str, at: float, **labels: str) -> None:
        body = node(name, labels={**labels, "karpenter.sh/registered": "true"})
        body["status"]["allocatable"] = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        self.history.put(NODES, body, at=at)
        up = claim(name, annotations={names.BOUGHT_FOR_ANNOTATION: f"{SORT}:0:1"})
        self.history.put(CLAIMS, up, by=GROWTH, at=at)

    @property
    def said(self) -> int:
        return len(self.history.said)


def test_a_third_round_breaks_the_promise() -> None:
    """The second may be bought when the first is known to be in vain, and a third after a rest."""
    story = Story()
    story.buy("one", 0.0)
    story.come("one", 60.0, **WRONG)
    story.buy("two", 120.0)
    story.come("two", 180.0, **WRONG)
    assert story.said == 0
    story.buy("three", 240.0)
    assert story.said == 1
    later = Story()
    later.buy("one", 0.0)
    later.come("one", 60.0, **WRONG)
    later.buy("two", 120.0)
    later.come("two", 180.0, **WRONG)
    later.buy("three", 180.0 + REST)
    assert later.said == 0


def test_the_second_round_is_one_machine() -> None:
    """While it is on its way no other is bought."""
    story = Story()
    story.buy("one", 0.0)
    story.come("one", 60.0, **WRONG)
    story.buy("two", 120.0)
    story.buy("three", 160.0)
    assert story.said == 1


def test_the_first_round_may_be_of_many() -> None:
    """What nobody can know yet is not held against them."""
    story = Story()
    for at, name in enumerate(("one", "two", "three")):
        story.buy(name, float(at))
    story.come("one", 60.0, **WRONG)
    story.buy("four", 65.0)
    assert story.said == 0


@pytest.mark.parametrize("how", ["right", "served", "another sort", "another spec", "nobody waits", "is ill"])
def test_what_was_not_in_vain_is_not_counted(how: str) -> None:
    """A Node that would do, one that took pods, other pods, another pool, pods that came later, a Node that is ill."""
    story = Story()
    for number, name in enumerate(("one", "two", "three", "four")):
        at = number * 120.0
        story.buy(name, at, sort="ffffffffff" if how == "another sort" and number else SORT)
        story.come(name, at + 30.0, **(RIGHT if how == "right" else WRONG))
        if how == "served":
            story.history.put(PODS, waiting(f"web-{name}"), at=at + 31.0)
            story.history.put(PODS, waiting(f"web-{name}", on=name), verb="bind", at=at + 32.0)
        elif how == "another spec":
            story.history.put(POOLS, pool(budget=f"{number}"), at=at + 70.0)
        elif how == "nobody waits":
            story.history.remove(PODS, waiting(), at=at + 70.0)
            story.history.put(PODS, waiting(), at=at + 90.0)
        elif how == "is ill":
            story.history.put(NODES, node(name, ready=False, labels=WRONG), at=at + 31.0)
    assert story.said == 0


def test_machines_that_never_register_count() -> None:
    """A claim that was given up after a time without a Node is a round in vain."""
    story = Story()
    for number, name in enumerate(("one", "two", "three")):
        story.buy(name, number * 400.0)
        body = claim(name, initialized=False)
        story.history.remove(CLAIMS, body, by=GROWTH, at=number * 400.0 + 300.0)
    assert story.said == 1
