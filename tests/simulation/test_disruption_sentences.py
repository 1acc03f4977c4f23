"""Karpenter's rules of disruption, of budgets, candidates, drift, consolidation and ends, and the test that shows each.

Users rely on them, and dashboards and other controllers do. Where we do more, or otherwise, it stands at the end.
The mutation beside a test makes it fail; `tests/mutations` tries each.
"""

import pytest

from tests.mutations.rows import Row

RULES: list[Row] = [
    # Budgets.
    Row(
        "Schedules of budgets are cron in UTC.",
        "simulation.test_disruption_rules::test_a_budget_of_nothing_holds_while_its_window_lasts",
    ),
    Row(
        "A budget is active for its duration after each hit of its schedule.",
        "unit.planning.test_node_budgets::test_schedules",
    ),
    Row(
        "A percentage is of the pool's nodes and rounds up.",
        "unit.planning.test_node_budgets::test_counts_and_percentages",
    ),
    Row(
        "The smallest active budget counts that is for the reason, or for all.",
        "unit.planning.test_node_budgets::test_the_smallest_active_budget_of_the_reason_counts",
    ),
    Row(
        "Reasons of budgets are Empty, Drifted, Underutilized and Unhealthy.",
        "unit.planning.test_room::test_a_budget_holds_for_its_reasons_alone",
    ),
    Row(
        "A schedule that cannot be read fails closed.",
        "simulation.test_disruption_of_empty_nodes::test_a_budget_that_cannot_be_read_allows_nothing",
    ),
    Row(
        "Nodes that are not ready or marked for deletion use the budget up.",
        "unit.planning.test_room::test_nodes_that_are_not_ready_or_going_use_the_budget_of_every_reason",
    ),
    Row(
        "Only managed, initialised nodes are counted, and none whose machine is terminating.",
        "unit.planning.test_deciding::test_budgets_count_managed_initialised_nodes_alone",
    ),
    # Controllers.
    Row("A pod that kube-scheduler marked starts a batch.", "unit.test_demand::test_a_marked_pod_counts_at_once"),
    Row(
        "Pods of a node that goes are demand.",
        "simulation.test_provisioning::test_pods_of_a_machine_that_goes_are_demand",
    ),
    Row(
        "A batch ends a second after the last news.",
        "unit.test_demand::test_a_batch_ends_a_second_after_the_last_new_sort",
    ),
    Row(
        "It ends after ten seconds in any case.", "unit.test_demand::test_a_batch_ends_after_ten_seconds_whatever_comes"
    ),
    Row(
        "A disruption taints, buys what replaces, waits until that is initialised, and deletes then.",
        "simulation.test_moves::test_what_replaces_is_up_before_anything_goes",
    ),
    Row(
        "What does not come up in time ends the disruption, and the taint is taken off.",
        "simulation.test_moves::test_what_does_not_come_up_is_given_up_after_ten_minutes",
    ),
    Row(
        "The time is 80 ms for each node that goes, between ten minutes and an hour.",
        "unit.controllers.test_memory_of_moves::test_a_move_may_take_longer_where_many_nodes_go",
    ),
    Row(
        "A replacement that fails ends it too.",
        "simulation.test_moves::test_a_replacement_that_vanishes_takes_the_move_back",
    ),
    Row(
        "A claim that is not launched within five minutes is given up.",
        "simulation.test_liveness::test_a_claim_that_cannot_be_launched_is_given_up_after_five_minutes",
    ),
    Row(
        "One that is not registered within fifteen is given up.",
        "simulation.test_liveness::test_a_machine_that_never_registers_is_given_up_after_a_quarter_of_an_hour",
    ),
    Row(
        "Drift is a condition of the claim, looked at when something changes.",
        "simulation.test_drifting::test_a_changed_template_marks_its_machines_and_a_change_back_unmarks_them",
    ),
    Row(
        "It is looked at every five minutes, too.", "simulation.test_drifting::test_the_clouds_own_reason_is_passed_on"
    ),
    Row(
        "Expiration deletes at the very age, past budgets.",
        "simulation.test_expiration::test_a_claim_goes_at_its_age_and_not_a_second_before",
    ),
    Row(
        "A claim whose machine is missing, and whose Node is not ready, is collected.",
        "simulation.test_collection::test_a_claim_goes_when_its_machine_was_not_found_twice",
    ),
    Row(
        "A Node that is deleted is tainted, drained, freed of its volumes, and its machine ended.",
        "simulation.test_termination::test_deleting_a_node_ends_its_claim_and_its_machine",
    ),
    Row(
        "A broken node is repaired when its cloud has lost patience.",
        "simulation.test_repair::test_a_node_that_stays_broken_goes_when_its_cloud_has_lost_patience",
    ),
    Row(
        "It is not when more than a fifth of its pool is broken.",
        "simulation.test_repair::test_more_than_a_fifth_of_a_pool_is_nobodys_fault",
    ),
    Row("The fifth is rounded up.", "simulation.test_repair::test_the_share_is_rounded_up"),
    Row(
        "Pools have hashes, conditions and counts.", "simulation.test_pools::test_a_pool_counts_what_its_machines_have"
    ),
    Row("A static pool keeps its replicas.", "simulation.test_static_pools::test_scaling_up_and_down_follows_at_once"),
    Row(
        "It scales down unlaunched, empty, unprotected, cheapest to disturb.",
        "unit.planning.test_surplus::test_unlaunched_then_empty_then_cheap_to_disturb_then_protected",
    ),
    Row(
        "Its controller asks for that order.", "simulation.test_static_pools::test_scaling_down_takes_what_costs_least"
    ),
    Row(
        "NodeOverlays change prices and capacity.",
        "simulation.test_provisioning::test_an_overlay_decides_what_is_bought",
    ),
    Row("CapacityBuffers keep room.", "simulation.test_provisioning::test_a_buffer_keeps_room_and_refills_it"),
    # Who is a candidate.
    Row(
        "Nodes without a claim take pods and are never candidates.",
        "unit.planning.test_deciding::test_a_node_without_a_claim_takes_pods_and_never_goes",
    ),
    Row(
        "Nodes that are not ours or not initialised are named, and stay.",
        "unit.test_plan_consolidate::test_every_node_is_in_one_of_the_lists",
    ),
    Row(
        "A node that a pass promised to a pod is left alone for twenty seconds.",
        "simulation.test_disruption_of_empty_nodes::test_nominated_nodes_stay",
    ),
    Row(
        "consolidateAfter counts from the last pod that came or went, else from initialisation.",
        "simulation.test_disruption_of_empty_nodes::test_consolidate_after_counts_from_the_last_pod",
    ),
    Row("Never disables consolidation.", "unit.planning.test_deciding_emptiness::test_reasons_of_the_pool"),
    Row(
        "consolidateAfter forbids destinations for moved pods too.",
        "simulation.test_disruption_rules::test_nothing_is_moved_to_where_pods_came_a_moment_ago",
    ),
    Row(
        "Pods without a place may be placed there.",
        "unit.planning.test_consolidating::test_nothing_is_moved_to_a_node_that_is_not_quiet",
    ),
    Row(
        "So may pods of nodes that go in any case.",
        "unit.planning.test_rehousing::test_pods_of_a_node_that_goes_may_come_where_others_came_a_moment_ago",
    ),
    Row(
        "do-not-disrupt on a pod is true or a time since its start.",
        "unit.planning.test_candidates::test_a_pods_annotation_is_true_or_a_time_since_its_start",
    ),
    Row(
        "When the time is up the node goes.",
        "simulation.test_disruption_rules::test_a_pods_protection_ends_with_its_time",
    ),
    Row("do-not-disrupt on a node is true.", "simulation.test_disruption_rules::test_a_nodes_own_annotation_holds_it"),
    Row(
        "Terminal and terminating pods never block.",
        "unit.planning.test_candidates::test_finished_and_going_pods_protect_nothing",
    ),
    Row("DaemonSets' pods can.", "unit.planning.test_candidates::test_whoever_owns_it_a_pod_can_protect_its_node"),
    Row(
        "Emptiness stops at budgets of pods and do-not-disrupt.",
        "unit.planning.test_deciding_emptiness::test_what_protects_a_pod_keeps_an_empty_node",
    ),
    Row(
        "Consolidation stops at budgets of pods.",
        "simulation.test_disruption_rules::test_a_budget_of_pods_holds_its_node_until_it_allows_an_eviction",
    ),
    Row(
        "Consolidation stops at do-not-disrupt.",
        "unit.planning.test_candidates::test_whoever_owns_it_a_pod_can_protect_its_node",
    ),
    Row(
        "Drift passes them where the claim has a termination grace period.",
        "simulation.test_disruption_rules::test_drift_passes_protected_pods_only_where_their_machine_ends_some_time",
    ),
    Row(
        "A pod with several budgets blocks.",
        "unit.planning.test_candidates::test_a_pod_with_two_budgets_can_never_be_evicted",
    ),
    Row(
        "A budget with no disruption allowed blocks.",
        "unit.planning.test_candidates::test_a_budget_without_an_eviction_left_keeps_the_node",
    ),
    Row(
        "Pods of a fully blocking budget are left out when replacements are sized.",
        "unit.planning.test_prices_of_moves::test_pods_that_nobody_can_make_leave_need_no_machine",
    ),
    Row(
        "Unhealthy pods pass a budget that always allows them.",
        "unit.planning.test_candidates::test_an_unhealthy_pod_passes_where_its_budget_always_allows_it",
    ),
    # Ends.
    Row(
        "Pods leave in four tiers, each of which must finish first.",
        "simulation.test_termination::test_pods_leave_tier_by_tier",
    ),
    Row(
        "At the deadline less its own grace a pod is deleted by force, in all tiers at once.",
        "simulation.test_termination::test_the_deadline_ends_pods_past_budgets_and_annotations",
    ),
    Row(
        "Volumes are waited for until the deadline.",
        "simulation.test_termination::test_volumes_are_not_waited_for_past_the_deadline",
    ),
    Row(
        "Those of pods that stay on the node to its end are not.",
        "simulation.test_termination::test_volumes_are_detached_first",
    ),
    Row(
        "A machine that is gone is not drained.",
        "simulation.test_termination::test_a_machine_that_is_gone_already_is_not_drained",
    ),
    Row(
        "Initialised is ready, without startup and ephemeral taints, with the resources that were asked for.",
        "simulation.test_lifecycle::test_a_node_is_usable_when_nothing_stands_in_the_way_any_more",
    ),
    # Drift.
    Row(
        "Template, requirements, type, cloud: the first reason in that order is told.",
        "unit.planning.test_drift::test_the_first_reason_in_order_is_told",
    ),
    Row(
        "The hash covers labels, annotations, taints, startup taints, class, grace and expiry.",
        "unit.planning.test_drift::test_a_changed_template_is_drift",
    ),
    Row(
        "Requirements are held against the claim's labels.",
        "unit.planning.test_drift::test_requirements_are_held_against_the_labels_of_the_claim",
    ),
    Row(
        "A missing type counts after an hour.",
        "unit.planning.test_drift::test_a_type_that_is_gone_is_drift_after_an_hour",
    ),
    Row("The cloud's own word is the last.", "simulation.test_drifting::test_the_clouds_own_reason_is_passed_on"),
    Row(
        "A hash of another version is stamped anew.",
        "simulation.test_drifting::test_a_hash_of_another_version_is_stamped_anew_and_no_drift",
    ),
    # State.
    Row(
        "Until a node is registered, labels and taints are the claim's.",
        "unit.test_assembling::test_until_a_node_is_registered_the_claims_labels_and_taints_count",
    ),
    Row(
        "Until it is initialised, what it does not report is the claim's.",
        "unit.test_assembling::test_what_a_node_does_not_report_yet_is_the_claims",
    ),
    Row(
        "Until then startup and ephemeral taints do not count.",
        "unit.test_assembling::test_until_a_node_is_initialised_taints_that_will_go_are_left_out",
    ),
    Row(
        "A missing unregistered taint is told, and the node registers.",
        "simulation.test_lifecycle::test_a_node_without_the_unregistered_taint_is_taken_and_told_of",
    ),
    Row(
        "The claim's own labels count before the cloud's.",
        "simulation.test_lifecycle::test_the_node_gets_what_the_claim_says_and_keeps_the_rest",
    ),
    # Safety of replacements.
    Row(
        "Nothing is deleted before what replaces it is up.",
        "simulation.test_moves::test_what_replaces_is_up_before_anything_goes",
    ),
    Row(
        "Taints that nobody stands for are taken off after a restart.",
        "simulation.test_disruption_of_empty_nodes::test_taints_that_nobody_stands_for_are_removed",
    ),
    Row(
        "A disruption under way is gone on with after a restart.",
        "simulation.test_moves::test_another_process_goes_on_with_a_move",
    ),
    Row(
        "Pods of a node that is being disrupted are not bought for twice.",
        "unit.planning.test_deciding::test_pods_of_a_node_that_is_being_disrupted_keep_their_place",
    ),
    Row("Static drift waits for scale-down.", "simulation.test_static_pools::test_scaling_comes_before_drift"),
    Row(
        "Static drift keeps within limits.nodes, and with no head-room is no deadlock.",
        "simulation.test_static_pools::test_at_the_limit_soft_replaces_first_and_hard_deletes_first",
    ),
    Row(
        "Limits hold inside a pass and under two leaders.",
        "simulation.test_provisioning::test_limits_hold_under_two_leaders",
    ),
    Row("One slow launch holds up nobody.", "simulation.test_launch_failures::test_one_slow_launch_holds_up_nobody"),
    # Emptiness.
    Row(
        "Empty is a node without a pod that needs a place and costs something to lose.",
        "unit.planning.test_deciding_emptiness::test_empty_nodes_go_and_used_ones_do_not",
    ),
    Row(
        "An eviction costs 1 + deletion cost ÷ 2²⁷ + priority ÷ 2²⁵, between −10 and 10.",
        "unit.planning.test_candidates::test_evictions_cost_by_annotation_and_priority_within_bounds",
    ),
    Row(
        "All empty nodes go that the budget allows, in one decision.",
        "simulation.test_disruption_of_empty_nodes::test_a_budget_lets_only_so_many_go_at_a_time",
    ),
    Row(
        "Nodes that hold a buffer's room stay.",
        "simulation.test_disruption_of_empty_nodes::test_nodes_that_hold_a_buffer_stay_and_say_so",
    ),
    Row("Under every policy.", "unit.planning.test_deciding_emptiness::test_every_policy_removes_empty_nodes"),
    # Order.
    Row(
        "Empty, then drifted, then underutilised nodes.",
        "unit.planning.test_deciding::test_empty_nodes_come_before_drifted_and_drifted_before_such_as_could_be_cheaper",
    ),
    Row(
        "Drift takes empty nodes first, all of them.",
        "unit.planning.test_deciding::test_empty_drifted_nodes_go_together_and_first",
    ),
    Row(
        "Then the oldest, one in a decision.",
        "unit.planning.test_deciding::test_the_oldest_goes_first_and_ties_go_by_name",
    ),
    Row(
        "A drifted node may need several machines.",
        "unit.planning.test_deciding::test_a_drifted_node_may_need_several_machines",
    ),
    Row(
        "One pool's drift does not hold up another's.",
        "simulation.test_moves::test_failing_drift_waits_and_blocks_no_other_pool",
    ),
    Row(
        "Candidates come by price ÷ (1 + costs of evictions), the greatest first.",
        "unit.planning.test_candidates::test_who_costs_much_and_disturbs_little_goes_first",
    ),
    # Consolidation.
    Row("Several nodes go to none.", "unit.planning.test_consolidating::test_many_go_at_once_and_every_one_by_itself"),
    Row("Several go to one.", "unit.planning.test_consolidating::test_two_nodes_become_one_that_is_cheaper"),
    Row(
        "Several go to several.", "unit.planning.test_consolidating::test_several_nodes_become_several_that_are_cheaper"
    ),
    Row(
        "A type among those that go is replaced only by what is cheaper than it.",
        "unit.planning.test_prices_of_moves::test_several_nodes_are_not_replaced_by_one_of_their_own",
    ),
    Row(
        "Every type that may come costs strictly less, at its worst, than all that go.",
        "unit.planning.test_prices_of_moves::test_every_type_that_may_come_costs_less_than_what_goes",
    ),
    Row(
        "What costs the same replaces nothing.",
        "unit.planning.test_prices_of_moves::test_nothing_is_replaced_by_what_costs_the_same",
    ),
    Row(
        "From on-demand to either, spot is asked for.",
        "unit.planning.test_prices_of_moves::test_where_spot_would_do_spot_is_asked_for",
    ),
    Row("Spot to spot has a gate.", "unit.planning.test_min_values_when_moving::test_spot_to_spot_has_a_gate"),
    Row(
        "One spot node needs fifteen cheaper types.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum",
    ),
    Row(
        "It lists the fifteen cheapest, or enough for minValues.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_lists_more_where_the_minimum_is_more",
    ),
    Row(
        "Several spot nodes need no fifteen.",
        "unit.planning.test_prices_of_moves::test_several_spot_nodes_need_no_fifteen_types",
    ),
    Row(
        "Balanced weighs the share of the savings against that of the disruption, for each pool.",
        "unit.planning.test_balanced::test_half_the_share_is_enough",
    ),
    Row(
        "A move across pools must please each.",
        "unit.planning.test_balanced::test_a_move_across_pools_must_please_each",
    ),
    Row(
        "WhenEmpty moves nothing that is used.",
        "simulation.test_disruption_rules::test_what_is_worth_a_move_is_the_policys_choice",
    ),
    Row(
        "A search has an end, and what it found until then is good.",
        "unit.planning.test_consolidating::test_a_search_that_runs_out_of_steps_says_so_and_what_it_found_stands",
    ),
    Row(
        "Reserved capacity may be replaced by other terms when it is used up.",
        "unit.planning.test_rehousing::test_reserved_capacity_that_is_used_up_is_replaced_on_other_terms",
    ),
    # Validation.
    Row(
        "A move waits fifteen seconds and is decided again.",
        "simulation.test_moves::test_a_move_waits_and_is_checked_again",
    ),
    Row(
        "A node that is nominated or over its budget by then ends it.",
        "simulation.test_moves_decided_again::test_a_node_that_may_not_go_by_now_ends_the_move",
    ),
    Row(
        "Consolidation is all or nothing.",
        "simulation.test_moves_decided_again::test_a_consolidation_is_made_as_a_whole_or_not_at_all",
    ),
    Row(
        "Types that are no longer to be had end it.",
        "simulation.test_moves::test_types_that_are_sold_no_more_end_the_move",
    ),
    Row(
        "So do types that are to be had on other terms only.",
        "simulation.test_moves_decided_again::test_what_is_sold_on_other_terms_only_ends_the_move",
    ),
    Row(
        "So does room without what would be bought.",
        "simulation.test_moves_decided_again::test_nothing_is_bought_where_room_was_freed_meanwhile",
    ),
    Row(
        "So do pods that left where less would do for the others.",
        "simulation.test_moves_decided_again::test_nothing_is_bought_for_pods_that_left_meanwhile",
    ),
    Row(
        "So does a saving that is too little by now.",
        "simulation.test_moves_decided_again::test_a_move_that_saves_too_little_by_now_is_not_made",
    ),
    Row(
        "Emptiness keeps what is still empty.",
        "simulation.test_moves_decided_again::test_of_several_empty_nodes_those_go_that_are_still_empty",
    ),
    Row(
        "While nothing has changed nothing is decided, but every five minutes.",
        "simulation.test_moves_decided_again::test_what_has_not_changed_is_decided_again_after_five_minutes_only",
    ),
    Row("Drift is not validated.", "simulation.test_moves::test_drift_acts_at_once"),
    Row(
        "A failed check does not end the method.",
        "simulation.test_moves::test_after_a_failed_check_the_next_best_follows",
    ),
    # Beyond Karpenter.
    Row(
        "A long consolidateAfter outlives a change of who leads, without a write for every pod.",
        "simulation.test_lulls::test_who_leads_next_goes_on_counting",
    ),
    Row(
        "No pod goes in a circle.",
        "unit.planning.test_consolidating::test_pods_that_were_moved_a_moment_ago_are_moved_again_only_for_a_real_part",
    ),
    Row(
        "A move must pay for its disruption.",
        "unit.planning.test_consolidating::test_a_move_must_pay_for_its_disruption",
    ),
    Row(
        "Pods are not moved to a node that has drifted itself.",
        "unit.planning.test_deciding::test_pods_do_not_go_from_one_drifted_node_to_another",
    ),
    Row(
        "A budget of nothing for drift does not keep a node from being consolidated.",
        "unit.planning.test_deciding::test_drift_that_budgets_forbid_does_not_protect_from_consolidation",
    ),
]


@pytest.mark.parametrize("row", RULES, ids=[each.promise for each in RULES])
def test_every_rule_of_disruption_has_its_test(row: Row) -> None:
    """The test that is named exists, and says what it shows."""
    row.check_names()
