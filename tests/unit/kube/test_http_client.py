"""What the client of a real server makes of answers, of missing answers, and of its own limits."""

import asyncio
import json
import pathlib
from collections.abc import Awaitable, Callable

import pytest

from growth.api import meta
from growth.api.kinds import Json, Kind
from growth.kube import access, errors
from growth.kube.api import PatchType
from growth.kube.credentials import FileCredentials
from growth.kube.describe import describe
from growth.kube.http import HttpApi
from tests.unit.kube.stub import FixedClock, Request, Stub, always, answer, client, hang_up, say_nothing

MAP: Kind[Json] = Kind("", "v1", "ConfigMap", "configmaps", True, dict)
TYPED = Kind("", "v1", "Pod", "pods", True, meta.Object)
MAP_BODY = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"7"}}'
LIST_BODY = b'{"metadata":{"resourceVersion":"9"},"items":[]}'

WRITES: dict[str, Callable[[HttpApi], Awaitable[object]]] = {
    "create": lambda api: api.create(MAP, {"metadata": {"name": "a"}}, namespace="n"),
    "update": lambda api: api.update(MAP, "a", {}, namespace="n"),
    "patch": lambda api: api.patch(MAP, "a", {}, namespace="n"),
    "delete": lambda api: api.delete(MAP, "a", namespace="n"),
    "evict": lambda api: api.evict("a", namespace="n"),
    "bind": lambda api: api.bind("a", namespace="n", node="x"),
}


def status(code: int, reason: str, **extra: object) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": f"{reason}!", **extra}).encode()


async def read(api: HttpApi) -> Json:
    return await api.get(MAP, "a", namespace="n")


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", errors.BadRequest),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.MethodNotAllowed),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (503, "ServiceUnavailable", errors.ServerError),
    ],
)
def test_a_status_is_the_error_it_names(code: int, reason: str, error: type[errors.ApiError]) -> None:
    """A refusal with a Status is raised as the error of its code and reason."""

    async def law() -> None:
        async with Stub(always(code, status(code, reason))).running() as stub, client(stub) as api:
            with pytest.raises(errors.ApiError) as caught:
                await read(api)
            assert type(caught.value) is error
            assert (caught.value.code, caught.value.reason) == (code, reason)

    asyncio.run(law())


@pytest.mark.parametrize("code", [301, 403, 404, 409, 410, 502])
def test_a_proxys_answer_is_not_the_servers_word(code: int) -> None:
    """A refusal without a Status says nothing about the object: ServerError with the code, never NotFound or Gone."""

    async def law() -> None:
        script = always(code, b"<html>no</html>", headers={"Location": "http://elsewhere.invalid/"})
        async with Stub(script).running() as stub, client(stub) as api:
            with pytest.raises(errors.ServerError) as caught:
                await read(api)
            assert caught.value.code == code
            assert len(stub.seen) == 1

    asyncio.run(law())


def test_a_path_that_the_server_does_not_serve_is_not_found() -> None:
    """An API server answers unknown groups in plain text; it is known by the header of its flow control."""

    async def law() -> None:
        script = always(404, b"404 page not found", headers={"X-Kubernetes-Pf-Flowschema-Uid": "x"})
        async with Stub(script).running() as stub, client(stub) as api:
            with pytest.raises(errors.NotFound, match="does not serve"):
                await read(api)

    asyncio.run(law())


def test_the_servers_wish_to_wait_is_kept() -> None:
    """Retry-After, and retryAfterSeconds in the Status, are in the error."""

    async def law() -> None:
        for headers, details, expected in (
            ({"Retry-After": "7"}, {}, 7.0),
            ({}, {"retryAfterSeconds": 3}, 3.0),
            ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None),
        ):
            script = always(429, status(429, "TooManyRequests", details=details), headers=headers)
            async with Stub(script).running() as stub, client(stub) as api:
                with pytest.raises(errors.TooManyRequests) as caught:
                    await read(api)
                assert caught.value.retry_after_seconds == expected

    asyncio.run(law())


