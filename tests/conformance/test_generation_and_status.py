"""Laws of generation, of the status subresource and of the scale subresource."""

from typing import Any

from growth.api.kinds import Json, Kind
from growth.kube.errors import Conflict, Invalid, NotFound
from tests.conformance.kinds import CONFIG_MAP, DEPLOYMENT, NODE, POD
from tests.conformance.test_patches import deployment
from tests.conformance.world import World, invented, name_of, refused, revision_of

STATUS: Json = {"status": {}}
SIZED: Json = {
    "type": "object",
    "properties": {"replicas": {"type": "integer", "minimum": 0}, "text": {"type": "string"}},
}
COUNTED: Json = {
    "type": "object",
    "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}, "text": {"type": "string"}},
}
SCALE: Json = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


PLAIN = invented(SIZED, status=COUNTED)
REPORTING = invented(SIZED, status=COUNTED, subresources=STATUS)
SCALABLE = invented(SIZED, status=COUNTED, subresources=SCALE)


async def patched(world: World, kind: Kind[Json], item: Json, patch: Json, **options: Any) -> Json:
    return await world.api.patch(kind, name_of(item), patch, namespace=world.namespace, **options)


async def test_a_deployment_starts_at_generation_one(world: World) -> None:
    """Generation is 1 at creation, one more after each change of the spec, and untouched by labels."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    assert made["metadata"]["generation"] == 1
    changed = await patched(world, DEPLOYMENT, made, {"spec": {"replicas": 3}})
    assert changed["metadata"]["generation"] == 2
    labelled = await patched(world, DEPLOYMENT, made, {"metadata": {"labels": {"x": "y"}}})
    assert labelled["metadata"]["generation"] == 2


async def test_a_status_change_is_no_new_generation(world: World) -> None:
    """A write to a Deployment's status leaves its generation alone and makes a new revision."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    changed = await patched(world, DEPLOYMENT, made, {"status": {"replicas": 1}}, subresource="status")
    assert changed["metadata"]["generation"] == 1
    assert int(revision_of(changed)) > int(revision_of(made))


async def test_an_invented_kind_counts_generations_of_its_spec(world: World) -> None:
    """With a status subresource, only what is neither metadata nor status counts."""
    kind = await world.kind(REPORTING)
    made = await world.make(kind, {"replicas": 1})
    assert made["metadata"]["generation"] == 1
    labelled = await patched(world, kind, made, {"metadata": {"labels": {"x": "y"}}})
    assert labelled["metadata"]["generation"] == 1
    reported = await patched(world, kind, made, {"status": {"replicas": 1}}, subresource="status")
    assert reported["metadata"]["generation"] == 1
    changed = await patched(world, kind, made, {"spec": {"replicas": 2}})
    assert changed["metadata"]["generation"] == 2


async def test_without_a_status_subresource_a_status_counts_as_content(world: World) -> None:
    """Without the subresource, `status` is a field like others: it is kept at creation, and a change counts."""
    kind = await world.kind(PLAIN)
    made = await world.api.create(
        kind, {"metadata": {"name": "x"}, "status": {"text": "kept"}}, namespace=world.namespace
    )
    assert made["status"] == {"text": "kept"}
    changed = await patched(world, kind, made, {"status": {"text": "other"}})
    assert changed["status"] == {"text": "other"}
    assert changed["metadata"]["generation"] == 2


async def test_kinds_without_a_generation_have_none(world: World) -> None:
    """ConfigMaps carry no generation."""
    assert "generation" not in (await world.config_map())["metadata"]


async def test_a_patch_without_effect_is_no_new_generation(world: World) -> None:
    """Setting the value that is there counts as nothing."""
    kind = await world.kind(REPORTING)
    made = await world.make(kind, {"replicas": 1})
    again = await patched(world, kind, made, {"spec": {"replicas": 1}})
    assert (again["metadata"]["generation"], revision_of(again)) == (1, revision_of(made))


