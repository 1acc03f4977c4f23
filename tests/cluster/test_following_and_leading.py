"""Informer, elector and event recorder on a real API server."""

import asyncio
import base64
import contextlib
import json
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from growth.api.coordination import LEASE
from growth.api.core import CONFIG_MAP
from growth.api.events import EVENT
from growth.api.meta import ObjectReference
from growth.kube import access
from growth.kube.backoff import BackoffSettings
from growth.kube.errors import GateClosed
from growth.kube.events import Recorder, RecorderSettings
from growth.kube.http import HttpApi
from growth.kube.informer import Informer, InformerSettings, unchanged
from growth.kube.lease import Elector, LeaseLost, LeaseSettings
from growth.ports import SystemClock, SystemRandom
from growth.sim.trials.following import Story
from tests.cluster.lossy import LossyProxy
from tools.controlplane.plane import Plane
from tools.controlplane.plane import plane as start_plane

BATCHES = 100
BATCH = 20
COMPACT_EVERY = 10
NAMESPACE = "default"
PATIENCE_SECONDS = 180.0
QUICK = InformerSettings(page_size=100, backoff=BackoffSettings(base_seconds=0.01, cap_seconds=0.05))


@pytest.fixture(scope="module")
def forgetful(control_plane: None) -> Iterator[Plane]:
    """Without a watch cache the server asks etcd, which forgets what it is told to forget."""
    with start_plane(apiserver_flags=("--watch-cache=false",)) as running:
        yield running


@contextlib.asynccontextmanager
async def client(plane: Plane, url: str = "") -> AsyncIterator[HttpApi]:
    """The administrator's access to the plane, directly or through a proxy."""
    found = access.direct(url or plane.url, token=plane.token, ca_file=plane.ca)
    async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/test", qps=5000, burst=5000) as api:
        yield api


