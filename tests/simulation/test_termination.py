"""The end of machines: whatever is deleted, pods leave in order and nothing stays behind."""

import asyncio
import dataclasses
import datetime as dt
import functools
from typing import Any
from unittest import mock

import pytest

from growth.api import names
from growth.api.clouds import CloudMachine, CloudUnavailable, InvariantViolation, MachineNotFound
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.api.volumes import PERSISTENT_VOLUME_CLAIM, VOLUME_ATTACHMENT
from growth.controllers import tainting
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.termination import Termination
from growth.controllers.termination.metrics import (
    EVICTION_REQUESTS,
    NODECLAIMS_TERMINATED,
    NODES_DRAINED,
    NODES_TERMINATED,
    PODS_DRAINED,
)
from growth.kube.errors import Conflict
from growth.kube.passing import PassingApi
from growth.units import parse_time
from tests.simulation.ending import Refusing, add_budget, add_owned, add_pod, left, pods, start_kubelets
from tests.simulation.owning import Stage, on_stage, told

NOTHING = (0, 0, 0)


async def _attach(stage: Stage, volume: str) -> None:
    body = {
        "metadata": {"name": f"attach-{volume}"},
        "spec": {
            "attacher": "csi.example",
            "nodeName": "node-of-web-1",
            "source": {"persistentVolumeName": volume},
        },
    }
    await stage.admin.create(VOLUME_ATTACHMENT, body)


async def _add_claimed_volume(stage: Stage, name: str, *, volume: str) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": volume,
    }
    await stage.admin.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": name}, "spec": spec}, namespace="default")


def test_deleting_a_claim_ends_its_node_and_its_machine() -> None:
    """Pods are evicted, the machine goes, and Node and claim follow."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], list[str]]:
        pool = await stage.add_pool()
        await add_owned(stage, pool=pool)
        await add_pod(stage, "a")
        await add_pod(stage, "b")
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(60)
        metrics = stage.env.metrics
        assert metrics.value(EVICTION_REQUESTS, code="200") == 2
        assert metrics.value(PODS_DRAINED, reason="Forceful Termination") == 2
        assert metrics.value(NODES_DRAINED, nodepool="default") == 1
        assert metrics.value(NODES_TERMINATED, nodepool="default", zone="test-zone-a") == 1
        labels = {"nodepool": "default", "capacity_type": "on-demand", "zone": "test-zone-a"}
        assert metrics.value(NODECLAIMS_TERMINATED, **labels) == 1
        return await left(stage), await pods(stage)

    assert on_stage(body).value == (NOTHING, [])


def test_a_node_that_another_leader_opened_is_drained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods are there before the claim says so, and before the cache of whoever leads now knows of the Node."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        pool = await stage.add_pool()
        await add_owned(stage, pool=pool)
        await add_pod(stage, "a", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        registered = {"type": names.REGISTERED, "status": "Unknown", "reason": "NodeNotFound", "message": ""}
        conditions = [{**registered, "lastTransitionTime": "2030-01-07T08:00:00Z"}]
        status = {"nodeName": None, "conditions": conditions}
        await stage.admin.patch(NODE_CLAIM, "web-1", {"status": status}, subresource="status")
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        store, knows = type(stage.env.state.nodes.store), stage.env.clock.monotonic() + 5
        find = store.find

        def late(own: Any, by: str, key: str) -> Any:
            return () if by == "provider" and stage.env.clock.monotonic() < knows else find(own, by, key)

        monkeypatch.setattr(store, "find", late)
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(60)
        waits = await left(stage)
        await stage.admin.delete(POD, "a", namespace="default", grace_seconds=0)
        await asyncio.sleep(60)
        return waits, await left(stage)

    assert on_stage(body).value == ((1, 1, 1), NOTHING)


def test_deleting_a_node_ends_its_claim_and_its_machine() -> None:
    """`kubectl delete node` waits for our finalizer and leaves nothing behind."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await add_owned(stage)
        await add_pod(stage, "a")
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE, "node-of-web-1")
        await asyncio.sleep(60)
        return await left(stage)

    assert on_stage(body).value == NOTHING


