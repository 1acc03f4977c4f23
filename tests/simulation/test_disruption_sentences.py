"""Karpenter's rules of disruption, of budgets, candidates, drift, consolidation and ends, and the test that shows each.

Users rely on them, and dashboards and other controllers do. Where we do more, or otherwise, it stands at the end.
The mutation beside a test makes it fail; `tests/mutations` tries each.
"""

import pytest

from tests.mutations.mutation import Mutation
from tests.mutations.rows import Row

BUDGETS = "growth.planning.budgets"
ROOM = "growth.planning.disruption.room"
CANDIDATES = "growth.planning.disruption.candidates"
DECIDE = "growth.planning.disruption.decide"
DRIFT = "growth.planning.disruption.drift"
SITUATING = "growth.planning.disruption.situating"
SURPLUS = "growth.planning.disruption.surplus"
COURSE = "growth.planning.disruption.search.course"
PRICES = "growth.planning.disruption.search.prices"
OCCUPANTS = "growth.planning.occupants"
DRAINING = "growth.planning.draining"
MACHINES = "growth.cluster.machines"
CONTROLLER = "growth.controllers.disruption.controller"
EXECUTING = "growth.controllers.disruption.executing"
QUESTION = "growth.controllers.disruption.question"
DRIFTING = "growth.controllers.drifting"
LIFECYCLE = "growth.controllers.lifecycle.controller"
DRAINS = "growth.controllers.termination.drains"
UP_WHEN_MADE = Mutation(
    EXECUTING,
    "Execution._is_up",
    "claim is not None and is_true(claim.status.conditions, names.INITIALIZED)",
    "claim is not None",
)
NO_PAY = Mutation(PRICES, "replacements", "together - max(1, options.owed(evictions))", "together")
DEAREST_ALONE = Mutation(
    PRICES, "replacements", "sum(node.price or 0 for node in gone)", "max(node.price or 0 for node in gone)"
)
SOLD_IS_NOT_ASKED = Mutation(
    QUESTION,
    "_checked",
    "too_few(going, situation) or '; '.join(changed_offers(move, situation))",
    "too_few(going, situation)",
)

