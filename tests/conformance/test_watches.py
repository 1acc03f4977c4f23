"""Laws of watches: order, completeness, selectors, bookmarks, and what ends them."""

import asyncio

from growth.api import meta
from growth.api.kinds import Json, Kind
from growth.kube.api import EventType, WatchEvent
from growth.kube.errors import NotFound
from tests.conformance.kinds import CONFIG_MAP, NAMESPACE, POD
from tests.conformance.world import FREE, PATIENCE_SECONDS, World, name_of, refused, revision_of

TYPED_CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", True, meta.Object)


def story(events: list[WatchEvent[Json]]) -> list[tuple[str, str]]:
    return [(event.type.value, name_of(event.object)) for event in events]


async def now(world: World) -> str:
    return (await world.api.list(CONFIG_MAP, namespace=world.namespace)).revision


def last(event: WatchEvent[Json]) -> bool:
    return name_of(event.object) == "end"


async def test_a_watch_tells_every_change_in_order(world: World) -> None:
    """From a list's revision on, each creation, change and deletion comes once, in the order of the revisions."""
    start = await now(world)
    for name in ("a", "b"):
        await world.config_map(name=name)
    await world.api.patch(CONFIG_MAP, "a", {"data": {"a": "2"}}, namespace=world.namespace)
    await world.api.delete(CONFIG_MAP, "b", namespace=world.namespace)
    await world.config_map(name="end")
    events = await world.events(CONFIG_MAP, last, revision=start)
    assert story(events) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b"), ("ADDED", "end")]
    revisions = [int(event.revision) for event in events]
    assert revisions == sorted(set(revisions))
    assert all(event.revision == revision_of(event.object) for event in events)


async def test_a_watch_tells_changes_as_they_happen(world: World) -> None:
    """A change made while the watch is open comes through it."""
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        world.api.watch(CONFIG_MAP, revision=await now(world), namespace=world.namespace) as stream,
    ):
        made = await world.config_map()
        event = await anext(stream)
        assert (event.type, event.object) == (EventType.ADDED, made)
        await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
        assert (await anext(stream)).type is EventType.DELETED


async def test_a_watch_resumes_after_the_revision_it_is_given(world: World) -> None:
    """The change that made the given revision is not told again; the next one is."""
    made = await world.config_map()
    await world.config_map(name="end")
    events = await world.events(CONFIG_MAP, last, revision=revision_of(made))
    assert story(events) == [("ADDED", "end")]


async def test_a_deletion_shows_the_last_state_at_a_newer_revision(world: World) -> None:
    """DELETED carries the object as it last was, with the revision of its deletion."""
    made = await world.config_map(name="a", data={"x": "y"})
    await world.api.delete(CONFIG_MAP, "a", namespace=world.namespace)
    (event,) = await world.events(CONFIG_MAP, lambda _: True, revision=revision_of(made))
    assert event.type is EventType.DELETED
    assert event.object["data"] == {"x": "y"}
    assert event.object["metadata"]["uid"] == made["metadata"]["uid"]
    assert int(event.revision) > int(revision_of(made))


