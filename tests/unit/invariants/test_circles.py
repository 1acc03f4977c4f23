"""Machines that come back in the place of those that took theirs, while nothing changes."""

import pytest

from growth.sim.invariants import moves
from growth.sim.invariants.books import CLAIMS
from tests.unit.invariants.histories import GROWTH, History, claim

# Who came in whose place, in this order, each as «name: type < names».
Move = tuple[str, str, tuple[str, ...]]


def told(*came: Move) -> list[str]:
    history = History(moves.Circle())
    history.case.calm_since = 0.0
    for at, (name, kind, replaced) in enumerate(came):
        labels = dict.fromkeys(moves.KIND, "same") | {moves.KIND[0]: kind}
        annotations = {moves.REPLACES: ",".join(replaced)} if replaced else {}
        body = claim(name, labels=labels, annotations=annotations)
        history.put(CLAIMS, body, by=GROWTH, at=moves.REST_SECONDS + at)
    return history.said


TWO = (("a1", "large", ()), ("a2", "large", ()), ("b1", "small", ("a1",)), ("b2", "small", ("a2",)))

BESIDES = (("a", "large", ()), ("x", "small", ()), ("b", "small", ("a",)))


@pytest.mark.parametrize(
    ("came", "said"),
    [
        pytest.param((("a", "large", ()), ("b", "small", ("a",))), 0, id="another"),
        pytest.param((("a", "large", ()), ("b", "large", ("a",))), 1, id="the same at once"),
        pytest.param((("a", "large", ()), ("b", "small", ("a",)), ("c", "large", ("b",))), 1, id="back"),
        pytest.param(
            (
                ("a", "large", ()),
                ("b1", "small", ("a",)),
                ("b2", "small", ("a",)),
                ("c", "large", ("b1", "b2")),
            ),
            1,
            id="back from two",
        ),
        pytest.param((*TWO, ("c", "large", ("b1", "b2"))), 0, id="one of two"),
        pytest.param((*TWO, ("c1", "large", ("b1", "b2")), ("c2", "large", ("b1", "b2"))), 1, id="two of two"),
        pytest.param((*BESIDES, ("c", "large", ("b", "x"))), 0, id="another goes besides"),
        pytest.param(
            (*BESIDES, ("y", "small", ("b", "x")), ("c", "large", ("b", "x"))), 1, id="another goes besides and comes"
        ),
        pytest.param(
            (*BESIDES, ("c", "large", ("b", "x")), ("d1", "small", ("c",)), ("d2", "small", ("c",))),
            1,
            id="another goes besides and all come back",
        ),
        pytest.param(
            (*TWO, ("c", "large", ("b1", "b2")), ("d", "small", ("c",)), ("e", "large", ("d",))),
            1,
            id="one of two and back",
        ),
    ],
)
def test_circles(came: tuple[Move, ...], said: int) -> None:
    assert len(told(*came)) == said
