"""What resources are worth, on amounts that no ordinary machine has: the order of a search, which must always be found."""

import numpy as np
import pytest

from growth.planning.disruption.decide import decide
from growth.planning.disruption.search.guide import guide
from tests.unit.planning.clusters import LARGE, cluster, machine, pods, pool

TOKEN = "example.com/token"


@pytest.mark.parametrize("room", [1e14, 1e15, 1e18, float(1 << 63)])
def test_whatever_a_machine_says_it_has_resources_have_a_worth(room: float) -> None:
    """One of which there is far more than anybody asks for takes nothing from what the others are worth."""
    plain = guide(
        np.array([[4.0], [8.0]]),
        np.array([1.0, 3.0]),
        np.array([2.0]),
        sold_rooms=np.array([[4.0]]),
        sold_prices=np.array([1.5]),
    )
    found = guide(
        np.array([[4.0, room], [8.0, 0.0]]),
        np.array([1.0, 3.0]),
        np.array([2.0, 1.0]),
        sold_rooms=np.array([[4.0, 0.0]]),
        sold_prices=np.array([1.5]),
    )
    assert found.worth[0] == pytest.approx(plain.worth[0])
    assert found.worth[1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("resource", "room", "asked"),
    [
        (TOKEN, "1P", "1"),
        (TOKEN, "9223372036854775807", "1"),
        ("ephemeral-storage", "2Pi", "1"),
        ("pods", "9223372036854775807", ""),
    ],
)
def test_a_node_with_more_than_anybody_asks_for_stops_no_decision(resource: str, room: str, asked: str) -> None:
    """What it has is what its kubelet says, and whoever runs there goes where there is room."""
    roomy = machine("b")
    for each in roomy:
        each["status"]["allocatable"] |= {resource: room}
        each["status"]["capacity"] |= {resource: room}
    (guest,) = pods(1, on="b")
    if asked:
        resources = guest["spec"]["containers"][0]["resources"]
        resources["requests"] |= {resource: asked}
        resources["limits"] = {resource: asked}
    made = decide(cluster(pool(types=(LARGE,)), machine("a"), pods(2, on="a"), roomy, guest))
    assert len(made.moves) == 1