def test_deleting_a_node_that_we_registered_ends_its_claim_and_its_machine() -> None:
    """The finalizer is the one that registration puts on the Node: its pods leave in order, then machine and claim go."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], list[str], tuple[int, int, int]]:
        await stage.start(Lifecycle(stage.env), Termination(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join("node-of-web-1")
        await asyncio.sleep(5)
        await add_pod(stage, "a", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        await stage.admin.delete(NODE, "node-of-web-1")
        await asyncio.sleep(60)
        waits = (await left(stage), await pods(stage))
        start_kubelets(stage)
        protected = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: None}}}
        await stage.admin.patch(POD, "a", protected, namespace="default")
        await asyncio.sleep(60)
        return *waits, await left(stage)

    assert on_stage(body).value == ((1, 1, 1), ["a"], NOTHING)


def test_a_refused_deletion_of_the_claim_is_asked_for_again() -> None:
    """A conflict is no answer: what was deleted goes, though nothing else happens to the Node ever after."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await add_owned(stage)
        api = Refusing(stage.env.api, 1, of=lambda write: write.verb == "delete" and write.kind is NODE_CLAIM)
        await stage.start(Termination(dataclasses.replace(stage.env, api=api)))
        await stage.admin.delete(NODE, "node-of-web-1")
        await asyncio.sleep(60)
        assert api.refused
        return await left(stage)

    assert on_stage(body).value == NOTHING


def test_deleting_a_pool_ends_all_its_machines() -> None:
    """Claims go with the pool that owns them."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        pool = await stage.add_pool()
        for number in range(5):
            await add_owned(stage, f"web-{number}", pool=pool)
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_POOL, "default")
        await asyncio.sleep(60)
        return await left(stage)

    assert on_stage(body).value == NOTHING


def test_an_empty_machine_ends_in_four_writes() -> None:
    """Deletion and mark of the Node, and the two finalizers; one status more where the cloud takes its time."""

    async def body(stage: Stage, slow: float) -> int:
        await add_owned(stage)
        real = stage.cloud.delete
        until = slow + 5.0

        async def delete(claim: NodeClaim) -> None:
            if stage.env.clock.monotonic() > until:
                await real(claim)

        if slow:
            stage.cloud.delete = delete  # type: ignore[method-assign]
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(120)
        assert await left(stage) == NOTHING
        return stage.writes()

    assert on_stage(functools.partial(body, slow=0.0)).value == 4
    assert on_stage(functools.partial(body, slow=60.0)).value == 5


def test_pods_leave_tier_by_tier() -> None:
    """Ordinary pods first, then DaemonSets' pods, then critical pods, then critical DaemonSets' pods."""

    async def body(stage: Stage) -> list[list[str]]:
        await add_owned(stage)
        critical = "system-node-critical"
        await add_pod(stage, "ordinary")
        await add_pod(stage, "daemon", owner="DaemonSet")
        await add_pod(stage, "critical", priorityClassName=critical)
        await add_pod(stage, "critical-daemon", owner="DaemonSet", priorityClassName=critical)
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        seen: list[list[str]] = []
        for _ in range(600):
            await asyncio.sleep(0.05)
            there = sorted(each.metadata.name for each in (await stage.admin.list(POD)).items)
            if not seen or seen[-1] != there:
                seen.append(there)
        return seen

    assert on_stage(body).value == [
        ["critical", "critical-daemon", "daemon", "ordinary"],
        ["critical", "critical-daemon", "daemon"],
        ["critical", "critical-daemon"],
        ["critical-daemon"],
        [],
    ]


def test_a_disruption_budget_holds_the_end_up_and_is_told() -> None:
    """While a budget forbids it nothing is evicted and the machine stays; once it allows, the end goes on."""

    async def body(stage: Stage) -> None:
        await add_owned(stage)
        await add_pod(stage, "a", labels={"app": "db"})
        start_kubelets(stage)
        await add_budget(stage, "db", app="db", minAvailable=1)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(300)
        assert await left(stage) == (1, 1, 1)
        assert await pods(stage) == ["a"]
        assert told(await stage.claim())[names.DRAINED] == "Unknown Draining"
        assert (await stage.node("node-of-web-1")).metadata.deletion_timestamp is not None
        messages = {each.message for each in await stage.events(names.FAILED_DRAINING)}
        assert "Failed to drain node, evicting pod violates a PDB, Pod=default/a" in messages
        assert "Failed to drain node, 1 pods are waiting to be evicted" in messages
        refused = stage.env.metrics.value(EVICTION_REQUESTS, code="429")
        assert 20 < refused < 60, "back-off grows to ten seconds"
        await stage.admin.delete(POD_DISRUPTION_BUDGET, "db", namespace="default")
        await asyncio.sleep(60)
        assert await left(stage) == NOTHING

    on_stage(body)


def test_two_budgets_on_one_pod_are_told_as_what_they_are() -> None:
    """The server evicts no pod with several budgets; the event says so."""

    async def body(stage: Stage) -> set[str]:
        await add_owned(stage)
        await add_pod(stage, "a", labels={"app": "db"})
        start_kubelets(stage)
        await add_budget(stage, "one", app="db", maxUnavailable=1)
        await add_budget(stage, "two", app="db", maxUnavailable=1)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(4)
        assert await left(stage) == (1, 1, 1)
        return {each.message for each in await stage.events(names.FAILED_DRAINING)}

    assert on_stage(body).value == {"Failed to drain node, eviction does not support multiple PDBs, Pod=default/a"}


def test_do_not_disrupt_is_waited_for() -> None:
    """A protected pod is never evicted, and the machine stays as long as it runs; a duration ends by itself."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        await add_owned(stage)
        await add_owned(stage, "web-2")
        await add_pod(stage, "a", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        await add_pod(stage, "b", node="node-of-web-2", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "10m"})
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await stage.admin.delete(NODE_CLAIM, "web-2")
        seen = []
        await asyncio.sleep(500)
        seen.append(await left(stage))
        (until,) = await stage.events(names.DO_NOT_DISRUPT_UNTIL)
        assert until.involved_object.name == "b"
        (message,) = {each.message for each in await stage.events(names.FAILED_DRAINING) if "default/a" in each.message}
        assert message.startswith("Failed to drain node, 1 pods are waiting to be evicted (the annotation")
        await asyncio.sleep(200)
        seen.append(await left(stage))
        await stage.admin.patch(
            POD, "a", {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: None}}}, namespace="default"
        )
        await asyncio.sleep(60)
        seen.append(await left(stage))
        return seen

    assert on_stage(body).value == [(2, 2, 2), (1, 1, 1), NOTHING]


