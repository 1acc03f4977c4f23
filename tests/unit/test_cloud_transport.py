"""HTTP to a cloud over real connections: one request is one exchange."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest

from growth.kube.api import ALWAYS_OPEN, Gate
from growth.kube.errors import GateClosed
from growth.kube.memory import MemoryApi, MemoryServer
from growth.operator.clouds import chosen
from growth.operator.settings import read
from growth.ports import NothingSent, SystemClock, SystemRandom, TransportError
from growth.providers.http import (
    AioTransport,
    Client,
    ClientSettings,
    Dialect,
    EndpointError,
    Problem,
    Refused,
    Secret,
    Unanswered,
)
from growth.providers.http.aio import CONNECTIONS, check_endpoint
from growth.sim.clouds.hetzner import Faults
from growth.sim.clouds.hetzner.serving import serving
from tests.hetzner import TOKEN, new_fake

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Answers by a list of bytes, each for one request; None closes the connection instead."""

    def __init__(self, *answers: bytes | None) -> None:
        self.requests: list[str] = []
        self.headers: list[str] = []
        self._answers = list(answers)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.requests.append(head.split(" HTTP")[0])
                self.headers.append(head)
                answer = self._answers.pop(0) if self._answers else None
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        writer.close()


async def send(transport: AioTransport, method: str, url: str, *, seconds: float = 10) -> int:
    answer = await transport.request(
        method, url, headers={"Authorization": "Bearer x"}, body=None, timeout_seconds=seconds
    )
    return answer.status


def run(body: Callable[[AioTransport], Awaitable[None]]) -> None:
    async def main() -> None:
        async with AioTransport.open(environ={}) as transport:
            await body(transport)

    asyncio.run(main())


def test_nobody_listens() -> None:
    """Where no connection is made it is known that nothing was sent."""

    async def body(transport: AioTransport) -> None:
        async with Server().listening() as url:
            pass
        with pytest.raises(NothingSent, match="refused"):
            await send(transport, "POST", url)

    run(body)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_write_is_not_repeated_when_a_kept_connection_breaks(method: str) -> None:
    """The client library would send it again by itself; whether the first took effect is unknown, so it is told."""

    async def body(transport: AioTransport) -> None:
        server = Server(OK, None, OK)
        async with server.listening() as url:
            assert await send(transport, "GET", url) == 200
            with pytest.raises(TransportError) as caught:
                await send(transport, method, f"{url}/servers/1")
            assert not isinstance(caught.value, NothingSent)
            assert server.requests == ["GET /", f"{method} /servers/1"]

    run(body)


def test_an_answer_that_does_not_come() -> None:
    """The wait has an end, and the outcome is unknown."""

    async def body(transport: AioTransport) -> None:
        server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        async with server.listening() as url:
            with pytest.raises(TransportError, match="in the time allowed") as caught:
                await send(transport, "POST", url, seconds=0.05)
            assert not isinstance(caught.value, NothingSent)

    run(body)


def test_a_redirection_is_an_answer() -> None:
    """The token goes to the address that was named and to no other."""

    async def body(transport: AioTransport) -> None:
        elsewhere = Server(OK)
        async with elsewhere.listening() as other:
            server = Server(f"HTTP/1.1 302 Found\r\nLocation: {other}/\r\nContent-Length: 0\r\n\r\n".encode())
            async with server.listening() as url:
                assert await send(transport, "GET", url) == 302
        assert elsewhere.requests == []

    run(body)


def test_a_closed_gate_stops_the_first_byte() -> None:
    """Asked when the connection is there and the write would leave; nothing arrives."""

    class Closed:
        def check(self) -> None:
            raise GateClosed("the lease is too old")

    async def main() -> None:
        server = Server(OK, OK)
        async with AioTransport.open(gate=Closed(), environ={}) as transport, server.listening() as url:
            with pytest.raises(GateClosed):
                await send(transport, "POST", f"{url}/servers")
            assert await send(transport, "GET", url) == 200
        assert [each for each in server.requests if each.startswith("POST")] == []

    asyncio.run(main())


class CountedGate:
    """Open for the first `opens` checks."""

    def __init__(self, opens: int) -> None:
        self.left = opens

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise GateClosed("the lease is too old")


def test_a_gate_that_closes_before_the_body_leaves() -> None:
    """The head waits for the body: when the machine sleeps between the two, nothing of the write arrives."""

    async def main() -> None:
        server = Server(OK, OK)
        gate = CountedGate(1)
        async with AioTransport.open(gate=gate, environ={}) as transport, server.listening() as url:
            with pytest.raises(GateClosed):
                await transport.request("POST", f"{url}/servers", headers={}, body=b"{}", timeout_seconds=10)
        assert gate.left == -1
        assert server.requests == []

    asyncio.run(main())


