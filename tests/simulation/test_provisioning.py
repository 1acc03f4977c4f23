"""From pending pods to claims, on the simulated cluster: what is bought, what is not, and what is said about it."""

import asyncio
import dataclasses
import datetime as dt
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from growth.api import names
from growth.api.buffers import CAPACITY_BUFFER
from growth.api.core import CONFIG_MAP, NAMESPACE
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.overlays import NODE_OVERLAY
from growth.api.pods import POD
from growth.api.workloads import REPLICA_SET
from growth.controllers.overlays import Overlays
from growth.controllers.provisioning import metrics
from growth.controllers.provisioning.passes import Answer
from growth.kube.memory import MemoryApi
from growth.sim.network import Faults, NetworkApi
from growth.sim.ports import EPOCH, SimCompute, SimRandom
from growth.telemetry.metrics import Metrics
from tests.manifests import KWOK_CLASS, need, pod
from tests.simulation.buying import Buyer, Stage, claims, decided, join, staged, told, with_settings

TYPE = names.INSTANCE_TYPE_LABEL
SMALL = need(TYPE, "In", "c-2x-amd64-linux")
# The first pods are marked at 0.05 s, their batch ends a second later, and the plan takes 0.05 s of virtual time.
PLANNING = 1.08


def bought(body: Callable[[Stage], Coroutine[Any, Any, Any]], **more: Any) -> Any:
    return staged(body, **more).value


def small_pods(number: int) -> list[Json]:
    return [pod(f"p-{at:03}", cpu="1", memory="64Mi") for at in range(number)]


# --- what is bought


def test_a_burst_of_pods_gets_the_machines_that_hold_it() -> None:
    """Once, whatever time passes; the claims count as capacity from the moment that they are written."""

    async def body(stage: Stage) -> list[int]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 7)
        seen = []
        for _ in range(4):
            await asyncio.sleep(60)
            seen.append(len(await claims(stage)))
        return seen

    assert bought(body) == [7, 7, 7, 7]


def test_a_claim_is_whole_from_its_first_moment() -> None:
    """Owner with UID, finalizer, hash, labels, ceiling of price, and small: all in the one write that creates it."""

    async def body(stage: Stage) -> tuple[Json, str, int]:
        await stage.begin()
        await stage.add_pool(
            "default",
            need("team", "In", "a"),
            labels={"tier": "web"},
            template={"taints": [{"key": "own", "effect": "NoSchedule"}], "terminationGracePeriod": "5m"},
        )
        Buyer(stage, stage.environment())
        tolerant = pod("p", tolerations=[{"operator": "Exists"}])
        await stage.admin.create(POD, tolerant, namespace="default")
        await asyncio.sleep(30)
        (raw,) = (await stage.admin.list(NODE_CLAIM.raw)).items
        raw["metadata"].pop("managedFields", None)
        pool = await stage.admin.get(NODE_POOL, "default")
        return raw, pool.metadata.uid, stage.cluster.server.statistics().writes["growth"]

    raw, uid, _ = bought(body)
    meta, spec = raw["metadata"], raw["spec"]
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "name": "default",
            "uid": uid,
            "blockOwnerDeletion": True,
        }
    ]
    assert meta["finalizers"] == ["karpenter.sh/termination"]
    assert meta["generation"] == 1
    assert meta["labels"] == {
        "karpenter.sh/nodepool": "default",
        "karpenter.kwok.sh/kwoknodeclass": "default",
        "team": "a",
        "tier": "web",
    }
    assert meta["annotations"]["karpenter.sh/nodepool-hash-version"] == "growth-v1"
    assert float(meta["annotations"]["growth.dev/max-price"]) > 0
    assert meta["name"].startswith("default-")
    assert len(meta["name"]) == len("default-") + 5
    assert spec["taints"] == [{"key": "own", "effect": "NoSchedule"}]
    assert spec["terminationGracePeriod"] == "5m"
    assert spec["expireAfter"] == "720h"
    assert {each["key"] for each in spec["requirements"]} >= {TYPE, "team", "tier", "karpenter.sh/nodepool"}
    assert len(next(each for each in spec["requirements"] if each["key"] == TYPE)["values"]) <= 60
    assert len(msgspec.json.encode(raw)) <= 2600, "with room for the status below 4096 bytes"


