"""Laws of lists: label and field selectors, order, pages."""

import pytest

from growth.api.kinds import Json, Kind
from growth.kube.api import Page
from growth.kube.errors import BadRequest
from tests.conformance.kinds import CONFIG_MAP, EVENT, NAMESPACE, NODE, POD
from tests.conformance.world import FREE, World, name_of, refused


def names(page: Page[Json]) -> list[str]:
    return [name_of(item) for item in page.items]


async def animals(world: World) -> None:
    """Four maps to choose from."""
    for name, labels in {
        "ant": {"legs": "6", "size": "s"},
        "bee": {"legs": "6", "wings": ""},
        "cow": {"legs": "4", "size": "l"},
        "eel": {},
    }.items():
        await world.config_map(name=name, labels=labels)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("legs=6", "ant bee"),
        ("legs==6", "ant bee"),
        ("legs!=6", "cow eel"),
        ("legs in (4,5)", "cow"),
        ("legs in (4, 6),size", "ant cow"),
        ("legs notin (6)", "cow eel"),
        ("wings", "bee"),
        ("!size", "bee eel"),
        ("wings=", "bee"),
        ("legs=6,!wings", "ant"),
        ("legs>5", "ant bee"),
        ("legs<5", "cow"),
        ("growth.dev/none", ""),
        ("", "ant bee cow eel"),
    ],
)
async def test_labels_select(world: World, selector: str, expected: str) -> None:
    """Equality, inequality, sets, existence, absence and comparison choose as documented; a comma means and."""
    await animals(world)
    listed = await world.api.list(CONFIG_MAP, namespace=world.namespace, labels=selector)
    assert names(listed) == expected.split()


@pytest.mark.parametrize("selector", ["legs in 6", "=6", "legs in (", "le gs=6", "legs=6=7"])
async def test_a_malformed_label_selector_is_refused(world: World, selector: str) -> None:
    """A selector that cannot be read is a BadRequest, never an empty or a full list."""
    await refused(BadRequest, world.api.list(CONFIG_MAP, namespace=world.namespace, labels=selector))


async def test_every_kind_is_selected_by_name_and_namespace(world: World) -> None:
    """`metadata.name` and `metadata.namespace` select for built-in and invented kinds."""
    await animals(world)
    by_name = await world.api.list(CONFIG_MAP, namespace=world.namespace, fields="metadata.name=cow")
    assert names(by_name) == ["cow"]
    others = await world.api.list(CONFIG_MAP, namespace=world.namespace, fields="metadata.name!=cow")
    assert names(others) == ["ant", "bee", "eel"]
    kind = await world.kind(FREE)
    await world.make(kind, name="one")
    await world.make(kind, name="two")
    selector = f"metadata.name=two,metadata.namespace={world.namespace}"
    assert names(await world.api.list(kind, fields=selector)) == ["two"]


async def test_pods_are_selected_by_node(world: World) -> None:
    """`spec.nodeName` selects pods of a node, and those of none when it is empty."""
    node = world.name("node")
    await world.pod(name="bound", spec={"nodeName": node})
    await world.pod(name="free")
    for selector, expected in ((f"spec.nodeName={node}", ["bound"]), ("spec.nodeName=", ["free"])):
        assert names(await world.api.list(POD, namespace=world.namespace, fields=selector)) == expected


async def test_pods_are_selected_by_phase(world: World) -> None:
    """`status.phase` selects, with `!=` as well, and selectors add up."""
    await world.pod(name="waiting")
    done = await world.pod(name="done")
    await world.api.patch(
        POD, name_of(done), {"status": {"phase": "Succeeded"}}, namespace=world.namespace, subresource="status"
    )
    open_ = "status.phase!=Succeeded,status.phase!=Failed"
    assert names(await world.api.list(POD, namespace=world.namespace, fields=open_)) == ["waiting"]
    assert names(await world.api.list(POD, namespace=world.namespace, fields="status.phase=Succeeded")) == ["done"]
    assert names(await world.api.list(POD, namespace=world.namespace, fields=f"{open_},spec.nodeName=nowhere")) == []


async def test_pods_are_selected_by_scheduler(world: World) -> None:
    """`spec.schedulerName` selects pods."""
    await world.pod(name="ours", spec={"schedulerName": "ours"})
    await world.pod(name="usual")
    listed = await world.api.list(POD, namespace=world.namespace, fields="spec.schedulerName=default-scheduler")
    assert names(listed) == ["usual"]


async def test_nodes_are_selected_by_cordon(world: World) -> None:
    """`spec.unschedulable` selects nodes."""
    name = world.name("node")
    await world.api.create(NODE, {"metadata": {"name": name}, "spec": {"unschedulable": True}})
    for value, expected in (("true", [name]), ("false", [])):
        selector = f"metadata.name={name},spec.unschedulable={value}"
        assert names(await world.api.list(NODE, fields=selector)) == expected


async def test_events_are_selected_by_what_they_are_about(world: World) -> None:
    """`involvedObject.*` and `reason` select events."""
    for name, about in (("one", "a"), ("two", "b")):
        body = {
            "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "name": about, "namespace": world.namespace},
            "reason": "Tried",
            "type": "Normal",
        }
        await world.api.create(EVENT, body, namespace=world.namespace)
    selector = "involvedObject.kind=Pod,involvedObject.name=b,reason=Tried"
    assert names(await world.api.list(EVENT, namespace=world.namespace, fields=selector)) == ["two"]


