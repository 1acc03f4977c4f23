"""The fake of Hetzner's API beyond what the vendor's client shows: its books, its market, its clock and its faults."""

import asyncio
import datetime as dt
import json
import pathlib
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from decimal import Decimal
from typing import Any

import pytest

from growth.cli.entry import run
from growth.sim.clouds.frame import Dropped
from growth.sim.clouds.hetzner import FakeSettings, Faults, HetznerFake, Purchase, Times, parse_faults, parse_stock
from growth.sim.clouds.hetzner.serving import serving
from growth.sim.ports import Answer, Request
from tests.hetzner import START, TOKEN, Ticking, new_fake

GROWTH = pathlib.Path(sys.prefix) / "bin" / "growth"
BODY = {"name": "web-1", "server_type": "cx23", "image": "ubuntu-24.04", "location": "fsn1"}


def ask(fake: HetznerFake, method: str, path: str, body: Any = None, *, token: str = TOKEN) -> tuple[int, Any]:
    request = Request(
        method,
        f"https://x.test/v1{path}",
        {"Authorization": f"Bearer {token}"},
        None if body is None else json.dumps(body).encode(),
    )
    answer, _ = fake.handle(request)
    return answer.status, json.loads(answer.body) if answer.body else None


def bought(fake: HetznerFake, **more: Any) -> dict[str, Any]:
    status, body = ask(fake, "POST", "/servers", {**BODY, **more})
    assert status == 201, body
    return dict(body["server"])


def up(fake: HetznerFake, clock: Ticking, **more: Any) -> dict[str, Any]:
    server = bought(fake, **more)
    clock.add(60)
    return dict(ask(fake, "GET", f"/servers/{server['id']}")[1]["server"])


# -- books ----------------------------------------------------------------------------------------------------------


def purchase(**more: Any) -> Purchase:
    given = {"server": 1, "name": "a", "type": "cx23", "location": "fsn1", "labels": {}, "bought": START}
    return Purchase(**{**given, "hourly": Decimal("0.01"), "monthly": Decimal("5.00"), **more})


@pytest.mark.parametrize(
    ("seconds", "hours"), [(0, 1), (1, 1), (3600, 1), (3601, 2), (7200, 2), (24 * 3600, 24), (24 * 3600 + 1, 25)]
)
def test_every_hour_that_began_is_billed(seconds: float, hours: int) -> None:
    """From the first second of it, and one at least."""
    one = purchase(ended=START + dt.timedelta(seconds=seconds))
    assert one.hours(START) == hours
    assert one.cost(START) == hours * Decimal("0.01")


def test_no_month_costs_more_than_its_cap() -> None:
    """Each calendar month by itself: what begins in the next is billed by the hour again."""
    one = purchase(bought=dt.datetime(2026, 11, 1, tzinfo=dt.UTC))
    assert one.cost(dt.datetime(2026, 12, 1, tzinfo=dt.UTC)) == Decimal("5.00")
    assert one.cost(dt.datetime(2026, 12, 1, 2, tzinfo=dt.UTC)) == Decimal("5.02")
    assert one.cost(dt.datetime(2027, 1, 1, tzinfo=dt.UTC)) == Decimal("10.00")


def test_the_ledger_follows_what_is_bought() -> None:
    """A server costs from its purchase until it is gone, powered off or not; its address and its backups cost too."""
    fake, clock = new_fake()
    server = up(fake, clock)
    bare = up(fake, clock, name="web-2", public_net={"enable_ipv4": False})
    first, second = fake.ledger.standing
    assert first.hourly - second.hourly == Decimal("0.0008")
    ask(fake, "POST", f"/servers/{bare['id']}/actions/enable_backup")
    assert fake.ledger.standing[1].hourly == second.hourly * Decimal("1.2")
    clock.add(3600)
    ask(fake, "DELETE", f"/servers/{server['id']}")
    clock.add(60)
    assert [each.name for each in fake.ledger.standing] == ["web-2"]
    assert fake.ledger.hours(clock.now()) == 4
    ended = fake.ledger.purchases[0].ended
    assert ended is not None
    assert 2 <= (ended - START).total_seconds() - 3720 <= 8


