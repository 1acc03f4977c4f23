"""The fake of Linode's API is held to the vendor's own models, field by field: what they have it serves, and nothing else."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import linode_api4 as vendor
import pytest
from linode_api4.common import Price, RegionPrice
from linode_api4.objects.filtering import FilterableAttribute
from linode_api4.objects.lke import KubeVersion, LKENodePoolNode, LKENodePoolTaint, TieredKubeVersion
from linode_api4.objects.lock import Lock
from linode_api4.objects.region import RegionAvailabilityEntry

from growth.sim.clouds.linode import ENTERPRISE, STANDARD, FakeSettings, LinodeFake
from growth.sim.clouds.linode.bodies import InstanceChange, PoolChange
from tests.linode import new_fake, vendors_client

SMALL: Final = "g6-standard-2"
RULES: Final = {"inbound": [], "inbound_policy": "DROP", "outbound": [], "outbound_policy": "ACCEPT"}
NOT_IN_MODEL: Final = "recorded answers of the real API have it, and the client passes over it"
ENTERPRISE_ONLY: Final = "recorded answers have it of pools of the enterprise tier alone"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """An object that the API shows. `one` and `list` are where; `nested` are models of parts of it that the model does not name.

    Of the exemptions each has its reason: fields that the model lacks, that the fake lacks, filters that the model does not name.
    """

    model: type[Any]
    one: str = ""
    list: str = ""
    nested: Mapping[str, type[Any]] = dataclasses.field(default_factory=dict)
    more: Mapping[str, str] = dataclasses.field(default_factory=dict)
    lacks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    lacks_on_standard: Mapping[str, str] = dataclasses.field(default_factory=dict)
    filters: Mapping[str, str] = dataclasses.field(default_factory=dict)


KINDS: Final = {
    "cluster": Kind(
        model=vendor.LKECluster,
        one="/lke/clusters/{cluster}",
        list="/lke/clusters",
        more={"status": NOT_IN_MODEL, "locks": NOT_IN_MODEL},
        filters={"status": NOT_IN_MODEL},
    ),
    "pool": Kind(
        model=vendor.LKENodePool,
        one="/lke/clusters/{cluster}/pools/{pool}",
        list="/lke/clusters/{cluster}/pools",
        nested={"nodes": LKENodePoolNode, "taints": LKENodePoolTaint},
        more={"locks": NOT_IN_MODEL},
        lacks={"cluster_id": "the client knows it by the path"},
        lacks_on_standard=dict.fromkeys(("firewall_id", "k8s_version", "update_strategy"), ENTERPRISE_ONLY),
    ),
    "node": Kind(model=LKENodePoolNode, one="/lke/clusters/{cluster}/nodes/{node}"),
    "version": Kind(model=KubeVersion, one="/lke/versions/1.33", list="/lke/versions"),
    "version of a tier": Kind(
        model=TieredKubeVersion, one="/lke/tiers/{tier}/versions/{version}", list="/lke/tiers/{tier}/versions"
    ),
    "instance": Kind(
        model=vendor.Instance,
        one="/linode/instances/{instance}",
        list="/linode/instances",
        more={"placement_group": "the client makes it an object of its own"},
    ),
    "type": Kind(
        model=vendor.Type,
        one=f"/linode/types/{SMALL}",
        list="/linode/types",
        nested={"price": Price, "region_prices": RegionPrice},
        more={"class": "the client calls it type_class: the word is Python's"},
    ),
    "region": Kind(model=vendor.Region, one="/regions/us-east", list="/regions"),
    "availability": Kind(model=RegionAvailabilityEntry, list="/regions/availability"),
    "availability of a region": Kind(model=RegionAvailabilityEntry, one="/regions/us-east/availability"),
    "tag": Kind(model=vendor.Tag, list="/tags"),
    "tagged": Kind(model=vendor.Tag, list="/tags/shared"),
    "firewall": Kind(model=vendor.Firewall, one="/networking/firewalls/{firewall}", list="/networking/firewalls"),
    "placement group": Kind(model=vendor.PlacementGroup, one="/placement/groups/{group}", list="/placement/groups"),
    "lock": Kind(model=Lock, one="/locks/{lock}", list="/locks"),
    "image": Kind(model=vendor.Image, one="/images/linode/ubuntu24.04", list="/images"),
}
# Lists of a tag are of objects of any kind: each stands in an envelope with the name of its kind.
ENVELOPED: Final = frozenset({"tagged"})
# What the client writes of an object, and the fake's own form of such a request; others nothing changes here.
CHANGES: Final = {"instance": InstanceChange, "pool": PoolChange}
UNCHANGED: Final = "the fake has no PUT for it, as nothing of Growth's makes one"


@dataclasses.dataclass(frozen=True)
class Account:
    fake: LinodeFake
    client: vendor.LinodeClient
    numbers: Mapping[str, Any]

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path.format(**self.numbers), **more)

    def bodies(self, kind: Kind, name: str) -> list[dict[str, Any]]:
        """All that is shown of the kind, alone and in lists."""
        shown = [self.get(kind.one)] if kind.one else []
        shown = shown[0] if shown and isinstance(shown[0], list) else shown
        listed = self.get(kind.list)["data"] if kind.list and name not in ENVELOPED else []
        return [*shown, *listed]


@pytest.fixture(params=[STANDARD, ENTERPRISE])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    """In which there is one of everything, and nothing is empty that a model says more of."""
    tier = request.param
    fake, clock = new_fake(settings=FakeSettings(tier=tier))
    with vendors_client(fake) as client:
        (cluster,) = client.lke.clusters()
        taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
        pool = cluster.node_pool_create(SMALL, 1, tags=["a:b"], labels={"a": "b"}, taints=[taint])
        firewall = client.networking.firewall_create("nodes", RULES)
        group = client.placement.group_create("apart", "us-east", "anti_affinity:local", "flexible")
        instance = client.linode.instance_create(
            SMALL, "us-east", label="web-1", placement_group={"id": group.id}, firewall=firewall
        )
        clock.add(100)
        client.tag_create("shared", instances=[instance])
        lock = client.locks.create("linode", instance.id, "cannot_delete")
        (node,) = client.load(vendor.LKENodePool, pool.id, cluster.id).nodes
        numbers = {
            "cluster": cluster.id,
            "pool": pool.id,
            "node": node.id,
            "instance": instance.id,
            "tier": tier,
            "firewall": firewall.id,
            "group": group.id,
            "lock": lock.id,
            "version": cluster.k8s_version.id,
        }
        yield Account(fake, client, numbers)


def fields(model: type[Any]) -> set[str]:
    """What an object of the model has in the vendor's JSON."""
    if model is LKENodePoolNode:
        return set(vars(model(None, {}))) - {"instance"}  # which the client makes of the number
    if dataclasses.is_dataclass(model):
        return {each.name for each in dataclasses.fields(model)}
    return {name for name, told in model.properties.items() if not told.derived_class}  # those are lists of their own


