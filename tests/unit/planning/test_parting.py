"""Pods on their way out: what is decided while they still hold their room is right when they are gone."""

import dataclasses
import datetime as dt

import msgspec

from growth.api.meta import OwnerReference
from growth.planning.disruption import words
from growth.planning.disruption.model import OwnedNode
from growth.planning.disruption.search.asked import Asked, asked
from growth.planning.disruption.search.resting import COMING_UP
from tests.unit.planning.builders import MEDIUM, kind, pods
from tests.unit.planning.searching import FREELY, NOW, found, gone, only, owned, situation, why

HUGE = kind("huge", 64, "256Gi", price=6.4)
SOON = NOW + dt.timedelta(seconds=30)
SECOND = dt.timedelta(seconds=1)


def ending(node: OwnedNode, number: int, *, at: dt.datetime = SOON, owner: str = "") -> OwnedNode:
    """The node, its last pods on their way out: their grace ends at that time."""
    ref = OwnerReference(api_version="apps/v1", kind=owner, name="owner", uid="owner") if owner else None
    out = [msgspec.structs.replace(pod, deleting=at, owner=ref) for pod in node.pods[-number:]]
    return dataclasses.replace(node, pods=(*node.pods[:-number], *out))


def large() -> OwnedNode:
    return owned("large", *pods(2, "x"), of=HUGE)


def full(**more: object) -> OwnedNode:
    """A machine that others cannot use before half of its pods have ended."""
    return ending(owned("full", *pods(3, "y")), 2, **more)  # type: ignore[arg-type]


def test_nothing_is_bought_for_pods_that_have_room_when_others_have_ended() -> None:
    """The purchase waits; when they are gone the node goes for nothing."""
    made = found(large(), full(), candidates="large", sold=(MEDIUM, HUGE))
    assert (made.moves, why(made)["large"]) == ((), words.PODS_ENDING)
    assert made.kept[0].waits
    after = only(found(large(), owned("full", *pods(1, "y")), candidates="large", sold=(MEDIUM, HUGE)))
    assert (after.nodes, after.replacements) == (("large",), ())


def test_nobody_waits_for_pods_that_stay_longer_than_a_machine_needs() -> None:
    """Nor for such as are overdue, of which nobody knows when they end."""
    for at in (NOW + COMING_UP + SECOND, NOW - SECOND):
        made = found(large(), full(at=at), candidates="large", sold=(MEDIUM, HUGE))
        assert [each.planned.instance_type for each in only(made).replacements] == ["medium"], at


def test_the_place_of_a_pod_whose_successor_needs_it_is_not_free() -> None:
    """A StatefulSet's pod ends so that the next can come."""
    made = found(large(), full(owner="StatefulSet"), candidates="large", sold=(MEDIUM, HUGE))
    assert len(only(made).replacements) == 1


def test_a_purchase_that_stays_as_it_is_does_not_wait() -> None:
    """Where the room of those who end is of no use to the others, it decides nothing."""
    roomy = ending(owned("full", *pods(4, "y")), 1)
    five = owned("large", *pods(2, "x", cpu="1500m"), of=HUGE)
    made = found(five, roomy, candidates="large", sold=(MEDIUM, HUGE))
    assert [each.planned.instance_type for each in only(made).replacements] == ["medium"]


def test_what_needs_no_purchase_goes_on() -> None:
    """Nodes whose pods have room now already, and go then too, do not wait for anybody."""
    small = owned("small", *pods(1, "z", cpu="100m"))
    made = found(small, full(), candidates="small", sold=(MEDIUM,))
    assert gone(made) == ["small"]


def test_pods_that_are_overdue_by_now_make_another_question() -> None:
    """Time goes into a question by what it decides."""
    before = situation(large(), full(), sold=(MEDIUM, HUGE))

    def question(seconds: float) -> Asked:
        later = dataclasses.replace(before, now=NOW + dt.timedelta(seconds=seconds))
        return asked(later, later.nodes, {}, FREELY)

    assert question(0) == question(29)
    assert question(0) != question(31)