# -- the market -----------------------------------------------------------------------------------------------------


def test_what_the_flag_says_is_not_what_can_be_bought() -> None:
    """A type flagged as unavailable is sold, and one that is flagged as available may be out of stock."""
    fake, _ = new_fake(settings=FakeSettings(stock={("cx33", "fsn1"): 0}))
    fake.market.flag("cx23", "fsn1", available=False)
    (kind,) = ask(fake, "GET", "/server_types?name=cx23")[1]["server_types"]
    assert {place["name"]: place["available"] for place in kind["locations"]}["fsn1"] is False
    bought(fake)
    status, refusal = ask(fake, "POST", "/servers", {**BODY, "name": "web-2", "server_type": "cx33"})
    assert (status, refusal["error"]["code"]) == (412, "resource_unavailable")


def test_a_type_is_deprecated_place_by_place() -> None:
    """It is announced, then neither listed nor sold there; what was bought stays."""
    fake, clock = new_fake()
    server = bought(fake)
    fake.market.deprecate("cx23", "fsn1", announced=START, unavailable_after=START + dt.timedelta(days=1))
    (kind,) = ask(fake, "GET", "/server_types?name=cx23")[1]["server_types"]
    told = {place["name"]: place["deprecation"] for place in kind["locations"]}
    assert told["nbg1"] is None
    assert told["fsn1"] == {"announced": "2026-11-02T09:00:00Z", "unavailable_after": "2026-11-03T09:00:00Z"}
    bought(fake, name="web-2")
    clock.add(2 * 86400)
    (kind,) = ask(fake, "GET", "/server_types?name=cx23")[1]["server_types"]
    assert {place["name"] for place in kind["locations"]} == {"nbg1", "hel1"}
    assert {price["location"] for price in kind["prices"]} == {"nbg1", "hel1"}
    assert ask(fake, "POST", "/servers", {**BODY, "name": "web-3"})[1]["error"]["code"] == "invalid_server_type"
    assert ask(fake, "GET", f"/servers/{server['id']}")[0] == 200
    fake.market.deprecate("cx23", "*", announced=START, unavailable_after=START)
    assert ask(fake, "GET", "/server_types?name=cx23")[1]["server_types"] == []


def test_prices_change_for_new_servers() -> None:
    """What was bought keeps its price."""
    fake, _ = new_fake()
    bought(fake)
    fake.market.price("cx23", "fsn1", "62.40")
    bought(fake, name="web-2")
    assert [each.hourly for each in fake.ledger.standing] == [Decimal("0.0096"), Decimal("0.1008")]


# -- time and faults ------------------------------------------------------------------------------------------------


def test_nothing_happens_while_the_clock_stands() -> None:
    """And a clock that goes back undoes nothing."""
    fake, clock = new_fake()
    server = bought(fake)
    for _ in range(3):
        assert ask(fake, "GET", f"/servers/{server['id']}")[1]["server"]["status"] == "initializing"
    clock.add(60)
    assert ask(fake, "GET", f"/servers/{server['id']}")[1]["server"]["status"] == "running"
    clock.add(-3600)
    assert ask(fake, "GET", f"/servers/{server['id']}")[1]["server"]["status"] == "running"


def test_equal_requests_at_equal_times_have_equal_answers() -> None:
    """With faults too: everything is drawn from the one seed."""

    def played() -> list[object]:
        fake, clock = new_fake(seed=7)
        fake.faults = Faults(rate_limit=0.1, server_error=0.1, late_failure=0.5, conflict=0.1, bad_gateway=0.1)
        told: list[object] = []
        for number in range(40):
            request = Request(
                "POST",
                "/v1/servers",
                {"authorization": "Bearer x"},
                json.dumps({**BODY, "name": f"w-{number}"}).encode(),
            )
            told.append(fake.handle(request))
            clock.add(3)
        return told

    assert played() == played()