def test_pods_keep_their_place_on_machines_that_are_coming() -> None:
    """More pods later buy for themselves only, and what is free on machines in flight is used."""

    async def body(stage: Stage) -> list[int]:
        await stage.begin()
        await stage.add_pool("default", need(TYPE, "In", "c-4x-amd64-linux"))
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("first", 4)  # 3.9 cores a machine: 3 and 1
        await asyncio.sleep(20)
        seen = [len(await claims(stage))]
        await stage.cluster.add_replica_set("second", 2)
        await asyncio.sleep(20)
        seen.append(len(await claims(stage)))
        await stage.cluster.add_replica_set("third", 1)
        await asyncio.sleep(20)
        seen.append(len(await claims(stage)))
        return seen

    assert bought(body) == [2, 2, 3]


def test_a_claim_that_goes_is_bought_again() -> None:
    """The cloud had none: the claim is deleted, and its pods are planned for at once."""

    async def body(stage: Stage) -> tuple[set[str], set[str]]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(20)
        before = {each.metadata.name for each in await claims(stage)}
        for name in before:
            await stage.admin.patch(NODE_CLAIM, name, {"metadata": {"finalizers": None}})
            await stage.admin.delete(NODE_CLAIM, name)
        await asyncio.sleep(5)
        return before, {each.metadata.name for each in await claims(stage)}

    before, after = bought(body)
    assert len(before) == len(after) == 1
    assert before != after


def test_room_that_others_took_is_bought_anew() -> None:
    """kube-scheduler binds whom it likes: pods whose place is gone are planned for as soon as that is seen."""

    async def body(stage: Stage) -> tuple[int, int]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(20)
        (first,) = await claims(stage)
        thief = {**pod("thief", cpu="1"), "spec": {**pod("thief", cpu="1")["spec"], "nodeName": first.metadata.name}}
        await stage.admin.create(POD, thief, namespace="default")
        await join(stage, first)
        await asyncio.sleep(10)
        return len(await claims(stage)), sum(bool(each.spec.node_name) for each in await stage.cluster.pods())

    assert bought(body) == (2, 1)


