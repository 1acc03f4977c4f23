"""Claims on their way to nodes: launch, registration, initialisation."""

import asyncio
import functools
import itertools

import msgspec
import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM
from growth.api.nodes import NODE
from growth.controllers.lifecycle import Lifecycle
from tests.simulation.clouds import TYPE
from tests.simulation.owning import BlindApi, LateApi, Stage, condition, on_stage, told


def test_a_claim_becomes_a_node_that_takes_pods() -> None:
    """Launched, registered, initialised: the conditions say each stage, and Ready says that all are done."""

    async def body(stage: Stage) -> list[dict[str, str]]:
        await stage.start(Lifecycle(stage.env))
        seen = []
        await stage.add_claim()
        await asyncio.sleep(1)
        seen.append(told(await stage.claim()))
        await stage.join(ready=False)
        await asyncio.sleep(8)
        seen.append(told(await stage.claim()))
        await stage.set_ready()
        await asyncio.sleep(1)
        seen.append(told(await stage.claim()))
        claim = await stage.claim()
        assert (claim.status.provider_id, claim.status.node_name) == ("scripted://web-1", "node-1")
        assert claim.status.image_id == "image-1"
        assert claim.status.capacity["cpu"] == "4"
        assert claim.status.allocatable["cpu"] == "3900m"
        return seen

    launched, registered, initialized = on_stage(body).value
    assert launched == {
        "Launched": "True",
        "Registered": "Unknown NodeNotFound",
        "Initialized": "Unknown NodeNotFound",
        "Ready": "Unknown ReconcilingDependents",
    }
    assert registered == {
        "Launched": "True",
        "Registered": "True",
        "Initialized": "Unknown NodeNotReady",
        "Ready": "Unknown ReconcilingDependents",
    }
    assert initialized == {"Launched": "True", "Registered": "True", "Initialized": "True", "Ready": "True"}


def test_four_writes_on_the_claim_and_two_on_the_node() -> None:
    """From its creation to initialised a claim is written four times more and its Node twice; fewer when stages meet."""

    async def body(stage: Stage) -> list[list[int]]:
        await stage.start(Lifecycle(stage.env))
        counts = []
        for name, ready_after in (("slow", 20), ("quick", 4), ("soon", 1), ("at-once", 0)):
            seen = [stage.writes()]
            await stage.add_claim(name)
            await asyncio.sleep(1)
            seen.append(stage.writes())
            await stage.join(f"node-{name}", provider_id=f"scripted://{name}", ready=not ready_after)
            if ready_after:
                await asyncio.sleep(ready_after)
            seen.append(stage.writes())
            await stage.set_ready(f"node-{name}")
            await asyncio.sleep(3600)
            seen.append(stage.writes())
            assert told(await stage.claim(name))["Ready"] == "True"
            counts.append([after - before for before, after in itertools.pairwise(seen)])
        return counts

    assert on_stage(body).value == [[2, 2, 2], [2, 1, 2], [2, 0, 2], [2, 0, 2]]


def test_a_finalizer_that_was_taken_off_is_put_back() -> None:
    """As long as there is a machine its claim cannot vanish: the finalizer comes back, before and after initialisation."""

    async def body(stage: Stage) -> list[list[str]]:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        seen = []
        for then in (stage.join, stage.claim):
            await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"finalizers": None}})
            await asyncio.sleep(1)
            seen.append([*(await stage.claim()).metadata.finalizers])
            await then()
            await asyncio.sleep(60)
        assert told(await stage.claim())["Ready"] == "True"
        return seen

    assert on_stage(body).value == [[names.TERMINATION_FINALIZER]] * 2


def test_a_node_is_not_left_waiting_for_its_labels() -> None:
    """What makes a node ready may wait for the labels that we put on it: they are there two seconds after the Node."""

    async def body(stage: Stage) -> list[bool]:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim(labels={"team": "web"})
        await asyncio.sleep(1)
        await stage.join(ready=False)
        seen = []
        for seconds in (1.5, 1):
            await asyncio.sleep(seconds)
            seen.append((await stage.node()).metadata.labels.get("team") == "web")
        return seen

    assert on_stage(body).value == [False, True]


