"""What the client makes of a watch stream: lines, errors in it, its end."""

import asyncio
import json
from collections.abc import Iterable

import pytest

from growth.api import meta
from growth.api.kinds import Json, Kind
from growth.kube import errors
from growth.kube.api import EventType, WatchEvent
from tests.unit.kube.stub import Request, Script, Stub, client, say_nothing

MAP: Kind[Json] = Kind("", "v1", "ConfigMap", "configmaps", True, dict)
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"


def stream(chunks: Iterable[bytes], *, whole: bool = True) -> Script:
    """A watch that sends these chunks; with `whole` it ends as servers end it, else the connection breaks."""

    def script(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for chunk in chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        if whole:
            writer.write(b"0\r\n\r\n")
        else:
            writer.close()

    return script


def line(event: str, **body: object) -> bytes:
    return json.dumps({"type": event, "object": body}, ensure_ascii=False).encode() + b"\n"


def added(name: str, revision: str, **data: str) -> bytes:
    return line("ADDED", metadata={"name": name, "resourceVersion": revision}, data=data)


def told(script: Script) -> list[WatchEvent[Json]]:
    async def law() -> list[WatchEvent[Json]]:
        async with Stub(script).running() as stub, client(stub) as api, api.watch(MAP, revision="1") as events:
            return [event async for event in events]

    return asyncio.run(law())


def test_events_come_through_chunks_of_any_size() -> None:
    """Where the network cuts the stream does not matter, inside a letter or between two lines."""
    text = added("a", "2", x="é\u0085\u2028") + added("b", "3")
    for size in (1, 3, 7, len(text)):
        events = told(stream(text[at : at + size] for at in range(0, len(text), size)))
        assert [event.object["metadata"]["name"] for event in events] == ["a", "b"]
        assert [event.revision for event in events] == ["2", "3"]
        assert events[0].object["data"]["x"] == "é\u0085\u2028"


def test_a_line_may_be_long() -> None:
    """An object of two megabytes is one event."""
    (event,) = told(stream([added("a", "2", x="y" * 2_000_000)]))
    assert len(event.object["data"]["x"]) == 2_000_000


def test_an_error_in_the_stream_is_raised() -> None:
    """A Status in the stream ends the watch with its error; what came before was told."""
    gone = line("ERROR", kind="Status", code=410, reason="Expired", message="too old")
    with pytest.raises(errors.Gone, match="too old"):
        told(stream([added("a", "2"), gone]))


def test_a_stream_that_ends_inside_an_event_is_broken() -> None:
    """Half a line is not dropped in silence."""
    with pytest.raises(errors.OutcomeUnknown, match="inside an event"):
        told(stream([added("a", "2")[:-5]]))


def test_a_broken_connection_is_raised() -> None:
    """A stream that was cut is no end: the reader must know."""
    with pytest.raises(errors.OutcomeUnknown):
        told(stream([added("a", "2")], whole=False))


@pytest.mark.parametrize("bad", [b"not json\n", b'{"type":"ODD","object":{}}\n', b'{"object":{}}\n'])
def test_a_line_that_cannot_be_read_is_raised(bad: bytes) -> None:
    """Nonsense in a stream is an error, not a skipped line."""
    with pytest.raises(errors.OutcomeUnknown, match="configmaps"):
        told(stream([bad]))


def test_a_bookmark_may_be_a_shell() -> None:
    """A bookmark of a typed kind is read although its object lacks everything that the kind needs."""

    class Strict(meta.Object, frozen=True, kw_only=True):
        spec: dict[str, list[str]]

    kind = Kind("", "v1", "Pod", "pods", True, Strict)
    shell = line("BOOKMARK", kind="Pod", metadata={"resourceVersion": "12"}, spec={"containers": None})

    async def law() -> None:
        async with Stub(stream([shell])).running() as stub, client(stub) as api, api.watch(kind, revision="") as events:
            (event,) = [event async for event in events]
            assert (event.type, event.revision) == (EventType.BOOKMARK, "12")

    asyncio.run(law())


def test_the_readers_errors_are_the_readers() -> None:
    """What the reader of the events raises goes through untouched, a TimeoutError too."""

    async def law() -> None:
        async with Stub(stream([added("a", "2")])).running() as stub, client(stub) as api:
            with pytest.raises(TimeoutError, match="mine"):
                async with api.watch(MAP, revision=""):
                    raise TimeoutError("mine")

    asyncio.run(law())


def test_a_watch_that_is_not_answered_ends_at_the_deadline() -> None:
    """Opening a watch has the deadline of a call."""

    async def law() -> None:
        async with Stub(say_nothing).running() as stub, client(stub, deadline_seconds=2.0) as api:
            with pytest.raises(errors.OutcomeUnknown, match="time allowed"):
                async with api.watch(MAP, revision=""):
                    raise AssertionError("opened")

    asyncio.run(law())


def test_a_watch_asks_for_bookmarks_and_an_end() -> None:
    """Bookmarks, the revision and the time are in the request."""

    async def law() -> None:
        async with Stub(stream([])).running() as stub, client(stub) as api:
            async with api.watch(MAP, revision="5", namespace="n", labels="a=b", timeout_seconds=77) as events:
                assert [event async for event in events] == []
            path, _, query = stub.seen[0].path.partition("?")
            assert path == "/api/v1/namespaces/n/configmaps"
            assert {"watch=true", "allowWatchBookmarks=true", "resourceVersion=5", "timeoutSeconds=77"} <= set(
                query.split("&")
            )

    asyncio.run(law())
