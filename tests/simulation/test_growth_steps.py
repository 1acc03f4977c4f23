"""The loop of growth pools step by step: one test for each step and sub-step; docs/growth-pools.md has the table."""

import asyncio
import pathlib
import re
from typing import Any

import pytest

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.decisions import DECISION
from growth.api.growthpools import NODE_REQUEST, NodeRemovalRequest, NodeRequest
from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.workloads import DEPLOYMENT
from growth.controllers.growth.solutions import Solution
from growth.controllers.provisioning.story import CONTROLLER
from growth.kube.errors import Forbidden
from growth.kube.memory.resources import Resource
from growth.kube.memory.store import Stored
from growth.sim.trials.owning.life import SETTINGS
from growth.sim.trials.owning.stage import GROWTH_NAMESPACE
from tests.manifests import growth_pool, pod, pod_spec
from tests.simulation.growing import Growing, growing

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "growth-pools.md"
STEPS = (
    *("demand 1", "demand 2.1", "demand 2.2", "demand 2.3", "demand 2.4", "demand 3", "demand 4", "demand 5"),
    *("demand 6.1", "demand 6.2", "demand 6.3", "demand 6.4"),
    *("requests 1.1", "requests 1.2", "requests 1.3", "requests 2.1", "requests 2.2", "requests 3", "requests 4"),
    *("removal 1", "removal 2", "removal 3", "removal 4.1", "removal 4.2", "removal 4.3", "removal 4.4"),
)
NO_DEMANDS = "no pod waits for a machine; NoDemands"
SMALL = growth_pool("default", {"name": "cax11", "max": 5}, scaleDownAfter="5s")


async def add_pod(cluster: Growing, name: str, **spec: Any) -> None:
    await cluster.admin.create(POD, pod(name, **{"cpu": "1", **spec}), namespace="default")


async def in_phase(cluster: Growing, phase: str) -> NodeRequest:
    """The one request, as soon as it is so far."""

    async def so_far() -> bool:
        return [each.status.phase for each in await cluster.requests()] == [phase]

    await cluster.until(so_far)
    (request,) = await cluster.requests()
    return request


async def removal_in_phase(cluster: Growing, phase: str, *, seconds: float = 300.0) -> NodeRemovalRequest:
    async def so_far() -> bool:
        return [each.status.phase for each in await cluster.removals()] == [phase]

    await cluster.until(so_far, seconds=seconds)
    (removal,) = await cluster.removals()
    return removal


async def summaries(cluster: Growing) -> list[str]:
    """What provisioning has decided."""
    found = sorted((each.spec for each in (await cluster.admin.list(DECISION)).items), key=lambda each: each.at)
    return [each.summary for each in found if each.controller == CONTROLLER]


def story(request: NodeRequest | NodeRemovalRequest) -> list[str]:
    return [each.name for each in request.status.events]


async def empty_machine(cluster: Growing, **faults: str) -> None:
    """One machine whose only pod has just gone."""
    await cluster.pool(SMALL)
    await cluster.deploy("web", 1)
    await cluster.running(1)
    if faults:
        await cluster.faults(**faults)
    await cluster.admin.delete(DEPLOYMENT, "web", namespace="default")


def test_every_step_has_a_test_of_its_own() -> None:
    """The table names each step, and for each a test that exists; none of this page's stands for two steps."""
    rows = re.findall(
        r"^\| ((?:demand|requests|removal) [\d.]+) \|.*?`(test_growth_\w+\.py)::(test_\w+)`",
        PAGE.read_text(),
        re.MULTILINE,
    )
    assert tuple(step for step, _, _ in rows) == STEPS
    assert len({name for _, _, name in rows}) == len(rows)
    for _, file, name in re.findall(r"(`)(test_growth_\w+\.py)::(test_\w+)`", PAGE.read_text()):
        assert f"def {name}(" in (HERE / file).read_text(), name


# New demand.


