"""For each row of docs/linode.md, «Every rule has its test», by the test: the mutation that makes it fail."""

from tests.mutations.mutation import Mutation

LINODE = "growth.providers.linode"
CLAIMING = f"{LINODE}.claiming"
COLLECTING = f"{LINODE}.collecting"
ENDING = f"{LINODE}.ending"
FAILURES = f"{LINODE}.failures"
FINDING = f"{LINODE}.finding"
HOLDINGS = f"{LINODE}.holdings"
MAKING = f"{LINODE}.making"
POOLS = f"{LINODE}.pools"
PROVIDER = f"{LINODE}.provider"
TAGS = f"{LINODE}.tags"

# Each claim has a lock of its own, and not each pool and type.
LOCK_OF_THE_CLAIM = Mutation(
    CLAIMING,
    "Claiming._in_turn",
    "self._pools.locks.held(order.key, within=order.bound.left(but=PASS_SECONDS))",
    "self._pools.locks.held(Key(order.key.group, order.name, order.key.type), within=order.bound.left(but=PASS_SECONDS))",
)
# The last node but one takes the pool along.
POOL_WITH_THE_LAST_BUT_ONE = Mutation(
    POOLS,
    "Pools.remove_node",
    "pool.count <= 1 and len(pool.nodes) <= 1",
    "pool.count <= 2 and len(pool.nodes) <= 2",
)
# Whatever the claims' status says, only what this process bought is known.
NAMED_BY_OUR_OWN_ALONE = Mutation(
    f"{LINODE}.naming",
    "Naming._named_by",
    "tags.number_of(claim.status.provider_id) or self._pools.remembered.answer_to(claim.metadata.uid)",
    "self._pools.remembered.answer_to(claim.metadata.uid)",
)
TWO_CLAIMS_ARE_FINE = Mutation(HOLDINGS, "check_single", "len(held) > 1", "len(held) > 2")

