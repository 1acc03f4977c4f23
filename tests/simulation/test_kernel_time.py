"""Virtual time: what the kernel promises of clocks, order, failures and traces."""

import asyncio
import os
import pathlib
import subprocess
import sys

import pytest

from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import EPOCH, SimClock, SimCompute, SimRandom


def test_time_passes_only_when_nothing_is_ready() -> None:
    """A sleep takes exactly its length, and computing takes none."""

    async def main(kernel: Kernel) -> tuple[float, float]:
        await asyncio.sleep(0)
        busy = kernel.time()
        await asyncio.sleep(86_400.25)
        return busy, kernel.time()

    assert sim.run(main, seed=1).value == (0.0, 86_400.25)


def test_a_timer_due_exactly_now_fires() -> None:
    """A timer set for this very instant, also after time was reached by addition, runs at this instant."""

    async def main(kernel: Kernel) -> list[float]:
        fired: list[float] = []
        for _ in range(1000):
            await asyncio.sleep(0.1)  # sums of 0.1 are not the products of 0.1
        kernel.call_at(kernel.time(), lambda: fired.append(kernel.time()))
        kernel.call_later(0, lambda: fired.append(kernel.time()))
        await asyncio.sleep(0.001)
        return [kernel.time() - when for when in fired]

    assert sim.run(main, seed=1, limit_seconds=1000).value == pytest.approx([0.001, 0.001])


def test_deadlock_names_who_waits_and_where() -> None:
    """Nothing ready and no timer is an error that names each task, its process-free name and the waiting line."""

    async def stuck_forever(event: asyncio.Event) -> None:
        await event.wait()

    async def main(kernel: Kernel) -> None:
        task = kernel.create_task(stuck_forever(asyncio.Event()), name="patient")
        await task

    with pytest.raises(sim.Deadlock, match=r"patient waits in .*stuck_forever → Event.wait") as caught:
        sim.run(main, seed=7)
    assert "main waits in" in str(caught.value)
    assert "seed 7" in "".join(caught.value.__notes__)


def test_an_endless_sleep_is_no_timer() -> None:
    """Waiting for ever by `sleep(inf)` is a deadlock, not a jump to the end of time."""

    async def main(kernel: Kernel) -> None:
        await asyncio.sleep(float("inf"))

    with pytest.raises(sim.Deadlock):
        sim.run(main, seed=1)


def test_spinning_without_time_passing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that keep each other busy at one instant are found out."""
    monkeypatch.setattr(sim, "STEPS_AT_ONE_INSTANT", 1000)

    async def main(kernel: Kernel) -> None:
        for _ in range(10_000):
            await asyncio.sleep(0)

    with pytest.raises(sim.Livelock, match="main"):
        sim.run(main, seed=1)


def test_the_limit_of_virtual_time_ends_a_run() -> None:
    """A run that goes on past its limit is an error."""

    async def main(kernel: Kernel) -> None:
        for _ in range(100):
            await asyncio.sleep(10)

    with pytest.raises(sim.Overrun):
        sim.run(main, seed=1, limit_seconds=100)


def test_cancelled_timers_do_not_pile_up() -> None:
    """Thirty thousand timeouts far in the future that were not needed do not stay behind."""

    async def main(kernel: Kernel) -> int:
        for _ in range(30_000):
            async with asyncio.timeout(1e9):
                await asyncio.sleep(0.001)
        return len(kernel._scheduled)

    assert sim.run(main, seed=1).value < 25_000


def test_an_exception_nobody_looks_at_fails_the_run() -> None:
    """A background task's failure fails the run, whether its task is dropped or kept."""

    async def broken() -> None:
        raise LookupError("seen by nobody")

    async def dropped(kernel: Kernel) -> None:
        kernel.create_task(broken(), name="background")
        await asyncio.sleep(1000)

    async def kept(kernel: Kernel) -> None:
        task = kernel.create_task(broken(), name="background")
        await asyncio.sleep(1000)
        assert task.done()

    for main, when in ((dropped, "virtual time 0.0 s"), (kept, "virtual time 1000.0 s")):
        with pytest.raises(sim.Unhandled, match="background") as caught:
            sim.run(main, seed=1)
        assert isinstance(caught.value.__cause__, LookupError)
        assert when in "".join(caught.value.__notes__)


def test_an_exception_that_is_looked_at_harms_nobody() -> None:
    """A task whose failure is awaited, even late, is handled."""

    async def broken() -> None:
        raise LookupError("seen")

    async def main(kernel: Kernel) -> str:
        task = kernel.create_task(broken())
        await asyncio.sleep(1)
        try:
            await task
        except LookupError as error:
            return str(error)
        return ""

    assert sim.run(main, seed=1).value == "seen"


def test_a_deadlock_tells_of_tasks_that_had_failed() -> None:
    """When everybody waits for a task that died, the error says that it died and why."""

    async def broken() -> None:
        raise LookupError("the real cause")

    async def main(kernel: Kernel) -> None:
        task = kernel.create_task(broken(), name="feeder")
        await asyncio.Event().wait()
        task.cancel()

    with pytest.raises(sim.Deadlock, match="feeder had failed: LookupError: the real cause"):
        sim.run(main, seed=1)


