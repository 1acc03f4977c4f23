"""Hetzner's own client drives the fake of Hetzner's API, as it would drive the real one."""

from collections.abc import Iterator

import hcloud
import pytest
from hcloud.actions import ActionFailedException
from hcloud.firewalls import FirewallRule
from hcloud.images import Image
from hcloud.locations import Location
from hcloud.networks import NetworkSubnet
from hcloud.placement_groups import PlacementGroup
from hcloud.server_types import ServerType
from hcloud.servers import BoundServer, ServerCreatePublicNetwork
from hcloud.servers.domain import CreateServerResponse
from hcloud.ssh_keys import SSHKey

from growth.sim.clouds.hetzner import FakeSettings, Faults, HetznerFake, Limits
from tests.hetzner import SSH_KEY, Ticking, new_fake, served, vendors_client

SMALL = ServerType(name="cx23")
UBUNTU = Image(name="ubuntu-24.04")


class Project:
    """The fake, its clock and the client on it."""

    def __init__(self, fake: HetznerFake, clock: Ticking, client: hcloud.Client) -> None:
        self.fake = fake
        self.clock = clock
        self.client = client

    def order(
        self, name: str, *, type_: ServerType = SMALL, location: str = "fsn1", **options: object
    ) -> CreateServerResponse:
        options.setdefault("image", UBUNTU)
        return self.client.servers.create(
            name=name,
            server_type=type_,
            location=Location(name=location),
            **options,  # type: ignore[arg-type]
        )

    def wait(self, made: CreateServerResponse) -> None:
        for action in (made.action, *made.next_actions):
            action.wait_until_finished()

    def up(self, name: str, **options: object) -> BoundServer:
        made = self.order(name, **options)  # type: ignore[arg-type]
        self.wait(made)
        return self.client.servers.get_by_id(number(made.server))


@pytest.fixture
def project() -> Iterator[Project]:
    """Each request takes half a second of the fake's time."""
    fake, clock = new_fake(tick=0.5, settings=FakeSettings(limits=Limits(servers=70), stock={("cx33", "hel1"): 1}))
    with served(fake) as url, vendors_client(url) as client:
        yield Project(fake, clock, client)


def number(thing: object) -> int:
    identity = getattr(thing, "id", None)
    assert isinstance(identity, int)
    return identity


def refused(call: object) -> hcloud.APIException:
    with pytest.raises(hcloud.APIException) as caught:
        call()  # type: ignore[operator]
    return caught.value


def test_a_server_comes_up_step_by_step(project: Project) -> None:
    """Bought, it is initialising and locked; its actions advance one after the other, and then it runs."""
    made = project.order("web-1", labels={"growth.dev/cluster": "abc", "env": "test"})
    assert (made.server.status, made.server.locked) == ("initializing", True)
    assert (made.action.command, made.action.status, made.action.finished) == ("create_server", "running", None)
    assert [action.command for action in made.next_actions] == ["start_server"]
    assert made.root_password
    seen = set()
    while made.action.status == "running":
        made.action.reload()
        seen.add(made.action.progress or 0)
    assert len(seen) > 3
    assert max(seen) == 100
    made.next_actions[0].wait_until_finished()
    server = project.client.servers.get_by_name("web-1")
    assert server is not None
    assert (server.status, server.locked) == ("running", False)
    assert server.labels == {"growth.dev/cluster": "abc", "env": "test"}
    assert server.server_type is not None
    assert server.server_type.name == "cx23"
    assert server.location is not None
    assert server.location.name == "fsn1"
    assert server.image is not None
    assert server.image.architecture == "x86"
    assert server.public_net is not None
    assert server.public_net.ipv4 is not None
    assert server.public_net.ipv4.ip.startswith("198.18.")
    commands = [action.command for action in server.get_actions()]
    assert commands == ["create_server", "start_server"]


def test_a_server_goes_after_a_while(project: Project) -> None:
    """A deletion is an action: the server is there, deleting, until it ends, and not found afterwards."""
    server = project.up("web-1")
    action = server.delete()
    assert project.client.servers.get_by_id(number(server)).status == "deleting"
    action.wait_until_finished()
    assert refused(lambda: project.client.servers.get_by_id(number(server))).code == "not_found"
    assert project.client.servers.get_all() == []
    assert project.client.actions.get_by_id(number(action)).command == "delete_server"
    (purchase,) = project.fake.ledger.purchases
    assert purchase.ended is not None


