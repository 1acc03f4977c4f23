"""Laws of the kinds that Growth itself defines: what is right is kept, what is wrong is refused by its field."""

from typing import Any

import pytest

from growth.api.crds import all_crds
from growth.api.kinds import Json, Kind
from growth.kube.errors import Invalid
from tests.bad_objects import BAD_CHANGES, BAD_OBJECTS, BadChange, BadObject
from tests.conformance.world import World, declare, name_of, refused, revision_of
from tests.good_objects import GOOD_OBJECTS, GoodObject

DEFINITIONS = {name_of(definition): declare(definition) for definition in all_crds()}


async def served_kind(world: World, kind: Kind[Any]) -> Kind[Json]:
    return await world.kind(DEFINITIONS[str(kind)])


async def created(world: World, kind: Kind[Json], body: Json) -> Json:
    return await world.api.create(kind, body, namespace=str(body["metadata"].get("namespace", "")))


async def removed(world: World, kind: Kind[Json], item: Json) -> None:
    await world.api.delete(kind, name_of(item), namespace=str(item["metadata"].get("namespace", "")))


def contains(stored: Any, sent: Any) -> bool:
    """Whether everything that was sent is stored; the server may have added to it."""
    if isinstance(sent, dict):
        return isinstance(stored, dict) and all(key in stored and contains(stored[key], sent[key]) for key in sent)
    if isinstance(sent, list):
        return len(stored) == len(sent) and all(map(contains, stored, sent))
    return bool(stored == sent)


@pytest.mark.parametrize("good", GOOD_OBJECTS, ids=lambda good: good.name)
async def test_a_good_object_is_kept_whole(world: World, good: GoodObject) -> None:
    """What people write is accepted and stored without loss."""
    kind = await served_kind(world, good.kind)
    stored = await created(world, kind, good.object)
    await removed(world, kind, stored)
    assert contains(stored, good.object)


@pytest.mark.parametrize("bad", BAD_OBJECTS, ids=lambda bad: bad.name)
async def test_a_bad_object_is_refused(world: World, bad: BadObject) -> None:
    """Each fault is refused, naming the field."""
    kind = await served_kind(world, bad.kind)
    await refused(Invalid, created(world, kind, bad.object), field=bad.field)


@pytest.mark.parametrize("bad", BAD_CHANGES, ids=lambda bad: bad.name)
async def test_a_bad_change_is_refused(world: World, bad: BadChange) -> None:
    """What is fixed once cannot be changed, and the refusal names it."""
    kind = await served_kind(world, bad.kind)
    stored = await created(world, kind, bad.before)
    after = {**bad.after, "metadata": {**bad.after["metadata"], "resourceVersion": revision_of(stored)}}
    try:
        await refused(Invalid, world.api.update(kind, name_of(stored), after), field=bad.field)
    finally:
        await removed(world, kind, stored)
