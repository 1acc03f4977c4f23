"""Money as a cloud bills it: every quantum that has begun, or every second."""

import pytest

from growth.providers.catalogues import builtin
from growth.sim.world.tally import owed, quanta_of


@pytest.mark.parametrize(
    ("seconds", "hours"), [(0.0, 1), (1.0, 1), (3599.0, 1), (3600.0, 1), (3600.5, 2), (7200.0, 2), (90_000.0, 25)]
)
def test_an_hour_that_has_begun_is_paid(seconds: float, hours: int) -> None:
    """A machine that was there at all costs one."""
    assert owed(1000, seconds, 3600) == 1000 * hours


def test_without_a_quantum_seconds_are_paid() -> None:
    """As most clouds do."""
    assert owed(3600, 90.0, 0) == 90


def test_hetzner_bills_hours_and_the_simulated_cloud_seconds() -> None:
    """Each offering says so, with the cap of its month."""
    hetzner = builtin("hetzner")
    assert set(quanta_of(hetzner).values()) == {3600}
    assert quanta_of(builtin("kwok")) == {}
    (cx33,) = [kind for kind in hetzner.types if kind.name == "cx33"]
    assert {each.billing.monthly_cap for each in cx33.offerings if each.billing is not None} == {8_490_000_000}
