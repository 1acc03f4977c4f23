"""The informer on the server in process and Python's own event loop, without the simulation kernel."""

import asyncio

from growth.api.core import CONFIG_MAP, ConfigMap
from growth.kube.informer import Informers, Selection
from growth.kube.memory import MemoryApi, MemoryServer
from growth.kube.store import Change
from growth.ports import SystemClock, SystemRandom


def test_changes_arrive_on_an_ordinary_event_loop() -> None:
    """Creation, change and deletion of selected objects arrive in order; others do not."""

    async def follow() -> list[str]:
        clock, random = SystemClock(), SystemRandom()
        api = MemoryApi(MemoryServer(clock, random))
        informers = Informers(api, clock=clock, random=random)
        informer = informers.watch(CONFIG_MAP, selection=Selection(namespace="default", labels="app=web"))
        heard: asyncio.Queue[Change[ConfigMap]] = asyncio.Queue()
        informer.subscribe(heard.put_nowait)
        following = asyncio.create_task(informers.run())
        await informers.wait_synced()
        for namespace, labels in (("default", {"app": "web"}), ("default", {}), ("kube-system", {"app": "web"})):
            name = f"config-{len(labels)}"
            await api.create(CONFIG_MAP, {"metadata": {"name": name, "labels": labels}}, namespace=namespace)
        await api.patch(CONFIG_MAP, "config-1", {"data": {"a": "b"}}, namespace="default")
        await api.delete(CONFIG_MAP, "config-1", namespace="default")
        async with asyncio.timeout(30):
            changes = [await heard.get() for _ in range(3)]
        assert heard.empty()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return [f"{type(change).__name__} {change.key}" for change in changes]

    key = ("default", "config-1")
    assert asyncio.run(follow()) == [f"Added {key}", f"Changed {key}", f"Deleted {key}"]
