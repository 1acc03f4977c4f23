"""Linode's own client drives the fake of Linode's API, as it would drive the real one."""

import base64
from collections.abc import Iterator

import linode_api4
import pytest
from linode_api4 import ApiError, Instance, LKECluster, LKENodePool, Tag
from linode_api4.objects.lke import KubeVersion, TieredKubeVersion

from growth.sim.clouds.linode import ENTERPRISE, STANDARD, FakeSettings, Faults, LinodeFake
from tests.hetzner import Ticking
from tests.linode import new_fake, vendors_client

SMALL = "g6-standard-2"


class Account:
    """The fake, its clock and the client on it."""

    def __init__(self, fake: LinodeFake, clock: Ticking, client: linode_api4.LinodeClient) -> None:
        self.fake = fake
        self.clock = clock
        self.client = client

    @property
    def cluster(self) -> LKECluster:
        (found,) = self.client.lke.clusters()
        return found

    def pool(self, number: int) -> LKENodePool:
        return self.client.load(LKENodePool, number, self.fake.cluster.id)


@pytest.fixture(params=[STANDARD, ENTERPRISE])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    fake, clock = new_fake(settings=FakeSettings(tier=request.param, stock={("g6-standard-8", "us-east"): 1}))
    with vendors_client(fake) as client:
        yield Account(fake, clock, client)


def standard(account: Account) -> bool:
    return account.fake.cluster.tier == STANDARD


def test_the_cluster_says_what_it_is(account: Account) -> None:
    """Its label, region and tier."""
    cluster = account.cluster
    assert (cluster.label, cluster.tier) == ("growth", account.fake.cluster.tier)
    assert cluster.region.id == "us-east"
    assert "Kubernetes" in cluster.region.capabilities


def test_a_pool_comes_as_its_tier_has_it(account: Account) -> None:
    """Standard lists nodes at once and their machines seconds later; enterprise tags machines and lists nodes late."""
    made = account.cluster.node_pool_create(SMALL, 2, tags=["team:web"], labels={"a": "b"})
    assert (made.count, made.type.id, made.tags, made.labels.dict) == (2, SMALL, ["team:web"], {"a": "b"})
    assert [node.instance_id for node in made.nodes] == ([None, None] if standard(account) else [])
    account.clock.add(5)
    instances = list(account.client.linode.instances())
    assert len(instances) == 2
    nodes = account.pool(made.id).nodes
    if standard(account):
        assert [node.instance_id for node in nodes] == [each.id for each in instances]
        assert [each.tags for each in instances] == [[], []]
    else:
        assert nodes == []
        own = [f"lke{account.fake.cluster.id}", f"nodepool={made.id}"]
        assert [each.tags for each in instances] == [["team:web", *own]] * 2
    account.clock.add(60)
    assert {node.instance_id for node in account.pool(made.id).nodes} == {each.id for each in instances}
    assert {node.status for node in account.pool(made.id).nodes} == {"ready"}


def test_pools_are_scaled_and_nodes_are_deleted_one_by_one(account: Account) -> None:
    """A node that is deleted lowers the count and leaves the others alone; the machine is gone after a while."""
    pool = account.cluster.node_pool_create(SMALL, 1)
    account.clock.add(100)
    pool = account.pool(pool.id)
    pool.count = 3
    assert pool.save()
    account.clock.add(100)
    first, *others = account.pool(pool.id).nodes
    assert account.cluster.node_view(first.id).instance_id == first.instance_id
    account.cluster.node_delete(first.id)
    after = account.pool(pool.id)
    assert (after.count, [node.id for node in after.nodes]) == (2, [node.id for node in others])
    assert account.client.load(Instance, first.instance_id).status == "deleting"
    account.clock.add(30)
    with pytest.raises(ApiError) as gone:
        account.client.load(Instance, first.instance_id)
    assert (gone.value.status, gone.value.errors) == (404, ["Not found"])
    after.delete()
    account.clock.add(30)
    assert list(account.cluster.pools) == []
    assert list(account.client.linode.instances()) == []
    assert account.fake.ledger.standing == ()


