"""The Hetzner provider buys the cheapest machine that can be had, once, and whole; it takes down what is its own."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from growth.api import names
from growth.api.clouds import (
    CloudMachine,
    CloudUnavailable,
    CreateError,
    InsufficientCapacity,
    InvariantViolation,
    MachineNotFound,
    NodeClassNotReady,
    QuotaExceeded,
)
from growth.api.kinds import Json
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.providers.hetzner import labels
from growth.providers.http import gauges
from growth.sim.clouds.frame import Reply
from growth.sim.clouds.hetzner import FakeSettings, Faults, Limits
from growth.sim.clouds.hetzner.wire import invalid
from growth.telemetry.metrics import Metrics
from tests.hetzner_provider import CLUSTER, HetznerWorld, claim, in_hetzner, launched


def test_the_machine_is_the_claims_and_says_so() -> None:
    """Its name, its labels, its ID and its place: as bought, and as everybody who looks is told."""

    async def body(world: HetznerWorld) -> None:
        made = await world.provider.create(claim("one", "cx33", zones=("nbg1",), labels={names.POOL_LABEL: "default"}))
        (server,) = world.fake.machines()
        assert made.provider_id == f"hcloud://{server.id}"
        assert (made.claim, made.claim_uid) == ("one", "uid-of-one")
        assert (made.instance_type, made.zone, made.capacity_type) == ("cx33", "nbg1", names.ON_DEMAND)
        assert made.labels[names.ARCH_LABEL] == "amd64"
        assert made.labels["csi.hetzner.cloud/location"] == "nbg1"
        assert made.allocatable["memory"] == 8 * 2**30 * 93 // 100
        assert made.allocatable["pods"] == 110
        assert server.labels[labels.CLUSTER] == CLUSTER
        assert server.labels[labels.POOL] == "default"
        assert server.status == "running"
        assert await world.provider.get(made.provider_id) == made
        assert list(await world.provider.list()) == [made]

    in_hetzner(body)


def test_of_what_the_claim_allows_the_cheapest_is_bought() -> None:
    """By price with everything that the class adds, whatever the order of the names."""

    async def body(world: HetznerWorld) -> None:
        world.fake.market.price("cx33", "hel1", "7.99")
        made = await world.provider.create(claim("one", "cpx32", "cx43", "cx33"))
        assert (made.instance_type, made.zone) == ("cx33", "hel1")

    in_hetzner(body)


def test_what_has_no_stock_is_passed_over_and_left_out_for_a_while() -> None:
    """The next cheapest is bought; the catalogue shows the shortage, and after its time the cheaper one is bought again."""

    async def body(world: HetznerWorld) -> None:
        async def short() -> set[tuple[str, str]]:
            sold = await world.provider.catalogue()
            return {
                (kind.name, each.zone)
                for kind in sold.of_classes["default"]
                for each in kind.offerings
                if not each.available
            }

        world.fake.market.stock("cx33", "*", 0)
        first = await world.provider.create(claim("one", "cx33", "cax21"))
        assert first.instance_type == "cax21"
        assert await short() == {("cx33", "fsn1"), ("cx33", "nbg1"), ("cx33", "hel1")}
        world.fake.market.stock("cx33", "*", 10)
        assert (await world.provider.create(claim("two", "cx33", "cax21"))).instance_type == "cax21"
        await asyncio.sleep(181)
        assert await short() == set()
        assert (await world.provider.create(claim("three", "cx33", "cax21"))).instance_type == "cx33"

    in_hetzner(body)


def test_a_type_is_out_only_when_every_location_of_the_class_is() -> None:
    """One location with stock is enough; a location that the class does not allow does not count."""

    async def body(world: HetznerWorld) -> None:
        world.fake.market.stock("cax11", "*", 0)
        world.fake.market.stock("cax11", "hel1", 1)
        world.fake.market.stock("cax11", "nbg1", 1)
        assert (await world.provider.create(claim("one", "cax11"))).zone == "nbg1"
        with pytest.raises(InsufficientCapacity):
            await world.provider.create(claim("two", "cax11"))
        assert world.standing == ["one"]

    in_hetzner(body, node_class={"locations": ["fsn1", "nbg1"]})


def test_a_purchase_tries_a_bounded_number_of_offerings() -> None:
    """After eight refusals it asks to be called again, and then goes on where it stopped."""

    async def body(world: HetznerWorld) -> None:
        every = ("cx23", "cx33", "cx43", "cax11", "cax21", "cax31")
        for kind in every:
            world.fake.market.stock(kind, "*", 0)
        world.fake.market.stock("cax31", "hel1", 1)
        wanted = claim("one", *every)
        for _ in range(2):
            before = sum(each.method == "POST" for each in world.fake.calls)
            with pytest.raises(CreateError, match="next are tried soon"):
                await world.provider.create(wanted)
            assert sum(each.method == "POST" for each in world.fake.calls) == before + 8
        assert (await world.provider.create(wanted)).instance_type == "cax31"

    in_hetzner(body)


def test_a_repeated_purchase_finds_the_first_machine() -> None:
    """After a restart as after a lost answer: one claim, one machine."""

    async def body(world: HetznerWorld) -> None:
        wanted = claim("one", "cx33")
        first = await world.provider.create(wanted)
        assert await world.new_provider().create(wanted) == first
        world.fake.faults = Faults(lost_answer=1.0)
        other = claim("two", "cx33")
        with pytest.raises(CloudUnavailable):
            await world.provider.create(other)
        world.fake.faults = Faults()
        second = await world.provider.create(other)
        assert world.bought == ["one", "two"]
        assert second.provider_id != first.provider_id

    in_hetzner(body)


def test_a_machine_of_somebody_else_is_never_taken_for_the_claims() -> None:
    """A foreign machine of that name, another cluster's and another claim's: each is left alone."""

    async def body(world: HetznerWorld) -> None:
        other = world.new_provider(cluster="other")
        await other.create(claim("theirs", "cx33"))
        with pytest.raises(CreateError, match="not this cluster's") as told:
            await world.provider.create(claim("theirs", "cx33"))
        assert not told.value.retryable
        await world.provider.create(claim("ours", "cx33", uid="first"))
        with pytest.raises(InvariantViolation, match="another claim"):
            await world.provider.create(claim("ours", "cx33", uid="second"))
        assert [each.claim for each in await world.provider.list()] == ["ours"]
        assert [each.claim for each in await other.list()] == ["theirs"]
        with pytest.raises(MachineNotFound):
            await world.provider.delete(claim("theirs", "cx33"))
        theirs = (await other.list())[0]
        with pytest.raises(InvariantViolation, match="has not this cluster's label"):
            await world.provider.delete(launched(claim("theirs", "cx33"), theirs))
        assert world.standing == ["ours", "theirs"]

    in_hetzner(body)


def test_a_machine_whose_action_fails_late_is_removed() -> None:
    """Whatever the reason: nothing stays that is billed and belongs to nobody, and a later purchase succeeds."""

    async def body(world: HetznerWorld) -> None:
        world.fake.faults = Faults(late_failure=1.0)
        for number in range(12):
            try:
                await world.provider.create(claim(f"one-{number}", "cx33"))
            except (CreateError, InsufficientCapacity):
                continue
            raise AssertionError("no machine can be completed")
        assert world.standing == []
        world.fake.faults = Faults()
        await asyncio.sleep(181)
        await world.provider.create(claim("one-1", "cx33"))
        assert world.standing == ["one-1"]

    in_hetzner(body)


def test_a_late_lack_of_stock_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offering is left out, and the next is bought under the same name."""

    async def body(world: HetznerWorld) -> CloudMachine:
        shop = world.fake._servers
        create = shop.create

        def fails(order: Json) -> Reply:
            shop.faults = Faults(late_failure=1.0 if order["location"] == "fsn1" else 0.0)
            return create(order)

        monkeypatch.setattr(shop, "_late", lambda: (1, ("resource_unavailable", "currently unavailable")))
        monkeypatch.setattr(shop, "create", fails)
        made = await world.provider.create(claim("one", "cx33"))
        assert world.bought == ["one", "one"]
        assert world.standing == ["one"]
        sold = await world.provider.catalogue()
        kind = next(each for each in sold.types if each.name == "cx33")
        assert [each.zone for each in kind.offerings if not each.available] == ["fsn1"]
        return made

    assert in_hetzner(body).zone == "hel1"


