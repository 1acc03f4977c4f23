"""What is promised of `minValues` and of node limits, sentence by sentence, and the test that shows each.

The mutation beside a test makes it fail; `tests/mutations` tries each.
"""

import pytest

from tests.mutations.mutation import Mutation
from tests.mutations.rows import Row

OFFERINGS = "growth.planning.offerings"
REQUIREMENTS = "growth.planning.requirements"
PLACING = "growth.planning.placing"
SOLVE = "growth.planning.solve"
LISTING = "growth.planning.listing"
PRICES = "growth.planning.disruption.search.prices"
LISTS_ON = Mutation(LISTING, "listing", "max(shelf.cheapest(mask).price * percent // 100, lowest)", "lowest")
EACH_LABEL = Mutation(OFFERINGS, "Shelf.rigid", "state.requirements.items()", "list(state.requirements.items())[:1]")
ONE_LESS = Mutation(OFFERINGS, "Shelf.rigid", "left < requirement.min_values", "left + 1 < requirement.min_values")
MOVE_LISTS_ENOUGH = Mutation(PRICES, "_listed", "lowest_price(shelf, state, sold)", "draft.cheapest")
MOVE_IS_CHECKED = Mutation(PRICES, "_listed", "shelf.too_rigid(state, sold)", "shelf.too_rigid(state, draft.mask)")
SPOT_TYPES = Mutation(PRICES, "SPOT_TO_SPOT_TYPES", "15", "14")
HASHED = Mutation(
    "growth.cluster.hashes",
    "_of_karpenter",
    "template.metadata.annotations",
    "[each.min_values for each in template.spec.requirements]",
)

