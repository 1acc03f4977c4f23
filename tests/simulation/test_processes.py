"""Simulated processes: how they start, end and crash."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from growth.sim import kernel as sim
from growth.sim import process, wire
from growth.sim.kernel import Kernel
from growth.sim.process import Exit, Fate, Process


def test_a_crash_stops_every_task_where_it_stands() -> None:
    """After a crash no task of the process takes another step, children and timers included."""

    async def main(kernel: Kernel) -> tuple[list[str], Fate]:
        steps: list[str] = []

        async def child() -> None:
            while True:
                await asyncio.sleep(1)
                steps.append("child")

        async def body(_: Process) -> None:
            task = asyncio.create_task(child())
            kernel.call_later(3.5, steps.append, "timer")
            await task

        running = process.start(kernel, "controller", body)
        await asyncio.sleep(2.5)
        running.crash()
        await asyncio.sleep(10)
        return steps, (await running.wait()).fate

    assert sim.run(main, seed=1).value == (["child", "child"], Fate.CRASHED)


def test_nothing_that_a_dead_process_does_reaches_the_loop() -> None:
    """`finally` blocks of a crashed process may run, but what they await or schedule never happens."""

    async def main(kernel: Kernel) -> list[str]:
        after: list[str] = []

        async def body(_: Process) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                asyncio.get_running_loop().call_soon(after.append, "scheduled")
                await asyncio.sleep(0)
                after.append("awaited")

        running = process.start(kernel, "controller", body)
        await asyncio.sleep(1)
        running.crash()
        await asyncio.sleep(10)
        return after

    assert sim.run(main, seed=1).value == []


def test_a_process_ends_with_its_main_coroutine() -> None:
    """When main returns, the process's other tasks stop as in an operating system."""

    async def main(kernel: Kernel) -> tuple[int, Fate]:
        beats: list[float] = []

        async def beat() -> None:
            while True:
                await asyncio.sleep(1)
                beats.append(kernel.time())

        async def body(_: Process) -> None:
            task = asyncio.create_task(beat())
            await asyncio.sleep(3.5)
            assert not task.done()

        running = process.start(kernel, "controller", body)
        ended = await running.wait()
        await asyncio.sleep(10)
        return len(beats), ended.fate

    assert sim.run(main, seed=1).value == (3, Fate.RETURNED)


def test_how_a_process_failed_is_told() -> None:
    """An exception of the main coroutine is the process's end, given to whoever waits for it."""

    async def main(kernel: Kernel) -> str:
        async def body(_: Process) -> None:
            await asyncio.sleep(1)
            raise LookupError("lost the lease")

        ended = await process.start(kernel, "controller", body).wait()
        return f"{ended.fate} at {ended.at}: {ended.error}"

    assert sim.run(main, seed=1).value == "failed at 1.0: lost the lease"


def test_what_was_sent_before_a_crash_still_arrives() -> None:
    """A request on the wire reaches the server although its sender died; the answer reaches nobody."""

    async def main(kernel: Kernel) -> tuple[list[str], list[str]]:
        served: list[str] = []
        answered: list[str] = []

        async def serve() -> str:
            served.append("created")
            return "answer"

        async def body(_: Process) -> None:
            answered.append(await wire.exchange(kernel, serve, there=2, back=1, timeout_seconds=30))

        running = process.start(kernel, "controller", body)
        await asyncio.sleep(1)
        running.crash()
        await asyncio.sleep(60)
        return served, answered

    assert sim.run(main, seed=1).value == (["created"], [])


def test_an_answer_that_is_lost_leaves_the_effect() -> None:
    """A lost answer is an error for the caller and no hindrance for the server; a lost request is never served."""

    async def main(kernel: Kernel) -> list[str]:
        served: list[str] = []

        async def serve() -> None:
            served.append("created")

        for there, back in ((0.1, float("inf")), (float("inf"), 0.1)):
            with pytest.raises(wire.Lost):
                await wire.exchange(kernel, serve, there=there, back=back, timeout_seconds=5)
        return served

    assert sim.run(main, seed=1).value == ["created"]


def test_many_crashes_leave_nothing_behind() -> None:
    """A hundred processes with task groups, locks and generators can crash one after the other."""

    async def main(kernel: Kernel) -> tuple[str, ...]:
        async def numbers() -> AsyncIterator[int]:
            try:
                while True:
                    yield 1
                    await asyncio.sleep(1)
            finally:
                await asyncio.sleep(1)

        async def consume() -> None:
            async for _ in numbers():
                await asyncio.sleep(0.5)

        async def body(_: Process) -> None:
            lock = asyncio.Lock()
            async with lock, asyncio.TaskGroup() as group:
                group.create_task(consume())
                group.create_task(consume())

        for number in range(100):
            running = process.start(kernel, f"controller-{number}", body)
            await asyncio.sleep(3.3)
            running.crash()
        await asyncio.sleep(5)
        return kernel.living()

    assert sim.run(main, seed=1).value == ("main",)


def test_a_failure_that_died_with_its_process_is_nobodys() -> None:
    """A part fails at the very moment when the process ends: the process's end is what is told, and the run goes on."""

    async def main(kernel: Kernel) -> Exit:
        kept: list[asyncio.Task[None]] = []

        async def body(own: Process) -> None:
            async def part() -> None:
                raise ValueError("the part's own trouble")

            kept.append(kernel.create_task(part()))
            await asyncio.sleep(0.0)
            own.crash()

        ended = await process.start(kernel, "unlucky", body).wait()
        await asyncio.sleep(1.0)
        kept.clear()
        gc.collect()
        await asyncio.sleep(1.0)
        return ended

    assert sim.run(main, seed=1).value.fate is Fate.CRASHED