def test_the_deadline_ends_pods_past_budgets_and_annotations() -> None:
    """With a termination grace period each pod is deleted when only its own grace is left, and the machine goes in time."""

    async def body(stage: Stage) -> list[tuple[int, str, int | None]]:
        await add_owned(stage, terminationGracePeriod="10m")
        await add_pod(
            stage, "slow", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"}, terminationGracePeriodSeconds=300
        )
        await add_pod(stage, "quick", labels={"app": "db"}, terminationGracePeriodSeconds=20)
        await add_pod(stage, "endless", labels={"app": "db"}, terminationGracePeriodSeconds=3600)
        await add_budget(stage, "db", app="db", maxUnavailable=0)
        await stage.start(Termination(stage.env))
        began = stage.env.clock.monotonic()
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(0.5)
        claim = await stage.claim()
        deleted = claim.metadata.deletion_timestamp
        assert deleted is not None
        deadline = claim.metadata.annotations[names.TERMINATION_TIMESTAMP_ANNOTATION]
        assert parse_time(deadline) == deleted + dt.timedelta(minutes=10)
        seen: dict[str, tuple[int, str, int | None]] = {}
        for _ in range(700):
            await asyncio.sleep(1)
            for pod in (await stage.admin.list(POD)).items:
                if pod.metadata.deletion_timestamp is not None and pod.metadata.name not in seen:
                    grace = pod.metadata.deletion_grace_period_seconds
                    at = round(stage.env.clock.monotonic() - began)
                    seen[pod.metadata.name] = (at, pod.metadata.name, grace)
        assert {each.reason for each in await stage.events(names.DISRUPTED)} == {names.DISRUPTED}
        expiring = await stage.events(names.TERMINATION_GRACE_PERIOD_EXPIRING)
        assert {each.involved_object.kind for each in expiring} == {"Node", "NodeClaim"}
        assert await left(stage) == NOTHING
        return sorted(seen.values())

    endless, slow, quick = on_stage(body).value
    assert endless[:2] == (1, "endless")
    assert endless[2] is not None
    assert 595 <= endless[2] <= 600, "clamped to what is left"
    assert (300 <= slow[0] <= 302, slow[1:]) == (True, ("slow", 299))
    assert (580 <= quick[0] <= 582, quick[1:]) == (True, ("quick", 19))