def test_pods_that_no_node_takes_are_demands() -> None:
    """Those that wait for something else are none, and neither are those that have a place."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await add_pod(cluster, "gated", schedulingGates=[{"name": "example.com/later"}])
        await asyncio.sleep(60)
        assert await cluster.requests() == []
        await add_pod(cluster, "free")
        await in_phase(cluster, "Ready")
        await add_pod(cluster, "beside", cpu="100m")
        await add_pod(
            cluster, "giant", cpu="64"
        )  # the scheduler marks it, and pods that come later count as not seen yet
        await add_pod(cluster, "gated-later", schedulingGates=[{"name": "example.com/later"}])
        await asyncio.sleep(60)
        assert len(await cluster.requests()) == 1
        assert {each for each in await summaries(cluster) if "cannot" in each} == {
            "1 pods cannot be placed; IncompletePlacement"
        }

    growing(body)


def test_a_pod_gets_the_pool_that_it_asks_for() -> None:
    """By the label of the pool, although there is a default."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.pool(growth_pool("other", {"name": "cax21", "max": 1}))
        await add_pod(cluster, "asks", nodeSelector={names.POOL_LABEL: "other"})
        request = await in_phase(cluster, "Ready")
        assert (request.spec.pool, request.spec.target_offering) == ("other", "hetzner-cax21")

    growing(body)


def test_a_pod_that_asks_for_none_gets_the_default_pool() -> None:
    """Although another would be cheaper."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("other", {"name": "cax11", "max": 1}))
        await cluster.pool(growth_pool("default", {"name": "cax31", "max": 1}))
        await add_pod(cluster, "asks-none")
        request = await in_phase(cluster, "Ready")
        assert (request.spec.pool, request.spec.target_offering) == ("default", "hetzner-cax31")

    growing(body)


async def lone(cluster: Growing, reason: str, **spec: Any) -> None:
    """A pod for which nothing is bought, and that is told why, once."""
    await add_pod(cluster, "lone", **spec)
    await asyncio.sleep(30)
    assert len(await cluster.told(reason)) == 1
    assert await cluster.requests() == []


def test_a_pod_that_asks_for_none_where_there_is_no_default_is_told_so() -> None:
    """Another pool does not count."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("other", {"name": "cax11", "max": 1}))
        await lone(cluster, names.NO_NODE_POOL)

    growing(body)


def test_a_pod_that_asks_for_a_missing_pool_is_told_so() -> None:
    """The default pool does not take it."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await lone(cluster, names.NODE_POOL_NOT_FOUND, nodeSelector={names.POOL_LABEL: "web"})

    growing(body)


def refuse_claims(cluster: Growing) -> None:
    """A webhook refuses NodeClaims, so that requests stay without one."""
    server = cluster.stage.cluster.server
    create = server.create

    def admit(resource: Resource, body: Any, **how: Any) -> Stored:
        if resource.plural == NODE_CLAIM.plural:
            raise Forbidden("a webhook refuses it")
        return create(resource, body, **how)

    server.create = admit  # type: ignore[method-assign]


@pytest.mark.parametrize("has_claim", [True, False])
def test_a_request_on_its_way_is_room(*, has_claim: bool) -> None:
    """Pods that come while machines are under way and fit there are no reason for another, with or without a claim."""

    async def body(cluster: Growing) -> None:
        if not has_claim:
            refuse_claims(cluster)
        await cluster.pool(growth_pool("default", {"name": "cax31", "max": 5}))
        await cluster.faults(neverRegister="*")
        await cluster.deploy("first", 1)
        await asyncio.sleep(20)
        assert [each.status.phase for each in await cluster.requests()] == ["Provisioning" if has_claim else "Pending"]
        assert len(await cluster.claims()) == has_claim
        await cluster.deploy("second", 3)
        await asyncio.sleep(60)
        assert len(await cluster.requests()) == 1

    growing(body)


def test_a_type_that_was_not_to_be_had_is_planned_around() -> None:
    """A type is not asked for again while its request is `Unmet`, though the cloud has it by now and has forgotten its refusal."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, {"name": "cax31", "max": 2}))
        await cluster.faults(noCapacity="cax11/*/*")
        (container,) = pod_spec(cpu="1")["containers"]
        alone = {**container, "ports": [{"containerPort": 80, "hostPort": 8080}]}
        await add_pod(cluster, "first", containers=[alone])
        await cluster.running(1)
        await cluster.no_faults()
        await asyncio.sleep(SETTINGS.refused_ttl + 60)
        await add_pod(cluster, "second", containers=[alone])
        await cluster.running(2)
        assert await cluster.types() == ["cax31", "cax31"]
        asked = [each.spec.target_offering for each in await cluster.requests()]
        assert sorted(asked) == ["hetzner-cax11", "hetzner-cax31", "hetzner-cax31"]

    growing(body, unmet_ttl=1000.0)


