"""What is promised of nodes in LKE pools, sentence by sentence, and the test that shows each."""

import importlib

import pytest

# (what is promised, module of the tests and name of the test)
SENTENCES: list[tuple[str, str]] = [
    # What it is for.
    (
        "A claim and a machine belong to each other, one to one.",
        "simulation.test_linode_rush::test_every_claim_has_one_machine_whatever_goes_wrong",
    ),
    (
        "Create returns with the machine's provider ID.",
        "conformance.providers.test_laws::test_a_machine_is_what_the_claim_asked_for",
    ),
    (
        "Many creates at once claim no machine twice and do not race for a pool's count.",
        "simulation.test_linode_rush::test_every_claim_has_one_machine_whatever_goes_wrong",
    ),
    # The model.
    (
        "There is exactly one LKE pool for a pool's name and a type.",
        "simulation.test_linode_pools::test_a_pool_for_each_pool_and_type",
    ),
    (
        "Pools of both APIs with one name have each their own.",
        "simulation.test_linode_pools::test_pools_of_both_apis_with_one_name_are_two",
    ),
    (
        "Pools are found by listing them all and filtering here.",
        "simulation.test_linode_pools::test_a_foreign_pool_of_the_same_type_is_left_alone",
    ),
    (
        "Of several machines that can be claimed the first of the list is.",
        "simulation.test_linode_pools::test_the_first_open_machine_is_claimed_and_nothing_is_bought",
    ),
    ("The claim's tag stands on instances only.", "simulation.test_linode_pools::test_a_claim_is_never_on_a_pool"),
    (
        "A machine without any tag of a claim is nobody's, and is claimed by writing that tag.",
        "simulation.test_linode_pools::test_the_first_open_machine_is_claimed_and_nothing_is_bought",
    ),
    (
        "A machine with one, in either spelling, is not taken.",
        "simulation.test_linode_pools::test_tags_with_an_equals_sign_are_read",
    ),
    ("A pool may have tags of its own.", "simulation.test_linode_pools::test_a_pool_for_each_pool_and_type"),
    # Tiers.
    (
        "Enterprise: tags of a pool come to its machines; its list of nodes is late.",
        "conformance.test_linode_client::test_a_pool_comes_as_its_tier_has_it",
    ),
    (
        "Enterprise: members are found by the pool's tag and filtered by type.",
        "simulation.test_linode_pools::test_a_pool_for_each_pool_and_type",
    ),
    (
        "Standard: tags of a pool stay with it, and a machine gets all of its own when it is claimed.",
        "simulation.test_linode_pools::test_the_first_open_machine_is_claimed_and_nothing_is_bought",
    ),
    (
        "Standard: nodes without an instance are ignored until they have one.",
        "simulation.test_linode_pools::test_waiting_never_buys_twice",
    ),
    # Concurrency.
    (
        "One writer is meant; two never leave two claims with one machine.",
        "simulation.test_linode_rush::test_two_writers_never_share_a_machine",
    ),
    (
        "A lock for each pool and type covers lookup, making, counting, claiming, deleting and collecting.",
        "simulation.test_linode_pools::test_the_last_node_stays_while_a_purchase_counts_on_its_pool",
    ),
    # Create.
    (
        "A create that is repeated finds its machine by the tag.",
        "conformance.providers.test_laws::test_a_purchase_that_is_repeated_finds_the_first_machine",
    ),
    (
        "Also after a crash between any two requests.",
        "simulation.test_linode_crashes::test_a_purchase_that_crashes_after_any_request_is_made_once",
    ),
    (
        "What is there is claimed before anything is bought.",
        "simulation.test_linode_pools::test_the_first_open_machine_is_claimed_and_nothing_is_bought",
    ),
    (
        "A pool grows by one when nothing can be claimed and nothing is on its way.",
        "simulation.test_linode_pools::test_waiting_never_buys_twice",
    ),
    (
        "After 15 s a create gives up with a retryable NodePoolProvisioning.",
        "simulation.test_linode_pools::test_waiting_never_buys_twice",
    ),
    ("So it does for 429 and 5xx.", "simulation.test_linode_pools::test_refusals_that_pass_are_told_as_provisioning"),
    # Hard errors.
    (
        "More than one pool for a key is a hard error, of that key only.",
        "simulation.test_linode_pools::test_two_pools_for_one_key_stop_that_key_only",
    ),
    (
        "Unless the second is our own lost answer.",
        "simulation.test_linode_pools::test_a_second_pool_of_a_lost_answer_is_removed",
    ),
    (
        "More than one machine with a claim's tag is a hard error.",
        "simulation.test_linode_pools::test_two_machines_for_one_claim_are_a_contradiction",
    ),
    (
        "A machine with several claims' tags is a hard error.",
        "simulation.test_linode_pools::test_a_machine_with_two_claims_is_a_contradiction",
    ),
    # Ends.
    (
        "A deletion takes one node, and the pool only with its last.",
        "simulation.test_linode_pools::test_a_node_is_deleted_and_the_pool_only_with_the_last",
    ),
    (
        "A pool list that fails says of no machine that it is gone.",
        "simulation.test_linode_pools::test_a_pool_list_that_fails_says_nothing_of_the_machine",
    ),
    (
        "Capacity that nobody claimed goes after five minutes.",
        "simulation.test_linode_pools::test_what_nobody_claims_stands_for_five_minutes_and_no_longer",
    ),
    (
        "So does a node that never gets its machine.",
        "simulation.test_linode_pools::test_a_node_that_never_gets_its_machine_goes_by_its_own_name",
    ),
]


@pytest.mark.parametrize(("promise", "shown"), SENTENCES)
def test_every_promise_of_lke_pools_has_its_test(promise: str, shown: str) -> None:
    """The test that is named exists."""
    module, _, name = shown.partition("::")
    found = getattr(importlib.import_module(f"tests.{module}"), name, None)
    assert found is not None, f"{promise} names {shown}, which is not there"
    assert found.__doc__