def test_a_gate_that_closes_while_a_write_waits_for_a_connection() -> None:
    """Every connection is taken: the write that waits for one asks the gate when it has got it, and not before."""

    class Door:
        closed = False

        def check(self) -> None:
            if self.closed:
                raise GateClosed("the lease is too old")

    async def main() -> None:
        seen: list[str] = []
        taken, free = asyncio.Event(), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError):
                seen.append((await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[0])
                if len(seen) == CONNECTIONS:
                    taken.set()
                await free.wait()
                writer.write(OK)
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url, door = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", Door()
        async with AioTransport.open(environ={}) as shared:
            reads = [asyncio.create_task(send(shared, "GET", url)) for _ in range(CONNECTIONS)]
            await taken.wait()
            write = asyncio.create_task(send(shared.behind(door), "POST", url))
            await asyncio.sleep(0)
            door.closed = True
            free.set()
            with pytest.raises(GateClosed):
                await write
            assert await asyncio.gather(*reads) == [200] * CONNECTIONS
        server.close()
        await server.wait_closed()
        assert "POST" not in seen

    asyncio.run(main())


@pytest.mark.parametrize("cloud", ["hetzner", "linode"])
def test_the_clouds_of_growth_run_ask_the_gate_at_the_last_moment(cloud: str) -> None:
    """Their clients ask the gate before a request waits for a connection; their transport asks it after that."""
    gates: list[Gate] = []

    class Noting(AioTransport):
        def behind(self, gate: Gate) -> AioTransport:
            gates.append(gate)
            return super().behind(gate)

    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            transport = Noting(session, gate=ALWAYS_OPEN, environ={})
            flags = {"provider": cloud, "apiEndpoint": "http://127.0.0.1:1/v1", "linodeCluster": "c"}
            settings = read(flags if cloud == "linode" else {**flags, "linodeCluster": ""}, {})
            make = chosen(settings, clock=SystemClock(), random=SystemRandom(), transport=transport)
            api = MemoryApi(MemoryServer(SystemClock(), SystemRandom()))
            gate = CountedGate(0)
            make(api, cluster="abc", gate=gate)
            assert gates == [gate]

    asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "api.hetzner.cloud",
        "ftp://api.hetzner.cloud",
        "http://api.hetzner.cloud/v1",
        "https://user:password@api.hetzner.cloud",
        "https://api.hetzner.cloud/v1?x=1",
        "",
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    """A token does not go over the wire in the clear, and an address holds no password."""
    with pytest.raises(EndpointError) as caught:
        check_endpoint(url)
    assert "password@" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://api.hetzner.cloud/v1/", "http://127.0.0.1:80/v1", "http://localhost:1", "http://[::1]:1"]
)
def test_addresses_that_are_taken(url: str) -> None:
    """TLS anywhere, plain HTTP on this machine."""
    assert check_endpoint(url) == url.rstrip("/")


def test_the_same_client_over_real_connections() -> None:
    """What calls the fake in process calls it over HTTP: answers, refusals with their code, lost answers."""

    def problem(body: bytes) -> Problem | None:
        return Problem(code="not_found") if b"not_found" in body else None

    async def body(transport: AioTransport) -> None:
        fake, _ = new_fake(tick=0.1)
        async with serving(fake) as url:
            client = Client(
                Dialect(name="hetzner", problem=problem),
                endpoint=check_endpoint(url),
                token=Secret(TOKEN),
                transport=transport,
                clock=SystemClock(),
                random=SystemRandom(),
                settings=ClientSettings(attempts=1),
            )
            answer = await client.call("GET", "/locations", dict, query=[("name", "fsn1")])
            assert [each["name"] for each in answer["locations"]] == ["fsn1"]
            assert (client.budget.statistics().limit, client.budget.statistics().remaining) == (3600, 3599)
            with pytest.raises(Refused) as caught:
                await client.call("GET", "/servers/1", dict)
            assert (caught.value.status, caught.value.code) == (404, "not_found")
            fake.faults = Faults(lost_answer=1.0)
            with pytest.raises(Unanswered):
                await client.call("DELETE", "/servers/1", dict)
            assert [entry.outcome for entry in client.journal.entries()] == ["200", "404", "lost"]

    run(body)