def test_demands_are_planned_on_what_comes_and_on_what_is_offered() -> None:
    """Of two pods one fits beside those for whom a machine is on its way; only the other gets a new one."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax21", "max": 5}))
        await cluster.faults(neverRegister="*")
        await add_pod(cluster, "first", cpu="2")
        await asyncio.sleep(20)
        assert len(await cluster.requests()) == 1
        await add_pod(cluster, "beside", cpu="1500m")
        await add_pod(cluster, "apart", cpu="3")
        await asyncio.sleep(60)
        assert len(await cluster.requests()) == 2

    growing(body)


def test_all_placed_is_a_request_for_each_machine() -> None:
    """Three pods that need a machine each: three requests, and nobody complains."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.deploy("web", 3, cpu="1500m")
        await cluster.running(3)
        assert len(await cluster.requests()) == 3
        assert await cluster.told(names.FAILED_SCHEDULING) == []
        assert any(str(Solution.ALL_PLACED) in each for each in await summaries(cluster))

    growing(body)


def test_no_demands_is_nothing_to_do() -> None:
    """A pool without load asks for nothing, and says so once, as it does when its last pod has a node."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await asyncio.sleep(300)
        assert await cluster.requests() == []
        assert await summaries(cluster) == [NO_DEMANDS]
        await add_pod(cluster, "web")
        await in_phase(cluster, "Ready")
        await asyncio.sleep(300)
        said = await summaries(cluster)
        assert len(said) == 3
        assert str(Solution.ALL_PLACED) in said[1]
        assert said[2] == NO_DEMANDS

    growing(body)


def test_pods_that_are_left_out_for_now_are_demands_all_the_same() -> None:
    """While a pod is in back-off nobody says that no pod waits."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await add_pod(cluster, "giant", cpu="64")
        await asyncio.sleep(1800)
        said = await summaries(cluster)
        assert any(str(Solution.INCOMPLETE_PLACEMENT) in each for each in said)
        assert NO_DEMANDS not in said[1:]

    growing(body)