def test_registered_tells_when_the_node_was_taken() -> None:
    """Told together with what follows, the condition still says the time of the registration itself."""

    async def body(stage: Stage) -> float:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join(ready=False)
        await asyncio.sleep(3)
        assert (await stage.node()).metadata.labels[names.REGISTERED_LABEL] == "true"
        await stage.set_ready()
        await asyncio.sleep(10)
        claim = await stage.claim()
        registered = condition(claim, names.REGISTERED).last_transition_time
        initialized = condition(claim, names.INITIALIZED).last_transition_time
        assert registered is not None
        assert initialized is not None
        return (initialized - registered).total_seconds()

    assert on_stage(body).value == 1


def test_the_node_gets_what_the_claim_says_and_keeps_the_rest() -> None:
    """At registration labels, annotations, taints, finalizer and owner are set; what the kubelet set stays."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        claim = await stage.add_claim(
            labels={"team": "the-user", "example.com/x": "1"},
            annotations={"example.com/note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            taints=[{"key": "dedicated", "value": "web", "effect": "NoSchedule"}],
            startupTaints=[{"key": "example.com/cni", "effect": "NoExecute"}],
        )
        await asyncio.sleep(1)
        own = {"key": "kubelet", "effect": "NoSchedule"}
        await stage.join(
            labels={"team": "the-kubelet"}, taints=[own, {"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"}]
        )
        await asyncio.sleep(1)
        node = await stage.node()
        assert (
            node.metadata.labels.items()
            >= {
                "kubelet": "own",
                "team": "the-user",
                "example.com/x": "1",
                names.REGISTERED_LABEL: "true",
                names.INSTANCE_TYPE_LABEL: TYPE,
                names.ZONE_LABEL: "test-zone-a",
                names.CAPACITY_TYPE_LABEL: "on-demand",
                "karpenter.kwok.sh/kwoknodeclass": "default",
            }.items()
        )
        assert names.INITIALIZED_LABEL not in node.metadata.labels
        assert node.metadata.annotations == {"example.com/note": "n"}
        assert node.metadata.finalizers == (names.TERMINATION_FINALIZER,)
        (owner,) = node.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid) == ("NodeClaim", "web-1", claim.metadata.uid)
        assert [(taint.key, taint.value, taint.effect) for taint in node.spec.taints] == [
            ("kubelet", "", "NoSchedule"),
            ("dedicated", "web", "NoSchedule"),
            ("example.com/cni", "", "NoExecute"),
        ]

    on_stage(body)


def test_what_was_synced_once_is_the_users_from_then_on() -> None:
    """After registration a taint, label or annotation that somebody removes from the Node does not come back, however soon.

    Our own mark does, and nothing else with it.
    """

    async def body(stage: Stage, *, removed_after: float) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim(
            labels={"team": "web"},
            taints=[{"key": "dedicated", "effect": "NoSchedule"}],
            startupTaints=[{"key": "example.com/cni", "effect": "NoExecute"}],
            annotations={"note": "n"},
        )
        await asyncio.sleep(1)
        await stage.join(ready=False)
        await asyncio.sleep(removed_after)
        assert len((await stage.node()).spec.taints) >= 2
        await stage.set_taints("node-1", [])
        await stage.admin.patch(NODE, "node-1", {"metadata": {"labels": {"team": None}, "annotations": {"note": None}}})
        await stage.set_ready()
        await asyncio.sleep(1000)
        node = await stage.node()
        assert node.metadata.labels[names.INITIALIZED_LABEL] == "true"
        assert node.spec.taints == ()
        assert "team" not in node.metadata.labels
        assert node.metadata.annotations == {}
        await stage.admin.patch(NODE, "node-1", {"metadata": {"labels": {names.REGISTERED_LABEL: None}}})
        await asyncio.sleep(60)
        node = await stage.node()
        assert node.metadata.labels[names.REGISTERED_LABEL] == "true"
        assert (node.spec.taints, node.metadata.annotations) == ((), {})
        assert "team" not in node.metadata.labels

    for seconds in (3, 30):
        on_stage(functools.partial(body, removed_after=seconds))


def test_a_node_may_keep_its_taints_for_itself() -> None:
    """With the label do-not-sync-taints the claim's taints stay away; the unregistered one is removed all the same."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        for name, value in (("web-1", "true"), ("web-2", "false")):
            await stage.add_claim(name, taints=[{"key": "dedicated", "effect": "NoSchedule"}])
            await asyncio.sleep(1)
            labels = {names.DO_NOT_SYNC_TAINTS_LABEL: value}
            await stage.join(f"node-{name}", provider_id=f"scripted://{name}", labels=labels)
        await asyncio.sleep(1)
        assert (await stage.node("node-web-1")).spec.taints == ()
        assert [taint.key for taint in (await stage.node("node-web-2")).spec.taints] == ["dedicated"]

    on_stage(body)