async def test_a_status_at_creation_is_dropped(world: World) -> None:
    """With a status subresource, the status of a new object is not the creator's to set."""
    kind = await world.kind(REPORTING)
    body = {"metadata": {"name": "x"}, "spec": {"replicas": 1}, "status": {"replicas": 9}}
    assert "status" not in await world.api.create(kind, body, namespace=world.namespace)


async def test_the_main_resource_cannot_change_the_status(world: World) -> None:
    """A patch or update of the object itself leaves the status as it was."""
    kind = await world.kind(REPORTING)
    made = await world.make(kind, {"replicas": 1})
    reported = await patched(world, kind, made, {"status": {"replicas": 1}}, subresource="status")
    changed = await patched(world, kind, made, {"spec": {"replicas": 2}, "status": {"replicas": 9}})
    assert changed["status"] == {"replicas": 1}
    replaced = await world.api.update(
        kind, name_of(made), {**changed, "status": {"replicas": 9}}, namespace=world.namespace
    )
    assert replaced["status"] == reported["status"]


async def test_the_status_subresource_cannot_change_the_rest(world: World) -> None:
    """A patch of the status leaves spec and labels as they were."""
    kind = await world.kind(REPORTING)
    made = await world.make(kind, {"replicas": 1}, labels={"x": "y"})
    patch = {"spec": {"replicas": 9}, "metadata": {"labels": {"x": "z"}}, "status": {"replicas": 1}}
    changed = await patched(world, kind, made, patch, subresource="status")
    assert changed["spec"] == {"replicas": 1}
    assert changed["metadata"]["labels"] == {"x": "y"}
    assert changed["status"] == {"replicas": 1}


async def test_the_status_subresource_obeys_preconditions(world: World) -> None:
    """A status patch with a stale revision is a Conflict."""
    kind = await world.kind(REPORTING)
    made = await world.make(kind, {"replicas": 1})
    await patched(world, kind, made, {"spec": {"replicas": 2}})
    stale = patched(world, kind, made, {"status": {"replicas": 1}}, subresource="status", revision=revision_of(made))
    await refused(Conflict, stale)


async def test_the_status_is_checked_too(world: World) -> None:
    """A status that breaks the schema is refused, naming the field."""
    kind = await world.kind(REPORTING)
    made = await world.make(kind, {"replicas": 1})
    call = patched(world, kind, made, {"status": {"replicas": "many"}}, subresource="status")
    await refused(Invalid, call, field="status.replicas")


async def test_a_kind_without_the_subresource_has_no_such_path(world: World) -> None:
    """Writing a subresource that the kind does not have is NotFound."""
    kind = await world.kind(PLAIN)
    made = await world.make(kind, {"replicas": 1})
    for subresource in ("status", "scale"):
        await refused(NotFound, patched(world, kind, made, {"status": {}}, subresource=subresource))
    await refused(NotFound, patched(world, CONFIG_MAP, await world.config_map(), {"data": {}}, subresource="status"))


