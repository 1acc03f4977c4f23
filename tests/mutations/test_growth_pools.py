"""The table of docs/growth-pools.md: each step has a test that fails when the step is done wrong."""

from collections.abc import Callable

from tests.mutations.growth_pools import MUTATIONS
from tests.mutations.pages import rows_of
from tests.mutations.rows import check


def test_every_step_of_growth_pools_has_a_mutation_that_is_killed(
    record_property: Callable[[str, object], None],
) -> None:
    """The mutation of each row makes its test fail, the test passes without it, and no mutation is left over."""
    rows = list(rows_of("growth-pools.md", "simulation", MUTATIONS))
    assert not set(MUTATIONS) - {each.shown.partition("::")[2] for each in rows}
    check(rows, record_property)