def test_a_machine_that_is_taken_from_a_node_is_replaced(account: Account) -> None:
    """LKE gives the node another one: such machines must not be deleted by themselves."""
    pool = account.cluster.node_pool_create(SMALL, 1)
    account.clock.add(100)
    (node,) = account.pool(pool.id).nodes
    node.instance.delete()
    account.clock.add(100)
    (after,) = account.pool(pool.id).nodes
    assert after.id == node.id
    assert after.instance_id not in {None, node.instance_id}


def test_tags_are_replaced_added_and_limited(account: Account) -> None:
    """PUT replaces them all, POST adds one to several machines, none is longer than 50 characters."""
    account.cluster.node_pool_create(SMALL, 2)
    account.clock.add(100)
    one, two = account.client.linode.instances()
    one.tags = ["karpenter.sh/nodeclaim:web-abc12", "growth.dev/cluster:x"]
    assert one.save()
    assert account.client.load(Instance, one.id).tags == ["karpenter.sh/nodeclaim:web-abc12", "growth.dev/cluster:x"]
    account.client.tag_create("shared", instances=[one, two])
    assert "shared" in account.client.load(Instance, two.id).tags
    assert "shared" in {each.label for each in account.client.tags()}
    two.tags = ["x" * 51]
    with pytest.raises(ApiError) as refused:
        two.save()
    assert refused.value.status == 400
    assert "tags" in str(refused.value)


def test_a_tag_shows_what_has_it_and_takes_itself_off(account: Account) -> None:
    """By its whole text; once it is deleted nothing has it and it is not there."""
    account.cluster.node_pool_create(SMALL, 2, tags=["team:web"])
    account.clock.add(100)
    one, two = account.client.linode.instances()
    account.client.tag_create("growth.dev/a:b c", instances=[one, two])
    account.client.tag_create("growth.dev/a:b", instances=[two])
    account.client.tag_create("0123")
    assert [each.id for each in account.client.load(Tag, "growth.dev/a:b").objects] == [two.id]
    assert {each.id for each in account.client.load(Tag, "growth.dev/a:b c").objects} == {one.id, two.id}
    assert list(account.client.load(Tag, "0123").objects) == []
    pools = ["team:web"] if not standard(account) else []
    assert [each.label for each in account.client.tags(Tag.label == "team:web")] == pools
    assert account.client.load(Tag, "growth.dev/a:b c").delete()
    assert "growth.dev/a:b c" not in account.client.load(Instance, one.id).tags
    assert "growth.dev/a:b" in account.client.load(Instance, two.id).tags
    for label in ("growth.dev/a:b c", "123", "none"):
        with pytest.raises(ApiError) as gone:
            account.client.load(Tag, label)
        assert (gone.value.status, gone.value.errors) == (404, ["Not found"])


def test_filters_find_parts_of_texts(account: Account) -> None:
    """A name that is contained in a longer one finds both; what cannot be filtered by is refused."""
    account.cluster.node_pool_create(SMALL, 2)
    account.clock.add(100)
    one, two = account.client.linode.instances()
    for instance, name in ((one, "web"), (two, "web-2")):
        instance.tags = [f"karpenter.sh/nodeclaim:{name}"]
        instance.save()
    tags = Instance.tags
    found = account.client.linode.instances(tags.contains("karpenter.sh/nodeclaim:web"))
    assert len(found) == 2
    found = account.client.linode.instances(tags.contains("nodeclaim:web-2"), Instance.region == "us-east")
    assert [each.id for each in found] == [two.id]
    either = linode_api4.or_(tags.contains("nodeclaim:web-2"), Instance.label == one.label)
    assert {each.id for each in account.client.linode.instances(either)} == {one.id, two.id}
    with pytest.raises(ApiError) as refused:
        account.client.get("/linode/instances", filters={"foo": "bar"})
    assert (refused.value.status, refused.value.errors) == (400, ["Cannot filter on foo"])