MIN_VALUES: list[Row] = [
    Row(
        "A requirement of a pool may carry `minValues` beside its operator and values.",
        "unit.planning.test_min_values::test_it_counts_only_values_that_the_requirement_admits",
        Mutation(
            REQUIREMENTS, "parse", "Requirement(True, values, min_values=min_values)", "Requirement(True, values)"
        ),
    ),
    Row(
        "In and Exists requirements with `minValues` stand side by side and hold together.",
        "unit.planning.test_min_values::test_two_wishes_hold_at_once",
        Mutation(
            REQUIREMENTS,
            "parse",
            "Requirement(True, frozenset(), min_values=min_values)",
            "Requirement(True, frozenset())",
        ),
    ),
    Row(
        "First fit packs pods onto a planned claim as long as one type holds them all, if nothing asks for more.",
        "unit.planning.test_min_values::test_without_min_values_packing_goes_on",
        Mutation(
            "growth.planning.attempts",
            "Claim.__init__",
            "shelf.start.mask & mask",
            "shelf.start.mask & -shelf.start.mask & mask",
        ),
    ),
    Row(
        "A planned claim holds every type that is still possible, and fewer with every pod that joins.",
        "unit.planning.test_packing::test_every_type_that_fits_is_listed_cheapest_first",
        Mutation(PLACING, "Placing._fits", "used[resource] + amount * number", "used[resource]"),
    ),
    Row(
        "The minimum is «at least»: more values than asked for are kept.",
        "unit.planning.test_min_values::test_a_claim_lists_as_many_types_as_asked",
        LISTS_ON,
    ),
    Row(
        "No type is dropped in order to come down to the number asked for, least of all the cheapest.",
        "unit.planning.test_min_values::test_a_claim_lists_as_many_types_as_asked",
        LISTS_ON,
    ),
    Row(
        "Pods that go to the pool must leave it its choice: of types, of families, of architectures.",
        "unit.planning.test_min_values::test_a_pool_of_two_architectures_stays_open_to_both",
        ONE_LESS,
    ),
    Row(
        "When the pods on a planned claim would leave too few values, another planned claim is opened instead.",
        "unit.planning.test_min_values::test_a_pod_that_leaves_too_few_types_opens_another_claim",
        Mutation(
            PLACING,
            "Placing._settled",
            "shelf.too_rigid(state, mask)",
            "shelf.too_rigid(shelf.start, shelf.start.mask)",
        ),
    ),
    Row(
        "When one pod alone leaves too few values, the pool is out, and the next pool by weight is asked.",
        "unit.planning.test_min_values::test_a_single_pod_that_breaks_it_goes_to_the_next_pool",
        Mutation(
            OFFERINGS,
            "Shelf.too_rigid",
            "self.strict",
            "not self.strict",
        ),
    ),
    Row(
        "That next pool may be one without `minValues`.",
        "unit.planning.test_min_values::test_a_single_pod_that_breaks_it_goes_to_the_next_pool",
        Mutation(PLACING, "Placing._open_new", "attempt.open", "list(attempt.open)[:1]"),
    ),
    Row(
        "Where no pool is left the pod is not scheduled, and is told so.",
        "unit.planning.test_min_values::test_a_single_pod_that_breaks_it_waits_where_there_is_no_other_pool",
        Mutation("growth.planning.reasons", "Explainer._on_shelf", "rigid is not None", "rigid is None"),
    ),
    Row(
        "The check comes after the types were filtered by the pod's requirements.",
        "unit.planning.test_min_values::test_a_pods_selector_may_take_the_flexibility",
        Mutation(PLACING, "Placing._settled", "shelf.too_rigid(state, mask)", "shelf.too_rigid(state, claim.mask)"),
    ),
    Row(
        "What is counted are the values of the label among the types that are left, not the types.",
        "unit.planning.test_min_values::test_it_counts_values_and_not_types",
        Mutation(
            OFFERINGS,
            "Shelf._flexibility",
            "sum(1 for value, options in by_value.items() if options & mask and requirement.allows(value))",
            "sum((options & mask).bit_count() for value, options in by_value.items() if requirement.allows(value))",
        ),
    ),
    Row(
        "Every `minValues` of the pool is checked, each label by itself.",
        "unit.planning.test_min_values::test_two_wishes_hold_at_once",
        EACH_LABEL,
    ),
    Row(
        "Counting does not walk over all types again for every pod that is tried.",
        "unit.planning.test_min_values::test_counts_are_remembered",
        Mutation(
            OFFERINGS,
            "Shelf._flexibility",
            "self._flexible.get((key, requirement, mask))",
            "self._flexible.get((key, requirement, 0))",
        ),
    ),
    Row(
        "Only what can be launched counts as a choice.",
        "unit.planning.test_min_values::test_unavailable_types_are_not_counted",
        Mutation(SOLVE, "_offered", "price is None or not (unavailable or offering.available)", "price is None"),
    ),
    Row(
        "A claim lists enough types for `minValues`, even beyond the usual number.",
        "unit.planning.test_packing::test_a_claim_lists_more_where_min_values_needs_them",
        Mutation(
            LISTING,
            "shortened",
            "shelf.too_rigid(state, mask & of_types(shelf, kept[:MAX_TYPES])) is None",
            "shelf.too_rigid(state, mask) is None",
        ),
    ),
    Row(
        "Nodes that were launched already are not held to it.",
        "unit.planning.test_min_values::test_machines_that_are_there_do_not_count",
        Mutation(
            "growth.planning.firstfit",
            "FirstFit._fill_existing",
            "not self._existing.nodes",
            "bool(self._existing.nodes)",
        ),
    ),
    Row(
        "A policy may lower the minimum instead of leaving the pod out; the claim says so.",
        "unit.planning.test_min_values::test_best_effort_lowers_the_wish",
        Mutation(
            SOLVE, "Pass.finished", "shelf.rigid(claim.state, found.mask)", "shelf.too_rigid(claim.state, found.mask)"
        ),
    ),
    Row(
        "What is checked is that every `minValues` of the pool is still met by what is left.",
        "unit.planning.test_min_values::test_two_wishes_hold_at_once",
        ONE_LESS,
    ),
    Row(
        "As types fall away from a planned claim the counts go down with them, and each check is a look at a count.",
        "unit.planning.test_min_values::test_counts_are_remembered",
        Mutation(
            OFFERINGS,
            "Shelf._flexibility",
            "options & mask and requirement.allows(value)",
            "options and requirement.allows(value)",
        ),
    ),
    Row(
        "The simulation of a consolidation respects `minValues` as a launch does.",
        "unit.planning.test_min_values_when_moving::test_a_replacement_lists_as_many_values_as_a_launch_would",
        MOVE_LISTS_ENOUGH,
    ),
    Row(
        "What may replace nodes is reduced to types that are strictly cheaper than all that go together.",
        "unit.planning.test_prices_of_moves::test_every_type_that_may_come_costs_less_than_what_goes",
        Mutation(PRICES, "replacements", "together - max(1, options.owed(evictions))", "together"),
    ),
    Row(
        "What is cheaper may be too few types for `minValues`.",
        "unit.planning.test_min_values_when_moving::test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again",
        MOVE_IS_CHECKED,
    ),
    Row(
        "After types were filtered by price a consolidation checks `minValues` again.",
        "unit.planning.test_min_values_when_moving::test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again",
        MOVE_IS_CHECKED,
    ),
    Row(
        "A consolidation that no longer meets it is rejected.",
        "unit.planning.test_min_values_when_moving::test_the_minimum_of_every_label_counts",
        MOVE_IS_CHECKED,
    ),
    Row(
        "So is one of several machines of which one does not meet it.",
        "unit.planning.test_min_values_when_moving::test_each_of_several_replacements_meets_the_minimum",
        MOVE_LISTS_ENOUGH,
    ),
    Row(
        "High minimums leave consolidation less to do.",
        "unit.planning.test_min_values_when_moving::test_each_of_several_replacements_meets_the_minimum",
        Mutation(
            OFFERINGS,
            "Shelf.too_rigid",
            "self.strict",
            "not self.strict",
        ),
    ),
    Row(
        "With ten of eleven types asked for, the eleventh can be replaced by the ten below it.",
        "unit.planning.test_min_values_when_moving::test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again",
        MOVE_LISTS_ENOUGH,
    ),
    Row(
        "Once it is one of the ten nothing is cheaper any more.",
        "unit.planning.test_min_values_when_moving::test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again",
        MOVE_IS_CHECKED,
    ),
    Row(
        "Spot to spot asks for fifteen types by itself.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum",
        SPOT_TYPES,
    ),
    Row(
        "Without any `minValues` the fifteen are required and listed all the same.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_lists_the_fifteen_cheapest",
        Mutation(PRICES, "_listed", "draft.least == 1", "draft.least >= 1"),
    ),
    Row(
        "Spot to spot keeps as many as `minValues` asks where that is more than fifteen.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_lists_more_where_the_minimum_is_more",
        MOVE_LISTS_ENOUGH,
    ),
    Row(
        "Asked for thirty it lists thirty and does not cut down to fifteen.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_lists_more_where_the_minimum_is_more",
        MOVE_LISTS_ENOUGH,
    ),
    Row(
        "Where labels other than the type ask for values, the cheapest prefix is listed that has them all.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_lists_until_every_label_has_its_values",
        MOVE_LISTS_ENOUGH,
    ),
    Row(
        "Spot to spot keeps fifteen types where fewer are asked for.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_lists_the_fifteen_cheapest",
        Mutation(PRICES, "_listed", "cheaper[:draft.least]", "cheaper[:1]"),
    ),
    Row(
        "Asked for three, a move is planned with at least three and then held to fifteen cheaper ones.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum",
        Mutation(PRICES, "_cheaper", "len(cheaper) < draft.least", "len(cheaper) <= draft.least"),
    ),
    Row(
        "Without fifteen cheaper types there is no move from spot to spot.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum",
        Mutation(PRICES, "_on_terms", "2 * coming > len(gone)", "coming > len(gone)"),
    ),
    Row(
        "Drift compares the pool's requirements with the labels of the claim.",
        "unit.planning.test_drift::test_requirements_are_held_against_the_labels_of_the_claim",
        Mutation(
            "growth.planning.disruption.drift",
            "_against_requirements",
            "not requirement.meets(labels.get(key))",
            "key in labels and not requirement.meets(labels[key])",
        ),
    ),
    Row("Drift does not look at `minValues`.", "unit.planning.test_drift::test_min_values_are_no_drift", HASHED),
    Row(
        "A machine that is there was launched with enough choice: nobody asks again.",
        "unit.planning.test_drift::test_min_values_are_no_drift",
        HASHED,
    ),
]