def test_stuck_servers_can_be_deleted() -> None:
    """Their actions do not end by themselves."""
    fake, clock = new_fake()
    fake.faults = Faults(stuck=1.0)
    server = bought(fake)
    clock.add(86400)
    assert ask(fake, "GET", f"/servers/{server['id']}")[1]["server"]["status"] == "initializing"
    assert ask(fake, "DELETE", f"/servers/{server['id']}")[0] == 200
    clock.add(60)
    assert fake.ledger.standing == ()


def test_an_order_may_be_blamed_late() -> None:
    """The purchase is accepted, and an action fails with a code that blames what was ordered; the server stays."""
    fake, clock = new_fake()
    fake.faults = Faults(late_refusal=1.0)
    server = up(fake, clock)
    (action,) = [each for each in fake.project.actions.values() if each.command == "start_server"]
    assert action.failed
    assert action.error is not None
    assert action.error[0] == "invalid_input"
    assert [each.server for each in fake.ledger.standing] == [server["id"]]


def test_servers_vanish() -> None:
    """Without a word, some minutes after they came up."""
    fake, clock = new_fake()
    fake.faults = Faults(vanish=1.0)
    server = up(fake, clock)
    clock.add(3600)
    assert ask(fake, "GET", f"/servers/{server['id']}")[0] == 404


def test_what_is_half_done_is_done() -> None:
    """The answer is a proxy's page, and the server is there; the journal says both."""
    fake, _ = new_fake()
    fake.faults = Faults(half_done=1.0)
    answer, _seconds = fake.handle(
        Request("POST", "/v1/servers", {"authorization": "Bearer x"}, json.dumps(BODY).encode())
    )
    assert (answer.status, answer.headers["content-type"]) == (504, "text/html")
    assert len(fake.ledger.standing) == 1
    assert [(each.status, each.done) for each in fake.calls] == [(504, True)]


def test_a_lost_request_is_not_done() -> None:
    """And the journal says so."""
    fake, _ = new_fake()
    fake.faults = Faults(lost_request=1.0)
    with pytest.raises(Dropped):
        ask(fake, "POST", "/servers", BODY)
    assert fake.ledger.purchases == ()
    (call,) = fake.calls
    assert (call.status, call.done) == (0, False)


def test_the_journal_holds_no_token_and_no_body() -> None:
    """What was asked and how it ended, and nothing that is a secret."""
    fake, _ = new_fake()
    bought(fake, user_data="the secret of the cluster")
    assert TOKEN not in str(fake.calls)
    assert "secret" not in str(fake.calls)


def test_a_busy_account_says_how_long() -> None:
    """The headers count down and tell when the account is whole again; the refusal quotes half of the token."""
    fake, clock = new_fake(settings=FakeSettings(calls_per_hour=3600))
    request = Request("GET", "/v1/locations", {"authorization": f"Bearer {TOKEN}"}, None)
    fake.handle(request)
    fake.spend(3500)
    answer: Answer = fake.handle(request)[0]
    assert answer.headers["ratelimit-remaining"] == "98"
    assert int(answer.headers["ratelimit-reset"]) == START.timestamp() + 3502
    fake.spend(1000)
    refused = fake.handle(request)[0]
    assert refused.status == 429
    assert TOKEN[:16].encode() in refused.body
    clock.add(2)
    assert fake.handle(request)[0].status == 200


def test_the_version_may_be_left_out() -> None:
    """An address without /v1 is the same API."""
    fake, _ = new_fake()
    answers = [
        fake.handle(Request("GET", f"{path}/locations", {"authorization": "Bearer x"}, None)) for path in ("", "/v1")
    ]
    assert [answer.status for answer, _ in answers] == [200, 200]
    assert answers[0][0].body == answers[1][0].body