def test_without_a_server_nothing_was_sent() -> None:
    """A refused connection is Unreachable, for writes too: trying again is safe."""

    async def law() -> None:
        async with Stub(hang_up).running() as stub:
            pass
        async with client(stub) as api:
            for call in (read, *WRITES.values()):
                with pytest.raises(errors.Unreachable, match="connection refused"):
                    await call(api)

    asyncio.run(law())


@pytest.mark.parametrize("verb", sorted(WRITES))
def test_a_write_that_got_no_answer_is_sent_once(verb: str) -> None:
    """A connection that breaks after a write was sent is OutcomeUnknown, and the write is not sent again."""

    def script(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.method == "GET":
            writer.write(answer(200, MAP_BODY))
        else:
            writer.close()

    async def law() -> None:
        async with Stub(script).running() as stub, client(stub) as api:
            await read(api)  # so that the write meets a kept connection, which libraries like to repeat on
            with pytest.raises(errors.OutcomeUnknown):
                await WRITES[verb](api)
            assert len(stub.seen) == 2

    asyncio.run(law())


def test_a_read_survives_a_stale_connection() -> None:
    """A read that meets a connection which the server has closed meanwhile is sent again, on a new one."""

    async def law() -> None:
        answers = iter([True, False, True])

        def script(_: Request, writer: asyncio.StreamWriter) -> None:
            if next(answers):
                writer.write(answer(200, MAP_BODY))
            else:
                writer.close()

        async with Stub(script).running() as stub, client(stub) as api:
            await read(api)
            assert (await read(api))["metadata"]["name"] == "a"
            assert len(stub.seen) == 3

    asyncio.run(law())


def test_half_an_answer_is_no_answer() -> None:
    """A body that breaks off leaves the outcome unknown."""

    def script(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 X\r\nContent-Length: 100\r\n\r\n" + MAP_BODY[:20])
        writer.close()

    async def law() -> None:
        async with Stub(script).running() as stub, client(stub) as api:
            with pytest.raises(errors.OutcomeUnknown):
                await WRITES["create"](api)

    asyncio.run(law())


@pytest.mark.parametrize("body", [b"not json", b"[]", b""])
def test_an_answer_that_cannot_be_read_leaves_the_outcome_unknown(body: bytes) -> None:
    """The server said yes to something; what, we cannot tell."""

    async def law() -> None:
        async with Stub(always(200, body)).running() as stub, client(stub) as api:
            with pytest.raises(errors.OutcomeUnknown, match="configmaps"):
                await WRITES["patch"](api)

    asyncio.run(law())


def test_every_call_has_a_deadline() -> None:
    """A server that takes the request and says nothing leaves the outcome unknown when the time is over."""

    async def law() -> None:
        # All at once, so that each may have time enough to be sent by a busy machine.
        async with Stub(say_nothing).running() as stub, client(stub, deadline_seconds=3.0) as api:
            calls = [call(api) for call in (read, *WRITES.values())]
            for ended in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(ended, errors.OutcomeUnknown), ended
                assert "time allowed" in str(ended)

    asyncio.run(law())


def test_a_call_that_waits_too_long_for_its_turn_was_never_sent() -> None:
    """The deadline covers the wait of the rate limit, and then nothing has left."""

    async def law() -> None:
        async with (
            Stub(always(200, MAP_BODY)).running() as stub,
            client(
                stub, qps=0.001, burst=1, deadline_seconds=3.0
            ) as api,  # the first call must not be late on a busy machine
        ):
            await read(api)
            with pytest.raises(errors.Unreachable):
                await WRITES["delete"](api)
            assert len(stub.seen) == 1

    asyncio.run(law())


class CountedGate:
    """Open for the first `opens` checks."""

    def __init__(self, opens: int) -> None:
        self.left = opens

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise errors.GateClosed("the lease is too old")


@pytest.mark.parametrize("verb", sorted(WRITES))
@pytest.mark.parametrize("opens", [0, 1, 2])
def test_no_write_leaves_through_a_closed_gate(verb: str, opens: int) -> None:
    """A gate that is closed, or closes while the call waits for its connection or its body, keeps the write from leaving."""

    async def law() -> None:
        async with Stub(always(200, MAP_BODY)).running() as stub, client(stub, gate=CountedGate(opens)) as api:
            with pytest.raises(errors.GateClosed):
                await WRITES[verb](api)
            assert stub.seen == []

    asyncio.run(law())


def test_reads_pass_a_closed_gate() -> None:
    """The gate is for writes."""

    async def law() -> None:
        async with Stub(always(200, MAP_BODY)).running() as stub, client(stub, gate=CountedGate(0)) as api:
            await read(api)

    asyncio.run(law())


def test_calls_wait_for_their_turn() -> None:
    """Calls beyond the burst go out at the average rate."""

    async def law() -> None:
        clock = FixedClock()  # stands still, so that no turn is earned while the calls are made
        async with (
            Stub(always(200, MAP_BODY)).running() as stub,
            client(stub, qps=0.001, burst=3, deadline_seconds=3.0, clock=clock) as api,
        ):
            results = await asyncio.gather(*(read(api) for _ in range(5)), return_exceptions=True)
            assert [isinstance(result, errors.Unreachable) for result in results] == [False] * 3 + [True] * 2
            assert len(stub.seen) == 3

    asyncio.run(law())


def only(token: str, *, body: bytes = MAP_BODY) -> Callable[[Request, asyncio.StreamWriter], None]:
    """A server that knows one token."""

    def script(request: Request, writer: asyncio.StreamWriter) -> None:
        good = request.headers.get("authorization") == f"Bearer {token}"
        writer.write(answer(200, body) if good else answer(401, status(401, "Unauthorized")))

    return script


def with_token_file(stub: Stub, path: pathlib.Path) -> access.Access:
    return access.Access(server=stub.url, origin="a test", credentials=FileCredentials(token_file=path))


def test_a_read_that_was_refused_uses_the_new_token(tmp_path: pathlib.Path) -> None:
    """After a 401 the credentials are read again, and a read is sent once more."""
    token = tmp_path / "token"

    async def law() -> None:
        async with Stub(only("new")).running() as stub:
            token.write_text("old")
            async with client(stub, found=with_token_file(stub, token)) as api:
                token.write_text("new\n")
                await read(api)
                assert [request.headers["authorization"] for request in stub.seen] == ["Bearer old", "Bearer new"]

    asyncio.run(law())


def test_a_write_that_was_refused_is_the_callers_to_repeat(tmp_path: pathlib.Path) -> None:
    """After a 401 a write is not repeated, but the next call has the new token."""
    token = tmp_path / "token"

    async def law() -> None:
        async with Stub(only("new")).running() as stub:
            token.write_text("old")
            async with client(stub, found=with_token_file(stub, token)) as api:
                token.write_text("new")
                with pytest.raises(errors.Unauthorized):
                    await WRITES["create"](api)
                assert len(stub.seen) == 1
                await WRITES["create"](api)

    asyncio.run(law())


def test_a_bad_token_is_tried_twice_and_no_more(tmp_path: pathlib.Path) -> None:
    """A token that stays bad is Unauthorized after one more try, for watches too."""
    token = tmp_path / "token"
    token.write_text("bad")

    async def law() -> None:
        async with Stub(only("good")).running() as stub, client(stub, found=with_token_file(stub, token)) as api:
            with pytest.raises(errors.Unauthorized):
                await read(api)
            with pytest.raises(errors.Unauthorized):
                async with api.watch(MAP, revision=""):
                    raise AssertionError("opened")
            assert len(stub.seen) == 4

    asyncio.run(law())


def test_a_rotated_token_is_read_again_in_time(tmp_path: pathlib.Path) -> None:
    """A token file is read again after a minute, before anything was refused."""
    token = tmp_path / "token"
    token.write_text("first")

    async def law() -> None:
        clock = FixedClock()
        async with (
            Stub(always(200, MAP_BODY)).running() as stub,
            client(stub, found=with_token_file(stub, token), clock=clock) as api,
        ):
            token.write_text("second")
            for seconds in (59, 1):
                clock.advance(seconds)
                await read(api)
            assert [request.headers["authorization"] for request in stub.seen] == ["Bearer first", "Bearer second"]

    asyncio.run(law())


def test_secrets_stay_out_of_errors(tmp_path: pathlib.Path) -> None:
    """No error, however it is shown, holds the token."""
    secret = "s3cr3t-token"

    async def law() -> None:
        for script in (hang_up, always(401, b"{}"), always(403, status(403, "Forbidden")), always(200, b"nonsense")):
            async with Stub(script).running() as stub, client(stub, token=secret) as api:
                with pytest.raises(errors.KubeError) as caught:
                    await read(api)
                known = access.direct(stub.url, token=secret)
                chain = [caught.value, caught.value.__cause__, caught.value.__context__]
                shown = [*map(repr, chain), *map(str, chain), describe(caught.value, known), repr(known)]
                assert not any(secret in text for text in shown)
                assert stub.seen[0].headers["authorization"] == f"Bearer {secret}"

    asyncio.run(law())


def test_a_proxys_password_stays_out_of_errors() -> None:
    """A proxy that refuses, and one that is not there, are named as proxies and without their address."""

    async def law() -> None:
        async with Stub(always(407, b"")).running() as stub:
            refusing = stub.url.replace("http://", "http://me:s3cr3t@")
            for proxy, says in (
                (refusing, "its proxy answered 407"),
                ("http://me:s3cr3t@127.0.0.1:1", "does not answer"),
            ):
                found = access.Access(
                    server="https://dev.invalid", origin="a test", credentials=FileCredentials(), proxy=proxy
                )
                async with client(stub, found=found) as api:
                    with pytest.raises(errors.Unreachable, match=says) as caught:
                        await read(api)
                    assert "s3cr3t" not in str(caught.value)
                    assert "s3cr3t" not in repr(found)

    asyncio.run(law())


def test_requests_say_who_asks_and_what_for() -> None:
    """Agent, media types, selectors and quoted names are on the wire as servers expect them."""

    async def law() -> None:
        async with Stub(always(200, LIST_BODY)).running() as stub, client(stub) as api:
            await api.list(MAP, namespace="n", labels="a in (b, c)", fields="x=y", limit=5, page="p", revision="0")
            await api.patch(MAP, "a/b c", {}, namespace="n", patch_type=PatchType.STRATEGIC, revision="3", uid="u")
            listed, patched = stub.seen
            assert listed.headers["user-agent"] == "growth/test"
            assert listed.headers["accept"] == "application/json"
            path, _, query = listed.path.partition("?")
            assert path == "/api/v1/namespaces/n/configmaps"
            assert sorted(query.split("&")) == [
                "continue=p",
                "fieldSelector=x%3Dy",
                "labelSelector=a+in+(b,+c)",
                "limit=5",
                "resourceVersion=0",
            ]
            assert patched.path == "/api/v1/namespaces/n/configmaps/a%2Fb%20c"
            assert patched.headers["content-type"] == "application/strategic-merge-patch+json"
            assert json.loads(patched.body) == {"metadata": {"resourceVersion": "3", "uid": "u"}}

    asyncio.run(law())


def test_a_name_is_needed() -> None:
    """An empty name would mean the whole collection, and an empty namespace another path: both are refused here."""

    async def law() -> None:
        async with Stub(always(200, MAP_BODY)).running() as stub, client(stub) as api:
            with pytest.raises(ValueError, match="name is needed"):
                await api.delete(MAP, "", namespace="n")
            with pytest.raises(ValueError, match="namespace is needed"):
                await api.delete(MAP, "a")
            with pytest.raises(ValueError, match="test operations"):
                await api.patch(MAP, "a", (), namespace="n", patch_type=PatchType.JSON, uid="u")
            assert stub.seen == []

    asyncio.run(law())


def test_a_list_without_items_is_empty() -> None:
    """Servers may write null for no items."""

    async def law() -> None:
        body = b'{"metadata":{"resourceVersion":"9","continue":""},"items":null}'
        async with Stub(always(200, body)).running() as stub, client(stub) as api:
            page = await api.list(TYPED)
            assert (page.items, page.revision, page.next) == ((), "9", "")

    asyncio.run(law())