async def until(condition: Callable[[], bool], *, what: str) -> None:
    """Waits for a condition of the real world; nobody waits so long unless something is broken."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():  # noqa: ASYNC110 - the condition is not ours to signal
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE_SECONDS:.0f} s: {what}") from None


def ask_etcd(plane: Plane, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"{plane.etcd_url}/v3/{path}", data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        result: dict[str, Any] = json.load(answer)
    return result


def compact(plane: Plane) -> None:
    """Throws away everything that etcd remembers but the present."""
    head = ask_etcd(plane, "kv/range", {"key": base64.b64encode(b"\0").decode(), "limit": 1})["header"]
    ask_etcd(plane, "kv/compaction", {"revision": head["revision"], "physical": True})


class Writer:
    """Two thousand objects: each is created, changed in the next batch and, but for a few, deleted in the one after."""

    def __init__(self, api: HttpApi) -> None:
        self._api = api
        self._kept = 0

    async def write(self, batch: int) -> None:
        await self._each(self._create(batch * BATCH + number) for number in range(BATCH))
        if batch >= 1:
            await self._each(self._change((batch - 1) * BATCH + number) for number in range(BATCH))
        if batch >= 2:
            await self._each(self._delete((batch - 2) * BATCH + number) for number in range(BATCH - 1))

    async def _each(self, calls: Iterator[Coroutine[Any, Any, None]]) -> None:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(call)

    async def _create(self, number: int) -> None:
        body = {"metadata": {"name": f"config-{number}"}, "data": {"batch": "first"}}
        await self._api.create(CONFIG_MAP, body, namespace=NAMESPACE)

    async def _change(self, number: int) -> None:
        patch = {"data": {"batch": "second"}}
        await self._api.patch(CONFIG_MAP, f"config-{number}", patch, namespace=NAMESPACE)

    async def _delete(self, number: int) -> None:
        await self._api.delete(CONFIG_MAP, f"config-{number}", namespace=NAMESPACE)


def test_the_store_follows_a_real_server_through_cuts_and_compactions(forgetful: Plane) -> None:
    """2,000 objects come, change and go while the watch is cut 100 times and history compacted; no deletion is lost."""

    async def follow() -> None:
        async with (
            client(forgetful) as direct,
            LossyProxy.before(forgetful.url) as proxy,
            client(forgetful, proxy.url) as shaky,
        ):
            story = Story()
            informer = Informer(
                shaky,
                CONFIG_MAP,
                clock=SystemClock(),
                random=SystemRandom(),
                transform=unchanged,
                settings=QUICK,
            )
            informer.subscribe(story.hear)
            following = asyncio.create_task(informer.run())
            await until(lambda: informer.statistics().watches == 1, what="the first watch")
            writer = Writer(direct)
            for batch in range(BATCHES):
                watches = informer.statistics().watches
                if batch % COMPACT_EVERY == COMPACT_EVERY - 1:
                    proxy.block()
                    await writer.write(batch)
                    await asyncio.to_thread(compact, forgetful)
                    proxy.unblock()
                else:
                    writing = asyncio.create_task(writer.write(batch))
                    proxy.cut()
                    await writing
                await until(lambda before=watches: informer.statistics().watches > before, what=f"watch {batch}")  # type: ignore[misc]
                newest = f"config-{batch * BATCH}"
                await until(lambda name=newest: (NAMESPACE, name) in informer.store, what=f"{newest} in the store")  # type: ignore[misc]
            page = await direct.list(CONFIG_MAP)
            fresh = {(item.metadata.namespace, item.metadata.name): item for item in page.items}
            await until(lambda: dict(informer.store.items()) == fresh, what="the store equals a fresh list")
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        statistics = informer.statistics()
        print(f"\n{statistics}, connections cut: {proxy.cut_connections}")  # noqa: T201 - the figures are wanted
        assert statistics.gone >= BATCHES // COMPACT_EVERY
        assert statistics.reconnects >= BATCHES
        assert statistics.deletions_by_relist > 0
        alive = {item.metadata.uid for item in fresh.values()}
        lost = [key for uid, key in story.ever.items() if uid not in alive and uid not in story.deleted]
        assert lost == []
        assert story.objects == fresh
        # Each object was seen before its deletion, two batches later; one of each batch is kept.
        assert len(story.deleted) == (BATCHES - 2) * (BATCH - 1)

    asyncio.run(follow())


def test_an_idle_watch_lives_on_bookmarks(apiserver: Plane) -> None:
    """A server with its watch cache sends bookmarks before it closes a watch, and the next resumes without a list."""

    async def follow() -> None:
        async with client(apiserver) as api:
            settings = InformerSettings(watch_seconds=3.0)
            informer = Informer(
                api,
                CONFIG_MAP,
                clock=SystemClock(),
                random=SystemRandom(),
                transform=unchanged,
                settings=settings,
            )
            following = asyncio.create_task(informer.run())
            await until(lambda: informer.statistics().watches > 0, what="the first watch")
            before = informer.statistics()
            # A server that has seen no change of a kind since its start has nothing to mark.
            await api.create(CONFIG_MAP, {"metadata": {"name": "news"}}, namespace="kube-system")
            await until(lambda: informer.statistics().bookmarks > 0, what="a bookmark")
            watches = informer.statistics().watches
            await until(lambda: informer.statistics().watches > watches, what="the next watch")
            statistics = informer.statistics()
            assert (statistics.lists, statistics.gone) == (1, 0)
            assert statistics.failures == before.failures  # a server that has just begun may let the first list wait
            assert informer.store.get("news", "kube-system") is not None
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    asyncio.run(follow())


def test_electors_take_turns_on_a_real_server(apiserver: Plane) -> None:
    """The second leads when the first gives the lease back, and loses it when somebody else takes it by force."""
    # No try of the lease lasts longer than a retry: a busy server must be able to answer in that time.
    settings = LeaseSettings(lease_seconds=30, renew_deadline_seconds=25.0, retry_seconds=1.0)

    async def take_turns() -> None:
        async with client(apiserver) as api:

            def elector(identity: str) -> Elector:
                return Elector(
                    api,
                    clock=SystemClock(),
                    random=SystemRandom(),
                    name="growth-test",
                    namespace="kube-system",
                    identity=identity,
                    settings=settings,
                )

            first, second = elector("first"), elector("second")
            enough = asyncio.Event()
            leading = asyncio.create_task(first.run(enough.wait))
            await until(lambda: first.statistics().renewals >= 3, what="the first renews")
            first.gate.check()
            waiting = asyncio.create_task(second.run(asyncio.Event().wait))
            await until(lambda: second.statistics().holder == "first", what="the second sees who leads")
            with pytest.raises(GateClosed):
                second.gate.check()
            enough.set()
            await leading
            await until(lambda: second.statistics().renewals >= 2, what="the second leads")
            lease = await api.get(LEASE, "growth-test", namespace="kube-system")
            assert lease.spec.holder_identity == "second"
            assert lease.spec.lease_duration_seconds == 30
            assert lease.spec.lease_transitions == 1
            patch = {"spec": {"holderIdentity": "third"}}
            await api.patch(LEASE, "growth-test", patch, namespace="kube-system")
            with pytest.raises(LeaseLost, match="third holds the lease"):
                await waiting
            with pytest.raises(GateClosed):
                second.gate.check()

    asyncio.run(take_turns())


def test_repeated_events_are_counted_on_a_real_server(apiserver: Plane) -> None:
    """The server accepts our Events and the patch of their count."""

    async def record() -> None:
        async with client(apiserver) as api:
            namespace = ObjectReference(api_version="v1", kind="Namespace", name="default")
            recorder = Recorder(
                api,
                clock=SystemClock(),
                random=SystemRandom(),
                settings=RecorderSettings(repeat_seconds=10.0, instance="growth-0"),
            )
            running = asyncio.create_task(recorder.run())
            message = "a message of " + "é" * 1500
            recorder.event(namespace, "TriedOut", message)
            await until(lambda: recorder.statistics().created == 1, what="the event is written")
            for _ in range(2):
                recorder.event(namespace, "TriedOut", message)
            await until(lambda: recorder.statistics().counted >= 1, what="the count is written")
            events = (await api.list(EVENT, namespace="default", fields="reason=TriedOut")).items
            assert [event.count for event in events] == [3]
            assert recorder.statistics().failed == 0
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(record())
