"""For each row of docs/growth-pools.md, «Every step has its test», by the test: the mutation that makes it fail."""

from tests.mutations.mutation import Mutation

GROWTH = "growth.controllers.growth"
PROGRESS = f"{GROWTH}.progress"
REMOVALS = f"{GROWTH}.removals"
REMOVING = f"{GROWTH}.removing"
MATCHING = f"{GROWTH}.matching"
SOLUTIONS = f"{GROWTH}.solutions"
EMPTYING = "growth.planning.emptying"
CONTINUOUS = "growth.planning.disruption.continuous"
REQUESTS = "growth.cluster.node_requests"

MUTATIONS: dict[str, Mutation] = {
    "test_pods_that_no_node_takes_are_demands": Mutation(
        "growth.cluster.wanting", "waits_for", "gates", "len(gates) > 1", index=0
    ),
    "test_a_pod_gets_the_pool_that_it_asks_for": Mutation(
        "growth.cluster.pools", "growth_pool", "pool.metadata.name", "names.DEFAULT_POOL"
    ),
    "test_a_pod_that_asks_for_none_where_there_is_no_default_is_told_so": Mutation(
        MATCHING, "missing_pool", "names.DEFAULT_POOL not in pools", "not pools"
    ),
    "test_a_pod_that_asks_for_a_missing_pool_is_told_so": Mutation(
        MATCHING, "missing_pool", "not asked & pools", "not pools"
    ),
    "test_a_request_on_its_way_is_room": Mutation(
        REQUESTS, "_IN_FLIGHT", 'frozenset({"", PENDING, PROVISIONING})', 'frozenset({"", PROVISIONING})'
    ),
    "test_a_type_that_was_not_to_be_had_is_planned_around": Mutation(
        "growth.cluster.pools",
        "growth_pool",
        "_without_stock(kind) if kind.name.lower() in unmet else without_unmet(kind, refused)",
        "_without_stock(kind) if kind.name in market.unmet else kind",
    ),
    "test_no_demands_is_nothing_to_do": Mutation(
        SOLUTIONS, "solution_of", "Solution.NO_DEMANDS", "Solution.ALL_PLACED"
    ),
    "test_all_placed_is_a_request_for_each_machine": Mutation(
        SOLUTIONS,
        "solution_of",
        "Solution.INCOMPLETE_PLACEMENT if plan.unplaced else Solution.ALL_PLACED",
        "Solution.INCOMPLETE_PLACEMENT if plan.order else Solution.ALL_PLACED",
    ),
    "test_an_incomplete_placement_is_requests_where_possible_and_events": Mutation(
        SOLUTIONS,
        "solution_of",
        "Solution.INCOMPLETE_PLACEMENT if plan.unplaced else Solution.ALL_PLACED",
        "Solution.ALL_PLACED if plan.order else Solution.INCOMPLETE_PLACEMENT",
    ),
    "test_a_pending_request_asks_for_its_machine": Mutation(
        PROGRESS, "_pending", "NODE_REQUEST_FAILED", "NODE_NOT_READY"
    ),
    "test_an_accepted_request_is_provisioning_and_knows_its_machine": Mutation(
        PROGRESS, "_pending", "claim.status.provider_id", "claim.metadata.name", index=1
    ),
    "test_a_request_without_capacity_is_unmet_until_its_time": Mutation(
        f"{GROWTH}.requests",
        "NodeRequests._refused",
        "dt.timedelta(seconds=env.settings.unmet_ttl)",
        "dt.timedelta(seconds=env.settings.unmet_ttl / 2)",
    ),
    "test_a_node_that_is_ready_makes_its_request_ready": Mutation(
        PROGRESS, "_provisioning", "names.INITIALIZED", "names.REGISTERED"
    ),
    "test_a_node_that_is_not_ready_in_time_is_deprovisioned": Mutation(
        PROGRESS, "_provisioning", "patience.readiness - (now - launched).total_seconds()", "patience.readiness"
    ),
    "test_requests_are_deleted_after_their_times": Mutation(
        PROGRESS,
        "next_step",
        "_kept(request, patience.ready_ttl, now=now)",
        "_kept(request, patience.unmet_ttl, now=now)",
    ),
    "test_a_request_that_is_deprovisioned_hands_over_to_a_removal": Mutation(
        PROGRESS,
        "next_step",
        "Forget() if claim is None or _going(claim) else AskForRemoval()",
        "AskForRemoval() if claim is None or _going(claim) else Forget()",
    ),
    "test_an_empty_node_is_marked_and_a_busy_one_is_not": Mutation(
        EMPTYING, "running", "not of_daemon_set(pod)", "of_daemon_set(pod)"
    ),
    "test_at_its_time_a_node_is_looked_at_again": Mutation(
        EMPTYING, "plan_scale_down", "now >= node.due", "now <= node.due"
    ),
    "test_a_pending_removal_asks_the_cloud": Mutation(
        REMOVALS, "Removals._attempt", "DEPROVISIONING", "PENDING", index=1
    ),
    "test_a_machine_whose_deletion_was_accepted_is_gone_with_one_denial": Mutation(
        REMOVING, "_is_gone", "machine in {Machine.DENIED, Machine.GONE}", "machine is Machine.GONE"
    ),
    "test_every_attempt_is_counted_with_its_time": Mutation(
        REMOVALS, "Removals._attempt", "not removing.postponed(request)", "removing.postponed(request)"
    ),
    "test_a_machine_that_does_not_go_is_asked_for_again": Mutation(
        REMOVING, "_is_last", "request.status.removal_attempt >= patience.most", "request.status.removal_attempt > 1"
    ),
    "test_after_so_many_attempts_a_removal_has_failed": Mutation(
        REMOVALS, "Removals._tell", "node is not None", "node is None"
    ),
    "test_a_pod_that_asks_for_none_gets_the_default_pool": Mutation(
        "growth.planning.attempts",
        "open_to",
        "ref.name != names.DEFAULT_POOL",
        "ref.name == names.DEFAULT_POOL",
    ),
    "test_demands_are_planned_on_what_comes_and_on_what_is_offered": Mutation(
        "growth.cluster.machines",
        "Machine.allocatable",
        "_filled(reported, amounts(self.claim.status.allocatable))",
        "amounts(reported)",
    ),
    "test_pods_that_are_all_in_back_off_come_back_when_a_type_can_be_had_again": Mutation(
        f"{GROWTH}.resting", "Resting.recovers", "self._rests[key].pool == pool", "self._rests[key].pool == type_"
    ),
    "test_every_state_with_every_claim_leads_where_it_should": Mutation(
        PROGRESS,
        "_out_of_stock",
        "refused and not claim.status.provider_id",
        "refused or not claim.status.provider_id",
    ),
    "test_a_phase_that_people_write_is_put_right_and_costs_no_machine": Mutation(
        PROGRESS,
        "next_step",
        "EndClaim() if _out_of_stock(claim) else Tell(phase=PENDING)",
        "EndClaim()",
    ),
    "test_every_state_with_every_machine_and_every_pod_leads_where_it_should": Mutation(
        REMOVING, "_unaccepted", "request.spec.reason == EMPTY", "request.spec.reason != EMPTY"
    ),
    "test_whenever_a_pod_is_bound_nothing_is_asked_over_its_head": Mutation(
        REMOVALS,
        "Removals._attempt",
        "[pod for pod in running(pods) if not self._is_lost(pod, request)]",
        "[pod for pod in running(pods) if self._is_lost(pod, request)]",
    ),
    "test_pods_of_two_machines_are_brought_together": Mutation(
        CONTINUOUS, "_rules", "pool.spec.optimise == CONTINUOUS", "pool.spec.optimise != CONTINUOUS"
    ),
    "test_a_changed_template_replaces_every_machine": Mutation(
        "growth.planning.disruption.drift",
        "drifted_in_growth",
        "claim.spec.node_class_ref != uses or _of_another_template(claim, pool)",
        "claim.spec.node_class_ref != uses and _of_another_template(claim, pool)",
    ),
    "test_machines_kept_warm_are_replaced_before_they_go": Mutation(
        CONTINUOUS, "spare", "not counts or left.get(key, 1) > 0", "not counts or left.get(key, 1) >= 0"
    ),
    "test_the_minimum_of_a_type_stays": Mutation(CONTINUOUS, "minima", "each.name.lower()", "each.name"),
}
