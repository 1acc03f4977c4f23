"""The KWOK cloud on a real API server: its own half and the stand-in kubelets at work on many machines at once."""

import asyncio

from growth.api.core import CONFIG_MAP, NAMESPACE
from growth.api.crds import all_crds
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE
from growth.kube.http import HttpApi
from growth.ports import SystemClock, SystemRandom
from growth.providers.catalogues import builtin
from growth.providers.kwok.kubelets import QUICK_KUBELETS, Kubelets
from growth.providers.kwok.provider import KwokProvider
from growth.providers.kwok.registrar import Registrar
from tests.cluster.servers import Server
from tests.kwok import CLUSTER, HOME, claim, need
from tools.controlplane.plane import Plane

MACHINES = 200


def test_hundreds_of_machines_come_up_and_go(apiserver: Plane) -> None:
    """Each gets its Node, which becomes ready, and both are gone after the deletion, with nothing left behind."""
    server = Server(apiserver)
    server.install(all_crds())

    async def ready(api: HttpApi) -> int:
        nodes = (await api.list(NODE)).items
        return sum(
            any(each.type == "Ready" and each.status == "True" for each in node.status.conditions) for node in nodes
        )

    async def left(api: HttpApi) -> int:
        records = await api.list(CONFIG_MAP, namespace=HOME, labels="growth.dev/kwok-machine")
        return len((await api.list(NODE)).items) + len(records.items)

    async def talk(api: HttpApi) -> None:
        await api.create(NAMESPACE, {"metadata": {"name": HOME}})
        await api.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}, "spec": {}})
        clock, random = SystemClock(), SystemRandom()
        provider = KwokProvider(
            api, catalogue=builtin("kwok"), cluster=CLUSTER, namespace=HOME, clock=clock, random=random
        )
        registrar = Registrar(api, cluster=CLUSTER, namespace=HOME, clock=clock, random=random)
        kubelets = Kubelets(api, clock=clock, random=random, settings=QUICK_KUBELETS)
        running = [asyncio.create_task(part.run()) for part in (registrar, kubelets)]
        claims = [
            claim(f"m-{number}", need("node.kubernetes.io/instance-type", "c-4x-amd64-linux"))
            for number in range(MACHINES)
        ]
        async with asyncio.timeout(300):  # long enough for a loaded machine
            made = await asyncio.gather(*map(provider.create, claims))
            assert {each.claim for each in made} == {each.metadata.name for each in claims}
            while await ready(api) < MACHINES:  # noqa: ASYNC110 - the server tells in its own time
                await asyncio.sleep(0.1)
            assert len(await provider.list()) == MACHINES
            await asyncio.gather(*map(provider.delete, claims))
            while await left(api):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.1)
        assert await provider.list() == ()
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        assert registrar.statistics().failed == 0
        assert kubelets.statistics().failed == 0

    server.run(talk)
