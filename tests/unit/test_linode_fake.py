"""The fake of Linode's API beyond what the vendor's client shows: its books, its clock, its faults, and `growth fake linode`."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from growth.cli.entry import run
from growth.sim.clouds.frame import Dropped
from growth.sim.clouds.linode import ENTERPRISE, STANDARD, FakeSettings, Faults, LinodeFake, parse_faults, parse_stock
from growth.sim.clouds.linode.objects import PlacementGroup
from growth.sim.clouds.linode.serving import serving
from growth.sim.ports import Request
from tests.linode import TOKEN, new_fake


def ask(fake: LinodeFake, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    request = Request(
        method,
        f"https://x.test/v4beta{path}",
        {"Authorization": f"Bearer {TOKEN}", **headers},
        None if body is None else json.dumps(body).encode(),
    )
    answer, _ = fake.handle(request)
    return answer.status, json.loads(answer.body)


def pools(fake: LinodeFake) -> str:
    return f"/lke/clusters/{fake.cluster.id}/pools"


def test_the_ledger_follows_the_machines_and_not_the_counts() -> None:
    """A node without a machine costs nothing; a machine costs from its first second until it is gone."""
    fake, clock = new_fake()
    ask(fake, "POST", pools(fake), {"type": "g6-standard-2", "count": 2})
    assert fake.ledger.purchases == ()
    clock.add(10)
    assert len(fake.ledger.standing) == 2
    (pool,) = fake.account.pools
    ask(fake, "DELETE", f"{pools(fake)}/{pool}")
    assert len(fake.ledger.standing) == 2
    clock.add(30)
    assert (len(fake.ledger.standing), fake.ledger.hours(fake.account.now)) == (0, 2)


def test_a_count_that_is_lowered_takes_the_youngest() -> None:
    """Whoever has them: that is why counts are only raised by a purchase."""
    fake, clock = new_fake()
    _, pool = ask(fake, "POST", pools(fake), {"type": "g6-standard-2", "count": 3})
    clock.add(100)
    _, after = ask(fake, "PUT", f"{pools(fake)}/{pool['id']}", {"count": 1})
    assert [node["id"] for node in after["nodes"]] == [pool["nodes"][0]["id"]]


def test_what_stands_and_what_is_left_are_the_stock() -> None:
    """A machine that LKE replaces was given back and its successor taken; with none left the node waits for one."""
    fake, clock = new_fake(settings=FakeSettings(stock={("g6-standard-2", "us-east"): 3}))
    ask(fake, "POST", pools(fake), {"type": "g6-standard-2", "count": 1})
    clock.add(10)
    for more in (0, 2):
        for _ in range(more):
            body = {"type": "g6-standard-2", "region": "us-east", "image": "linode/ubuntu24.04", "root_pass": "x"}
            assert ask(fake, "POST", "/linode/instances", body)[0] == 200
        fake.advance()
        (node,) = next(iter(fake.account.pools.values())).nodes
        assert ask(fake, "DELETE", f"/linode/instances/{node.instance}")[0] == 200
        clock.add(60)
        assert len(fake.machines()) == 1 + more
        assert fake.market.left("g6-standard-2", "us-east") == 2 - more
        assert node.instance in {machine.id for machine in fake.machines()}


@pytest.mark.parametrize("tier", [STANDARD, ENTERPRISE])
def test_a_node_that_never_came_is_given_back_with_its_count(tier: str) -> None:
    """When the count is lowered, and when its pool goes."""
    fake, clock = new_fake(settings=FakeSettings(tier=tier, stock={("g6-standard-2", "us-east"): 5}))
    _, pool = ask(fake, "POST", pools(fake), {"type": "g6-standard-2", "count": 2})
    fake.faults = Faults(partial=1.0)
    ask(fake, "PUT", f"{pools(fake)}/{pool['id']}", {"count": 4})
    assert fake.market.left("g6-standard-2", "us-east") == 1
    ask(fake, "PUT", f"{pools(fake)}/{pool['id']}", {"count": 3})
    assert fake.market.left("g6-standard-2", "us-east") == 2
    ask(fake, "DELETE", f"{pools(fake)}/{pool['id']}")
    clock.add(60)
    assert (fake.machines(), fake.market.left("g6-standard-2", "us-east")) == ((), 5)


def test_a_node_that_goes_while_it_waits_for_another_machine_gives_nothing_back_twice() -> None:
    """Its first machine was given back already, and a second was never taken."""
    fake, clock = new_fake(settings=FakeSettings(stock={("g6-standard-2", "us-east"): 1}))
    _, pool = ask(fake, "POST", pools(fake), {"type": "g6-standard-2", "count": 1})
    clock.add(10)
    (machine,) = fake.machines()
    ask(fake, "DELETE", f"/linode/instances/{machine.id}")
    ask(fake, "DELETE", f"{pools(fake)}/{pool['id']}")
    clock.add(60)
    assert (fake.machines(), fake.market.left("g6-standard-2", "us-east")) == ((), 1)


def test_lists_may_see_tags_late() -> None:
    """The machine itself knows at once."""
    fake, clock = new_fake()
    fake.faults = Faults(late_tags=1.0)
    ask(fake, "POST", pools(fake), {"type": "g6-standard-2", "count": 1})
    clock.add(10)
    (machine,) = fake.machines()
    ask(fake, "PUT", f"/linode/instances/{machine.id}", {"tags": ["team:web"]})
    assert ask(fake, "GET", f"/linode/instances/{machine.id}")[1]["tags"] == ["team:web"]
    assert ask(fake, "GET", "/linode/instances")[1]["data"][0]["tags"] == []
    clock.add(30)
    assert ask(fake, "GET", "/linode/instances")[1]["data"][0]["tags"] == ["team:web"]


def test_fields_of_the_beta_are_the_betas() -> None:
    """The stable API says nothing of tiers."""
    fake, _ = new_fake(settings=FakeSettings(tier=ENTERPRISE))
    stable = Request("GET", "https://x.test/v4/lke/clusters", {"Authorization": f"Bearer {TOKEN}"}, None)
    assert "tier" not in json.loads(fake.handle(stable)[0].body)["data"][0]
    assert ask(fake, "GET", "/lke/clusters")[1]["data"][0]["tier"] == ENTERPRISE


def test_each_sort_of_call_has_its_own_window() -> None:
    """Lists are used up, and a single pool can still be asked for."""
    fake, clock = new_fake()
    for _ in range(200):
        assert ask(fake, "GET", pools(fake))[0] == 200
    assert ask(fake, "GET", pools(fake))[0] == 429
    assert ask(fake, "GET", f"/lke/clusters/{fake.cluster.id}")[0] == 200
    clock.add(60)
    assert ask(fake, "GET", pools(fake))[0] == 200


def test_an_answer_that_is_lost_was_performed() -> None:
    """And a request that is lost was not."""
    fake, _ = new_fake()
    for faults, count in ((Faults(lost_request=1.0), 0), (Faults(lost_answer=1.0), 1)):
        fake.faults = faults
        with pytest.raises(Dropped):
            ask(fake, "POST", pools(fake), {"type": "g6-standard-2", "count": 1})
        assert len(fake.account.pools) == count


def test_what_cannot_be_read_is_refused() -> None:
    """Filters, bodies and counts."""
    fake, _ = new_fake()
    for text in ("{", "[]", '{"+near": 1}', '{"tags": {"+near": 1}}', '{"+and": 1}', '{"foo": 1}'):
        for path in ("/linode/instances", pools(fake)):
            assert ask(fake, "GET", path, None, **{"X-Filter": text})[0] == 400
    for body in ({}, {"type": "none", "count": 1}, {"type": "g6-standard-2", "count": 0}):
        assert ask(fake, "POST", pools(fake), body)[0] == 400


LISTS = (
    "/linode/instances",
    "/linode/types",
    "/regions",
    "/regions/availability",
    "/images",
    "/networking/firewalls",
    "/placement/groups",
    "/locks",
    "/tags",
    "/lke/clusters",
    "/lke/versions",
    "/lke/tiers/standard/versions",
    "/lke/clusters/{cluster}/pools",
)
MACHINE = {"type": "g6-standard-2", "region": "us-east", "image": "linode/ubuntu24.04", "root_pass": "x"}
POOL = {"type": "g6-standard-2", "count": 1}


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "text", ['{"foo": 1}', '{"+order_by": "foo"}', '{"+order": "sideways"}', '{"+order": []}', '{"+order_by": []}', "{"]
)
def test_every_list_refuses_a_filter_that_it_does_not_know(path: str, text: str) -> None:
    """Also where there is nothing to find."""
    fake, _ = new_fake()
    status, body = ask(fake, "GET", path.format(cluster=fake.cluster.id), None, **{"X-Filter": text})
    assert (status, body["errors"][0]["field"]) == (400, "X-Filter")


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("/linode/types", '{"class": "premium", "vcpus": {"+gt": 2}}', ["g7-premium-4", "g7-premium-8"]),
        ("/linode/types", '{"class": "premium", "+order_by": "vcpus", "+order": "desc"}', [8, 4, 2]),
        ("/regions", '{"id": "br-gru"}', ["br-gru"]),
        ("/images", '{"label": {"+contains": "24.04"}}', ["linode/ubuntu24.04"]),
        ("/networking/firewalls", '{"label": "nodes"}', [7]),
        ("/tags", '{"label": {"+contains": "web"}}', ["team:web"]),
    ],
)
def test_every_list_shows_what_its_filter_finds(path: str, text: str, found: list[Any]) -> None:
    """In its order."""
    fake, _ = new_fake()
    fake.account.firewalls |= {7: "nodes", 8: "others"}
    fake.account.tags |= {"team:web", "team:db"}
    _, body = ask(fake, "GET", path, None, **{"X-Filter": text})
    shown = [(each.get("id"), each.get("vcpus"), each.get("label")) for each in body["data"]]
    assert len(shown) == len(found)
    assert all(one in each for one, each in zip(found, shown, strict=True))


def test_pools_are_filtered_by_their_type_and_not_by_their_tags() -> None:
    """A filter by tags is accepted and does nothing: nobody can rely on it."""
    fake, _ = new_fake()
    ask(fake, "POST", pools(fake), POOL)
    for text, count in (('{"type": "g6-standard-8"}', 0), ('{"type": "g6-standard-2", "tags": "none"}', 1)):
        _, body = ask(fake, "GET", pools(fake), None, **{"X-Filter": text})
        assert body["results"] == count


@pytest.mark.parametrize("text", ['{"id": {"+gt": "x"}}', '{"tags": {"+gt": 1}}', '{"label": {"+lte": 1}}'])
def test_what_cannot_be_compared_is_refused(text: str) -> None:
    """And not answered with a failure of the server's."""
    fake, _ = new_fake()
    ask(fake, "POST", "/linode/instances", MACHINE)
    assert ask(fake, "GET", "/linode/instances", None, **{"X-Filter": text})[0] == 400