def test_an_incomplete_placement_is_requests_where_possible_and_events() -> None:
    """The pod that fits gets its machine; of the other is told what is missing where."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await add_pod(cluster, "small")
        await add_pod(cluster, "giant", cpu="64")
        await in_phase(cluster, "Ready")
        (said,) = set(await cluster.told(names.FAILED_SCHEDULING))
        assert "growth.dev/default" in said
        assert "cpu" in said
        assert any(str(Solution.INCOMPLETE_PLACEMENT) in each for each in await summaries(cluster))

    growing(body)


# Requests.


def test_a_request_without_its_pool_ends_with_an_event() -> None:
    """After a minute, in which the pool may still come; no machine is bought for it."""

    def request(name: str, pool: str) -> Json:
        spec = {"targetOffering": "hetzner-cax11", "pool": pool}
        return {"metadata": {"name": name}, "spec": spec}

    async def body(cluster: Growing) -> None:
        await cluster.admin.create(NODE_REQUEST, request("lonely", "nowhere"))
        await cluster.admin.create(NODE_REQUEST, request("early", "default"))
        await asyncio.sleep(40)
        assert {each.metadata.name for each in await cluster.requests()} == {"lonely", "early"}
        await cluster.pool(growth_pool("default", {"name": "cax11", "min": 1, "max": 5}))
        await asyncio.sleep(80)
        assert {each.metadata.name for each in await cluster.requests()} == {"early"}
        (said,) = set(await cluster.told(names.NODE_NOT_COMING))
        assert "growth NodePool nowhere does not exist" in said
        await in_phase(cluster, "Ready")

    growing(body)


def test_a_pending_request_asks_for_its_machine() -> None:
    """Its one claim is of exactly the type; while the cloud does not answer it stays `Pending`, and says why."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await asyncio.sleep(30)
        await cluster.faults(unavailable="true")
        await add_pod(cluster, "web")
        await asyncio.sleep(60)
        request = await in_phase(cluster, "Pending")
        assert story(request)[:2] == ["nodeRequested", "nodeRequestFailed"]
        (claim,) = await cluster.claims()
        assert request.status.node_claim_name == claim.metadata.name
        assert [each.values for each in claim.spec.requirements if each.key == names.INSTANCE_TYPE_LABEL] == [
            ("cax11",)
        ]
        await cluster.no_faults()
        await in_phase(cluster, "Ready")

    growing(body)


def test_an_accepted_request_is_provisioning_and_knows_its_machine() -> None:
    """The node's ID is the claim's."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(neverRegister="*")
        await add_pod(cluster, "web")
        request = await in_phase(cluster, "Provisioning")
        (claim,) = await cluster.claims()
        assert request.status.node_id == claim.status.provider_id != ""
        assert story(request) == ["nodeRequested", "nodeProvisioned"]

    growing(body)


def test_a_request_without_capacity_is_unmet_until_its_time() -> None:
    """The claim is gone; after the time the type is asked for again."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(noCapacity="cax11/*/*")
        await add_pod(cluster, "web")
        request = await in_phase(cluster, "Unmet")
        await asyncio.sleep(30)
        assert story(request) == ["nodeRequested", "nodeRequestFailed"]
        assert request.status.unmet_until is not None
        assert (request.status.unmet_until - request.status.events[-1].at).total_seconds() == 1000
        assert await cluster.claims() == []
        await cluster.no_faults()
        await asyncio.sleep(900)  # the catalogue has long forgotten the refusal
        later = await in_phase(cluster, "Ready")
        assert later.metadata.uid != request.metadata.uid
        assert later.metadata.creation_timestamp is not None
        assert later.metadata.creation_timestamp >= request.status.unmet_until

    growing(body, unmet_ttl=1000.0)


def test_a_node_that_is_ready_makes_its_request_ready() -> None:
    """In order: asked for, accepted, labelled, and ready once the node is."""

    async def body(cluster: Growing) -> None:
        taints = [{"key": "example.com/later", "effect": "NoSchedule"}]
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, template={"startupTaints": taints}))
        await add_pod(cluster, "web")
        await asyncio.sleep(60)
        request = await in_phase(cluster, "Provisioning")
        assert story(request) == ["nodeRequested", "nodeProvisioned", "nodeLabelled"]
        (node,) = await cluster.nodes()
        await cluster.admin.patch(NODE, node.metadata.name, {"spec": {"taints": []}})
        request = await in_phase(cluster, "Ready")
        assert story(request) == ["nodeRequested", "nodeProvisioned", "nodeLabelled", "nodeReady"]

    growing(body)


def test_a_node_that_is_not_ready_in_time_is_deprovisioned() -> None:
    """Not before `readinessWait`; the story says what was missing."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(neverReady="*", stuckDelete="*")
        await add_pod(cluster, "web")
        request = await in_phase(cluster, "Provisioning")
        await asyncio.sleep(100)
        assert [each.status.phase for each in await cluster.requests()] == ["Provisioning"]
        last = request
        for _ in range(6000):  # the phase passes quickly
            found = [each for each in await cluster.requests() if each.metadata.uid == request.metadata.uid]
            if not found:
                break
            (last,) = found
            await asyncio.sleep(0.005)
        assert last.status.phase == "Deprovisioning"
        assert last.status.events[-1].name == "nodeNotReady"
        assert "not ready 120 s after its launch" in last.status.events[-1].reason

    growing(body, readiness_wait=120.0)


def test_requests_are_deleted_after_their_times() -> None:
    """`Ready` after readyTTL, `Unmet` after unmetTTL; the machine of the former stays."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, {"name": "cax31", "min": 1, "max": 1}))
        await cluster.faults(noCapacity="cax11/*/*")
        await asyncio.sleep(30)
        await cluster.deploy("web", 1, nodeSelector={names.INSTANCE_TYPE_LABEL: "cax11"})

        async def phases(*wanted: str) -> bool:
            return sorted(each.status.phase for each in await cluster.requests()) == sorted(wanted)

        await cluster.until(lambda: phases("Ready", "Unmet"))
        await cluster.admin.delete(DEPLOYMENT, "web", namespace="default")
        await asyncio.sleep(100)
        assert await phases("Ready", "Unmet")
        await cluster.until(lambda: phases("Ready"), seconds=150)
        await cluster.until(phases, seconds=300)
        assert await cluster.types() == ["cax31"]

    growing(body, unmet_ttl=200.0, ready_ttl=400.0)