def test_a_machine_that_is_never_completed_is_waited_for_and_not_bought_again() -> None:
    """The claim is told that it takes long; its deletion finds the machine although no ID is known."""

    async def body(world: HetznerWorld) -> None:
        world.fake.faults = Faults(stuck=1.0)
        wanted = claim("one", "cx33")
        for _ in range(2):
            with pytest.raises(CreateError, match="still being made") as told:
                await world.provider.create(wanted)
            assert told.value.retryable
        assert world.bought == ["one"]
        assert await world.gone(wanted)
        assert world.standing == []

    in_hetzner(body)


def test_deletion_ends_with_not_found_and_asks_once() -> None:
    """Asking again while the machine goes down costs the account no further deletion."""

    async def body(world: HetznerWorld) -> None:
        wanted = claim("one", "cx33")
        made = await world.provider.create(wanted)
        assert await world.gone(launched(wanted, made))
        assert sum(each.method == "DELETE" for each in world.fake.calls) == 1
        with pytest.raises(MachineNotFound):
            await world.provider.get(made.provider_id)
        assert list(await world.provider.list()) == []

    in_hetzner(body)


def test_ids_of_other_clouds_are_refused() -> None:
    """An ID that is none of ours says nothing about a machine."""

    async def body(world: HetznerWorld) -> None:
        for provider_id in ("kwok://one", "hcloud://", "hcloud://x", ""):
            with pytest.raises(InvariantViolation):
                await world.provider.get(provider_id)

    in_hetzner(body)