async def test_a_deletion_with_finalizers_is_told_in_its_steps(world: World) -> None:
    """First the mark, then the deletion when the last finalizer goes."""
    made = await world.config_map(name="a", finalizers=["growth.dev/a"])
    await world.api.delete(CONFIG_MAP, "a", namespace=world.namespace)
    await world.api.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": None}}, namespace=world.namespace)
    await world.config_map(name="end")
    events = await world.events(CONFIG_MAP, last, revision=revision_of(made))
    assert story(events) == [("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "end")]
    assert "deletionTimestamp" in events[0].object["metadata"]
    assert "deletionTimestamp" in events[1].object["metadata"]


async def test_the_write_that_frees_an_object_is_not_told(world: World) -> None:
    """The deletion that follows the last finalizer shows the object as it was before that last patch."""
    made = await world.config_map(name="a", finalizers=["growth.dev/a"], labels={"x": "1"})
    await world.api.delete(CONFIG_MAP, "a", namespace=world.namespace)
    last_patch = {"metadata": {"finalizers": None, "labels": {"x": "2"}}}
    await world.api.patch(CONFIG_MAP, "a", last_patch, namespace=world.namespace)
    events = await world.events(CONFIG_MAP, lambda event: event.type is EventType.DELETED, revision=revision_of(made))
    assert events[-1].object["metadata"]["finalizers"] == ["growth.dev/a"]
    assert events[-1].object["metadata"]["labels"] == {"x": "1"}


async def test_what_changes_nothing_is_not_told(world: World) -> None:
    """A patch without effect is no event."""
    made = await world.config_map(name="a")
    await world.api.patch(CONFIG_MAP, "a", {"data": {"a": "1"}}, namespace=world.namespace)
    await world.config_map(name="end")
    assert story(await world.events(CONFIG_MAP, last, revision=revision_of(made))) == [("ADDED", "end")]


async def test_a_watch_without_a_revision_begins_with_what_there_is(world: World) -> None:
    """An empty revision tells the objects that exist as ADDED, then the changes."""
    await world.config_map(name="a")
    await world.config_map(name="end")
    assert story(await world.events(CONFIG_MAP, last, revision="")) == [("ADDED", "a"), ("ADDED", "end")]


async def test_a_watch_keeps_to_its_namespace(world: World) -> None:
    """What happens in another namespace is not told."""
    start = await now(world)
    other = world.name("law")
    await world.api.create(NAMESPACE, {"metadata": {"name": other}})
    await world.api.create(CONFIG_MAP, {"metadata": {"name": "there"}}, namespace=other)
    await world.config_map(name="end")
    assert story(await world.events(CONFIG_MAP, last, revision=start)) == [("ADDED", "end")]


async def test_a_watch_over_all_namespaces_tells_all(world: World) -> None:
    """Without a namespace a watch tells of every namespace."""
    mark = world.name("mark")
    start = await now(world)
    other = world.name("law")
    await world.api.create(NAMESPACE, {"metadata": {"name": other}})
    for name, namespace in (("there", other), ("end", world.namespace)):
        body = {"metadata": {"name": name, "labels": {"mark": mark}}}
        await world.api.create(CONFIG_MAP, body, namespace=namespace)
    events = await world.events(CONFIG_MAP, last, revision=start, namespace="", labels=f"mark={mark}")
    assert story(events) == [("ADDED", "there"), ("ADDED", "end")]


async def test_leaving_a_label_selection_is_a_deletion(world: World) -> None:
    """An object that begins to match is ADDED; one that no longer matches is DELETED, at the revision of that change."""
    made = await world.config_map(name="a")
    labelled = {"metadata": {"labels": {"x": "y"}}}
    await world.api.patch(CONFIG_MAP, "a", labelled, namespace=world.namespace)
    await world.api.patch(CONFIG_MAP, "a", {"data": {"a": "2"}}, namespace=world.namespace)
    left = await world.api.patch(
        CONFIG_MAP, "a", {"metadata": {"labels": {"x": "z"}}, "data": {"a": "3"}}, namespace=world.namespace
    )
    await world.config_map(name="end", labels={"x": "y"})
    events = await world.events(CONFIG_MAP, last, revision=revision_of(made), labels="x=y")
    assert story(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "end")]
    assert events[2].revision == revision_of(left)
    assert events[2].object["metadata"]["labels"] == {"x": "y"}
    assert events[2].object["data"] == {"a": "2"}


async def test_entering_a_field_selection_is_an_addition(world: World) -> None:
    """A pod that is bound to the watched node appears as ADDED."""
    node = world.name("node")
    made = await world.pod(name="a")
    await world.api.bind("a", namespace=world.namespace, node=node)
    events = await world.events(POD, lambda _: True, revision=revision_of(made), fields=f"spec.nodeName={node}")
    assert story(events) == [("ADDED", "a")]


async def test_a_selected_object_that_never_matched_is_never_told(world: World) -> None:
    """Deleting what a selector does not choose is no event of that watch."""
    made = await world.config_map(name="a", labels={"x": "other"})
    await world.api.delete(CONFIG_MAP, "a", namespace=world.namespace)
    await world.config_map(name="end", labels={"x": "y"})
    events = await world.events(CONFIG_MAP, last, revision=revision_of(made), labels="x=y")
    assert story(events) == [("ADDED", "end")]


async def test_invented_kinds_are_watched_alike(world: World) -> None:
    """A custom resource's changes come in order, its status among them."""
    kind = await world.kind(FREE)
    start = (await world.api.list(kind, namespace=world.namespace)).revision
    await world.make(kind, {"n": 1}, name="a")
    await world.api.patch(kind, "a", {"spec": {"n": 2}}, namespace=world.namespace)
    await world.api.delete(kind, "a", namespace=world.namespace)
    events = await world.events(kind, lambda event: event.type is EventType.DELETED, revision=start)
    assert story(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_two_watches_tell_the_same(world: World) -> None:
    """Watches do not disturb each other."""
    start = await now(world)
    first, second = (asyncio.create_task(world.events(CONFIG_MAP, last, revision=start)) for _ in range(2))
    await world.config_map(name="a")
    await world.config_map(name="end")
    assert story(await first) == story(await second) == [("ADDED", "a"), ("ADDED", "end")]


async def test_a_watch_decodes_into_the_kinds_struct(world: World) -> None:
    """Typed kinds give structs, and the revision beside them."""
    start = await now(world)
    made = await world.config_map(labels={"x": "y"})
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        world.api.watch(TYPED_CONFIG_MAP, revision=start, namespace=world.namespace) as stream,
    ):
        event = await anext(stream)
    assert isinstance(event.object, meta.Object)
    assert event.object.metadata.labels == {"x": "y"}
    assert event.revision == revision_of(made)


async def test_a_watch_ends_when_its_time_is_over(world: World) -> None:
    """The server closes a watch at the time that was asked for; that is the end of the stream and no error."""
    start = await now(world)
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        world.api.watch(CONFIG_MAP, revision=start, namespace=world.namespace, timeout_seconds=1) as stream,
    ):
        assert [event.type async for event in stream if event.type is not EventType.BOOKMARK] == []