def filters(model: type[Any]) -> set[str]:
    """By what the client lets people filter a list of such objects."""
    if dataclasses.is_dataclass(model):
        return fields(model)
    named = [each for parent in model.__mro__ for each in vars(parent).values()]
    return {each.name for each in named if isinstance(each, FilterableAttribute)}


def parts(kind: Kind) -> Mapping[str, type[Any]]:
    """Models of parts of an object."""
    told = getattr(kind.model, "properties", {})
    return {**{name: each.json_class for name, each in told.items() if each.json_class}, **kind.nested}


def test_every_object_that_is_served_has_a_model(account: Account) -> None:
    """Each path that is read is one of those below: who adds one says which of the vendor's models it is."""
    paths = {each.format(**account.numbers) for kind in KINDS.values() for each in (kind.one, kind.list) if each}
    served = [pattern for method, pattern in account.fake._routes if method == "GET"]
    assert {pattern for pattern in served if not any(re.fullmatch(pattern, path.strip("/")) for path in paths)} == set()


@pytest.mark.parametrize("name", KINDS)
def test_an_object_has_the_fields_of_its_model_and_no_others(account: Account, name: str) -> None:
    """Alone and in lists, in each tier; an exemption that is none any more goes."""
    kind = KINDS[name]
    standard = account.fake.cluster.tier == STANDARD
    lacks = {**kind.lacks, **(kind.lacks_on_standard if standard else {})}
    bodies = account.bodies(kind, name)
    assert bodies or name in ENVELOPED
    for body in bodies:
        assert fields(kind.model) - body.keys() == lacks.keys()
        assert body.keys() - fields(kind.model) == kind.more.keys()


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if parts(kind)])
def test_a_part_of_an_object_has_the_fields_of_its_model_and_no_others(account: Account, name: str) -> None:
    """Where there is such a part: one that is null or an empty list says nothing."""
    for part, model in parts(KINDS[name]).items():
        for body in account.bodies(KINDS[name], name):
            found = body[part] if isinstance(body[part], list) else [body[part]] if body[part] is not None else []
            for each in found:
                assert each.keys() == fields(model), part


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if hasattr(kind.model, "properties")])
def test_what_the_vendor_lets_people_change_can_be_changed(name: str) -> None:
    """The fake reads exactly those fields of a PUT that the model calls mutable."""
    mutable = {field for field, told in KINDS[name].model.properties.items() if told.mutable}
    if name not in CHANGES:
        paths = [pattern for method, pattern in new_fake()[0]._routes if method == "PUT"]
        path = re.sub(r"\{\w+\}", "1", KINDS[name].one).strip("/")
        assert not any(re.fullmatch(pattern, path) for pattern in paths), f"no longer so: {UNCHANGED}"
        return
    assert set(CHANGES[name].__struct_fields__) == mutable


