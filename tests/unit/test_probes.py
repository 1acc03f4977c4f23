"""The port of probes and metrics."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import aiohttp

from growth.operator.metrics import Scrapes, new_metrics
from growth.sim.ports import SimCompute
from growth.web.health import serving


def asked(unready: Callable[[], Sequence[str]], *paths: str, accept: str = "") -> list[tuple[int, str, str]]:
    """Status, content type and body of each path."""
    scrapes = Scrapes(new_metrics(), compute=SimCompute())

    async def body() -> list[tuple[int, str, str]]:
        answers = []
        async with (
            serving("127.0.0.1", 0, unready=unready, metrics=scrapes.answer) as port,
            aiohttp.ClientSession() as session,
        ):
            for path in paths:
                async with session.get(f"http://127.0.0.1:{port}{path}", headers={"Accept": accept}) as answer:
                    answers.append((answer.status, answer.headers["Content-Type"], await answer.text()))
        return answers

    return asyncio.run(body())


def test_alive_and_ready_are_two_questions() -> None:
    """A process that knows too little to act is alive and not ready, and says what it lacks, a line each."""
    healthy, ready = asked(lambda: ("pods: NeverListed for 3 s", "nodes: Disconnected"), "/healthz", "/readyz")
    assert healthy[0::2] == (200, "ok\n")
    assert ready[0::2] == (503, "pods: NeverListed for 3 s\nnodes: Disconnected\n")
    assert asked(tuple, "/readyz")[0][0::2] == (200, "ok\n")


def test_a_scraper_gets_the_format_that_it_asks_for() -> None:
    """Prometheus' text without a wish, OpenMetrics with it; both have what this process is."""
    ((status, kind, text),) = asked(tuple, "/metrics")
    assert status == 200
    assert kind.startswith("text/plain")
    assert 'karpenter_build_info{commit="unknown"' in text
    assert "process_resident_memory_bytes" in text
    ((_, kind, text),) = asked(tuple, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


def test_other_paths_are_not_there() -> None:
    """Nothing else is served on this port."""
    assert asked(tuple, "/", "/debug")[0][0] == 404


def test_the_port_is_free_again_afterwards() -> None:
    """Leaving the block closes the port, so that the next start can have it."""

    async def body() -> None:
        async def nothing(_: str) -> tuple[bytes, str]:
            return b"", "text/plain"

        async def once(port: int) -> int:
            async with serving("127.0.0.1", port, unready=tuple, metrics=nothing) as taken:
                return taken

        first: Awaitable[int] = once(0)
        port = await first
        assert await once(port) == port

    asyncio.run(body())
