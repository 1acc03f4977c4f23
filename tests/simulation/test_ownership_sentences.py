"""What is promised of ownership, sentence by sentence, and the test that shows each.

A claim stands for a decision to buy a machine; the kubelet makes the Node; both are matched by provider ID. The promises
below are those of that design: who creates what, who owns whom, what is in flight, what is synced, what it costs.
"""

import asyncio

import pytest

from growth.api.nodes import NODE
from growth.controllers.lifecycle import Lifecycle
from tests.manifests import need
from tests.mutations.mutation import Mutation
from tests.mutations.rows import Row
from tests.simulation import buying, owning
from tests.simulation.buying import Buyer, claims
from tests.simulation.clouds import ScriptedCloud

LIFECYCLE = "growth.controllers.lifecycle.controller"
DECIDE = "growth.controllers.lifecycle.decide"
EDITS = "growth.controllers.lifecycle.edits"
LAUNCH = "growth.controllers.lifecycle.launch"
REGISTRATION = "growth.controllers.lifecycle.registration"
MACHINES = "growth.cluster.machines"
COLLECTION = "growth.controllers.collection.controller"
ENDINGS = "growth.controllers.termination.endings"
PURCHASES = "growth.controllers.provisioning.purchases"
MATCHED = Mutation(
    LIFECYCLE,
    "Lifecycle._next",
    "self._env.state.nodes.store.find('provider', provider_id) if provider_id else ()",
    "list(self._env.state.nodes.store)",
)

