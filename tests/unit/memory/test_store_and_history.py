"""History: how far back watches and pages reach, and who may change what is stored."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from growth.api.kinds import Json
from growth.kube.api import EventType, WatchEvent
from growth.kube.errors import GateClosed, Gone, NotFound
from growth.kube.memory import MemoryApi
from growth.kube.memory.server import MemoryServer
from growth.kube.memory.store import Change, Watch
from tests.unit.memory.builders import CONFIG_MAPS, PODS, new_server, pod


def put(server: MemoryServer, name: str, **data: str) -> None:
    resource = server.resource("", "v1", "configmaps")
    try:
        server.patch(resource, name, {"data": data}, namespace="default")
    except NotFound:
        server.create(resource, {"metadata": {"name": name}, "data": data}, namespace="default")


def taken(watch: Watch) -> list[tuple[str, str]]:
    found = [(kind, stored.object["metadata"]["name"]) for kind, stored in watch.pending if stored is not None]
    watch.pending.clear()
    return found


def test_a_watch_that_lags_more_than_the_ring_is_gone() -> None:
    """Only the last `ring` changes of a kind can be resumed from; earlier revisions are Gone."""
    server = new_server(ring=3)
    resource = server.resource("", "v1", "configmaps")
    start = str(server.revision)
    for number in range(3):
        put(server, "a", n=str(number))
    assert [kind for kind, _ in taken(server.watch(resource, revision=start))] == ["ADDED", "MODIFIED", "MODIFIED"]
    put(server, "a", n="3")
    with pytest.raises(Gone) as gone:
        server.watch(resource, revision=start)
    assert gone.value.reason == "Expired"


def test_a_follower_that_writes_hides_nothing_from_a_watch() -> None:
    """What it writes comes after what it followed, in the order of revisions: else the watch would take that for old."""
    server = new_server()
    resource = server.resource("", "v1", "configmaps")
    put(server, "a")
    put(server, "b")
    watch = server.watch(resource, revision=str(server.revision))

    def follow(_which: tuple[str, str], change: Change) -> None:
        if change.type == "DELETED":
            put(server, "b", after=change.key[1])

    server.follow(follow)
    server.delete(resource, "a", namespace="default")
    revisions = [stored.revision for _, stored in watch.pending if stored is not None]
    assert taken(watch) == [("DELETED", "a"), ("MODIFIED", "b")]
    assert revisions == sorted(revisions)
    assert taken(server.watch(resource, revision=str(revisions[0] - 1))) == [("DELETED", "a"), ("MODIFIED", "b")]


def test_the_ring_of_one_kind_is_not_used_up_by_another() -> None:
    """A quiet kind's watch resumes however busy the others are."""
    server = new_server(ring=3)
    start = str(server.revision)
    for number in range(10):
        put(server, "a", n=str(number))
    assert taken(server.watch(server.resource("", "v1", "pods"), revision=start)) == []


def test_compaction_reaches_kinds_that_nobody_used_yet() -> None:
    """After a compaction no earlier revision can be watched, of whatever kind; the newest one can."""
    server = new_server()
    start = str(server.revision)
    put(server, "a")
    server.compact()
    for plural in ("configmaps", "secrets"):
        resource = server.resource("", "v1", plural)
        with pytest.raises(Gone):
            server.watch(resource, revision=start)
        assert taken(server.watch(resource, revision=str(server.revision))) == []


def test_pages_show_one_moment_whatever_happens_between_them() -> None:
    """Objects made, changed and removed after the first page do not show in the later ones."""
    server = new_server()
    resource = server.resource("", "v1", "configmaps")
    for name in "abcdef":
        put(server, name, v="old")
    first = server.list(resource, namespace="default", limit=2)
    put(server, "c", v="new")
    put(server, "bb", v="new")
    server.delete(resource, "e", namespace="default")
    seen = list(first.items)
    page = first
    while page.next:
        page = server.list(resource, namespace="default", limit=2, page=page.next)
        assert page.revision == first.revision
        seen += page.items
    assert [(one.object["metadata"]["name"], one.object["data"]["v"]) for one in seen] == [
        (name, "old") for name in "abcdef"
    ]


def test_a_watch_from_the_future_waits_for_it() -> None:
    """Changes up to the asked revision are not told, even when they happen after the question."""
    server = new_server()
    resource = server.resource("", "v1", "configmaps")
    watch = server.watch(resource, revision=str(server.revision + 2))
    for name in "abc":
        put(server, name)
    assert taken(watch) == [("ADDED", "c")]


def test_what_enters_and_leaves_a_selection_is_added_and_deleted() -> None:
    """A watch by label tells of an object only while it has the label, and takes leave with its last matching state."""
    server = new_server()
    resource = server.resource("", "v1", "configmaps")
    watch = server.watch(resource, revision=str(server.revision), labels="x=1")
    put(server, "a")
    for value in ("1", "1", "2"):
        label = {"metadata": {"labels": {"x": value}}, "data": {"n": value}}
        server.patch(resource, "a", label, namespace="default")
        server.patch(resource, "a", {"data": {"m": value}}, namespace="default")
    kinds = [kind for kind, _ in watch.pending]
    assert kinds == ["ADDED", "MODIFIED", "DELETED"]
    last = watch.pending[-1][1]
    assert last is not None
    assert last.object["metadata"]["labels"] == {"x": "1"}
    assert int(last.object["metadata"]["resourceVersion"]) == last.revision