def test_a_quota_holds_everybody_back_for_a_minute() -> None:
    """The first refusal is enough: the next purchases cost no call."""

    async def body(world: HetznerWorld) -> None:
        await world.provider.create(claim("one", "cx33"))
        for number in range(5):
            with pytest.raises(QuotaExceeded, match="may hold no more"):
                await world.provider.create(claim(f"more-{number}", "cx33"))
        assert sum(each.code == "resource_limit_exceeded" for each in world.fake.calls) == 1
        await asyncio.sleep(61)
        with pytest.raises(QuotaExceeded):
            await world.provider.create(claim("later", "cx33"))
        assert world.standing == ["one"]

    in_hetzner(body, settings=FakeSettings(limits=Limits(servers=1)))


def test_a_token_that_turns_read_only_stops_purchases_and_harms_nothing() -> None:
    """Purchase and deletion say what to do about it; what can be read is read."""

    async def body(world: HetznerWorld) -> None:
        wanted = claim("one", "cx33")
        made = await world.provider.create(wanted)
        world.fake.readonly = True
        with pytest.raises(CreateError, match="Read & Write") as told:
            await world.provider.create(claim("two", "cx33"))
        assert told.value.retryable
        with pytest.raises(Exception, match="Read & Write"):
            await world.provider.delete(launched(wanted, made))
        assert [each.claim for each in await world.provider.list()] == ["one"]
        world.fake.readonly = False
        await asyncio.sleep(301)
        await world.provider.create(claim("two", "cx33"))

    in_hetzner(body)


