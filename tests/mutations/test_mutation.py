"""What applies mutations and tries tests on them: it sees a kill, and it says what is no kill."""

import pytest

from growth.units.duration import Duration
from tests.mutations.mutation import DoesNotApplyError, Mutation
from tests.mutations.rows import Row, try_rows

DURATION = "growth.units.duration"
QUANTITY = "growth.units.quantity"
CANDIDATES = "growth.planning.disruption.candidates"
READ = "unit.test_durations::test_a_duration_is_read_and_printed_as_go_does"
PYTHONS = "unit.test_durations::test_a_duration_is_given_in_pythons_types"
NEVER = "unit.test_durations::test_never_is_no_duration_but_may_stand_for_one"
CPU = "unit.test_quantities::test_cpu_is_counted_in_thousandths_rounded_up"
AMOUNTS = "unit.test_quantities::test_amounts_are_printed_in_the_style_of_their_resource"
PRINTED = "unit.test_quantities::test_a_quantity_keeps_its_style_and_takes_the_largest_suffix"
# The shapes in which code stands in a module: each must be reached.
REACHED = {
    "a function": (READ, Mutation(DURATION, "_decimal", "len(str(unit)) - 1", "len(str(unit))")),
    "a property": (PYTHONS, Mutation(DURATION, "Duration.seconds", "1_000_000_000", "1_000_000")),
    "a class method": (READ, Mutation(DURATION, "Duration.parse", "-total if negative else total", "total")),
    "a default": (AMOUNTS, Mutation(QUANTITY, "Quantity.of", "0", "3")),
    "a constant": (NEVER, Mutation(DURATION, "NEVER", '"Never"', '"Ever"')),
    "one of several": (READ, Mutation(DURATION, "Duration.__str__", "1_000_000", "1_000", index=1)),
    "behind a cache": (CPU, Mutation(QUANTITY, "_counted", "exponent", "exponent + 1")),
    "a function inside": (
        "unit.planning.test_deciding_emptiness::test_reasons_of_the_pool",
        Mutation(
            CANDIDATES,
            "_reasons",
            "Kept(node.name, node.pool, word, message, waits, disabled)",
            "Kept(node.name, node.pool, message, word)",
        ),
    ),
}
# What is no kill, and what is said of it.
FAULTS = {
    "survived": (PRINTED, Mutation(DURATION, "Duration.seconds", "1_000_000_000", "1_000_000")),
    "the expression is not there": (READ, Mutation(DURATION, "Duration.seconds", "self.seconds", "0")),
    "no item": ("unit.test_durations::test_of_nothing", Mutation(DURATION, "Duration.seconds", "1_000_000_000", "1")),
    "ended by SIGPROF": (READ, Mutation(DURATION, "Duration.parse", "match.end()", "position")),
}
MISFITS = {
    "nothing changes": Mutation(DURATION, "Duration.seconds", "self.nanoseconds", "(self.nanoseconds)"),
    "occurs 4 times": Mutation(DURATION, "Duration.of", "0", "1"),
    "no expression": Mutation(DURATION, "Duration.seconds", "self.nanoseconds", "raise ValueError"),
    "minutes is not there": Mutation(DURATION, "Duration.minutes", "self.nanoseconds", "1"),
    "hours is not known there": Mutation(DURATION, "Duration.seconds", "self.nanoseconds", "hours"),
    "No module named": Mutation("growth.units.length", "Duration.seconds", "self.nanoseconds", "1"),
    "only the product": Mutation("tests.manifests", "pod", "1", "2"),
}


def test_a_mutation_is_seen_wherever_the_expression_stands() -> None:
    """The test of each fails under its mutation, and by an assertion or an error of its own."""
    rows = [Row(name, test, mutation) for name, (test, mutation) in REACHED.items()]
    assert {each.promise: each.fault for each in try_rows(rows)} == dict.fromkeys(REACHED, "")


def test_what_is_no_kill_is_told() -> None:
    """A test that passes, runs without end or is not there kills nothing; nor does a mutation that fits nowhere."""
    rows = [Row(name, test, mutation) for name, (test, mutation) in FAULTS.items()]
    for verdict in try_rows(rows):
        assert verdict.promise in verdict.fault


@pytest.mark.parametrize("said", MISFITS)
def test_a_mutation_that_does_not_fit_is_refused(said: str) -> None:
    """The error names the mutation and what is wrong with it, and nothing is changed."""
    with pytest.raises(DoesNotApplyError, match=said):
        MISFITS[said].apply()
    assert Duration.of(seconds=1).seconds == 1
