"""The sentences on who owns machines, claims and Nodes: each has a test that fails when it is broken."""

from collections.abc import Callable

from tests.mutations.rows import check
from tests.simulation.test_ownership_sentences import SENTENCES


def test_every_sentence_of_ownership_has_a_mutation_that_is_killed(
    record_property: Callable[[str, object], None],
) -> None:
    """The mutation of each row makes its test fail, and the test passes without it."""
    check(SENTENCES, record_property)