def test_a_node_without_the_unregistered_taint_is_taken_and_told_of() -> None:
    """Pods may have come too early: an event on the claim says so, once; the node registers all the same."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join(taints=())
        await asyncio.sleep(1)
        assert told(await stage.claim())["Registered"] == "True"
        (event,) = await stage.events(names.UNREGISTERED_TAINT_MISSING)
        assert (event.involved_object.kind, event.involved_object.name, event.count) == ("NodeClaim", "web-1", 1)

    on_stage(body)


def test_nobody_is_told_of_a_taint_that_a_cloud_cannot_give() -> None:
    """Where Nodes come as the cloud makes them, one without the unregistered taint is as it should be: no event."""

    async def body(stage: Stage) -> None:
        stage.cloud.guards_nodes = False
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim(taints=[{"key": "dedicated", "effect": "NoSchedule"}])
        await asyncio.sleep(1)
        await stage.join(taints=())
        await asyncio.sleep(1)
        assert told(await stage.claim())["Registered"] == "True"
        assert [taint.key for taint in (await stage.node()).spec.taints] == ["dedicated"]
        assert not await stage.events(names.UNREGISTERED_TAINT_MISSING)

    on_stage(body)


def test_nodes_are_matched_by_provider_id_only() -> None:
    """A Node with the claim's name or nodepool label, but another provider ID or none, is not the claim's."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join("web-1", provider_id="")
        await stage.join("other", provider_id="scripted://other")
        before = stage.writes()
        await asyncio.sleep(60)
        assert condition(await stage.claim(), names.REGISTERED).reason == names.NODE_NOT_FOUND
        assert stage.writes() == before
        assert (await stage.node("web-1")).metadata.finalizers == ()

    on_stage(body)


@pytest.mark.parametrize("provider_id", ["", "scripted://other"])
def test_a_node_that_was_there_before_its_claim_is_anothers(provider_id: str) -> None:
    """An old Node has the name of the claim or of its machine: it is not taken, and the claim says that it has no Node yet."""

    async def body(stage: Stage) -> tuple[str, tuple[str, ...]]:
        await stage.join("web-1", provider_id=provider_id)
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(60)
        registered = condition(await stage.claim(), names.REGISTERED)
        return registered.reason, (await stage.node("web-1")).metadata.finalizers

    assert on_stage(body).value == (names.NODE_NOT_FOUND, ())


