"""Laws of changes: read, edit, send the difference, and lose nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from growth.api import edits
from growth.api.kinds import Json, Kind
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.errors import NotFound
from tests.conformance.kinds import CONFIG_MAP, NODE
from tests.conformance.world import World, invented, name_of, refused, revision_of, uid_of

LISTED = invented(subresources={"status": {}})


class _Interrupted:
    """The two verbs that a change uses, with something happening between read and write."""

    def __init__(self, api: Api, happens: Callable[[], Awaitable[None]]) -> None:
        self._api = api
        self._happens = happens
        self.patch = api.patch

    async def get(self, kind: Kind[Json], name: str, *, namespace: str = "") -> Json:
        answer = await self._api.get(kind, name, namespace=namespace)
        await self._happens()
        return answer


def interrupted(api: Api, happens: Callable[[], Awaitable[None]]) -> Api:
    return cast("Api", _Interrupted(api, happens))


async def test_a_change_keeps_unknown_keys_inside_lists(world: World) -> None:
    """The other entries of a replaced list, and the other keys of the changed one, are as they were."""
    taints = [
        {"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        {"key": "b", "effect": "NoExecute"},
    ]
    node = {"metadata": {"name": world.name("node")}, "spec": {"taints": taints, "podCIDR": "10.0.0.0/24"}}
    made = await world.api.create(NODE, node)

    def edit(draft: Json) -> None:
        edits.add_taint(draft, key="a", effect="NoExecute", value="x")
        edits.remove_taint(draft, key="b")

    changed = await change(world.api, NODE, name_of(made), edit)
    kept = [taint for taint in changed["spec"]["taints"] if taint["key"] in ("a", "b")]
    assert kept == [{**taints[0], "value": "x"}]
    assert changed["spec"]["podCIDR"] == "10.0.0.0/24"


async def test_a_change_that_changes_nothing_makes_no_revision(world: World) -> None:
    """Nothing is written where the edit finds everything as it should be."""
    made = await world.config_map(labels={"a": "b"})

    def edit(draft: Json) -> None:
        edits.set_labels(draft, {"a": "b", "none": None})

    answer = await change(world.api, CONFIG_MAP, name_of(made), edit, namespace=world.namespace)
    assert answer == await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace)
    assert revision_of(answer) == revision_of(made)


async def test_a_change_of_status_leaves_the_rest(world: World) -> None:
    """Conditions are set through the subresource; unknown keys of status and its list stay, the spec is untouched."""
    kind = await world.kind(LISTED)
    made = await world.make(kind, {"a": [{"b": 1}]})
    known = {"conditions": [{"type": "Ready", "status": "True", "extra": "kept"}], "more": {"x": 1}}
    await world.api.patch(kind, name_of(made), {"status": known}, namespace=world.namespace, subresource="status")

    def edit(draft: Json) -> None:
        draft["status"]["conditions"][0]["status"] = "False"
        draft["status"]["conditions"].append({"type": "Other", "status": "True"})

    changed = await change(world.api, kind, name_of(made), edit, namespace=world.namespace, subresource="status")
    assert changed["spec"] == {"a": [{"b": 1}]}
    assert changed["status"] == {
        "conditions": [{"type": "Ready", "status": "False", "extra": "kept"}, {"type": "Other", "status": "True"}],
        "more": {"x": 1},
    }


async def test_writers_of_one_list_lose_nothing(world: World) -> None:
    """Ten finalizers added at once: conflicts are read afresh, and all ten stand."""
    made = await world.config_map()
    names = [f"growth.dev/f{number}" for number in range(10)]

    async def add(finalizer: str) -> None:
        def edit(draft: Json) -> None:
            edits.add_finalizer(draft, finalizer)

        await change(world.api, CONFIG_MAP, name_of(made), edit, namespace=world.namespace, attempts=50)

    await asyncio.gather(*map(add, names))
    stored = await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace)
    assert sorted(stored["metadata"]["finalizers"]) == names
    await world.api.patch(CONFIG_MAP, name_of(made), {"metadata": {"finalizers": None}}, namespace=world.namespace)


async def test_writers_of_different_keys_do_not_meet(world: World) -> None:
    """Each sets its own label on what it read before the other wrote: one attempt suffices, and both labels stand."""
    made = await world.config_map()
    both_have_read = asyncio.Barrier(2)

    async def meet() -> None:
        await both_have_read.wait()

    slow = interrupted(world.api, meet)

    async def label(key: str) -> None:
        def edit(draft: Json) -> None:
            edits.set_labels(draft, {key: "x"})

        await change(slow, CONFIG_MAP, name_of(made), edit, namespace=world.namespace, attempts=1)

    await asyncio.gather(label("a"), label("b"))
    stored = await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace)
    assert stored["metadata"]["labels"] == {"a": "x", "b": "x"}


async def test_an_object_made_again_is_edited_afresh(world: World) -> None:
    """Deleted and made again between read and write: the edit sees the new object before anything is written to it."""
    made = await world.config_map()
    seen: list[str] = []

    def edit(draft: Json) -> None:
        seen.append(uid_of(draft))
        edits.set_labels(draft, {"a": "x"})

    async def replace_once() -> None:
        if not seen:
            await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
            await world.config_map(name=name_of(made))

    api = interrupted(world.api, replace_once)
    changed = await change(api, CONFIG_MAP, name_of(made), edit, namespace=world.namespace)
    assert seen == [uid_of(made), uid_of(changed)]
    assert uid_of(changed) != uid_of(made)


async def test_a_change_of_what_is_gone_says_so(world: World) -> None:
    """There is nothing to edit, and the edit is not called."""

    def edit(_: Json) -> None:
        raise AssertionError

    await refused(NotFound, change(world.api, CONFIG_MAP, "nothing", edit, namespace=world.namespace))