def test_a_name_is_given_once(project: Project) -> None:
    """A second server of the same name is refused, also while the first is going, and allowed when it is gone."""
    server = project.up("web-1")
    error = refused(lambda: project.order("web-1"))
    assert (error.code, error.details) == ("uniqueness_error", {"fields": [{"name": "name"}]})
    assert error.correlation_id
    action = server.delete()
    assert refused(lambda: project.order("web-1")).code == "uniqueness_error"
    action.wait_until_finished()
    assert project.up("web-1").id != server.id


def test_lists_come_in_pages(project: Project) -> None:
    """Fifty at most in a page; all pages together are everything once, in order."""
    for number in range(60):
        project.order(f"web-{number}", labels={"half": "low" if number < 30 else "high"})
    first = project.client.servers.get_list(per_page=50)
    assert first.meta.pagination is not None
    assert len(first.servers) == 50
    assert (first.meta.pagination.next_page, first.meta.pagination.last_page) == (2, 2)
    assert first.meta.pagination.total_entries == 60
    everything = project.client.servers.get_all()
    assert [server.name for server in everything] == [f"web-{number}" for number in range(60)]
    assert len(project.client.servers.get_all(label_selector="half=low")) == 30
    assert refused(lambda: project.client.servers.get_list(per_page=51)).code == "invalid_input"
    assert project.client.servers.get_list(page=4).servers == []


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("env=a", ["a"]),
        ("env==a", ["a"]),
        ("env!=a", ["b", "none"]),
        ("env", ["a", "b"]),
        ("!env", ["none"]),
        ("env in (a,b)", ["a", "b"]),
        ("env notin (a)", ["b", "none"]),
        ("env in (a,b),tier=x", ["b"]),
        ("growth.dev/claim=c1", ["b"]),
        ("", ["a", "b", "none"]),
    ],
)
def test_labels_select(project: Project, selector: str, found: list[str]) -> None:
    """Every operator of the selectors, and their conjunction."""
    project.order("a", labels={"env": "a"})
    project.order("b", labels={"env": "b", "tier": "x", "growth.dev/claim": "c1"})
    project.order("none")
    assert [server.name for server in project.client.servers.get_all(label_selector=selector)] == found


@pytest.mark.parametrize("selector", ["env in a,b", "env=(", "=a", "a b", "-x"])
def test_a_selector_that_cannot_be_read_is_refused(project: Project, selector: str) -> None:
    """It does not silently select all or nothing."""
    assert refused(lambda: project.client.servers.get_all(label_selector=selector)).code == "invalid_input"


@pytest.mark.parametrize(
    "labels",
    [
        {"karpenter.hetzner.cloud/claim": "x"},
        {"a" * 64: "x"},
        {"a": "b" * 64},
        {"a": "with space"},
        {"/a": "x"},
        {"a": "-x"},
        {"": "x"},
    ],
)
def test_labels_have_rules(project: Project, labels: dict[str, str]) -> None:
    """Reserved, too long or malformed ones buy nothing."""
    assert refused(lambda: project.order("web-1", labels=labels)).code == "invalid_input"
    assert project.fake.ledger.purchases == ()


def test_labels_and_names_change(project: Project) -> None:
    """An update replaces the whole set of labels."""
    server = project.up("web-1", labels={"a": "1", "b": "2"})
    server.update(labels={"b": "3"})
    assert project.client.servers.get_by_id(number(server)).labels == {"b": "3"}
    server.update(name="web-2")
    assert project.client.servers.get_by_name("web-2") is not None


def test_types_have_prices_and_places(project: Project) -> None:
    """Prices are texts, by location; availability and deprecation are by location too."""
    kinds = {kind.name: kind for kind in project.client.server_types.get_all()}
    small = kinds["cx23"]
    assert (small.cores, small.memory, small.disk, small.architecture) == (2, 4.0, 40, "x86")
    assert kinds["cax11"].architecture == "arm"
    assert kinds["ccx13"].cpu_type == "dedicated"
    assert small.prices is not None
    price = next(each for each in small.prices if each["location"] == "fsn1")
    assert (price["price_hourly"]["net"], price["price_monthly"]["net"]) == ("0.0088000000", "5.4900000000")
    assert small.locations is not None
    assert {place.location.name for place in small.locations} == {"fsn1", "nbg1", "hel1"}
    assert all(place.available and place.deprecation is None for place in small.locations)
    assert "cx32" not in kinds
    assert {place.name for place in project.client.locations.get_all()} >= {"fsn1", "nbg1", "hel1", "ash"}


def test_stock_is_told_by_the_purchase(project: Project) -> None:
    """One machine is left and the flag says nothing of it: the second purchase is refused until the first is gone."""
    big = ServerType(name="cx33")
    server = project.up("web-1", type_=big, location="hel1")
    assert refused(lambda: project.order("web-2", type_=big, location="hel1")).code == "resource_unavailable"
    project.order("web-2", type_=big, location="nbg1")
    server.delete().wait_until_finished()
    project.order("web-3", type_=big, location="hel1")