def test_a_deadline_that_had_not_come_after_all_forces_nobody() -> None:
    """A clock that was ten minutes ahead is put right between the look at a pod and its deletion: the pod stays."""
    clock: Any = None

    class PutRight(PassingApi):
        async def get(self, kind: Kind[Any], name: str, *, namespace: str = "") -> Any:
            found = await super().get(kind, name, namespace=namespace)
            if kind is POD and jumps:
                clock.jump(-jumps.pop())
            return found

    jumps: list[float] = []

    async def body(stage: Stage) -> list[str]:
        nonlocal clock
        clock = stage.env.clock
        await add_owned(stage, terminationGracePeriod="10m")
        await add_pod(
            stage, "held", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"}, terminationGracePeriodSeconds=20
        )
        await stage.start(Termination(dataclasses.replace(stage.env, api=PutRight(stage.env.api))))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(10)
        jumps.append(600.0)
        clock.jump(600.0)
        await asyncio.sleep(60)
        assert not jumps, "it was about to be deleted"
        return await pods(stage)

    assert on_stage(body).value == ["held"]


def test_pods_that_never_end_do_not_keep_the_machine_for_ever() -> None:
    """A pod a minute past its grace is not waited for: its kubelet will not end it any more."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        await add_owned(stage)
        await add_pod(stage, "stuck", terminationGracePeriodSeconds=30)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(80)
        seen = [await left(stage)]
        await asyncio.sleep(30)
        return [*seen, await left(stage)]

    assert on_stage(body).value == [(1, 1, 1), NOTHING]


def test_who_stays_on_the_node_is_not_waited_for() -> None:
    """Static pods, finished pods and pods that tolerate the taint are neither evicted nor waited for."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], float]:
        await add_owned(stage)
        await add_pod(stage, "static", owner="Node", annotations={names.MIRROR_POD_ANNOTATION: "x"})
        await add_pod(stage, "tolerant", tolerations=[{"operator": "Exists"}])
        await add_pod(stage, "job")
        await stage.admin.patch(
            POD, "job", {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status"
        )
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(30)
        return await left(stage), stage.env.metrics.value(EVICTION_REQUESTS, code="200")

    assert on_stage(body).value == (NOTHING, 0.0)


def test_the_node_is_marked_in_one_write() -> None:
    """The disrupted taint and the exclusion from load balancers come together; a foreign exclusion stays as it was."""

    async def body(stage: Stage) -> tuple[str, str]:
        await add_owned(stage)
        await add_owned(stage, "web-2")
        label = names.EXCLUDE_FROM_LOAD_BALANCERS_LABEL
        await stage.admin.patch(NODE, "node-of-web-2", {"metadata": {"labels": {label: "mine"}}})
        for number in (1, 2):
            await add_pod(stage, f"p{number}", node=f"node-of-web-{number}", terminationGracePeriodSeconds=600)
        await stage.start(Termination(stage.env))
        for number in (1, 2):
            await stage.admin.delete(NODE_CLAIM, f"web-{number}")
        await asyncio.sleep(10)
        nodes = [await stage.node(f"node-of-web-{number}") for number in (1, 2)]
        for node in nodes:
            assert [each.effect for each in node.spec.taints if each.key == names.DISRUPTED_TAINT] == ["NoSchedule"]
        return nodes[0].metadata.labels[label], nodes[1].metadata.labels[label]

    assert on_stage(body).value == ("karpenter", "mine")


def test_a_pod_that_comes_late_is_drained_too() -> None:
    """A scheduler that has not seen the taint may bind a pod; the machine does not go over its head."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        await add_owned(stage)
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(3)
        await add_pod(stage, "late", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        await asyncio.sleep(60)
        return [await left(stage)]

    assert on_stage(body).value == [(1, 1, 1)]


def test_volumes_are_detached_first() -> None:
    """The machine waits for the attachments of pods that left, not for those of pods that stay on the node."""

    async def body(stage: Stage) -> None:
        await add_owned(stage)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}
        await add_pod(stage, "tolerant", tolerations=[{"operator": "Exists"}], volumes=[volume])
        await _add_claimed_volume(stage, "kept", volume="pv-kept")
        for name in ("pv-kept", "pv-left"):
            await _attach(stage, name)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(60)
        assert await left(stage) == (1, 1, 1)
        shown = told(await stage.claim())
        assert shown[names.DRAINED] == "True"
        assert shown[names.VOLUMES_DETACHED] == "Unknown AwaitingVolumeDetachment"
        (event,) = await stage.events(names.AWAITING_VOLUME_DETACHMENT)
        assert event.message == "Waiting for volumes to be detached: attach-pv-left"
        await stage.admin.delete(VOLUME_ATTACHMENT, "attach-pv-left")
        await asyncio.sleep(15)
        assert await left(stage) == NOTHING

    on_stage(body)


def test_volumes_are_not_waited_for_past_the_deadline() -> None:
    """A volume that cannot be detached holds the machine up until the termination grace period ends."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        await add_owned(stage, terminationGracePeriod="2m")
        await _attach(stage, "pv-1")
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(110)
        seen = [await left(stage)]
        await asyncio.sleep(20)
        return [*seen, await left(stage)]

    assert on_stage(body).value == [(1, 1, 1), NOTHING]


def test_a_machine_that_is_gone_already_is_not_drained() -> None:
    """The Node is not ready and the cloud knows no such machine: its pods cannot leave, and nobody waits for them."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await add_owned(stage, ready=False)
        await add_pod(stage, "lost", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        stage.cloud.machines.clear()
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(2)
        return await left(stage)

    assert on_stage(body).value == NOTHING


def test_no_pod_comes_to_a_node_whose_machine_the_cloud_denies() -> None:
    """It may be wrong, and the deletion then finds the machine: by that time the Node must be closed, ready or not."""

    async def body(stage: Stage) -> list[bool]:
        await add_owned(stage, ready=False)
        closed: list[bool] = []
        real = stage.cloud.delete

        async def deny(_: str) -> CloudMachine:
            raise MachineNotFound("not in the list")

        async def delete(claim: NodeClaim) -> None:
            node = await stage.admin.get(NODE, "node-of-web-1")
            closed.append(any(each.key == names.DISRUPTED_TAINT for each in node.spec.taints))
            await real(claim)

        with mock.patch.object(stage.cloud, "get", deny), mock.patch.object(stage.cloud, "delete", delete):
            await stage.start(Termination(stage.env))
            await stage.admin.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(2)
        return closed[:1]

    assert on_stage(body).value == [True]


def test_a_ready_node_is_drained_whatever_the_cloud_says() -> None:
    """A kubelet that reports is a machine: its protected pod is waited for."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await add_owned(stage)
        await add_pod(stage, "alive", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        stage.cloud.machines.clear()
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(60)
        return await left(stage)

    assert on_stage(body).value == (1, 1, 0)


def test_an_unknown_launch_is_asked_for_before_the_claim_goes() -> None:
    """A claim whose launch was never written down takes its machine with it, found by the claim's name and UID."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        claim = await stage.add_claim()
        await stage.cloud.create(claim)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(30)
        return await left(stage)

    assert on_stage(body).value == NOTHING


def test_a_launch_under_way_is_waited_for() -> None:
    """While a machine is being made «not found» is no answer: the claim stays until it is."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        claim = await stage.add_claim()
        stage.env.launches.under_way.add(claim.metadata.uid)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(30)
        seen = [await left(stage)]
        await stage.cloud.create(claim)
        stage.env.launches.under_way.discard(claim.metadata.uid)
        await asyncio.sleep(30)
        return [*seen, await left(stage)]

    assert on_stage(body).value == [(1, 0, 0), NOTHING]


async def ending_without_machine(stage: Stage, *, comes: bool) -> list[tuple[int, int, int]]:
    """What is left 30 and 90 s after a claim without a machine was deleted. The machine may come after 20 s."""
    claim = await stage.add_claim()
    await stage.start(Termination(stage.env))
    stage.env.launches.unanswered(claim.metadata.uid, stage.env.clock.monotonic())
    await stage.admin.delete(NODE_CLAIM, "web-1")
    await asyncio.sleep(20)
    if comes:
        await stage.cloud.create(claim)
    await asyncio.sleep(10)
    seen = [await left(stage)]
    await asyncio.sleep(60)
    return [*seen, await left(stage)]


@pytest.mark.parametrize("comes", [True, False])
def test_a_purchase_without_an_answer_may_still_arrive(comes: bool) -> None:  # noqa: FBT001 - a parameter
    """The cloud may hear a request after its sender gave up: until then «not found» is no answer."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        return await ending_without_machine(stage, comes=comes)

    assert on_stage(body).value == [(1, 0, int(comes)), NOTHING]


def test_a_new_leader_waits_for_what_the_last_one_bought() -> None:
    """What the last leader has sent it may not know of, and no claim is let go that a machine may yet come for."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        async def taken() -> bool:
            return False

        stage.env.launches.lead(stage.env.clock.monotonic(), taken)
        claim = await stage.add_claim()
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(40)
        await stage.cloud.create(claim)
        seen = [await left(stage)]
        await asyncio.sleep(60)
        seen.append(await left(stage))
        await stage.add_claim()  # by now it knows all that is bought
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(5)
        return [*seen, await left(stage)]

    assert on_stage(body).value == [(1, 0, 1), NOTHING, NOTHING]


def test_who_leads_no_more_lets_no_claim_go_that_another_may_buy_for() -> None:
    """Our last renewal may be young and the lease another's: the server is asked before a claim without a machine goes."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        another = True

        async def taken() -> bool:
            return another

        stage.env.launches.lead(float("-inf"), taken)
        await stage.add_claim()
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(30)
        seen = [await left(stage)]
        another = False
        await asyncio.sleep(30)
        return [*seen, await left(stage)]

    assert on_stage(body).value == [(1, 0, 0), NOTHING]


def test_the_claim_stays_until_the_cloud_says_gone() -> None:
    """Accepted is not gone; no answer is not gone; a refusal is told and tried again."""

    async def body(stage: Stage) -> None:
        await add_owned(stage)
        answers: list[Exception | None] = [
            CloudUnavailable("timed out"),
            InvariantViolation("two machines of one claim"),
            None,
            None,
            None,
            None,
            MachineNotFound("gone"),
        ]
        asked = []

        async def delete(claim: NodeClaim) -> None:
            asked.append(stage.env.clock.monotonic())
            assert (await left(stage))[:2] == (1, 1), "both stay as long as there may be a machine"
            answer = answers.pop(0)
            if answer is not None:
                raise answer

        stage.cloud.delete = delete  # type: ignore[method-assign]
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(8)
        assert told(await stage.claim())[names.INSTANCE_TERMINATING] == "True"
        await asyncio.sleep(20)
        assert (await left(stage))[:2] == (0, 0)
        assert [round(later - asked[2], 3) for later in asked[3:]] == [1.0, 3.0, 7.0, 12.0]
        (event,) = await stage.events(names.FAILED_TERMINATION)
        assert event.message == "The machine cannot be deleted: two machines of one claim"

    on_stage(body)


def test_a_node_that_never_registered_goes_with_its_machine() -> None:
    """Its kubelet's Node has no finalizer of ours: it is deleted once the machine is gone, and not before."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        claim = await stage.add_claim()
        machine = await stage.cloud.create(claim)
        await stage.admin.patch(
            NODE_CLAIM, "web-1", {"status": {"providerID": machine.provider_id}}, subresource="status"
        )
        await stage.join("node-1", provider_id=machine.provider_id)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(30)
        return await left(stage)

    assert on_stage(body).value == NOTHING


def test_a_node_that_took_pods_before_it_registered_is_drained() -> None:
    """Where nothing keeps pods away until then. It is closed, so that whoever is about to register it comes too late."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        claim = await stage.add_claim()
        machine = await stage.cloud.create(claim)
        status = {"status": {"providerID": machine.provider_id}}
        await stage.admin.patch(NODE_CLAIM, "web-1", status, subresource="status")
        looked_at = await stage.join("node-1", provider_id=machine.provider_id, taints=())
        await add_pod(stage, "a", node="node-1", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(60)
        waits = await left(stage)
        assert tainting.marked(await stage.node("node-1"))
        finalizers = {"metadata": {"finalizers": [names.TERMINATION_FINALIZER]}}
        with pytest.raises(Conflict):
            await stage.admin.patch(NODE, "node-1", finalizers, revision=looked_at.metadata.resource_version)
        await stage.admin.delete(POD, "a", namespace="default", grace_seconds=0)
        await asyncio.sleep(60)
        return waits, await left(stage)

    assert on_stage(body).value == ((1, 1, 1), NOTHING)


def test_a_node_without_our_finalizer_is_drained_before_its_machine_goes() -> None:
    """Somebody took the finalizer away by hand: the pods are asked to leave all the same."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        await add_owned(stage, finalizers=())
        await add_pod(stage, "a", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "1m"})
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(50)
        seen = [await left(stage)]
        await asyncio.sleep(40)
        return [*seen, await left(stage)]

    assert on_stage(body).value == [(1, 1, 1), NOTHING]


def test_a_node_of_ours_without_a_claim_is_drained_and_let_go() -> None:
    """Its claim was removed by hand: the Node does not hang, and its pods leave in order."""

    async def body(stage: Stage) -> tuple[list[str], tuple[int, int, int]]:
        await add_owned(stage)
        await add_pod(stage, "a")
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(60)
        return await pods(stage), await left(stage)

    assert on_stage(body).value == ([], (0, 0, 1)), "the machine is left to collection"


@pytest.mark.parametrize("provider_id", ["scripted://other", ""])
def test_a_node_that_only_says_it_is_a_claim_s_is_let_go_alone(provider_id: str) -> None:
    """A copy of a Node names the claim as its owner and is another machine's, or nobody's: the claim stays."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], bool]:
        claim = await add_owned(stage)
        await join_owned(stage, "copy", claim, provider_id=provider_id)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE, "copy")
        await asyncio.sleep(60)
        return await left(stage), await stage.has_claim()

    assert on_stage(body).value == ((1, 1, 1), True)


def test_deleting_a_node_without_provider_id_ends_the_claim_that_has_taken_it() -> None:
    """The claim names the Node and the Node the claim: that is enough."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        claim = await add_owned(stage)
        await stage.admin.patch(NODE, "node-of-web-1", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE, "node-of-web-1")
        await join_owned(stage, "node-of-web-1", claim, provider_id="")
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE, "node-of-web-1")
        await asyncio.sleep(60)
        return await left(stage)

    assert on_stage(body).value == NOTHING