def test_a_request_that_is_deprovisioned_hands_over_to_a_removal() -> None:
    """A NodeRemovalRequest of its machine takes its place, with the reason `NotReady`."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(neverReady="*", stuckDelete="*")
        await add_pod(cluster, "web")
        request = await in_phase(cluster, "Provisioning")

        async def handed_over() -> bool:
            gone = all(each.metadata.uid != request.metadata.uid for each in await cluster.requests())
            return gone and bool(await cluster.removals())

        await cluster.until(handed_over)
        (removal,) = await cluster.removals()
        assert removal.spec.reason == "NotReady"
        assert removal.spec.node_claim_name == request.status.node_claim_name

    growing(body, readiness_wait=120.0)


# Removal and scale-down.


def test_an_empty_node_is_marked_and_a_busy_one_is_not() -> None:
    """The taint keeps the scheduler away, the annotation says until when; DaemonSet pods do not count as load."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, scaleDownAfter="10m"))
        await cluster.deploy("stays", 1, cpu="1500m")
        await cluster.deploy("goes", 1, cpu="1600m")
        await cluster.running(2)
        await cluster.admin.delete(DEPLOYMENT, "goes", namespace="default")
        await cluster.running(1)
        await asyncio.sleep(60)
        nodes = await cluster.nodes()
        marked = [each for each in nodes if names.SCALE_DOWN_AT_ANNOTATION in each.metadata.annotations]
        assert (len(nodes), len(marked)) == (2, 1)
        assert [(each.key, each.effect) for each in marked[0].spec.taints] == [(names.SCALE_DOWN_TAINT, "NoSchedule")]
        assert await cluster.removals() == []

    growing(body)