def test_two_nodes_of_one_machine_are_an_invariant_violated() -> None:
    """Registered is False with MultipleNodesFound while two Nodes have the provider ID, and no longer."""

    async def body(stage: Stage) -> list[str]:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        stage.cloud.delays["web-1"] = 5
        await asyncio.sleep(1)
        await stage.join("node-1")
        await stage.join("node-2")
        await asyncio.sleep(20)
        seen = [told(await stage.claim())["Registered"], told(await stage.claim())["Ready"]]
        await stage.admin.delete(NODE, "node-2")
        await asyncio.sleep(1)
        return [*seen, told(await stage.claim())["Registered"], (await stage.claim()).status.node_name]

    assert on_stage(body).value == ["False MultipleNodesFound", "False UnhealthyDependents", "True", "node-1"]


def test_a_node_is_usable_when_nothing_stands_in_the_way_any_more() -> None:
    """NodeNotReady, StartupTaintsExist, KnownEphemeralTaintsExist, ResourceNotRegistered, then initialised."""

    async def body(stage: Stage) -> list[tuple[str, str]]:
        await stage.start(Lifecycle(stage.env))
        startup = {"key": "example.com/cni", "value": "x", "effect": "NoExecute"}
        ephemeral = {"key": names.CLOUD_UNINITIALIZED_TAINT, "effect": "NoSchedule"}
        await stage.add_claim(
            startupTaints=[startup],
            resources={"requests": {"cpu": "1", "example.com/gpu": "1", "example.com/none": "0"}},
        )
        await asyncio.sleep(1)
        await stage.join(ready=False, taints=[{"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"}, ephemeral])
        seen = []

        async def look() -> None:
            await asyncio.sleep(40)
            now = condition(await stage.claim(), names.INITIALIZED)
            seen.append((now.reason, now.message))

        await look()
        await stage.set_ready()
        await look()
        await stage.set_taints("node-1", [ephemeral])
        await look()
        await stage.set_taints("node-1", [])
        await look()
        status = {"status": {"allocatable": {"example.com/gpu": "1"}}}
        await stage.admin.patch(NODE, "node-1", status, subresource="status")
        await look()
        return seen

    assert on_stage(body).value == [
        ("NodeNotReady", "the Node's condition Ready is not True"),
        ("StartupTaintsExist", "waiting for startup taint example.com/cni=x:NoExecute to be removed"),
        (
            "KnownEphemeralTaintsExist",
            "waiting for taint node.cloudprovider.kubernetes.io/uninitialized:NoSchedule to go",
        ),
        ("ResourceNotRegistered", "the Node reports no example.com/gpu, which its pods ask for"),
        ("Initialized", ""),
    ]


def test_a_node_that_its_kubelet_made_anew_is_taken_again() -> None:
    """A Node deleted behind our back and registered again by its kubelet gets its labels and taints once more."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim(taints=[{"key": "dedicated", "effect": "NoSchedule"}])
        await asyncio.sleep(1)
        await stage.join()
        await asyncio.sleep(1)
        await stage.admin.patch(NODE, "node-1", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE, "node-1")
        await asyncio.sleep(1)
        await stage.join(ready=False)
        await asyncio.sleep(1)
        await stage.set_ready()
        await asyncio.sleep(1)
        node = await stage.node()
        assert node.metadata.labels.items() >= {names.REGISTERED_LABEL: "true", names.INITIALIZED_LABEL: "true"}.items()
        assert [taint.key for taint in node.spec.taints] == ["dedicated"]
        assert told(await stage.claim())["Ready"] == "True"

    on_stage(body)


def test_claims_of_other_providers_are_not_touched() -> None:
    """A claim whose node class is of a kind that our provider does not serve is somebody else's."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim(nodeClassRef={"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"})
        await asyncio.sleep(3600)
        assert stage.writes() == 0
        assert stage.cloud.calls["create"] == 0
        assert await stage.has_claim()

    on_stage(body)


