"""What is promised of ownership, sentence by sentence, and the test that shows each.

A claim stands for a decision to buy a machine; the kubelet makes the Node; both are matched by provider ID. The promises
below are those of that design: who creates what, who owns whom, what is in flight, what is synced, what it costs.
"""

import asyncio

import pytest

from growth.api.nodes import NODE
from growth.controllers.lifecycle import Lifecycle
from tests.manifests import need
from tests.mutations.rows import Row
from tests.simulation import buying, owning
from tests.simulation.buying import Buyer, claims

SENTENCES: list[Row] = [
    # What the design is for.
    Row(
        "Growth creates no Node: there is none before the machine's kubelet has made it.",
        "simulation.test_ownership_sentences::test_growth_makes_no_node",
    ),
    Row(
        "Kubelets register Nodes, and a machine that cannot register because an old Node has its name is told of, not mixed up.",
        "simulation.test_lifecycle::test_nodes_are_matched_by_provider_id_only",
    ),
    Row(
        "Capacity that was launched and has not registered yet is known as claims, and counts for the next pass.",
        "simulation.test_provisioning::test_pods_keep_their_place_on_machines_that_are_coming",
    ),
    Row(
        "A pass ends without waiting for machines or their names: the next begins while the first are still coming.",
        "simulation.test_ownership_sentences::test_a_pass_waits_for_no_machine_and_asks_the_cloud_for_none",
    ),
    Row(
        "A pool owns its claims from their creation on: the reference is in the very write that creates them.",
        "simulation.test_provisioning::test_a_claim_is_whole_from_its_first_moment",
    ),
    Row(
        "A pool that is deleted while a pass runs leaves neither claim nor machine behind.",
        "simulation.test_launch_failures::test_no_machine_is_bought_for_a_pool_that_is_gone",
    ),
    Row(
        "What is in flight can be seen through the server's own API: as NodeClaims, with conditions.",
        "cluster.test_lifecycle_and_pools::test_claims_become_nodes_and_pools_tell_of_them",
    ),
    # The claim.
    Row(
        "A pass creates claims and launches nothing itself.",
        "simulation.test_ownership_sentences::test_a_pass_waits_for_no_machine_and_asks_the_cloud_for_none",
    ),
    Row(
        "Another controller launches the claim from its requirements and writes what the cloud answered into its status.",
        "simulation.test_lifecycle::test_a_claim_becomes_a_node_that_takes_pods",
    ),
    Row(
        "Claim and Node are matched by the Node's spec.providerID and the claim's status.providerID.",
        "simulation.test_lifecycle::test_nodes_are_matched_by_provider_id_only",
    ),
    Row(
        "A crash between the launch and the status loses no machine: the launch is repeated and finds it.",
        "simulation.test_lifecycle_crashes::test_a_crash_after_any_write_loses_and_doubles_nothing",
    ),
    # Ends.
    Row(
        "The claim's finalizer orchestrates cordon, drain and the end of the machine.",
        "simulation.test_termination::test_deleting_a_claim_ends_its_node_and_its_machine",
    ),
    Row(
        "The Node keeps the finalizer karpenter.sh/termination: deleting the Node deletes the claim, and so drains first.",
        "simulation.test_termination::test_deleting_a_node_ends_its_claim_and_its_machine",
    ),
    Row(
        "Deleting a pool ends all its machines.",
        "simulation.test_termination::test_deleting_a_pool_ends_all_its_machines",
    ),
    Row(
        "A machine that does not register in time is given up, and its claim with it.",
        "simulation.test_liveness::test_a_machine_that_never_registers_is_given_up_after_a_quarter_of_an_hour",
    ),
    Row(
        "A machine whose Node does not become ready in time is given up too.",
        "simulation.test_liveness::test_a_node_that_never_becomes_usable_is_given_up_after_a_quarter_of_an_hour",
    ),
    # Scheduling against what is in flight.
    Row(
        "Until the Node registers, labels are the claim's and room is its status.allocatable.",
        "unit.test_assembling::test_until_a_node_is_registered_the_claims_labels_and_taints_count",
    ),
    Row(
        "Until the Node is initialised, what it does not report yet is the claim's.",
        "unit.test_assembling::test_what_a_node_does_not_report_yet_is_the_claims",
    ),
    Row(
        "Once it is initialised the Node itself is what counts.",
        "unit.test_assembling::test_what_a_node_does_not_report_yet_is_the_claims",
    ),
    # What the claim knows of the Node.
    Row(
        "Labels, annotations, taints and startup taints of the claim are put on the Node when it registers.",
        "simulation.test_lifecycle::test_the_node_gets_what_the_claim_says_and_keeps_the_rest",
    ),
    Row(
        "After that the Node is not touched any more: what people change there stays.",
        "simulation.test_lifecycle::test_what_was_synced_once_is_the_users_from_then_on",
    ),
    Row(
        "Labels that the kubelet set, and that the claim does not name, stay.",
        "simulation.test_lifecycle::test_the_node_gets_what_the_claim_says_and_keeps_the_rest",
    ),
    Row(
        "How machines start (user data) is the users' own: scheduling state does not depend on it.",
        "simulation.test_lifecycle::test_a_node_without_the_unregistered_taint_is_taken_and_told_of",
    ),
    # Leaks.
    Row(
        "A machine that no claim stands for is found and removed.",
        "simulation.test_collection::test_a_machine_without_a_claim_goes",
    ),
    Row(
        "A claim whose machine vanished is found and removed.",
        "simulation.test_collection::test_a_claim_goes_when_its_machine_was_not_found_twice",
    ),
    # Costs.
    Row(
        "A claim becomes a node in few writes: at most five on the claim and two on the Node.",
        "simulation.test_lifecycle::test_four_writes_on_the_claim_and_two_on_the_node",
    ),
    Row("A claim is small: at most 4 KB.", "simulation.test_lifecycle::test_a_claim_is_small"),
    Row("An idle cluster is not written to.", "simulation.test_provisioning::test_an_idle_cluster_is_left_alone"),
]


@pytest.mark.parametrize("row", SENTENCES, ids=[each.promise for each in SENTENCES])
def test_every_promise_of_ownership_has_its_test(row: Row) -> None:
    """The test that is named exists, and says what it shows."""
    row.check_names()


def test_growth_makes_no_node() -> None:
    """A launched machine whose kubelet says nothing has no Node, however long one waits."""

    async def body(stage: owning.Stage) -> tuple[str, int]:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(600)
        claim = await stage.claim()
        return claim.status.provider_id, len((await stage.admin.list(NODE)).items)

    assert owning.on_stage(body).value == ("scripted://web-1", 0)


def test_a_pass_waits_for_no_machine_and_asks_the_cloud_for_none() -> None:
    """While the claims of one burst have no machine yet, a second burst gets its own; this cloud would refuse any call."""

    async def body(stage: buying.Stage) -> list[int]:
        await stage.begin()
        await stage.add_pool("default", need("node.kubernetes.io/instance-type", "In", "c-2x-amd64-linux"))
        Buyer(stage, stage.environment())
        seen = []
        for name in ("first", "second"):
            await stage.cluster.add_replica_set(name, 3)
            await asyncio.sleep(15)
            seen.append(len(await claims(stage)))
        return seen

    assert buying.staged(body).value == [3, 6]