def test_other_lists_are_filtered_too(account: Account) -> None:
    """What is sold, where, and what the account has."""
    premium = account.client.linode.types(linode_api4.Type.type_class == "premium")
    assert {each.id for each in premium} == {"g7-premium-2", "g7-premium-4", "g7-premium-8"}
    assert [each.id for each in account.client.regions(linode_api4.Region.country == "nowhere")] == []
    (german,) = account.client.regions(linode_api4.Region.country == "de")
    assert (german.id, german.resolvers.ipv4) == ("eu-central", "192.0.2.53")
    assert {each.id for each in account.client.images(linode_api4.Image.vendor == "Ubuntu")} == {
        "linode/ubuntu22.04",
        "linode/ubuntu24.04",
    }
    assert [each.id for each in account.client.images(linode_api4.Image.label == "Ubuntu 24.04")] == [
        "linode/ubuntu24.04"
    ]
    account.fake.account.images["private/1"] = "mine"
    account.fake.account.without_cloud_init.add("private/1")
    own = account.client.images(linode_api4.Image.is_public == False)  # noqa: E712 - a filter, and no comparison
    assert {each.id: list(each.capabilities) for each in own} == {"private/1": []}
    for path in ("/linode/types", "/regions", "/images", "/networking/firewalls", "/tags"):
        with pytest.raises(ApiError) as refused:
            account.client.get(path, filters={"foo": "bar"})
        assert (refused.value.status, refused.value.errors) == (400, ["Cannot filter on foo"])


def test_lists_come_in_pages(account: Account) -> None:
    """Of 25 to 500."""
    account.cluster.node_pool_create(SMALL, 60)
    account.clock.add(100)
    account.client.page_size = 25
    listed = account.client.linode.instances()
    assert len({each.id for each in listed}) == len(listed) == 60
    account.client.page_size = 24
    with pytest.raises(ApiError):
        account.client.linode.instances()


def test_types_have_prices_and_regions_say_what_they_lack(account: Account) -> None:
    """A region's price stands beside the usual one; availability is told only of plans that are not everywhere."""
    types = {each.id: each for each in account.client.linode.types()}
    assert (types[SMALL].vcpus, types[SMALL].memory, types[SMALL].price.hourly) == (2, 4096, 0.036)
    assert {each.id: each.hourly for each in types[SMALL].region_prices}["br-gru"] == pytest.approx(0.0504)
    told = {(each.region, each.plan): each.available for each in account.client.regions.availability()}
    assert told["ap-west", "g7-premium-2"] is False
    assert ("us-east", SMALL) not in told
    (region,) = [each for each in account.client.regions() if each.id == "ap-west"]
    assert [each.available for each in region.availability] == [False] * 3


def test_machines_of_one_s_own_are_made_with_user_data(account: Account) -> None:
    """Where the region has metadata; their labels are unique."""
    data = base64.b64encode(b"#cloud-config\n").decode()
    given = {"image": "linode/ubuntu24.04", "root_pass": "4 words, of no account", "metadata": {"user_data": data}}
    made = account.client.linode.instance_create(SMALL, "us-east", label="web-1", tags=["a:b"], **given)
    assert (made.label, made.has_user_data, made.lke_cluster_id, made.tags) == ("web-1", True, None, ["a:b"])
    assert [each.user_data for each in account.fake.machines()] == ["#cloud-config\n"]
    for region, label in (("us-east", "web-1"), ("ap-west", "web-2")):
        with pytest.raises(ApiError) as refused:
            account.client.linode.instance_create(SMALL, region, label=label, **given)
        assert refused.value.status == 400
    made.delete()
    account.clock.add(60)
    assert account.fake.machines() == ()


def test_what_cannot_be_had_is_refused(account: Account) -> None:
    """No capacity, all or nothing, and nothing is left of a pool that could not be made."""
    pool = account.cluster.node_pool_create("g6-standard-8", 1)
    with pytest.raises(ApiError) as refused:
        account.cluster.node_pool_create("g6-standard-8", 1)
    assert refused.value.status == 400
    assert "capacity" in str(refused.value)
    pool.count = 2
    with pytest.raises(ApiError):
        pool.save()
    assert account.pool(pool.id).count == 1
    assert len(list(account.cluster.pools)) == 1


def test_a_type_that_is_too_small_for_lke_is_refused_there(account: Account) -> None:
    """It has a class of its own, and can be had as a machine."""
    (nano,) = account.client.linode.types(linode_api4.Type.type_class == "nanode")
    with pytest.raises(ApiError) as refused:
        account.cluster.node_pool_create(nano.id, 1)
    assert refused.value.status == 400
    assert refused.value.json["errors"][0]["field"] == "type"
    assert account.client.linode.instance_create(nano.id, "us-east", label="small").type.id == nano.id


