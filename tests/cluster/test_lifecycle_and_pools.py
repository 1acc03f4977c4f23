"""The lifecycle and the pools' controller on a real API server: what they write is what it accepts."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from bench.peers.karpenter import kwok
from growth.api import names
from growth.api.clouds import CreateError
from growth.api.crds import all_crds
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json
from growth.controllers.health import RegistrationHealth
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.pools import Pools
from growth.kube.http import HttpApi
from growth.ports import SystemClock, SystemRandom
from tests.cluster.servers import PATIENCE_SECONDS, Server
from tests.needs import need
from tests.simulation.clouds import ScriptedCloud
from tests.simulation.owning import AnyStage, condition, environment, told
from tools.controlplane.plane import plane as start_plane


async def until(true: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await true():  # noqa: ASYNC110 - the condition is not ours to signal
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not in time: {what}") from None


def karpenters() -> list[Json]:
    """Karpenter's own definitions, and ours of the kinds that it does not have; without the programs as other peers."""
    need(kwok.built(), "no Karpenter peer in the cache; build it with `make peer`")
    theirs = kwok.definitions()
    names_ = {each["metadata"]["name"] for each in theirs}
    return [*theirs, *(each for each in all_crds() if each["metadata"]["name"] not in names_)]


@pytest.mark.parametrize("definitions", [all_crds, karpenters], ids=["ours", "karpenters"])
def test_claims_become_nodes_and_pools_tell_of_them(control_plane: None, definitions: Callable[[], list[Json]]) -> None:
    """Every condition, label, taint and annotation that is written passes the schema of our and of Karpenter's kinds."""
    items = definitions()
    with start_plane() as running:
        follow(Server(running), items)


def follow(server: Server, definitions: list[Json]) -> None:
    server.install(definitions)

    async def talk(api: HttpApi) -> None:
        cloud = ScriptedCloud()
        stage = AnyStage(
            admin=api, cloud=cloud, env=environment(api, cloud, clock=SystemClock(), random=SystemRandom())
        )
        health = RegistrationHealth()
        await stage.start(Lifecycle(stage.env, health=health), Pools(stage.env, health=health))
        await stage.add_class()
        pool = await stage.add_pool(annotations={names.PAUSED_ANNOTATION: "true"})

        async def paused() -> bool:
            return told(await stage.pool()).get("Paused") == "True"

        await until(paused, "the pause is told")
        await api.patch(NODE_POOL, "default", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
        cloud.failures.append(CreateError("busy", reason="RateLimited"))
        await stage.add_claim(
            pool=pool,
            taints=[{"key": "dedicated", "value": "web", "effect": "NoSchedule"}],
            startupTaints=[{"key": "example.com/cni", "effect": "NoExecute"}],
        )

        async def launched() -> bool:
            return told(await stage.claim()).get("Launched") == "True"

        await until(launched, "launched")
        await stage.join()

        async def registered() -> bool:
            return told(await stage.claim()).get("Registered") == "True"

        await until(registered, "registered")
        assert condition(await stage.claim(), names.INITIALIZED).status == "Unknown"
        await stage.set_taints("node-1", [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}])

        async def ready() -> bool:
            return told(await stage.claim()).get("Ready") == "True"

        await until(ready, "ready")
        node = await stage.node()
        assert node.metadata.labels[names.INITIALIZED_LABEL] == "true"
        assert node.metadata.finalizers == (names.TERMINATION_FINALIZER,)

        async def counted() -> bool:
            status = (await stage.pool()).status
            return status.nodes == 1 and told(await stage.pool()).get("NodeRegistrationHealthy") == "True"

        await until(counted, "the pool counts its machine")
        assert told(await stage.pool())["Ready"] == "True"
        raw = await api.get(NODE_CLAIM.raw, "web-1")
        raw["metadata"].pop("managedFields")
        assert len(json.dumps(raw, separators=(",", ":"))) <= 4096
        for task in stage.tasks:
            task.cancel()
        await asyncio.gather(*stage.tasks, return_exceptions=True)

    server.run(talk)