async def test_bookmarks_tell_how_far_a_watch_has_come(world: World) -> None:
    """A watch that chooses none of what happens is told the newer revision, as a bookmark that carries nothing else.

    Servers promise no single bookmark, they try once shortly before a watch ends: several watches are asked.
    """
    start = await now(world)
    unselected = asyncio.Event()

    async def bookmark(seconds: int) -> WatchEvent[meta.Object]:
        while True:  # where nothing came, the next watch or another's will hear one
            async with world.api.watch(
                TYPED_CONFIG_MAP, revision=start, namespace=world.namespace, labels="x=y", timeout_seconds=seconds
            ) as stream:
                if not unselected.is_set():
                    unselected.set()
                    await world.config_map(name="unselected")
                async for event in stream:
                    return event

    watches = [asyncio.create_task(bookmark(seconds)) for seconds in (3, 4, 5, 6, 8)]
    done, left = await asyncio.wait(watches, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    for watch in left:
        watch.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    event = done.pop().result()
    assert event.type is EventType.BOOKMARK
    assert int(event.revision) > int(start)
    assert event.object.metadata.resource_version == event.revision
    assert event.object.metadata.name == ""


async def test_a_watch_of_an_unknown_kind_is_not_found(world: World) -> None:
    """Watching a kind that is not served is NotFound at the start."""

    async def watch() -> None:
        nobody = Kind("nobody.growth.test", "v1", "Nothing", "nothings", True, dict)
        async with world.api.watch(nobody, revision="") as stream:
            await anext(stream)

    await refused(NotFound, watch())