def test_what_has_no_value_is_ordered_before_the_rest() -> None:
    """A machine without an image has none."""
    fake, clock = new_fake()
    ask(fake, "POST", "/linode/instances", MACHINE)
    ask(fake, "POST", pools(fake), POOL)
    clock.add(10)
    for direction, images in (("asc", [None, "linode/ubuntu24.04"]), ("desc", ["linode/ubuntu24.04", None])):
        text = json.dumps({"+order_by": "image", "+order": direction})
        _, body = ask(fake, "GET", "/linode/instances", None, **{"X-Filter": text})
        assert [each["image"] for each in body["data"]] == images


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/tags", {"label": "abc", "linodes": ["x"]}, "linodes"),
        ("POST", "/tags", {"label": "abc", "linodes": 5}, "linodes"),
        ("POST", "{pools}", {**POOL, "taints": 5}, "taints"),
        ("POST", "{pools}", {**POOL, "taints": ["x"]}, "taints"),
        ("POST", "{pools}", {**POOL, "taints": [{"key": "a", "effect": "Never"}]}, "taints.effect"),
        ("POST", "{pools}", {**POOL, "labels": ["ab"]}, "labels"),
        ("POST", "{pools}", {**POOL, "labels": {"a": 1}}, "labels"),
        ("POST", "{pools}", {**POOL, "labels": {"a": "b" * 64}}, "labels"),
        ("POST", "{pools}", {**POOL, "labels": {"a key!": "b"}}, "labels"),
        ("POST", "{pools}", {**POOL, "labels": {"a" * 64: "b"}}, "labels"),
        ("POST", "{pools}", {**POOL, "labels": {"a.example.com/" + "b" * 63: "b"}}, "labels"),
        ("POST", "{pools}", {**POOL, "labels": {"a" * 90 + ".example.com/" + "b" * 30: "b"}}, "labels"),
        ("POST", "{pools}", {**POOL, "taints": [{"key": "", "effect": "NoSchedule"}]}, "taints.key"),
        ("POST", "{pools}", {**POOL, "taints": [{"key": "a" * 64, "effect": "NoSchedule"}]}, "taints.key"),
        ("PUT", "{pool}", {"taints": [{"key": "a", "value": "b!", "effect": "NoSchedule"}]}, "taints.value"),
        ("POST", "{pools}", {**POOL, "type": "g6-nanode-1"}, "type"),
        ("POST", "/locks", {"entity_type": "linode", "entity_id": 1, "lock_type": "cannot_delete"}, "entity_id"),
        ("POST", "/locks", {"entity_type": "volume", "entity_id": 1, "lock_type": "cannot_delete"}, "entity_type"),
        ("POST", "/networking/firewalls", {"label": "web"}, "rules"),
        ("POST", "/networking/firewalls", {"label": "ab", "rules": {}}, "label"),
        ("POST", "/placement/groups", {"label": "web", "placement_group_type": "far"}, "placement_group_type"),
        ("POST", "{pools}", {**POOL, "autoscaler": 5}, "autoscaler"),
        ("POST", "{pools}", {**POOL, "autoscaler": {"enabled": "yes"}}, "autoscaler.enabled"),
        ("POST", "{pools}", {**POOL, "autoscaler": {"enabled": True, "min": 9, "max": 1}}, "autoscaler"),
        ("PUT", "{pool}", {"autoscaler": {"enabled": True, "min": 9, "max": 1}}, "autoscaler"),
        ("PUT", "{pool}", {"firewall_id": []}, "firewall_id"),
        ("PUT", "{pool}", {"count": "3"}, "count"),
        ("POST", "/linode/instances", {**MACHINE, "metadata": "x"}, "metadata"),
        ("POST", "/linode/instances", {**MACHINE, "metadata": {"user_data": 5}}, "metadata.user_data"),
        ("POST", "/linode/instances", {**MACHINE, "firewall_id": []}, "firewall_id"),
        ("POST", "/linode/instances", {**MACHINE, "placement_group": {"id": 5}}, "placement_group.id"),
        ("POST", "/linode/instances", {**MACHINE, "disk_encryption": "maybe"}, "disk_encryption"),
        ("POST", "/linode/instances", {**MACHINE, "swap_size": -5}, "swap_size"),
        ("POST", "/linode/instances", {**MACHINE, "tags": "abc"}, "tags"),
        ("PUT", "/linode/instances/{machine}", {"label": []}, "label"),
        ("PUT", "/linode/instances/{machine}", {"tags": "abc"}, "tags"),
    ],
)
def test_a_field_of_another_form_is_refused_by_its_name(method: str, path: str, body: Any, field: str) -> None:
    """And nothing is done."""
    fake, _ = new_fake()
    _, machine = ask(fake, "POST", "/linode/instances", MACHINE)
    _, pool = ask(fake, "POST", pools(fake), POOL)
    where = path.format(pools=pools(fake), pool=f"{pools(fake)}/{pool['id']}", machine=machine["id"])
    status, said = ask(fake, method, where, body)
    assert (status, said["errors"][0]["field"]) == (400, field)
    assert (len(fake.machines()), len(fake.account.pools), fake.account.tags) == (1, 1, set())


