"""What is promised of `minValues` and of node limits, sentence by sentence, and the test that shows each.

A sentence that is about disruption, validation or writing is named with the part of the house that owes it.
"""

import importlib

import pytest

# (what is promised, module and name of its test) or (what is promised, "owed by: …").
MIN_VALUES: list[tuple[str, str]] = [
    (
        "A requirement of a pool may carry `minValues` beside its operator and values.",
        "test_min_values::test_it_counts_only_values_that_the_requirement_admits",
    ),
    (
        "In and Exists requirements with `minValues` stand side by side and hold together.",
        "test_min_values::test_two_wishes_hold_at_once",
    ),
    (
        "First fit packs pods onto a planned claim as long as one type holds them all, if nothing asks for more.",
        "test_min_values::test_without_min_values_packing_goes_on",
    ),
    (
        "A planned claim holds every type that is still possible, and fewer with every pod that joins.",
        "test_packing::test_every_type_that_fits_is_listed_cheapest_first",
    ),
    (
        "The minimum is «at least»: more values than asked for are kept.",
        "test_min_values::test_a_claim_lists_as_many_types_as_asked",
    ),
    (
        "No type is dropped in order to come down to the number asked for, least of all the cheapest.",
        "test_min_values::test_two_wishes_hold_at_once",
    ),
    (
        "Pods that go to the pool must leave it its choice: of types, of families, of architectures.",
        "test_min_values::test_a_pool_of_two_architectures_stays_open_to_both",
    ),
    (
        "When the pods on a planned claim would leave too few values, another planned claim is opened instead.",
        "test_min_values::test_a_pod_that_leaves_too_few_types_opens_another_claim",
    ),
    (
        "When one pod alone leaves too few values, the pool is out, and the next pool by weight is asked.",
        "test_min_values::test_a_single_pod_that_breaks_it_goes_to_the_next_pool",
    ),
    (
        "That next pool may be one without `minValues`.",
        "test_min_values::test_a_single_pod_that_breaks_it_goes_to_the_next_pool",
    ),
    (
        "Where no pool is left the pod is not scheduled, and is told so.",
        "test_min_values::test_a_single_pod_that_breaks_it_waits_where_there_is_no_other_pool",
    ),
    (
        "The check comes after the types were filtered by the pod's requirements.",
        "test_min_values::test_a_pods_selector_may_take_the_flexibility",
    ),
    (
        "What is counted are the values of the label among the types that are left, not the types.",
        "test_min_values::test_it_counts_values_and_not_types",
    ),
    (
        "Every `minValues` of the pool is checked, each label by itself.",
        "test_min_values::test_two_wishes_hold_at_once",
    ),
    (
        "Counting does not walk over all types again for every pod that is tried.",
        "test_min_values::test_counts_are_remembered",
    ),
    (
        "Only what can be launched counts as a choice.",
        "test_min_values::test_unavailable_types_are_not_counted",
    ),
    (
        "A claim lists enough types for `minValues`, even beyond the usual number.",
        "test_packing::test_a_claim_lists_more_where_min_values_needs_them",
    ),
    (
        "Nodes that were launched already are not held to it.",
        "test_min_values::test_machines_that_are_there_do_not_count",
    ),
    (
        "A policy may lower the minimum instead of leaving the pod out; the claim says so.",
        "test_min_values::test_best_effort_lowers_the_wish",
    ),
    ("The simulation of a consolidation respects `minValues` as a launch does.", "owed by: disruption"),
    ("After types were filtered by price a consolidation checks `minValues` again.", "owed by: disruption"),
    ("A consolidation that no longer meets it is rejected.", "owed by: disruption"),
    ("High minimums leave consolidation less to do.", "owed by: disruption"),
    ("Spot to spot keeps fifteen types where fewer are asked for.", "owed by: disruption"),
    ("Spot to spot keeps as many as `minValues` asks where that is more than fifteen.", "owed by: disruption"),
    ("Without fifteen cheaper types there is no move from spot to spot.", "owed by: disruption"),
    ("Drift does not look at `minValues`.", "owed by: disruption"),
]

NODE_LIMITS: list[tuple[str, str]] = [
    (
        "`limits.nodes` bounds the number of machines of a pool.",
        "test_limits::test_no_more_nodes_than_the_limit",
    ),
    (
        "It holds for pools that scale with their pods.",
        "test_limits::test_no_more_nodes_than_the_limit",
    ),
    (
        "It is enforced where machines are planned.",
        "test_limits::test_nodes_in_use_count_against_the_limit",
    ),
    (
        "Before a claim is planned the pool must have a node left.",
        "test_limits::test_a_limit_of_no_nodes_buys_none",
    ),
    (
        "Every planned machine counts as one node, whatever its size.",
        "test_limits::test_several_limits_hold_at_once",
    ),
    (
        "What a planned machine takes is subtracted at once, so that the next one sees it.",
        "test_limits::test_capacity_counts_and_not_requests",
    ),
    (
        "When the limit is used up no claim is made, and the pods hear why.",
        "test_limits::test_what_is_left_over_is_told_the_limit",
    ),
    (
        "Other resources can be limited in the same list, and all limits hold together.",
        "test_limits::test_several_limits_hold_at_once",
    ),
    (
        "A limit is one pool's own; there is none over all pools.",
        "test_limits::test_limits_are_each_pools_own",
    ),
    (
        "Nodes that no pool made are not counted.",
        "test_limits::test_nodes_of_no_pool_are_not_counted",
    ),
    (
        "The count never exceeds the limit, in no burst of pods.",
        "test_limits::test_a_burst_stays_within_the_limit",
    ),
    (
        "A limit below what is there stops purchases at once.",
        "test_limits::test_a_pool_beyond_its_limit_buys_nothing",
    ),
    (
        "At the limit pods still go where there is room.",
        "test_limits::test_existing_nodes_are_filled_at_the_limit",
    ),
    ("In mode Hard replacements for consolidation and drift stay within the limit.", "owed by: disruption"),
    ("In mode Soft replacements may pass it for a while.", "owed by: disruption"),
    ("The remaining nodes bound the budget of disruption.", "owed by: disruption"),
    ("A disruption blocked by the limit has an event of its own.", "owed by: disruption"),
    ("Expiration is not held back by the limit.", "owed by: disruption"),
    ("More nodes than the limit are terminated down to it, in order.", "owed by: disruption"),
    ("Lowering the limit is no drift.", "owed by: disruption"),
    ("The pool's status tells its number of nodes.", "owed by: controllers"),
    ("`nodeLimitMode` is Hard or Soft, and Hard where nothing is said.", "owed by: api"),
]

SENTENCES = [("minValues", *each) for each in MIN_VALUES] + [("node limits", *each) for each in NODE_LIMITS]


@pytest.mark.parametrize(
    ("shown", "promise"),
    [(shown, promise) for _, promise, shown in SENTENCES if not shown.startswith("owed by: ")],
    ids=[promise for _, promise, shown in SENTENCES if not shown.startswith("owed by: ")],
)
def test_every_promise_of_planning_has_its_test(shown: str, promise: str) -> None:
    """The test that is named exists."""
    module, _, name = shown.partition("::")
    found = getattr(importlib.import_module(f"tests.unit.planning.{module}"), name, None)
    assert found is not None, f"{promise} names {shown}, which is not there"
    assert found.__doc__


def test_what_others_owe_is_said() -> None:
    """Every promise is planning's or names who owes it."""
    owed = {shown for _, _, shown in SENTENCES if shown.startswith("owed by: ")}
    assert owed == {"owed by: disruption", "owed by: controllers", "owed by: api"}
