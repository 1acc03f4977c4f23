"""The simulated day of waves, in small."""

import argparse

import pytest

from bench import calm
from growth.sim.scenario.model import Waves


def test_a_slice_of_the_day_is_calm() -> None:
    """Half an hour of small waves: no circle, no broken promise, and both sides are run and told."""
    options = argparse.Namespace(hours=0.5, share=0.1, seed=0, sides=[calm.GROWTH, calm.RULE])
    made = calm.measure(options)
    ours, theirs = made["sides"]
    assert (ours["side"], theirs["side"]) == (calm.GROWTH, calm.RULE)
    assert (ours["circles"], ours["violations"]) == (0, 0)
    assert ours["cost"] >= ours["bound"] > 0
    assert theirs["cost"] > 0


@pytest.mark.parametrize(
    ("at", "pods"), [(0, 10), (899, 10), (900, 20), (1800, 30), (2700, 20), (3600, 10), (4500, 20)]
)
def test_the_bound_asks_for_the_pods_that_the_load_plays(at: float, pods: int) -> None:
    """A wave goes up and down in its steps, and begins anew with each period."""
    assert calm.wanted(Waves(name="web", low=10, high=30, period="1h", steps=2), at) == pods


def test_the_bound_grows_with_what_is_wanted() -> None:
    """Twice the pods for as long cost about twice as much; no pods cost nothing more."""
    once = calm.integral(calm.workloads(1.0), 3600.0, until=3600.0)
    twice = calm.integral(calm.workloads(2.0), 3600.0, until=3600.0)
    assert 1.8 < twice / once < 2.2