@pytest.mark.parametrize(
    ("method", "path", "raw", "text", "status"),
    [
        ("GET", "/images/123", None, "", 404),
        ("GET", "/linode/instances/" + "9" * 5000, None, "", 404),
        ("GET", "/lke/clusters/" + "9" * 5000 + "/pools", None, "", 404),
        ("GET", "/linode/instances?page=" + "9" * 5000, None, "", 400),
        ("GET", "/linode/instances?page_size=" + "9" * 5000, None, "", 400),
        ("GET", "/linode/instances", None, '{"+and":[' * 5000 + "{}" + "]}" * 5000, 400),
        ("GET", "/linode/instances", None, '{"+and":[' * 700 + "{}" + "]}" * 700, 400),
        ("GET", "/linode/instances", None, '{"label": "\udcff"}', 400),
        ("POST", "/tags", b'{"label":' + b"[" * 5000 + b"]" * 5000 + b"}", "", 400),
        ("POST", "/tags", b'{"label": "\xff"}', "", 400),
        ("POST", "/lke/clusters/1/recycle", b"{}", "", 404),
    ],
    ids=[
        "an image of digits",
        "a long machine",
        "a long cluster",
        "a long page",
        "a long size",
        "a filter without end",
        "a deep filter",
        "a filter of bytes",
        "a body without end",
        "a body of bytes",
        "a cluster that is not there",
    ],
)
def test_no_request_is_too_odd_to_be_refused(method: str, path: str, raw: bytes | None, text: str, status: int) -> None:
    """Numbers and nesting without an end, texts that are none, what is not there: never a failure of the fake's own."""
    fake, _ = new_fake()
    ask(fake, "POST", "/linode/instances", MACHINE)
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Filter": text}
    answer, _ = fake.handle(Request(method, f"https://x.test/v4beta{path}", headers, raw))
    assert answer.status == status
    assert json.loads(answer.body)["errors"][0]["reason"]


