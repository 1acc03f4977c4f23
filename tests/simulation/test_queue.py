"""The work queue in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from growth.kube.backoff import BackoffSettings
from growth.kube.queue import WorkQueue
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import SimRandom


def in_virtual_time(body: Callable[[Kernel, WorkQueue[str]], Coroutine[Any, Any, list[object]]]) -> list[object]:
    async def main(kernel: Kernel) -> list[object]:
        settings = BackoffSettings(base_seconds=1.0, cap_seconds=8.0, jitter=0.0)
        return await body(kernel, WorkQueue(SimRandom(1, "queue"), retry=settings))

    return sim.run(main, seed=1).value


def test_a_key_that_waits_is_not_queued_twice() -> None:
    """Adding a waiting key again changes nothing; keys come out in the order of their first adding."""

    async def body(_: Kernel, queue: WorkQueue[str]) -> list[object]:
        for key in ("a", "b", "a", "c", "b"):
            queue.add(key)
        got: list[object] = [await queue.get() for _ in range(3)]
        statistics = queue.statistics()
        return [*got, statistics.merged, statistics.working]

    assert in_virtual_time(body) == ["a", "b", "c", 2, 3]


def test_a_key_in_work_is_given_out_again_only_after_done() -> None:
    """A change during the work is not lost, and nobody works on one key twice at a time."""

    async def body(_: Kernel, queue: WorkQueue[str]) -> list[object]:
        queue.add("a")
        first = await queue.get()
        queue.add("a")
        queue.add("a")
        waiting_before = queue.statistics().waiting
        queue.done(first)
        return [waiting_before, await queue.get(), queue.statistics().waiting]

    assert in_virtual_time(body) == [0, "a", 0]


def test_failures_wait_longer_and_longer_until_forgotten() -> None:
    """Retries come after 1, 2, 4, 8, 8 seconds, and after `forget` from the beginning."""

    async def body(kernel: Kernel, queue: WorkQueue[str]) -> list[object]:
        waits: list[object] = []
        for _ in range(5):
            began = kernel.time()
            queue.retry("a")
            queue.done(await queue.get())
            waits.append(kernel.time() - began)
        queue.forget("a")
        return [*waits, queue.retry("a")]

    assert in_virtual_time(body) == [1.0, 2.0, 4.0, 8.0, 8.0, 1.0]


def test_of_two_delays_the_earlier_counts() -> None:
    """A key that is planned for later can be brought forward and not put off."""

    async def body(kernel: Kernel, queue: WorkQueue[str]) -> list[object]:
        queue.add_after("a", 10)
        queue.add_after("a", 3)
        queue.add_after("a", 20)
        await queue.get()
        at = kernel.time()
        await asyncio.sleep(60)
        return [at, queue.statistics().waiting, queue.statistics().delayed]

    assert in_virtual_time(body) == [3.0, 0, 0]


def test_getters_share_the_work() -> None:
    """Several workers each get keys, none gets the same key at the same time."""

    async def body(kernel: Kernel, queue: WorkQueue[str]) -> list[object]:
        busy: dict[str, int] = {}
        most = 0

        async def worker() -> None:
            nonlocal most
            while True:
                key = await queue.get()
                busy[key] = busy.get(key, 0) + 1
                most = max(most, busy[key])
                await asyncio.sleep(1)
                busy[key] -= 1
                queue.done(key)

        workers = [kernel.create_task(worker()) for _ in range(3)]
        for round_number in range(20):
            queue.add(f"key-{round_number % 4}")
            await asyncio.sleep(0.3)
        await asyncio.sleep(30)
        return [most, queue.statistics().waiting, len(workers)]

    assert in_virtual_time(body) == [1, 0, 3]


def test_a_worker_that_is_stopped_hands_its_key_on() -> None:
    """One of two waiting workers is woken for a key and cancelled at the same moment: the other gets the key."""

    async def main(_: Kernel) -> str:
        queue: WorkQueue[str] = WorkQueue(SimRandom(1, "queue"))
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("key")
        first.cancel()
        async with asyncio.timeout(5):
            return await second

    assert sim.run(main, seed=1).value == "key"