def test_machines_are_made_with_what_the_class_names() -> None:
    """Networks, firewalls and keys by name or number, labels, addresses and backups; the newest image of the selector."""

    async def body(world: HetznerWorld) -> None:
        call = world.cloud.client.call
        network = {"name": "cluster", "ip_range": "10.0.0.0/8", "subnets": []}
        subnet = {"type": "cloud", "ip_range": "10.0.1.0/24", "network_zone": "eu-central"}
        await call("POST", "/networks", dict, body={**network, "subnets": [subnet]})
        firewall = (await call("POST", "/firewalls", dict, body={"name": "walls"}))["firewall"]["id"]
        key = {
            "name": "me",
            "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBGQJ6bXv8Yj0r1c8m0sFf1Q0Z3y1a2b3c4d5e6f7g8h a",
        }
        await call("POST", "/ssh_keys", dict, body=key)
        world.fake.project.add_image(labels={"os": "talos"})
        newest = world.fake.project.add_image(labels={"os": "talos"})
        await world.make_class(
            "rich",
            networks=["cluster"],
            firewalls=[firewall],
            sshKeys=["me"],
            labels={"team": "a"},
            publicNet={"ipv4": False},
            backups=True,
            image={"selector": "os=talos"},
        )
        made = await world.provider.create(claim("one", "cx33", node_class="rich"))
        (server,) = world.fake.machines()
        assert len(server.networks) == 1
        assert server.firewalls == [firewall]
        assert len(server.ssh_keys) == 1
        assert server.labels["team"] == "a"
        assert (server.ipv4, server.backups) == (None, True)
        assert made.image_id == str(newest.id)

    in_hetzner(body)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"networks": ["none"]}, "no network none"),
        ({"firewalls": [7]}, "no firewall 7"),
        ({"sshKeys": ["nobody"]}, "no SSH key nobody"),
        ({"locations": ["mars"]}, "no location mars"),
        ({"image": {"name": "windows"}}, "no image windows"),
        ({"image": {"selector": "a=b"}}, "labels a=b"),
        ({"image": {"selector": "a in ("}}, "does not understand"),
        ({"publicNet": {"ipv4": False, "ipv6": False}}, "private network"),
        ({"labels": {"a b": "c"}}, "no key that Hetzner takes"),
        ({"userData": {"mode": "k3s", "secretRef": {"name": "gone"}}}, "no Secret gone"),
        ({"userData": {"mode": "talos", "secretRef": {"name": "gone"}}}, "write that into spec.image.selector"),
        (
            {"inventory": [{"name": "a", "serverNumber": 1, "serverType": "AX41", "location": "hel1"}]},
            r"a AX41 .a. is and costs is not known: give its capacity .cpu, memory, ephemeral-storage., architecture, monthlyP",
        ),
        (
            {"inventory": [{"name": "a", "serverNumber": 1, "serverType": "GEX44", "capacity": {"cpu": "0"}}]},
            r"GEX44 .a. is and costs is not known: give its capacity .cpu.",
        ),
        (
            {"inventory": [{"name": "a", "serverNumber": 1, "serverType": "CX33"}]},
            "CX33 .a. is a type of Hetzner Cloud",
        ),
        (
            {
                "inventory": [
                    {"name": "a", "serverNumber": 1, "serverType": "GEX44"},
                    {"name": "b", "serverNumber": 2, "serverType": "GEX44", "monthlyPrice": "200"},
                ]
            },
            "a and b are both GEX44, and differ",
        ),
        (
            {"inventory": [{"name": name, "serverNumber": 1, "serverType": "GEX44"} for name in "ab"]},
            "machine 1 is listed twice",
        ),
    ],
)
def test_what_a_class_asks_for_in_vain_is_said(spec: dict[str, object], word: str) -> None:
    """Nothing is bought of a class that names what is not there; the message says what, where and what to do."""

    async def body(world: HetznerWorld) -> None:
        await world.make_class("odd", **spec)
        with pytest.raises(NodeClassNotReady, match=word):
            await world.provider.create(claim("one", "cx33", node_class="odd"))
        assert world.bought == []

    in_hetzner(body)


def test_the_vendors_reason_stands_in_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What people read says which value is wrong and why, not only in which field."""

    async def body(world: HetznerWorld) -> None:
        def refuses(order: Json) -> Reply:
            raise invalid("labels", "key example.hetzner.cloud/a is reserved")

        monkeypatch.setattr(world.fake._servers, "create", refuses)
        with pytest.raises(CreateError, match=r"field 'labels': key example.hetzner.cloud/a is reserved"):
            await world.provider.create(claim("one", "cx33"))

    in_hetzner(body)


def test_drift_is_told_by_the_class_the_place_and_the_image() -> None:
    """A machine that is as its class asks is not drifted; a class that asks for something else, elsewhere, or newer says so.

    Not while the class is refused: no machine could take the place of one that goes for it.
    """

    async def body(world: HetznerWorld) -> None:
        async def now() -> str:
            await asyncio.sleep(301)
            return await world.provider.is_drifted(wanted)

        world.fake.project.add_image(labels={"os": "talos"})
        wanted = claim("one", "cx33", zones=("fsn1",))
        wanted = launched(wanted, await world.provider.create(wanted))
        assert await now() == ""
        world.fake.project.add_image(labels={"os": "talos"})
        assert await now() == "ImageDrifted"
        await _change(world, {"locations": ["nbg1"]})
        assert await now() == "LocationDrifted"
        await _change(world, {"labels": {"team": "b"}})
        assert await now() == "NodeClassDrifted"
        await _change(world, {"networks": ["none-such"]})
        assert await now() == ""
        await _change(world, {"networks": []})
        assert await now() == "NodeClassDrifted"

    in_hetzner(body, node_class={"image": {"selector": "os=talos"}})


async def _change(world: HetznerWorld, spec: dict[str, object]) -> None:
    await world.admin.patch(HETZNER_NODE_CLASS, "default", {"spec": spec})


def test_prices_include_what_the_class_adds() -> None:
    """Without addresses the type alone, with IPv4 its address, with backups a fifth more; billed by the hour, capped by month."""

    async def body(world: HetznerWorld) -> None:
        await world.make_class("bare", publicNet={"ipv4": False})
        await world.make_class("safe", publicNet={"ipv4": False}, backups=True)
        sold = await world.provider.catalogue()

        def offer(name: str) -> tuple[int, int]:
            kind = next(each for each in sold.of_classes[name] if each.name == "cx33")
            one = next(each for each in kind.offerings if each.zone == "fsn1")
            assert one.price is not None
            assert one.billing is not None
            assert one.billing.monthly_cap is not None
            assert one.billing.quantum_seconds == 3600
            return one.price, one.billing.monthly_cap

        assert offer("bare") == (13_600_000, 8_490_000_000)
        assert offer("default") == (13_600_000 + 800_000, 8_490_000_000 + 500_000_000)
        assert offer("safe") == (16_320_000, 10_188_000_000)

    in_hetzner(body)


def test_two_hundred_machines_cost_at_most_eight_calls_each() -> None:
    """The account's calls are shared with others: everything that can be asked for together is."""

    async def body(world: HetznerWorld) -> float:
        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(world.provider.create(claim(f"one-{number}", "cx33")))
        assert len(world.standing) == 200
        return world.cloud.client.journal.total / 200

    calls = in_hetzner(body, node_class={"placementGroup": "Spread"}, settings=FakeSettings(limits=Limits(servers=500)))
    assert calls <= 8


