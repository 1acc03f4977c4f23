"""What LKE holds contradicts itself, and the controllers that meet it: the sweep for leaks, and launches."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from growth.api import names
from growth.api.clouds import CloudMachine
from growth.api.conditions import find
from growth.api.events import EVENT
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.cluster.state import State
from growth.controllers.collection.controller import Collection
from growth.controllers.environment import Environment
from growth.controllers.lifecycle.controller import Lifecycle
from growth.controllers.settings import ControllerSettings
from growth.kube.events import Recorder
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.objects import Pool
from growth.sim.ports import SimCompute, SimRandom
from growth.telemetry.metrics import Metrics
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_pools import TIERS, add_pool, machine_of, made, pools_of, wanted_of, writes

UPSTREAM = ("karpenter.sh/nodepool=web", "karpenter.k8s.linode/lke-managed=true")


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def environment(stage: LkeStage, provider: LinodeProvider) -> Environment:
    api, random = stage.admin, SimRandom(stage.kernel.seed, "controllers")
    state = State(api, clock=stage.clock, random=random, node_classes=provider.node_classes)
    state.catalogue = await provider.catalogue()
    return Environment(
        api=api,
        state=state,
        provider=provider,
        clock=stage.clock,
        random=random,
        compute=SimCompute(),
        events=Recorder(api, clock=stage.clock, random=random),
        metrics=Metrics(CollectorRegistry()),
        settings=ControllerSettings(),
        cluster="c1",
    )


@contextlib.asynccontextmanager
async def beside(env: Environment, *controllers: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(part.run()) for part in (env.state, env.events, *controllers)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def stored(stage: LkeStage, name: str, *, pool: str = "web", type_: str = "") -> NodeClaim:
    """A claim of the pool, which is there too."""
    reference = {"group": stage.node_class.group, "kind": stage.node_class.kind, "name": "default"}
    template: Json = {"spec": {"nodeClassRef": reference, "requirements": []}}
    with contextlib.suppress(Exception):
        await stage.admin.create(NODE_POOL, {"metadata": {"name": pool}, "spec": {"template": template}})
    owner = await stage.admin.get(NODE_POOL, pool)
    need = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [type_ or stage.types[0]]}
    reference_to = {"apiVersion": NODE_POOL.api_version, "kind": NODE_POOL.kind, "blockOwnerDeletion": True}
    meta = {
        "name": name,
        "labels": {names.NODE_POOL_LABEL: pool},
        "finalizers": [names.TERMINATION_FINALIZER],
        "ownerReferences": [{**reference_to, "name": pool, "uid": owner.metadata.uid}],
    }
    body = {"metadata": meta, "spec": {"nodeClassRef": reference, "requirements": [need]}}
    return await stage.admin.create(NODE_CLAIM, body)


def dispute(stage: LkeStage, kind: str, pool: Pool) -> Pool:
    """A second pool for the key of the first: with all of its tags, or somebody else's."""
    return add_pool(stage, *(pool.tags if kind == "two pools" else UPSTREAM))


async def resolve(stage: LkeStage, second: Pool) -> None:
    """Somebody removes it, with its machines."""
    await stage.clouds[0].delete_pool(stage.fake.cluster.id, second.id)


# -- the sweep for leaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["two pools", "somebody else's"])
def test_the_sweep_for_leaks_takes_nothing_of_a_key_whose_pools_contradict_themselves(tier: str, kind: str) -> None:
    """A machine whose claim is gone stays with its Node and its pool while two pools are there for its key, and goes once one is
    left; what other keys lost goes at once.
    """

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        kept = await stored(stage, "kept", pool="db")
        await made(provider, kept)
        held: CloudMachine = await made(provider, wanted_of(stage, "lost"))
        free: CloudMachine = await made(provider, wanted_of(stage, "other", "db"))
        (pool,) = [each for each in pools_of(stage) if any(tag.endswith(":web") for tag in each.tags)]
        node: Json = {"metadata": {"name": "lost", "finalizers": [names.TERMINATION_FINALIZER]}}
        await stage.admin.create(NODE, {**node, "spec": {"providerID": held.provider_id}})
        second = dispute(stage, kind, pool)
        await asyncio.sleep(400)
        env = await environment(stage, provider)
        async with beside(env, Collection(env)):
            await asyncio.sleep(1800)
            assert machine_of(stage, held).status == "running"
            assert (await stage.admin.get(NODE, "lost")).metadata.deletion_timestamp is None
            assert {pool.id, second.id} <= {each.id for each in pools_of(stage)}
            assert free.provider_id not in {each.provider_id for each in await provider.list()}
            await resolve(stage, second)
            await asyncio.sleep(600)
            assert (await stage.admin.get(NODE, "lost")).metadata.deletion_timestamp is not None
            await stage.admin.patch(NODE, "lost", {"metadata": {"finalizers": None}})
            await asyncio.sleep(600)
            assert pool.id not in stage.fake.account.pools

    on(tier, body)


