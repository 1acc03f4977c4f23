"""What is promised of `minValues` and of node limits, sentence by sentence, and the test that shows each.

A test without a package is planning's own; the others stand in the parts of the house that keep the promise.
"""

import importlib

import pytest

# (what is promised, module and name of its test).
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
    (
        "What is checked is that every `minValues` of the pool is still met by what is left.",
        "test_min_values::test_two_wishes_hold_at_once",
    ),
    (
        "As types fall away from a planned claim the counts go down with them, and each check is a look at a count.",
        "test_min_values::test_counts_are_remembered",
    ),
    (
        "The simulation of a consolidation respects `minValues` as a launch does.",
        "test_min_values_when_moving::test_a_replacement_lists_as_many_values_as_a_launch_would",
    ),
    (
        "What may replace nodes is reduced to types that are strictly cheaper than all that go together.",
        "test_prices_of_moves::test_every_type_that_may_come_costs_less_than_what_goes",
    ),
    (
        "What is cheaper may be too few types for `minValues`.",
        "test_min_values_when_moving::test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again",
    ),
    (
        "After types were filtered by price a consolidation checks `minValues` again.",
        "test_min_values_when_moving::test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again",
    ),
    (
        "A consolidation that no longer meets it is rejected.",
        "test_min_values_when_moving::test_the_minimum_of_every_label_counts",
    ),
    (
        "So is one of several machines of which one does not meet it.",
        "test_min_values_when_moving::test_each_of_several_replacements_meets_the_minimum",
    ),
    (
        "High minimums leave consolidation less to do.",
        "test_min_values_when_moving::test_each_of_several_replacements_meets_the_minimum",
    ),
    (
        "With ten of eleven types asked for, the eleventh can be replaced by the ten below it.",
        "test_min_values_when_moving::test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again",
    ),
    (
        "Once it is one of the ten nothing is cheaper any more.",
        "test_min_values_when_moving::test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again",
    ),
    (
        "Spot to spot asks for fifteen types by itself.",
        "test_min_values_when_moving::test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum",
    ),
    (
        "Without any `minValues` the fifteen are required and listed all the same.",
        "test_min_values_when_moving::test_spot_to_spot_lists_the_fifteen_cheapest",
    ),
    (
        "Spot to spot keeps as many as `minValues` asks where that is more than fifteen.",
        "test_min_values_when_moving::test_spot_to_spot_lists_more_where_the_minimum_is_more",
    ),
    (
        "Asked for thirty it lists thirty and does not cut down to fifteen.",
        "test_min_values_when_moving::test_spot_to_spot_lists_more_where_the_minimum_is_more",
    ),
    (
        "Where labels other than the type ask for values, the cheapest prefix is listed that has them all.",
        "test_min_values_when_moving::test_spot_to_spot_lists_until_every_label_has_its_values",
    ),
    (
        "Spot to spot keeps fifteen types where fewer are asked for.",
        "test_min_values_when_moving::test_spot_to_spot_lists_the_fifteen_cheapest",
    ),
    (
        "Asked for three, a move is planned with at least three and then held to fifteen cheaper ones.",
        "test_min_values_when_moving::test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum",
    ),
    (
        "Without fifteen cheaper types there is no move from spot to spot.",
        "test_min_values_when_moving::test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum",
    ),
    (
        "Drift compares the pool's requirements with the labels of the claim.",
        "test_drift::test_requirements_are_held_against_the_labels_of_the_claim",
    ),
    ("Drift does not look at `minValues`.", "test_drift::test_min_values_are_no_drift"),
    (
        "A machine that is there was launched with enough choice: nobody asks again.",
        "test_drift::test_min_values_are_no_drift",
    ),
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
    (
        "Licences, addresses and quotas hold: no burst, race or second leader buys a machine too many.",
        "simulation.test_provisioning::test_limits_hold_under_two_leaders",
    ),
    (
        "Static pools have a node limit of their own, by the same field.",
        "simulation.test_static_pools::test_a_limit_below_the_replicas_holds",
    ),
    (
        "A Hard limit that is reached blocks purchases and graceful disruption alike.",
        "simulation.test_disruption_rules::test_at_a_hard_limit_deletions_go_on_and_replacements_wait",
    ),
    (
        "The reason is that what replaces is up before the old node goes, so that for a while there are more.",
        "simulation.test_moves::test_what_replaces_is_up_before_anything_goes",
    ),
    (
        "Moves that only delete make no more nodes: they go on at a Hard limit.",
        "simulation.test_worlds_at_their_limit::test_at_a_hard_limit_deletions_go_on_and_make_room",
    ),
    (
        "In mode Hard replacements for consolidation stay within the limit.",
        "simulation.test_disruption_rules::test_at_a_hard_limit_deletions_go_on_and_replacements_wait",
    ),
    (
        "In mode Hard replacements for drift stay within the limit.",
        "simulation.test_disruption_rules::test_at_a_hard_limit_drift_waits_too_and_says_so",
    ),
    (
        "The count never exceeds a Hard limit, whatever is disrupted.",
        "test_deciding::test_below_a_hard_limit_as_many_are_replaced_as_may_come",
    ),
    (
        "It is the same for every operation: one count, one limit.",
        "unit.test_booking::test_nodes_are_counted_with_what_exists_and_what_is_reserved",
    ),
    (
        "At the limit a cheaper cluster may have to wait.",
        "test_deciding::test_at_a_hard_limit_nothing_is_replaced_and_deletions_go_on",
    ),
    ("A Soft limit bounds what pending pods buy.", "unit.test_booking::test_only_what_replaces_may_pass_a_soft_limit"),
    (
        "In mode Soft consolidation goes on at the limit.",
        "simulation.test_disruption_rules::test_at_a_soft_limit_replacements_come_first_and_nothing_fights_them",
    ),
    ("In mode Soft drift goes on at the limit.", "simulation.test_worlds_at_their_limit::test_drift_at_the_limit"),
    (
        "In the end there are no more nodes than the limit again.",
        "simulation.test_worlds_at_their_limit::test_a_soft_limit_holds_again_afterwards",
    ),
    (
        "In mode Soft replacements may pass it for a while.",
        "simulation.test_moves::test_a_soft_limit_lets_the_replacement_come_first",
    ),
    (
        "Where the cloud refuses the machine too many, the move is taken back.",
        "simulation.test_moves::test_a_replacement_that_vanishes_takes_the_move_back",
    ),
    (
        "A machine that does not come up in time ends the move and does not go round again at once.",
        "simulation.test_moves::test_what_does_not_come_up_in_time_is_not_bought_again_at_once",
    ),
    ("Each pool chooses its mode.", "test_room::test_each_pool_has_its_own_mode"),
    ("The mode is the field spec.disruption.nodeLimitMode.", "test_room::test_a_soft_limit_bounds_no_move"),
    ("`nodeLimitMode` is Hard or Soft.", "conformance.test_our_kinds::test_bad_objects_are_refused"),
    (
        "It is Hard where nothing is said.",
        "conformance.test_our_kinds::test_a_pool_gets_the_defaults_of_its_definition",
    ),
    (
        "Hard for what cannot be, Soft for what only costs: both work side by side.",
        "test_deciding::test_hard_and_soft_limits_work_side_by_side",
    ),
    ("Without a limit there is no bound by it.", "test_room::test_without_budgets_and_limits_there_is_no_bound"),
    ("What remains is the limit less the count.", "test_room::test_the_limit_counts_what_is_on_its_way_too"),
    (
        "The remaining nodes bound the budget of disruption: the smaller of the two counts.",
        "test_room::test_a_hard_limit_bounds_replacements_and_not_deletions",
    ),
    ("What remains below nothing is nothing.", "test_room::test_a_hard_limit_bounds_replacements_and_not_deletions"),
    ("A Soft limit leaves the budgets as they are.", "test_room::test_a_soft_limit_bounds_no_move"),
    (
        "A disruption blocked by the limit has an event of its own, not the budget's.",
        "test_room::test_the_limits_event_is_not_the_budgets",
    ),
    (
        "It is a Normal event DisruptionBlocked on the NodePool, and names the reason of the disruption.",
        "simulation.test_disruption_rules::test_at_a_hard_limit_drift_waits_too_and_says_so",
    ),
    (
        "Expiration is not held back by the limit.",
        "simulation.test_expiration::test_neither_budgets_nor_limits_nor_marks_on_the_node_hold_it",
    ),
    (
        "More nodes than the limit are terminated down to it.",
        "simulation.test_over_limit::test_a_lowered_limit_acts_at_once_and_past_budgets",
    ),
    (
        "They go in the order of static capacity.",
        "test_surplus::test_unlaunched_then_empty_then_cheap_to_disturb_then_protected",
    ),
    ("That order is asked where machines are ended.", "simulation.test_over_limit::test_the_least_costly_go_first"),
    ("What is being replaced is no surplus.", "simulation.test_over_limit::test_what_is_being_replaced_is_no_surplus"),
    (
        "A limit that is lowered below the count acts at once.",
        "simulation.test_over_limit::test_a_lowered_limit_acts_at_once_and_past_budgets",
    ),
    ("Lowering the limit is no drift.", "simulation.test_drifting::test_limits_budgets_and_weight_are_no_drift"),
    (
        "The pool's status tells its number of nodes.",
        "simulation.test_pools::test_a_pool_counts_what_its_machines_have",
    ),
]

SENTENCES = [("minValues", *each) for each in MIN_VALUES] + [("node limits", *each) for each in NODE_LIMITS]


@pytest.mark.parametrize(
    ("promise", "shown"), [(promise, shown) for _, promise, shown in SENTENCES], ids=[each[1] for each in SENTENCES]
)
def test_every_promise_has_its_test(promise: str, shown: str) -> None:
    """The test that is named exists."""
    module, _, name = shown.partition("::")
    found = getattr(
        importlib.import_module(f"tests.{module if '.' in module else f'unit.planning.{module}'}"), name, None
    )
    assert found is not None, f"{promise} names {shown}, which is not there"
    assert found.__doc__
