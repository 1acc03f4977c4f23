"""The table of docs/linode.md: each rule has a test that fails when the rule is broken."""

from collections.abc import Callable

from tests.mutations.linode import MUTATIONS
from tests.mutations.pages import rows_of
from tests.mutations.rows import check


def test_every_rule_of_lke_pools_has_a_mutation_that_is_killed(record_property: Callable[[str, object], None]) -> None:
    """The mutation of each row makes its test fail, the test passes without it, and no mutation is left over."""
    rows = list(rows_of("linode.md", "simulation", MUTATIONS))
    assert not set(MUTATIONS) - {each.shown.partition("::")[2] for each in rows}
    check(rows, record_property)