def test_a_network_has_as_many_addresses_as_it_has() -> None:
    """When they are used up a server cannot be had in it."""
    fake, clock = new_fake(settings=FakeSettings(times=Times(create=(1, 1), attach=(1, 1))))
    subnet = {"type": "cloud", "network_zone": "eu-central", "ip_range": "10.0.0.0/29"}
    _, made = ask(fake, "POST", "/networks", {"name": "n", "ip_range": "10.0.0.0/16", "subnets": [subnet]})
    for number in range(5):
        bought(fake, name=f"web-{number}", networks=[made["network"]["id"]])
    clock.add(60)
    servers = ask(fake, "GET", "/servers")[1]["servers"]
    assert len({server["private_net"][0]["ip"] for server in servers}) == 5
    refused = ask(fake, "POST", "/servers", {**BODY, "name": "web-5", "networks": [made["network"]["id"]]})
    assert refused[1]["error"]["code"] == "no_subnet_available"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/nothing", None, 404, "not_found"),
        ("PATCH", "/servers", None, 405, "method_not_allowed"),
        ("POST", "/servers", [], 400, "json_error"),
        ("POST", "/servers", {**BODY, "nmae": "x"}, 422, "invalid_input"),
        ("POST", "/servers", {**BODY, "volumes": [3]}, 404, "not_found"),
        ("POST", "/images", {}, 405, "method_not_allowed"),
        ("GET", "/servers?page=0", None, 422, "invalid_input"),
        ("GET", "/servers?sort=size", None, 422, "invalid_input"),
        ("GET", "/servers?status=asleep", None, 422, "invalid_input"),
        ("POST", "/placement_groups", {"name": "g", "type": "pack"}, 422, "invalid_input"),
        ("POST", "/networks", {"name": "n", "ip_range": "somewhere"}, 422, "invalid_input"),
        ("POST", "/ssh_keys", {"name": "k", "public_key": "no key"}, 422, "invalid_input"),
    ],
)
def test_bad_requests(method: str, path: str, body: Any, status: int, code: str) -> None:
    """Each has its status and its code."""
    fake, _ = new_fake()
    answer = ask(fake, method, path, body)
    assert (answer[0], answer[1]["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("method", "path", "raw", "status"),
    [
        ("GET", "/servers/" + "9" * 5000, None, 404),
        ("GET", "/servers?page=" + "9" * 5000, None, 422),
        ("GET", "/actions?id=" + "9" * 5000, None, 422),
        ("POST", "/servers", b'{"name":' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
        ("POST", "/servers", b'{"name": "\xff"}', 400),
    ],
    ids=["a long server", "a long page", "a long action", "a body without end", "a body of bytes"],
)
def test_no_request_is_too_odd_to_be_refused(method: str, path: str, raw: bytes | None, status: int) -> None:
    """Numbers and nesting without an end, texts that are none: never a failure of the fake's own."""
    fake, _ = new_fake()
    answer, _ = fake.handle(Request(method, f"https://x.test/v1{path}", {"Authorization": f"Bearer {TOKEN}"}, raw))
    assert answer.status == status


# -- how it is told ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["cx33", "cx33@fsn1", "cx33=2", "cx33@fsn1=two", "cx33@fsn1=-1", "@fsn1=1"])
def test_stock_that_cannot_be_read(text: str) -> None:
    """The message says how it is written."""
    with pytest.raises(ValueError, match="TYPE@LOCATION=NUMBER"):
        parse_stock(text)


@pytest.mark.parametrize("text", ["lost=0.1", "slow=2", "slow=often", "slow"])
def test_faults_that_cannot_be_read(text: str) -> None:
    """The message says which there are, or what a rate is."""
    with pytest.raises(ValueError, match=r"is no fault: rate-limit, |is a number from 0 to 1"):
        parse_faults(text)


def test_stock_and_faults_are_read() -> None:
    """Case does not matter in the names of types."""
    assert parse_stock("CX33@fsn1=2, *@hel1=0") == {("cx33", "fsn1"): 2, ("*", "hel1"): 0}
    assert parse_faults("lost-answer=0.5,slow=1") == Faults(lost_answer=0.5, slow=1.0)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--stock", "cx99@fsn1=1"], "cx99"),
        (["--stock", "cx33@ash=1"], "not sold in ash"),
        (["--faults", "x=1"], "is no fault"),
        (["--port", "70000"], "a port is a number"),
    ],
)
def test_bad_words_of_the_command(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what is wrong, and the exit code of bad input."""
    assert run(["fake", "hetzner", *words]) == 2
    assert told in capsys.readouterr().err


def test_the_command_serves_until_it_is_told_to_stop() -> None:
    """It says where it is, answers as the vendor does, and says at the end what was bought."""
    command = [str(GROWTH), "fake", "hetzner", "--stock", "cx23@fsn1=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split(" is at ")[1].split(";")[0]
        assert process.stdout.readline() == f"growth run --provider hetzner --api-endpoint {url}\n"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        order = urllib.request.Request(f"{url}/servers", json.dumps(BODY).encode(), headers)
        with urllib.request.urlopen(order) as answer:
            assert answer.status == 201
        with urllib.request.urlopen(url.replace("/v1", "/fake/ledger")) as answer:
            assert json.load(answer)["standing"] == 1
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "Bought 1 machines, 1 of them still there.\n"
    assert process.returncode == 0


def test_what_only_a_fake_has() -> None:
    """Its machines with their user data, and the means to change it while it runs; mistakes are told."""

    async def main() -> None:
        fake, _ = new_fake()
        bought(fake, user_data="#cloud-config")
        async with serving(fake) as url:
            root = url.removesuffix("/v1")

            def call(method: str, path: str, body: Any = None) -> Any:
                data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
                request = urllib.request.Request(f"{root}/fake/{path}", data, method=method)
                try:
                    with urllib.request.urlopen(request) as answer:
                        return json.load(answer)
                except urllib.error.HTTPError as error:
                    with error:
                        return error.code, json.load(error)["error"]

            async def calls(method: str, path: str, body: Any = None) -> Any:
                return await asyncio.to_thread(call, method, path, body)

            (machine,) = (await calls("GET", "machines"))["machines"]
            assert (machine["name"], machine["userData"]) == ("web-1", "#cloud-config")
            assert [each["path"] for each in (await calls("GET", "calls"))["calls"]] == ["/v1/servers"]
            await calls("PUT", "stock", {"cx23@fsn1": 0})
            assert fake.market.left("cx23", "fsn1") == 0
            await calls("PUT", "stock", {"cx23@*": None})
            assert fake.market.left("cx23", "fsn1") is None
            await calls("PUT", "faults", {"slow": 0.5})
            assert fake.faults == Faults(slow=0.5)
            await calls("PUT", "token", {"readonly": True})
            assert fake.readonly
            await calls("POST", "spend", {"calls": 4000})
            assert (await calls("PUT", "stock", {"cx99@fsn1": 1}))[0] == 422
            assert (await calls("PUT", "faults", {"none-such": 1}))[0] == 422
            assert (await calls("GET", "nothing"))[0] == 404
            no_numbers: list[Any] = ["abc", -3, 1.5, True, []]
            wrong: list[tuple[str, Any]] = [
                *(("stock", {"cx33@fsn1": 7, "cx23@fsn1": each}) for each in no_numbers),
                *(("token", {"readonly": word}) for word in ("false", 0, None)),
                *(("faults", {"slow": rate}) for rate in (None, True, "often", 2)),
                ("stock", []),
                ("stock", b"{"),
            ]
            for path, body in wrong:
                assert (await calls("PUT", path, body))[0] == 422, (path, body)
            for calls_spent in (None, -1, "many", 0.5, True):
                assert (await calls("POST", "spend", {"calls": calls_spent}))[0] == 422, calls_spent
            assert fake.market.left("cx33", "fsn1") is None, "what is half wrong is not done by half"
            assert fake.readonly

    asyncio.run(main())