def test_a_claim_is_small() -> None:
    """At most 4 KB without managedFields, with sixty types listed and every condition written."""

    async def body(stage: Stage) -> int:
        await stage.start(Lifecycle(stage.env))
        pool = await stage.add_pool()
        types = [kind.name for kind in stage.cloud.sold.types if kind.name != TYPE][:59]
        await stage.add_claim(
            pool=pool, requirements=[{"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [TYPE, *types]}]
        )
        await asyncio.sleep(1)
        await stage.join()
        await asyncio.sleep(1)
        raw = await stage.admin.get(NODE_CLAIM.raw, "web-1")
        raw["metadata"].pop("managedFields", None)
        return len(msgspec.json.encode(raw))

    assert on_stage(body).value <= 4096


def test_a_paused_node_is_told_of_in_its_claim() -> None:
    """The condition Paused comes and goes with the Node's annotation, with one write each."""

    async def body(stage: Stage) -> list[str]:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join()
        await asyncio.sleep(1)
        before = stage.writes()
        seen = []
        for value in ("true", "false", "yes", None):
            await stage.admin.patch(NODE, "node-1", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: value}}})
            await asyncio.sleep(60)
            seen.append(told(await stage.claim()).get("Paused", "-"))
        assert stage.writes() == before + 4
        return seen

    assert on_stage(body).value == ["True", "-", "True", "-"]


def test_obstacles_that_pass_quickly_cost_no_write() -> None:
    """A node that is unready, tainted and lacking a resource one after the other is written of as if it had been none."""

    async def body(stage: Stage) -> int:
        await stage.start(Lifecycle(stage.env))
        cni = {"key": "example.com/cni", "effect": "NoExecute"}
        await stage.add_claim(startupTaints=[cni], resources={"requests": {"example.com/gpu": "1"}})
        await asyncio.sleep(1)
        await stage.join(ready=False)
        await asyncio.sleep(5)
        await stage.set_ready()
        await asyncio.sleep(5)
        await stage.set_taints("node-1", [])
        await asyncio.sleep(5)
        status = {"status": {"allocatable": {"example.com/gpu": "1"}}}
        await stage.admin.patch(NODE, "node-1", status, subresource="status")
        await asyncio.sleep(60)
        assert told(await stage.claim())["Ready"] == "True"
        return stage.writes()

    assert on_stage(body).value == 6


def test_a_passing_obstacle_costs_no_write_on_a_slow_node_either() -> None:
    """A minute after registration the node turns Ready, keeps the not-ready taint for a moment, and is usable."""

    async def body(stage: Stage) -> int:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join(ready=False)
        await asyncio.sleep(60)
        ready = {"type": "Ready", "status": "True", "reason": "Kubelet", "message": ""}
        await stage.admin.patch(NODE, "node-1", {"status": {"conditions": [ready]}}, subresource="status")
        await asyncio.sleep(3)
        await stage.set_taints("node-1", [])
        await asyncio.sleep(60)
        assert told(await stage.claim())["Ready"] == "True"
        return stage.writes()

    assert on_stage(body).value == 6


def test_a_node_that_was_replaced_under_its_name_is_not_taken() -> None:
    """The cache still shows the claim's Node when another machine's has its name: that one is left alone."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await asyncio.sleep(1)
        await stage.add_claim()
        await asyncio.sleep(30)
        await stage.join()
        await stage.admin.delete(NODE, "node-1")
        await stage.join(provider_id="scripted://other")
        await asyncio.sleep(60)
        node = await stage.node()
        assert names.REGISTERED_LABEL not in node.metadata.labels
        assert node.metadata.finalizers == ()
        assert told(await stage.claim())["Registered"] == "Unknown NodeNotFound"

    on_stage(body, api=LateApi)


def test_where_nobody_else_writes_little_is_read() -> None:
    """One look at the claim before its machine is bought, one at the Node before it is taken; no more."""

    async def body(stage: Stage) -> int:
        api = stage.env.api
        assert isinstance(api, BlindApi)
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join(ready=False)
        await asyncio.sleep(10)
        await stage.set_ready()
        await asyncio.sleep(100)
        assert told(await stage.claim())["Ready"] == "True"
        return api.gets

    assert on_stage(body, api=BlindApi).value == 2