def test_what_the_account_has_can_be_named() -> None:
    """Its firewalls and its placement groups."""
    fake, _ = new_fake()
    fake.account.firewalls[7] = "nodes"
    fake.account.placement_groups[5] = PlacementGroup(label="apart", region="us-east")
    named = {"firewall_id": 7, "placement_group": {"id": 5}, "disk_encryption": "disabled", "swap_size": 0}
    assert ask(fake, "POST", "/linode/instances", {**MACHINE, **named})[0] == 200
    (machine,) = fake.machines()
    assert machine.settings["placement_group"]["id"] == 5


def test_labels_and_taints_that_kubernetes_takes_are_taken() -> None:
    """As long as LKE allows, with and without a domain."""
    fake, _ = new_fake()
    labels = {"a" * 63: "", "example.com/" + "b" * 62: "b" * 63, "x" * 63 + "." + "y" * 34 + "/" + "z" * 29: "1"}
    taints = [{"key": f"{'d' * 63}.example.com/{'n' * 63}", "value": "v" * 63, "effect": "NoExecute"}]
    status, made = ask(fake, "POST", pools(fake), {**POOL, "labels": labels, "taints": taints})
    assert (status, made["labels"], made["taints"]) == (200, labels, taints)


def test_its_clock_goes_on_when_it_is_told() -> None:
    """What was under way happens at once, and windows of calls begin anew: nobody waits for a boot."""
    fake, _ = new_fake()
    for _ in range(201):
        ask(fake, "GET", pools(fake))
    assert ask(fake, "GET", pools(fake))[0] == 429

    async def main() -> None:
        async with serving(fake) as url, aiohttp.ClientSession() as session:
            base = url.removesuffix("/v4beta")
            for seconds, status in ((-1, 422), ("60", 422), (10**9, 422), (100, 200)):
                async with session.post(f"{base}/fake/clock", json={"seconds": seconds}) as answer:
                    assert answer.status == status

    before = fake.now
    ask(fake, "POST", pools(fake), POOL)
    asyncio.run(main())
    assert (fake.now - before).total_seconds() == 100
    assert [each.status for each in fake.machines()] == ["running"]
    assert ask(fake, "GET", pools(fake))[0] == 200