LEDGER = "growth.planning.ledger"
ROOM = "growth.planning.disruption.room"
MODE = "growth.api.pools"
DECIDE = "growth.planning.disruption.decide"
EXECUTING = "growth.controllers.disruption.executing"
BOOKING = "growth.controllers.provisioning.booking"
ONE_TOO_MANY = Mutation(LEDGER, "Ledger.within", "self._nodes < 1", "self._nodes < 0")
NOT_TAKEN = Mutation(LEDGER, "Ledger.take", "1", "0", index=1)
EVERY_LIMIT_IS_HARD = Mutation(ROOM, "_remaining", "node_limit_mode(pool) == HARD", "True")
MODE_IS_NOT_READ = Mutation(MODE, "node_limit_mode", "pool.spec.disruption.node_limit_mode", "HARD")

NODE_LIMITS: list[Row] = [
    Row(
        "`limits.nodes` bounds the number of machines of a pool.",
        "unit.planning.test_limits::test_no_more_nodes_than_the_limit",
        ONE_TOO_MANY,
    ),
    Row(
        "It holds for pools that scale with their pods.",
        "unit.planning.test_limits::test_no_more_nodes_than_the_limit",
        ONE_TOO_MANY,
    ),
    Row(
        "It is enforced where machines are planned.",
        "unit.planning.test_limits::test_nodes_in_use_count_against_the_limit",
        Mutation(LEDGER, "Ledger.__init__", "pool.limits[NODES] - pool.used.get(NODES, 0)", "pool.limits[NODES]"),
    ),
    Row(
        "Before a claim is planned the pool must have a node left.",
        "unit.planning.test_limits::test_a_limit_of_no_nodes_buys_none",
        Mutation(
            LEDGER,
            "Ledger.within",
            "held is None and self._nodes is not None and self._nodes < 1",
            "held is None and self._nodes and self._nodes < 1",
        ),
    ),
    Row(
        "Every planned machine counts as one node, whatever its size.",
        "unit.planning.test_limits::test_several_limits_hold_at_once",
        NOT_TAKEN,
    ),
    Row(
        "What a planned machine takes is subtracted at once, so that the next one sees it.",
        "unit.planning.test_limits::test_capacity_counts_and_not_requests",
        Mutation(LEDGER, "Ledger.take", "-1", "0"),
    ),
    Row(
        "When the limit is used up no claim is made, and the pods hear why.",
        "unit.planning.test_limits::test_what_is_left_over_is_told_the_limit",
        Mutation(
            "growth.planning.reasons",
            "Explainer._limited",
            "left is not None and left < 1",
            "left is not None and left < 0",
        ),
    ),
    Row(
        "Other resources can be limited in the same list, and all limits hold together.",
        "unit.planning.test_limits::test_several_limits_hold_at_once",
        Mutation(
            LEDGER,
            "Ledger.within",
            "any(amount > left[name] for name, amount in grown.items())",
            "all(amount > left[name] for name, amount in grown.items())",
        ),
    ),
    Row(
        "A limit is one pool's own; there is none over all pools.",
        "unit.planning.test_limits::test_limits_are_each_pools_own",
        Mutation(PLACING, "Placing._settled", "self._ledgers[shelf.pool.ref]", "next(iter(self._ledgers.values()))"),
    ),
    Row(
        "Nodes that no pool made are not counted.",
        "unit.test_booking::test_nodes_that_no_pool_made_are_not_counted",
        Mutation("growth.cluster.machines", "Machine.pool", "None", "PoolRef.karpenter('default')", index=1),
    ),
    Row(
        "The count never exceeds the limit, in no burst of pods.",
        "unit.planning.test_limits::test_a_burst_stays_within_the_limit",
        NOT_TAKEN,
    ),
    Row(
        "A limit below what is there stops purchases at once.",
        "unit.planning.test_limits::test_a_pool_beyond_its_limit_buys_nothing",
        Mutation(LEDGER, "Ledger.within", "self._nodes < 1", "self._nodes == 0"),
    ),
    Row(
        "At the limit pods still go where there is room.",
        "unit.planning.test_limits::test_existing_nodes_are_filled_at_the_limit",
        Mutation(
            "growth.planning.firstfit",
            "FirstFit._fill_existing",
            "not self._existing.nodes",
            "bool(self._existing.nodes)",
        ),
    ),
    Row(
        "Licences, addresses and quotas hold: no burst, race or second leader buys a machine too many.",
        "simulation.test_provisioning::test_limits_hold_under_two_leaders",
        Mutation(
            "growth.controllers.provisioning.reserving",
            "Reserving._reserve_pool",
            "await books.write(env.api, NODE_POOL, pool, names.RESERVED_ANNOTATION, booking.reserved)",
            "booking.reserved",
        ),
    ),
    Row(
        "Static pools have a node limit of their own, by the same field.",
        "simulation.test_static_pools::test_a_limit_below_the_replicas_holds",
        Mutation(
            "growth.planning.disruption.surplus",
            "missing",
            "lacks if limit is None else min(lacks, limit - found.count)",
            "lacks",
        ),
        killer="unit.controllers.test_sizing::test_what_is_lacking_and_what_is_too_many",
    ),
    Row(
        "A Hard limit that is reached blocks purchases and graceful disruption alike.",
        "simulation.test_disruption_rules::test_at_a_hard_limit_deletions_go_on_and_replacements_wait",
        Mutation(ROOM, "_remaining", "node_limit_mode(pool) == HARD", "node_limit_mode(pool) != HARD"),
    ),
    Row(
        "The reason is that what replaces is up before the old node goes, so that for a while there are more.",
        "simulation.test_moves::test_what_replaces_is_up_before_anything_goes",
        Mutation(
            EXECUTING,
            "Execution._is_up",
            "claim is not None and is_true(claim.status.conditions, names.INITIALIZED)",
            "claim is not None",
        ),
    ),
    Row(
        "Moves that only delete make no more nodes: they go on at a Hard limit.",
        "simulation.test_worlds_at_their_limit::test_at_a_hard_limit_deletions_go_on_and_make_room",
        Mutation(
            ROOM,
            "overdrawn",
            "each.delete is not None and deleted[pool] > each.delete",
            "each.replace is not None and deleted[pool] > each.replace",
        ),
    ),
    Row(
        "In mode Hard replacements for consolidation stay within the limit.",
        "simulation.test_disruption_rules::test_at_a_hard_limit_deletions_go_on_and_replacements_wait",
        Mutation(ROOM, "rooms", "min(left, limit)", "max(left, limit)"),
    ),
    Row(
        "In mode Hard replacements for drift stay within the limit.",
        "simulation.test_disruption_rules::test_at_a_hard_limit_drift_waits_too_and_says_so",
        Mutation(
            "growth.controllers.disruption.reporting",
            "_blocked_pools",
            "room.limited and reason != names.EMPTY",
            "room.limited and reason == names.UNDERUTILIZED",
        ),
    ),
    Row(
        "The count never exceeds a Hard limit, whatever is disrupted.",
        "unit.planning.test_room::test_moves_that_buy_more_than_the_limit_leaves_are_overdrawn",
        Mutation(
            ROOM,
            "overdrawn",
            "each.buy is not None and bought[pool] > each.buy",
            "each.buy is not None and bought[pool] > each.buy + deleted[pool]",
        ),
    ),
    Row(
        "It is the same for every operation: one count, one limit.",
        "unit.test_booking::test_nodes_are_counted_with_what_exists_and_what_is_reserved",
        Mutation(BOOKING, "book_pool", "after.get(name, 0) > limit", "after.get(name, 0) >= limit"),
    ),
    Row(
        "At the limit a cheaper cluster may have to wait.",
        "unit.planning.test_deciding::test_at_a_hard_limit_nothing_is_replaced_and_deletions_go_on",
        Mutation(ROOM, "rooms", "left != 0 and replace == 0", "left == 0 and replace == 0"),
    ),
    Row(
        "A Soft limit bounds what pending pods buy.",
        "unit.test_booking::test_only_what_replaces_may_pass_a_soft_limit",
        Mutation(
            BOOKING,
            "_Passing.allows",
            "self._soft and bool(order.replaces) and self._after(order) <= max(limit, self._before)",
            "self._soft",
        ),
    ),
    Row(
        "In mode Soft consolidation goes on at the limit.",
        "simulation.test_disruption_rules::test_at_a_soft_limit_replacements_come_first_and_nothing_fights_them",
        EVERY_LIMIT_IS_HARD,
    ),
    Row(
        "In mode Soft drift goes on at the limit.",
        "simulation.test_worlds_at_their_limit::test_drift_at_the_limit",
        EVERY_LIMIT_IS_HARD,
    ),
    Row(
        "In the end there are no more nodes than the limit again.",
        "simulation.test_worlds_at_their_limit::test_a_soft_limit_holds_again_afterwards",
        Mutation(BOOKING, "_Passing.allows", "max(limit, self._before)", "max(limit, self._before) - 1"),
    ),
    Row(
        "In mode Soft replacements may pass it for a while.",
        "simulation.test_moves::test_a_soft_limit_lets_the_replacement_come_first",
        Mutation(
            BOOKING,
            "book_pool",
            "NODES in over and passing.allows(order, limits[NODES])",
            "NODES in over and not passing.allows(order, limits[NODES])",
        ),
    ),
    Row(
        "Where the cloud refuses the machine too many, the move is taken back.",
        "simulation.test_moves::test_a_replacement_that_vanishes_takes_the_move_back",
        Mutation(
            EXECUTING,
            "Execution._initialized",
            "claim is None and env.clock.monotonic() - asked >= SHOWN_SECONDS",
            "claim is None and env.clock.monotonic() - asked >= 60 * SHOWN_SECONDS",
        ),
    ),
    Row(
        "A machine that does not come up in time ends the move and does not go round again at once.",
        "simulation.test_moves::test_what_does_not_come_up_in_time_is_not_bought_again_at_once",
        Mutation(
            EXECUTING,
            "Execution._rest",
            "failed or (paid and move.reason in VALIDATED)",
            "paid and move.reason in VALIDATED",
        ),
    ),
    Row(
        "Each pool chooses its mode.",
        "unit.planning.test_room::test_each_pool_has_its_own_mode",
        Mutation(ROOM, "_remaining", "node_limit_mode(pool)", "node_limit_mode(next(iter(situation.pools.values())))"),
    ),
    Row(
        "The mode is the field spec.disruption.nodeLimitMode.",
        "unit.planning.test_room::test_a_soft_limit_bounds_no_move",
        MODE_IS_NOT_READ,
    ),
    Row(
        "`nodeLimitMode` is Hard or Soft.",
        "conformance.test_our_kinds::test_bad_objects_are_refused",
        Mutation("growth.api.karpenter", "Disruption.node_limit_mode", "('Hard', 'Soft')", "('Hard', 'Soft', 'Maybe')"),
        killer="unit.test_crds::test_the_mode_of_a_node_limit_is_hard_or_soft_and_hard_where_nothing_is_said",
    ),
    Row(
        "It is Hard where nothing is said.",
        "conformance.test_our_kinds::test_a_pool_gets_the_defaults_of_its_definition",
        Mutation("growth.api.karpenter", "Disruption.node_limit_mode", "'Hard'", "'Soft'", index=2),
        killer="unit.test_crds::test_the_mode_of_a_node_limit_is_hard_or_soft_and_hard_where_nothing_is_said",
    ),
    Row(
        "Hard for what cannot be, Soft for what only costs: both work side by side.",
        "unit.planning.test_deciding::test_hard_and_soft_limits_work_side_by_side",
        MODE_IS_NOT_READ,
    ),
    Row(
        "Without a limit there is no bound by it.",
        "unit.planning.test_room::test_without_budgets_and_limits_there_is_no_bound",
        Mutation(ROOM, "rooms", "remaining.get(name)", "remaining.get(name, 0)"),
    ),
    Row(
        "What remains is the limit less the count.",
        "unit.planning.test_room::test_the_limit_counts_what_is_on_its_way_too",
        Mutation(
            ROOM,
            "_remaining",
            "view.limits[NODES] - view.used.get(NODES, 0)",
            "view.limits[NODES] - len(situation.nodes)",
        ),
    ),
    Row(
        "The remaining nodes bound the budget of disruption: the smaller of the two counts.",
        "unit.planning.test_room::test_a_hard_limit_bounds_replacements_and_not_deletions",
        Mutation(ROOM, "rooms", "min(left, limit)", "limit"),
    ),
    Row(
        "What remains below nothing is nothing.",
        "unit.planning.test_room::test_a_hard_limit_bounds_replacements_and_not_deletions",
        Mutation(
            ROOM,
            "rooms",
            "max(0, limit if left is None else min(left, limit))",
            "limit if left is None else min(left, limit)",
        ),
    ),
    Row(
        "A Soft limit leaves the budgets as they are.",
        "unit.planning.test_room::test_a_soft_limit_bounds_no_move",
        EVERY_LIMIT_IS_HARD,
    ),
    Row(
        "A disruption blocked by the limit has an event of its own, not the budget's.",
        "unit.planning.test_room::test_the_limits_event_is_not_the_budgets",
        Mutation(ROOM, "rooms", "left != 0 and replace == 0", "replace == 0"),
    ),
    Row(
        "It is a Normal event DisruptionBlocked on the NodePool, and names the reason of the disruption.",
        "simulation.test_disruption_rules::test_at_a_hard_limit_drift_waits_too_and_says_so",
        Mutation("growth.controllers.disruption.reporting", "Report._tell_pools", "NORMAL", "'Warning'"),
    ),
    Row(
        "Expiration is not held back by the limit.",
        "simulation.test_expiration::test_neither_budgets_nor_limits_nor_marks_on_the_node_hold_it",
        Mutation(
            "growth.controllers.expiration",
            "Expiration._act",
            "at is None or not serves(env.provider, claim.spec.node_class_ref)",
            "at is None or any(pool.spec.limits for pool in env.state.pools.store)",
        ),
    ),
    Row(
        "More nodes than the limit are terminated down to it.",
        "simulation.test_over_limit::test_a_lowered_limit_acts_at_once_and_past_budgets",
        Mutation(
            "growth.planning.disruption.surplus",
            "too_many",
            "len(found.staying) - bound",
            "len(found.staying) - bound - 1",
        ),
    ),
    Row(
        "They go in the order of static capacity.",
        "unit.planning.test_surplus::test_unlaunched_then_empty_then_cheap_to_disturb_then_protected",
        Mutation("growth.planning.disruption.surplus", "_rank", "4 if claim.protected or held else 3", "3"),
    ),
    Row(
        "That order is asked where machines are ended.",
        "simulation.test_over_limit::test_the_least_costly_go_first",
        Mutation(
            "growth.controllers.sizing.lowering",
            "bring_down",
            "order(free, now=env.clock.now())",
            "sorted(each.name for each in free)",
        ),
    ),
    Row(
        "What is being replaced is no surplus.",
        "simulation.test_over_limit::test_what_is_being_replaced_is_no_surplus",
        Mutation(
            "growth.planning.disruption.surplus",
            "standing",
            "not _deleting(claim) and claim.metadata.name not in going",
            "not _deleting(claim)",
        ),
    ),
    Row(
        "A limit that is lowered below the count acts at once.",
        "simulation.test_over_limit::test_a_lowered_limit_acts_at_once_and_past_budgets",
        Mutation(
            "growth.controllers.sizing.lowering",
            "_end",
            "len(staying) - waiting <= bound",
            "len(staying) - waiting <= bound + 1",
        ),
    ),
    Row(
        "Lowering the limit is no drift.",
        "simulation.test_drifting::test_limits_budgets_and_weight_are_no_drift",
        Mutation("growth.cluster.hashes", "_of_karpenter", "template.metadata.annotations", "dict(pool.spec.limits)"),
    ),
    Row(
        "The pool's status tells its number of nodes.",
        "simulation.test_pools::test_a_pool_counts_what_its_machines_have",
        Mutation("growth.controllers.pools.status", "held", "not claim.status.provider_id", "node is None"),
    ),
]

SENTENCES = [*MIN_VALUES, *NODE_LIMITS]


@pytest.mark.parametrize("row", SENTENCES, ids=[each.promise for each in SENTENCES])
def test_every_promise_has_its_test(row: Row) -> None:
    """The test that is named exists, and says what it shows."""
    row.check_names()
