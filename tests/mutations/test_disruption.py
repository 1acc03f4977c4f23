"""Karpenter's rules of disruption: each has a test that fails when it is broken."""

from collections.abc import Callable

from tests.mutations.rows import check
from tests.simulation.test_disruption_sentences import RULES


def test_every_rule_of_disruption_has_a_mutation_that_is_killed(record_property: Callable[[str, object], None]) -> None:
    """The mutation of each row makes its test fail, and the test passes without it."""
    check(RULES, record_property)