async def test_a_pods_status_is_the_servers_at_creation(world: World) -> None:
    """A new pod is Pending, whatever its creator says."""
    spec = {"containers": [{"name": "main", "image": "img"}]}
    body = {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Running"}}
    made = await world.api.create(POD, body, namespace=world.namespace)
    assert made["status"]["phase"] == "Pending"


async def test_a_nodes_spec_and_status_are_apart(world: World) -> None:
    """A Node's status changes through its subresource only, its spec through the object only."""
    name = world.name("node")
    made = await world.api.create(NODE, {"metadata": {"name": name}})
    patch = {"spec": {"unschedulable": True}, "status": {"nodeInfo": {"kubeletVersion": "v9"}}}
    changed = await world.api.patch(NODE, name, patch)
    assert changed["spec"]["unschedulable"] is True
    assert changed["status"]["nodeInfo"] == made["status"]["nodeInfo"]
    reported = await world.api.patch(
        NODE, name, {"spec": {"unschedulable": None}, "status": {"capacity": {"cpu": "4"}}}, subresource="status"
    )
    assert reported["spec"]["unschedulable"] is True
    assert reported["status"]["capacity"] == {"cpu": "4"}


async def test_a_deployment_is_scaled_through_its_subresource(world: World) -> None:
    """A patch of the scale sets `spec.replicas`, and the answer is a Scale of the same object."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    scale = await patched(world, DEPLOYMENT, made, {"spec": {"replicas": 4}}, subresource="scale")
    assert scale["kind"] == "Scale"
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"]["selector"] == f"app={name_of(made)}"
    assert name_of(scale) == name_of(made)
    found = await world.api.get(DEPLOYMENT, name_of(made), namespace=world.namespace)
    assert found["spec"]["replicas"] == 4
    assert found["metadata"]["generation"] == 2


async def test_a_scale_of_nothing_leaves_the_number_out(world: World) -> None:
    """The answer to a scale to zero has no replicas in its spec; the object has zero."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    kind = await world.kind(SCALABLE)
    custom = await world.make(kind, {"replicas": 2})
    for scaled, item in ((DEPLOYMENT, made), (kind, custom)):
        scale = await patched(world, scaled, item, {"spec": {"replicas": 0}}, subresource="scale")
        assert scale["spec"] == {}
        found = await world.api.get(scaled, name_of(item), namespace=world.namespace)
        assert found["spec"]["replicas"] == 0


async def test_a_negative_count_in_a_status_is_refused(world: World) -> None:
    """A Deployment's status is checked: its counts are not below zero."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    call = patched(world, DEPLOYMENT, made, {"status": {"replicas": -1}}, subresource="status")
    await refused(Invalid, call, field="status.replicas")


async def test_a_negative_scale_is_refused(world: World) -> None:
    """Replicas below zero are refused, naming the field."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    call = patched(world, DEPLOYMENT, made, {"spec": {"replicas": -1}}, subresource="scale")
    await refused(Invalid, call, field="spec.replicas")


async def test_an_invented_kind_is_scaled_by_its_paths(world: World) -> None:
    """A CRD's scale subresource reads and writes where its JSON paths point."""
    kind = await world.kind(SCALABLE)
    made = await world.make(kind, {"replicas": 1, "text": "kept"})
    await patched(world, kind, made, {"status": {"replicas": 1, "selector": "a=b"}}, subresource="status")
    scale = await patched(world, kind, made, {"spec": {"replicas": 5}}, subresource="scale")
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert scale["spec"] == {"replicas": 5}
    assert scale["status"] == {"replicas": 1, "selector": "a=b"}
    found = await world.api.get(kind, name_of(made), namespace=world.namespace)
    assert found["spec"] == {"replicas": 5, "text": "kept"}
    assert found["metadata"]["generation"] == 2


async def test_what_has_no_replicas_can_be_scaled(world: World) -> None:
    """An object whose replicas are not set is scaled to any number, zero too, and then has it."""
    kind = await world.kind(SCALABLE)
    for wanted in (0, 3):
        made = await world.make(kind, {})
        await patched(world, kind, made, {"spec": {"replicas": wanted}}, subresource="scale")
        found = await world.api.get(kind, name_of(made), namespace=world.namespace)
        assert found["spec"] == {"replicas": wanted}


async def test_a_scale_is_replaced_with_its_revision(world: World) -> None:
    """An update of the scale with a stale revision is a Conflict; with the current one it passes."""
    kind = await world.kind(SCALABLE)
    made = await world.make(kind, {"replicas": 1})
    scale = await patched(world, kind, made, {"spec": {"replicas": 2}}, subresource="scale")
    passed = await world.api.update(
        kind, name_of(made), {**scale, "spec": {"replicas": 3}}, namespace=world.namespace, subresource="scale"
    )
    assert passed["spec"] == {"replicas": 3}
    stale = world.api.update(
        kind, name_of(made), {**scale, "spec": {"replicas": 4}}, namespace=world.namespace, subresource="scale"
    )
    await refused(Conflict, stale)