def test_a_machine_is_found_by_its_address() -> None:
    """It has one."""
    fake, _ = new_fake()
    _, machine = ask(fake, "POST", "/linode/instances", MACHINE)
    for address, count in ((machine["ipv4"][0], 1), ("192.0.2.200", 0)):
        _, body = ask(fake, "GET", "/linode/instances", None, **{"X-Filter": json.dumps({"ipv4": address})})
        assert body["results"] == count


def test_a_region_that_is_none_has_no_availability() -> None:
    """It is not there, as every thing that is not."""
    fake, _ = new_fake()
    assert ask(fake, "GET", "/regions/nowhere/availability")[0] == 404
    assert ask(fake, "GET", "/regions/ap-west/availability")[0] == 200


def test_a_plan_that_a_region_lacks_is_forbidden_there() -> None:
    """As the vendor answers it: with 403. Pools of LKE get none either."""
    fake, _ = new_fake()
    fake.market.flags["g7-premium-2", "us-east"] = False
    for path, body in (("/linode/instances", MACHINE), (pools(fake), POOL)):
        status, said = ask(fake, "POST", path, {**body, "type": "g7-premium-2"})
        assert status == 403
        assert "not currently available in the selected region" in said["errors"][0]["reason"]
    assert (fake.machines(), fake.account.pools) == ((), {})


