"""Laws of Growth's own definitions: what every server that has them accepts, fills in and refuses."""

from typing import Any

import pytest

from growth.api.crds import all_crds
from growth.api.decoding import convert
from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.kube.errors import Invalid
from tests.bad_objects import BAD_CHANGES, BAD_OBJECTS, BadChange, BadObject
from tests.conformance.world import World, declare, name_of, refused, revision_of
from tests.good_objects import GOOD_OBJECTS, GoodObject, node_pool

OURS = {name_of(crd): declare(crd) for crd in all_crds()}


async def created(world: World, kind: Kind[Any], document: Json) -> Json:
    """The object as stored, under a name of its own."""
    served = await world.kind(OURS[str(kind)])
    metadata = {"name": world.name("example")}
    return await world.api.create(
        served, {**document, "metadata": metadata}, namespace=world.namespace if kind.namespaced else ""
    )


def contains(stored: Any, sent: Any) -> bool:
    """Whether everything that was sent is stored; the server may have added to it."""
    if isinstance(sent, dict):
        return isinstance(stored, dict) and all(key in stored and contains(stored[key], sent[key]) for key in sent)
    if isinstance(sent, list):
        return len(stored) == len(sent) and all(map(contains, stored, sent))
    return bool(stored == sent)


@pytest.mark.parametrize("good", GOOD_OBJECTS, ids=lambda good: good.name)
async def test_good_objects_are_accepted(world: World, good: GoodObject) -> None:
    """Accepted, stored without loss, and with the defaults filled in that the struct has by itself."""
    stored = await created(world, good.kind, good.object)
    assert contains(stored["spec"], good.object["spec"])
    assert convert(stored, good.kind.type).spec == convert(good.object, good.kind.type).spec


@pytest.mark.parametrize("bad", BAD_OBJECTS, ids=lambda bad: bad.name)
async def test_bad_objects_are_refused(world: World, bad: BadObject) -> None:
    """Refused, and the message names the field that is at fault."""
    refusal = await refused(Invalid, created(world, bad.kind, bad.object), field=bad.field)
    assert f"{bad.field}: " in refusal.message


@pytest.mark.parametrize("bad", BAD_CHANGES, ids=lambda bad: bad.name)
async def test_bad_changes_are_refused(world: World, bad: BadChange) -> None:
    """What is fixed once cannot be changed, and the message names it."""
    stored = await created(world, bad.kind, bad.before)
    metadata = {"name": name_of(stored), "resourceVersion": revision_of(stored)}
    change = world.api.update(bad.kind.raw, name_of(stored), {**bad.after, "metadata": metadata})
    await refused(Invalid, change, field=bad.field)


async def test_a_simulated_class_is_ready_from_its_creation(world: World) -> None:
    """Its status is filled in whenever it is read, though nobody ever wrote one."""
    stored = await created(world, KWOK_NODE_CLASS, {"spec": {}})
    read = await world.api.get(KWOK_NODE_CLASS, name_of(stored))
    assert [(each.type, each.status) for each in read.status.conditions] == [("Ready", "True")]


async def test_a_pool_gets_the_defaults_of_its_definition(world: World) -> None:
    """A pool that says nothing of disruption and expiry has them written out for everyone to see."""
    stored = await created(world, NODE_POOL, node_pool())
    assert stored["spec"]["disruption"] == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
        "nodeLimitMode": "Hard",
    }
    assert stored["spec"]["template"]["spec"]["expireAfter"] == "720h"