MUTATIONS: dict[str, Mutation] = {
    "test_a_claim_keeps_its_machine_and_shares_it_with_no_other_while_lists_are_behind": Mutation(
        HOLDINGS,
        "Remembered.of_claim",
        "[*(number for number, (held, _, _) in self._claims.items() if held == claim), *ended]",
        "ended",
    ),
    "test_a_machine_is_what_the_claim_asked_for": Mutation(
        TAGS, "provider_id", 'f"{SCHEME}{number}"', 'f"linode:{number}"'
    ),
    "test_creates_at_once_by_two_writers_share_no_machine": Mutation(
        CLAIMING,
        "Claiming._confirmed",
        "not tags.holds(shown.tags, claim)",
        "not tags.values(shown.tags, tags.CLAIM)",
    ),
    "test_a_pool_is_looked_for_and_made_under_its_lock": LOCK_OF_THE_CLAIM,
    "test_a_pool_for_each_pool_and_type": Mutation(
        POOLS, "Pools._fits", "self.key_of(pool) == key", "tags.has(pool.tags, key.group, key.pool)"
    ),
    "test_a_foreign_pool_of_the_same_type_is_left_alone": Mutation(
        POOLS, "Pools._fits", "self.key_of(pool) == key", "pool.type == key.type"
    ),
    "test_the_first_open_machine_is_claimed_and_nothing_is_bought": Mutation(
        CLAIMING,
        "Claiming._first_open",
        "sorted(numbers, key=lambda each: each not in begun)",
        "sorted(reversed(numbers), key=lambda each: each not in begun)",
    ),
    "test_a_claim_is_never_on_a_pool": Mutation(
        MAKING,
        "new_pool",
        "tags.of_pool(order.key, cluster=cluster, node_class=claim.spec.node_class_ref.name)",
        "[*tags.of_pool(order.key, cluster=cluster, node_class=claim.spec.node_class_ref.name),"
        " tags.tag(tags.CLAIM, claim.metadata.name)]",
    ),
    "test_tags_with_an_equals_sign_are_read": Mutation(TAGS, "SEPARATORS", '(":", "=")', '(":",)'),
    "test_a_machine_without_a_claims_tag_is_claimed_by_writing_it": Mutation(
        CLAIMING,
        "Claiming._first_open",
        "tags.values(instance.tags, tags.CLAIM)",
        "[each for each in instance.tags if not tags.is_lkes(each) and not tags.is_ours(each)]",
    ),
    "test_a_pool_says_whose_it_is": Mutation(
        TAGS, "of_pool", "tag(NODE_CLASS, node_class)", "tag(NODE_CLASS, key.pool)"
    ),
    "test_a_pool_comes_as_its_tier_has_it": Mutation(
        "growth.sim.clouds.linode.account",
        "Account._give_instance",
        "(*pool.tags, *auto) if pool.cluster.enterprise else ()",
        "(*pool.tags, *auto) if not pool.cluster.enterprise else ()",
    ),
    "test_tags_of_an_enterprise_pool_come_to_its_machines": Mutation(
        "growth.sim.clouds.linode.account", "Account._give_instance", "(*pool.tags, *auto)", "(*auto, *pool.tags[:2])"
    ),
    "test_an_enterprise_machine_is_claimed_before_its_pool_lists_it": Mutation(
        POOLS, "Pools._of_enterprise", "is_in(each, pool)", "each.id in numbers"
    ),
    "test_an_enterprise_machine_is_a_member_by_its_tag_and_its_type": Mutation(
        POOLS, "Pools._of_enterprise", "key.fits(each.tags, each.type)", "each.type == key.type"
    ),
    "test_a_machine_gets_all_of_its_tags_when_it_is_claimed": Mutation(
        TAGS,
        "of_machine",
        "of_pool(key, cluster=cluster, node_class=claim.spec.node_class_ref.name)",
        "[tag(CLUSTER, cluster)]",
    ),
    "test_a_lock_stops_no_other_pool_or_type": Mutation(
        f"{LINODE}.booking",
        "Locks.held",
        "self._locks.get(key, (asyncio.Lock(), 0))",
        "next(iter(self._locks.values()), (asyncio.Lock(), 0))",
    ),
    "test_a_count_is_written_under_the_lock": LOCK_OF_THE_CLAIM,
    "test_a_machine_is_chosen_and_claimed_under_the_lock": LOCK_OF_THE_CLAIM,
    "test_a_node_is_deleted_under_the_lock": Mutation(
        ENDING,
        "Ending.delete",
        "self._pools.locks.held(key)",
        "self._pools.locks.held(Key(key.group, claim.metadata.name, key.type))",
    ),
    "test_capacity_that_nobody_claimed_is_collected_under_the_lock": Mutation(
        COLLECTING,
        "Collecting._alone",
        "self._pools.locks.held(key)",
        "self._pools.locks.held(Key(key.group, str(pool.id), key.type))",
    ),
    "test_pools_of_both_apis_with_one_name_are_two": Mutation(
        TAGS,
        "key_of",
        "Key(group, fitted(group, held[label]), type_)",
        "Key(NODE_POOL, fitted(group, held[label]), type_)",
    ),
    "test_a_create_that_is_repeated_answers_with_the_machine_that_has_the_tag": Mutation(
        FINDING,
        "Finding._tagged",
        "tags.has(each.tags, tags.CLAIM, claim.metadata.name)",
        "each.label == claim.metadata.name",
    ),
    "test_a_create_ends_in_time_however_slow_answers_are": Mutation(
        f"{LINODE}.booking", "Bound.__init__", "self.began + seconds", "self.began + 2 * seconds"
    ),
    "test_a_pool_that_is_missing_is_made_with_one_node_and_not_grown": Mutation(MAKING, "new_pool", "1", "2"),
    "test_a_node_without_an_instance_is_waited_for_whether_it_says_null_or_zero": Mutation(
        POOLS,
        "Pools.members",
        "[node.instance_id for node in pool.nodes if node.instance_id]",
        "[node.instance_id for node in pool.nodes if node.instance_id is not None]",
    ),
    "test_waiting_never_buys_twice": Mutation(
        CLAIMING, "Claiming._surplus", "pool.count - members.overdue", "len(members.open) - members.overdue"
    ),
    "test_a_machine_is_claimed_in_one_write_with_its_identity": Mutation(
        TAGS, "of_machine", "tag(UID, uid_value(claim.metadata.uid))", "tag(CLAIM, claim.metadata.name)"
    ),
    "test_a_pool_without_an_open_machine_grows_by_one": Mutation(CLAIMING, "Claiming._scale", "count + 1", "count + 2"),
    "test_who_waits_for_a_node_does_not_keep_the_lock": Mutation(
        CLAIMING,
        "Claiming._in_turn",
        "await self._pass(order, since=since)",
        "await self._pass(order, since=since) or await asyncio.sleep(order.bound.left())",
    ),
    "test_a_machine_that_does_not_come_in_time_is_tried_again": Mutation(
        CLAIMING,
        "Claiming._late",
        "CreateError(self._words(order), reason=PROVISIONING)",
        "CreateError(self._words(order), reason=PROVISIONING, retryable=False)",
    ),
    "test_tags_that_linode_shows_late_are_tried_again": Mutation(
        CLAIMING,
        "Claiming._lost",
        'CreateError(f"machine {number}, claimed for {name} a moment ago, {how}", reason=PROVISIONING)',
        'CreateError(f"machine {number}, claimed for {name} a moment ago, {how}", reason=PROVISIONING, retryable=False)',
    ),
    "test_refusals_that_pass_are_told_as_provisioning": Mutation(
        PROVIDER,
        "LinodeProvider._not_bought",
        'self._provisioning(f"Linode cannot do it now: {said}")',
        'CreateError(f"Linode cannot do it now: {said}", reason=REFUSED)',
    ),
    "test_two_pools_for_one_key_stop_that_key_only": Mutation(
        POOLS, "Pools.found", "len(pools) > 1", "len(pools) > 2", index=1
    ),
    "test_two_machines_for_one_claim_are_a_contradiction": Mutation(
        FINDING, "Finding._found", "len(alive) > 1", "len(alive) > 2"
    ),
    "test_a_machine_with_two_claims_is_a_contradiction": TWO_CLAIMS_ARE_FINE,
    "test_a_node_is_deleted_and_the_pool_only_with_the_last": Mutation(
        POOLS,
        "Pools.remove_node",
        "self._cloud.delete_node(self._home.id, node.id)",
        "self._cloud.delete_instance(node.instance_id or 0)",
    ),
    "test_a_pool_goes_with_its_last_node_and_not_before": POOL_WITH_THE_LAST_BUT_ONE,
    "test_a_purchase_that_grew_its_pool_and_is_never_repeated_leaves_nothing": Mutation(
        COLLECTING, "Collecting._unclaimed", "node.instance_id in nobodys & old", "node.instance_id in nobodys & gone"
    ),
    "test_what_nobody_claims_stands_for_five_minutes_and_no_longer": Mutation(
        COLLECTING,
        "Collecting._unclaimed",
        "dt.timedelta(seconds=self._ttl)",
        "dt.timedelta(seconds=self._ttl / 2)",
    ),
    "test_a_purchase_that_crashes_after_any_request_is_made_once": Mutation(
        CLAIMING,
        "Claiming._pass",
        "self._surplus(pool, members, key, but=order.uid) > 0",
        "self._surplus(pool, members, key, but=order.uid) > 1",
    ),
    "test_a_deletion_that_crashes_after_any_request_ends_one_machine": POOL_WITH_THE_LAST_BUT_ONE,
    "test_a_collection_that_crashes_after_any_request_takes_only_what_nobody_has": POOL_WITH_THE_LAST_BUT_ONE,
    "test_of_two_machines_the_claims_own_stays": Mutation(
        f"{LINODE}.settling", "Settling._settle", "tags.number_of(fresh.status.provider_id)", "None"
    ),
    "test_a_second_pool_of_a_lost_answer_is_removed": Mutation(
        POOLS, "Pools._without_lost_answers", "pool not in kept", "pool in used"
    ),
    "test_the_last_node_is_not_deleted_under_a_purchase": Mutation(
        POOLS, "Pools.remove_node", "self.reservations.count(key)", "self.reservations.count(key) > 1"
    ),
    "test_a_pool_list_that_fails_says_nothing_of_the_machine": Mutation(
        PROVIDER, "LinodeProvider._answering", "CloudUnavailable", "MachineNotFound"
    ),
    "test_a_node_that_never_gets_its_machine_goes_by_its_own_name": Mutation(
        COLLECTING,
        "Collecting._unclaimed",
        "not node.instance_id or node.instance_id in gone",
        "node.instance_id in gone",
    ),
    "test_a_count_that_no_node_stands_for_is_lowered": Mutation(
        COLLECTING, "Collecting._lower", "pool.count - missing", "pool.count"
    ),
    "test_a_count_that_arrives_late_takes_no_node_away": Mutation(
        POOLS, "Pools.scale", "is_unsure(error)", "not is_unsure(error)"
    ),
    "test_tags_that_arrive_late_take_no_machine_from_another": Mutation(
        CLAIMING, "Claiming._tagged_for", "is_unsure(error)", "not is_unsure(error)"
    ),
    "test_a_pool_that_grows_gets_what_its_class_asks_for_now": Mutation(
        MAKING, "changes", "value != held[name]", "held[name] is None"
    ),
    "test_a_refusal_that_is_about_a_type_is_not_the_classs": Mutation(
        FAILURES, "meaning", "Meaning.CAPACITY", "Meaning.FULL", index=2
    ),
    "test_a_claim_without_a_machine_does_not_delete_one_that_another_names": NAMED_BY_OUR_OWN_ALONE,
    "test_a_purchase_does_not_end_with_a_machine_that_another_claim_names": NAMED_BY_OUR_OWN_ALONE,
    "test_a_purchase_that_lands_late_leaves_no_machine_without_its_claim": Mutation(
        f"{LINODE}.direct",
        "Direct.of_claim",
        "self._held.remembered.may_come(claim.metadata.uid)",
        "bool(self._held.remembered.of_claim(claim.metadata.uid))",
    ),
    "test_a_node_whose_machine_is_gone_goes_after_five_minutes": Mutation(
        COLLECTING, "Collecting._unclaimed", "gone | stranded.keys()", "stranded.keys()"
    ),
    "test_a_node_whose_machine_is_gone_is_not_waited_for_for_ever": Mutation(
        CLAIMING, "Claiming._surplus", "pool.count - members.overdue", "pool.count"
    ),
    "test_an_unclaimed_machine_without_its_tags_goes": Mutation(
        COLLECTING, "Collecting._unclaimed", "{*members.open, *members.odd}", "{*members.open}"
    ),
    "test_a_machine_that_a_claim_names_is_the_claims_whatever_its_tags_say": Mutation(
        COLLECTING, "Collecting._nobodys", "{**owned, **swept}", "swept"
    ),
    "test_a_pool_that_lists_do_not_show_yet_is_not_made_twice": Mutation(
        POOLS, "Pools.unlisted", "self._known.get(key)", "None"
    ),
    "test_a_machine_that_a_claim_names_is_not_claimed_for_another": Mutation(
        CLAIMING,
        "Claiming._is_named",
        "self._is_younger(machine, JUST_MADE)",
        "self._is_younger(machine, self._ttl)",
    ),
    "test_a_machine_without_the_clusters_tag_goes_once_its_claim_is_gone": Mutation(
        COLLECTING,
        "Collecting._nobodys",
        "tags.values(each.tags, tags.CLAIM) and self._pools.is_ours(each)",
        "tags.values(each.tags, tags.CLAIM)",
    ),
    "test_its_pods_are_evicted": Mutation(
        COLLECTING, "Collecting._collect", "await self._leaving.standing() if unclaimed else {}", "{}"
    ),
    "test_another_type_is_asked_for": Mutation(
        CLAIMING,
        "Claiming._check_delivered",
        "not order.last and self.avoids(order.key.type)",
        "order.last and self.avoids(order.key.type)",
    ),
    "test_a_plan_that_the_region_lacks_holds_no_other_purchase": Mutation(
        FAILURES, "meaning", "Meaning.CAPACITY", "Meaning.QUOTA", index=0
    ),
    "test_a_machine_without_its_claims_tag_goes_once_its_claim_is_gone": Mutation(
        PROVIDER,
        "LinodeProvider.list",
        "self._region or tags.values(each.tags, tags.CLAIM)",
        "tags.values(each.tags, tags.CLAIM)",
    ),
    "test_a_claim_that_names_a_machine_without_tags_ends_it": Mutation(
        f"{LINODE}.direct",
        "Direct.delete",
        "is_by_uid(instance, claim, cluster=self._cluster) or is_by_name(instance, claim, cluster=self._cluster)",
        "is_by_uid(instance, claim, cluster=self._cluster)",
    ),
    "test_a_pass_that_would_take_many_takes_none": Mutation(
        f"{LINODE}.many", "Many.may_go", "self._share * known", "known"
    ),
    "test_surplus_of_its_own_goes_however_much_it_is": Mutation(
        CLAIMING,
        "Claiming._scale",
        "self._pools.bought.asked(pool.id)",
        "self._pools.bought.settled(pool.id)",
        index=0,
    ),
    "test_a_look_at_the_pool_that_is_behind_takes_no_other_machine": Mutation(
        POOLS,
        "Pools.remove_node",
        "last and not await self._has_others(pool, key, but=(node.instance_id,))",
        "last",
    ),
    "test_a_count_that_is_behind_cuts_no_machine_off": Mutation(
        CLAIMING,
        "Claiming._scale",
        "await self._pools.floored(pool, order.key, pool.count, since=since)",
        "pool.count",
    ),
    "test_pods_leave_a_pool_that_was_made_twice_before_it_goes": Mutation(
        POOLS, "Pools._drained", "await self._leaving.standing() if numbers else {}", "{}"
    ),
    "test_a_machine_that_was_tagged_by_hand_is_its_claims": Mutation(
        TAGS,
        "is_for",
        "holds(tags, claim) or (has(tags, CLAIM, claim.metadata.name) and not values(tags, UID))",
        "holds(tags, claim)",
    ),
    "test_a_machine_whose_uid_was_taken_off_goes_with_its_claim": Mutation(
        FINDING, "Finding.of_claim", "tags.is_for(each.tags, claim)", "tags.holds(each.tags, claim)"
    ),
    "test_two_machines_that_were_tagged_by_hand_are_a_contradiction": Mutation(
        CLAIMING,
        "Claiming._check_only",
        "tags.is_for(each.tags, order.claim)",
        "tags.holds(each.tags, order.claim)",
    ),
    "test_a_machine_of_two_claims_is_not_collected": TWO_CLAIMS_ARE_FINE,
    "test_a_second_pool_that_lke_scales_is_nobodys_lost_answer": Mutation(
        POOLS,
        "Pools._is_unused",
        "pool.autoscaler.enabled or max(pool.count, len(numbers)) > FEW",
        "max(pool.count, len(numbers)) > FEW",
    ),
    "test_a_class_that_is_refused_makes_no_machine_drift": Mutation(
        PROVIDER,
        "LinodeProvider.is_drifted",
        "not differs(was, self.hashes_of(node_class)) or await self.readiness.is_refused(node_class)",
        "not differs(was, self.hashes_of(node_class))",
    ),
    "test_a_create_is_bounded_as_one_call_however_many_types_it_allows": Mutation(
        PROVIDER,
        "LinodeProvider._buy",
        "Order(claim=claim, node_class=node_class, key=key, bound=bound, last=last)",
        "Order(claim=claim, node_class=node_class, key=key, bound=Bound(self._clock, seconds=bound.seconds), last=last)",
    ),
    "test_a_pool_that_is_not_growths_is_neither_used_nor_doubled": Mutation(
        POOLS,
        "Pools._is_others",
        "not tags.has(pool.tags, tags.CLUSTER, self._cluster)",
        "not tags.values(pool.tags, tags.CLUSTER)",
    ),
    "test_other_keys_go_on_beside_a_pool_that_is_not_growths": Mutation(
        POOLS,
        "Pools._is_others",
        "key.fits(pool.tags, pool.type)",
        "tags.has(pool.tags, key.group, key.pool)",
    ),
    "test_the_sweep_for_leaks_takes_nothing_of_a_key_whose_pools_contradict_themselves": Mutation(
        POOLS, "Pools._dispute", "len(pools) > 1", "len(pools) > 2"
    ),
    "test_claims_go_on_within_seconds_of_the_end_of_a_contradiction": Mutation(
        PROVIDER, "LinodeProvider._is_over", "True", "False"
    ),
    "test_claims_whose_pods_are_long_gone_buy_nothing_when_a_contradiction_ends": Mutation(
        "growth.controllers.lifecycle.memory",
        "Memory.is_wanted",
        "now - self._unwanted.setdefault(uid, now) < UNWANTED_SECONDS",
        "now >= self._unwanted.setdefault(uid, now)",
    ),
    "test_a_pod_waits_with_the_reason_and_runs_once_the_pool_is_gone": Mutation(
        POOLS,
        "Pools._is_others",
        "not tags.has(pool.tags, tags.CLUSTER, self._cluster)",
        'tags.has(pool.tags, tags.MANAGED, "true")',
    ),
    "test_a_class_that_is_replaced_leaves_no_old_tags_on_machines": Mutation(
        f"{LINODE}.keeper", "_laid", "set(applied) - set(wanted)", "set(wanted) - set(applied)"
    ),
    "test_a_label_that_no_cluster_has_or_several_buys_nothing_and_is_told": Mutation(
        f"{LINODE}.client",
        "LinodeApi.clusters",
        "[each for each in found if each.label == label]",
        "found[:1]",
    ),
    "test_a_removal_is_not_given_up_while_lke_does_not_list_the_node": Mutation(
        ENDING, "Ending._end", "CloudUnavailable", "InvariantViolation"
    ),
}