def test_a_place_where_it_is_not_sold(project: Project) -> None:
    """Says so as bad input, not as missing stock."""
    error = refused(lambda: project.order("web-1", location="ash"))
    assert error.code == "invalid_input"
    assert "unsupported location for server type" in error.message


def test_an_order_that_cannot_be_filled(project: Project) -> None:
    """Unknown types and images, wrong architectures, too much user data, bad names: each has its code, none buys."""
    cases = {
        "unknown type": (lambda: project.order("a", type_=ServerType(name="cx32")), "invalid_input"),
        "unknown image": (lambda: project.order("a", image=Image(name="plan9")), "not_found"),
        "architecture": (
            lambda: project.order("a", image=Image(id=project.fake.project.add_image(arm=True).id)),
            "invalid_input",
        ),
        "disk": (
            lambda: project.order("a", image=Image(id=project.fake.project.add_image(size_gb=80).id)),
            "invalid_input",
        ),
        "user data": (lambda: project.order("a", user_data="x" * 32769), "invalid_input"),
        "name": (lambda: project.order("no_underscores"), "invalid_input"),
        "ssh key": (lambda: project.order("a", ssh_keys=[SSHKey(name="nobody")]), "not_found"),
        "group": (lambda: project.order("a", placement_group=PlacementGroup(id=7)), "not_found"),
    }
    assert {name: refused(call).code for name, (call, _) in cases.items()} == {
        name: code for name, (_, code) in cases.items()
    }
    assert project.fake.ledger.purchases == ()


def test_an_arm_machine_gets_the_arm_image_of_that_name(project: Project) -> None:
    """System images are there for both architectures under one name."""
    server = project.up("arm-1", type_=ServerType(name="cax11"))
    assert server.image is not None
    assert server.image.architecture == "arm"


def test_images_are_selected(project: Project) -> None:
    """By type, architecture, status and labels, the newest first."""
    old = project.fake.project.add_image(labels={"os": "talos"}, description="old")
    project.clock.add(60)
    project.client.locations.get_all()
    new = project.fake.project.add_image(labels={"os": "talos"}, description="new")
    project.fake.project.add_image(labels={"os": "talos"}, arm=True)
    project.fake.project.add_image(labels={"os": "talos"}, status="creating")
    params = {"type": "snapshot", "architecture": "x86", "label_selector": "os=talos", "sort": "created:desc"}
    # By hand: the client sends the length of a page as `status`.
    found = project.client.request("GET", "/images", params={**params, "status": "available"})["images"]
    assert [image["id"] for image in found] == [new.id, old.id]
    found_by_client = project.client.images.get_all(type=["snapshot"], architecture=["arm"], label_selector="os=talos")
    assert [image.architecture for image in found_by_client] == ["arm"]


def test_a_placement_group_holds_ten(project: Project) -> None:
    """The eleventh is refused; a server that goes makes room; a group in use does not go."""
    made = project.client.placement_groups.create(name="pool-1", type="spread", labels={"growth.dev/pool": "p"})
    group = made.placement_group
    servers = [project.up(f"web-{number}", placement_group=group) for number in range(10)]
    assert refused(lambda: project.order("web-10", placement_group=group)).code == "placement_error"
    assert refused(group.delete).code == "resource_in_use"
    group.reload()
    assert sorted(group.servers or ()) == sorted(map(number, servers))
    servers[0].delete().wait_until_finished()
    assert project.up("web-10", placement_group=group).placement_group is not None


def test_networks_firewalls_and_keys(project: Project) -> None:
    """A server in a network has its address only when the action has ended; what is in use does not go."""
    network = project.client.networks.create(
        name="private",
        ip_range="10.0.0.0/16",
        subnets=[NetworkSubnet(type="cloud", network_zone="eu-central", ip_range="10.0.1.0/24")],
    )
    rule = FirewallRule(direction="in", protocol="tcp", port="22", source_ips=["0.0.0.0/0"])
    firewall = project.client.firewalls.create(name="ssh", rules=[rule]).firewall
    key = project.client.ssh_keys.create(name="me", public_key=SSH_KEY)
    assert refused(lambda: project.client.ssh_keys.create(name="other", public_key=SSH_KEY)).code == "uniqueness_error"
    made = project.order(
        "web-1",
        networks=[network],
        firewalls=[firewall],
        ssh_keys=[key],
        public_net=ServerCreatePublicNetwork(enable_ipv4=False, enable_ipv6=False),
    )
    assert made.root_password is None
    assert made.server.private_net == []
    assert [action.command for action in made.next_actions] == ["attach_to_network", "start_server"]
    for action in (made.action, *made.next_actions):
        action.wait_until_finished()
    server = project.client.servers.get_by_id(number(made.server))
    assert server.private_net is not None
    assert [net.ip for net in server.private_net] == ["10.0.1.2"]
    assert server.public_net is not None
    assert server.public_net.ipv4 is None
    assert refused(network.delete).code == "resource_in_use"
    assert refused(firewall.delete).code == "resource_in_use"
    server.delete().wait_until_finished()
    assert network.delete()
    assert firewall.delete()


