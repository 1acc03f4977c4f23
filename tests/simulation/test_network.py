"""The simulated wire: what each fault does to a call, and what a crash leaves."""

import asyncio
import contextlib
import gc

import pytest

from growth.api.core import CONFIG_MAP
from growth.api.kinds import Json
from growth.kube.api import Gate
from growth.kube.errors import (
    Conflict,
    GateClosed,
    Gone,
    KubeError,
    OutcomeUnknown,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from growth.kube.memory import MemoryApi, MemoryServer
from growth.sim import kernel as sim
from growth.sim import process
from growth.sim.kernel import Kernel
from growth.sim.network import Faults, NetworkApi
from growth.sim.ports import SimClock, SimRandom
from growth.sim.process import Crashed, Fate, Process


def config(name: str) -> Json:
    return {"metadata": {"name": name}}


class Closed:
    def check(self) -> None:
        raise GateClosed("closed by the test")


class World:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.server = MemoryServer(SimClock(kernel), SimRandom(kernel.seed, "server"))
        self.admin = MemoryApi(self.server)

    def network(self, faults: Faults, *, of: Process | None = None, gate: Gate | None = None) -> NetworkApi:
        random = SimRandom(self.kernel.seed, "network")
        if gate is None:
            return NetworkApi(self.admin, kernel=self.kernel, random=random, faults=faults, process=of)
        return NetworkApi(self.admin, kernel=self.kernel, random=random, faults=faults, process=of, gate=gate)

    async def names(self) -> list[str]:
        listed = await self.admin.list(CONFIG_MAP, namespace="default")
        return [item.metadata.name for item in listed.items]


@pytest.mark.parametrize(
    ("faults", "error", "applied"),
    [
        (Faults(conflict=1), Conflict, False),
        (Faults(throttled=1), TooManyRequests, False),
        (Faults(server_error=1), ServerError, False),
        (Faults(unreachable=1), Unreachable, False),
        (Faults(lost_request=1), OutcomeUnknown, False),
        (Faults(lost_answer=1), OutcomeUnknown, True),
        (Faults(broken_answer=1), OutcomeUnknown, True),
        (Faults(delayed_write=1, write_delay=(40, 40)), OutcomeUnknown, True),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_each_fault_has_its_error_and_its_effect(faults: Faults, error: type[KubeError], applied: bool) -> None:  # noqa: FBT001
    """A refusal and a lost request change nothing; a lost answer does, and so does a write that lands late."""

    async def main(kernel: Kernel) -> list[str]:
        world = World(kernel)
        with pytest.raises(error):
            await world.network(faults).create(CONFIG_MAP, config("x"), namespace="default")
        await asyncio.sleep(60)
        return await world.names()

    assert ("x" in sim.run(main, seed=1).value) is applied


def test_a_closed_gate_stops_a_write_before_the_wire() -> None:
    """Reads pass a closed gate, writes do not, and the server never hears of them."""

    async def main(kernel: Kernel) -> tuple[list[str], int]:
        world = World(kernel)
        network = world.network(Faults(), gate=Closed())
        with pytest.raises(GateClosed):
            await network.create(CONFIG_MAP, config("x"), namespace="default")
        await network.list(CONFIG_MAP)
        return await world.names(), network.statistics().refused

    names, refused = sim.run(main, seed=1).value
    assert "x" not in names
    assert refused == 1


def test_a_write_that_passed_the_gate_lands_late() -> None:
    """A held write reaches the server long after, though its sender was cut off and has died since."""

    async def main(kernel: Kernel) -> tuple[bool, bool, int]:
        world = World(kernel)
        networks: list[NetworkApi] = []

        async def body(own: Process) -> None:
            network = world.network(Faults(), of=own)
            networks.append(network)
            network.hold_next_write(50)
            await network.create(CONFIG_MAP, config("x"), namespace="default")

        running = process.start(kernel, "writer", body)
        await asyncio.sleep(10)
        networks[0].partition()
        running.crash()
        await asyncio.sleep(10)
        before = "x" in await world.names()
        await asyncio.sleep(60)
        return before, "x" in await world.names(), networks[0].statistics().late

    assert sim.run(main, seed=1).value == (False, True, 1)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_process_crashes_right_after_its_nth_write(n: int) -> None:
    """The n-th write is applied, the next one never sent, and a new process goes on from there on the same server."""

    async def main(kernel: Kernel) -> tuple[Fate, int, list[str]]:
        world = World(kernel)

        async def body(own: Process) -> None:
            network = world.network(Faults(), of=own)
            there = await world.names()
            for number in range(6):
                if f"item-{number}" not in there:
                    await network.create(CONFIG_MAP, config(f"item-{number}"), namespace="default")

        first = process.start(kernel, "first", body)
        first.crash_after_write(n)
        ended = await first.wait()
        await asyncio.sleep(60)
        made = [name for name in await world.names() if name.startswith("item")]
        second = await process.start(kernel, "second", body).wait()
        assert second.fate is Fate.RETURNED
        return ended.fate, len(made), await world.names()

    fate, made, names = sim.run(main, seed=1).value
    assert fate is Fate.CRASHED
    assert made == n
    assert [name for name in names if name.startswith("item")] == [f"item-{number}" for number in range(6)]


def test_the_dead_cannot_write_from_their_finally_blocks() -> None:
    """A crashed process's clean-up reaches nobody: its Api refuses it."""

    async def main(kernel: Kernel) -> tuple[list[str], list[str]]:
        world = World(kernel)
        refused: list[str] = []

        async def body(own: Process) -> None:
            network = world.network(Faults(), of=own)
            try:
                await asyncio.sleep(100)
            finally:
                try:
                    await network.create(CONFIG_MAP, config("from the grave"), namespace="default")
                except Crashed as error:
                    refused.append(str(error))

        running = process.start(kernel, "writer", body)
        await asyncio.sleep(1)
        running.crash()
        await asyncio.sleep(60)
        return await world.names(), refused

    names, refused = sim.run(main, seed=1).value
    assert "from the grave" not in names
    assert refused == ["writer is dead"]


def test_a_crash_closes_the_connections_of_the_process() -> None:
    """The server does not keep the watches of the dead."""

    async def main(kernel: Kernel) -> tuple[int, int]:
        world = World(kernel)

        async def body(own: Process) -> None:
            network = world.network(Faults(), of=own)
            async with network.watch(CONFIG_MAP, revision="") as events:
                async for _ in events:
                    pass

        running = process.start(kernel, "watcher", body)
        await asyncio.sleep(1)
        before = world.server.statistics().watches
        running.crash()
        await asyncio.sleep(1)
        return before, world.server.statistics().watches

    assert sim.run(main, seed=1).value == (1, 0)


def test_a_frozen_process_takes_no_step_while_time_goes_on() -> None:
    """After the thaw everything that was missed happens at once."""

    async def main(kernel: Kernel) -> list[float]:
        beats: list[float] = []

        async def body(_: Process) -> None:
            for _beat in range(5):
                await asyncio.sleep(1)
                beats.append(kernel.time())

        running = process.start(kernel, "sleeper", body)
        await asyncio.sleep(2.5)
        running.freeze(10)
        await running.wait()
        assert (running.froze, running.thawed) == (2.5, 12.5)
        return beats

    assert sim.run(main, seed=1).value == [1.0, 2.0, 12.5, 13.5, 14.5]


def test_events_arrive_in_order_however_late() -> None:
    """A watch's events keep their order over a slow network, and a 410 in the stream is raised in its place."""

    async def main(kernel: Kernel) -> list[str]:
        world = World(kernel)
        network = world.network(Faults(watch_delay=(0.0, 5.0), watch_cut_seconds=200.0, watch_gone=1.0))
        heard: list[str] = []

        async def watch() -> None:
            async with network.watch(CONFIG_MAP, revision=str(world.server.revision), timeout_seconds=1e6) as events:
                async for event in events:
                    heard.append(event.object.metadata.name or "bookmark")  # noqa: PERF401 - it ends by an error

        watching = kernel.create_task(watch())
        await asyncio.sleep(1)
        for number in range(10):
            await world.admin.create(CONFIG_MAP, config(f"config-{number}"), namespace="default")
        with pytest.raises(Gone):
            await watching
        return [name for name in heard if name != "bookmark"]

    heard = sim.run(main, seed=1).value
    assert heard == [f"config-{number}" for number in range(len(heard))]
    assert heard


def test_changing_one_rate_shifts_no_other_fault() -> None:
    """With another rate of conflicts the latencies of a run stay the same."""

    async def main(kernel: Kernel) -> list[float]:
        world = World(kernel)
        network = world.network(Faults(conflict=rate))
        times: list[float] = []
        for number in range(20):
            with contextlib.suppress(Conflict):
                await network.create(CONFIG_MAP, config(f"config-{number}"), namespace="default")
            times.append(kernel.time())
        return times

    rate = 0.0
    calm = sim.run(main, seed=1).value
    rate = 0.5
    assert sim.run(main, seed=1).value == calm


def test_a_refusal_on_its_way_to_a_dead_process_is_nobodys_failure() -> None:
    """Its sender died while the answer travelled; the run goes on."""

    async def main(kernel: Kernel) -> Fate:
        world = World(kernel)

        async def body(own: Process) -> None:
            await world.network(Faults(latency=(1.0, 1.0), conflict=1), of=own).create(
                CONFIG_MAP, config("a"), namespace="default"
            )

        sender = process.start(kernel, "sender", body)
        await asyncio.sleep(1.5)
        sender.crash()
        await asyncio.sleep(60.0)
        gc.collect()  # Python tells of errors that nobody saw when it frees them
        await asyncio.sleep(1.0)
        return sender.fate

    assert sim.run(main, seed=1).value is Fate.CRASHED