async def join_owned(stage: Stage, name: str, claim: NodeClaim, *, provider_id: str) -> None:
    """A Node with the claim's marks."""
    await stage.join(name, provider_id=provider_id, labels=claim.metadata.labels, taints=())
    owner = {"apiVersion": NODE_CLAIM.api_version, "kind": "NodeClaim", "name": "web-1", "uid": claim.metadata.uid}
    metadata = {"finalizers": [names.TERMINATION_FINALIZER], "ownerReferences": [owner]}
    await stage.admin.patch(NODE, name, {"metadata": metadata})


def test_what_belongs_to_others_is_never_touched() -> None:
    """Claims of another provider's classes and Nodes with the same finalizer stay as they are."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], int]:
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        await stage.add_claim("theirs", nodeClassRef=reference)
        await stage.join("foreign", provider_id="aws://1", taints=())
        await stage.admin.patch(NODE, "foreign", {"metadata": {"finalizers": [names.TERMINATION_FINALIZER]}})
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "theirs")
        await stage.admin.delete(NODE, "foreign")
        await asyncio.sleep(120)
        return await left(stage), stage.writes()

    assert on_stage(body).value == ((1, 1, 0), 0)


def test_one_machine_that_cannot_end_holds_up_no_other() -> None:
    """A cloud that refuses one deletion and a pod that nobody may evict harm only their own claims."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        for number in range(6):
            await add_owned(stage, f"web-{number}")
        await add_pod(stage, "held", node="node-of-web-0", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        real = stage.cloud.delete

        async def delete(claim: NodeClaim) -> None:
            if claim.metadata.name == "web-1":
                raise CloudUnavailable("no answer")
            await real(claim)

        stage.cloud.delete = delete  # type: ignore[method-assign]
        await stage.start(Termination(stage.env))
        for number in range(6):
            await stage.admin.delete(NODE_CLAIM, f"web-{number}")
        await asyncio.sleep(60)
        return await left(stage)

    assert on_stage(body).value == (2, 2, 2)


def test_a_wrong_deadline_is_told_and_ignored() -> None:
    """An annotation that is no time does not keep the machine for ever."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], list[str]]:
        await add_owned(stage)
        annotation = {names.TERMINATION_TIMESTAMP_ANNOTATION: "tomorrow"}
        await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"annotations": annotation}})
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(30)
        return await left(stage), [each.message for each in await stage.events(names.FAILED_TERMINATION)]

    gone, (message,) = on_stage(body).value
    assert gone == NOTHING
    assert message.startswith(
        f"Annotation {names.TERMINATION_TIMESTAMP_ANNOTATION} is ignored: 'tomorrow' is not a time"
    )