def test_what_is_locked_stays(account: Account) -> None:
    """Neither it, nor its node, nor its pool is deleted, and no count takes it away, until the lock is gone."""
    pool = account.cluster.node_pool_create(SMALL, 1)
    account.clock.add(100)
    (node,) = account.pool(pool.id).nodes
    lock = account.client.locks.create("linode", node.instance_id, "cannot_delete")
    assert (lock.lock_type, lock.entity.id, lock.entity.type) == ("cannot_delete", node.instance_id, "linode")
    assert [each.id for each in account.client.locks()] == [lock.id]
    assert account.client.load(Instance, node.instance_id).locks == ["cannot_delete"]
    grown = account.pool(pool.id)
    for act in (
        node.instance.delete,
        grown.delete,
        grown.recycle,
        lambda: account.cluster.node_delete(node.id),
        lambda: account.client.locks.create("linode", node.instance_id, "cannot_delete"),
    ):
        with pytest.raises(ApiError) as refused:
            act()
        assert refused.value.status == 400
    for kind, number in (("linode", 1), ("lkecluster", account.fake.cluster.id)):
        with pytest.raises(ApiError) as refused:
            account.client.locks.create(kind, number, "cannot_delete")
        assert refused.value.status == 400
    assert lock.delete()
    account.cluster.node_delete(node.id)
    account.clock.add(60)
    assert (account.fake.machines(), list(account.client.locks())) == ((), [])


def test_no_count_takes_a_locked_machine_away(account: Account) -> None:
    """A count takes the youngest; where that is locked it is refused, and nothing changes."""
    pool = account.cluster.node_pool_create(SMALL, 2)
    account.clock.add(100)
    first, second = account.pool(pool.id).nodes
    account.client.locks.create("linode", second.instance_id, "cannot_delete")
    shown = account.pool(pool.id)
    shown.count = 1
    with pytest.raises(ApiError) as refused:
        shown.save()
    assert refused.value.status == 400
    assert [node.id for node in account.pool(pool.id).nodes] == [first.id, second.id]


def test_firewalls_and_placement_groups_are_made_and_named(account: Account) -> None:
    """By machines, and firewalls by pools of the enterprise tier too; what is in use or is not there is told."""
    rules = {"inbound": [], "inbound_policy": "DROP", "outbound": [], "outbound_policy": "ACCEPT"}
    firewall = account.client.networking.firewall_create("nodes", rules)
    assert [(each.label, each.status) for each in account.client.networking.firewalls()] == [("nodes", "enabled")]
    group = account.client.placement.group_create("apart", "us-east", "anti_affinity:local", "flexible")
    made = account.client.linode.instance_create(
        SMALL, "us-east", label="web-1", firewall=firewall, placement_group={"id": group.id}
    )
    (shown,) = account.client.placement.groups()
    assert ([each.linode_id for each in shown.members], shown.placement_group_policy) == ([made.id], "flexible")
    for act in (
        group.delete,
        lambda: account.client.linode.instance_create(
            SMALL, "eu-central", label="web-2", placement_group={"id": group.id}
        ),
        lambda: account.client.networking.firewall_create("nodes", rules),
        lambda: account.client.placement.group_create("other", "nowhere", "anti_affinity:local", "strict"),
    ):
        with pytest.raises(ApiError) as refused:
            act()
        assert refused.value.status == 400
    if not standard(account):
        assert account.cluster.node_pool_create(SMALL, 1, firewall_id=firewall.id).firewall_id == firewall.id
    made.delete()
    account.clock.add(60)
    assert group.delete()
    assert firewall.delete()
    assert (list(account.client.placement.groups()), list(account.client.networking.firewalls())) == ([], [])