def _mutations(api: MemoryApi) -> list[Callable[[], Any]]:
    async def own_body() -> None:
        body = pod("b")
        await api.create(PODS, body, namespace="default")
        body["spec"]["containers"].clear()

    async def own_answer() -> None:
        (await api.create(PODS, pod("c"), namespace="default"))["spec"].clear()

    async def own_get() -> None:
        (await api.get(PODS, "a", namespace="default"))["spec"].clear()

    async def own_list() -> None:
        for item in (await api.list(PODS)).items:
            item["metadata"].clear()

    async def own_patch() -> None:
        labels = {"x": "1"}
        await api.patch(PODS, "a", {"metadata": {"labels": labels}}, namespace="default")
        labels["x"] = "2"

    async def own_event() -> None:
        start = (await api.list(PODS)).revision
        await api.patch(PODS, "a", {"metadata": {"labels": {"y": "1"}}}, namespace="default")
        async with api.watch(PODS, revision=start) as events:
            event: WatchEvent[Json] = await anext(events)
            event.object.clear()

    return [own_body, own_answer, own_get, own_list, own_patch, own_event]


def test_nobody_changes_the_store_through_what_they_hold() -> None:
    """Bodies, answers, lists and events are copies: changing them changes nothing on the server."""

    async def law() -> None:
        server = new_server()
        api = MemoryApi(server)
        await api.create(PODS, pod("a"), namespace="default")
        for mutate in _mutations(api):
            await mutate()
        for stored in (await api.list(PODS)).items:
            assert stored["metadata"]["name"] in {"a", "b", "c"}
            assert stored["spec"]["containers"][0]["image"] == "i"
        assert (await api.get(PODS, "a", namespace="default"))["metadata"]["labels"] == {"x": "1", "y": "1"}

    asyncio.run(law())


def test_a_closed_gate_stops_every_write_and_no_read() -> None:
    """With the gate closed nothing is written; reading goes on."""

    class Closed:
        def check(self) -> None:
            raise GateClosed("the lease is too old")

    async def law() -> None:
        server = new_server()
        await MemoryApi(server).create(PODS, pod("a"), namespace="default")
        before = server.revision
        api = MemoryApi(server, gate=Closed())
        for write in (
            api.create(PODS, pod("b"), namespace="default"),
            api.update(PODS, "a", pod("a"), namespace="default"),
            api.patch(PODS, "a", {}, namespace="default"),
            api.delete(PODS, "a", namespace="default"),
            api.evict("a", namespace="default"),
            api.bind("a", namespace="default", node="n"),
        ):
            with pytest.raises(GateClosed):
                await write
        assert server.revision == before
        assert len((await api.list(PODS)).items) == 1

    asyncio.run(law())


def test_writes_are_counted_by_user() -> None:
    """Statistics say who wrote how often, and how much is stored and watched."""

    async def law() -> None:
        server = new_server()
        growth, kwok = MemoryApi(server), MemoryApi(server, user="growth-kwok")
        await growth.create(PODS, pod("a"), namespace="default")
        await kwok.patch(PODS, "a", {"metadata": {"labels": {"x": "1"}}}, namespace="default")
        await kwok.delete(PODS, "a", namespace="default")
        async with growth.watch(PODS, revision=str(server.revision)):
            assert server.statistics().watches == 1
        told = server.statistics()
        assert (told.writes, told.watches, told.revision) == ({"growth": 1, "growth-kwok": 2}, 0, server.revision)

    asyncio.run(law())


def test_a_stream_ends_at_its_time_with_a_bookmark() -> None:
    """When its time is over a watch says how far it came, so that an idle reader can resume there."""

    async def law() -> None:
        server = new_server()
        api = MemoryApi(server)
        start = str(server.revision)
        await api.create(PODS, pod("a"), namespace="default")
        async with api.watch(CONFIG_MAPS, revision=start, timeout_seconds=0) as events:
            told = [event async for event in events]
        assert [(event.type, event.revision) for event in told] == [(EventType.BOOKMARK, str(server.revision))]

    asyncio.run(law())


def test_cut_watches_end_at_once() -> None:
    """A server that cuts its streams lets each reader take what came before and then end."""

    async def law() -> None:
        server = new_server()
        api = MemoryApi(server)
        async with api.watch(PODS, revision=str(server.revision)) as events:
            await api.create(PODS, pod("a"), namespace="default")
            server.cut_watches()
            told = [event async for event in events]
        assert [event.type for event in told] == [EventType.ADDED]

    asyncio.run(law())


PROGRAM = """
import hashlib, sys
sys.path.insert(0, ".")
from growth.kube.memory.server import DeleteOptions
from tests.unit.memory.builders import new_server, pod
server = new_server()
pods, namespaces = server.resource("", "v1", "pods"), server.resource("", "v1", "namespaces")
server.create(namespaces, {"metadata": {"name": "shop"}})
watch = server.watch(pods, revision=str(server.revision))
owner = server.create(server.resource("", "v1", "configmaps"), {"metadata": {"name": "o"}}, namespace="shop").object
reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner["metadata"]["uid"]}
for number in range(20):
    body = pod("")
    body["metadata"] = {"generateName": "p-", "labels": {f"l{n}": "x" for n in range(5)}, "ownerReferences": [reference]}
    server.create(pods, body, namespace="shop")
server.delete(server.resource("", "v1", "configmaps"), "o", namespace="shop")
server.delete(namespaces, "shop")
story = [(kind, stored.object) for kind, stored in watch.pending]
print(len(story), server.revision, hashlib.sha256(repr(story).encode()).hexdigest())
"""


def test_equal_calls_give_equal_stores_under_any_hash_seed() -> None:
    """Names, uids, revisions and the order of cascades depend on the given randomness alone."""
    told = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(told) == 1
    assert told.pop().startswith("60 ")