def test_a_busy_server_is_locked(project: Project) -> None:
    """While it is being made nothing else can be done to it; the same call passes afterwards."""
    made = project.order("web-1")
    assert refused(made.server.delete).code == "locked"
    assert refused(made.server.power_off).code == "locked"
    made.action.wait_until_finished()
    made.server.delete()
    assert refused(made.server.delete).code == "locked"


def test_a_server_is_switched_off_and_protected(project: Project) -> None:
    """A server that is off is still billed; a protected one does not go."""
    server = project.up("web-1")
    server.power_off().wait_until_finished()
    server.reload()
    assert server.status == "off"
    assert len(project.fake.ledger.standing) == 1
    server.change_protection(delete=True, rebuild=True).wait_until_finished()
    assert refused(server.delete).code == "protected"


def test_actions_fail_late(project: Project) -> None:
    """A purchase that was accepted can fail afterwards; the server stays, is billed and can be deleted."""
    project.fake.faults = Faults(late_failure=1.0)
    made = project.order("web-1")
    with pytest.raises(ActionFailedException) as caught:
        project.wait(made)
    assert caught.value.action.error is not None
    assert caught.value.action.error["code"] in {"resource_unavailable", "placement_error", "server_error", "timeout"}
    server = project.client.servers.get_by_id(number(made.server))
    assert server.status == "off"
    assert len(project.fake.ledger.standing) == 1
    server.delete().wait_until_finished()
    assert project.fake.ledger.standing == ()


def test_quotas_are_kept(project: Project) -> None:
    """The account holds no more than it may, and says which limit it is."""
    for number in range(70):
        project.order(f"web-{number}")
    error = refused(lambda: project.order("web-70"))
    assert (error.code, error.details) == ("resource_limit_exceeded", {"limits": [{"name": "servers"}]})


def test_a_token_that_may_only_read(project: Project) -> None:
    """It lists, and cannot buy or delete."""
    server = project.up("web-1")
    project.fake.readonly = True
    assert refused(lambda: project.order("web-2")).code == "token_readonly"
    assert refused(server.delete).code == "token_readonly"
    assert len(project.client.servers.get_all()) == 1


def test_a_spent_account_recovers(project: Project) -> None:
    """With no calls left the client is told to come back; a call is there again a second later."""
    project.clock.tick = 0.0
    project.fake.spend(5000)
    client = project.client
    client._client._retry_max_retries = 0
    assert refused(client.locations.get_all).code == "rate_limit_exceeded"
    project.clock.add(1)
    assert client.locations.get_all()
    assert refused(client.locations.get_all).code == "rate_limit_exceeded"


def test_a_lost_answer_has_bought(project: Project) -> None:
    """The connection breaks after the purchase: the server is there, and the repeat finds its name taken."""
    project.fake.faults = Faults(lost_answer=1.0)
    with pytest.raises(Exception, match=r"(?i)aborted|reset|disconnected"):
        project.order("web-1")
    project.fake.faults = Faults()
    assert refused(lambda: project.order("web-1")).code == "uniqueness_error"
    assert len(project.fake.ledger.purchases) == 1


def test_what_is_gone_from_the_api(project: Project) -> None:
    """Datacenters were removed; actions are no longer listed without being named."""
    assert refused(lambda: project.client.request("GET", "/datacenters")).code == "deprecated_api_endpoint"
    assert refused(lambda: project.client.request("GET", "/actions")).code == "deprecated_api_endpoint"
    assert refused(lambda: project.client.request("GET", "/volumes")).code == "not_found"
    made = project.order("web-1")
    numbers = [made.action.id, made.next_actions[0].id]
    answer = project.client.request("GET", "/actions", params={"id": numbers})
    assert [each["id"] for each in answer["actions"]] == numbers


def test_an_unknown_token_is_refused() -> None:
    """Where the fake knows its tokens, others get nothing."""
    fake, _ = new_fake(settings=FakeSettings(tokens=frozenset({"another-token"})))
    with served(fake) as url, vendors_client(url) as client:
        assert refused(client.servers.get_all).code == "unauthorized"