@pytest.mark.parametrize("kind", [CONFIG_MAP, POD, NODE])
async def test_an_unsupported_field_selector_is_refused(world: World, kind: Kind[Json]) -> None:
    """A field that the server does not index is a BadRequest, never an empty or a full list."""
    await refused(BadRequest, world.api.list(kind, fields="spec.priority=1"))


async def test_an_invented_kind_selects_by_declared_fields_only(world: World) -> None:
    """A custom resource's own fields are no selectors unless the CRD says so."""
    kind = await world.kind(FREE)
    await refused(BadRequest, world.api.list(kind, fields="spec.size=1"))


async def test_a_list_is_of_one_namespace_or_of_all(world: World) -> None:
    """With a namespace a list holds its objects only; without, those of all namespaces."""
    other = world.name("law")
    await world.api.create(NAMESPACE, {"metadata": {"name": other}})
    mark = world.name("mark")
    await world.config_map(name="here", labels={"mark": mark})
    await world.api.create(CONFIG_MAP, {"metadata": {"name": "there", "labels": {"mark": mark}}}, namespace=other)
    assert names(await world.api.list(CONFIG_MAP, namespace=other)) == ["there"]
    everywhere = await world.api.list(CONFIG_MAP, labels=f"mark={mark}")
    assert sorted(names(everywhere)) == ["here", "there"]


async def test_a_list_of_nothing_is_empty(world: World) -> None:
    """A list in an empty namespace, or in one that does not exist, is empty and has a revision."""
    for namespace in (world.namespace, "no-such-namespace"):
        page = await world.api.list(CONFIG_MAP, namespace=namespace)
        assert page.items == ()
        assert page.next == ""
        assert int(page.revision) > 0


async def test_items_of_built_in_lists_do_not_repeat_their_kind(world: World) -> None:
    """Items of built-in kinds carry neither apiVersion nor kind; custom resources carry both."""
    await world.config_map()
    (item,) = (await world.api.list(CONFIG_MAP, namespace=world.namespace)).items
    assert {"apiVersion", "kind"}.isdisjoint(item)
    kind = await world.kind(FREE)
    await world.make(kind, {})
    (custom,) = (await world.api.list(kind, namespace=world.namespace)).items
    assert (custom["apiVersion"], custom["kind"]) == (kind.api_version, kind.kind)


async def test_lists_are_ordered_by_namespace_and_name(world: World) -> None:
    """Objects come ordered by their names, whatever the order of their creation."""
    for name in ("b", "c", "a", "a.b", "a-b"):
        await world.config_map(name=name)
    assert names(await world.api.list(CONFIG_MAP, namespace=world.namespace)) == sorted(("a", "a-b", "a.b", "b", "c"))


async def test_pages_together_are_the_list(world: World) -> None:
    """Pages of a limited size hold each object once, in order, and only the last has no successor."""
    wanted = [f"m{number}" for number in range(7)]
    for name in wanted:
        await world.config_map(name=name)
    seen: list[str] = []
    sizes = []
    page = await world.api.list(CONFIG_MAP, namespace=world.namespace, limit=3)
    while True:
        seen += names(page)
        sizes.append(len(page.items))
        if not page.next:
            break
        page = await world.api.list(CONFIG_MAP, namespace=world.namespace, limit=3, page=page.next)
    assert (seen, sizes) == (wanted, [3, 3, 1])


async def test_an_exact_last_page_has_no_successor(world: World) -> None:
    """A limit equal to the number of objects gives one page."""
    for name in ("a", "b"):
        await world.config_map(name=name)
    assert (await world.api.list(CONFIG_MAP, namespace=world.namespace, limit=2)).next == ""


async def test_pages_show_one_moment(world: World) -> None:
    """What changes between two pages is not in the later one: all pages carry the first one's revision."""
    for name in ("a", "b", "c", "d"):
        await world.config_map(name=name)
    first = await world.api.list(CONFIG_MAP, namespace=world.namespace, limit=2)
    await world.api.delete(CONFIG_MAP, "c", namespace=world.namespace)
    await world.config_map(name="e")
    await world.api.patch(CONFIG_MAP, "d", {"data": {"a": "new"}}, namespace=world.namespace)
    second = await world.api.list(CONFIG_MAP, namespace=world.namespace, limit=9, page=first.next)
    assert names(second) == ["c", "d"]
    assert second.items[1]["data"] == {"a": "1"}
    assert second.revision == first.revision


async def test_pages_respect_selectors(world: World) -> None:
    """The limit counts objects that the selector chooses."""
    await animals(world)
    first = await world.api.list(CONFIG_MAP, namespace=world.namespace, labels="legs=6", limit=1)
    assert names(first) == ["ant"]
    rest = await world.api.list(CONFIG_MAP, namespace=world.namespace, labels="legs=6", limit=5, page=first.next)
    assert names(rest) == ["bee"]


async def test_a_page_token_must_be_one(world: World) -> None:
    """A token that the server did not make is a BadRequest."""
    await refused(BadRequest, world.api.list(CONFIG_MAP, namespace=world.namespace, limit=1, page="not-a-token"))


async def test_invented_kinds_have_pages_too(world: World) -> None:
    """Custom resources page like built-in kinds."""
    kind = await world.kind(FREE)
    for name in ("a", "b", "c"):
        await world.make(kind, name=name)
    first = await world.api.list(kind, namespace=world.namespace, limit=2)
    second = await world.api.list(kind, namespace=world.namespace, limit=2, page=first.next)
    assert (names(first), names(second)) == (["a", "b"], ["c"])