def test_what_is_changed_is_shown() -> None:
    """Of a machine and of a pool every field that can be changed."""
    fake, clock = new_fake(settings=FakeSettings(tier=ENTERPRISE))
    with vendors_client(fake) as client:
        (cluster,) = client.lke.clusters()
        firewall = client.networking.firewall_create("nodes", RULES)
        pool = cluster.node_pool_create(SMALL, 1)
        instance = client.linode.instance_create(SMALL, "us-east", label="web-1")
        clock.add(100)
        said: dict[str, dict[str, Any]] = {
            f"/linode/instances/{instance.id}": {
                "label": "web-2",
                "group": "prod",
                "tags": ["a:b"],
                "watchdog_enabled": False,
                "alerts": {"cpu": 50},
                "backups": {"schedule": {"day": "Sunday", "window": "W0"}},
                "maintenance_policy": "linode/power_off_on",
            },
            f"/lke/clusters/{cluster.id}/pools/{pool.id}": {
                "count": 2,
                "label": "web",
                "tags": ["a:b"],
                "labels": {"a": "b"},
                "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
                "autoscaler": {"enabled": True, "min": 1, "max": 3},
                "k8s_version": "v1.32.8+lke3",
                "update_strategy": "on_recycle",
                "firewall_id": firewall.id,
            },
        }
        for (path, body), change in zip(said.items(), CHANGES.values(), strict=True):
            assert body.keys() == set(change.__struct_fields__)
            before = client.get(path)
            client.put(path, data=body)
            after = client.get(path)
            for field, value in body.items():
                assert before[field] != after[field], field
                held = after[field]
                assert held == ({**held, **value} if isinstance(value, dict) else value)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.list and name not in ENVELOPED])
def test_lists_are_filtered_by_what_the_model_names(account: Account, name: str) -> None:
    """A filter that is taken is one of the model's; one that the model has and the fake lacks is refused in the vendor's words,
    and never passed over.
    """
    kind = KINDS[name]
    names = {field for body in account.bodies(kind, name) for field in body}
    taken, refused = set(), {}
    for field in filters(kind.model) | names:
        try:
            account.get(kind.list, filters={field: "no such value"})
            taken.add(field)
        except vendor.ApiError as error:
            refused[field] = (error.status, error.errors)
    assert refused == {field: (400, [f"Cannot filter on {field}"]) for field in refused}
    assert taken
    assert taken - filters(kind.model) == kind.filters.keys()