def test_pods_of_a_machine_that_goes_are_demand() -> None:
    """The replacement is bought while they still run there."""

    async def body(stage: Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(20)
        (first,) = await claims(stage)
        await join(stage, first)
        await asyncio.sleep(30)
        assert all(each.spec.node_name for each in await stage.cluster.pods())
        await stage.admin.delete(NODE_CLAIM, first.metadata.name)  # its finalizer keeps it
        await asyncio.sleep(60)
        return len(await claims(stage))

    assert bought(body) == 2


@pytest.mark.parametrize(("when", "machines"), [("ScheduleAnyway", 0), ("DoNotSchedule", 1)])
def test_pods_of_a_machine_that_goes_buy_nothing_for_a_wish(when: str, machines: int) -> None:
    """While a drain is held up, its pod has room beside its like: a machine in a better zone would come when it is bound."""
    spread = {
        "maxSkew": 1,
        "topologyKey": names.ZONE_LABEL,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }

    async def body(stage: Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        for name, zone in (("stays", "test-zone-a"), ("goes", "test-zone-b")):
            await stage.cluster.add_node(name, zone=zone)
            web = pod(name, metadata={"labels": {"app": "web"}}, nodeName=name, topologySpreadConstraints=[spread])
            await stage.admin.create(POD, web, namespace="default")
        await stage.admin.patch(NODE, "goes", {"metadata": {"finalizers": ["example.com/drained"]}})
        await asyncio.sleep(30)
        Buyer(stage, stage.environment())
        await asyncio.sleep(30)
        await stage.admin.delete(NODE, "goes")
        await asyncio.sleep(60)
        return len(await claims(stage))

    assert bought(body) == machines


def test_gated_and_foreign_pods_buy_nothing() -> None:
    """A gate, a nomination of the scheduler, a DaemonSet's pod: a machine would not help."""

    async def body(stage: Stage) -> tuple[int, float]:
        await stage.begin()
        await stage.add_pool()
        buyer = Buyer(stage, stage.environment())
        await stage.admin.create(POD, pod("gated", schedulingGates=[{"name": "wait"}]), namespace="default")
        await asyncio.sleep(60)
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(20)
        return len(await claims(stage)), buyer.env.metrics.value(metrics.IGNORED_PODS)

    assert bought(body) == (1, 1.0)


def test_a_pool_of_another_cloud_is_not_bought_from() -> None:
    """Its pods are told why; the pool beside it goes on."""

    async def body(stage: Stage) -> tuple[int, list[str]]:
        await stage.begin()
        foreign = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}
        await stage.add_pool("foreign", need("team", "In", "a"), template=foreign)
        await stage.add_pool("own", need("team", "In", "b"))
        Buyer(stage, stage.environment())
        await stage.admin.create(POD, pod("a", nodeSelector={"team": "a"}), namespace="default")
        await stage.admin.create(POD, pod("b", nodeSelector={"team": "b"}), namespace="default")
        await asyncio.sleep(30)
        made = await claims(stage)
        assert [each.metadata.labels[names.NODE_POOL_LABEL] for each in made] == ["own"]
        return len(made), await told(stage, "FailedScheduling")

    number, messages = bought(body)
    assert number == 1
    assert len(messages) == 1
    assert "EC2NodeClass of karpenter.k8s.aws, which this cloud does not serve" in messages[0]


# --- limits


def test_limits_hold_for_a_burst() -> None:
    """Ten machines and no more, however many pods wait; the others are told which limit it is."""

    async def body(stage: Stage) -> tuple[int, list[str]]:
        await stage.begin()
        await stage.add_pool("default", SMALL, limits={"nodes": "10"})
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 50)
        await asyncio.sleep(300)
        return len(await claims(stage)), await told(stage, "FailedScheduling")

    number, messages = bought(body)
    assert number == 10
    assert messages
    assert all("nodes" in message for message in messages)


@pytest.mark.parametrize("seed", range(6))
def test_limits_hold_under_two_leaders(seed: int) -> None:
    """Both see the same pods on lagging watches and buy at once; the pool's books let one of them in at a time."""

    async def body(stage: Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL, limits={"nodes": "10", "cpu": "30"})
        server = MemoryApi(stage.cluster.server, user="growth")
        for name in ("one", "two"):
            random = SimRandom(stage.kernel.seed, f"wire {name}")
            lagging = Faults(watch_delay=(0.0, 3.0), conflict=0.05, lost_answer=0.05, broken_answer=0.05)
            wire = NetworkApi(server, kernel=stage.kernel, random=random, faults=lagging, name=name)
            Buyer(stage, stage.environment(api=wire, name=name))
        most = 0
        await stage.cluster.add_replica_set("web", 60)
        for _ in range(120):
            await asyncio.sleep(1)
            most = max(most, len(await claims(stage)))
        return most

    assert bought(body, seed=seed) == 10


def test_a_resource_limit_counts_the_largest_type_that_may_be_bought() -> None:
    """Whatever the cloud picks of a claim's types, the pool stays below its limit."""

    async def body(stage: Stage) -> int:
        await stage.begin()
        types = need(TYPE, "In", "c-2x-amd64-linux", "c-4x-amd64-linux", "c-8x-amd64-linux")
        await stage.add_pool("default", types, limits={"cpu": "20"})
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 40)
        await asyncio.sleep(60)
        sizes = {"c-2x-amd64-linux": 2, "c-4x-amd64-linux": 4, "c-8x-amd64-linux": 8}
        return sum(
            max(sizes[name] for each in made.spec.requirements if each.key == TYPE for name in each.values)
            for made in await claims(stage)
        )

    assert 12 < bought(body) <= 20