# -- launches -----------------------------------------------------------------------------------------------------------


async def waiting(stage: LkeStage, kind: str, provider: LinodeProvider) -> Pool:
    """A key that nothing can be bought for, and claims that wait for it."""
    await made(provider, wanted_of(stage, "first"))
    second = dispute(stage, kind, pools_of(stage)[0])
    await asyncio.sleep(400)
    for number in range(5):
        await stored(stage, f"claim-{number}")
    return second


async def launched(stage: LkeStage) -> list[str]:
    claims = (await stage.admin.list(NODE_CLAIM)).items
    return [each.metadata.name for each in claims if each.status.provider_id]


@pytest.mark.parametrize("kind", ["two pools", "somebody else's"])
def test_claims_go_on_within_seconds_of_the_end_of_a_contradiction(tier: str, kind: str) -> None:
    """Whatever time it took: the claims say why they wait, with an event, few calls are made meanwhile, and all of them have their
    machines soon after.
    """

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        second = await waiting(stage, kind, provider)
        env = await environment(stage, provider)
        async with beside(env, Lifecycle(env)):
            await asyncio.sleep(100)
            for number in range(5):
                env.state.nominate(f"claim-{number}", seconds=100_000)
            before, calls = writes(stage), len(stage.fake.calls)
            await asyncio.sleep(3600)
            # Two lists are read every five seconds, whatever the number of claims; and each is tried slowly.
            assert len(stage.fake.calls) - calls < 3600 / 5 * 3 + 5 * 3600 / 300 * 5
            assert (writes(stage), await launched(stage)) == (before, [])
            told = find((await stage.admin.get(NODE_CLAIM, "claim-3")).status.conditions, names.LAUNCHED)
            assert told is not None
            assert (told.status, told.reason) == ("False", "InvariantViolation")
            assert str(second.id) in told.message
            events = [each for each in (await stage.admin.list(EVENT)).items if each.reason == told.reason]
            assert {each.involved_object.name for each in events} == {f"claim-{number}" for number in range(5)}
            await resolve(stage, second)
            before = writes(stage)
            await asyncio.sleep(12)
            assert writes(stage) != before
            await asyncio.sleep(90)
            assert await launched(stage) == [f"claim-{number}" for number in range(5)]

    on(tier, body)


def test_claims_whose_pods_are_long_gone_buy_nothing_when_a_contradiction_ends(tier: str) -> None:
    """They end while it stands; those that pods wait for go on."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        second = await waiting(stage, "two pools", provider)
        env = await environment(stage, provider)
        async with beside(env, Lifecycle(env)):
            for _ in range(60):
                env.state.nominate("claim-1", seconds=20)
                await asyncio.sleep(10)
            going = [each for each in (await stage.admin.list(NODE_CLAIM)).items if each.metadata.deletion_timestamp]
            assert [each.metadata.name for each in going] == ["claim-0", "claim-2", "claim-3", "claim-4"]
            await resolve(stage, second)
            await asyncio.sleep(30)
            assert await launched(stage) == ["claim-1"]
            assert len(stage.fake.ledger.purchases) == 2 + 1

    on(tier, body)


def test_a_contradiction_of_one_claims_machines_ends_within_seconds_too(tier: str) -> None:
    """Two machines with one claim's tag, until somebody takes it off one of them: the claim and the others of its key go on."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        wanted = await stored(stage, "a")
        await made(provider, wanted)
        other = machine_of(stage, await made(provider, wanted_of(stage, "b")))
        kept = other.tags
        others = [tag for tag in kept if "nodeclaim" not in tag and "uid" not in tag]
        stage.fake.account.retag(other, (*others, "karpenter.sh/nodeclaim:a"))
        await stored(stage, "c")
        provider = stage.provider()
        env = await environment(stage, provider)
        async with beside(env, Lifecycle(env)):
            await asyncio.sleep(200)
            for name in ("a", "c"):
                env.state.nominate(name, seconds=100_000)
            await asyncio.sleep(1500)
            assert await launched(stage) == []
            stage.fake.account.retag(other, kept)
            await asyncio.sleep(60)
            assert await launched(stage) == ["a", "c"]

    on(tier, body)
