"""What LKE holds contradicts itself, and the controllers that meet it: the sweep for leaks, and launches."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from growth.api import names
from growth.api.clouds import CloudMachine
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.cluster.state import State
from growth.controllers.collection.controller import Collection
from growth.controllers.environment import Environment
from growth.controllers.settings import ControllerSettings
from growth.kube.events import Recorder
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.objects import Pool
from growth.sim.ports import SimCompute, SimRandom
from growth.telemetry.metrics import Metrics
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_pools import TIERS, add_pool, machine_of, made, pools_of, wanted_of

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
            for number in [node.instance for node in second.nodes]:
                assert number is not None
                stage.fake.account.instances.pop(number, None)
            del stage.fake.account.pools[second.id]
            await asyncio.sleep(600)
            assert (await stage.admin.get(NODE, "lost")).metadata.deletion_timestamp is not None
            await stage.admin.patch(NODE, "lost", {"metadata": {"finalizers": None}})
            await asyncio.sleep(600)
            assert pool.id not in stage.fake.account.pools

    on(tier, body)
