"""Which Nodes are broken, since when, and when it is no machine's fault."""

import datetime as dt

import pytest

from growth.api.clouds import RepairPolicy
from growth.api.decoding import convert
from growth.api.nodes import Node
from growth.planning.repairs import Broken, broken, too_many

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
POLICIES = (
    RepairPolicy("Ready", "False", dt.timedelta(minutes=30)),
    RepairPolicy("DiskHealthy", "False", dt.timedelta(minutes=10)),
)


def node(**conditions: str) -> Node:
    told = [
        {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T12:00:00Z"}
        for kind, status in conditions.items()
    ]
    return convert({"metadata": {"name": "n"}, "status": {"conditions": told}}, Node)


def test_the_condition_that_is_due_first_counts() -> None:
    """Each policy has its own patience, from the condition's own transition."""
    found = broken(node(Ready="False", DiskHealthy="False"), POLICIES)
    assert found == Broken("DiskHealthy", "False", NOON, NOON + dt.timedelta(minutes=10))
    assert broken(node(Ready="False"), POLICIES) == Broken("Ready", "False", NOON, NOON + dt.timedelta(minutes=30))


def test_what_no_policy_names_is_sound() -> None:
    """Another status, another condition, no policy; and a condition that does not say since when."""
    assert broken(node(Ready="True", DiskHealthy="Unknown", Other="False"), POLICIES) is None
    assert broken(node(Ready="False"), ()) is None
    timeless = convert(
        {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}, Node
    )
    assert broken(timeless, POLICIES) is None


@pytest.mark.parametrize(
    ("nodes", "ill", "held"), [(1, 1, False), (5, 1, False), (5, 2, True), (6, 2, False), (10, 3, True)]
)
def test_more_than_a_fifth_rounded_up_is_too_many(*, nodes: int, ill: int, held: bool) -> None:
    """Broken ones count from the first moment, whether or not they are due."""
    fleet = [node(Ready="False")] * ill + [node(Ready="True")] * (nodes - ill)
    assert bool(too_many(fleet, POLICIES)) is held
