"""HTTP to a cloud that is a function: latency, lost answers, timeouts, crashes."""

import asyncio

import pytest

from growth.ports import Response, TransportError
from growth.sim import kernel as sim
from growth.sim import process
from growth.sim.kernel import Kernel
from growth.sim.ports import Answer, Request, SimRandom, SimTransport
from growth.sim.process import Process


class Cloud:
    """Remembers what it was asked; takes `seconds` for each answer."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.asked: list[str] = []
        self._seconds = seconds

    async def __call__(self, request: Request) -> Response:
        self.asked.append(f"{request.method} {request.url}")
        await asyncio.sleep(self._seconds)
        return Answer(201, {"ratelimit-remaining": "9"}, b"{}")

    def transport(self, kernel: Kernel, *, lost_rate: float = 0.0) -> SimTransport:
        random = SimRandom(kernel.seed, "cloud")
        return SimTransport(self, kernel=kernel, random=random, lost_rate=lost_rate)


async def post(transport: SimTransport) -> Response:
    return await transport.request("POST", "/servers", headers={}, body=b"{}", timeout_seconds=30)


def test_an_answer_takes_its_time() -> None:
    """The answer is the cloud's own, after the way there, its work and the way back."""

    async def main(kernel: Kernel) -> tuple[int, bytes, float]:
        answer = await post(Cloud(seconds=2.0).transport(kernel))
        return answer.status, answer.body, kernel.time()

    status, body, seconds = sim.run(main, seed=1).value
    assert (status, body) == (201, b"{}")
    assert 2.02 <= seconds <= 2.2


def test_a_lost_answer_leaves_what_was_bought() -> None:
    """The cloud has acted, and the caller learns at its timeout that it knows nothing."""

    async def main(kernel: Kernel) -> tuple[list[str], float]:
        cloud = Cloud()
        with pytest.raises(TransportError, match="POST /servers: no answer within 30 s"):
            await post(cloud.transport(kernel, lost_rate=1.0))
        return cloud.asked, kernel.time()

    assert sim.run(main, seed=1).value == (["POST /servers"], 30.0)


def test_a_slow_cloud_is_not_waited_for_for_ever() -> None:
    """An answer after the timeout is lost too, though the cloud finished."""

    async def main(kernel: Kernel) -> float:
        with pytest.raises(TransportError):
            await post(Cloud(seconds=60).transport(kernel))
        return kernel.time()

    assert sim.run(main, seed=1).value == 30.0


def test_a_request_of_the_dead_still_arrives() -> None:
    """A process that crashes with its request on the way buys the machine all the same."""

    async def main(kernel: Kernel) -> list[str]:
        cloud = Cloud()

        async def body(_: Process) -> None:
            await post(cloud.transport(kernel))

        running = process.start(kernel, "buyer", body)
        await asyncio.sleep(0.001)
        running.crash()
        await asyncio.sleep(60)
        return cloud.asked

    assert sim.run(main, seed=1).value == ["POST /servers"]