RULES: list[Row] = [
    # Budgets.
    Row(
        "Schedules of budgets are cron in UTC.",
        "simulation.test_disruption_rules::test_a_budget_of_nothing_holds_while_its_window_lasts",
        Mutation(BUDGETS, "active", "now.astimezone(dt.UTC)", "now.astimezone(dt.timezone(dt.timedelta(hours=2)))"),
    ),
    Row(
        "A budget is active for its duration after each hit of its schedule.",
        "unit.planning.test_node_budgets::test_schedules",
        Mutation(BUDGETS, "active", "now - lasts.timedelta", "now"),
    ),
    Row(
        "A percentage is of the pool's nodes and rounds up.",
        "unit.planning.test_node_budgets::test_counts_and_percentages",
        Mutation(BUDGETS, "size_of", "-(-nodes * number // 100)", "nodes * number // 100"),
    ),
    Row(
        "The smallest active budget counts that is for the reason, or for all.",
        "unit.planning.test_node_budgets::test_the_smallest_active_budget_of_the_reason_counts",
        Mutation(BUDGETS, "allowance", "min(least, size)", "max(least, size)"),
    ),
    Row(
        "Reasons of budgets are Empty, Drifted, Underutilized and Unhealthy.",
        "unit.planning.test_room::test_a_budget_holds_for_its_reasons_alone",
        Mutation(
            BUDGETS,
            "allowance",
            "not budget.reasons or reason in budget.reasons",
            "not budget.reasons or reason not in budget.reasons",
        ),
    ),
    Row(
        "A schedule that cannot be read fails closed.",
        "simulation.test_disruption_of_empty_nodes::test_a_budget_that_cannot_be_read_allows_nothing",
        Mutation(
            BUDGETS,
            "allowance",
            "Allowance(0, tuple(faults)) if faults else Allowance(least)",
            "Allowance(least, tuple(faults))",
        ),
    ),
    Row(
        "Nodes that are not ready or marked for deletion use the budget up.",
        "unit.planning.test_room::test_nodes_that_are_not_ready_or_going_use_the_budget_of_every_reason",
        Mutation(ROOM, "counts", "node.leaving or not node.ready", "node.leaving"),
    ),
    Row(
        "Only managed, initialised nodes are counted, and none whose machine is terminating.",
        "unit.planning.test_deciding::test_budgets_count_managed_initialised_nodes_alone",
        Mutation(SITUATING, "_not_ours", "not machine.initialized", "not machine.registered"),
    ),
    # Controllers.
    Row(
        "A pod that kube-scheduler marked starts a batch.",
        "unit.test_demand::test_a_marked_pod_counts_at_once",
        Mutation(
            "growth.controllers.provisioning.demand",
            "ripe",
            "pod.unschedulable_since is not None or sort(pod.shape) in sorts",
            "pod.unschedulable_since is None and sort(pod.shape) in sorts",
        ),
    ),
    Row(
        "Pods of a node that goes are demand.",
        "simulation.test_provisioning::test_pods_of_a_machine_that_goes_are_demand",
        Mutation(
            "growth.cluster.assemble",
            "composed",
            "[Demand(key_of(pod), shape_of(pod)) for each in counted for pod in each.moving]",
            "[Demand(key_of(pod), shape_of(pod)) for each in counted if each.view is not None for pod in each.moving]",
        ),
    ),
    Row(
        "A batch ends a second after the last news.",
        "unit.test_demand::test_a_batch_ends_a_second_after_the_last_new_sort",
        Mutation(
            "growth.controllers.provisioning.batching",
            "Batch.closed",
            "self._last + self._idle",
            "self._first + self._idle",
        ),
    ),
    Row(
        "It ends after ten seconds in any case.",
        "unit.test_demand::test_a_batch_ends_after_ten_seconds_whatever_comes",
        Mutation(
            "growth.controllers.provisioning.batching",
            "Batch.closed",
            "min(self._last + self._idle, self._first + self._longest)",
            "self._last + self._idle",
        ),
    ),
    Row(
        "A disruption taints, buys what replaces, waits until that is initialised, and deletes then.",
        "simulation.test_moves::test_what_replaces_is_up_before_anything_goes",
        UP_WHEN_MADE,
    ),
    Row(
        "What does not come up in time ends the disruption, and the taint is taken off.",
        "simulation.test_moves::test_what_does_not_come_up_is_given_up_after_ten_minutes",
        Mutation(
            EXECUTING,
            "Execution._check_time",
            "seconds > self._moves.patience()",
            "seconds > 2 * self._moves.patience()",
        ),
    ),
    Row(
        "The time is 80 ms for each node that goes, between ten minutes and an hour.",
        "unit.controllers.test_memory_of_moves::test_a_move_may_take_longer_where_many_nodes_go",
        Mutation(
            "growth.controllers.disruption.moving",
            "Moves.patience",
            "min(max(SECONDS_PER_NODE * nodes, LEAST_SECONDS), MOST_SECONDS)",
            "max(SECONDS_PER_NODE * nodes, LEAST_SECONDS)",
        ),
    ),
    Row(
        "A replacement that fails ends it too.",
        "simulation.test_moves::test_a_replacement_that_vanishes_takes_the_move_back",
        Mutation(
            EXECUTING,
            "Execution._initialized",
            "claim is None and env.clock.monotonic() - asked >= SHOWN_SECONDS",
            "claim is None and env.clock.monotonic() - asked >= 60 * SHOWN_SECONDS",
        ),
    ),
    Row(
        "A claim that is not launched within five minutes is given up.",
        "simulation.test_liveness::test_a_claim_that_cannot_be_launched_is_given_up_after_five_minutes",
        Mutation(LIFECYCLE, "Lifecycle.__init__", "env.settings.launch_ttl", "env.settings.registration_ttl"),
    ),
    Row(
        "One that is not registered within fifteen is given up.",
        "simulation.test_liveness::test_a_machine_that_never_registers_is_given_up_after_a_quarter_of_an_hour",
        Mutation(LIFECYCLE, "Lifecycle.__init__", "env.settings.registration_ttl", "env.settings.launch_ttl"),
    ),
    Row(
        "Drift is a condition of the claim, looked at when something changes.",
        "simulation.test_drifting::test_a_changed_template_marks_its_machines_and_a_change_back_unmarks_them",
        Mutation(
            DRIFTING,
            "Drifting._on_pool",
            "isinstance(news, Changed) and news.old.spec == news.new.spec",
            "isinstance(news, Changed)",
        ),
    ),
    Row(
        "It is looked at every five minutes, too.",
        "simulation.test_drifting::test_the_clouds_own_reason_is_passed_on",
        Mutation(
            DRIFTING, "Drifting._ask", "known is None or now - known.at >= env.settings.drift_period", "known is None"
        ),
    ),
    Row(
        "Expiration deletes at the very age, past budgets.",
        "simulation.test_expiration::test_a_claim_goes_at_its_age_and_not_a_second_before",
        Mutation("growth.controllers.expiration", "expires_at", "born + after.timedelta", "born + 2 * after.timedelta"),
    ),
    Row(
        "A claim whose machine is missing, and whose Node is not ready, is collected.",
        "simulation.test_collection::test_a_claim_goes_when_its_machine_was_not_found_twice",
        Mutation(
            "growth.controllers.collection.controller",
            "Collection._gone",
            "self._denials.deny(uid) and not await self._has_ready_node(claim)",
            "not await self._has_ready_node(claim)",
        ),
    ),
    Row(
        "A Node that is deleted is tainted, drained, freed of its volumes, and its machine ended.",
        "simulation.test_termination::test_deleting_a_node_ends_its_claim_and_its_machine",
        Mutation(
            "growth.controllers.termination.controller",
            "Termination._delete_claim",
            "claim.metadata.deletion_timestamp is not None",
            "claim.metadata.deletion_timestamp is None",
        ),
    ),
    Row(
        "A broken node is repaired when its cloud has lost patience.",
        "simulation.test_repair::test_a_node_that_stays_broken_goes_when_its_cloud_has_lost_patience",
        Mutation("growth.controllers.repair", "Repair._left", "found.due - now", "found.since - now"),
    ),
    Row(
        "It is not when more than a fifth of its pool is broken.",
        "simulation.test_repair::test_more_than_a_fifth_of_a_pool_is_nobodys_fault",
        Mutation("growth.planning.repairs", "too_many", "number > most", "number > 2 * most"),
    ),
    Row(
        "The fifth is rounded up.",
        "simulation.test_repair::test_the_share_is_rounded_up",
        Mutation(
            "growth.planning.repairs",
            "too_many",
            "-(-len(nodes) * SHARE_PERCENT // 100)",
            "len(nodes) * SHARE_PERCENT // 100",
        ),
    ),
    Row(
        "Pools have hashes, conditions and counts.",
        "simulation.test_pools::test_a_pool_counts_what_its_machines_have",
        Mutation("growth.controllers.pools.status", "held", "{**total, 'nodes': nodes}", "total"),
    ),
    Row(
        "A static pool keeps its replicas.",
        "simulation.test_static_pools::test_scaling_up_and_down_follows_at_once",
        Mutation(
            SURPLUS, "missing", "pool.spec.replicas - len(found.staying)", "pool.spec.replicas - len(found.staying) - 1"
        ),
    ),
    Row(
        "It scales down unlaunched, empty, unprotected, cheapest to disturb.",
        "unit.planning.test_surplus::test_unlaunched_then_empty_then_cheap_to_disturb_then_protected",
        Mutation(
            SURPLUS,
            "order",
            "(_rank(claim, now), _cost(claim), claim.created or _EPOCH, claim.name)",
            "(_rank(claim, now), 0, claim.created or _EPOCH, claim.name)",
        ),
    ),
    Row(
        "Its controller asks for that order.",
        "simulation.test_static_pools::test_scaling_down_takes_what_costs_least",
        Mutation(
            "growth.controllers.sizing.lowering",
            "bring_down",
            "order(free, now=env.clock.now())",
            "sorted(each.name for each in free)",
        ),
    ),
    Row(
        "NodeOverlays change prices and capacity.",
        "simulation.test_provisioning::test_an_overlay_decides_what_is_bought",
        Mutation("growth.planning.overlays", "_Sheet._result", "pair[0].priced(offering.price)", "offering.price"),
    ),
    Row(
        "CapacityBuffers keep room.",
        "simulation.test_provisioning::test_a_buffer_keeps_room_and_refills_it",
        Mutation("growth.controllers.headroom", "wanted", "max(sizes)", "max(sizes) - 1"),
    ),
    # Who is a candidate.
    Row(
        "Nodes without a claim take pods and are never candidates.",
        "unit.planning.test_deciding::test_a_node_without_a_claim_takes_pods_and_never_goes",
        Mutation(
            SITUATING,
            "situated",
            "view.name in doubtful",
            "view.name in doubtful or picture.counted[view.name].machine.claim is None",
        ),
    ),
    Row(
        "Nodes that are not ours or not initialised are named, and stay.",
        "unit.test_plan_consolidate::test_every_node_is_in_one_of_the_lists",
        Mutation(SITUATING, "situated", "tuple(others.values())", "()"),
    ),
    Row(
        "A node that a pass promised to a pod is left alone for twenty seconds.",
        "simulation.test_disruption_of_empty_nodes::test_nominated_nodes_stay",
        Mutation(CANDIDATES, "_reasons", "node.nominated", "node.nominated and not graceful"),
    ),
    Row(
        "consolidateAfter counts from the last pod that came or went, else from initialisation.",
        "simulation.test_disruption_of_empty_nodes::test_consolidate_after_counts_from_the_last_pod",
        Mutation("growth.controllers.disruption.looking", "Looking._facts", "min(self.quiet.seconds(name), up)", "up"),
    ),
    Row(
        "Never disables consolidation.",
        "unit.planning.test_deciding_emptiness::test_reasons_of_the_pool",
        Mutation(CANDIDATES, "_of_consolidation", "after is None", "after is None and reason == names.UNDERUTILIZED"),
    ),
    Row(
        "consolidateAfter forbids destinations for moved pods too.",
        "simulation.test_disruption_rules::test_nothing_is_moved_to_where_pods_came_a_moment_ago",
        Mutation(
            CANDIDATES,
            "may_receive",
            "after is None or node.quiet_seconds >= after.seconds",
            "after is None or node.quiet_seconds >= 0",
        ),
    ),
    Row(
        "Pods without a place may be placed there.",
        "unit.planning.test_consolidating::test_nothing_is_moved_to_a_node_that_is_not_quiet",
        Mutation(
            "growth.planning.disruption.search.ground",
            "Ground.__init__",
            "self._seat_those_without_a_place()",
            "(self._close_what_is_no_destination(restless=restless), self._seat_those_without_a_place())[1]",
        ),
    ),
    Row(
        "So may pods of nodes that go in any case.",
        "unit.planning.test_rehousing::test_pods_of_a_node_that_goes_may_come_where_others_came_a_moment_ago",
        Mutation("growth.planning.disruption.search.replacing", "replaced", "True", "False"),
    ),
    Row(
        "do-not-disrupt on a pod is true or a time since its start.",
        "unit.planning.test_candidates::test_a_pods_annotation_is_true_or_a_time_since_its_start",
        Mutation(OCCUPANTS, "protection", "pod.started + period.timedelta", "now + period.timedelta"),
    ),
    Row(
        "When the time is up the node goes.",
        "simulation.test_disruption_rules::test_a_pods_protection_ends_with_its_time",
        Mutation(OCCUPANTS, "protection", "now < until", "now < until + dt.timedelta(minutes=5)"),
    ),
    Row(
        "do-not-disrupt on a node is true.",
        "simulation.test_disruption_rules::test_a_nodes_own_annotation_holds_it",
        Mutation(
            SITUATING,
            "_owned",
            "_annotated(each.metadata, names.DO_NOT_DISRUPT_ANNOTATION, 'true')",
            "_annotated(claim.metadata, names.DO_NOT_DISRUPT_ANNOTATION, 'true')",
        ),
    ),
    Row(
        "Terminal and terminating pods never block.",
        "unit.planning.test_candidates::test_finished_and_going_pods_protect_nothing",
        Mutation(OCCUPANTS, "active", "not is_done(pod) and pod.deleting is None", "not is_done(pod)"),
    ),
    Row(
        "DaemonSets' pods can.",
        "unit.planning.test_candidates::test_whoever_owns_it_a_pod_can_protect_its_node",
        Mutation(
            CANDIDATES, "_of_pods", "occupants.active(pod)", "occupants.active(pod) and occupants.reschedulable(pod)"
        ),
    ),
    Row(
        "Emptiness stops at budgets of pods and do-not-disrupt.",
        "unit.planning.test_deciding_emptiness::test_what_protects_a_pod_keeps_an_empty_node",
        Mutation(CANDIDATES, "_reasons", "graceful or not node.ends", "graceful and reason != names.EMPTY"),
    ),
    Row(
        "Consolidation stops at budgets of pods.",
        "simulation.test_disruption_rules::test_a_budget_of_pods_holds_its_node_until_it_allows_an_eviction",
        Mutation(
            CANDIDATES,
            "_of_pods",
            "occupants.evictable(pod, situation.now)",
            "not occupants.evictable(pod, situation.now)",
        ),
    ),
    Row(
        "Consolidation stops at do-not-disrupt.",
        "unit.planning.test_candidates::test_whoever_owns_it_a_pod_can_protect_its_node",
        Mutation(CANDIDATES, "_of_pods", "held.holds", "held.holds and held.until is not None"),
    ),
    Row(
        "Drift passes them where the claim has a termination grace period.",
        "simulation.test_disruption_rules::test_drift_passes_protected_pods_only_where_their_machine_ends_some_time",
        Mutation(CANDIDATES, "_reasons", "graceful or not node.ends", "graceful"),
    ),
    Row(
        "A pod with several budgets blocks.",
        "unit.planning.test_candidates::test_a_pod_with_two_budgets_can_never_be_evicted",
        Mutation(OCCUPANTS, "refusal", "len(matching) > 1", "len(matching) > 2"),
    ),
    Row(
        "A budget with no disruption allowed blocks.",
        "unit.planning.test_candidates::test_a_budget_without_an_eviction_left_keeps_the_node",
        Mutation(
            OCCUPANTS,
            "refusal",
            "budget.status.disruptions_allowed == 0 or _never_allows(budget)",
            "_never_allows(budget)",
        ),
    ),
    Row(
        "Pods of a fully blocking budget are left out when replacements are sized.",
        "unit.planning.test_prices_of_moves::test_pods_that_nobody_can_make_leave_need_no_machine",
        Mutation(OCCUPANTS, "cannot_leave", "_never_allows(budget)", "budget.status.disruptions_allowed < 0"),
    ),
    Row(
        "Unhealthy pods pass a budget that always allows them.",
        "unit.planning.test_candidates::test_an_unhealthy_pod_passes_where_its_budget_always_allows_it",
        Mutation(
            OCCUPANTS,
            "refusal",
            "budget.spec.unhealthy_pod_eviction_policy == 'AlwaysAllow' and not pod.ready",
            "budget.spec.unhealthy_pod_eviction_policy == 'AlwaysAllow' and pod.ready",
        ),
    ),
    # Ends.
    Row(
        "Pods leave in four tiers, each of which must finish first.",
        "simulation.test_termination::test_pods_leave_tier_by_tier",
        Mutation(DRAINING, "tiers", "2 * critical + of_daemon_set(pod)", "critical + 2 * of_daemon_set(pod)"),
    ),
    Row(
        "At the deadline less its own grace a pod is deleted by force, in all tiers at once.",
        "simulation.test_termination::test_the_deadline_ends_pods_past_budgets_and_annotations",
        Mutation(DRAINING, "forced", "now < deadline - dt.timedelta(seconds=own)", "now < deadline"),
    ),
    Row(
        "Volumes are waited for until the deadline.",
        "simulation.test_termination::test_volumes_are_not_waited_for_past_the_deadline",
        Mutation(
            DRAINS,
            "Drains._volumes",
            "deadline is not None and now >= deadline",
            "deadline is not None and now >= deadline + dt.timedelta(minutes=10)",
        ),
    ),
    Row(
        "Those of pods that stay on the node to its end are not.",
        "simulation.test_termination::test_volumes_are_detached_first",
        Mutation(
            DRAINS,
            "Drains._volumes",
            "each.spec.source.persistent_volume_name and each.spec.source.persistent_volume_name not in kept",
            "each.spec.source.persistent_volume_name",
        ),
    ),
    Row(
        "A machine that is gone is not drained.",
        "simulation.test_termination::test_a_machine_that_is_gone_already_is_not_drained",
        Mutation(
            "growth.controllers.termination.endings",
            "Endings._is_gone",
            "not claim.status.provider_id or node.is_ready",
            "not claim.status.provider_id or not node.is_ready",
        ),
    ),
    Row(
        "Initialised is ready, without startup and ephemeral taints, with the resources that were asked for.",
        "simulation.test_lifecycle::test_a_node_is_usable_when_nothing_stands_in_the_way_any_more",
        Mutation(
            "growth.planning.readiness",
            "obstacle_to_use",
            "(taint.key, taint.effect) in startup",
            "taint.key in startup",
        ),
    ),
    # Drift.
    Row(
        "Template, requirements, type, cloud: the first reason in that order is told.",
        "unit.planning.test_drift::test_the_first_reason_in_order_is_told",
        Mutation(
            DRIFT,
            "drifted",
            "_of_another_template(claim, pool)",
            "_of_another_template(claim, pool) and not _against_requirements(claim, pool)",
        ),
    ),
    Row(
        "The hash covers labels, annotations, taints, startup taints, class, grace and expiry.",
        "unit.planning.test_drift::test_a_changed_template_is_drift",
        Mutation("growth.cluster.hashes", "_of_karpenter", "template.spec.startup_taints", "template.spec.taints"),
    ),
    Row(
        "Requirements are held against the claim's labels.",
        "unit.planning.test_drift::test_requirements_are_held_against_the_labels_of_the_claim",
        Mutation(
            DRIFT,
            "_against_requirements",
            "not requirement.meets(labels.get(key))",
            "key in labels and not requirement.meets(labels[key])",
        ),
    ),
    Row(
        "A missing type counts after an hour.",
        "unit.planning.test_drift::test_a_type_that_is_gone_is_drift_after_an_hour",
        Mutation(DRIFT, "_old_enough", "now - created >= SETTLED", "now - created > SETTLED"),
    ),
    Row(
        "The cloud's own word is the last.",
        "simulation.test_drifting::test_the_clouds_word_is_the_last",
        Mutation(
            DRIFTING,
            "Drifting._reason",
            "told or await self._ask(claim)",
            "await self._ask(claim) or told",
        ),
    ),
    Row(
        "A hash of another version is stamped anew.",
        "simulation.test_drifting::test_a_hash_of_another_version_is_stamped_anew_and_no_drift",
        Mutation(
            DRIFT,
            "_of_another_template",
            "annotations.get(names.NODE_POOL_HASH_VERSION_ANNOTATION) != hashes.VERSION",
            "names.NODE_POOL_HASH_VERSION_ANNOTATION not in annotations",
        ),
    ),
    # State.
    Row(
        "Until a node is registered, labels and taints are the claim's.",
        "unit.test_assembling::test_until_a_node_is_registered_the_claims_labels_and_taints_count",
        Mutation(MACHINES, "Machine.taints", "self.registered and self.node is not None", "self.node is not None"),
    ),
    Row(
        "Until it is initialised, what it does not report is the claim's.",
        "unit.test_assembling::test_what_a_node_does_not_report_yet_is_the_claims",
        Mutation(MACHINES, "_filled", "not known.get(name)", "name not in known"),
    ),
    Row(
        "Until then startup and ephemeral taints do not count.",
        "unit.test_assembling::test_until_a_node_is_initialised_taints_that_will_go_are_left_out",
        Mutation(MACHINES, "Machine.taints", "not self.initialized", "not self.registered"),
    ),
    Row(
        "A missing unregistered taint is told, and the node registers.",
        "simulation.test_lifecycle::test_a_node_without_the_unregistered_taint_is_taken_and_told_of",
        Mutation(
            "growth.controllers.lifecycle.registration",
            "Registration.register",
            "unguarded and self._env.provider.guards_nodes",
            "unguarded and not self._env.provider.guards_nodes",
        ),
    ),
    Row(
        "The claim's own labels count before the cloud's.",
        "simulation.test_lifecycle::test_the_node_gets_what_the_claim_says_and_keeps_the_rest",
        Mutation(
            "growth.controllers.lifecycle.launch",
            "Launcher._tell",
            "{**labels, **(draft['metadata'].get('labels') or {})}",
            "{**(draft['metadata'].get('labels') or {}), **labels}",
        ),
    ),
    # Safety of replacements.
    Row(
        "Nothing is deleted before what replaces it is up.",
        "simulation.test_moves::test_what_replaces_is_up_before_anything_goes",
        UP_WHEN_MADE,
    ),
    Row(
        "Taints that nobody stands for are taken off after a restart.",
        "simulation.test_disruption_of_empty_nodes::test_taints_that_nobody_stands_for_are_removed",
        Mutation(
            "growth.controllers.disruption.mending",
            "left_behind",
            "marking.marked(claim) or any(map(tainting.tainted, nodes))",
            "marking.marked(claim)",
        ),
    ),
    Row(
        "A disruption under way is gone on with after a restart.",
        "simulation.test_moves::test_another_process_goes_on_with_a_move",
        Mutation(
            "growth.controllers.disruption.mending",
            "left_behind",
            "whole and len(targets) == len(alive) and all(tainting.tainted(each.node) for each in targets)",
            "not whole",
        ),
    ),
    Row(
        "Pods of a node that is being disrupted are not bought for twice.",
        "unit.planning.test_deciding::test_pods_of_a_node_that_is_being_disrupted_keep_their_place",
        Mutation(
            SITUATING,
            "situated",
            "(*assembled.preempting, *assembled.demands, *moving, *buffered)",
            "(*assembled.preempting, *assembled.demands, *buffered)",
        ),
    ),
    Row(
        "Static drift waits for scale-down.",
        "simulation.test_static_pools::test_scaling_comes_before_drift",
        Mutation(
            "growth.planning.disruption.static",
            "renewal",
            "len(found.staying) != most(pool)",
            "len(found.staying) > (most(pool) or 0)",
        ),
        killer="unit.controllers.test_sizing::test_a_pool_that_grows_or_shrinks_does_that_first",
    ),
    Row(
        "Static drift keeps within limits.nodes, and with no head-room is no deadlock.",
        "simulation.test_static_pools::test_at_the_limit_soft_replaces_first_and_hard_deletes_first",
        Mutation(
            "growth.planning.disruption.static", "in_place", "limit <= pool.spec.replicas", "limit < pool.spec.replicas"
        ),
    ),
    Row(
        "Limits hold inside a pass and under two leaders.",
        "simulation.test_provisioning::test_limits_hold_under_two_leaders",
        Mutation(
            "growth.controllers.provisioning.reserving",
            "Reserving._reserve_pool",
            "await books.write(env.api, NODE_POOL, pool, names.RESERVED_ANNOTATION, booking.reserved)",
            "booking.reserved",
        ),
    ),
    Row(
        "One slow launch holds up nobody.",
        "simulation.test_launch_failures::test_one_slow_launch_holds_up_nobody",
        Mutation(LIFECYCLE, "WORKERS", "200", "1"),
    ),
    # Emptiness.
    Row(
        "Empty is a node without a pod that needs a place and costs something to lose.",
        "unit.planning.test_deciding_emptiness::test_empty_nodes_go_and_used_ones_do_not",
        Mutation(
            CANDIDATES,
            "empty",
            "not occupants.reschedulable(pod) or occupants.free_to_lose(pod)",
            "not occupants.reschedulable(pod)",
        ),
    ),
    Row(
        "An eviction costs 1 + deletion cost ÷ 2²⁷ + priority ÷ 2²⁵, between −10 and 10.",
        "unit.planning.test_candidates::test_evictions_cost_by_annotation_and_priority_within_bounds",
        Mutation(
            OCCUPANTS, "eviction_cost", "4 * (pod.shape.spec.priority or 0)", "2 * (pod.shape.spec.priority or 0)"
        ),
    ),
    Row(
        "All empty nodes go that the budget allows, in one decision.",
        "unit.planning.test_deciding_emptiness::test_the_dearest_goes_first_and_ties_go_by_name",
        Mutation(DECIDE, "_Decision._affordable", "allowed - 1", "0"),
    ),
    Row(
        "Nodes that hold a buffer's room stay.",
        "simulation.test_disruption_of_empty_nodes::test_nodes_that_hold_a_buffer_stay_and_say_so",
        Mutation(
            CANDIDATES,
            "_reasons",
            "reason in CONSOLIDATION and node.holds_buffer",
            "reason == names.UNDERUTILIZED and node.holds_buffer",
        ),
    ),
    Row(
        "Under every policy.",
        "unit.planning.test_deciding_emptiness::test_every_policy_removes_empty_nodes",
        Mutation(
            CANDIDATES,
            "_of_consolidation",
            "reason == names.UNDERUTILIZED and disruption.consolidation_policy == WHEN_EMPTY",
            "disruption.consolidation_policy == WHEN_EMPTY",
        ),
    ),
    # Order.
    Row(
        "Empty, then drifted, then underutilised nodes.",
        "unit.planning.test_deciding::test_empty_nodes_come_before_drifted_and_drifted_before_such_as_could_be_cheaper",
        Mutation(
            DECIDE,
            "_Decision._within_room",
            "(names.EMPTY, names.DRIFTED_REASON, names.UNDERUTILIZED)",
            "(names.UNDERUTILIZED, names.DRIFTED_REASON, names.EMPTY)",
        ),
    ),
    Row(
        "Drift takes empty nodes first, all of them.",
        "unit.planning.test_deciding::test_empty_drifted_nodes_go_together_and_first",
        Mutation(
            DECIDE,
            "_Decision._drifted",
            "not any(occupants.reschedulable(pod) for pod in node.pods)",
            "any(occupants.reschedulable(pod) for pod in node.pods)",
        ),
    ),
    Row(
        "Then the oldest, one in a decision.",
        "unit.planning.test_deciding::test_the_oldest_goes_first_and_ties_go_by_name",
        Mutation(
            DECIDE,
            "_Decision._drifted",
            "sorted(self._situation.nodes, key=age)",
            "sorted(self._situation.nodes, key=_dearest_first)",
        ),
    ),
    Row(
        "A drifted node may need several machines.",
        "unit.planning.test_deciding::test_a_drifted_node_may_need_several_machines",
        Mutation(
            ROOM,
            "overdrawn",
            "each.replace is not None and replaced[pool] > each.replace",
            "each.replace is not None and bought[pool] > each.replace",
        ),
    ),
    Row(
        "One pool's drift does not hold up another's.",
        "simulation.test_moves::test_failing_drift_waits_and_blocks_no_other_pool",
        Mutation(
            DECIDE,
            "_Decision._drifted",
            "self._options.resting.get(node.pool) or self._options.resting_nodes.get(node.name)",
            "next(iter(self._options.resting.values()), '') or self._options.resting_nodes.get(node.name)",
        ),
    ),
    Row(
        "Candidates come by price ÷ (1 + costs of evictions), the greatest first.",
        "unit.planning.test_candidates::test_who_costs_much_and_disturbs_little_goes_first",
        Mutation(CANDIDATES, "_worth", "(node.price or 0) * occupants.ONE // disruption_cost(node)", "node.price or 0"),
    ),
    # Consolidation.
    Row(
        "Several nodes go to none.",
        "unit.planning.test_consolidating::test_many_go_at_once_and_every_one_by_itself",
        Mutation(
            "growth.planning.disruption.search.consolidating",
            "_delete",
            "course.allowance.deletes([node])",
            "not course.gone",
        ),
    ),
    Row(
        "Several go to one.",
        "unit.planning.test_consolidating::test_two_nodes_become_one_that_is_cheaper",
        DEAREST_ALONE,
    ),
    Row(
        "Several go to several.",
        "unit.planning.test_consolidating::test_several_nodes_become_several_that_are_cheaper",
        DEAREST_ALONE,
    ),
    Row(
        "A type among those that go is replaced only by what is cheaper than it.",
        "unit.planning.test_prices_of_moves::test_several_nodes_are_not_replaced_by_one_of_their_own",
        Mutation(PRICES, "_cheaper", "draft.prices[name] < min(same)", "draft.prices[name] <= min(same)"),
    ),
    Row(
        "Every type that may come costs strictly less, at its worst, than all that go.",
        "unit.planning.test_prices_of_moves::test_every_type_that_may_come_costs_less_than_what_goes",
        NO_PAY,
    ),
    Row(
        "What costs the same replaces nothing.",
        "unit.planning.test_prices_of_moves::test_nothing_is_replaced_by_what_costs_the_same",
        NO_PAY,
    ),
    Row(
        "From on-demand to either, spot is asked for.",
        "unit.planning.test_prices_of_moves::test_where_spot_would_do_spot_is_asked_for",
        Mutation(
            PRICES,
            "_on_terms",
            "spot_to_spot or (names.SPOT in terms and names.ON_DEMAND in terms and names.RESERVED not in terms)",
            "spot_to_spot",
        ),
    ),
    Row(
        "Spot to spot has a gate.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_has_a_gate",
        Mutation(
            PRICES, "_on_terms", "spot_to_spot and not options.spot_to_spot", "spot_to_spot and options.spot_to_spot"
        ),
    ),
    Row(
        "One spot node needs fifteen cheaper types.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum",
        Mutation(PRICES, "SPOT_TO_SPOT_TYPES", "15", "14"),
    ),
    Row(
        "It lists the fifteen cheapest, or enough for minValues.",
        "unit.planning.test_min_values_when_moving::test_spot_to_spot_lists_more_where_the_minimum_is_more",
        Mutation(PRICES, "_listed", "lowest_price(shelf, state, sold)", "draft.cheapest"),
    ),
    Row(
        "Several spot nodes need no fifteen.",
        "unit.planning.test_prices_of_moves::test_several_spot_nodes_need_no_fifteen_types",
        Mutation(PRICES, "_on_terms", "spot_to_spot and 2 * coming > len(gone)", "spot_to_spot"),
    ),
    Row(
        "Balanced weighs the share of the savings against that of the disruption, for each pool.",
        "unit.planning.test_balanced::test_half_the_share_is_enough",
        Mutation("growth.planning.disruption.balanced", "TOLERANCE", "2", "1"),
    ),
    Row(
        "A move across pools must please each.",
        "unit.planning.test_balanced::test_a_move_across_pools_must_please_each",
        Mutation(
            "growth.planning.disruption.balanced", "why_not", "sorted(parts.items())", "sorted(parts.items())[-1:]"
        ),
    ),
    Row(
        "WhenEmpty moves nothing that is used.",
        "simulation.test_disruption_rules::test_what_is_worth_a_move_is_the_policys_choice",
        Mutation(
            CANDIDATES,
            "_of_consolidation",
            "disruption.consolidation_policy == WHEN_EMPTY",
            "disruption.consolidation_policy != WHEN_EMPTY",
        ),
    ),
    Row(
        "A search has an end, and what it found until then is good.",
        "unit.planning.test_consolidating::test_a_search_that_runs_out_of_steps_says_so_and_what_it_found_stands",
        Mutation(
            COURSE,
            "Course.over",
            "self.stopped or self.spent + self.ground.steps >= self.options.budget",
            "self.stopped",
        ),
    ),
    Row(
        "Reserved capacity may be replaced by other terms when it is used up.",
        "unit.planning.test_rehousing::test_reserved_capacity_that_is_used_up_is_replaced_on_other_terms",
        Mutation(
            "growth.planning.solve",
            "_offered",
            "sold and (unavailable or not _spent(offering))",
            "sold and (unavailable or not any(_spent(each) for each in kind.offerings))",
        ),
    ),
    # Validation.
    Row(
        "A move waits fifteen seconds and is decided again.",
        "simulation.test_moves::test_a_move_waits_and_is_checked_again",
        Mutation(
            EXECUTING, "Execution._through", "running.move.reason in VALIDATED", "running.move.reason not in VALIDATED"
        ),
    ),
    Row(
        "A node that is nominated or over its budget by then ends it.",
        "simulation.test_moves_decided_again::test_a_node_that_may_not_go_by_now_ends_the_move",
        Mutation(
            QUESTION,
            "_checked",
            "stays is not None and stays.reason not in ignored",
            "stays is not None and stays.reason in ignored",
        ),
    ),
    Row(
        "Consolidation is all or nothing.",
        "simulation.test_moves_decided_again::test_a_consolidation_is_made_as_a_whole_or_not_at_all",
        Mutation(QUESTION, "_checked", "why and not single", "why and single"),
    ),
    Row(
        "Types that are no longer to be had end it.",
        "simulation.test_moves::test_types_that_are_sold_no_more_end_the_move",
        SOLD_IS_NOT_ASKED,
    ),
    Row(
        "So do types that are to be had on other terms only.",
        "simulation.test_moves_decided_again::test_what_is_sold_on_other_terms_only_ends_the_move",
        Mutation(
            "growth.planning.disruption.worth", "_asked_for", "any(map(need.allows, labels[key]))", "any(labels[key])"
        ),
    ),
    Row(
        "So does room without what would be bought.",
        "simulation.test_moves_decided_again::test_nothing_is_bought_where_room_was_freed_meanwhile",
        Mutation(QUESTION, "_checked", "not why and not put_off", "not why and put_off"),
    ),
    Row(
        "So do pods that left where less would do for the others.",
        "simulation.test_moves_decided_again::test_nothing_is_bought_for_pods_that_left_meanwhile",
        Mutation(QUESTION, "_checked", "put_off < PATIENCE", "put_off > PATIENCE"),
    ),
    Row(
        "So does a saving that is too little by now.",
        "simulation.test_moves_decided_again::test_a_move_that_saves_too_little_by_now_is_not_made",
        Mutation(
            QUESTION,
            "_checked",
            "not why and options is not None and move.reason == names.UNDERUTILIZED",
            "not why and options is not None and move.reason == names.EMPTY",
        ),
    ),
    Row(
        "Emptiness keeps what is still empty.",
        "simulation.test_moves_decided_again::test_of_several_empty_nodes_those_go_that_are_still_empty",
        Mutation(QUESTION, "_checked", "move.reason == names.EMPTY", "move.reason == names.DRIFTED_REASON"),
    ),
    Row(
        "While nothing has changed nothing is decided, but every five minutes.",
        "simulation.test_moves_decided_again::test_what_has_not_changed_is_decided_again_after_five_minutes_only",
        Mutation(
            CONTROLLER,
            "Disruption._is_due",
            "now - self._decided_at >= FORCED_SECONDS",
            "now - self._decided_at >= 2 * FORCED_SECONDS",
        ),
    ),
    Row(
        "Drift is not validated.",
        "simulation.test_moves::test_drift_acts_at_once",
        Mutation(
            "growth.controllers.disruption.moving",
            "VALIDATED",
            "{names.EMPTY, names.UNDERUTILIZED}",
            "{names.EMPTY, names.UNDERUTILIZED, names.DRIFTED_REASON}",
        ),
    ),
    Row(
        "A failed check does not end the method.",
        "simulation.test_moves::test_after_a_failed_check_the_next_best_follows",
        Mutation(
            "growth.controllers.disruption.moving",
            "Moves.remove",
            "self._running.pop(running.number, None)",
            "self._running.get(running.number)",
        ),
    ),
    # Beyond Karpenter.
    Row(
        "A long consolidateAfter outlives a change of who leads, without a write for every pod.",
        "simulation.test_lulls::test_who_leads_next_goes_on_counting",
        Mutation(
            "growth.controllers.disruption.lulls",
            "Lulls.recall",
            "written is not None and written.pods == self._digest(node)",
            "written is not None and written.pods != self._digest(node)",
        ),
    ),
    Row(
        "No pod goes in a circle.",
        "unit.planning.test_consolidating::test_pods_that_were_moved_a_moment_ago_are_moved_again_only_for_a_real_part",
        Mutation(
            COURSE,
            "Course.pays",
            "not against and bool(bought) and any(node.name in self._moving_again for node in nodes)",
            "not against and not bought and any(node.name in self._moving_again for node in nodes)",
        ),
    ),
    Row(
        "A move must pay for its disruption.",
        "unit.planning.test_consolidating::test_a_move_must_pay_for_its_disruption",
        Mutation(
            "growth.planning.disruption.search.options",
            "SearchOptions.too_little",
            "saved < self.owed(evictions)",
            "saved < 0",
        ),
    ),
    Row(
        "Pods are not moved to a node that has drifted itself.",
        "unit.planning.test_deciding::test_pods_do_not_go_from_one_drifted_node_to_another",
        Mutation(
            DECIDE,
            "_Decision._rehoused",
            "each.drifted and each.name != node.name",
            "each.drifted and each.name == node.name",
        ),
    ),
    Row(
        "A budget of nothing for drift does not keep a node from being consolidated.",
        "unit.planning.test_deciding::test_drift_that_budgets_forbid_does_not_protect_from_consolidation",
        Mutation(
            DECIDE, "_Decision._underutilized", "self._open(names.UNDERUTILIZED)", "self._open(names.DRIFTED_REASON)"
        ),
    ),
]


@pytest.mark.parametrize("row", RULES, ids=[each.promise for each in RULES])
def test_every_rule_of_disruption_has_its_test(row: Row) -> None:
    """The test that is named exists, and says what it shows."""
    row.check_names()
