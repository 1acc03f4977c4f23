"""Laws that controllers carry out: owners and their dependents, namespaces and their contents."""

from growth.api.kinds import Json
from growth.kube.errors import Forbidden, NotFound
from tests.conformance.kinds import CONFIG_MAP, NAMESPACE, POD
from tests.conformance.world import FREE, World, eventually, name_of, refused, uid_of


def owned_by(*owners: Json, **extra: object) -> list[Json]:
    return [
        {"apiVersion": each["apiVersion"], "kind": each["kind"], "name": name_of(each), "uid": uid_of(each), **extra}
        for each in owners
    ]


async def test_dependents_go_with_their_owner(cluster: World) -> None:
    """In the background, what an object owns is deleted after it, to any depth."""
    owner = await cluster.config_map(name="owner")
    child = await cluster.config_map(name="child", ownerReferences=owned_by(owner))
    grandchild = await cluster.pod(name="grandchild", ownerReferences=owned_by(child, controller=True))
    await cluster.api.delete(CONFIG_MAP, "owner", namespace=cluster.namespace)
    await cluster.gone(CONFIG_MAP, child)
    await cluster.gone(POD, grandchild)


async def test_the_owner_goes_first(cluster: World) -> None:
    """A background deletion removes the owner at once, whatever it owns."""
    owner = await cluster.config_map(name="owner")
    await cluster.config_map(name="child", ownerReferences=owned_by(owner, blockOwnerDeletion=True))
    await cluster.api.delete(CONFIG_MAP, "owner", namespace=cluster.namespace)
    await refused(NotFound, cluster.api.get(CONFIG_MAP, "owner", namespace=cluster.namespace))


async def test_orphans_stay(cluster: World) -> None:
    """With propagation Orphan the dependents stay and lose their reference."""
    owner = await cluster.config_map(name="owner")
    child = await cluster.config_map(name="child", ownerReferences=owned_by(owner))
    await cluster.api.delete(CONFIG_MAP, "owner", namespace=cluster.namespace, propagation="Orphan")
    await cluster.gone(CONFIG_MAP, owner)
    left = await cluster.api.get(CONFIG_MAP, "child", namespace=cluster.namespace)
    assert uid_of(left) == uid_of(child)
    assert "ownerReferences" not in left["metadata"]


async def test_one_living_owner_is_enough(cluster: World) -> None:
    """An object with two owners stays while one of them lives, and drops the reference to the other."""
    first, second = [await cluster.config_map() for _ in range(2)]
    child = await cluster.config_map(name="child", ownerReferences=owned_by(first, second))
    probe = await cluster.config_map(name="probe", ownerReferences=owned_by(first))
    await cluster.api.delete(CONFIG_MAP, name_of(first), namespace=cluster.namespace)
    await cluster.gone(CONFIG_MAP, probe)
    await cluster.api.get(CONFIG_MAP, "child", namespace=cluster.namespace)
    await cluster.api.delete(CONFIG_MAP, name_of(second), namespace=cluster.namespace)
    await cluster.gone(CONFIG_MAP, child)


async def test_an_owner_that_never_was_owns_nothing_for_long(cluster: World) -> None:
    """An object whose only owner does not exist is collected."""
    ghost: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    child = await cluster.config_map(name="child", ownerReferences=owned_by(ghost))
    await cluster.gone(CONFIG_MAP, child)


async def test_an_owner_of_the_same_name_is_another(cluster: World) -> None:
    """The reference is to a uid: a namesake that was created later is no owner."""
    owner = await cluster.config_map(name="owner")
    references = owned_by(owner)
    await cluster.api.delete(CONFIG_MAP, "owner", namespace=cluster.namespace)
    await cluster.config_map(name="owner")
    child = await cluster.config_map(name="child", ownerReferences=references)
    await cluster.gone(CONFIG_MAP, child)


async def test_a_finalizer_holds_a_dependent(cluster: World) -> None:
    """A dependent with a finalizer is marked and stays until the finalizer goes."""
    owner = await cluster.config_map(name="owner")
    child = await cluster.config_map(name="child", ownerReferences=owned_by(owner), finalizers=["growth.dev/a"])
    await cluster.api.delete(CONFIG_MAP, "owner", namespace=cluster.namespace)
    events = await cluster.events(
        CONFIG_MAP,
        lambda event: "deletionTimestamp" in event.object["metadata"],
        revision=child["metadata"]["resourceVersion"],
        fields="metadata.name=child",
    )
    assert events[-1].object["metadata"]["finalizers"] == ["growth.dev/a"]
    await cluster.api.patch(CONFIG_MAP, "child", {"metadata": {"finalizers": None}}, namespace=cluster.namespace)
    await cluster.gone(CONFIG_MAP, child)


async def test_a_deleted_namespace_takes_its_contents_along(cluster: World) -> None:
    """A namespace is Terminating while its contents go, takes nothing new, and is gone after them."""
    held = await cluster.config_map(name="held", finalizers=["growth.dev/a"])
    loose = await cluster.config_map(name="loose")
    space = await cluster.api.get(NAMESPACE, cluster.namespace)
    await cluster.api.delete(NAMESPACE, cluster.namespace)
    assert (await cluster.api.get(NAMESPACE, cluster.namespace))["status"]["phase"] == "Terminating"
    await cluster.gone(CONFIG_MAP, loose)
    # The server's own cache may learn of it a moment after the controller did.
    error = await eventually(lambda: refusal(cluster), lambda answer: answer is not None)
    assert error is not None
    assert "being terminated" in error.message
    await cluster.api.patch(CONFIG_MAP, name_of(held), {"metadata": {"finalizers": None}}, namespace=cluster.namespace)
    await cluster.gone(NAMESPACE, space)


async def refusal(world: World) -> Forbidden | None:
    """Why nothing new is taken; None while something is."""
    try:
        await world.config_map()
    except Forbidden as error:
        return error
    return None


async def test_invented_kinds_own_too(cluster: World) -> None:
    """A custom resource can own built-in objects. (The real collector looks for new kinds every 30 s.)"""
    kind = await cluster.kind(FREE)
    owner = await cluster.make(kind, {})
    child = await cluster.config_map(name="child", ownerReferences=owned_by(owner))
    await cluster.api.delete(kind, name_of(owner), namespace=cluster.namespace)
    await cluster.gone(CONFIG_MAP, child, patience_seconds=240.0)