@pytest.mark.parametrize("by_hand", [1, 4])
@pytest.mark.parametrize("asks", [{"requests": {"cpu": "1", "memory": "1Gi"}}, {}])
def test_claims_made_by_hand_count_against_the_limits(by_hand: int, asks: Json) -> None:
    """They are nobody's to refuse, and leave so much less for us; beyond the limit nothing is bought."""

    async def body(stage: Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL, limits={"nodes": "3"})
        for number in range(by_hand):
            spec: Json = {"nodeClassRef": KWOK_CLASS, "requirements": [SMALL], "resources": asks}
            metadata = {"name": f"mine-{number}", "labels": {names.NODE_POOL_LABEL: "default"}}
            await stage.admin.create(NODE_CLAIM, {"metadata": metadata, "spec": spec})
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 20)
        await asyncio.sleep(60)
        return len(await claims(stage))

    assert bought(body) == max(3, by_hand)


@pytest.mark.parametrize("minutes", [-10, 0, 10])
def test_names_that_somebody_reserved_and_never_created_are_released(minutes: int) -> None:
    """They count for a minute of ours, by whatever clock they are dated, as their claims may be on the way; no longer."""

    async def body(stage: Stage) -> list[int]:
        await stage.begin()
        at = (stage.clock.now() + dt.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        reserved = f'{{"ghost":{{"at":"{at}","instanceType":"c-2x-amd64-linux"}}}}'
        await stage.add_pool(
            "default", SMALL, limits={"nodes": "1"}, metadata={"annotations": {names.RESERVED_ANNOTATION: reserved}}
        )
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        seen = []
        for _ in range(3):
            await asyncio.sleep(40)
            seen.append(len(await claims(stage)))
        return seen

    assert bought(body) == [0, 1, 1]


def test_the_cluster_cap_of_nodes_holds_over_all_pools() -> None:
    """And the refusal names it."""

    async def body(stage: Stage) -> tuple[int, list[str], str]:
        await stage.begin((NAMESPACE, {"metadata": {"name": "growth"}}))
        await stage.add_pool("a", SMALL, need("team", "In", "a"))
        await stage.add_pool("b", SMALL, need("team", "In", "b"))
        Buyer(stage, stage.environment(settings=with_settings(max_nodes=3)))
        for team in ("a", "b"):
            await stage.cluster.add_replica_set(team, 5, nodeSelector={"team": team})
        await asyncio.sleep(120)
        books = await stage.admin.get(CONFIG_MAP, names.CAPS_CONFIG_MAP, namespace="growth")
        return len(await claims(stage)), await told(stage, "FailedScheduling"), books.data["reserved"]

    number, messages, books = bought(body)
    assert number == 3
    assert len(messages) == 7
    assert all("cap --max-nodes 3 is reached" in message for message in messages)
    assert books


def test_the_cluster_cap_of_money_holds_and_bounds_what_a_claim_may_cost() -> None:
    """Planned prices fill the cap; no claim may be bought for more than is left of it."""

    async def body(stage: Stage) -> tuple[list[float], list[str]]:
        await stage.begin((NAMESPACE, {"metadata": {"name": "growth"}}))
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment(settings=with_settings(max_hourly=120_000_000)))  # c-2x costs 0.0543 an hour
        await stage.cluster.add_replica_set("web", 5)
        await asyncio.sleep(120)
        prices = [float(each.metadata.annotations[names.MAX_PRICE_ANNOTATION]) for each in await claims(stage)]
        return prices, await told(stage, "FailedScheduling")

    prices, messages = bought(body)
    assert len(prices) == 2
    assert sum(prices) <= 0.12
    assert len(messages) == 3
    assert all("cap --max-hourly $0.12 is reached" in message for message in messages)


# --- pause and observe


