"""The independent witnesses of the `cost` packer: a bound that nothing beats, and small instances solved exactly."""

import argparse

import numpy as np
import pytest

from bench import exact, integers, patterns
from bench.exact import Instance


def test_small_instances_are_bounded_and_solved() -> None:
    """lowerBound ≤ optimum ≤ objective, and the second linear program agrees. `python -m bench exact` tries 500."""
    assert exact.measure(argparse.Namespace(instances=25, first=1000))["wrong"] == "none"


def problem_of(instance: Instance) -> patterns.Problem:
    classes = instance._classes()
    return patterns.Problem(
        price=np.array([float(price + instance.node_cost) for _, price in instance._types]),
        room=np.array([room for room, _ in instance._types], dtype=np.float64),
        request=np.array([size for size, _ in classes], dtype=np.float64),
        count=np.array([number for _, number in classes], dtype=np.float64),
        fits=np.ones((len(instance._types), len(classes)), dtype=np.bool_),
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_configuration_bound_is_between_the_assignment_and_the_optimum(seed: int) -> None:
    """Whole machines with whole pods bound better than fractions of both, and never above what is possible."""
    instance = Instance(seed)
    found = patterns.bound(problem_of(instance))
    assert instance.assignment() * (1 - 2 * patterns.CLOSE) <= found.value <= instance.optimum() * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_integer_bound_is_between_the_configuration_bound_and_the_optimum(seed: int) -> None:
    """Machines in whole numbers bound at least as well as fractions of them, and never above what is possible."""
    instance = Instance(seed)
    problem = problem_of(instance)
    found = patterns.bound(problem)
    assert found.value <= integers.integer_bound(problem, found) <= instance.optimum() * (1 + 1e-9)


def test_the_integer_bound_buys_no_part_of_a_machine() -> None:
    """One small pod costs a whole machine, though a fraction of one would hold it."""
    problem = patterns.Problem(
        price=np.array([1.0, 3.0]),
        room=np.array([[4000.0, 8000.0, 10.0], [16000.0, 32000.0, 40.0]]),
        request=np.array([[1000.0, 1000.0, 1.0]]),
        count=np.array([1.0]),
        fits=np.ones((2, 1), dtype=np.bool_),
    )
    assert integers.integer_bound(problem, patterns.bound(problem)) == pytest.approx(1.0, rel=1e-5)


def test_the_bound_refuses_pods_that_nothing_holds() -> None:
    """A pod larger than every machine is an error, not a bound of zero."""
    problem = patterns.Problem(
        price=np.array([1.0]),
        room=np.array([[1000.0, 1000.0, 10.0]]),
        request=np.array([[2000.0, 1.0, 1.0]]),
        count=np.array([1.0]),
        fits=np.ones((1, 1), dtype=np.bool_),
    )
    with pytest.raises(ValueError, match="no machine holds some pod"):
        patterns.bound(problem)
