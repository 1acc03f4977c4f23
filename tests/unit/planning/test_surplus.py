"""Which machines go first where a pool has too many."""

import datetime as dt

from growth.api import names
from growth.planning.disruption.surplus import Held, excess, order
from tests.unit.planning.disrupting import NOW, pod, pods_of

PROTECTED = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}
DEAR = {names.POD_DELETION_COST_ANNOTATION: str(1 << 28)}


def test_unlaunched_then_empty_then_cheap_to_disturb_then_protected() -> None:
    """Karpenter's order for static capacity; where pods run a protected one goes only when nothing else is left."""
    claims = [
        Held(name="protected-node", protected=True, pods=[pod()]),
        Held(name="protected-pod", pods=[pod(annotations=PROTECTED)]),
        Held(name="protected-daemon", pods=[pod(owner="DaemonSet", annotations=PROTECTED)]),
        Held(name="one-dear-pod", pods=[pod(annotations=DEAR)]),
        Held(name="two-pods", pods=pods_of(2)),
        Held(name="one-pod", pods=[pod()]),
        Held(name="empty", pods=[pod(owner="DaemonSet")]),
        Held(name="unlaunched", launched=False),
    ]
    expected = (
        "unlaunched",
        "empty",
        "one-pod",
        "two-pods",
        "one-dear-pod",
        "protected-daemon",
        "protected-node",
        "protected-pod",
    )
    assert order(claims, now=NOW) == order(reversed(claims), now=NOW) == expected


def test_no_pod_moves_for_the_sake_of_an_empty_node() -> None:
    """One that somebody has marked goes after the other empty ones, and before any that is used."""
    claims = [
        Held(name="a-marked", protected=True),
        Held(name="b-daemon", protected=True, pods=[pod(owner="DaemonSet")]),
        Held(name="c-empty"),
        Held(name="d-used", pods=[pod()]),
    ]
    assert order(claims, now=NOW) == ("c-empty", "a-marked", "b-daemon", "d-used")


def test_of_equals_the_older_goes_and_then_the_first_by_name() -> None:
    """Equal input gives an equal order."""
    old, new = NOW - dt.timedelta(days=2), NOW
    claims = [Held(name="a", created=new), Held(name="c", created=old), Held(name="b", created=old)]
    assert order(claims, now=NOW) == ("b", "c", "a")


def test_a_protection_that_has_ended_protects_nothing() -> None:
    """A duration is counted from the pod's start."""
    ended = pod("p", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "1h"}, started=3601)
    held = Held(name="a", protected=True, pods=[pod()])
    assert order([Held(name="b", pods=[ended]), held], now=NOW) == ("b", "a")


def test_only_what_is_too_many_goes_and_who_goes_already_is_not_counted() -> None:
    """With a disruption under way its candidates make room by themselves: the limit does not fight it."""
    claims = [Held(name=f"n-{at}") for at in range(4)]
    assert excess(claims, most=4, now=NOW) == ()
    assert excess(claims, most=2, now=NOW) == ("n-0", "n-1")
    assert excess(claims, most=0, now=NOW) == ("n-0", "n-1", "n-2", "n-3")
    replacing = [*claims, Held(name="old", going=True)]
    assert excess(replacing, most=4, now=NOW) == ()
    assert excess(replacing, most=3, now=NOW) == ("n-0",)