def test_at_its_time_a_node_is_looked_at_again() -> None:
    """Empty: a NodeRemovalRequest. With a pod that tolerates the taint: the taint goes, and the node stays."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, scaleDownAfter="60s"))
        await cluster.deploy("web", 2, cpu="1500m")
        await cluster.running(2)
        await cluster.admin.delete(DEPLOYMENT, "web", namespace="default")

        async def marked() -> bool:
            return all(names.SCALE_DOWN_AT_ANNOTATION in each.metadata.annotations for each in await cluster.nodes())

        await cluster.until(marked)
        await add_pod(cluster, "tolerant", tolerations=[{"key": names.SCALE_DOWN_TAINT, "operator": "Exists"}])
        await asyncio.sleep(20)
        assert await cluster.removals() == []
        assert len(await cluster.claims()) == 2

        async def one_is_left() -> bool:
            return len(await cluster.claims()) == 1 and not await cluster.removals()

        await cluster.until(one_is_left)
        (node,), (tolerant,) = await cluster.nodes(), await cluster.pods()
        assert tolerant.spec.node_name == node.metadata.name
        assert node.spec.taints == ()

    growing(body)


def test_a_pending_removal_asks_the_cloud() -> None:
    """It is `Deprovisioning` then, and the claim stays for as long as the machine does."""

    async def body(cluster: Growing) -> None:
        await empty_machine(cluster, stuckDelete="*")
        removal = await removal_in_phase(cluster, "Deprovisioning")
        assert story(removal)[0] == "Deletion requested"
        await asyncio.sleep(30)
        (removal,) = await cluster.removals()
        assert (removal.status.phase, story(removal)) == ("Deprovisioning", ["Deletion requested", "Deletion accepted"])
        assert len(await cluster.claims()) == 1

    growing(body)


def test_a_machine_that_is_gone_ends_its_removal() -> None:
    """Claim, Node and request go within seconds of the machine, and the claim not before it."""

    async def body(cluster: Growing) -> None:
        await empty_machine(cluster)
        await removal_in_phase(cluster, "Deprovisioning")
        for _ in range(600):
            claims = [each for each in await cluster.claims() if each.metadata.deletion_timestamp is None]
            machines = await cluster.admin.list(CONFIG_MAP, namespace=GROWTH_NAMESPACE, labels=names.KWOK_MACHINE_LABEL)
            if not machines.items:
                break
            assert claims
            await asyncio.sleep(0.1)
        await asyncio.sleep(10)
        assert not await cluster.claims()
        assert not await cluster.removals()
        assert not await cluster.nodes()

    growing(body)


def test_every_attempt_is_counted_with_its_time() -> None:
    """A refusal is `CouldNotRemove`; the next attempt is the second, later."""

    async def body(cluster: Growing) -> None:
        await empty_machine(cluster, refuseDelete="*")
        first = await removal_in_phase(cluster, "CouldNotRemove")
        assert first.status.removal_attempt == 1
        assert story(first) == ["Deletion requested", "Deletion failed"]

        async def again() -> bool:
            return [each.status.removal_attempt for each in await cluster.removals()] == [2]

        await cluster.until(again)
        (second,) = await cluster.removals()
        assert first.status.remove_attempted_at is not None
        assert second.status.remove_attempted_at is not None
        later = second.status.remove_attempted_at - first.status.remove_attempted_at
        assert later.total_seconds() >= 120

    growing(body)


def test_a_machine_that_does_not_go_is_asked_for_again() -> None:
    """Accepted and never done: asked again after removalRetryAfter, and given up after so many times."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}, scaleDownAfter="5s"))
        await cluster.deploy("web", 1)
        await cluster.running(1)
        await cluster.faults(stuckDelete="*")
        await cluster.admin.delete(DEPLOYMENT, "web", namespace="default")

        async def asked(times: int) -> bool:
            return [each.status.removal_attempt for each in await cluster.removals()] == [times]

        await cluster.until(lambda: asked(1))
        await asyncio.sleep(60)
        assert await asked(1)
        await cluster.until(lambda: asked(2), seconds=90)

        async def failed() -> bool:
            return [each.status.phase for each in await cluster.removals()] == ["RemovalFailed"]

        await cluster.until(failed, seconds=600)
        assert await asked(5)

    growing(body)


def test_after_so_many_attempts_a_removal_has_failed() -> None:
    """Terminal: events on request and Node, the taint stays, and nobody asks again."""

    async def body(cluster: Growing) -> None:
        await empty_machine(cluster, refuseDelete="*")
        failed = await removal_in_phase(cluster, "RemovalFailed", seconds=1200)
        assert failed.status.removal_attempt == 5
        assert len(await cluster.told(names.REMOVAL_FAILED)) == 2
        await cluster.no_faults()
        await asyncio.sleep(3600)
        (later,) = await cluster.removals()
        assert later.status == failed.status
        (node,) = await cluster.nodes()
        assert [each.key for each in node.spec.taints] == [names.SCALE_DOWN_TAINT]

    growing(body)
