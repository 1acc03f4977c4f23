"""The demo's time: a clock and an event loop that run faster together."""

import asyncio
import datetime as dt

import pytest

from growth.demo.pace import AheadClock, PacedClock, PacedLoop
from growth.ports import SystemClock

START = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> dt.datetime:
        return START + dt.timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    def boot_time(self) -> float:
        return self.monotonic()


def test_a_paced_clock_starts_right_and_runs_faster() -> None:
    """Ten seconds of the wall are a hundred; two clocks with one start agree."""
    hand = Hand()
    clock = PacedClock(hand, speed=10.0)
    assert clock.now() == START
    hand.passed = 10.0
    assert clock.now() == START + dt.timedelta(seconds=100)
    assert clock.monotonic() == pytest.approx(100.0)
    other = AheadClock(hand, speed=10.0, start=clock.start)
    assert other.now() == clock.now()
    assert other.monotonic() == pytest.approx(10.0)


def test_timers_of_a_paced_loop_follow_its_clock() -> None:
    """A sleep of twenty seconds at speed 200 lets twenty seconds pass by its own clock, and comes in its turn."""
    order: list[str] = []

    async def main() -> float:
        clock = PacedClock(SystemClock(), speed=200.0)

        async def after(seconds: float) -> None:
            await asyncio.sleep(seconds)
            order.append(f"{seconds:g}")

        begun = clock.monotonic()
        await asyncio.gather(after(20.0), after(5.0), after(10.0))
        return clock.monotonic() - begun

    with asyncio.Runner(loop_factory=lambda: PacedLoop(200.0)) as runner:
        passed = runner.run(main())
    assert order == ["5", "10", "20"]
    assert passed >= 20.0


def test_a_timeout_of_a_paced_loop_is_in_its_own_seconds() -> None:
    """What waits for ever is given up after an hour of the loop's."""

    async def main() -> bool:
        try:
            async with asyncio.timeout(3600.0):
                await asyncio.Event().wait()
        except TimeoutError:
            return True
        return False

    with asyncio.Runner(loop_factory=lambda: PacedLoop(36_000.0)) as runner:
        assert runner.run(main())