def test_threads_are_refused() -> None:
    """The kernel has no threads: their timing is not the seed's."""

    async def main(kernel: Kernel) -> None:
        await asyncio.to_thread(print)

    with pytest.raises(sim.SimulationError, match="Compute"):
        sim.run(main, seed=1)


def order(kernel: Kernel, names: list[str]) -> "asyncio.Future[list[asyncio.Task[None]]]":
    async def append(name: str) -> None:
        await asyncio.sleep(1)
        names.append(name)

    async def all_of_them() -> list[asyncio.Task[None]]:
        tasks = [kernel.create_task(append(str(i))) for i in range(8)]
        await asyncio.wait(tasks)
        return tasks

    return kernel.create_task(all_of_them())


def test_order_is_first_in_first_out_unless_shuffled() -> None:
    """Without shuffling equal wake-ups run in the order of their making; with it each seed has its own order."""

    async def main(kernel: Kernel) -> str:
        names: list[str] = []
        await order(kernel, names)
        return "".join(names)

    assert {sim.run(main, seed=seed).value for seed in range(5)} == {"01234567"}
    shuffled = [sim.run(main, seed=seed, shuffle=True).value for seed in range(5)]
    assert len(set(shuffled)) == 5
    assert shuffled == [sim.run(main, seed=seed, shuffle=True).value for seed in range(5)]


def test_streams_of_randomness_are_independent() -> None:
    """A stream depends on seed and name alone; drawing from one leaves the others where they are."""
    alone = SimRandom(3, "names").uuid()
    other = SimRandom(3, "jitter")
    other.uniform(0, 1)
    assert SimRandom(3, "names").uuid() == alone
    assert SimRandom(4, "names").uuid() != alone
    assert SimRandom(3, "names").stream("a").uuid() != SimRandom(3, "names").stream("b").uuid()


def test_the_wall_clock_may_jump_and_the_monotonic_one_may_not() -> None:
    """A jump shows in `now` alone."""

    async def main(kernel: Kernel) -> tuple[float, float]:
        clock = SimClock(kernel, skew_seconds=-2.0)
        clock.jump(3600)
        await asyncio.sleep(5)
        return (clock.now() - EPOCH).total_seconds(), clock.monotonic()

    assert sim.run(main, seed=1).value == (3603.0, 5.0)


def test_by_how_much_a_clock_was_ahead_is_known_afterwards() -> None:
    """What a process sent is judged by its clock of then."""

    async def main(kernel: Kernel) -> list[float]:
        clock = SimClock(kernel, skew_seconds=-2.0)
        for seconds in (600.0, -600.0):
            await asyncio.sleep(10.0)
            clock.jump(seconds)
        return [clock.ahead(at) for at in (5.0, 10.0, 15.0, 20.0)]

    assert sim.run(main, seed=1).value == [-2.0, 598.0, 598.0, -2.0]


def test_a_suspended_machine_does_not_count_the_time() -> None:
    """Its monotonic clock goes on where it was; its wall clock is right."""

    async def main(kernel: Kernel) -> tuple[float, float, float]:
        clock = SimClock(kernel)
        await asyncio.sleep(5.0)
        clock.stop()
        await asyncio.sleep(20.0)
        asleep = clock.monotonic()
        clock.go()
        await asyncio.sleep(1.0)
        return asleep, clock.monotonic(), (clock.now() - EPOCH).total_seconds()

    assert sim.run(main, seed=1).value == (5.0, 6.0, 26.0)


def test_computing_takes_virtual_time() -> None:
    """The result is that of the moment of asking, and arrives after the time that its work took."""

    async def main(kernel: Kernel) -> tuple[int, int, float]:
        pods = [1, 2]
        kernel.call_later(1, pods.append, 3)
        compute = SimCompute(lambda result: float(result) if isinstance(result, int) else 0.0)
        counted = await compute.run(len, pods)
        return counted, len(pods), kernel.time()

    assert sim.run(main, seed=1).value == (2, 3, 2.0)


PROGRAM = """
import asyncio
from growth.sim import kernel as sim
from growth.sim.ports import SimRandom

async def main(kernel):
    random = SimRandom(kernel.seed, "test")
    async def walk(name):
        for _ in range(20):
            await asyncio.sleep(random.uniform(0, 10))
            kernel.trace.record(name, random.uuid())
    async with asyncio.TaskGroup() as group:
        for name in sorted({"pod", "node", "claim", "lease"}):
            group.create_task(walk(name))

print(sim.run(main, seed=11, shuffle=True).digest)
"""


def test_equal_seeds_give_equal_traces_in_any_process() -> None:
    """The same program and seed give one digest in separate processes with different hash seeds."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
            cwd=pathlib.Path(__file__).parent,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 32