SENTENCES: list[Row] = [
    # What the design is for.
    Row(
        "Growth creates no Node: there is none before the machine's kubelet has made it.",
        "simulation.test_ownership_sentences::test_growth_makes_no_node",
        Mutation(
            LAUNCH,
            "Launcher._tell",
            "self._memory.wrote(claim, launched)",
            "await self._env.api.create(__import__('growth.api.nodes').api.nodes.NODE, {'metadata': {'name': claim.metadata.name}, 'spec': {'providerID': machine.provider_id}})",
        ),
    ),
    Row(
        "Kubelets register Nodes, and a machine that cannot register because an old Node has its name is told of, not mixed up.",
        "simulation.test_lifecycle::test_a_node_that_was_there_before_its_claim_is_anothers",
        Mutation(DECIDE, "_registration", "SEVERAL_NODES if nodes else NOT_REGISTERED", "SEVERAL_NODES"),
    ),
    Row(
        "Capacity that was launched and has not registered yet is known as claims, and counts for the next pass.",
        "simulation.test_provisioning::test_pods_keep_their_place_on_machines_that_are_coming",
        Mutation(
            "growth.cluster.census",
            "Census._match",
            "machines(nodes, claims, self._types)",
            "machines(nodes, [each for each in claims if each.status.node_name], self._types)",
        ),
    ),
    Row(
        "A pass ends without waiting for machines or their names: the next begins while the first are still coming.",
        "simulation.test_ownership_sentences::test_a_pass_waits_for_no_machine_and_asks_the_cloud_for_none",
        Mutation(
            "growth.controllers.provisioning.provisioner",
            "Provisioner._pass",
            "not (collected or sifted.released or due)",
            "not (collected or sifted.released or due) or any(not each.status.provider_id for each in env.state.claims.store)",
        ),
    ),
    Row(
        "A pool owns its claims from their creation on: the reference is in the very write that creates them.",
        "simulation.test_provisioning::test_a_claim_is_whole_from_its_first_moment",
        Mutation("growth.controllers.provisioning.claims", "_claim", "order.pool.metadata.uid", "order.name"),
    ),
    Row(
        "A pool that is deleted while a pass runs leaves neither claim nor machine behind.",
        "simulation.test_launch_failures::test_no_machine_is_bought_for_a_pool_that_is_gone",
        Mutation(
            LAUNCH, "_stays", "pool.metadata.deletion_timestamp is None", "pool.metadata.deletion_timestamp is not None"
        ),
    ),
    Row(
        "What is in flight can be seen through the server's own API: as NodeClaims, with conditions.",
        "cluster.test_lifecycle_and_pools::test_claims_become_nodes_and_pools_tell_of_them",
        Mutation(EDITS, "tell_registered", "obstacle is None", "obstacle is not None"),
        killer="simulation.test_lifecycle::test_a_claim_becomes_a_node_that_takes_pods",
    ),
    # The claim.
    Row(
        "A pass creates claims and launches nothing itself.",
        "simulation.test_ownership_sentences::test_a_pass_waits_for_no_machine_and_asks_the_cloud_for_none",
        Mutation(
            PURCHASES,
            "Purchases._create",
            "await env.api.create(NODE_CLAIM, body(made))",
            "await env.api.create(NODE_CLAIM, body(made)) if await env.provider.create(made) else made",
        ),
    ),
    Row(
        "Another controller launches the claim from its requirements and writes what the cloud answered into its status.",
        "simulation.test_lifecycle::test_a_claim_becomes_a_node_that_takes_pods",
        Mutation(EDITS, "tell_launched", "machine.allocatable", "machine.capacity"),
    ),
    Row(
        "Claim and Node are matched by the Node's spec.providerID and the claim's status.providerID.",
        "simulation.test_lifecycle::test_a_node_that_was_there_before_its_claim_is_anothers",
        MATCHED,
    ),
    Row(
        "A crash between the launch and the status loses no machine: the launch is repeated and finds it.",
        "simulation.test_lifecycle_crashes::test_a_crash_after_any_write_loses_and_doubles_nothing",
        Mutation(
            DECIDE,
            "_launch",
            "left > 0 or (told is None and not tried)",
            "left > 0 and names.INSTANCE_TYPE_LABEL not in claim.metadata.labels",
        ),
    ),
    # Ends.
    Row(
        "The claim's finalizer orchestrates cordon, drain and the end of the machine.",
        "simulation.test_termination::test_deleting_a_claim_ends_its_node_and_its_machine",
        Mutation(
            ENDINGS,
            "Endings._to_drain",
            "registered or names.TERMINATION_FINALIZER in node.metadata.finalizers or _is_unguarded(node)",
            "not registered and _is_unguarded(node)",
        ),
    ),
    Row(
        "The Node keeps the finalizer karpenter.sh/termination: deleting the Node deletes the claim, and so drains first.",
        "simulation.test_termination::test_deleting_a_node_that_we_registered_ends_its_claim_and_its_machine",
        Mutation(EDITS, "take_node", "names.TERMINATION_FINALIZER", "'growth.dev/termination'"),
    ),
    Row(
        "Deleting a pool ends all its machines.",
        "simulation.test_termination::test_deleting_a_pool_ends_all_its_machines",
        Mutation(
            "growth.controllers.termination.controller",
            "Termination._on_claim",
            "claim.metadata.deletion_timestamp is not None",
            "claim.metadata.deletion_timestamp is not None and not claim.metadata.owner_references",
        ),
    ),
    Row(
        "A machine that does not register in time is given up, and its claim with it.",
        "simulation.test_liveness::test_a_machine_that_never_registers_is_given_up_after_a_quarter_of_an_hour",
        Mutation(LIFECYCLE, "Lifecycle.__init__", "env.settings.registration_ttl", "env.settings.launch_ttl"),
    ),
    Row(
        "A machine whose Node does not become ready in time is given up too.",
        "simulation.test_liveness::test_a_node_that_never_becomes_usable_is_given_up_after_a_quarter_of_an_hour",
        Mutation(LIFECYCLE, "Lifecycle.__init__", "env.settings.initialization_ttl", "env.settings.launch_ttl"),
    ),
    # Scheduling against what is in flight.
    Row(
        "Until the Node registers, labels are the claim's and room is its status.allocatable.",
        "unit.test_assembling::test_until_a_node_is_registered_the_claims_labels_and_taints_count",
        Mutation(MACHINES, "Machine.labels", "self.registered and self.node is not None", "self.node is not None"),
    ),
    Row(
        "Until the Node is initialised, what it does not report yet is the claim's.",
        "unit.test_assembling::test_what_a_node_does_not_report_yet_is_the_claims",
        Mutation(MACHINES, "_filled", "not known.get(name)", "name not in known"),
    ),
    Row(
        "Once it is initialised the Node itself is what counts.",
        "unit.test_assembling::test_what_a_node_does_not_report_yet_is_the_claims",
        Mutation(MACHINES, "Machine.allocatable", "self.initialized or self.claim is None", "self.claim is None"),
    ),
    # What the claim knows of the Node.
    Row(
        "Labels, annotations, taints and startup taints of the claim are put on the Node when it registers.",
        "simulation.test_lifecycle::test_the_node_gets_what_the_claim_says_and_keeps_the_rest",
        Mutation(EDITS, "take_node", "(*claim.spec.taints, *claim.spec.startup_taints)", "claim.spec.taints"),
    ),
    Row(
        "After that the Node is not touched any more: what people change there stays.",
        "simulation.test_lifecycle::test_what_was_synced_once_is_the_users_from_then_on",
        Mutation(REGISTRATION, "Registration.register", "not edits.is_taken(draft, claim)", "True"),
    ),
    Row(
        "Labels that the kubelet set, and that the claim does not name, stay.",
        "simulation.test_lifecycle::test_the_node_gets_what_the_claim_says_and_keeps_the_rest",
        Mutation("growth.api.edits", "_set_texts", "{**before, **wanted}", "wanted"),
    ),
    Row(
        "How machines start (user data) is the users' own: scheduling state does not depend on it.",
        "simulation.test_lifecycle::test_a_node_without_the_unregistered_taint_is_taken_and_told_of",
        Mutation(
            EDITS,
            "lacks_unregistered_taint",
            "not _has_taint(draft, names.UNREGISTERED_TAINT, NO_EXECUTE)",
            "_has_taint(draft, names.UNREGISTERED_TAINT, NO_EXECUTE)",
        ),
    ),
    # Leaks.
    Row(
        "A machine that no claim stands for is found and removed.",
        "simulation.test_collection::test_a_machine_without_a_claim_goes",
        Mutation("growth.planning.collecting", "unclaimed", "age < grace", "age >= grace"),
    ),
    Row(
        "A claim whose machine vanished is found and removed.",
        "simulation.test_collection::test_a_claim_goes_when_its_machine_was_not_found_twice",
        Mutation(
            COLLECTION, "Collection._gone", "not await self._has_ready_node(claim)", "await self._has_ready_node(claim)"
        ),
    ),
    # Costs.
    Row(
        "A claim becomes a node in few writes: at most five on the claim and two on the Node.",
        "simulation.test_lifecycle::test_four_writes_on_the_claim_and_two_on_the_node",
        Mutation(REGISTRATION, "Registration.register", "obstacle is not None", "obstacle is None"),
    ),
    Row(
        "A claim is small: at most 4 KB.",
        "simulation.test_lifecycle::test_a_claim_is_small",
        Mutation(
            "growth.controllers.provisioning.claims",
            "shortened",
            "size <= BODY_BYTES",
            "size <= 2 * BODY_BYTES",
            index=1,
        ),
        killer="unit.test_claim_bodies::test_a_claim_stays_small_by_listing_fewer_types",
    ),
    Row(
        "An idle cluster is not written to.",
        "simulation.test_provisioning::test_an_idle_cluster_is_left_alone",
        Mutation("growth.controllers.provisioning.telling", "FAILURE_SECONDS", "300.0", "30.0"),
    ),
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
    """While the claims of one burst have no machine yet, a second burst gets its own; the cloud was not asked for any."""
    cloud = ScriptedCloud()

    async def body(stage: buying.Stage) -> list[int]:
        await stage.begin()
        await stage.add_pool("default", need("node.kubernetes.io/instance-type", "In", "c-2x-amd64-linux"))
        Buyer(stage, stage.environment(cloud=cloud))
        seen = []
        for name in ("first", "second"):
            await stage.cluster.add_replica_set(name, 3)
            await asyncio.sleep(15)
            seen.append(len(await claims(stage)))
        return seen

    assert buying.staged(body).value == [3, 6]
    assert cloud.calls["create"] == 0