def test_nothing_is_bought_in_a_paused_pool_until_it_is_released() -> None:
    """The pods say so; removing the annotation is enough."""

    async def body(stage: Stage) -> tuple[int, list[str], int]:
        await stage.begin()
        await stage.add_pool("default", SMALL, metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}})
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(60)
        paused, messages = len(await claims(stage)), await told(stage, "FailedScheduling")
        await stage.admin.patch(NODE_POOL, "default", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
        await asyncio.sleep(5)
        return paused, messages, len(await claims(stage))

    paused, messages, released = bought(body)
    assert (paused, released) == (0, 1)
    assert "paused" in messages[0]


def test_a_paused_cluster_buys_nothing() -> None:
    """By the setting: every pool."""

    async def body(stage: Stage) -> tuple[int, list[str]]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment(settings=with_settings(paused=True)))
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(60)
        return len(await claims(stage)), await told(stage, "FailedScheduling")

    number, messages = bought(body)
    assert number == 0
    assert "setting `paused`" in messages[0]


def test_observing_writes_decisions_and_nothing_else() -> None:
    """What would be bought, once; no claim, no event, no status, and no repetition while nothing changes."""

    async def body(stage: Stage) -> tuple[list[str], list[str], int, int]:
        await stage.begin()
        await stage.add_pool("default", SMALL, limits={"nodes": "3"})
        await stage.admin.create(NODE_OVERLAY, {"metadata": {"name": "o"}, "spec": {"requirements": [], "price": "1"}})
        env = stage.environment(settings=with_settings(observe=True))
        Buyer(stage, env)
        stage.start(Overlays(env).run())
        await stage.cluster.add_replica_set("web", 2)
        await asyncio.sleep(600)
        found = await decided(stage)
        writes = stage.cluster.server.statistics().writes["growth"]
        return [each.outcome for each in found], [each.summary for each in found], writes, len(await claims(stage))

    outcomes, summaries, writes, number = bought(body)
    assert outcomes == ["WouldAct"]
    assert summaries[0].startswith("would buy 2 × c-2x-amd64-linux at ")
    assert writes == 1
    assert number == 0


# --- what is said


def test_decisions_are_written_when_something_is_done_and_not_repeated() -> None:
    """One for the purchase, one for the pods that have no place, however long they wait."""

    async def body(stage: Stage) -> list[tuple[str, int, int]]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 2)
        await asyncio.sleep(60)
        await stage.admin.create(POD, pod("huge", cpu="1000"), namespace="default")
        await asyncio.sleep(900)
        return [
            (each.outcome, len(each.actions), sum(every.pods for every in each.unschedulable))
            for each in await decided(stage)
        ]

    assert bought(body) == [("Acted", 2, 0), ("Blocked", 0, 1)]


def test_a_pod_without_a_place_is_told_why_every_five_minutes() -> None:
    """Not more often, although it is looked at again all the time."""

    async def body(stage: Stage) -> tuple[int, str]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment())
        await stage.admin.create(POD, pod("huge", cpu="1000"), namespace="default")
        await asyncio.sleep(290)
        messages = await told(stage, "FailedScheduling")
        return len(messages), messages[0]

    number, message = bought(body)
    assert number == 1
    assert message.startswith("Failed to schedule pod, NodePool default: ")


def test_nominations_are_told_modestly() -> None:
    """The first ten of a burst; a thousand events would cost more than the machines' own writes."""

    async def body(stage: Stage) -> list[str]:
        await stage.begin()
        await stage.add_pool("default")
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 60)
        await asyncio.sleep(30)
        return await told(stage, "Nominated")

    messages = bought(body)
    assert 10 <= len(messages) <= 15
    assert all(message.startswith("Room is there or on its way on nodeclaim/default-") for message in messages)


@pytest.mark.parametrize("bound", [True, False])
def test_a_node_is_wanted_as_long_as_its_pods_wait(*, bound: bool) -> None:
    """Their spread may ask for a machine elsewhere to be up first: an empty node that they are to go to stays until then."""

    async def body(stage: Stage) -> set[bool]:
        await stage.begin()
        await stage.add_pool()
        buyer = Buyer(stage, stage.environment())
        await stage.admin.create(POD, pod("web", schedulerName="patient"), namespace="default")
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        await stage.admin.patch(
            POD, "web", {"status": {"conditions": [refused]}}, namespace="default", subresource="status"
        )
        await asyncio.sleep(20)
        (made,) = await claims(stage)
        node = await join(stage, made)
        await asyncio.sleep(40)
        if bound:
            await stage.admin.bind("web", namespace="default", node=node)
            await asyncio.sleep(30)
        seen = set()
        for _ in range(150):
            await asyncio.sleep(1)
            seen.add(buyer.env.state.nominated(made.metadata.name))
        return seen

    assert bought(body) == {not bound}