def test_types_without_an_image_are_no_lack_of_stock() -> None:
    """Where none of the claim's types has an image the class is to blame, in words; where one has, that is bought."""

    async def body(world: HetznerWorld) -> None:
        world.fake.project.add_image(labels={"os": "talos"})
        with pytest.raises(NodeClassNotReady, match="for arm64"):
            await world.provider.create(claim("one", "cax11", "cax21"))
        made = await world.provider.create(claim("two", "cax11", "cx43"))
        assert made.instance_type == "cx43"
        sold = await world.provider.catalogue()
        assert all(each.available for kind in sold.types for each in kind.offerings)

    in_hetzner(body, node_class={"image": {"selector": "os=talos"}})


def test_looks_at_many_machines_cost_a_list() -> None:
    """Whoever looks, waits for a deletion or asks about drift at the same time shares one."""

    async def body(world: HetznerWorld) -> None:
        wanted = [claim(f"one-{number}", "cx33") for number in range(40)]
        made = await asyncio.gather(*(world.provider.create(each) for each in wanted))
        owned = [launched(each, machine) for each, machine in zip(wanted, made, strict=True)]
        await asyncio.sleep(61)
        before = len(world.fake.calls)
        await asyncio.gather(
            *(world.provider.get(each.provider_id) for each in made),
            *(world.provider.is_drifted(each) for each in owned),
            world.provider.list(),
        )
        assert len(world.fake.calls) - before <= 2
        before = len(world.fake.calls)
        await asyncio.gather(*(world.provider.delete(each) for each in owned))
        assert len(world.fake.calls) - before <= 41

    in_hetzner(body)


def test_what_is_left_of_the_accounts_calls_is_scraped() -> None:
    """As the account's last answer said; nothing before the first."""

    async def body(world: HetznerWorld) -> None:
        registry = CollectorRegistry(auto_describe=False)
        metrics = Metrics(registry)
        gauges.declare(metrics, world.cloud.client, provider="hetzner")

        def scraped(name: str) -> float | None:
            return registry.get_sample_value(name, {"provider": "hetzner"})

        assert scraped("growth_cloud_calls_remaining") is None
        world.fake.spend(1000)
        await world.provider.create(claim("one", "cx33"))
        left = scraped("growth_cloud_calls_remaining")
        assert left is not None
        assert 2500 < left < 2700
        assert scraped("growth_cloud_calls_limit") == 3600
        assert scraped("growth_cloud_calls_waiting") == 0

    in_hetzner(body)


def test_a_kubelet_is_told_no_name_of_its_zone() -> None:
    """It would write that name anew at each start, over the one that the cluster's Nodes carry."""

    async def body(world: HetznerWorld) -> None:
        await world.make_secret("join", server="https://10.0.0.2:6443", token="shared")
        await world.provider.create(claim("web", "cx23", zones=("fsn1-dc14",)))
        (server,) = world.fake.machines()
        assert server.location == "fsn1"
        assert names.INSTANCE_TYPE_LABEL in server.user_data
        assert names.ZONE_LABEL not in server.user_data

    in_hetzner(body, node_class={"userData": {"mode": "k3s", "secretRef": {"name": "join"}}})