@pytest.mark.parametrize(
    "words",
    [
        ("--faults", "nothing=1"),
        ("--faults", "stuck=2"),
        ("--stock", "g6-standard-2"),
        ("--stock", "cx33@us-east=1"),
        ("--port", "70000"),
    ],
)
def test_the_command_refuses_what_it_does_not_know(words: tuple[str, str]) -> None:
    """In one line, with exit code 2."""
    assert run(["fake", "linode", *words]) == 2


def test_only_linode_has_tiers() -> None:
    """A flag without an effect is refused."""
    assert run(["fake", "hetzner", "--tier", "enterprise"]) == 2


def test_words_become_faults_and_stock() -> None:
    """As `growth fake` takes them."""
    assert parse_faults("late-id=0.1,stuck=0.2") == Faults(late_id=0.1, stuck=0.2)
    assert parse_stock("g6-standard-2@us-east=3") == {("g6-standard-2", "us-east"): 3}


def test_what_is_no_request_is_answered_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """A header that is too long: whoever sent it gets a 400, and nothing is printed where the fake runs."""
    fake, _ = new_fake()

    async def main() -> None:
        long = {"X-Filter": "x" * 9000}
        async with (
            serving(fake) as url,
            aiohttp.ClientSession() as session,
            session.get(f"{url}/linode/types", headers=long) as answer,
        ):
            assert answer.status == 400
        assert caplog.records == []

    asyncio.run(main())


def test_it_is_watched_and_disturbed_while_it_runs() -> None:
    """Below /fake, over HTTP."""
    fake, _ = new_fake()

    async def main() -> None:
        async with serving(fake) as url, aiohttp.ClientSession() as session:
            base = url.removesuffix("/v4beta")
            async with session.put(f"{base}/fake/stock", json={"g6-standard-2@us-east": 1}) as answer:
                assert answer.status == 200
            async with session.put(f"{base}/fake/faults", json={"nothing": 1}) as answer:
                assert answer.status == 422
            async with session.put(
                f"{base}/fake/faults", data=b'{"slow":' + b"[" * 5000 + b"]" * 5000 + b"}"
            ) as answer:
                assert answer.status == 422
            async with session.get(f"{base}/fake/ledger") as answer:
                assert (await answer.json())["standing"] == 0
            async with session.get(f"{base}/fake/nothing") as answer:
                assert answer.status == 404

    asyncio.run(main())
    assert fake.market.left("g6-standard-2", "us-east") == 1