def test_an_idle_cluster_is_left_alone() -> None:
    """With pods that run, one that never can, an overlay and a buffer that is full: no write for an hour."""

    async def body(stage: Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", need(TYPE, "In", "c-4x-amd64-linux"), limits={"nodes": "5"})
        await stage.admin.create(NODE_OVERLAY, {"metadata": {"name": "o"}, "spec": {"requirements": [], "price": "1"}})
        await stage.cluster.add_replica_set("chunk", 0)
        spec = {"scalableRef": {"kind": "ReplicaSet", "name": "chunk"}, "replicas": 1}
        await stage.admin.create(CAPACITY_BUFFER, {"metadata": {"name": "b"}, "spec": spec}, namespace="default")
        env = stage.environment()
        Buyer(stage, env)
        stage.start(Overlays(env).run())
        await stage.cluster.add_replica_set("web", 2)
        await stage.admin.create(POD, pod("huge", cpu="1000"), namespace="default")
        await asyncio.sleep(20)
        for made in await claims(stage):
            await join(stage, made)
        await asyncio.sleep(600)
        before = stage.cluster.server.statistics().writes["growth"]
        await asyncio.sleep(250)  # until the next event about the pod that never can
        return stage.cluster.server.statistics().writes["growth"] - before

    assert bought(body) <= 1


# --- faults


def test_an_answer_that_is_lost_does_not_buy_twice() -> None:
    """Whether the claim was made is unknown: it counts until it is known."""

    async def body(stage: Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        server = MemoryApi(stage.cluster.server, user="growth")
        wire = NetworkApi(server, kernel=stage.kernel, random=SimRandom(stage.kernel.seed, "wire"), name="growth")
        Buyer(stage, stage.environment(api=wire))
        await asyncio.sleep(5)
        wire.faults = Faults(broken_answer=0.7, watch_delay=(5.0, 20.0))
        await stage.cluster.add_replica_set("web", 5)
        await asyncio.sleep(200)
        return len(await claims(stage))

    for seed in range(5):
        assert bought(body, seed=seed) == 5


def test_a_pool_that_changes_while_a_plan_is_made_is_planned_with_again() -> None:
    """No claim is made from a template that is no longer there."""

    async def body(stage: Stage) -> list[str]:
        await stage.begin()
        await stage.add_pool("default", SMALL, labels={"rev": "old"})
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(PLANNING - stage.clock.monotonic())
        assert not await claims(stage)
        patch = {"spec": {"template": {"metadata": {"labels": {"rev": "new"}}}}}
        await stage.admin.patch(NODE_POOL, "default", patch)
        await asyncio.sleep(10)
        return [each.metadata.labels["rev"] for each in await claims(stage)]

    assert bought(body) == ["new"]


def test_pods_that_are_bound_while_a_plan_is_made_buy_nothing() -> None:
    """The world moved on between plan and act."""

    async def body(stage: Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(PLANNING - stage.clock.monotonic())
        await stage.admin.patch(REPLICA_SET, "web", {"spec": {"replicas": 0}}, namespace="default")
        (waiting,) = await stage.cluster.pods()
        await stage.admin.delete(POD, waiting.metadata.name, namespace="default", grace_seconds=0)
        await asyncio.sleep(60)
        return len(await claims(stage))

    assert bought(body) == 0


# --- buffers and overlays


def test_a_buffer_keeps_room_and_refills_it() -> None:
    """Room for its pods is bought in advance; when real pods take it, more is bought; its conditions tell."""

    async def body(stage: Stage) -> tuple[list[int], list[str], bool]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        await stage.cluster.add_replica_set("chunk", 0)
        spec = {"scalableRef": {"kind": "ReplicaSet", "name": "chunk"}, "replicas": 2}
        await stage.admin.create(CAPACITY_BUFFER, {"metadata": {"name": "b"}, "spec": spec}, namespace="default")
        buyer = Buyer(stage, stage.environment())
        await asyncio.sleep(20)
        first = await claims(stage)
        seen = [len(first)]
        for made in first:
            await join(stage, made)
        await asyncio.sleep(60)
        held = all(buyer.env.state.nominated(made.metadata.name) for made in first)
        reasons = [await _provisioning(stage)]
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(60)
        seen.append(len(await claims(stage)))
        reasons.append(await _provisioning(stage))
        return seen, reasons, held

    seen, reasons, held = bought(body)
    assert seen == [2, 3]
    assert held, "nodes that hold a buffer's room are wanted although nothing runs there"
    assert reasons == ["FitsExistingCapacity", "RequiresNewCapacity"]


async def _provisioning(stage: Stage) -> str:
    buffer = await stage.admin.get(CAPACITY_BUFFER, "b", namespace="default")
    return next(each.reason for each in buffer.status.conditions if each.type == "Provisioning")


@pytest.mark.parametrize(
    ("spec", "replicas", "reason"),
    [
        ({"scalableRef": {"kind": "ReplicaSet", "name": "web", "apiGroup": "apps"}, "percentage": 25}, 1, "Resolved"),
        ({"scalableRef": {"kind": "ReplicaSet", "name": "web"}, "percentage": 100, "replicas": 1}, 3, "Resolved"),
        (
            {"scalableRef": {"kind": "ReplicaSet", "name": "web"}, "replicas": 9, "limits": {"cpu": "2500m"}},
            2,
            "Resolved",
        ),
        ({"scalableRef": {"kind": "ReplicaSet", "name": "web"}, "limits": {"cpu": "7"}}, 7, "Resolved"),
        ({"scalableRef": {"kind": "ReplicaSet", "name": "other"}, "replicas": 1}, None, "ScalableRefNotFound"),
        ({"scalableRef": {"kind": "CronJob", "name": "web"}, "replicas": 1}, None, "ResolutionFailed"),
        ({"podTemplateRef": {"name": "none"}, "replicas": 1}, None, "PodTemplateNotFound"),
    ],
)
def test_how_much_room_a_buffer_asks_for(spec: Json, replicas: int | None, reason: str) -> None:
    """The greater of replicas and percentage within the limits; what cannot be resolved says why."""

    async def body(stage: Stage) -> tuple[int | None, str]:
        await stage.begin()
        await stage.add_pool("default")
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 3)
        await stage.admin.create(CAPACITY_BUFFER, {"metadata": {"name": "b"}, "spec": spec}, namespace="default")
        await asyncio.sleep(20)
        buffer = await stage.admin.get(CAPACITY_BUFFER, "b", namespace="default")
        told = next(each.reason for each in buffer.status.conditions if each.type == "ReadyForProvisioning")
        return buffer.status.replicas, told

    assert bought(body) == (replicas, reason)


def test_overlays_say_whether_they_are_laid() -> None:
    """Two of equal weight on one price: the one that is laid second is in conflict; ending that ends the conflict."""

    async def body(stage: Stage) -> tuple[dict[str, str], dict[str, str]]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        for name in ("a", "b"):
            overlay = {"metadata": {"name": name}, "spec": {"requirements": [], "price": "1", "weight": 5}}
            await stage.admin.create(NODE_OVERLAY, overlay)
        env = stage.environment()
        stage.start(env.state.run(), Overlays(env).run())
        await asyncio.sleep(10)
        before = await _validated(stage)
        await stage.admin.patch(NODE_OVERLAY, "a", {"spec": {"weight": 6}})
        await asyncio.sleep(10)
        return before, await _validated(stage)

    before, after = bought(body)
    assert before == {"a": "False Conflict", "b": "True ValidationSucceeded"}
    assert after == {"a": "True ValidationSucceeded", "b": "True ValidationSucceeded"}


async def _validated(stage: Stage) -> dict[str, str]:
    found = {}
    for overlay in (await stage.admin.list(NODE_OVERLAY)).items:
        valid = next(each for each in overlay.status.conditions if each.type == "ValidationSucceeded")
        ready = next(each for each in overlay.status.conditions if each.type == "Ready")
        assert ready.status == valid.status
        found[overlay.metadata.name] = f"{valid.status} {valid.reason}"
    return found


def test_an_overlay_decides_what_is_bought() -> None:
    """A type made cheap by people is the one that a claim lists first."""

    async def body(stage: Stage) -> tuple[str, ...]:
        await stage.begin()
        await stage.add_pool("default")
        cheap = [{"key": TYPE, "operator": "In", "values": ["m-8x-amd64-linux"]}]
        overlay = {"metadata": {"name": "o"}, "spec": {"requirements": cheap, "price": "0.001"}}
        await stage.admin.create(NODE_OVERLAY, overlay)
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(20)
        (made,) = await claims(stage)
        return next(each.values for each in made.spec.requirements if each.key == TYPE)

    assert bought(body)[0] == "m-8x-amd64-linux"


# --- metrics


def test_the_way_of_a_pod_is_measured() -> None:
    """From seen to planned, bound and ready; gauges of what still waits vanish when it does not."""

    async def body(stage: Stage) -> tuple[str, str]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        registry = CollectorRegistry()
        env = dataclasses.replace(stage.environment(), metrics=Metrics(registry))
        env.metrics.declare(*metrics.METRICS)
        Buyer(stage, env)
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(20)
        early = generate_latest(registry).decode()
        (made,) = await claims(stage)
        await join(stage, made)
        await asyncio.sleep(60)
        return early, generate_latest(registry).decode()

    early, late = bought(body)
    assert 'karpenter_pods_unbound_time_seconds{name="web-' in early
    assert 'karpenter_pods_provisioning_unbound_time_seconds{name="web-' in early
    assert "karpenter_pods_scheduling_decision_duration_seconds_count 1.0" in early
    assert 'scheduled="false"' in early
    for name in ("unbound", "unstarted", "provisioning_unbound", "provisioning_unstarted"):
        assert f"karpenter_pods_{name}_time_seconds{{" not in late
    for name in ("bound_duration", "provisioning_bound_duration", "provisioning_startup_duration", "startup_duration"):
        assert f"karpenter_pods_{name}_seconds_count 1.0" in late
    assert (
        'karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="default",reason="provisioned"} 1.0'
        in late
    )
    assert 'karpenter_scheduler_unschedulable_pods_count{controller="provisioner"} 0.0' in late
    (state,) = [line for line in late.splitlines() if line.startswith("karpenter_pods_state{")]
    for label in ('managed="true"', 'nodepool="default"', 'phase="Running"', 'ready="true"', 'zone="test-zone-a"'):
        assert label in state


# --- the guard


def test_a_search_that_takes_too_long_is_given_up_for_first_fit() -> None:
    """After three times its expected length; the Decision says so, and the pods have their machines."""

    async def body(stage: Stage) -> tuple[float, str]:
        await stage.begin()
        await stage.add_pool("default", SMALL)

        def seconds(answer: object) -> float:
            assert isinstance(answer, Answer)
            return 60.0 if answer.plan is not None and answer.plan.packer == "cost" else 0.05

        env = dataclasses.replace(stage.environment(settings=with_settings(packer="cost")), compute=SimCompute(seconds))
        Buyer(stage, env)
        await stage.cluster.add_replica_set("web", 3)
        await asyncio.sleep(10)
        (decision,) = await decided(stage)
        return (decision.at - EPOCH).total_seconds(), decision.summary

    when, summary = bought(body)
    assert 4 < when < 8
    assert summary.startswith("bought 3 × c-2x-amd64-linux at ")
    assert summary.endswith("planned by first-fit, because the packer cost had not ended after 3 s")