def test_machines_are_booted_and_shut_down(account: Account) -> None:
    """Each takes a while, in which nothing else can be asked for."""
    made = account.client.linode.instance_create(SMALL, "us-east", label="web-1", booted=False)
    account.clock.add(100)
    for act, meanwhile, then in (
        (made.boot, "booting", "running"),
        (made.reboot, "rebooting", "running"),
        (made.shutdown, "shutting_down", "offline"),
    ):
        act()
        assert account.client.load(Instance, made.id).status == meanwhile
        with pytest.raises(ApiError) as busy:
            made.reboot()
        assert busy.value.errors == ["Linode busy."]
        account.clock.add(100)
        assert account.client.load(Instance, made.id).status == then
    with pytest.raises(ApiError) as off:
        made.reboot()
    assert off.value.status == 400


def test_a_version_can_be_looked_at(account: Account) -> None:
    """That of the cluster, and those of its tier; one that is none is not there."""
    tier = account.fake.cluster.tier
    own = account.cluster.k8s_version.id
    assert own in {each.id for each in account.client.lke.tier(tier).versions()}
    assert account.client.load(TieredKubeVersion, own, tier).id == own
    assert account.client.load(KubeVersion, "1.33").id == "1.33"
    for kind, label, parent in ((KubeVersion, "1.2", None), (TieredKubeVersion, "1.2", tier), (KubeVersion, "1", None)):
        with pytest.raises(ApiError) as gone:
            account.client.load(kind, label, parent)
        assert gone.value.status == 404


def test_what_is_said_of_a_machine_or_a_pool_is_so_afterwards(account: Account) -> None:
    """A group, which lists are filtered by, the watchdog, whether it is booted, and how a pool's disks are encrypted."""
    made = account.client.linode.instance_create(SMALL, "us-east", label="web-1", group="prod", booted=False)
    account.client.linode.instance_create(SMALL, "us-east", label="web-2", image="linode/ubuntu24.04", root_pass="none")
    account.clock.add(100)
    assert [each.id for each in account.client.linode.instances(Instance.group == "prod")] == [made.id]
    assert {each.label: each.status for each in account.client.linode.instances()} == {
        "web-1": "offline",
        "web-2": "running",
    }
    made.group, made.watchdog_enabled = "test", False
    assert made.save()
    after = account.client.load(Instance, made.id)
    assert (after.group, after.watchdog_enabled, after.label) == ("test", False, "web-1")
    for said in ("disabled", "enabled"):
        pool = account.cluster.node_pool_create(SMALL, 1, disk_encryption=said)
        assert account.pool(pool.id).disk_encryption == said
    account.clock.add(100)
    encrypted = [each.disk_encryption for each in account.client.linode.instances() if each.lke_cluster_id]
    assert sorted(encrypted) == ["disabled", "enabled"]


def test_enterprise_pools_have_a_version_and_a_strategy(account: Account) -> None:
    """Standard pools have neither and refuse both."""
    if standard(account):
        with pytest.raises(ApiError):
            account.cluster.node_pool_create(SMALL, 1, update_strategy="on_recycle")
        return
    pool = account.cluster.node_pool_create(SMALL, 1, k8s_version="v1.32.8+lke3", update_strategy="on_recycle")
    assert (pool.k8s_version, pool.update_strategy) == ("v1.32.8+lke3", "on_recycle")


def test_too_many_calls_and_broken_gateways_are_told_as_the_vendor_tells_them(account: Account) -> None:
    """429 with its headers, «Linode busy.», a page by something in between, a token that is none."""
    account.client.retry = False
    account.fake.spend(200)
    with pytest.raises(ApiError) as limited:
        account.client.linode.types()
    assert (limited.value.status, limited.value.errors) == (429, ["Too many requests"])
    assert limited.value.response.headers["x-ratelimit-limit"] == "200"
    assert int(limited.value.response.headers["retry-after"]) == 60
    account.clock.add(61)
    account.fake.faults = Faults(busy=1.0)
    with pytest.raises(ApiError) as busy:
        account.client.tag_create("some")
    assert (busy.value.status, busy.value.errors) == (400, ["Linode busy."])
    account.fake.faults = Faults(bad_gateway=1.0)
    with pytest.raises(ApiError) as broken:
        account.client.linode.types()
    assert broken.value.status in {502, 504}
    account.fake.faults = Faults()
    account.fake.readonly = True
    with pytest.raises(ApiError) as forbidden:
        account.client.tag_create("some")
    assert forbidden.value.status == 401
